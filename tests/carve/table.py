"""Large made images, carved: `python -m tests.carve.table` prints what came back, and fails if anything is wrong."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.carve.made_images import MadeImage, lockstep_logs, scatter
from tests.carve.test_checkpoint_names import checkpoints_of, disk_of_texts
from tests.carve.test_names import write_copy
from tests.commands.test_carve import carved_logs, evidence
from tests.run import kseg


class Case(NamedTuple):
    """An image: partitions, bytes of each, blocks of a piece on average, share of lost pieces, and its blocks."""

    partitions: int
    size: int
    mean_blocks: float
    lost: float = 0.0
    block: int = 4096
    phase: int = 0


CASES = (
    Case(10, 4_000_000, 16),
    Case(50, 1_000_000, 2),
    Case(50, 1_000_000, 4, 0.2),
    Case(200, 500_000, 8),
    Case(200, 300_000, 2, 0.2),
    Case(20, 500_000, 16, block=512, phase=512),
    Case(20, 500_000, 8, block=1024, phase=1536),
    Case(20, 500_000, 4, phase=3584),
    Case(20, 1_000_000, 2, block=65536, phase=4608),
)


def judge(image: MadeImage, directory: Path) -> tuple[int, int, int, int]:
    """Return the batches that came back and that have a name, the logs that are in no original or have a wrong name."""
    back, named, wrong_logs, wrong_names = set(), set(), 0, 0
    for name, content in carved_logs(directory).items():
        log = next((log for log in image.logs if content in log.content), None)
        if log is None:
            wrong_logs += 1
            continue
        folder = name.split("/")[0]
        wrong_names += not folder.startswith("carved-") and folder.split(".")[0] != f"{log.name}-0"
        start = log.content.index(content)
        end = start + len(content)
        found = {(log.name, at) for _, at, size in log.batches if start <= at and at + size <= end}
        back |= found
        named |= set() if folder.startswith("carved-") else found
    return len(back), len(named), wrong_logs, wrong_names


def rows() -> Iterator[tuple[object, ...]]:
    """Carve each image; yield its row of the table."""
    for seed, case in enumerate(CASES):
        logs = list(lockstep_logs(case.partitions, case.size, seed))
        image = scatter(
            logs, seed=seed, mean_blocks=case.mean_blocks, lost=case.lost, block=case.block, phase=case.phase
        )
        with TemporaryDirectory() as folder:
            directory = Path(folder)
            (directory / "disk.img").write_bytes(image.content + disk_of_texts(checkpoints_of(logs, seed)))
            for log in logs[::3]:
                write_copy(directory / "copies", log, 0, len(log.batches) // 4)
            began = time.monotonic()
            kseg(["carve", "disk.img", "--like", "copies", "--to", "carved"], directory)
            seconds = time.monotonic() - began
            back, named, wrong_logs, wrong_names = judge(image, directory)
            unplaced = sum(line["type"] == "unplaced" for line in evidence(directory))
        intact = image.intact_batches()
        blocks = f"{case.block}+{case.phase}"
        found = f"{back / intact:.2%}", f"{named / intact:.2%}", wrong_logs, wrong_names, unplaced, seconds
        yield case.partitions, len(image.pieces), case.lost, blocks, intact, *found


def main() -> int:
    """Print the table."""
    found = ("back", "named", "wrong logs", "wrong names", "unplaced", "seconds")
    titles = ("partitions", "pieces", "lost", "blocks    ", "intact", *found)
    sys.stdout.write("  ".join(titles) + "\n")
    is_wrong = False
    for row in rows():
        shown = [f"{each:.1f}" if isinstance(each, float) else str(each) for each in row]
        sys.stdout.write("  ".join(f"{text:>{len(title)}}" for title, text in zip(titles, shown, strict=True)) + "\n")
        is_wrong |= bool(row[7] or row[8])
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
