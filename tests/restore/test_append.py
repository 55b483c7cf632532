"""Restores into topics that have records already: the restored ones follow them, and each arrives once."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kseg.client.brokers import Brokers
from kseg.errors import ClusterError
from kseg.log.selection import EVERY_PARTITION
from kseg.restore.plan import Plan, RestoreRequest
from kseg.restore.run import RestoreReport, Step, append_plan, run_restore
from tests import run
from tests.commands.test_restore import write_groups
from tests.restore.fake_broker import FakeLog
from tests.restore.strict_broker import StrictBroker
from tests.restore.test_sender import Contents, one_record, plan_of, write_partition

REQUEST = RestoreRequest(EVERY_PARTITION, group=None, job="j", appends=True)


@pytest.fixture
def broker() -> Iterator[StrictBroker]:
    """A broker with a topic of two partitions that have 7 and 0 records."""
    with StrictBroker(set()).running() as running:
        running.logs["t"] = [FakeLog(end=7), FakeLog()]
        running.settings["t"] = {"retention.ms": "5000", "segment.bytes": "4000", "compression.type": "lz4"}
        yield running


@pytest.fixture
def written(tmp_path: Path) -> list[list[Contents]]:
    return [write_partition(tmp_path / "disk" / f"t-{number}", 20, random.Random(number)) for number in range(2)]


def restore(broker: StrictBroker, root: Path, *options: str) -> run.Run:
    bootstrap = "{}:{}".format(*broker.address)
    return run.kseg(["restore", "disk", "--bootstrap", bootstrap, "--job", "j", "--yes", "--append", *options], root)


def objects(ran: run.Run, kind: str) -> list[dict[str, Any]]:
    return [each for each in map(json.loads, ran.stdout.splitlines()) if each["type"] == kind]


def assert_appended(broker: StrictBroker, written: list[list[Contents]]) -> None:
    for log, base, expected in zip(broker.logs["t"], (7, 0), written, strict=True):
        assert log.records() == expected
        assert log.batches[0][0] == base


def test_records_follow_those_of_the_topic(broker: StrictBroker, written: list[list[Contents]], tmp_path: Path) -> None:
    ran = restore(broker, tmp_path, "-o", "json")
    assert (ran.status, objects(ran, "restore")[0]["records"]) == (0, sum(map(len, written))), ran.stderr
    assert [each["firstTargetOffset"] for each in objects(ran, "partition")] == [7, 0]
    assert_appended(broker, written)
    again = restore(broker, tmp_path)
    assert (again.status, b"appended to the target's records" in again.stdout) == (0, True)
    assert b"already restored" in again.stdout
    assert_appended(broker, written)


def test_groups_and_maps_count_from_the_first_appended_record(
    broker: StrictBroker, written: list[list[Contents]], tmp_path: Path
) -> None:
    write_groups(tmp_path / "disk", {"begins": 0, "ends": 10**9})
    ran = restore(broker, tmp_path, "-q", "--mapping", "map.csv")
    assert ran.status == 0, ran.stderr
    assert {name: broker.groups[name]["t", 0][0] for name in ("begins", "ends")} == {
        "begins": 7,
        "ends": 7 + len(written[0]),
    }
    rows = [line.split(",") for line in (tmp_path / "map.csv").read_text().splitlines()[1:]]
    own = [(int(row[2]), int(row[3]), int(row[5])) for row in rows if row[1] == "0"]
    assert own[0][2] == 7
    assert own[-1][2] == 7 + len(written[0])


def test_a_topic_with_records_gets_its_own_settings_back(
    broker: StrictBroker, written: list[list[Contents]], tmp_path: Path
) -> None:
    ran = restore(broker, tmp_path)
    assert broker.settings["t"] == {
        "compression.type": "lz4",
        "segment.bytes": "4000",
        "retention.ms": "-1",
        "retention.bytes": "-1",
    }
    assert b"--add-config retention.ms=5000" in ran.stdout


def test_a_plan_needs_the_target(written: list[list[Contents]], tmp_path: Path) -> None:
    words = ["restore", "disk", "--bootstrap", "127.0.0.1:1", "--dry-run", "--append"]
    ran = run.kseg(words, tmp_path)
    assert (ran.status, ran.stdout, b"127.0.0.1:1 can't be reached" in ran.stderr) == (3, b"", True)


def test_appended_records_get_new_offsets(broker: StrictBroker, written: list[list[Contents]], tmp_path: Path) -> None:
    ran = restore(broker, tmp_path, "--offsets", "keep")
    assert (ran.status, b"--append gives records new offsets; leave out --offsets keep" in ran.stderr) == (2, True)
    assert restore(broker, tmp_path, "-q").status == 0
    words = ["restore", "disk", "--bootstrap", "{}:{}".format(*broker.address), "--job", "j", "--yes", "-q"]
    ran = run.kseg(words, tmp_path)
    assert (ran.status, b"was begun with other options" in ran.stderr) == (2, True)


# --- others write at the same time ------------------------------------------------------------------------------------


def run_once(
    broker: StrictBroker, plan: Plan, on_sent: Any = lambda _: None, moved: Plan | None = None
) -> RestoreReport:
    calls = {Step.SEND: on_sent, Step.CHECK: lambda _: None}
    with Brokers([broker.address], patience=5) as brokers:
        placed = append_plan(brokers, plan, REQUEST) if moved is None else moved
        return run_restore(brokers, placed, REQUEST, lambda step: lambda records, _: calls[step](records))


class StoppedError(Exception):
    """Stands for the end of a process."""


def stop(_: int) -> None:
    raise StoppedError


def test_records_that_come_after_the_plan_end_the_run(
    broker: StrictBroker, written: list[list[Contents]], tmp_path: Path
) -> None:
    plan = plan_of(tmp_path / "disk", REQUEST)
    with Brokers([broker.address], patience=5) as brokers:
        placed = append_plan(brokers, plan, REQUEST)
    broker.logs["t"][0].append(one_record(0, 1))
    problem = "t-0: another program writes to it: its log ended at offset 7, and ends at 8 now; stop that program, then"
    with pytest.raises(ClusterError, match=problem):
        run_once(broker, plan, moved=placed)
    assert "kseg-restore-j" not in broker.groups
    assert run_once(broker, plan).sent_records == sum(map(len, written))


def test_records_between_two_runs_end_the_second_one(
    broker: StrictBroker, written: list[list[Contents]], tmp_path: Path
) -> None:
    plan = plan_of(tmp_path / "disk", REQUEST)
    with pytest.raises(StoppedError):
        run_once(broker, plan, stop)
    broker.logs["t"][0].append(one_record(0, 1))
    sent = len(broker.logs["t"][0].records())
    problem = r"t-0: another program writes to it: .*; stop that program, then restore the partition to a new topic"
    with pytest.raises(ClusterError, match=problem) as raised:
        run_once(broker, plan)
    assert (raised.value.status, len(broker.logs["t"][0].records())) == (3, sent)


def test_a_log_that_lost_earlier_records_ends_the_run(
    broker: StrictBroker, written: list[list[Contents]], tmp_path: Path
) -> None:
    plan = plan_of(tmp_path / "disk", REQUEST)
    with pytest.raises(StoppedError):
        run_once(broker, plan, stop)
    broker.logs["t"][0] = FakeLog(end=6)
    with pytest.raises(ClusterError, match="ends at offset 6, and the restore began at 7: its brokers have lost"):
        run_once(broker, plan)
    assert broker.logs["t"][0].batches == []


def test_another_run_that_began_since_the_plan_is_named(
    broker: StrictBroker, written: list[list[Contents]], tmp_path: Path
) -> None:
    plan = plan_of(tmp_path / "disk", REQUEST)
    run_once(broker, plan)
    with pytest.raises(ClusterError, match="another run of restore kseg-restore-j has begun since the plan"):
        run_once(broker, plan, moved=plan.append_to({("t", 0): 3}))
    assert_appended(broker, written)
