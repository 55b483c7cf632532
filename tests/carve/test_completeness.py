"""Whether carved partitions are complete: gaps, ends by old checkpoints, and partitions next to torn pieces."""

import json
from pathlib import Path

from tests.carve.made_images import Log, lockstep_logs, make_log, scatter
from tests.carve.test_checkpoint_names import checkpoint, checkpoints_of, disk_of_texts, varied_log
from tests.carve.test_internal_names import disk_of_logs
from tests.commands.test_carve import carve, carved_logs, evidence
from tests.kernel.made import BatchHeader, Record, batch
from tests.run import kseg

BLOCK = 4096
NAMED = ("--name", "carved-0001=orders-0")


def lines_about(directory: Path, content: bytes, *options: str) -> tuple[str, str]:
    """Return the two lines about the only partition."""
    lines = carve(directory, content, *options).stdout.decode().splitlines()
    return lines[0], lines[1]


def object_of(directory: Path, *options: str) -> dict[str, object]:
    ran = kseg(["carve", "disk.img", "--dry-run", "-o", "json", *options], directory)
    found: dict[str, object] = json.loads(ran.stdout.splitlines()[0])
    return found


def cut_after(log: Log, count: int) -> Log:
    """Return the first batches of a log."""
    return Log(log.name, log.content[: log.batches[count][1]], log.batches[:count])


def test_a_complete_log_has_no_gaps(tmp_path: Path) -> None:
    about, completeness = lines_about(tmp_path, make_log("a", [(2, 300)] * 60, 1).content)
    assert about.startswith("carved-0001-0: offsets 0 to 119, ")
    assert completeness == "  no offset is missing between the first and the last one"
    found = object_of(tmp_path)
    assert (found["missingInside"], found["gapCount"]) == (0, 0)
    assert (found["missingBefore"], found["missingAfter"]) == (None, None)


def test_offsets_of_overwritten_blocks_are_missing(tmp_path: Path) -> None:
    log = make_log("orders", [(2, 300)] * 60, 1)
    content = bytearray(log.content)
    hole = range(3 * BLOCK, 5 * BLOCK)
    content[hole.start : hole.stop] = bytes(len(hole))
    lost = sum(at < hole.stop and hole.start < at + size for _, at, size in log.batches)
    names = [option for number in (1, 2) for option in ("--name", f"carved-000{number}=orders-0")]
    _, completeness = lines_about(tmp_path, bytes(content), *names)
    assert completeness == f"  {2 * lost} offsets are missing between the first and the last one, in 1 gap"


def test_offsets_that_the_log_cleaner_removed_are_counted_as_gaps(tmp_path: Path) -> None:
    offsets = [0, 1, 5, 6, 20]
    content = b"".join(batch(BatchHeader(offset), [Record(b"k", b"v" * 50)]) for offset in offsets)
    _, completeness = lines_about(tmp_path, content)
    assert completeness == "  16 offsets are missing between the first and the last one, in 2 gaps"


def test_an_old_checkpoint_shows_that_the_ends_are_missing(tmp_path: Path) -> None:
    log = varied_log("orders")
    end = log.batches[150][0]
    part = Log(log.name, log.content[log.batches[20][1] : log.batches[150][1]], log.batches[20:150])
    texts = [checkpoint([("orders", 0, 3)]), checkpoint([("orders", 0, end + 7), ("other", 0, 10**6)])]
    content = disk_of_logs(part) + disk_of_texts(texts)
    _, completeness = lines_about(tmp_path, content, *NAMED)
    before = log.batches[20][0] - 3
    assert completeness == (
        "  no offset is missing between the first and the last one;"
        f" by an old checkpoint, at least {before} preceded the first one;"
        " by an old checkpoint, at least 7 followed the last one"
    )
    found = object_of(tmp_path, *NAMED)
    assert (found["missingBefore"], found["missingAfter"]) == (before, 7)


def test_a_log_that_reaches_the_latest_checkpoint_says_so(tmp_path: Path) -> None:
    log = varied_log("orders")
    _, completeness = lines_about(tmp_path, disk_of_logs(log) + disk_of_texts(checkpoints_of([log])))
    assert completeness.endswith("one; no old checkpoint has a later end")


def test_pieces_without_a_place_are_listed_with_the_partitions_next_to_them(tmp_path: Path) -> None:
    log = make_log("orders", [(1, 300)] * 12 + [(1, 6_000)], 1)
    content = log.content[:BLOCK] + bytes(BLOCK)
    ran = carve(tmp_path, content, *NAMED)
    assert b"  no place for 1 beginning of a batch without its rest, next to orders-0 (1)\n" in ran.stdout
    (unplaced,) = [line for line in evidence(tmp_path) if line["type"] == "unplaced"]
    assert unplaced["nextTo"] == "orders-0"


def test_of_many_partitions_next_to_pieces_three_are_named(tmp_path: Path) -> None:
    image = scatter(list(lockstep_logs(12, 60_000, 3)), seed=3, mean_blocks=2, lost=0.3)
    ran = carve(tmp_path, image.content)
    assert b" other partitions\n" in ran.stdout


def test_the_evidence_has_the_start_of_the_blocks(tmp_path: Path) -> None:
    image = scatter(list(lockstep_logs(6, 100_000, 2)), seed=2, mean_blocks=2, phase=1536)
    carve(tmp_path, image.content)
    assert carved_logs(tmp_path)
    assert [(line["blockSize"], line["blockStart"]) for line in evidence(tmp_path) if line["type"] == "input"] == [
        (BLOCK, 1536)
    ]
    ran = kseg(["carve", "disk.img", "--from", "512", "--to", "slice"], tmp_path)
    assert ran.status in (0, 1)
    line = json.loads((tmp_path / "slice/carve.jsonl").read_text().splitlines()[0])
    assert (line["blockSize"], line["blockStart"]) == (BLOCK, 1536)
