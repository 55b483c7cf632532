"""`kseg reindex` as its user sees it."""

import re
import shutil
from pathlib import Path

import pytest

from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import kseg


def test_indexes_of_a_partition_are_written(restored: Path, tmp_path: Path) -> None:
    source = restored / "logs" / "4.3.1" / "__cluster_metadata-0"
    ran = kseg(["reindex", str(source), "--to", str(tmp_path / "new")], restored)
    assert ran.status == 0
    (log,) = source.glob("*.log")
    same = f"{log}: .index same, .timeindex same\n"
    assert ran.stdout.decode() == f"{same}2 files written to {tmp_path / 'new'}\n"
    assert {path.name for path in (tmp_path / "new").iterdir()} == {f"{log.stem}.index", f"{log.stem}.timeindex"}


def test_partitions_of_a_disk_have_directories_of_their_own(restored: Path, tmp_path: Path) -> None:
    source = restored / "logs" / "3.6.2"
    assert kseg(["reindex", str(source), "--to", str(tmp_path / "new")], restored).status == 0
    new = {path.relative_to(tmp_path / "new") for path in (tmp_path / "new").rglob("*.index")}
    assert new == {path.relative_to(source).with_suffix(".index") for path in source.rglob("*.log")}


def test_dry_run_only_compares(restored: Path, tmp_path: Path) -> None:
    ran = kseg(["reindex", str(restored / "logs" / "4.3.1"), "--dry-run"], tmp_path)
    assert ran.status == 0
    assert b".index same" in ran.stdout
    assert list(tmp_path.iterdir()) == []


def test_damage_ends_the_index_with_status_1(restored: Path, tmp_path: Path) -> None:
    ran = kseg(["reindex", "damaged/210-wiped-batch", "--to", str(tmp_path / "new")], restored)
    assert ran.status == 1
    assert b"at position 237: bad-length: the indexes end here; `kseg salvage` continues after it" in ran.stdout


def test_output_directory_must_be_given(restored: Path) -> None:
    ran = kseg(["reindex", "logs/3.6.2/plain-1"], restored)
    assert ran.status == 2
    assert b"specify --to DIR or --dry-run" in ran.stderr


def test_help_has_examples(tmp_path: Path) -> None:
    assert b"Examples:\n    kseg reindex" in kseg(["reindex", "--help"], tmp_path).stdout


# --- index.interval.bytes --------------------------------------------------------------------------------------------


def built(directory: Path, interval: int, size: int = 300) -> None:
    """Write a partition `kafka-logs/t-0` of the given segments, with plain batches of about `size` bytes."""
    lines = b"".join(b"%0*d\n" % (size - 70, number) for number in range(300))
    (directory / "lines").write_bytes(lines)
    options = ["--batch-records", "1", "--segment-bytes", str(100 * size), "--index-interval-bytes", str(interval)]
    ran = kseg(["build", "lines", "--input-format", "text", *options, "--to", "kafka-logs/t-0"], directory)
    assert ran.status == 0
    assert ran.stdout.count(b".log:") >= 3


def compare_indexes(directory: Path, *options: str) -> tuple[set[bytes], bytes]:
    """Return the report about the indexes, and stderr."""
    ran = kseg(["reindex", "kafka-logs/t-0", "--dry-run", *options], directory)
    assert ran.status == 0
    return {line.split(b": ")[1] for line in ran.stdout.splitlines() if b".log: " in line}, ran.stderr


SAME = {b".index same, .timeindex same"}


@pytest.mark.parametrize("interval", [0, 100, 1000, 4095, 5000, 16384])
def test_the_interval_is_reported_by_the_entries(interval: int, tmp_path: Path) -> None:
    built(tmp_path, interval)
    same, said = compare_indexes(tmp_path)
    assert same == SAME
    taken = re.fullmatch(
        rb"kseg: kafka-logs/t-0: index\.interval\.bytes is ([0-9]+), from the positions of its entries\n", said
    )
    assert (taken is None) == (interval == 4095)  # the default has the same result
    if taken is not None:
        assert interval <= int(taken[1]) < interval + 300


@pytest.mark.parametrize("size", [300, 3000, 9000])
def test_nothing_is_said_of_the_default(size: int, tmp_path: Path) -> None:
    built(tmp_path, 4096, size)
    assert compare_indexes(tmp_path) == (SAME, b"")


def test_a_missing_index_is_made_as_the_others_are(tmp_path: Path) -> None:
    built(tmp_path, 1000)
    (tmp_path / "kafka-logs" / "t-0").rename(tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "t-0")
    second = sorted((tmp_path / "t-0").glob("*.index"))[1]
    second.unlink()
    assert kseg(["reindex", "t-0", "--to", "new"], tmp_path).status == 0
    assert (tmp_path / "new" / second.name).read_bytes() == (tmp_path / "whole" / second.name).read_bytes()


@pytest.mark.parametrize("value", ["1000", "+1000", " 1000 "])
def test_the_topics_setting_is_the_interval(value: str, tmp_path: Path) -> None:
    """A broker parses the text in the metadata, which a user wrote."""
    built(tmp_path, 1000)
    fields = {"resourceType": 2, "resourceName": "t", "name": "index.interval.bytes", "value": value}
    metadata = tmp_path / "kafka-logs" / "__cluster_metadata-0"
    setting = NewRecord(None, b"\1\4\0" + build_message(message_schema("ConfigRecord"), 0, fields))
    write_segment(metadata, [NewBatch([setting])])
    said = b"kseg: kafka-logs/t-0: index.interval.bytes is 1000, from the cluster's metadata\n"
    assert compare_indexes(tmp_path) == (SAME, said)
    metadata.rename(tmp_path / "__cluster_metadata-0")
    assert compare_indexes(tmp_path, "--cluster-metadata", "__cluster_metadata-0") == (SAME, said)
    (differs,) = compare_indexes(tmp_path, "--index-interval-bytes", "4096")[0]
    assert differs.startswith(b".index differs (both right)")


def test_time_index_that_ends_in_zeros_is_wrong(tmp_path: Path) -> None:
    """A broker reads the zeros of a closed segment as its largest time."""
    built(tmp_path, 4096, 300)
    first = min((tmp_path / "kafka-logs" / "t-0").glob("*.timeindex"))
    first.write_bytes(first.read_bytes() + bytes(1200))
    wrong = [line for line in compare_indexes(tmp_path)[0] if b"wrong" in line]
    assert len(wrong) == 1
    assert b".index same, .timeindex wrong (100 of 10" in wrong[0]


def test_said_what_is_rebuilt_and_where(tmp_path: Path) -> None:
    built(tmp_path, 4096, 300)
    (tmp_path / "kafka-logs" / "t-0" / "leader-epoch-checkpoint").write_text("0\nx\n")
    dry = kseg(["reindex", "kafka-logs", "--dry-run"], tmp_path).stdout
    assert b"leader-epoch-checkpoint: broken" in dry
    assert b"; will be rebuilt\n" in dry
    lines = kseg(["reindex", "kafka-logs", "--to", "new"], tmp_path).stdout.splitlines()
    count = sum(1 for path in (tmp_path / "new").rglob("*") if path.is_file())
    assert lines[-1] == f"{count} files written to new".encode()
