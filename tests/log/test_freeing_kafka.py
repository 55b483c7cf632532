"""A real broker deletes the segments that `retain --free` lists, with its printed commands. Needs Java and Maven."""

import json
import shlex
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kseg.log.partition import PartitionLog
from tests import run
from tests.log.aged_logs import Topics, write_disk
from tests.log.real_broker import PATIENCE, Broker, make_topics, new_broker, put_in_place

pytestmark = pytest.mark.kafka

MAIN_CLASS = "kafka.admin.ConfigCommand"
"""The class of kafka-configs.sh."""
AGES: Topics = {
    "even": [(8, 7, 6, 5, 4, 3, 2, 1, 0)],
    "idle": [(9.5, 8.5, 7.5, 6.5)],
    "small": [(9, 0)],
    "young": [(0.5, 0.3, 0)],
    "pinned": [(9, -300, 8, 7, 0)],
    "compacted": [(9, 8, 7, 0)],
    "expiring": [(9, 8, 1, 0)],
}
SETTINGS = {
    **{topic: {"retention.ms": "-1"} for topic in AGES},
    "compacted": {"cleanup.policy": "compact", "min.compaction.lag.ms": str(2**62)},
    "canary": {"retention.ms": "-1"},
}
IMPATIENT = {"log.retention.check.interval.ms": 1000, "replica.high.watermark.checkpoint.interval.ms": 500}
CANARY = "canary"
"""The topic that is deleted last, when the broker has checked all again."""


def kseg(broker: Broker, *arguments: str) -> list[dict[str, Any]]:
    ran = run.kseg(["retain", str(broker.logs), "--topic", "[!c]*", "-o", "json", *arguments], broker.work)
    assert ran.status == 0
    return [json.loads(line) for line in ran.stdout.splitlines()]


def run_line(broker: Broker, line: str) -> None:
    program, *arguments = shlex.split(line)
    assert program == "kafka-configs.sh"
    command = broker.kafka.command(MAIN_CLASS, *arguments, options=[broker.tools.QUIET])
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def are_whole(broker: Broker, topics: Iterable[str]) -> bool:
    """Return True if the broker's checkpoint has all records: it deletes nothing beyond it."""
    places = [PartitionLog(broker.logs / f"{topic}-0") for topic in topics]
    return all(place.checkpoints().high_watermark == place.read_log_end_offset() for place in places)


def remaining_offsets(broker: Broker) -> dict[str, list[int]]:
    return {topic: PartitionLog(broker.logs / f"{topic}-0").base_offsets for topic in AGES}


def expected_of(broker: Broker, lowered: list[dict[str, Any]]) -> dict[str, list[int]]:
    """Return the base offsets that `retain` leaves with the advised settings."""
    found = remaining_offsets(broker)
    for each in lowered:
        rows = kseg(broker, "--topic", each["topic"], "--retention-ms", str(each["afterMs"]))
        rows = [row for row in rows if row["type"] == "segment" and Path(row["directory"]).name == f"{each['topic']}-0"]
        kept = [row["baseOffset"] for row in rows if not row["retention"].startswith("delete")]
        found[each["topic"]] = kept or [row["baseOffset"] + 1 for row in rows[-1:]]
    return found


@pytest.mark.parametrize("wanted", ["5KB", "16KB"])
def test_broker_deletes_what_is_advised(wanted: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    topics: Topics = {**AGES, CANARY: [(5, 0)]}
    disk = write_disk(tmp_path, topics, time.time_ns() // 1_000_000)
    broker = new_broker(tmp_path_factory, IMPATIENT)
    with broker.running("first"):
        make_topics(broker.port, topics, SETTINGS)
    for topic in topics:
        put_in_place(disk / f"{topic}-0", broker.logs / f"{topic}-0")
    server = ("--bootstrap-server", f"127.0.0.1:{broker.port}")
    with broker.running("second"):
        broker.tools.wait_until(lambda: are_whole(broker, topics), PATIENCE, "no high watermarks")
        rows = kseg(broker, "--free", wanted, *server)
        lowered = [row for row in rows if row["type"] == "lowered"]
        before, expected = remaining_offsets(broker), expected_of(broker, lowered)
        for each in lowered:
            run_line(broker, each["command"])
        broker.tools.wait_until(
            lambda: remaining_offsets(broker) == expected, PATIENCE, f"{remaining_offsets(broker)}, not {expected}"
        )
        line = lowered[0]["command"].replace(f"--entity-name {lowered[0]['topic']}", f"--entity-name {CANARY}")
        run_line(broker, line.replace(f"={lowered[0]['after']}", "=3600000"))
        canary = broker.logs / f"{CANARY}-0"
        broker.tools.wait_until(lambda: PartitionLog(canary).base_offsets == [1], PATIENCE, "no further look")
        assert remaining_offsets(broker) == expected
        gone = sum(len(set(before[topic]) - set(expected[topic])) for topic in AGES)
        assert gone == sum(each["segments"] for each in lowered) > 1
        for each in lowered:
            run_line(broker, each["undo"])
        assert kseg(broker, "--free", "1KB", *server)[-1]["segmentsDeletableNow"] == 0
    names = {each["topic"] for each in lowered}
    assert names <= {"even", "idle", "expiring", "small"} | {"pinned"}
    assert {row["directory"] for row in rows if row["type"] == "pinned"} == {str(broker.logs / "pinned-0")}
