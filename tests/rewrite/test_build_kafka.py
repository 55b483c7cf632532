"""Real brokers start on the unchanged output of `kseg build`, and serve every record. Needs Java and Maven."""

import json
import re
import shutil
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import run
from tests.log.real_broker import Broker, make_topics, new_broker, served_messages

pytestmark = pytest.mark.kafka

TIME = 1_700_000_000_000
RECORDS = 600
TRANSACTION = 40
"""Records of each transaction; every third one is aborted."""
# Messages of a broker that doesn't accept a partition's files as they are.
REBUILDING = re.compile(
    "Recovering|recovering segment|Found invalid|orrupt|rebuilding index|Rebuil|missing|Could not find|runcat|Deleting"
)
# The snapshot of producers that it accepts: with the last one it reads no batch again.
SNAPSHOT = re.compile(r"partition=(\S+)-0\W.* Loading producer state from snapshot file .*?(\d{20})\.snapshot")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ROLLED = ("--batch-records", "10", "--segment-bytes", "12000", "--index-interval-bytes", "2000")

Served = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Offset, time, key, value, headers."""


class Topic(NamedTuple):
    """A topic's source, and the records that consumers must get."""

    options: tuple[str, ...]
    lines: list[dict[str, object]]
    records: list[Served]
    committed: list[Served]
    end_offset: int

    def build(self, directory: Path, *options: str) -> Path:
        (directory / "source").write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        options = (*self.options, "--timestamp", str(TIME), *options)
        ran = run.kseg(["build", "source", "-q", "--to", "built", *options], directory)
        assert (ran.status, ran.stderr) == (0, b"")
        return directory / "built"


def record(number: int, offset: int, *, magic: int) -> tuple[dict[str, object], Served]:
    """Return a line for `build`, and a consumer's record for it: null and empty keys and values, bytes, headers."""
    digest = sha256(b"%d" % number).digest()
    key = None if number % 7 == 0 else b"" if number % 7 == 1 else b"key-%d" % (number % 7)
    value = None if number % 5 == 0 else b"" if number % 11 == 0 else digest * 2
    headers: list[tuple[str, bytes | None]] = []
    if magic == 2 and number % 3 == 0:
        headers = [("one", digest[:9]), ("none", None), ("", b"")]
    line = {
        "timestamp": None if magic == 0 else TIME + number,
        **encode_record("key", key),
        **encode_record("value", value),
        "headers": [{"key": name, **encode_record("value", content)} for name, content in headers],
    }
    return line, (offset, TIME + number, key, value, headers)


def encode_record(name: str, content: bytes | None) -> dict[str, object]:
    return {name: None} if content is None else {f"{name}Base64": b64encode(content).decode()}


def plain(*options: str, magic: int = 2, timestamp: int | None = None) -> Topic:
    """Return records without transactions; `timestamp` if the format or its type gives all records the same."""
    made = [record(number, number, magic=magic) for number in range(RECORDS)]
    records = [served if timestamp is None else (served[0], timestamp, *served[2:]) for _, served in made]
    return Topic((*ROLLED, "--magic", str(magic), *options), [line for line, _ in made], records, records, RECORDS)


def transactional(codec: str, last_end: str) -> Topic:
    """Return transactions, committed and aborted; `last_end` is the end of the last one, or it stays open."""
    lines: list[dict[str, object]] = []
    records: list[Served] = []
    committed: list[Served] = []
    for number in range(RECORDS):
        line, served = record(number, number + number // TRANSACTION, magic=2)
        transaction, place = divmod(number, TRANSACTION)
        is_last = number >= RECORDS - TRANSACTION
        is_aborted = transaction % 3 == 2
        lines.append(line)
        records.append(served)
        if not is_aborted if not is_last else last_end == "commit":
            committed.append(served)
        if place == TRANSACTION - 1 and not is_last:
            lines.append({"type": "abort" if is_aborted else "commit"})
    options = ("--compression", codec, "--producer-id", "4000", "--producer-epoch", "3", "--transaction", last_end)
    end_offset = RECORDS + RECORDS // TRANSACTION - (last_end == "open")
    return Topic((*ROLLED, *options), lines, records, committed, end_offset)


def topics() -> Iterator[tuple[str, Topic]]:
    for codec in CODECS:
        yield f"v2-{codec}", plain("--compression", codec)
        yield f"txn-{codec}", transactional(codec, "abort" if codec == "gzip" else "commit")
    yield "txn-open", transactional("none", "open")
    yield "append-time", plain("--timestamp-type", "LogAppendTime", timestamp=TIME)
    yield "idempotent", plain("--producer-id", "5000", "--base-sequence", str(2**31 - 100))
    for codec in CODECS[:-1]:
        yield f"v1-{codec}", plain("--compression", codec, magic=1)
        yield f"v0-{codec}", plain("--compression", codec, magic=0, timestamp=NO_TIME)


NO_TIME = 0
"""The client's timestamp for a message of v0."""


def consume(port: int, topic: str, isolation_level: str) -> list[Served]:
    return [
        (each.offset(), each.timestamp()[1], each.key(), each.value(), each.headers() or [])
        for each in served_messages(port, topic, isolation_level)
    ]


BROKERS_OWN = ("leader-epoch-checkpoint", "partition.metadata")
"""Files that a broker changes: its own epoch at each start, and in 2.8 the topic's id later."""


def contents(partition: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in partition.iterdir() if path.name not in BROKERS_OWN}


@pytest.mark.parametrize("release", ["2.8.2", "3.9.1", "4.3.1"])
def test_broker_takes_what_is_built_and_serves_every_record(
    release: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    broker, wanted = new_broker(tmp_path_factory, release=release), dict(topics())
    with broker.running("first"):
        make_topics(broker.port, [*wanted, "without-index"])
    built = {name: put_built(broker, name, topic, tmp_path / name) for name, topic in wanted.items()}
    lacking = put_built(broker, "without-index", plain(), tmp_path / "without-index")
    sorted(broker.logs.glob("without-index-0/*.index"))[1].unlink()
    with broker.running("second") as said:
        for name, topic in wanted.items():
            assert consume(broker.port, name, "read_uncommitted") == topic.records, name
            assert consume(broker.port, name, "read_committed") == topic.committed, name
    lines = said.read_text().splitlines()
    rebuilt = [line for line in lines if REBUILDING.search(line)]
    assert [line for line in rebuilt if any(f"{name}-0" in line for name in wanted)] == []
    assert [line for line in rebuilt if "without-index-0" in line], "the broker doesn't tell what it has to rebuild"
    taken = {match[1]: int(match[2]) for match in map(SNAPSHOT.search, lines) if match}
    assert {name: taken.get(name) for name in wanted} == {name: topic.end_offset for name, topic in wanted.items()}
    for name, before in built.items():
        assert contents(broker.logs / f"{name}-0") == before, f"the broker changed {name}"
    assert contents(broker.logs / "without-index-0").keys() == lacking.keys()


def put_built(broker: Broker, name: str, topic: Topic, work: Path) -> dict[str, bytes]:
    """Build the topic's partition and put it in place of the broker's own; return its files."""
    place = broker.logs / f"{name}-0"
    work.mkdir()
    metadata = place / "partition.metadata"
    topic_id = ["--topic-id", metadata.read_text().split()[-1]] if metadata.exists() else []
    partition = topic.build(work, *topic_id)
    assert len(list(partition.glob("*.log"))) > 2
    shutil.rmtree(place)
    shutil.copytree(partition, place)
    return contents(place)
