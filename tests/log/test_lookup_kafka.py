"""A real broker serves golden partitions: its answers to ListOffsets and Fetch equal `kseg lookup`'s.

Needs Java and Maven.
"""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from struct import Struct, pack
from typing import Any, NamedTuple

import pytest

from kseg import Segment
from kseg.cluster.cluster import Cluster
from kseg.reading.batch import Batch
from tests import golden, run
from tests.log.real_broker import PATIENCE, Broker, make_topics, new_broker, put_in_place

pytestmark = pytest.mark.kafka

ROOTS = ["docs", *(f"logs/{path.name}" for path in sorted((golden.ROOT / "logs").glob("[0-9]*[0-9]")))]
"""The directories of brokers that were stopped cleanly."""
SAMPLE = 25
"""Records of a partition whose offsets and timestamps, and neighbouring ones, are looked up."""
SPECIAL_TIMES = {"latest": -1, "earliest": -2, "max-timestamp": -3}
UNTRUE_TIME_INDEX = "0.10.2.2/mixed-0"
"""Its first segment has messages without timestamps and a time index with timestamps, which the broker trusts."""
OUT_OF_RANGE = 1
FETCH, LIST_OFFSETS = 1, 2
NOT_THERE = -1

HEADER = Struct(">hhih4s")
LISTED = Struct(">ihqqi")
FETCHED = Struct(">ihqqi")


class Listed(NamedTuple):
    """A broker's answer to ListOffsets."""

    error: int
    offset: int
    timestamp: int


class Fetched(NamedTuple):
    """A broker's answer to Fetch."""

    error: int
    records: bytes


class Connection:
    """A client of partition 0 of the topics of a broker: request headers and bodies as in Kafka's protocol guide."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))

    def close(self) -> None:
        self._socket.close()

    def list_offset(self, topic: str, timestamp: int) -> "Listed":
        """Return the offset of a time with ListOffsets, version 7."""
        name = topic.encode()
        partition = b"\x02" + pack(">iiq", 0, -1, timestamp) + b"\0"
        topics = b"\x02" + bytes([len(name) + 1]) + name + partition + b"\0"
        answer = self._ask(LIST_OFFSETS, 7, b"\0" + pack(">ib", -1, 0) + topics + b"\0")
        at = 1 + 4 + 1 + 1 + len(name) + 1  # tags, throttle time, topics, name, partitions
        _, error, found_timestamp, offset, _ = LISTED.unpack_from(answer, at)
        return Listed(error, offset, found_timestamp)

    def fetch(self, topic: str, offset: int) -> Fetched:
        """Return the records at an offset, at least a batch if it exists, with Fetch, version 4."""
        name = topic.encode()
        partition = pack(">iiqi", 1, 0, offset, 1)
        asked = pack(">iiiib", -1, 0, 0, 1, 0) + pack(">ih", 1, len(name)) + name + partition
        answer = self._ask(FETCH, 4, asked)
        at = 4 + 4 + 2 + len(name) + 4  # throttle time, topics, name, partitions
        _, error, _, _, aborted = FETCHED.unpack_from(answer, at)
        at += FETCHED.size + 16 * max(aborted, 0)
        return Fetched(error, answer[at + 4 :])

    def _ask(self, key: int, version: int, body: bytes) -> bytes:
        request = HEADER.pack(key, version, 0, 4, b"test") + body
        self._socket.sendall(pack(">i", len(request)) + request)
        return self._receive(int.from_bytes(self._receive(4), "big"))[4:]

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            piece = self._socket.recv(size - len(received))
            assert piece, "the broker closed the connection"
            received += piece
        return bytes(received)


class Served(NamedTuple):
    """A topic whose partition 0 is a golden one: its directory, and offsets and timestamps of its records."""

    topic: str
    source: Path
    directory: Path
    records: list[tuple[int, int]]

    @property
    def name(self) -> str:
        """The writer and directory of the golden partition."""
        return f"{self.source.parent.name}/{self.source.name}"

    def lookup(self, *options: str) -> dict[str, Any]:
        """Return `kseg lookup`'s answer."""
        answer: dict[str, Any] = json.loads(run.kseg(["lookup", "-q", "-o", "json", *options], self.directory).stdout)
        return answer


def golden_partitions() -> dict[str, Path]:
    found = [place.path for root in ROOTS for place in Cluster([golden.ROOT / root]).directories() if place.segments]
    return {f"served-{number}": path for number, path in enumerate(found)}


def records_of(partition: Path) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for log in sorted(partition.glob("*.log")):
        with Segment(log) as segment:
            found += [(record.offset, record.timestamp) for record in segment.records(control=None)]
    return found


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker, topics = new_broker(tmp_path_factory), golden_partitions()
    with broker.running("first"):
        make_topics(broker.port, topics)
    for topic, path in topics.items():
        put_in_place(path, broker.logs / f"{topic}-0")
    with broker.running("second"):
        connection = Connection(broker.port)
        is_ready = lambda: not any(connection.list_offset(topic, -1).error for topic in topics)  # noqa: E731
        broker.tools.wait_until(is_ready, PATIENCE, "the broker doesn't lead the partitions")
        connection.close()
        yield broker


@pytest.fixture(scope="module")
def served_records(broker: Broker) -> list[Served]:
    return [
        Served(topic, path, broker.logs / f"{topic}-0", records_of(path)) for topic, path in golden_partitions().items()
    ]


@pytest.fixture
def connection(broker: Broker) -> Iterator[Connection]:
    connection = Connection(broker.port)
    yield connection
    connection.close()


def sample(records: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return some records, evenly spread, including the first and the last."""
    return [*records[:: max(len(records) // SAMPLE, 1)], *records[-1:]]


def around(numbers: list[int]) -> list[int]:
    return sorted({number + step for number in numbers for step in (-1, 0, 1) if number + step >= 0})


def test_list_offsets_answers_as_lookup(served_records: list[Served], connection: Connection) -> None:
    # Without time indexes, as before 0.10.1, the broker uses the files' modification times.
    indexed = [partition for partition in served_records if any(partition.source.glob("*.timeindex"))]
    asked, explained, wrong = 0, 0, []
    for partition in indexed:
        for timestamp in around([timestamp for _, timestamp in sample(partition.records)]):
            found = partition.lookup("--timestamp", str(timestamp))
            record = found["record"]
            expected = (NOT_THERE, NOT_THERE) if record is None else (record["offset"], record["timestamp"])
            answer = connection.list_offset(partition.topic, timestamp)
            asked += 1
            if answer == (0, *expected):
                continue
            if partition.name == UNTRUE_TIME_INDEX and answer.offset == NOT_THERE:
                explained += 1
            else:
                wrong.append(f"{partition.name}: time {timestamp}: broker {answer}, lookup {expected}")
        for name, code in SPECIAL_TIMES.items():
            offset = partition.lookup("--timestamp", name)["offset"]
            answer = connection.list_offset(partition.topic, code)
            asked += 1
            if answer.offset != (NOT_THERE if offset is None else offset):
                wrong.append(f"{partition.name}: {name}: broker {answer}, lookup {offset}")
    print(f"{asked} times asked for in {len(indexed)} partitions, {explained} explained")  # noqa: T201
    assert (wrong, explained) == ([], 1)


def first_record(connection: Connection, topic: str, offset: int) -> int | str:
    """Return the offset of the broker's first record from an offset on, or the reason if there is none."""
    following = offset
    while True:
        error, records = connection.fetch(topic, following)
        if error == OUT_OF_RANGE:
            return "out of range"
        assert error == 0
        if not records:
            return "the end"
        batch = Batch.parse(records[: batch_size(records)], 0, is_valid=True)
        for record in batch.records():
            if record.offset >= offset:
                return record.offset
        following = batch.last_offset + 1


def expected_record(found: dict[str, Any]) -> int | str:
    if found["absence"] in ("below-log-start", "above-log-end"):
        return "out of range"
    if found["absence"] == "at-log-end":
        return "the end"
    offset: int | None = found["offset"] if found["absence"] is None else found["nextOffset"]
    return "the end" if offset is None else offset


def test_fetch_gives_the_records_of_lookup(served_records: list[Served], connection: Connection) -> None:
    asked, wrong = 0, []
    for partition in served_records:
        for offset in around([offset for offset, _ in sample(partition.records)] or [0]):
            found = partition.lookup("--offset", str(offset))
            answer, expected = first_record(connection, partition.topic, offset), expected_record(found)
            asked += 1
            if answer != expected:
                wrong.append(f"{partition.name}: offset {offset}: broker {answer}, lookup {expected}")
            if found["batch"] is not None:
                raw = batch_in_log(partition, found)
                if connection.fetch(partition.topic, offset).records[: len(raw)] != raw:
                    wrong.append(f"{partition.name}: offset {offset}: another batch than lookup's")
    print(f"{asked} offsets asked for in {len(served_records)} partitions")  # noqa: T201
    assert wrong == []


def batch_in_log(partition: Served, found: dict[str, Any]) -> bytes:
    """Return the bytes of the batch in which lookup found it."""
    with (partition.directory / found["segment"]).open("rb") as log:
        log.seek(found["batch"]["position"])
        start = log.read(12)
        return start + log.read(batch_size(start) - 12)


def batch_size(raw: bytes) -> int:
    return 12 + int.from_bytes(raw[8:12], "big")
