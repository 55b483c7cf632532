"""`kseg carve`: each carved log is a piece of one of the logs that were deleted, byte for byte."""

import hashlib
import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.carve.made_images import FIRST_TIME, Log, MadeImage, lockstep_logs, make_log, scatter
from tests.failing_disk import FailingDisk
from tests.kernel.made import BatchHeader, Record, batch
from tests.loops import for_each
from tests.run import Run, kseg

LOGS = Path(__file__).parent.parent.parent / "golden/logs"
BLOCK = 4096
HEADER_SIZE = 61
GZIP = 1
CRC_POSITION = 17
SURE_BREAK = 35
"""Bytes at the beginning of a batch that tell it from those of other partitions."""


def carve(directory: Path, content: bytes, *options: str) -> Run:
    """Carve an image in a directory into `carved`."""
    (directory / "disk.img").write_bytes(content)
    return kseg(["carve", "disk.img", "--to", "carved", *options], directory)


def carved_logs(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory / "carved")): path.read_bytes() for path in carved_paths(directory)}


def carved_paths(directory: Path) -> list[Path]:
    return sorted((directory / "carved").glob("*/*.log"))


def evidence(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "carved/carve.jsonl").read_text().splitlines()]


def batches_back(image: MadeImage, directory: Path) -> int:
    """Return the number of different batches in carved logs, each of which must be a piece of one log."""
    found = set()
    for name, content in carved_logs(directory).items():
        logs = [log for log in image.logs if content in log.content]
        assert logs, f"{name} is in no log"
        start = logs[0].content.index(content)
        found |= {
            (logs[0].name, offset)
            for offset, position, size in logs[0].batches
            if start <= position and position + size <= start + len(content)
        }
    return len(found)


@pytest.mark.parametrize(
    ("mean_blocks", "lost", "least"), [(16, 0, 0.99), (4, 0, 0.98), (4, 0.2, 0.97)], ids=["long", "short", "lost"]
)
def test_scattered_logs_come_back_and_none_is_mixed_with_another(
    mean_blocks: float, lost: float, least: float, tmp_path: Path
) -> None:
    image = scatter(list(lockstep_logs(8, 300_000, 1)), seed=1, mean_blocks=mean_blocks, lost=lost)
    ran = carve(tmp_path, image.content)
    assert ran.status in (0, 1), ran.stderr
    assert batches_back(image, tmp_path) >= least * image.intact_batches()


@pytest.mark.parametrize(
    ("block", "phase"), [(512, 0), (512, 512), (1024, 0), (1024, 1536), (4096, 3584), (65536, 0), (65536, 4608)]
)
def test_the_blocks_of_any_file_system_are_found(block: int, phase: int, tmp_path: Path) -> None:
    mean_blocks = max(2, 8192 // block)
    image = scatter(list(lockstep_logs(8, 400_000, 8)), seed=8, mean_blocks=mean_blocks, block=block, phase=phase)
    carve(tmp_path, image.content)
    assert batches_back(image, tmp_path) >= 0.97 * image.intact_batches()


def test_given_blocks_may_begin_at_any_sector(tmp_path: Path) -> None:
    image = scatter(list(lockstep_logs(4, 100_000, 8)), seed=8, block=1024, phase=512)
    carve(tmp_path, image.content, "--block-size", "1024")
    assert batches_back(image, tmp_path) >= 0.97 * image.intact_batches()


def test_a_metadata_snapshot_is_no_log(tmp_path: Path) -> None:
    content = (LOGS / "3.6.2/bootstrap.checkpoint").read_bytes()
    log = make_log("a", [(1, 300)] * 30, 1)
    carve(tmp_path, content.ljust(BLOCK, b"\0") + log.content)
    assert (tmp_path / "carved/carved-0001-0/bootstrap.checkpoint").read_bytes() == content
    assert list(carved_logs(tmp_path).values()) == [log.content]
    assert kseg(["carve", "--check", "carved/carve.jsonl"], tmp_path).status == 0


def test_carved_partitions_pass_verify(tmp_path: Path) -> None:
    carve(tmp_path, scatter(list(lockstep_logs(4, 60_000, 2)), seed=2).content)
    assert kseg(["verify", "-q", "carved"], tmp_path).status == 0


def test_both_kernels_carve_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = scatter(list(lockstep_logs(4, 30_000, 3)), seed=3, mean_blocks=2)
    outputs = []
    for kernel in ("fast", "twin"):
        monkeypatch.setenv("KSEG_KERNEL", kernel)
        (tmp_path / kernel).mkdir()
        ran = carve(tmp_path / kernel, image.content)
        outputs.append((ran.stdout, carved_logs(tmp_path / kernel), evidence(tmp_path / kernel)[1:]))
    assert outputs[0] == outputs[1]


def test_ranges_give_back_every_byte_of_every_file(tmp_path: Path) -> None:
    image = scatter(list(lockstep_logs(6, 100_000, 4)), seed=4, mean_blocks=2)
    carve(tmp_path, image.content)
    rebuilt: dict[str, bytes] = {}
    for line in evidence(tmp_path):
        if line["type"] == "batch":
            raw = bytes.fromhex(line.get("rebuilt", "")) + b"".join(image.content[a:b] for _, a, b in line["ranges"])
            assert line["position"] == len(rebuilt.get(line["file"], b""))
            assert line["size"] == len(raw)
            rebuilt[line["file"]] = rebuilt.get(line["file"], b"") + raw
    assert rebuilt == carved_logs(tmp_path)


def test_evidence_has_the_hashes_of_input_and_output(tmp_path: Path) -> None:
    image = scatter([make_log("a", [(2, 900)] * 30, 1)], seed=1)
    carve(tmp_path, image.content)
    lines = evidence(tmp_path)
    assert lines[0]["sha256"] == hashlib.sha256(image.content).hexdigest()
    files = {line["file"]: line["sha256"] for line in lines if line["type"] == "file"}
    assert files == {name: hashlib.sha256(log).hexdigest() for name, log in carved_logs(tmp_path).items()}


def test_the_image_is_only_read(tmp_path: Path) -> None:
    image = tmp_path / "disk.img"
    content = scatter([make_log("a", [(2, 900)] * 30, 1)], seed=1).content
    image.write_bytes(content)
    image.chmod(0o400)
    before = image.stat()
    assert kseg(["carve", "disk.img", "--to", "carved"], tmp_path).status == 0
    assert image.read_bytes() == content
    assert image.stat().st_mtime_ns == before.st_mtime_ns


def test_only_the_owner_can_read_carved_files(tmp_path: Path) -> None:
    carve(tmp_path, make_log("a", [(2, 900)] * 30, 1).content)
    (log,) = carved_paths(tmp_path)
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.parent.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "carved/carve.jsonl").stat().st_mode & 0o777 == 0o600


def test_blocks_that_the_disk_cannot_read_cost_only_their_batches(tmp_path: Path, failing_disk: FailingDisk) -> None:
    log = make_log("a", [(1, 200)] * 200, 1)
    (tmp_path / "disk.img").write_bytes(log.content)
    failing_disk.lose_blocks(tmp_path / "disk.img", range(8192, 8704))
    ran = kseg(["carve", "disk.img", "--to", "carved"], tmp_path)
    assert ran.status == 1
    assert b"disk.img: 512 bytes can't be read" in ran.stdout
    back = sum(len(content) for content in carved_logs(tmp_path).values())
    assert len(log.content) - back < 1200
    (unreadable,) = [line for line in evidence(tmp_path) if line["type"] == "unreadable"]
    assert unreadable["ranges"] == [[0, 8192, 8704]]


def test_a_slice_of_a_disk_is_carved_with_positions_of_the_disk(tmp_path: Path) -> None:
    one, other = (make_log(name, [(2, 900)] * 30, 1) for name in "ab")
    content = one.content.ljust(1 << 20, b"\0") + bytes(512) + other.content
    carve(tmp_path, content, "--from", str((1 << 20) + 512), "--size", "64KiB")
    assert list(carved_logs(tmp_path).values()) == [other.content]
    assert next(line for line in evidence(tmp_path) if line["type"] == "batch")["ranges"][0][1] == (1 << 20) + 512


def test_pieces_on_two_disks_become_one_log(tmp_path: Path) -> None:
    log = make_log("a", [(2, 900)] * 30, 1)
    for name, part in (("1.img", log.content[:8192]), ("2.img", log.content[8192:])):
        (tmp_path / name).write_bytes(part)
    kseg(["carve", "2.img", "1.img", "--to", "carved"], tmp_path)
    assert list(carved_logs(tmp_path).values()) == [log.content]


def test_a_block_written_twice_is_carved_once(tmp_path: Path) -> None:
    log = make_log("a", [(1, 300)] * 60, 1)
    old = log.content[: log.batches[40][1]]
    written_again = len(old) // BLOCK * BLOCK
    carve(tmp_path, old.ljust(written_again + 3 * BLOCK, b"\0") + log.content[written_again - BLOCK :])
    assert list(carved_logs(tmp_path).values()) == [log.content]
    assert sum(line["batches"] for line in evidence(tmp_path) if line["type"] == "copy") > 0


def test_small_partitions_can_be_left_out(tmp_path: Path) -> None:
    small, large = make_log("a", [(1, 300)] * 2, 1), make_log("b", [(1, 300)] * 20, 1)
    ran = carve(tmp_path, small.content.ljust(BLOCK, b"\0") + large.content, "--min-batches", "3")
    assert list(carved_logs(tmp_path).values()) == [large.content]
    assert b"left out 2 batches in 1 partition" in ran.stdout
    assert ran.status == 1


def test_a_dry_run_reports_the_same_and_writes_nothing(tmp_path: Path) -> None:
    content = scatter(list(lockstep_logs(4, 30_000, 3)), seed=3).content
    wet = carve(tmp_path, content)
    dry = kseg(["carve", "disk.img", "--dry-run"], tmp_path)
    assert (dry.status, dry.stdout) == (wet.status, wet.stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["carve", ".", "--dry-run"], b"is neither a file nor a block device"),
        (["carve", "none.img", "--dry-run"], b"can't be opened"),
        (["carve", "disk.img", "--dry-run", "--from", "1GiB"], b"has 100 bytes; specify a smaller --from"),
        (["carve", "disk.img", "--dry-run"], b"disk.img: has no batches"),
        (["carve", "disk.img"], b"specify --to DIR or --dry-run"),
    ],
)
def test_wrong_inputs_end_with_status_2(arguments: list[str], message: bytes, tmp_path: Path) -> None:
    (tmp_path / "disk.img").write_bytes(bytes(100))
    ran = kseg(arguments, tmp_path)
    assert ran.status == 2
    assert message in ran.stderr
    assert ran.stderr.count(b"\n") == 1


# --- where a batch breaks --------------------------------------------------------------------------------------------


def log_broken_at(cut: int, name: str, suffix: bytes = b"") -> Log:
    """Return a log of two blocks, the second of which begins `cut` bytes into a batch.

    Logs of different names have the same offsets, sizes, times and keys; all values end with the suffix.
    """
    chance = random.Random(name)
    filling = batch(BatchHeader(90, attributes=GZIP, count=1), body=chance.randbytes(BLOCK - cut - HEADER_SIZE))
    contents = [filling]
    for offset in (91, 94, 97):
        records = [Record(b"key", chance.randbytes(100) + suffix, offset_delta=delta) for delta in range(3)]
        times = {"base_timestamp": FIRST_TIME + offset, "max_timestamp": FIRST_TIME + offset}
        contents.append(batch(BatchHeader(offset, leader_epoch=3, last_offset_delta=2, **times), records))
    positions = itertools.accumulate(map(len, contents), initial=0)
    places = tuple(
        (offset, at, len(raw)) for offset, at, raw in zip((90, 91, 94, 97), positions, contents, strict=False)
    )
    return Log(name, b"".join(contents), places)


def blocks_of(log: Log) -> tuple[bytes, bytes]:
    return log.content[:BLOCK], log.content[BLOCK:].ljust(BLOCK, b"\0")


@for_each("cut", range(1, 71))
def test_a_batch_in_two_blocks_comes_back_wherever_it_breaks(cut: int, tmp_path: Path) -> None:
    log = log_broken_at(cut, "x")
    first, second = blocks_of(log)
    carve(tmp_path, second + random.Random(cut).randbytes(BLOCK) + first)
    found = carved_logs(tmp_path).values()
    if cut >= SURE_BREAK:
        assert list(found) == [log.content]
    else:
        rest = log.content[log.batches[1][1] :]
        assert sorted(found) == sorted([log.content[: log.batches[1][1]], rest])


@for_each("cut", range(1, 71))
def test_pieces_of_two_partitions_never_become_one_log(cut: int, tmp_path: Path) -> None:
    logs = [log_broken_at(cut, name) for name in ("x", "y")]
    (first, second), (other_first, other_second) = map(blocks_of, logs)
    layouts = (
        other_second + first,
        bytes(BLOCK) + other_second + first,
        first + other_first + other_second + second,
        second + first + other_second + other_first,
        other_first + first + other_second,
        bytes(3 * BLOCK) + second + other_second,
    )
    for number, content in enumerate(layouts):
        place = tmp_path / str(number)
        place.mkdir()
        carve(place, content)
        for name, carved in carved_logs(place).items():
            assert any(carved in log.content for log in logs), f"layout {number}: {name}"
        image = MadeImage(content, tuple(logs), ())
        assert batches_back(image, place) >= content.count(logs[0].content[-60:]) + content.count(logs[1].content[-60:])


@for_each("cut", range(1, 71))
def test_a_batch_whose_beginning_is_lost_comes_back_if_its_crc_is_there(cut: int, tmp_path: Path) -> None:
    log = log_broken_at(cut, "x")
    carve(tmp_path, bytes(BLOCK) + blocks_of(log)[1])
    (carved,) = carved_logs(tmp_path).values()
    _, position, size = log.batches[1]
    assert carved == log.content[position if cut <= CRC_POSITION else position + size :]


@for_each("cut", range(1, 71))
def test_the_beginning_of_a_batch_alone_is_no_batch(cut: int, tmp_path: Path) -> None:
    log = log_broken_at(cut, "x")
    carve(tmp_path, blocks_of(log)[0] + bytes(BLOCK))
    assert list(carved_logs(tmp_path).values()) == [log.content[: log.batches[1][1]]]


@for_each("suffix", [b"", b"e" * 20, b'"}', b"application/json" * 3])
def test_the_end_of_a_batch_alone_does_not_join_another_partition(suffix: bytes, tmp_path: Path) -> None:
    size = log_broken_at(1, "x", suffix).batches[1][2]
    for rest in range(1, 71):
        logs = [log_broken_at(size - rest, name, suffix) for name in ("x", "y")]
        place = tmp_path / str(rest)
        place.mkdir()
        carve(place, blocks_of(logs[1])[1] + blocks_of(logs[0])[0])
        for name, carved in carved_logs(place).items():
            assert any(carved in log.content for log in logs), f"rest of {rest}: {name}"


# --- batches in more than two pieces ---------------------------------------------------------------------------------


def large_log(name: str, sizes: tuple[int, ...] = (3000, 14_000, 3000)) -> Log:
    return make_log(name, [(1, size) for size in sizes], 7)


def test_a_batch_in_three_pieces_comes_back(tmp_path: Path) -> None:
    log, twin = large_log("a"), large_log("b")
    blocks, others = (
        [each.content[at : at + BLOCK].ljust(BLOCK, b"\0") for at in range(0, 20480, BLOCK)] for each in (log, twin)
    )
    noise = random.Random(1).randbytes(3 * BLOCK)
    carve(tmp_path, others[1] + others[3] + b"".join(blocks[1:4]) + noise + blocks[4] + noise + blocks[0])
    assert list(carved_logs(tmp_path).values()) == [log.content]
    assert [line["how"] for line in evidence(tmp_path) if line["type"] == "batch"] == ["whole", "joined-3", "whole"]


@pytest.mark.parametrize(("others", "joined"), [(0, ["joined-3"]), (40, [])])
def test_large_records_share_the_tests_that_may_find_a_wrong_block(
    others: int, joined: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong block within a record leaves no trace but a CRC, which fits by chance if there are enough tests."""
    monkeypatch.setattr("kseg.carve.loose_blocks._SURE_TESTS", 400)
    log = large_log("a").content
    heads = [large_log(f"other-{number}").content[:BLOCK] for number in range(others)]
    noise = random.Random(1).randbytes(BLOCK)
    image = [log[BLOCK : 4 * BLOCK], log[4 * BLOCK :].ljust(BLOCK, b"\0"), log[:BLOCK], *heads]
    carve(tmp_path, noise.join(image))
    assert [line["how"] for line in evidence(tmp_path) if line.get("how") == "joined-3"] == joined


def test_the_last_batch_comes_back_from_a_block_without_other_batches(tmp_path: Path) -> None:
    log, twin = large_log("a", (3000, 3000)), large_log("b", (3000, 3000))
    noise = random.Random(1).randbytes(3 * BLOCK)
    first, last = log.content[:BLOCK], log.content[BLOCK:].ljust(BLOCK, b"\0")
    carve(tmp_path, twin.content[BLOCK:].ljust(BLOCK, b"\0") + last + noise + first)
    assert list(carved_logs(tmp_path).values()) == [log.content]


def test_pieces_without_a_complete_batch_come_back(tmp_path: Path) -> None:
    log = large_log("a", (3000, 5000, 5000, 5000, 500))
    blocks = [log.content[at : at + BLOCK].ljust(BLOCK, b"\0") for at in range(0, len(log.content), BLOCK)]
    noise = random.Random(1).randbytes(BLOCK)
    carve(tmp_path, noise.join(reversed(blocks)))
    assert list(carved_logs(tmp_path).values()) == [log.content]


def test_two_equal_rests_of_a_batch_are_one(tmp_path: Path) -> None:
    log = large_log("a", (3000, 3000))
    first, last = log.content[:BLOCK], log.content[BLOCK:].ljust(BLOCK, b"\0")
    carve(tmp_path, last + first + bytes(BLOCK) + last)
    assert list(carved_logs(tmp_path).values()) == [log.content]
