"""A broker with a tier, and kseg on its files, answer ListOffsets alike. Needs Java and Maven."""

import json
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kseg.formats.messages import Fields
from kseg.formats.schemas import REQUESTS, version_range
from tests.live.wire import answer_of
from tests.log.real_broker import PATIENCE, Broker, make_topics
from tests.releases import NEWEST_TWO
from tests.run import kseg
from tests.serve.running import joined_serving
from tests.tiered.tiered_broker import SEGMENT, change_topic, tiered_broker, wait_until

pytestmark = pytest.mark.kafka

LIST_OFFSETS = 2
T0, PEAK = 1_700_000_000_000, 1_700_009_000_000
SIZE, PER_SEGMENT = 20_000, 50
COUNT = 5 * PER_SEGMENT
BY_NAME = {
    -1: "latest",
    -2: "earliest",
    -3: "max-timestamp",
    -4: "earliest-local",
    -5: "latest-tiered",
    -6: "earliest-pending-upload",
}
PASSED_OVER, NOWHERE = "cut-in-tier", -1
SPECIAL = range(-8, 0)
"""Special values of times, two of them unused."""
ORDINARY = (0, *(T0 + n * 10 + step for n in range(0, COUNT, 31) for step in (-1, 0, 1)), PEAK - 1, PEAK, PEAK + 1)
LOOKED_UP = T0 + 10 * 93
"""The ordinary time that is also tested with `kseg lookup`, which reads the tier again each time."""
NONE_KEPT = {"local.retention.bytes": "1"}
ALL_KEPT = {"local.retention.ms": "-2", "local.retention.bytes": "-2"}
SOME_KEPT = {"local.retention.bytes": str(2 * SEGMENT + SEGMENT // 2)}


class Topic(NamedTuple):
    """A topic: its settings, its records with the largest time, and the end of the records deleted later."""

    settings: Mapping[str, str] | None
    peaks: tuple[int, ...] = ()
    deleted: int | None = None
    written: int = COUNT


TOPICS = {
    "peak-in-tier": Topic(NONE_KEPT, (20,)),
    "peak-in-both": Topic(ALL_KEPT, (70,)),
    "peak-in-active": Topic(NONE_KEPT, (COUNT - 1,)),
    "peak-thrice": Topic(SOME_KEPT, (20, 160, 240)),
    "partly-local": Topic(SOME_KEPT),
    "retained": Topic({**NONE_KEPT, "retention.bytes": str(3 * SEGMENT)}, (20, 160)),
    "cut-in-tier": Topic(NONE_KEPT, (20,), 30),
    "cut-in-local": Topic(ALL_KEPT, (20,), 130),
    "emptied": Topic(NONE_KEPT, (20,), COUNT),
    "paused": Topic(ALL_KEPT, (20, 270)),
    "never-copied": Topic({**ALL_KEPT, "remote.log.copy.disable": "true"}, (20,)),
    "one-segment": Topic(ALL_KEPT, (3,), written=10),
    "empty": Topic(NONE_KEPT, written=0),
    "plain": Topic(None, (20,)),
    "plain-cut": Topic(None, (20,), 130),
    "plain-empty": Topic(None, written=0),
}


class Stopped(NamedTuple):
    """A broker's answers before it was stopped, its directory and its tier."""

    logs: Path
    tier: Path
    answers: dict[tuple[int, int, int, str], Fields]


@pytest.fixture(scope="module", params=NEWEST_TWO)
def stopped_broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    tier = tmp_path_factory.mktemp("tier")
    broker = tiered_broker(tmp_path_factory, tier, request.param)
    with broker.running("first"):
        make_topics(broker.port, TOPICS, {name: settings_of(topic) for name, topic in TOPICS.items()})
        for name, topic in TOPICS.items():
            write(broker.port, name, range(topic.written), topic.peaks)
        wait_until(partial(are_moved, broker, tier), "not everything was moved")
        change_topic(broker.port, "paused", {"remote.log.copy.disable": "true"})
        write(broker.port, "paused", range(COUNT, COUNT + 2 * PER_SEGMENT), TOPICS["paused"].peaks)
        delete_records(broker.port)
        wait_until(partial(are_deleted, broker, tier), "not everything was deleted")
        files, answers = files_of(broker, tier), answers_of(broker.port)
        wait_until(partial(stays, broker, tier, files), "the files don't rest")
        assert answers_of(broker.port) == answers
    return Stopped(broker.logs, tier, answers)


def settings_of(topic: Topic) -> dict[str, str]:
    """Return the settings of a topic: with any, it has a tier."""
    own = {"segment.bytes": str(SEGMENT), "file.delete.delay.ms": "100", "retention.ms": "-1"}
    return own if topic.settings is None else {**own, "remote.storage.enable": "true", **topic.settings}


def write(port: int, topic: str, numbers: Iterable[int], peaks: Iterable[int]) -> None:
    """Write records with rising times, except those with the largest one."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "linger.ms": 5, "acks": "all"})
    for number in numbers:
        timestamp = PEAK if number in peaks else T0 + 10 * number
        producer.produce(topic, b"%d " % number + bytes(SIZE), timestamp=timestamp)
        if number % 5 == 4:
            producer.flush(PATIENCE)
    assert producer.flush(PATIENCE) == 0


def delete_records(port: int) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    wanted = [TopicPartition(name, 0, each.deleted) for name, each in TOPICS.items() if each.deleted is not None]
    for future in admin.delete_records(wanted).values():
        future.result(PATIENCE)


def local_bases(broker: Broker, topic: str) -> list[int]:
    return sorted(int(path.stem) for path in (broker.logs / f"{topic}-0").glob("*.log"))


def remote_bases(tier: Path, topic: str) -> list[int]:
    return sorted(int(path.name[:20]) for path in tier.glob(f"**/{topic}-0-*/*.log"))


def are_moved(broker: Broker, tier: Path) -> bool:
    for name, topic in TOPICS.items():
        local, remote = local_bases(broker, name), remote_bases(tier, name)
        if topic.settings is None or not topic.written or "remote.log.copy.disable" in topic.settings:
            continue
        kept = {"1": 1, "-2": 100}.get(topic.settings["local.retention.bytes"], 4)
        closed = [base for base in local[:-1] if base not in remote]
        if closed or len(local) > kept or (name == "retained" and remote[0] == 0):
            return False
    return True


def are_deleted(broker: Broker, tier: Path) -> bool:
    return not remote_bases(tier, "emptied") and local_bases(broker, "plain-cut")[0] > 0


def files_of(broker: Broker, tier: Path) -> dict[str, Any]:
    return {name: (local_bases(broker, name), remote_bases(tier, name)) for name in TOPICS}


def stays(broker: Broker, tier: Path, files: dict[str, Any]) -> bool:
    import time

    time.sleep(3)  # the broker's tasks run each half second, without a sign
    assert files_of(broker, tier) == files
    return True


def answers_of(port: int) -> dict[tuple[int, int, int, str], Fields]:
    """Return answers by version, isolation level, time and topic."""
    found = {}
    versions = version_range(REQUESTS[LIST_OFFSETS].versions)
    for version in range(versions.first, versions.last + 1):
        for level in (0, 1) if version >= 2 else (0,):
            times = (*SPECIAL, *ORDINARY) if version in (versions.first, versions.last) else SPECIAL
            for time in times:
                asked = [{"partitionIndex": 0, "currentLeaderEpoch": -1, "timestamp": time}]
                topics = [{"name": name, "partitions": asked} for name in TOPICS]
                body = {"replicaId": -1, "isolationLevel": level, "timeoutMs": 30_000, "topics": topics}
                for topic in answer_of(port, LIST_OFFSETS, version, body)["topics"]:
                    (found[version, level, time, topic["name"]],) = topic["partitions"]
    return found


def first_at(topic: str, time: int, there: Fields) -> int:
    """Return the offset that answers a time: the broker's, unless it skips records of the tier.

    It searches only the first remote segment whose largest time reaches the wanted one. If its matching records are
    deleted, it continues with the local segments, whereas kseg continues with the next remote one.
    """
    cut = TOPICS[topic].deleted
    if topic != PASSED_OVER or time < 0 or cut is None:
        return int(there["offset"])
    found = min((number for number in range(cut, COUNT) if T0 + 10 * number >= time), default=NOWHERE)
    assert found <= there["offset"]
    return found


def test_serve_answers_as_the_broker_did(stopped_broker: Stopped) -> None:
    with joined_serving(stopped_broker.logs, stopped_broker.tier) as running:
        answers = answers_of(running.address[1])
    wrong, passed_over = [], 0
    for asked, there in stopped_broker.answers.items():
        _, _, time, topic = asked
        offset = first_at(topic, time, there)
        if offset != there["offset"]:
            passed_over += 1
            there = {**there, "offset": offset, "timestamp": T0 + 10 * offset}
        if answers[asked] != there:
            wrong.append(f"version, level, time, topic {asked}: broker {there}, kseg {answers[asked]}")
    assert wrong == [], wrong[:12]
    assert passed_over


def test_lookup_answers_as_the_broker_did(stopped_broker: Stopped, tmp_path: Path) -> None:
    last = max(version for version, *_ in stopped_broker.answers)
    wrong = []
    for (version, level, time, topic), there in stopped_broker.answers.items():
        if (version, level) != (last, 0) or time not in (*BY_NAME, LOOKED_UP):
            continue
        command = ["lookup", str(stopped_broker.logs), "--tier", str(stopped_broker.tier), "--topic", topic]
        ran = kseg([*command, "--timestamp", BY_NAME.get(time, str(time)), "-q", "-o", "json"], tmp_path)
        offset = json.loads(ran.stdout)["offset"]
        expected = first_at(topic, time, there)
        if (NOWHERE if offset is None else offset) != expected:
            wrong.append(f"{topic} at {time}: broker {expected}, lookup {offset}")
    assert wrong == [], wrong[:12]
