"""The choice among segments with the same offsets, and remote tiers joined with local logs."""

import json
from pathlib import Path

import pytest

from tests.run import kseg
from tests.tiered import aiven_objects
from tests.tiered.aiven_objects import Plugin, Segment

PLUGIN = Plugin(chunk_size=700, is_compressing=True, key=1)


def make_segments(directory: Path, name: str, *, base: int, count: int, epochs: dict[int, int]) -> list[Segment]:
    """Return segments of records whose values name their writer, ten per batch and about forty per segment."""
    lines = [
        json.dumps(
            {"key": f"{number}", "value": f"{name} {number} {'x' * 40}", "timestamp": 1_700_000_000_000 + number}
        )
        for number in range(base, base + count)
    ]
    (directory / f"{name}.jsonl").write_text("\n".join(lines))
    options = ["--base-offset", str(base), "--batch-records", "10", "--segment-bytes", "3000"]
    built = kseg(["build", f"{name}.jsonl", "--to", f"{name}/orders-0", *options], directory)
    assert built.status == 0, built.stderr
    found = aiven_objects.segments_of(directory / name / "orders-0")
    return [
        Segment(
            each.files,
            each.base,
            each.end,
            {epoch: max(start, each.base) for epoch, start in epochs.items() if start <= each.end},
        )
        for each in found
    ]


def upload_in_turn(segments: list[Segment]) -> list[Segment]:
    """Return the segments with their own ids, uploaded in turn."""
    return [
        each.uploaded_again(number, event_timestamp=1_700_000_000_000 + number) for number, each in enumerate(segments)
    ]


def values(directory: Path, *arguments: str) -> list[tuple[int, str]]:
    key = f"--private-key=key1={aiven_objects.private_key_file(directory)}"
    ran = kseg(["dump", *arguments, key, "-o", "json", "--only", "records", "-q"], directory)
    assert (ran.status, ran.stderr) == (0, b"")
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    return [(each["offset"], each["value"].split()[0]) for each in found]


def standings(directory: Path, *arguments: str) -> list[tuple[int, str]]:
    key = f"--private-key=key1={aiven_objects.private_key_file(directory)}"
    ran = kseg(["ls", *arguments, "--by", "segment", key, "-o", "json"], directory)
    assert ran.status == 0
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    return [(each["baseOffset"], each["standing"]) for each in found if each["type"] == "segment"]


@pytest.fixture(autouse=True)
def nothing_is_left(unpacked_into: Path) -> None:
    """Assert that the temporary directory is empty after each test."""


def test_segment_that_was_uploaded_twice_counts_once(tmp_path: Path) -> None:
    segments = make_segments(tmp_path, "a", base=0, count=100, epochs={0: 0})
    aiven_objects.store(tmp_path / "b", PLUGIN, "orders", upload_in_turn([*segments, segments[0]]))
    assert values(tmp_path, "b") == [(number, "a") for number in range(100)]
    assert sorted(standings(tmp_path, "b"))[:2] == [(0, "duplicate"), (0, "used")]


def test_what_an_unclean_leader_change_took_back_does_not_count(tmp_path: Path) -> None:
    """The first leader wrote 0 to 119, the second began at 70 in epoch 2: its records count from there on."""
    old = make_segments(tmp_path, "old", base=0, count=120, epochs={0: 0})
    new = make_segments(tmp_path, "new", base=70, count=100, epochs={2: 70})
    aiven_objects.store(tmp_path / "b", PLUGIN, "orders", upload_in_turn([*old, *new]))
    expected = [(number, "old") for number in range(70)] + [(number, "new") for number in range(70, 170)]
    assert values(tmp_path, "b") == expected
    found = dict.fromkeys(name for _, name in standings(tmp_path, "b"))
    assert set(found) == {"used", "used in part", "superseded"}
    key = f"--private-key=key1={aiven_objects.private_key_file(tmp_path)}"
    ran = kseg(["verify", "b", "-o", "json", key], tmp_path)
    assert b"remote-overlap" in ran.stdout
    assert b"offsets-fall" not in ran.stdout
    assert b"segment-overlap" not in ran.stdout
    saved = kseg(["salvage", "b", key, "--to", "saved"], tmp_path)
    assert saved.status == 0
    assert values(tmp_path, "saved") == expected


def test_segments_of_one_lineage_that_overlap_count_once(tmp_path: Path) -> None:
    """A new leader's segments begin elsewhere: it repeats a part of the previous leader's upload."""
    first = make_segments(tmp_path, "a", base=0, count=100, epochs={0: 0})
    second = make_segments(tmp_path, "b", base=60, count=100, epochs={0: 60, 1: 100})
    aiven_objects.store(tmp_path / "bucket", PLUGIN, "orders", upload_in_turn([*first, *second]))
    assert [offset for offset, _ in values(tmp_path, "bucket")] == list(range(160))


def test_local_and_remote_segments_are_one_log(tmp_path: Path) -> None:
    """The tier has 0 to 99, the broker's disk 70 to 169."""
    remote = make_segments(tmp_path, "remote", base=0, count=100, epochs={0: 0})
    make_segments(tmp_path, "local", base=70, count=100, epochs={0: 0})
    aiven_objects.store(tmp_path / "b", PLUGIN, "orders", upload_in_turn(remote))
    together = ("local", "--tier", "b")
    expected = [(number, "remote") for number in range(70)] + [(number, "local") for number in range(70, 170)]
    assert values(tmp_path, *together) == expected
    assert values(tmp_path, "local/orders-0", "--tier", "b") == expected
    key = f"--private-key=key1={aiven_objects.private_key_file(tmp_path)}"
    for offset, owner in ((0, b"remote"), (69, b"remote"), (70, b"local"), (169, b"local")):
        ran = kseg(["lookup", *together, key, "--offset", str(offset), "--print-data-log"], tmp_path)
        assert (ran.status, ran.stderr) == (0, b"")
        assert owner + b" " + str(offset).encode() in ran.stdout
    ran = kseg(["export", *together, key, "exported", "-o", "json"], tmp_path)
    assert ran.status == 0, ran.stderr
    assert (tmp_path / "exported").exists()
    ran = kseg(["ls", *together, key, "-o", "json"], tmp_path)
    listed = json.loads(ran.stdout.splitlines()[0])
    assert (listed["directory"], listed["logStartOffset"], listed["lastOffset"]) == ("local/orders-0", 0, 169)


@pytest.mark.parametrize("lacks_one", [False, True], ids=["whole", "lacks-a-segment"])
def test_salvage_takes_from_a_tier_what_the_disk_lacks(tmp_path: Path, *, lacks_one: bool) -> None:
    """No checkpoint of the cleaner rules out compaction, but segments in a tier are never compacted."""
    remote = make_segments(tmp_path, "remote", base=0, count=160, epochs={0: 0})
    make_segments(tmp_path, "local", base=70, count=160, epochs={0: 0})
    aiven_objects.store(tmp_path / "b", PLUGIN, "orders", upload_in_turn(remote))
    logs = sorted((tmp_path / "local" / "orders-0").glob("*.log"))
    if lacks_one:
        logs[1].unlink()
        assert int(logs[2].stem) <= 160
    key = f"--private-key=key1={aiven_objects.private_key_file(tmp_path)}"
    ran = kseg(["salvage", "b", "local", key, "--to", "saved"], tmp_path)
    assert (ran.status, b"lost" in ran.stdout) == (0, False), ran.stdout
    assert [offset for offset, _ in values(tmp_path, "saved")] == list(range(230))


def test_tier_of_another_topic_of_the_same_name_is_not_joined(tmp_path: Path) -> None:
    remote = make_segments(tmp_path, "remote", base=0, count=50, epochs={0: 0})
    aiven_objects.store(tmp_path / "b", PLUGIN, "orders", upload_in_turn(remote))
    make_segments(tmp_path, "local", base=50, count=50, epochs={0: 0})
    (tmp_path / "local" / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: BBBBBBBBEAMAAAAAAAAgAw")
    ran = kseg(["ls", "local", "--tier", "b"], tmp_path)
    assert ran.status == 2
    assert b"so that is another topic of the same name" in ran.stderr
    assert ran.stderr.count(b"\n") == 1


def test_a_local_partition_that_lost_its_topic_id_has_that_of_its_topics_others(tmp_path: Path) -> None:
    remote = make_segments(tmp_path, "remote", base=0, count=50, epochs={0: 0})
    aiven_objects.store(tmp_path / "b", PLUGIN, "orders", upload_in_turn(remote))
    make_segments(tmp_path, "local", base=50, count=50, epochs={0: 0})
    (tmp_path / "local" / "orders-0" / "partition.metadata").unlink(missing_ok=True)
    (tmp_path / "local" / "orders-1").mkdir()
    (tmp_path / "local" / "orders-1" / f"{0:020}.log").touch()
    (tmp_path / "local" / "orders-1" / "partition.metadata").write_text("version: 0\ntopic_id: BBBBBBBBEAMAAAAAAAAgAw")
    ran = kseg(["ls", "local", "--tier", "b"], tmp_path)
    assert ran.status == 2
    assert b"so that is another topic of the same name" in ran.stderr


def test_tier_and_disk_as_paths_are_read_together(tmp_path: Path) -> None:
    """Records that the disk deleted after their upload counted as removed by retention, and were omitted."""
    segments = upload_in_turn(make_segments(tmp_path, "a", base=0, count=200, epochs={0: 0}))
    aiven_objects.store(tmp_path / "tier", PLUGIN, "orders", segments[:4])
    log_dir = tmp_path / "disk"
    (tmp_path / "a").rename(log_dir)
    for each in segments[:2]:
        for path in (log_dir / "orders-0").glob(f"{each.base:020}.*"):
            path.unlink()
    (log_dir / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (log_dir / "cleaner-offset-checkpoint").write_text("0\n0\n")
    (log_dir / "log-start-offset-checkpoint").write_text("0\n1\norders 0 0\n")
    expected = [(number, "a") for number in range(200)]
    assert values(tmp_path, "disk", "--tier", "tier") == expected
    assert values(tmp_path, "disk", "tier") == expected
    key = f"--private-key=key1={aiven_objects.private_key_file(tmp_path)}"
    count = kseg(["query", "select count(*) from orders", "disk", "tier", key, "-o", "csv", "-q"], tmp_path)
    assert count.stdout.splitlines()[1:] == [b"200"]
    exported = kseg(["export", "disk", "tier", "exported", key], tmp_path)
    assert (exported.status, b"200 of 200 records" in exported.stdout) == (0, True), exported
    saved = kseg(["salvage", "disk", "tier", key, "--to", "saved"], tmp_path)
    assert saved.status == 0, saved
    assert values(tmp_path, "saved") == expected
