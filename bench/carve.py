"""`kseg carve` against SHA-256 alone, on a made image: `python -m bench.carve`.

Each phase's processor and wall seconds, and its ratio to hashing the same file in the same run.
"""

import hashlib
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from kseg.carve.blocks import find_blocks
from kseg.carve.images import Images
from kseg.carve.joins import join_runs
from kseg.carve.marks import Marks
from kseg.carve.runs import Runs
from kseg.carve.scan import Scan, scan_images
from tests.carve.made_images import lockstep_logs, scatter

PARTITIONS, PARTITION_SIZE, MEAN_BLOCKS = 200, 2_000_000, 8
OTHER_SIZE = 1 << 30
"""Bytes without batches, one half random and the other one zeros: disks of brokers have room."""
REPETITIONS = 3
_PIECE = 8 << 20


def hash_file(path: Path) -> None:
    """Compute the SHA-256 of a file, and nothing else."""
    digest, buffer = hashlib.sha256(), memoryview(bytearray(_PIECE))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(buffer[:count])


def scan(path: Path, *, is_hashed: bool) -> Scan:
    """Find an image's batches."""
    with Images([path]) as images:
        look = Marks(has_structures=True).look
        return scan_images(images, is_hashed=is_hashed, is_legacy=False, on_read=lambda _: None, look=look)


def join(path: Path, found: Scan) -> None:
    """Join the pieces of an image."""
    with Images([path]) as images:
        join_runs(Runs(found.batches, images, find_blocks(found.batches, images)))


def seconds_of(work: Callable[[], object]) -> tuple[float, float]:
    """Return the least processor and wall seconds of some repetitions."""
    spent = []
    for _ in range(REPETITIONS):
        wall, processor = time.monotonic(), time.process_time()
        work()
        spent.append((time.process_time() - processor, time.monotonic() - wall))
    return min(each for each, _ in spent), min(each for _, each in spent)


def main() -> None:
    """Print the table."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "disk.img")
        logs = list(lockstep_logs(PARTITIONS, PARTITION_SIZE, 1))
        with path.open("wb") as file:
            file.write(scatter(logs, seed=1, mean_blocks=MEAN_BLOCKS).content)
            for content in (random.Random(1).randbytes(_PIECE), bytes(_PIECE)):
                for _ in range(OTHER_SIZE // 2 // _PIECE):
                    file.write(content)
        found = scan(path, is_hashed=False)
        works: dict[str, Callable[[], object]] = {
            "hashlib.sha256": lambda: hash_file(path),
            "scan and hash": lambda: scan(path, is_hashed=True),
            "scan (--no-hash)": lambda: scan(path, is_hashed=False),
            "joins": lambda: join(path, found),
        }
        sys.stdout.write(f"{path.stat().st_size >> 20} MiB, {len(found.batches)} batches, {PARTITIONS} partitions\n")
        sys.stdout.write(f"{'':16}  processor  ratio   wall  ratio\n")
        alone: tuple[float, float] | None = None
        for name, work in works.items():
            spent = seconds_of(work)
            alone = alone or spent
            parts = (f"{each:7.2f} s  {each / base:5.2f}" for each, base in zip(spent, alone, strict=True))
            sys.stdout.write(f"{name:16}  {'  '.join(parts)}\n")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    sys.stdout.write(f"peak memory, with the made logs: {peak} MiB\n")


if __name__ == "__main__":
    main()
