"""`kseg metadata --changes` and `--diff`."""

import csv
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from tests import golden
from tests.cluster.made_metadata import write_metadata
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import kseg

LOGS = golden.ROOT / "logs"
TOPIC_ID, OTHER_ID = "A" * 21 + "g", "A" * 21 + "w"
TIME = 1_795_000_000_000


def record(name: str, fields: dict[str, object], version: int = 0) -> NewRecord:
    message = message_schema(name)
    return NewRecord(None, bytes((1, message.api_key or 0, version)) + build_message(message, version, fields))


def topic(name: str = "orders", topic_id: str = TOPIC_ID) -> NewRecord:
    return record("TopicRecord", {"name": name, "topicId": topic_id})


def partition(number: int = 0, topic_id: str = TOPIC_ID, **fields: object) -> NewRecord:
    there = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}
    empty: dict[str, object] = {"addingReplicas": [], "removingReplicas": []}
    return record("PartitionRecord", {"partitionId": number, "topicId": topic_id, **there, **empty, **fields})


def move_partition(number: int = 0, **fields: object) -> NewRecord:
    return record("PartitionChangeRecord", {"partitionId": number, "topicId": TOPIC_ID, **fields})


def config(name: str, value: str | None, resource: str = "orders", kind: int = 2) -> NewRecord:
    fields = {"resourceType": kind, "resourceName": resource, "name": name, "value": value}
    return record("ConfigRecord", fields)


def log_of(work: Path, *batches: list[NewRecord]) -> Path:
    """A metadata log; each batch's records have their own time, a second after those of the one before."""
    offset, written = 0, []
    for number, records in enumerate(batches):
        timed = [each._replace(timestamp=TIME + 1000 * number) for each in records]
        written.append(NewBatch(timed, offset))
        offset += len(records)
    directory = work / "__cluster_metadata-0"
    write_segment(directory, written)
    return directory


def changes(*arguments: object) -> list[dict[str, Any]]:
    ran = kseg(["metadata", "--changes", "-o", "json", *map(str, arguments)], LOGS)
    assert ran.status == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def list_changes(*arguments: object) -> list[tuple[object, ...]]:
    members = "offset", "kind", "action", "resource", "old", "new"
    return [tuple(each[name] for name in members) for each in changes("-q", *arguments)]


def test_a_new_topic_is_one_change_with_its_partitions_and_settings(tmp_path: Path) -> None:
    later = [config("retention.ms", "1"), topic(), config("cleanup.policy", "compact"), partition(0), partition(1)]
    log = log_of(tmp_path, later, [partition(2)], [record("RemoveTopicRecord", {"topicId": TOPIC_ID})])
    made = {"topicId": TOPIC_ID, "partitions": 2, "replicationFactor": 2}
    configs = {"retention.ms": "1", "cleanup.policy": "compact"}
    created, added, deleted = list_changes(log)
    assert created == (1, "topic", "created", "orders", None, {**made, "configs": configs})
    assert added[:4] == (5, "partition", "added", "orders-2")
    assert deleted == (6, "topic", "deleted", "orders", {**made, "partitions": 3, "configs": configs}, None)


def test_one_record_of_a_partition_is_one_change_of_all_that_differs(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        [topic(), partition()],
        [move_partition(leader=2, isr=[2])],
        [move_partition(isr=[2])],
        [move_partition(leader=2)],
    )
    _, election, epoch = list_changes(log)
    old, new = {"leader": 1, "leaderEpoch": 0, "isr": [1, 2]}, {"leader": 2, "leaderEpoch": 1, "isr": [2]}
    assert election == (2, "partition", "changed", "orders-0", old, new)
    assert epoch == (4, "partition", "changed", "orders-0", {"leaderEpoch": 1}, {"leaderEpoch": 2})


def test_a_setting_to_the_same_value_is_no_change(tmp_path: Path) -> None:
    values = ("1", "1", "2", None, None)
    log = log_of(tmp_path, [topic(), partition()], *([config("retention.ms", value)] for value in values))
    assert [(offset, *rest) for offset, _, *rest in list_changes(log, "--show", "configs")] == [
        (2, "set", "orders", None, {"value": "1"}),
        (4, "changed", "orders", {"value": "1"}, {"value": "2"}),
        (5, "removed", "orders", {"value": "2"}, None),
    ]


def test_changes_of_one_batch_that_undo_each_other_are_told_one_by_one(tmp_path: Path) -> None:
    log = log_of(tmp_path, [topic(), partition()], [config("retention.ms", "1"), config("retention.ms", None)])
    assert [action for _, _, action, *_ in list_changes(log)] == ["created", "set", "removed"]


@pytest.mark.parametrize(
    ("last", "offsets"), [("EndTransactionRecord", [1, 3]), ("AbortTransactionRecord", []), ("NoOpRecord", [])]
)
def test_only_a_transaction_that_ended_well_changes_something(last: str, offsets: list[int], tmp_path: Path) -> None:
    end: dict[str, object] = {"reason": None} if last.startswith("Abort") else {}
    begin = record("BeginTransactionRecord", {"name": None})
    log = log_of(
        tmp_path, [begin, topic()], [partition(), config("log.cleaner.threads", "2", "", 4)], [record(last, end)]
    )
    found = changes(log)
    assert [each["offset"] for each in found[:-1]] == offsets
    assert [each["timestamp"] for each in found[:-1]] == [TIME, TIME + 1000][: len(offsets)]
    assert found[-1]["unapplied"] == (4 if last == "NoOpRecord" else 0)


def test_a_new_password_is_a_change_and_neither_password_nor_setting_is_shown(tmp_path: Path) -> None:
    def scram(salt: bytes) -> NewRecord:
        keys = {"storedKey": b"secret-k", "serverKey": b"secret-s", "iterations": 4096, "salt": salt}
        return record("UserScramCredentialRecord", {"name": "alice", "mechanism": 1, **keys})

    name = "listener.name.x.ssl.keystore.password"
    passwords = (config(name, value, "1", 4) for value in ("secret-1", "secret-2", None))
    log = log_of(tmp_path, [scram(b"a")], [scram(b"a")], [scram(b"secret-b")], *([each] for each in passwords))
    assert [(kind, action) for _, kind, action, *_ in list_changes(log)] == [
        ("scram", "set"), ("scram", "changed"), ("config", "set"), ("config", "changed"), ("config", "removed"),
    ]  # fmt: skip
    for form in ("text", "json", "csv", "table"):
        assert b"secret" not in kseg(["metadata", "--changes", "-o", form, str(log)], LOGS).stdout
    assert b"secret" not in kseg(["metadata", "--at", "0", "--diff", "3", str(log)], LOGS).stdout


def test_a_cleared_elr_is_a_change_of_the_partitions_that_had_one(tmp_path: Path) -> None:
    elr = {"partitionId": 1, "topicId": TOPIC_ID, "isr": [1], "eligibleLeaderReplicas": [2]}
    with_elr = record("PartitionChangeRecord", elr, 2)
    cleared = record("ClearElrRecord", {"topicName": ""})
    log = log_of(tmp_path, [topic(), partition(0), partition(1)], [with_elr], [cleared])
    assert list_changes(log)[-1] == (
        4, "partition", "changed", "orders-1", {"eligibleLeaderReplicas": [2]}, {"eligibleLeaderReplicas": []},
    )  # fmt: skip


def test_topics_partitions_times_and_kinds_are_chosen(tmp_path: Path) -> None:
    other = [topic("other", OTHER_ID), partition(0, OTHER_ID)]
    configs = [
        config("retention.ms", "1"),
        config("retention.ms", "1", "other"),
        config("log.cleaner.threads", "2", "", 4),
    ]
    log = log_of(
        tmp_path,
        [topic(), partition(0), partition(1)],
        other,
        configs,
        [move_partition(0, leader=2)],
        [move_partition(1, leader=2)],
    )
    assert [offset for offset, *_ in list_changes(log)] == [0, 3, 5, 6, 7, 8, 9]
    assert [offset for offset, *_ in list_changes(log, "--topic", "orders")] == [0, 5, 8, 9]
    assert [offset for offset, *_ in list_changes(log, "--topic", "orders", "--partition", "1")] == [0, 5, 9]
    assert [offset for offset, *_ in list_changes(log, "--show", "configs")] == [5, 6, 7]
    assert [offset for offset, *_ in list_changes(log, "--from-time", TIME + 1000, "--to-time", TIME + 3000)] == [
        3,
        5,
        6,
        7,
    ]
    ran = kseg(["metadata", "--changes", "--topic", "nobody", str(log)], LOGS)
    assert (ran.status, ran.stdout) == (0, b"")
    assert ran.stderr.startswith(b"kseg: no changes from 2026-")
    assert ran.stderr.endswith(b", in offsets 0 to 9\n")


def test_a_log_that_begins_with_a_snapshot_says_what_is_not_known() -> None:
    ran = kseg(["metadata", "--changes", "3.6.2", "--show", "quotas"], LOGS)
    assert ran.stderr.decode() == (
        "kseg: 1 change from 2026-11-21T10:12:49.419Z to 2026-11-21T10:14:00.675Z, in offsets 230 to 566;"
        " changes before 2026-11-21T10:12:49.376Z are unknown: the log begins with a snapshot at offset 230\n"
    )
    since = kseg(["metadata", "--changes", "3.6.2", "--from-time", "2026-11-21T10:13:00"], LOGS)
    assert b"nothing is known" not in since.stderr
    late = kseg(["metadata", "--changes", "3.6.2", "--from-time", "2100-01-01"], LOGS)
    assert (late.status, late.stdout) == (0, b"")
    end = b"the log ends at offset 566, 2026-11-21T10:14:00.675Z\n"
    assert late.stderr == b"kseg: no changes: no record is from that time; " + end


def test_a_log_without_its_beginning_and_without_a_snapshot_is_incomplete(tmp_path: Path) -> None:
    write_segment(tmp_path / "__cluster_metadata-0", [NewBatch([config("retention.ms", "1")], 7)], 7)
    ran = kseg(["metadata", "--changes", str(tmp_path)], LOGS)
    assert ran.status == 1
    assert b"records before offset 7 are missing" in ran.stderr


def test_missing_offsets_are_named_and_changes_go_on_from_the_next_snapshot(tmp_path: Path) -> None:
    with tarfile.open(golden.ROOT / "start/base-4.3.1-clean.tar.gz") as archive:
        archive.extractall(tmp_path, [each for each in archive if "__cluster_metadata-0" in each.name], filter="data")
    (log,) = tmp_path.rglob("__cluster_metadata-0")
    whole = list_changes(log)
    (log / "00000000000000000119.log").unlink()
    ran = kseg(["metadata", str(log), "--changes", "-o", "json"], tmp_path)
    found = [json.loads(line)["offset"] for line in ran.stdout.splitlines()[:-1]]
    assert (ran.status, found) == (1, [each[0] for each in whole if not 119 <= int(str(each[0])) < 252])
    assert b"offsets 119 to 237 are missing, so changes up to offset 251 aren't known" in ran.stderr
    (log / "00000000000000000000.log").write_bytes(b"")
    emptied = kseg(["metadata", str(log), "--changes"], tmp_path)
    assert b"offsets 0 to 237 are missing, so changes up to offset 251 aren't known" in emptied.stderr


def test_an_empty_log_tells_of_no_changes(tmp_path: Path) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    ran = kseg(["metadata", str(tmp_path), "--changes"], tmp_path)
    assert b"the log has no records here, so changes are unknown" in ran.stderr


def test_a_note_on_both_compared_states_is_said_once(tmp_path: Path) -> None:
    write_segment(tmp_path / "__cluster_metadata-0", [NewBatch([config("retention.ms", "1")], 7)], 7)
    ran = kseg(["metadata", str(tmp_path), "--diff", "now"], tmp_path)
    assert (ran.status, ran.stderr.count(b"records before offset 7 are missing")) == (1, 1)


def test_missing_offsets_without_a_later_snapshot_are_named(tmp_path: Path) -> None:
    log = log_of(tmp_path, [topic(), partition(0)])
    write_segment(log, [NewBatch([config("retention.ms", "1")], 3)], 3)
    for options in (["--changes"], []):
        ran = kseg(["metadata", str(log), *options], tmp_path)
        assert ran.status == 1
        assert b"offsets 2 to 2 are missing, so changes up to offset 2 aren't known" in ran.stderr


def test_all_forms_have_all_changes() -> None:
    rows = list(
        csv.DictReader(io.StringIO(kseg(["metadata", "--changes", "3.6.2", "-o", "csv"], LOGS).stdout.decode()))
    )
    found = changes("3.6.2")
    assert found[-1]["changes"] == len(rows) == len(found) - 1 == 254
    assert [(row["offset"], row["details"]) for row in rows] == [
        (str(each["offset"]), each["details"]) for each in found[:-1]
    ]
    assert all(each["details"] and each["old"] != each["new"] for each in found[:-1])
    text = kseg(["metadata", "--changes", "3.6.2"], LOGS).stdout.decode()
    assert len(text.splitlines()) == 2 + 254


def test_two_moments_differ_in_what_is_left_of_the_changes_between_them() -> None:
    ran = kseg(["metadata", "3.6.2", "--at", "300", "--diff", "320", "-o", "json"], LOGS)
    assert ran.status == 1
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(each["kind"], each["action"], each["resource"]) for each in found] == [
        ("feature", "changed", "metadata.version"),
        ("broker", "registered", "2"),
        *(("topic", "deleted", f"meta.{number}") for number in (0, 3, 4, 5)),
        ("token", "created", "DdpTja-ATZG-33HyuxLeJw"),
    ]
    assert "offset" not in found[0]
    same = kseg(["metadata", "3.6.2", "--at", "320", "--diff", "320"], LOGS)
    assert (same.status, same.stdout) == (0, b"")
    assert same.stderr.startswith(b"kseg: no difference between offset 320, ")


def test_voters_beside_the_log_are_compared_only_with_others_there(tmp_path: Path) -> None:
    state = {"data_version": 0, "clusterId": "", "leaderId": 1, "leaderEpoch": 1, "votedId": -1, "appliedOffset": 0}
    for name, voters in (("a", [1]), ("b", [1, 2])):
        write_metadata(tmp_path / name, {}, [])
        quorum = {**state, "currentVoters": [{"voterId": each} for each in voters]}
        (tmp_path / name / "__cluster_metadata-0/quorum-state").write_text(json.dumps(quorum))
    for moment in ("0", "now"):
        same = kseg(["metadata", "a", "--diff", moment], tmp_path)
        assert (same.status, same.stdout) == (0, b"")
    ran = kseg(["metadata", "a", "--diff", "b", "-o", "json"], tmp_path)
    assert [(each["kind"], each["action"], each["resource"]) for each in map(json.loads, ran.stdout.splitlines())] == [
        ("voter", "added", "2")
    ]


def test_a_disk_in_an_archive_is_compared(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "backup.tar", "w") as archive:
        archive.add(LOGS / "3.3.2", "backup")
    same = kseg(["metadata", str(LOGS / "3.3.2"), "--diff", "backup.tar"], tmp_path)
    assert (same.status, same.stdout) == (0, b"")
    other = kseg(["metadata", str(LOGS / "3.6.2"), "--diff", "backup.tar/backup", "--show", "features"], tmp_path)
    assert (other.status, len(other.stdout.splitlines())) == (1, 3)


def test_two_disks_are_compared(tmp_path: Path) -> None:
    for name, settings in (("a", [(2, "orders", "retention.ms", "1")]), ("b", [])):
        write_metadata(tmp_path / name, {"orders": TOPIC_ID}, settings)
    ran = kseg(["metadata", "a", "--diff", "b"], tmp_path)
    assert (ran.status, ran.stdout.decode().splitlines()[-1]) == (1, "  config  removed  topic orders  retention.ms=1")
    assert kseg(["metadata", "a", "--diff", "a"], tmp_path).status == 0
    assert kseg(["metadata", "a", "--diff", "nowhere"], tmp_path).status == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--from-time -1d", "--from-time and --to-time need --changes"),
        (
            "--changes --show directories",
            "a broker's log directories change with its registration; specify --show brokers",
        ),
        ("--changes --from-time 2026-11-22 --to-time 2026-11-21", "--from-time is later than --to-time"),
        ("--diff missing/path", "missing/path: no such file or directory"),
        ("--changes --at 3", "--changes prints its own rows; omit --at"),
        ("--changes --settings", "--changes prints its own rows; omit --settings"),
        ("--diff 3 -o commands", "--diff prints its own rows; omit -o commands"),
        ("--changes --diff 3", "--changes lists all changes, --diff compares two states; specify one of them"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: str, said: str) -> None:
    ran = kseg(["metadata", "3.6.2", *options.split()], LOGS)
    assert (ran.status, ran.stdout) == (2, b"")
    assert said.encode() in ran.stderr
