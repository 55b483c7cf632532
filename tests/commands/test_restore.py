"""`kseg restore` as a command: plan, question, refusals and report, against a broker in this process."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from tests import golden
from tests.log_files import ABORT, COMMIT, NewBatch, NewRecord, marker, write_segment
from tests.restore.fake_broker import FakeBroker
from tests.restore.strict_broker import StrictBroker
from tests.restore.test_sender import write_partition
from tests.run import Run, kseg


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with StrictBroker(set()).running() as running:
        yield running


def restore(broker: FakeBroker, root: Path, *options: str) -> Run:
    host, port = broker.address
    return kseg(["restore", str(root), "--bootstrap", f"{host}:{port}", *options], root)


def objects(ran: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.stdout.splitlines()]


def batch(first: int, count: int, **own: Any) -> NewBatch:
    return NewBatch([NewRecord(b"k", b"%d" % number) for number in range(first, first + count)], first, **own)


def write_groups(root: Path, commits: dict[str, int]) -> None:
    """Write groups with an offset each in t-0."""
    records = []
    for group, offset in commits.items():
        key = {"group": group, "topic": "t", "partition": 0}
        value = {"offset": offset, "leaderEpoch": 5, "metadata": f"of {group}", "commitTimestamp": 1_700_000_000_000}
        records.append(
            NewRecord(
                b"\0\1" + build_message(message_schema("OffsetCommitKey"), 1, key),
                b"\0\3" + build_message(message_schema("OffsetCommitValue"), 3, value),
            )
        )
    write_segment(root / "__consumer_offsets-0", [NewBatch(records)])


def test_a_dry_run_asks_no_broker(tmp_path: Path) -> None:
    write_partition(tmp_path / "t-0", 3, random.Random(1))
    ran = kseg(["restore", ".", "--bootstrap", "127.0.0.1:1", "--dry-run"], tmp_path)
    assert ran.status == 0
    assert ran.stdout.startswith(b"1 topic, 1 partition, ")


def test_without_a_terminal_it_needs_yes(broker: FakeBroker, tmp_path: Path) -> None:
    write_partition(tmp_path / "t-0", 3, random.Random(1))
    ran = restore(broker, tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    assert b"specify --yes, or --dry-run" in ran.stderr
    assert not broker.logs


def test_aborted_and_open_transactions_are_left_out(broker: FakeBroker, tmp_path: Path) -> None:
    aborted = batch(10, 5, producer_id=1, producer_epoch=0, is_transactional=True)
    committed = batch(16, 5, producer_id=1, producer_epoch=0, is_transactional=True, base_sequence=5)
    opened = batch(22, 5, producer_id=2, producer_epoch=0, is_transactional=True)
    batches = [batch(0, 10), aborted, marker(ABORT, aborted), committed, marker(COMMIT, committed), opened]
    write_segment(tmp_path / "t-0", [*batches, batch(27, 3)])
    ran = restore(broker, tmp_path, "--yes", "-o", "json")
    assert ran.status == 0, ran.stderr
    assert objects(ran)[0]["leftOutRecords"] == {"aborted": 5, "open": 5, "control": 2}
    values = [value for _, _, value, _ in broker.logs["t"][0].records()]
    assert values == [b"%d" % number for number in (*range(10), *range(16, 21), *range(27, 30))]


def test_groups_are_translated(broker: FakeBroker, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", [batch(100, 10), batch(200, 10)], 100)
    wanted = {"below": (3, 0), "first": (100, 0), "inside": (105, 5), "gap": (150, 10), "last": (209, 19)}
    wanted |= {"end": (210, 20), "beyond": (10**12, 20)}
    write_groups(tmp_path, {group: offset for group, (offset, _) in wanted.items()})
    broker.active = {"first"}
    broker.groups["gap"] = {("t", 0): (7, "")}
    ran = restore(broker, tmp_path, "--yes", "-q", "-o", "json")
    assert ran.status == 1
    states = {each["group"]: each["state"] for each in objects(ran) if each["type"] == "group"}
    assert states.pop("first") == "active"
    assert states.pop("gap") == "has offsets"
    assert set(states.values()) == {"committed"}
    for group in states:
        assert broker.groups[group] == {("t", 0): (wanted[group][1], f"of {group}")}


def test_a_group_that_the_target_refuses_is_named(broker: FakeBroker, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", [batch(0, 10)])
    write_groups(tmp_path, {"g" * 5000: 3})
    ran = restore(broker, tmp_path, "--yes", "-q", "-o", "json")
    (group,) = (each for each in objects(ran) if each["type"] == "group")
    assert (ran.status, group["state"], "OFFSET_METADATA_TOO_LARGE" in group["detail"]) == (1, "refused", True)


def test_no_group_is_committed_if_nobody_wants_it(broker: FakeBroker, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", [batch(0, 10)])
    write_groups(tmp_path, {"a": 3, "b": 4, "ab": 5})
    ran = restore(broker, tmp_path, "--yes", "-q", "--job", "none", "--no-groups")
    assert (ran.status, {*broker.groups}) == (0, {"kseg-restore-none"})
    ran = restore(broker, tmp_path, "--yes", "-q", "--job", "some", "--group", "a*", "--topic-map", "t=u")
    assert (ran.status, {*broker.groups}) == (0, {"kseg-restore-none", "kseg-restore-some", "a", "ab"})
    assert broker.groups["a"] == {("u", 0): (3, "of a")}


def test_damage_is_restored_only_on_request(broker: FakeBroker, tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", [batch(0, 10), batch(10, 10), batch(20, 10)])
    raw = bytearray(log.read_bytes())
    raw[len(raw) // 2] ^= 1
    log.write_bytes(raw)
    ran = restore(broker, tmp_path, "--yes", "-q")
    assert (ran.status, broker.logs) == (1, {})
    assert b"  damaged: " in ran.stdout
    assert b"specify other copies too, or --skip-damage" in ran.stderr
    ran = restore(broker, tmp_path, "--yes", "-q", "--skip-damage")
    assert ran.status == 1
    values = [value for _, _, value, _ in broker.logs["t"][0].records()]
    assert values == [b"%d" % number for number in (*range(10), *range(20, 30))]


def test_a_path_that_is_not_there_stops_it(broker: FakeBroker, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", [batch(0, 10)])
    ran = restore(broker, tmp_path, "nope", "--yes", "-q")
    assert (ran.status, broker.logs) == (2, {})
    assert b"a path can't be read, so nothing is restored" in ran.stderr


def test_a_missing_partition_is_named(broker: FakeBroker, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-2", [batch(0, 10)])
    ran = restore(broker, tmp_path, "--yes", "-q")
    assert (ran.status, len(broker.logs["t"])) == (1, 3)
    assert b"missing: t has no copy of partition 0, 1 in PATHS" in ran.stdout


def test_records_before_a_time_are_chosen_one_by_one(broker: FakeBroker, tmp_path: Path) -> None:
    records = [NewRecord(b"k", b"%d" % number, timestamp) for number, timestamp in enumerate((1000, 5000, 2000, 3000))]
    write_segment(tmp_path / "t-0", [NewBatch(records)])
    ran = restore(broker, tmp_path, "--yes", "-q", "--to-time", "3000")
    assert ran.status == 0, ran.stderr
    assert [value for _, _, value, _ in broker.logs["t"][0].records()] == [b"0", b"2"]


def test_retention_stays_off(broker: FakeBroker, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", [batch(0, 10)])
    ran = restore(broker, tmp_path, "--yes", "-q", "-o", "json")
    assert broker.settings["t"] == {"retention.ms": "-1", "retention.bytes": "-1"}
    held = [each for each in objects(ran) if each["type"] == "setting" and each["state"] == "held back"]
    assert [each["commands"][0].rpartition(" ")[2] for each in held] == ["retention.ms", "retention.bytes"]


def test_another_run_names_partitions_with_removed_records(broker: FakeBroker, tmp_path: Path) -> None:
    write_partition(tmp_path / "t-0", 5, random.Random(1))
    assert restore(broker, tmp_path, "--yes", "-q").status == 0
    broker.logs["t"][0].start = 1
    ran = restore(broker, tmp_path, "--yes")
    assert ran.status == 0
    assert (
        b"\n  t-0: compared up to the first record that the target's retention or cleaner has removed\n" in ran.stdout
    )
    assert objects(restore(broker, tmp_path, "--yes", "-o", "json"))[-1]["shortened"] == ["t-0"]


def test_a_wrong_number_of_partitions_is_refused(broker: FakeBroker, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", [batch(0, 10)])
    write_segment(tmp_path / "u-1", [batch(0, 10)])
    assert restore(broker, tmp_path, "--yes", "-q", "--topic", "u").status == 1
    ran = restore(broker, tmp_path, "--yes", "-q", "--topic", "t", "--topic-map", "t=u", "--job", "another")
    assert (ran.status, b"has 2 partitions, the source's has 1" in ran.stderr) == (2, True)


def test_a_topic_with_records_is_refused_until_it_is_forgotten(broker: FakeBroker, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", [batch(0, 10)])
    assert restore(broker, tmp_path, "--yes", "-q").status == 0
    assert b"already restored" in restore(broker, tmp_path, "--yes").stdout
    assert restore(broker, tmp_path, "--forget").status == 0
    assert restore(broker, tmp_path, "--forget").status == 1
    ran = restore(broker, tmp_path, "--yes", "-q")
    assert (ran.status, b"isn't empty" in ran.stderr) == (2, True)


def test_another_record_in_the_target_is_found(broker: FakeBroker, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", [batch(0, 10)])
    assert restore(broker, tmp_path, "--yes", "-q").status == 0
    log = broker.logs["t"][0]
    base, found = log.batches[0]
    raw = bytearray(found.raw)
    raw[-2] ^= 1
    log.batches[0] = base, type(found)(found.header, bytes(raw))
    ran = restore(broker, tmp_path, "--yes", "-q")
    assert (ran.status, b"the record at offset 9 of the target differs" in ran.stderr) == (1, True)


@pytest.mark.parametrize("release", ["0.8.2.2", "0.10.2.2", "0.11.0.3", "2.8.2", "4.3.1"])
def test_logs_of_all_formats_arrive(broker: FakeBroker, release: str) -> None:
    ran = restore(broker, golden.ROOT / "logs" / release, "--yes", "-q", "--no-groups", "-o", "json")
    plan = [each for each in objects(ran) if each["type"] == "partition"]
    assert plan
    for each in plan:
        assert broker.logs[each["topic"]][each["partition"]].end == each["records"]
