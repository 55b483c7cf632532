"""Tiers whose objects are the files of a broker under other names: Apache's, Pinterest's, Confluent's."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kseg.index.producers import ProducerStates, build_producer_snapshot
from kseg.tiered.places import TierLayout, parse_object_name
from tests import golden
from tests.loops import for_each
from tests.run import kseg
from tests.tiered.aiven_objects import Segment, segments_of

ID, SEGMENT_ID = "-bcdefghijklmnopqrstu-", "-_23456789abcdefghijk-"
SEVERAL, ONE = "logs/2.0.1/compacted-0", "docs/test-1-0"
"""Partitions of three segments, and of one."""
CONFLUENT = {
    ".log": "segment",
    ".index": "offset-index",
    ".timeindex": "timestamp-index",
}


def store_locally(source: Path, folder: Path, name: Callable[[int, Segment], str]) -> None:
    """Store segments as LocalTieredStorage does; the names of objects are by number and segment."""
    folder.mkdir(parents=True)
    for number, segment in enumerate(segments_of(source)):
        files = segment.files | {"snapshot": segment.files["snapshot"] or build_producer_snapshot(ProducerStates())}
        for suffix, content in files.items():
            (folder / f"{name(number, segment)}.{suffix.replace('-', '_')}").write_bytes(content)


def local_tiered(source: Path, bucket: Path) -> None:
    folder = bucket / "kafka-tiered-storage" / f"{source.name}-{ID}"
    store_locally(source, folder, lambda _, segment: f"{segment.base:020}-{SEGMENT_ID}")


def local_tiered_without_offsets(source: Path, bucket: Path) -> None:
    store_locally(source, bucket / f"{source.name}-{ID}", lambda number, _: f"{SEGMENT_ID[:-1]}{number}")


def pinterest(source: Path, bucket: Path) -> None:
    place = bucket / "backup" / "kafka" / "01101" / "cluster1" / source.name
    place.mkdir(parents=True)
    for path in source.iterdir():
        if path.suffix in (".log", ".index", ".timeindex"):
            shutil.copy(path, place)
    (place / "offset.wm").write_text("596")
    (place / "_metadata").write_text("{}")


def confluent(source: Path, bucket: Path) -> None:
    for path in source.iterdir():
        if path.suffix in CONFLUENT:
            name = f"{int(path.stem):020}_0_v0.{CONFLUENT[path.suffix]}"
            place = bucket / "0" / f"{path.stem[-22:]:_>22}" / ID / "0" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)


LAYOUTS: dict[str, tuple[Callable[[Path, Path], None], str, str, str]] = {
    "LocalTieredStorage": (local_tiered, SEVERAL, "LocalTieredStorage", "compacted-0"),
    "names-without-offsets": (local_tiered_without_offsets, ONE, "LocalTieredStorage", "test-1-0"),
    "Pinterest": (pinterest, SEVERAL, "Pinterest", "compacted-0"),
    "Confluent": (confluent, ONE, "Confluent", f"{ID}-0"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_files_under_other_names_are_the_partition_that_they_were(
    name: str, restored: Path, unpacked_into: Path, tmp_path: Path
) -> None:
    store, source, layout, partition = LAYOUTS[name]
    store(restored / source, tmp_path / "bucket")
    whole = json.loads(kseg(["ls", source, "-o", "json"], restored).stdout.splitlines()[0])
    listed = json.loads(kseg(["ls", "bucket", "-o", "json"], tmp_path).stdout.splitlines()[0])
    assert (listed["directory"], listed["layout"]) == (f"bucket/{partition}", layout)
    for field in ("segments", "bytes", "logStartOffset", "lastOffset", "largestTimestamp"):
        assert listed[field] == whole[field]
    ran = kseg(["verify", "bucket"], tmp_path)
    assert (ran.status, ran.stdout) == (0, b"ok\n"), ran
    ran = kseg(["lookup", "bucket", "--offset", str(listed["lastOffset"]), "-o", "json"], tmp_path)
    assert json.loads(ran.stdout)["record"]["offset"] == listed["lastOffset"]
    saved = kseg(["salvage", "bucket", "--to", "saved"], tmp_path)
    assert saved.stderr == b""
    for log in sorted((restored / source).glob("*.log")):
        assert (tmp_path / "saved" / partition / log.name).read_bytes() == log.read_bytes()


@pytest.mark.parametrize("release", ["3.9.1", "4.3.1"])
@pytest.mark.parametrize("above", ["", "kafka-tiered-storage"])
def test_tiers_of_real_brokers_are_their_segments(release: str, above: str, restored: Path, tmp_path: Path) -> None:
    tier = restored / "logs" / f"{release}-tiered-remote"
    log = next(tier.rglob("*.log"))
    ran = kseg(["salvage", str(tier / above), "--to", "saved"], tmp_path)
    assert ran.stderr == b""
    saved = tmp_path / "saved" / "tier-txn-0"
    assert (saved / f"{log.name[:20]}.log").read_bytes() == log.read_bytes()
    assert log.parent.name[-22:] in (saved / "partition.metadata").read_text()
    by_name = kseg(["dump", str(log), "--print-data-log"], tmp_path).stdout.splitlines()
    placed = kseg(["dump", f"{tier}/tier-txn-0/{log.name[:20]}.log", "--print-data-log"], tmp_path).stdout.splitlines()
    assert placed[1:] == by_name[1:] != []


SIDE_FILES = {
    "index": ("index-entry", "index-cut", "index-missing", None),
    "timeindex": ("time-index-entry", "index-cut", "remote-missing", "time-index-ends-early"),
    "txnindex": ("transaction-unindexed", "index-cut", "transaction-unindexed", "transaction-unindexed"),
    "snapshot": ("snapshot-unreadable", "snapshot-unreadable", "remote-missing", "remote-missing"),
    "leader_epoch_checkpoint": ("remote-manifest", "remote-manifest", "remote-missing", "remote-missing"),
}
"""Files next to a remote log, and the finding if one has other bytes, is truncated, missing, or empty.

An empty .index has no wrong entries.
"""
DAMAGES: dict[str, Callable[[Path], object]] = {
    "other bytes": lambda path: path.write_bytes(b"7" * path.stat().st_size),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
}


@for_each(
    "suffix, damage, finding",
    [
        (suffix, damage, finding)
        for suffix, found in SIDE_FILES.items()
        for damage, finding in zip(DAMAGES, found, strict=True)
        if finding is not None
    ],
)
def test_damaged_file_beside_a_remote_log_is_found(
    suffix: str, damage: str, finding: str, restored: Path, tmp_path: Path
) -> None:
    """The doctor finds it too, under the finding's name."""
    shutil.copytree(restored / "logs" / "3.9.1-tiered-remote", tmp_path / "tier")
    DAMAGES[damage](next((tmp_path / "tier").rglob(f"*.{suffix}")))
    ran = kseg(["verify", "tier", "-o", "json"], tmp_path)
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert (ran.status, finding in [each.get("id") for each in found]) == (1, True), found
    advised = kseg(["doctor", "tier"], tmp_path)
    assert (advised.status, finding.encode() in advised.stdout) == (1, True), advised


@pytest.mark.parametrize(
    "key",
    [
        "t-0/00000000000000000000.log.deleted",
        "t-0/00000000000000000000-abc.log",
        "t-99999999999/00000000000000000000.log",
        "t-0/99999999999999999999.log",
        f"t-{ID}/x/00000000000000000000-{SEGMENT_ID}.log",
        f"t-{ID}/0/00000000000000000000-{SEGMENT_ID}.iceberg",
        "00000000000000000000.log",
        "",
    ],
)
def test_other_names_are_none_of_a_tier(key: str) -> None:
    assert parse_object_name(key) is None


def test_the_nearer_of_similar_names_is_taken() -> None:
    found = [
        parse_object_name(f"a/b/t-1-0-{ID}/{5:020}-{SEGMENT_ID}.log"),
        parse_object_name(f"a/b-t-1-{ID}/0/{5:020}-{SEGMENT_ID}.log"),
        parse_object_name(f"0/{SEGMENT_ID}/{ID}/0/{5:020}_3_v1.segment"),
    ]
    assert [(each.layout, each.topic, each.topic_id, each.partition, each.base_offset) for each in found if each] == [
        (TierLayout.LOCAL, "t-1", ID, 0, 5),
        (TierLayout.AIVEN, "b-t-1", ID, 0, 5),
        (TierLayout.CONFLUENT, ID, ID, 0, 5),
    ]


def test_directory_of_ordinary_partitions_is_no_tier(restored: Path, tmp_path: Path) -> None:
    """Even if a tier is below it."""
    shutil.copytree(golden.ROOT / "docs", tmp_path / "all" / "docs")
    shutil.copytree(restored / "logs" / "4.3.1-tiered-remote", tmp_path / "all" / "tier")
    ran = kseg(["ls", "all", "-o", "json"], tmp_path)
    assert [json.loads(line).get("directory") for line in ran.stdout.splitlines()] == ["all/docs/test-1-0", None]


def test_copies_of_a_tier_and_topics_of_one_name_stay_apart(tmp_path: Path) -> None:
    samples = golden.ROOT / "tiered" / "bucket" / "prod"
    folder = next(samples.glob("plain-*"))
    for prefix, name in (("a", folder.name), ("b", folder.name), ("c", f"plain-{ID}")):
        shutil.copytree(folder, tmp_path / "bucket" / prefix / name)
    for path in (tmp_path / "bucket" / "c").rglob("*.rsm-manifest"):
        path.write_text(path.read_text().replace(folder.name.removeprefix("plain-"), ID))
    ran = kseg(["ls", "bucket", "-o", "json"], tmp_path)
    assert (ran.status, ran.stderr) == (0, b"")
    listed = [json.loads(line) for line in ran.stdout.splitlines()][:-1]
    own = folder.name.removeprefix("plain-")
    assert sorted((each["directory"], each["topicId"]) for each in listed) == [
        (f"bucket/{ID}/plain-0", ID),
        (f"bucket/{own}.2/plain-0", own),
        (f"bucket/{own}/plain-0", own),
    ]
