"""Partitions with a remote tier: reports of `ls` and `lookup` about offsets that are no longer on the disk."""

import json
from pathlib import Path
from typing import Any

import pytest

from kseg import open as open_log
from kseg import open_cluster
from kseg.browse.facts import cheap_metadata
from kseg.browse.places import TopicPlace
from kseg.cluster.cluster import Cluster
from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from tests.export.exports import write_indexes
from tests.log.advice import COUNT, overwrite
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import Run, kseg

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAABQ"
STARTED, COPIED, DELETED = 0, 1, 3


def write_partition(tmp_path: Path, checkpoint: str = "0\n1\norders 0 10\n") -> Path:
    """Write offsets 30 and 31 to the disk; the checkpoint says that the log begins at 10."""
    records = [NewRecord(b"k", b"v", 3000), NewRecord(b"k", b"v", 4000)]
    log = write_segment(tmp_path / "orders-0", [NewBatch(records, 30)], 30)
    write_indexes(log)
    (log.parent / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    (log.parent / "leader-epoch-checkpoint").write_text("0\n2\n0 10\n1 20\n")
    (tmp_path / "log-start-offset-checkpoint").write_text(checkpoint)
    return log.parent


def write_metadata(tmp_path: Path, **configs: str) -> None:
    """Write the topic with settings of its own, in `__cluster_metadata`."""
    replicas = {"replicas": [1], "isr": [1], "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0, "partitionId": 0}
    written = [
        b"\1\2\0" + build_message(message_schema("TopicRecord"), 0, {"name": "orders", "topicId": TOPIC_ID}),
        b"\1\3\0" + build_message(message_schema("PartitionRecord"), 0, {**replicas, "topicId": TOPIC_ID}),
    ]
    for name, value in configs.items():
        fields = {"resourceType": 2, "resourceName": "orders", "name": name.replace("_", "."), "value": value}
        written.append(b"\1\4\0" + build_message(message_schema("ConfigRecord"), 0, fields))
    write_segment(tmp_path / "__cluster_metadata-0", [NewBatch([NewRecord(None, value) for value in written])])


def write_remote_segments(tmp_path: Path, *segments: tuple[str, int, int]) -> None:
    """Write segments by name, their end offsets and last states, in `__remote_log_metadata`."""
    written = []
    for name, end, state in segments:
        partition = {"name": "orders", "id": TOPIC_ID, "partition": 0}
        segment_id = {"topicIdPartition": partition, "id": f"AAAAAAAAAAAAAAAAAAAA{name}Q"}
        begun = {
            "remoteLogSegmentId": segment_id,
            "startOffset": 10,
            "endOffset": end,
            "segmentLeaderEpochs": [{"leaderEpoch": 0, "offset": 10}],
            "remoteLogSegmentState": STARTED,
        }
        written.append(b"\1\0\0" + build_message(message_schema("RemoteLogSegmentMetadataRecord"), 0, begun))
        changed = {"remoteLogSegmentId": segment_id, "remoteLogSegmentState": state}
        written.append(b"\1\1\0" + build_message(message_schema("RemoteLogSegmentMetadataUpdateRecord"), 0, changed))
    write_segment(tmp_path / "__remote_log_metadata-3", [NewBatch([NewRecord(None, value) for value in written])])


def looked_up(tmp_path: Path, *arguments: str) -> tuple[Run, dict[str, Any]]:
    ran = kseg(["lookup", "orders-0", "-o", "json", *arguments], tmp_path)
    return ran, json.loads(ran.stdout)


def test_ls_says_what_is_local_and_what_is_in_the_tier(tmp_path: Path) -> None:
    write_partition(tmp_path)
    ran = kseg(["ls", "orders-0", "--by", "segment"], tmp_path)
    assert "offsets 10 to 31," in ran.stdout.decode()
    assert "leader epoch 1, local from 30; 10\u201329 in the remote tier" in ran.stdout.decode()
    partition = json.loads(kseg(["ls", "orders-0", "-o", "json"], tmp_path).stdout.splitlines()[0])
    assert (partition["logStartOffset"], partition["localStartOffset"], partition["logEndOffset"]) == (10, 30, 32)


@pytest.mark.parametrize(
    ("time", "offset"), [("earliest", 10), ("-2", 10), ("earliest-local", 30), ("-4", 30), ("latest", 32), ("-1", 32)]
)
def test_special_times_tell_the_log_from_its_local_part(time: str, offset: int, tmp_path: Path) -> None:
    write_partition(tmp_path)
    ran, answer = looked_up(tmp_path, "--timestamp", time)
    assert (ran.status, answer["offset"], answer["localStartOffset"]) == (0, offset, 30)
    is_said = b"local from 30; 10\xe2\x80\x9329 in the remote tier" in ran.stderr
    assert is_said is (offset == 10)


def test_offset_in_the_tier_is_there_but_not_here(tmp_path: Path) -> None:
    write_partition(tmp_path)
    ran, answer = looked_up(tmp_path, "--offset", "29")
    assert (ran.status, answer["absence"], answer["nextOffset"]) == (1, "remote", 30)
    assert "it is in the remote tier: local from 30; 10\u201329 in the remote tier" in ran.stderr.decode()
    assert looked_up(tmp_path, "--offset", "9")[1]["absence"] == "below-log-start"
    assert looked_up(tmp_path, "--offset", "31")[1]["record"]["offset"] == 31


@pytest.mark.parametrize("time", ["3500", "max-timestamp"])
def test_search_by_time_says_that_the_tier_was_not_searched(time: str, tmp_path: Path) -> None:
    write_partition(tmp_path)
    ran, answer = looked_up(tmp_path, "--timestamp", time)
    assert (ran.status, answer["offset"]) == (0, 31)
    assert b"in the remote tier: only the local part was searched" in ran.stderr


@pytest.mark.parametrize(
    ("segments", "offset"),
    [
        ([("A", 19, COPIED), ("B", 29, COPIED)], 29),
        ([("A", 19, COPIED), ("B", 29, STARTED)], 19),
        ([("A", 19, COPIED), ("B", 29, DELETED)], 19),
    ],
)
def test_latest_tiered_is_the_highest_offset_that_was_copied(
    segments: list[tuple[str, int, int]], offset: int, tmp_path: Path
) -> None:
    write_partition(tmp_path)
    write_remote_segments(tmp_path, *segments)
    for time in ("latest-tiered", "-5"):
        ran, answer = looked_up(tmp_path, "--timestamp", time)
        assert (ran.status, answer["offset"]) == (0, offset)


def test_what_was_deleted_in_the_tier_had_been_copied(tmp_path: Path) -> None:
    """A broker records how far it copied: retention deletes segments from the tier's start."""
    write_partition(tmp_path)
    write_remote_segments(tmp_path, ("A", 19, COPIED), ("B", 29, COPIED), ("A", 19, DELETED), ("B", 29, DELETED))
    assert looked_up(tmp_path, "--timestamp", "latest-tiered")[1]["offset"] == 29


@pytest.mark.parametrize(("copied", "offset"), [(29, 30), (30, 31)])
def test_what_is_to_be_copied_next_follows_what_was_copied(copied: int, offset: int, tmp_path: Path) -> None:
    write_partition(tmp_path)
    write_remote_segments(tmp_path, ("A", copied, COPIED))
    for time in ("earliest-pending-upload", "-6"):
        ran, answer = looked_up(tmp_path, "--timestamp", time)
        assert (ran.status, answer["offset"], answer["record"]["offset"]) == (0, offset, offset)


def test_nothing_is_to_be_copied_at_the_logs_end(tmp_path: Path) -> None:
    write_partition(tmp_path)
    write_remote_segments(tmp_path, ("A", 31, COPIED))
    ran, answer = looked_up(tmp_path, "--timestamp", "earliest-pending-upload")
    assert (ran.status, answer["offset"], answer["absence"]) == (1, None, "at-log-end")


def test_records_of_segments_below_the_parent_of_a_given_partition_are_not_its_own(tmp_path: Path) -> None:
    write_partition(tmp_path)
    write_remote_segments(tmp_path / "another-cluster" / "disk", ("A", 19, COPIED))
    assert looked_up(tmp_path, "--timestamp", "latest-tiered")[1]["absence"] == "tier-unknown"


def test_latest_tiered_passes_over_damage(tmp_path: Path) -> None:
    """The batch counts more records than it has; the existing ones are readable."""
    write_partition(tmp_path)
    write_remote_segments(tmp_path, ("A", 19, COPIED))
    overwrite(tmp_path / "__remote_log_metadata-3" / f"{0:020}.log", 0, COUNT, (9).to_bytes(4, "big"))
    ran, answer = looked_up(tmp_path, "--timestamp", "latest-tiered")
    assert (ran.status, answer["offset"], ran.stderr) == (0, 19, b"")


def test_latest_tiered_says_why_it_is_not_known(tmp_path: Path) -> None:
    write_partition(tmp_path)
    ran, answer = looked_up(tmp_path, "--timestamp", "latest-tiered")
    assert (ran.status, answer["absence"]) == (1, "tier-unknown")
    assert b"__remote_log_metadata next to the partition has no record of segments" in ran.stderr
    (tmp_path / "log-start-offset-checkpoint").unlink()
    ran, answer = looked_up(tmp_path, "--timestamp", "latest-tiered")
    assert (ran.status, answer["absence"]) == (1, "no-tier")


@pytest.mark.parametrize("first", [30, 31])
def test_checkpoint_older_than_the_last_deletion_is_no_tier(first: int, tmp_path: Path) -> None:
    """The leader epochs begin with the log; with a tier they would begin with the tier."""
    epochs = write_partition(tmp_path) / "leader-epoch-checkpoint"
    epochs.write_text(f"0\n1\n1 {first}\n")
    assert looked_up(tmp_path, "--timestamp", "earliest")[1]["offset"] == 30
    assert looked_up(tmp_path, "--offset", "29")[1]["absence"] == "below-log-start"
    assert "tier" not in kseg(["ls", "orders-0"], tmp_path).stdout.decode()


@pytest.mark.parametrize("content", [None, b"", b"no epochs"])
def test_checkpoint_alone_tells_of_a_tier_if_the_epochs_are_not_known(content: bytes | None, tmp_path: Path) -> None:
    epochs = write_partition(tmp_path) / "leader-epoch-checkpoint"
    epochs.unlink()
    if content is not None:
        epochs.write_bytes(content)
    assert "10\u201329 in the remote tier" in kseg(["ls", "orders-0"], tmp_path).stdout.decode()


def test_settings_of_the_topic_decide_where_they_are_known(tmp_path: Path) -> None:
    """A checkpoint older than the last deletion also has an offset below the first segment."""
    write_partition(tmp_path)
    write_metadata(tmp_path)
    assert looked_up(tmp_path, "--timestamp", "earliest")[1]["offset"] == 30
    assert "tier" not in kseg(["ls", "orders-0"], tmp_path).stdout.decode()
    write_metadata(tmp_path, remote_storage_enable="true")
    assert looked_up(tmp_path, "--timestamp", "earliest")[1]["offset"] == 10


def test_what_another_disk_knows_of_the_tier_counts(tmp_path: Path) -> None:
    write_partition(tmp_path / "disk1")
    write_remote_segments(tmp_path / "disk2", ("A", 19, COPIED))
    chosen = ["lookup", "--topic", "orders", "--partition", "0", "-o", "json", "disk1", "disk2"]
    tiered = json.loads(kseg([*chosen, "--timestamp", "latest-tiered"], tmp_path).stdout)
    write_metadata(tmp_path / "disk2")
    earliest = json.loads(kseg([*chosen, "--timestamp", "earliest"], tmp_path).stdout)
    assert (tiered["offset"], earliest["offset"]) == (19, 30)


def test_without_a_checkpoint_the_first_leader_epoch_tells_where_the_log_starts(tmp_path: Path) -> None:
    write_partition(tmp_path, "0\n0\n")
    write_metadata(tmp_path, remote_storage_enable="true")
    assert looked_up(tmp_path, "--timestamp", "earliest")[1]["offset"] == 10


def test_records_deleted_from_a_tiered_log_are_below_its_start(tmp_path: Path) -> None:
    write_partition(tmp_path, "0\n1\norders 0 31\n")
    write_metadata(tmp_path, remote_storage_enable="true")
    for time in ("earliest", "earliest-local"):
        ran, answer = looked_up(tmp_path, "--timestamp", time)
        assert (ran.stderr, answer["offset"], answer["record"]["offset"]) == (b"", 31, 31)
    assert looked_up(tmp_path, "--offset", "30")[1]["absence"] == "below-log-start"


def test_log_without_a_tier_begins_where_it_is_local(tmp_path: Path) -> None:
    write_partition(tmp_path, "0\n0\n")
    for time in ("earliest", "earliest-local"):
        ran, answer = looked_up(tmp_path, "--timestamp", time)
        assert (ran.status, ran.stderr, answer["offset"]) == (0, b"", 30)
        assert "localStartOffset" not in answer


@pytest.mark.parametrize(
    ("configs", "copied", "decision"),
    [
        ({"remote_storage_enable": "true", "local_retention_ms": "1000"}, 31, "delete-time"),
        ({"remote_storage_enable": "true", "local_retention_ms": "1000"}, 30, "keep"),
        ({"remote_storage_enable": "true", "local_retention_ms": "-2"}, 31, "keep"),
        ({"remote_storage_enable": "true", "local_retention_bytes": "0"}, 31, "delete-size"),
        ({"local_retention_ms": "1000"}, 31, "keep"),
        (
            {"remote_storage_enable": "true", "remote_log_copy_disable": "true", "local_retention_ms": "1000"},
            31,
            "keep",
        ),
    ],
)
@pytest.mark.parametrize("command", ["retain -o json", "ls --by segment -o json"])
def test_local_retention_is_that_of_topics_with_a_tier(
    command: str, configs: dict[str, str], copied: int, decision: str, tmp_path: Path
) -> None:
    """The topic's own retention is longer than its local retention; segments that weren't copied stay."""
    write_partition(tmp_path)
    write_metadata(tmp_path, retention_ms="1000000", **configs)
    write_remote_segments(tmp_path, ("A", copied, COPIED))
    ran = kseg([*command.split(), "orders-0", "--now", "100000"], tmp_path)
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [row["retention"] for row in rows if row["type"] == "segment"] == [decision]


@pytest.mark.parametrize("is_known", [True, False])
def test_every_output_has_the_start_of_the_tier_as_that_of_the_log(is_known: bool, tmp_path: Path) -> None:
    """By the topic settings, and only by the checkpoint."""
    for disk in ("a", "b"):
        write_partition(tmp_path / disk)
        if is_known:
            write_metadata(tmp_path / disk, remote_storage_enable="true")
    _, earliest = looked_up(tmp_path / "a", "--timestamp", "earliest")
    starts = {"lookup": {**earliest, "logStartOffset": earliest["offset"]}}
    starts["ls"] = json.loads(kseg(["ls", "a/orders-0", "-o", "json"], tmp_path).stdout.splitlines()[0])
    report = kseg(["report", "a", "--topic", "orders", "-o", "json", "-q"], tmp_path).stdout.splitlines()
    starts["report"] = next(row for row in map(json.loads, report) if row.get("table") == "partitions")
    diff = json.loads(kseg(["diff", "a", "b", "--topic", "orders", "-o", "json"], tmp_path).stdout.splitlines()[0])
    starts |= {f"diff of {copy['path']}": copy for copy in diff["copies"]}
    found = {name: (each["logStartOffset"], each["localStartOffset"]) for name, each in starts.items()}
    assert found == dict.fromkeys(starts, (10, 30))
    opened = [open_log(tmp_path / "a" / "orders-0"), open_log(tmp_path / "a").partition("orders", 0)]
    assert [(each.log_start_offset(), each.local_start_offset()) for each in opened] == [(10, 30)] * 2
    cluster = Cluster([tmp_path / "a"])
    partition = [tmp_path / "a" / "orders-0"]
    read_more = TopicPlace("orders", tmp_path / "a", partition, cluster, cheap_metadata(cluster)).read_row(0).read_more
    assert read_more is not None
    fields = {field.name: field.value for field in read_more()}
    assert (fields["log_start_offset"], fields["local_start_offset"]) == (10, 30)


@pytest.mark.parametrize("command", [("diff", "a", "b"), ("verify", "--cluster", "a", "b")], ids=lambda words: words[0])
def test_commands_that_read_large_metadata_go_by_their_settings(command: tuple[str, ...], tmp_path: Path) -> None:
    """Without the settings, the checkpoint would mean a tier from offset 10 on."""
    for side in ("a", "b"):
        write_partition(tmp_path / side)
        write_metadata(tmp_path / side, **{f"x_{number}": "v" * 32_000 for number in range(150)})
    ran = kseg([*command, "-o", "json"], tmp_path)
    assert b'"localStartOffset":30' not in ran.stdout
    assert b'"logStartOffset":30' in ran.stdout


def test_export_and_python_go_by_large_metadata_too(tmp_path: Path) -> None:
    write_partition(tmp_path / "a")
    write_metadata(tmp_path / "a", **{f"x_{number}": "v" * 32_000 for number in range(150)})
    ran = kseg(["export", "a", "out", "-o", "json"], tmp_path)
    rows = [row for row in map(json.loads, ran.stdout.splitlines()) if row["type"] == "partition"]
    assert [row["remote"] for row in rows if row.get("remote")] == []
    assert ran.status == 0
    with open_cluster([tmp_path / "a"]) as cluster:
        assert cluster.topics["orders"].partitions[0].log_start_offset() == 30


def test_lookup_reads_large_metadata(tmp_path: Path) -> None:
    write_partition(tmp_path)
    write_metadata(tmp_path, **{f"x_{number}": "v" * 32_000 for number in range(150)})
    ran, answer = looked_up(tmp_path, "--timestamp", "earliest")
    assert answer["offset"] == 30
    assert b"not read" not in ran.stderr
    assert kseg(["lookup", "-q", "orders-0", "--timestamp", "earliest"], tmp_path).stderr == b""
