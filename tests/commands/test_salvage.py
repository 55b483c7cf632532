"""`kseg salvage` as its user sees it."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests import golden
from tests.log import edits
from tests.run import kseg


@pytest.fixture
def damaged_partition(tmp_path: Path) -> Path:
    """Return a partition with a broken batch in the middle."""
    partition = edits.copy_partition(tmp_path / "broker", "3.6.2/plain-1")
    log = edits.logs(partition)[0]
    data = bytearray(log.read_bytes())
    position, size = list(edits.v2_batches(log))[4]
    data[position + size - 1] ^= 1
    log.write_bytes(data)
    return partition


def state(root: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in (root, *root.rglob("*"))}


def test_report_says_what_is_lost_and_how_to_go_on(damaged_partition: Path, tmp_path: Path) -> None:
    ran = kseg(["salvage", str(damaged_partition), "--to", "saved"], tmp_path)
    text = ran.stdout.decode()
    assert ran.status == 1
    lost = re.search(r"offsets lost: (\d+) to (\d+), \d+ of them \(damage\); next good offset (\d+)", text)
    assert lost
    assert int(lost[2]) + 1 == int(lost[3])
    reset = f"--topic plain:1 --reset-offsets --to-offset {lost[3]} --execute"
    assert f"kafka-consumer-groups.sh --bootstrap-server HOST:9092 --group GROUP {reset}" in text
    assert "bytes, bad-crc" in text


def test_source_is_not_touched(damaged_partition: Path, tmp_path: Path) -> None:
    before = state(damaged_partition)
    kseg(["salvage", str(damaged_partition), "--to", "saved"], tmp_path)
    assert state(damaged_partition) == before


def test_dry_run_reports_the_same_and_writes_nothing(damaged_partition: Path, tmp_path: Path) -> None:
    before = state(tmp_path)
    dry = kseg(["salvage", str(damaged_partition), "--dry-run"], tmp_path)
    assert state(tmp_path) == before
    saved = kseg(["salvage", str(damaged_partition), "--to", "saved"], tmp_path)
    _, *lines = saved.stdout.splitlines()  # the first line has kseg's version and the time
    assert dry.stdout.splitlines() == [line for line in lines if not line.startswith(b"  wrote ")]
    assert (dry.status, dry.stderr) == (saved.status, saved.stderr)


def test_dry_run_names_open_transactions(restored: Path, tmp_path: Path) -> None:
    source = str(restored / "logs" / "2.3.1" / "txn-1")
    dry = kseg(["salvage", source, "--dry-run"], tmp_path).stdout
    assert b"producer 9: its transaction that begins at offset 98 has lost its end" in dry
    saved = kseg(["salvage", source, "--to", "saved"], tmp_path).stdout
    assert all(line in saved for line in dry.splitlines())


def test_kept_batch_says_where_consumers_go_on(restored: Path, tmp_path: Path) -> None:
    source = str(restored / "damaged" / "066-codec-5")
    ran = kseg(["salvage", source, "--to", "kept"], tmp_path)
    assert ran.status == 1
    assert re.search(
        rb"kept unchanged: .* bad-codec: .*; consumers that fail there can continue at offset \d+\n", ran.stdout
    )
    assert b"--drop-unreadable omits such batches" in ran.stdout
    ran = kseg(["salvage", source, "--drop-unreadable", "--to", "dropped"], tmp_path)
    assert (ran.status, b"kept unchanged" in ran.stdout) == (1, False)
    assert re.search(rb"lost in .*: \d+ bytes, bad-codec", ran.stdout)
    assert re.search(rb"offset lost: \d+ \(damage\)|offsets lost: \d+ to \d+, \d+ of them \(damage\)", ran.stdout)


def test_json_tells_the_same(damaged_partition: Path, tmp_path: Path) -> None:
    ran = kseg(["salvage", str(damaged_partition), "--dry-run", "-o", "json"], tmp_path)
    report = json.loads(ran.stdout)
    (hole,) = report["holes"]
    assert hole["nextGoodOffset"] == hole["lastOffset"] + 1
    assert hole["resetCommand"].endswith(f"--to-offset {hole['nextGoodOffset']} --execute")
    assert report["lostBytes"] == {str(damaged_partition): {"bad-crc": report["damages"][0]["size"]}}


def lossy_internal(tmp_path: Path, topic: str) -> Path:
    """Return two partitions of an internal topic, each with a broken batch."""
    disk = tmp_path / "disk"
    for number in (0, 1):
        place = disk / f"{topic}-{number}"
        shutil.copytree(edits.copy_partition(tmp_path / f"broker{number}", "3.6.2/plain-1"), place)
        log = edits.logs(place)[0]
        data = bytearray(log.read_bytes())
        position, size = list(edits.v2_batches(log))[4]
        data[position + size - 1] ^= 1
        log.write_bytes(data)
    return disk


@pytest.mark.parametrize(
    ("topic", "advice"),
    [
        ("__consumer_offsets", "compare them with another copy (`kseg groups`)"),
        ("__transaction_state", "`kseg txns --open`"),
        ("__share_group_state", "`kafka-share-groups.sh --reset-offsets`"),
        ("__cluster_metadata", "`kseg rebuild-metadata`"),
        ("__remote_log_metadata", "--tier"),
    ],
)
def test_of_an_internal_topic_no_group_can_be_moved(topic: str, advice: str, tmp_path: Path) -> None:
    disk = lossy_internal(tmp_path, topic)
    ran = kseg(["salvage", str(disk), "--dry-run"], tmp_path)
    assert ran.status == 1
    assert ran.stdout.count(b"offsets lost: ") == 2
    assert b"kafka-consumer-groups.sh" not in ran.stdout
    (said,) = [line for line in ran.stderr.decode().splitlines() if line.startswith(f"kseg: {topic}: ")]
    assert advice in said
    ran = kseg(["salvage", str(disk), "--dry-run", "-o", "json"], tmp_path)
    assert [hole["resetCommand"] for row in ran.stdout.splitlines() for hole in json.loads(row)["holes"]] == [None] * 2


def test_a_kept_batch_of_an_internal_topic_moves_no_consumer(restored: Path, tmp_path: Path) -> None:
    shutil.copytree(restored / "damaged" / "066-codec-5", tmp_path / "__consumer_offsets-7")
    ran = kseg(["salvage", "__consumer_offsets-7", "--to", "kept"], tmp_path)
    assert b"kept unchanged: " in ran.stdout
    assert b"consumers that fail there" not in ran.stdout
    assert ran.stderr.count(b"__consumer_offsets: no consumer group reads this topic") == 1


def test_whole_partition_is_saved_with_status_0(restored: Path, tmp_path: Path) -> None:
    ran = kseg(["salvage", str(restored / "logs" / "2.3.1" / "txn-1"), "--to", str(tmp_path / "saved")], restored)
    assert ran.status == 0
    assert kseg(["verify", "saved/txn-1", "-q"], tmp_path).status == 0


def test_each_partition_of_a_disk_has_its_own_directory(restored: Path, tmp_path: Path) -> None:
    source = restored / "logs" / "3.6.2"
    ran = kseg(["salvage", str(source), "--to", str(tmp_path / "saved")], restored)
    assert ran.status == 0
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {
        path.parent.name for path in source.glob("*/*.log")
    }


def test_directory_that_holds_something_is_refused(damaged_partition: Path, tmp_path: Path) -> None:
    ran = kseg(["salvage", str(damaged_partition), "--to", str(damaged_partition.parent)], tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    assert b"already exists; specify a new or an empty directory" in ran.stderr


def test_directory_within_the_source_is_refused(damaged_partition: Path, tmp_path: Path) -> None:
    ran = kseg(["salvage", str(damaged_partition), "--to", str(damaged_partition / "new")], tmp_path)
    assert ran.status == 2
    assert b"which kseg reads; specify" in ran.stderr


def test_output_directory_must_be_given(damaged_partition: Path, tmp_path: Path) -> None:
    ran = kseg(["salvage", str(damaged_partition)], tmp_path)
    assert ran.status == 2
    assert b"specify --to DIR or --dry-run" in ran.stderr


def test_nothing_is_left_where_there_is_nothing_to_salvage(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ran = kseg(["salvage", "empty", "--to", "saved"], tmp_path)
    assert ran.status == 2
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_help_has_examples(tmp_path: Path) -> None:
    assert b"Examples:\n    kseg salvage" in kseg(["salvage", "--help"], tmp_path).stdout


def test_batches_that_came_twice_are_no_loss() -> None:
    ran = kseg(["salvage", "--dry-run", "damaged/214-duplicated"], golden.ROOT)
    assert ran.status == 0
    assert b"omitted 1 duplicate batch" in ran.stdout


def test_lost_bytes_say_if_they_held_no_offsets() -> None:
    ran = kseg(["salvage", "--dry-run", "damaged/199-hole-zeros"], golden.ROOT)
    assert ran.status == 1
    assert b"no offsets are missing" in ran.stdout


def test_pointer_in_place_of_a_log_moves_no_group(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 30000\n"
    (tmp_path / "orders-0" / f"{0:020}.log").write_text(pointer)
    ran = kseg(["salvage", "--dry-run", "orders-0"], tmp_path)
    assert ran.status == 1
    assert b"the log itself was never copied here" in ran.stdout
    assert b"--reset-offsets" not in ran.stdout
