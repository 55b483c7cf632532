"""A real broker's cleaner cleans the partitions that `ls` calls cleanable, and no others. Needs Java and Maven."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import run
from tests.log.cleaner_logs import batch, make, produce_batch
from tests.log.real_broker import PATIENCE, make_topics, new_broker, put_in_place

pytestmark = pytest.mark.kafka

HOUR = 3_600_000
CANARY = "canary"
BEYOND = 99
"""An offset after the end of each log."""
RATIOS = (0.0, 0.3, 0.5, 0.66, 0.67, 0.95)


class Case(NamedTuple):
    """A partition's segments, its settings, and its cleaner's position."""

    segments: list[list[bytes]]
    settings: dict[str, str]
    clean: int | None = None
    is_damaged: bool = False


def with_ratio(ratio: float, **own: object) -> dict[str, str]:
    settings = {name.replace("_", "."): str(value) for name, value in own.items()}
    return {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": str(ratio), **settings}


def cases(now: int) -> Iterator[Case]:
    def plain(base: int, age_ms: int = HOUR) -> list[bytes]:
        return [batch(base, ("a", "1"), ("b", "2" * 500), timestamp=now - age_ms)]

    three = [plain(0), plain(2), plain(4)]
    for ratio in RATIOS:
        for clean in (None, 0, 1, 2, 3, 4, 5, 6, 7, BEYOND):
            yield Case(three, with_ratio(ratio), clean)
    for slot in range(3):
        before = [plain(2 * number) for number in range(slot)]
        opened = produce_batch(2 * slot, ("a", "3"), ("b", "3"), producer_id=1, timestamp=now - HOUR)
        for ratio in RATIOS[:4]:
            yield Case([*before, [opened], plain(2 * slot + 2), plain(2 * slot + 4)], with_ratio(ratio))
    aged = [plain(0, 9 * HOUR), plain(2, 5 * HOUR), plain(4, 0)]
    for lag in (HOUR, 6 * HOUR, 10 * HOUR):
        for ratio in RATIOS[:3]:
            yield Case(aged, with_ratio(ratio, min_compaction_lag_ms=lag))
        for clean in (2, 4, 6):
            yield Case(aged, with_ratio(0.95, max_compaction_lag_ms=lag), clean)
    for clean in (0, 2, 4):
        yield Case(three, with_ratio(0.1), clean, is_damaged=True)


def canary(now: int) -> Case:
    """Return the least dirty case: once it is cleaned, the cleaner has checked all others."""
    large = [[batch(number, ("k", "v" * 900_000), timestamp=now - HOUR)] for number in range(3)]
    return Case([*large, [batch(3, ("a", "1"), timestamp=now - HOUR)]], with_ratio(0), 3)


def put_case(case: Case, source: Path, place: Path, now: int) -> None:
    partition = make(source, *case.segments, modified_ms=now - HOUR)
    if case.is_damaged:
        content = bytearray(partition.segments[1].path.read_bytes())
        content[16] = 9  # an invalid magic
        partition.segments[1].path.write_bytes(content)
    put_in_place(source, place)


def write_clean_offsets(logs: Path, topics: dict[str, Case]) -> None:
    known = {topic: case.clean for topic, case in topics.items() if case.clean is not None}
    lines = "".join(f"{topic} 0 {offset}\n" for topic, offset in known.items())
    (logs / "cleaner-offset-checkpoint").write_text(f"0\n{len(known)}\n{lines}")


def clean_offsets(logs: Path) -> dict[str, int]:
    path = logs / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    return {topic: int(offset) for topic, _, offset in map(str.split, lines)}


def list_partitions(logs: Path) -> dict[str, dict[str, Any]]:
    """Return `ls`'s rows of the topics' partitions."""
    ran = run.kseg(["ls", ".", "--deep", "-o", "json"], logs)
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    return {row["topic"]: row for row in rows if row["type"] == "partition"}


def test_broker_cleans_what_is_called_cleanable(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    now = time.time_ns() // 1_000_000
    topics = {**{f"topic-{number}": case for number, case in enumerate(cases(now))}, CANARY: canary(now)}
    broker = new_broker(tmp_path_factory, {"offsets.topic.num.partitions": 1})
    with broker.running("first"):
        make_topics(broker.port, topics, {topic: case.settings for topic, case in topics.items()})
    for topic, case in topics.items():
        put_case(case, tmp_path / topic / f"{topic}-0", broker.logs / f"{topic}-0", now)
    write_clean_offsets(broker.logs, topics)
    (broker.logs / "replication-offset-checkpoint").unlink()  # one replica's high watermark is raised at once
    rows = list_partitions(broker.logs)
    expected = {topic: rows[topic]["firstUncleanableOffset"] for topic in topics if rows[topic]["cleanable"]}
    with broker.running("second"):
        broker.tools.wait_until(
            lambda: CANARY in cleaned_topics(broker.logs, topics), 2 * PATIENCE, "not all was looked at"
        )
        found = clean_offsets(broker.logs)
    for topic, case in topics.items():
        untouched = 0 if case.clean == BEYOND else case.clean
        assert found.get(topic) == expected.get(topic, untouched), (case, rows[topic])
    assert CANARY in expected
    assert len(topics) // 4 < len(expected) < 3 * len(topics) // 4
    reasons = {rows[topic]["cleanableReason"].split(":")[0] for topic in topics}
    assert {"cleanable", "not cleanable", "uncleanable"} <= reasons


def cleaned_topics(logs: Path, topics: dict[str, Case]) -> set[str]:
    """Return the topics that the cleaner has cleaned since."""
    return {topic for topic, offset in clean_offsets(logs).items() if topic in topics and offset != topics[topic].clean}
