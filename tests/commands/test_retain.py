"""`kseg retain`: forms, options, the copy."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests import golden, run
from tests.log_files import NewBatch, NewRecord, write_segment

PARTITION = str(golden.ROOT / "logs" / "2.8.2" / "broker-lz4-0")


def kseg(*arguments: str, directory: Path = golden.ROOT) -> run.Run:
    return run.kseg(["retain", *arguments], directory)


def objects(*arguments: str, directory: Path = golden.ROOT) -> list[dict[str, Any]]:
    lines = kseg(*arguments, "-o", "json", directory=directory).stdout.splitlines()
    return [json.loads(line) for line in lines]


def segments(*arguments: str, directory: Path = golden.ROOT) -> list[dict[str, Any]]:
    return [each for each in objects(*arguments, directory=directory) if each["type"] == "segment"]


@pytest.mark.parametrize(
    ("options", "retention"),
    [
        (["--now", "2026-10-09T09:47:09Z"], ["keep", "keep"]),
        (["--now", "2026-10-09T09:47:11Z"], ["delete-time", "keep"]),
        (["--now", "2026-10-02T12:00Z", "--retention-ms", "3600000"], ["delete-time", "delete-time"]),
        (["--now", "2026-10-02T12:00Z", "--retention-ms", "-1"], ["keep", "keep"]),
        (["--now", "2026-10-02T12:00Z", "--retention-bytes", "1324"], ["delete-size", "keep"]),
    ],
)
def test_settings_are_kafkas(options: list[str], retention: list[str]) -> None:
    assert [each["retention"] for each in segments(PARTITION, *options)] == retention


def test_a_segment_is_a_line(tmp_path: Path) -> None:
    lines = kseg(PARTITION, "--now", "2026-11-21T00:00").stdout.decode().splitlines()
    assert lines[0] == PARTITION
    assert lines[2].split() == [
        "0",
        "5.0",
        "KiB",
        "2026-10-02T09:47:09.566Z",
        "delete-time",
        "2026-10-09T09:47:09.567Z",
    ]


def test_a_timeline_shows_when_each_segment_goes() -> None:
    lines = kseg(PARTITION, "--now", "2026-10-05", "-o", "timeline").stdout.decode().splitlines()
    signs = "█ first to last record, · until deletion by age, | now"
    assert lines[1] == f"  2026-10-02T09:46:40.048Z to 2026-10-09T09:47:17.293Z: {signs}"
    assert lines[2].startswith("  █·")
    assert "|" in lines[2]
    assert lines[2].endswith("00000000000000000000 keep")


def test_a_copy_is_made_of_one_partition(tmp_path: Path) -> None:
    ran = kseg(PARTITION, "--now", "2026-10-09T09:47:11Z", "--to", "copy/t-0", directory=tmp_path)
    assert ran.status == 0
    assert [path.name for path in (tmp_path / "copy/t-0").glob("*.log")] == ["00000000000000000119.log"]
    several = kseg("logs/2.8.2", "--to", str(tmp_path / "other"))
    assert several.status == 2
    assert several.stderr.endswith(b"partitions here; choose one with --topic and --partition\n")


def test_of_several_copies_the_one_that_answers_is_copied(tmp_path: Path) -> None:
    for broker, count in ((1, 5), (2, 9)):
        write_segment(tmp_path / f"b{broker}" / "orders-0", [NewBatch([NewRecord(b"k", b"v")] * count)])
    ran = kseg("b1", "b2", "--retention-ms", "-1", "--to", "copy/orders-0", directory=tmp_path)
    assert ran.status == 0
    copied, best = (tmp_path / place / "orders-0" / f"{0:020}.log" for place in ("copy", "b2"))
    assert copied.read_bytes() == best.read_bytes()
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("form", ["text", "json", "timeline"])
def test_where_all_segments_go_a_broker_has_rolled_an_empty_one(form: str, tmp_path: Path) -> None:
    ran = kseg(PARTITION, "--now", "2026-12-01", "-o", form, "--to", "broker-lz4-0", directory=tmp_path)
    assert ran.status == 0
    end = "00000000000000000150"
    copied = {path.name: path.read_bytes() for path in (tmp_path / "broker-lz4-0").iterdir()}
    assert {name: copied[name] for name in copied if name.endswith((".log", "index"))} == {
        f"{end}.log": b"", f"{end}.index": b"", f"{end}.timeindex": b"",
    }  # fmt: skip
    assert [name for name in copied if name.endswith(".snapshot")] == [f"{end}.snapshot"]
    last = ran.stdout.decode().splitlines()[-1]
    if form == "json":
        assert json.loads(last) == {
            "type": "copy",
            "directory": "broker-lz4-0",
            "baseOffsets": [150],
            "newBaseOffset": 150,
        }
    else:
        assert last == "broker-lz4-0: no segment is left; wrote an empty segment at the log end offset 150"
    assert run.kseg(["verify", "broker-lz4-0"], tmp_path).status == 0


def test_the_report_tells_what_was_copied(tmp_path: Path) -> None:
    ran = kseg(PARTITION, "--now", "2026-10-09T09:47:11Z", "--to", "copy", directory=tmp_path)
    assert ran.stdout.decode().splitlines()[-1] == "copy: 1 segment copied"


def test_sums_tell_how_many_directories_are_copies(tmp_path: Path) -> None:
    for name in ("disk1/orders-0", "disk2/orders-0", "disk2/other-0"):
        shutil.copytree(PARTITION, tmp_path / name)
    found = {each["type"]: each for each in objects("disk1", "disk2", directory=tmp_path)}
    assert (found["total"]["partitions"], found["total"]["copyCount"]) == (3, 1)


def test_the_empty_segment_has_its_producers_snapshot(tmp_path: Path) -> None:
    partition = Path(shutil.copytree(PARTITION, tmp_path / "broker-lz4-0"))
    snapshot = "00000000000000000150.snapshot"
    (partition / snapshot).unlink()
    assert kseg("broker-lz4-0", "--now", "2026-12-01", "--to", "copy", directory=tmp_path).status == 0
    assert (tmp_path / "copy" / snapshot).read_bytes() == (Path(PARTITION) / snapshot).read_bytes()


def decisions(*arguments: str) -> dict[str, set[tuple[str, bool]]]:
    """Return the decisions for each topic's segments, and whether they expire."""
    found: dict[str, set[tuple[str, bool]]] = {}
    for each in segments("logs/4.3.1", "--now", "2030-01-01", *arguments):
        topic = Path(each["directory"]).name.rpartition("-")[0]
        found.setdefault(topic, set()).add((each["retention"], each["expires"] is not None))
    return found


def test_the_topics_settings_are_those_of_the_metadata_beside() -> None:
    found = decisions()
    assert found["compacted-txn"] == {("keep", False)}  # cleanup.policy=compact
    assert found["__share_group_state"] == {("keep", False)}  # retention.ms=-1
    assert found["zstd"] == {("delete-time", True)}  # the topic has none of its own
    assert found["__consumer_offsets"] == {("", False)}


@pytest.mark.parametrize(("cluster", "retention"), [("own", "keep"), ("another", "delete-time"), ("none", "keep")])
def test_metadata_on_another_disk_of_the_cluster_tell_too(cluster: str, retention: str, tmp_path: Path) -> None:
    """A broker has metadata in only one of its log directories.

    A directory without a cluster belongs to its neighbour's.
    """
    first = Path(shutil.copytree(golden.ROOT / "logs" / "4.3.1", tmp_path / "disk1"))
    (tmp_path / "disk2").mkdir()
    (first / "__share_group_state-1").rename(tmp_path / "disk2" / "__share_group_state-1")
    properties = (first / "meta.properties").read_text()
    if cluster != "none":
        told = properties if cluster == "own" else properties.replace("cluster.id=", "cluster.id=x")
        (tmp_path / "disk2" / "meta.properties").write_text(told)
    ran = kseg("disk1", "disk2", "--now", "2030-01-01", "-o", "json", directory=tmp_path)
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    moved = {each["retention"] for each in found if str(each.get("directory")).startswith("disk2/")}
    assert moved == {retention}


def test_people_are_told_where_the_settings_come_from() -> None:
    def told(*options: str) -> str:
        lines = kseg("4.3.1", *options, directory=golden.ROOT / "logs").stderr.decode().splitlines()
        (settings,) = [line for line in lines if line.startswith("kseg: settings: ")]
        return settings

    end = "metadata up to offset 675"
    default = "retention.bytes from Kafka's default"
    by_topic = "retention.ms from Kafka's default (3 topics), the topic (1 topic)"
    assert told() == f"kseg: settings: {by_topic}; {default}; {end}"
    assert told("--retention-ms", "5") == f"kseg: settings: retention.ms from --retention-ms; {default}; {end}"


def test_options_come_before_the_topics_settings() -> None:
    found = decisions("--retention-ms", "3600000")
    assert found["__share_group_state"] == {("delete-time", True)}
    assert found["compacted-txn"] == {("keep", False)}


def metadata_copy(tmp_path: Path, newest: int) -> Path:
    """Return 3.6.2's metadata: segments at 201 and 350, snapshots that end at 230 and at a given offset."""
    copy = Path(
        shutil.copytree(golden.ROOT / "logs" / "3.6.2" / "__cluster_metadata-0", tmp_path / "__cluster_metadata-0")
    )
    (copy / "00000000000000000338-0000000001.checkpoint").rename(copy / f"{newest:020}-0000000001.checkpoint")
    return copy


@pytest.mark.parametrize(
    ("newest", "now", "wanted"),
    [
        (338, "2030-01-01", ["keep", "keep"]),
        (350, "2030-01-01", ["delete-log-start", "keep"]),
        (360, "2030-01-01", ["delete-log-start", "keep"]),
        (360, "2026-11-22", ["keep", "keep"]),
    ],
)
@pytest.mark.parametrize("command", ["retain", "ls --by segment"])
def test_cluster_metadata_go_by_their_snapshots_and_never_the_active_segment(
    command: str, newest: int, now: str, wanted: list[str], tmp_path: Path
) -> None:
    metadata_copy(tmp_path, newest)
    form = ["-o", "json"]
    ran = run.kseg([*command.split(), "__cluster_metadata-0", "--retention-ms", "1", "--now", now, *form], tmp_path)
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    rows = [each for each in found if each["type"] == "segment"]
    assert [each["retention"] for each in rows] == wanted
    assert {each.get("expires") for each in rows} == {None}


def test_cluster_metadata_of_one_snapshot_stay(tmp_path: Path) -> None:
    copy = metadata_copy(tmp_path, 360)
    (copy / "00000000000000000230-0000000001.checkpoint").unlink()
    assert [each["retention"] for each in segments(str(copy), "--now", "2030-01-01")] == ["keep", "keep"]


@pytest.mark.parametrize("options", [(), ("--retention-ms", "1", "--retention-bytes", "0")])
def test_what_a_cleaner_was_over_is_compacted_by_a_policy_that_is_not_known(options: tuple[str, ...]) -> None:
    """The brokers' settings were in ZooKeeper: `compact` and `compact,delete` look the same."""
    found = segments("logs/2.3.1", "--now", "2030-01-01", *options)
    compacted = [each for each in found if "compacted-lz4-0" in each["directory"]]
    assert [(each["retention"], each["expires"]) for each in compacted] == [("compacted, policy unknown", None)] * 2
    others = {each["retention"] for each in found if "v1-gzip" in each["directory"]}
    assert len(others) == 1
    assert others < {"delete-time", "delete-size"}


def test_below_the_log_start_offset_compacted_segments_go_too(tmp_path: Path) -> None:
    for name in ("compacted-lz4-0", "cleaner-offset-checkpoint"):
        source = golden.ROOT / "logs" / "2.3.1" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\ncompacted-lz4 0 420\n")
    found = segments("compacted-lz4-0", "--now", "2030-01-01", directory=tmp_path)
    assert [each["retention"] for each in found] == ["delete-log-start", "compacted, policy unknown"]


def test_sums_are_by_topic_by_log_directory_and_of_all(tmp_path: Path) -> None:
    for disk, number in (("disk1", 0), ("disk1", 1), ("disk2", 2)):
        shutil.copytree(PARTITION, tmp_path / disk / f"orders-{number}")
    shutil.copytree(PARTITION, tmp_path / "disk2" / "other-0")
    when = ("--now", "2026-10-09T09:47:11Z")
    found = [each for each in objects("disk1", "disk2", *when, directory=tmp_path) if each["type"] != "segment"]

    def sums(kind: str, name: str | None, partitions: int) -> dict[str, Any]:
        named = {} if name is None else {kind: name}
        counts = {"segments": 2 * partitions, "bytes": 6434 * partitions}
        going = {"segmentsToDelete": partitions, "bytesToDelete": 5110 * partitions}
        return {"type": kind, **named, "partitions": partitions, "copyCount": 0, **counts, **going}

    now = {"now": "2026-10-09T09:47:11.000Z", "nowSource": "given"}
    assert found == [
        sums("topic", "orders", 3),
        sums("topic", "other", 1),
        sums("directory", "disk1", 2),
        sums("directory", "disk2", 2),
        {**sums("total", None, 4), **now},
    ]
    lines = kseg("disk1", "disk2", *when, directory=tmp_path).stdout.decode().splitlines()
    assert " ".join(lines[-6].split()) == ("total of partitions copies segments size deleted frees")
    assert lines[-1].split() == ["all", "4", "0", "8", "25.1", "KiB", "4", "20.0", "KiB"]
    assert "total of" not in kseg("disk2/other-0", *when, directory=tmp_path).stdout.decode()
