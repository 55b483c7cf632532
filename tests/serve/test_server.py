"""Connections: ordered answers, records without a copy, waiting, growth, errors."""

import os
import select
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kseg.errors import ClusterError
from kseg.formats.messages import ZERO_UUID, Fields
from kseg.formats.schemas import REQUESTS, version_range
from kseg.log.selection import PartitionChoice
from kseg.protocol.messages import api_name, read_response
from kseg.serve.apis.table import APIS
from kseg.serve.values import KEPT_BACK, ServeSettings
from kseg.system.placed_path import Placement
from tests import golden
from tests.cluster.made_metadata import write_metadata
from tests.log_files import ABORT, NewBatch, NewRecord, batch_bytes, marker, write_segment
from tests.loops import for_each
from tests.protocol.packets import request
from tests.protocol.test_golden import frames as recorded_frames
from tests.serve.running import PATIENCE, Running, serving

PRODUCE, FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR, API_VERSIONS = 0, 1, 2, 3, 10, 18
TOPIC_ID = "kyhdsJGrQrOXD0nG3u2j8A"
RECORDS = [NewRecord(b"k", b"v" * 1000, 1_700_000_000_000 + number) for number in range(10)]


class Connection:
    """A connection on which a test sends frames itself."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.socket = socket.create_connection(running.address, PATIENCE)
        self.number = 0

    def send(self, api_key: int, version: int, body: Fields) -> None:
        self.number += 1
        frame = request(api_key, version, body, self.number)
        self.socket.sendall(len(frame).to_bytes(4, "big") + frame)

    def receive(self) -> bytes:
        return self.exactly(int.from_bytes(self.exactly(4), "big"))

    def exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            piece = self.socket.recv(size - len(found))
            if not piece:
                raise EOFError
            found += piece
        return found

    def ask(self, api_key: int, version: int, body: Fields) -> Fields:
        self.send(api_key, version, body)
        message = read_response(self.receive(), api_key, version)
        assert message.correlation_id == self.number
        assert message.problem is None
        assert message.body is not None
        return message.body

    def is_closed(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True


@contextmanager
def open_connection(running: Running) -> Iterator[Connection]:
    connection = Connection(running)
    with connection.socket:
        yield connection


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    write_segment(tmp_path / "orders-0", [NewBatch(RECORDS, base_offset=10 * number) for number in range(10)])
    (tmp_path / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    return tmp_path / "orders-0"


@pytest.fixture
def running(partition: Path) -> Iterator[Running]:
    with serving(partition) as running:
        yield running


@pytest.fixture
def client(running: Running) -> Iterator[Connection]:
    with open_connection(running) as connection:
        yield connection


def fetch(offset: int = 0, **fields: Any) -> Fields:
    wanted = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": fields.pop("partitionMaxBytes", 1 << 20)}
    topics = [{"topic": "orders", "topicId": fields.pop("topicId", TOPIC_ID), "partitions": [wanted]}]
    return {"maxWaitMs": 0, "minBytes": 1, "maxBytes": 1 << 20, "replicaId": -1, "topics": topics, **fields}


def partition_of(answer: Fields) -> Fields:
    (topic,) = answer["responses"]
    (part,) = topic["partitions"]
    found: Fields = part
    return found


@for_each("version", range(4, 19))
def test_fetch_gives_the_batches_as_they_lie(client: Connection, partition: Path, version: int) -> None:
    part = partition_of(client.ask(FETCH, version, fetch()))
    assert part["records"] == (partition / f"{0:020}.log").read_bytes()
    assert (part["errorCode"], part["highWatermark"], part["lastStableOffset"]) == (0, 100, 100)
    assert part["abortedTransactions"] is None


def test_fetch_sends_whole_batches_from_the_one_with_the_offset(client: Connection) -> None:
    size = len(batch_bytes(NewBatch(RECORDS)))
    records = partition_of(client.ask(FETCH, 11, fetch(35, partitionMaxBytes=2 * size + 1)))["records"]
    assert len(records) == 2 * size
    assert int.from_bytes(records[:8], "big") == 30


def test_records_are_sent_by_the_system_and_not_read(client: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    by_system = os.sendfile

    def counted(*arguments: Any) -> int:
        sent.append(by_system(*arguments))
        return sent[-1]

    monkeypatch.setattr(os, "sendfile", counted)
    records = partition_of(client.ask(FETCH, 16, fetch()))["records"]
    assert len(records) - KEPT_BACK == sum(sent) > 0


def test_what_was_checked_once_is_not_read_again(client: Connection) -> None:
    first = partition_of(client.ask(FETCH, 11, fetch()))["records"]
    read_before = bytes_read()
    for _ in range(50):
        assert partition_of(client.ask(FETCH, 11, fetch()))["records"] == first
    assert bytes_read() - read_before < 50 * len(first) * 1.5  # bytes sent by the system count as read


def bytes_read() -> int:
    """Return the bytes that this process has read from the system."""
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text(encoding="ascii").splitlines())
    return int(counters["rchar"])


@pytest.mark.parametrize(("offset", "error"), [(-1, 1), (101, 1), (100, 0), (0, 0)])
def test_offsets_outside_of_the_log_are_out_of_range(client: Connection, offset: int, error: int) -> None:
    part = partition_of(client.ask(FETCH, 12, fetch(offset)))
    assert part["errorCode"] == error
    assert part["records"] is not None


@pytest.mark.parametrize(
    ("version", "fields", "error"),
    [
        (12, {"topics": [{"topic": "other", "partitions": [{"partition": 0}]}]}, 3),
        (12, {"topics": [{"topic": "orders", "partitions": [{"partition": 7}]}]}, 3),
        (13, {"topics": [{"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [{"partition": 0}]}]}, 100),
        (13, {"topics": [{"topicId": ZERO_UUID, "partitions": [{"partition": 0}]}]}, 100),
    ],
)
def test_what_is_not_here_is_unknown(client: Connection, version: int, fields: Fields, error: int) -> None:
    assert partition_of(client.ask(FETCH, version, {**fetch(), **fields}))["errorCode"] == error


@pytest.mark.parametrize(
    ("version", "fields", "error"),
    [
        (11, {"replicaId": 2}, 31),
        (15, {"replicaState": {"replicaId": 2, "replicaEpoch": 1}}, 31),
        (11, {"sessionId": 5, "sessionEpoch": 3}, 70),
    ],
)
def test_brokers_and_unknown_sessions_are_refused(client: Connection, version: int, fields: Fields, error: int) -> None:
    answer = client.ask(FETCH, version, fetch(**fields))
    assert (answer["errorCode"], answer["responses"]) == (error, [])


def test_a_fetch_at_the_end_waits(client: Connection) -> None:
    started = time.monotonic()
    part = partition_of(client.ask(FETCH, 12, fetch(100, maxWaitMs=300)))
    assert (part["errorCode"], part["records"]) == (0, b"")
    assert time.monotonic() - started >= 0.3


def test_clients_that_wait_for_other_partitions_wait_on(tmp_path: Path) -> None:
    logs = [write_segment(tmp_path / f"orders-{number}", [NewBatch(RECORDS)]) for number in range(2)]
    more = batch_bytes(NewBatch(RECORDS, base_offset=10))
    with serving(tmp_path) as running, open_connection(running) as first, open_connection(running) as second:
        for number, client in enumerate((first, second)):
            body = fetch(10, maxWaitMs=1000 * PATIENCE)
            body["topics"][0]["partitions"][0]["partition"] = number
            client.send(FETCH, 11, body)
        for number, client, other in ((1, second, first), (0, first, second)):
            with logs[number].open("ab") as log:
                log.write(more)
            assert more in client.receive()
            assert select.select([other.socket], [], [], 0)[0] == []


def test_a_fetch_at_the_end_is_answered_when_the_log_has_grown(client: Connection, partition: Path) -> None:
    added = batch_bytes(NewBatch(RECORDS, base_offset=100))
    client.send(FETCH, 12, fetch(100, maxWaitMs=1000 * PATIENCE))
    with (partition / f"{0:020}.log").open("ab") as log:
        log.write(added)
    message = read_response(client.receive(), FETCH, 12)
    assert message.body is not None
    assert partition_of(message.body)["records"] == added


def test_half_a_batch_is_not_sent_before_the_rest_is_there(client: Connection, partition: Path) -> None:
    added = batch_bytes(NewBatch(RECORDS, base_offset=100))
    with (partition / f"{0:020}.log").open("ab") as log:
        log.write(added[:100])
        log.flush()
        assert partition_of(client.ask(FETCH, 12, fetch(100)))["records"] == b""
        client.send(FETCH, 12, fetch(100, maxWaitMs=1000 * PATIENCE))
        log.write(added[100:])
    message = read_response(client.receive(), FETCH, 12)
    assert message.body is not None
    assert partition_of(message.body)["records"] == added


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_log_that_is_written_anew_while_it_is_read_goes_out_in_whole_batches(
    client: Connection, partition: Path, *, is_replaced: bool
) -> None:
    log = partition / f"{0:020}.log"
    for offset in (0, 10):  # after the second one, the following bytes are checked before they are requested
        assert partition_of(client.ask(FETCH, 11, fetch(offset, partitionMaxBytes=1)))["records"]
    longer = [record._replace(value=b"w" * 1500) for record in RECORDS]
    anew = [NewBatch(longer, base_offset=offset) for offset in range(0, 100, 10)]
    target = log.with_suffix(".swap") if is_replaced else log
    target.write_bytes(b"".join(map(batch_bytes, anew)))
    target.replace(log)
    assert partition_of(client.ask(FETCH, 11, fetch(20, partitionMaxBytes=1)))["records"] == batch_bytes(anew[2])


def test_requests_that_come_together_are_answered_in_order(client: Connection) -> None:
    for offset in (99, 100, 0):
        client.send(FETCH, 12, fetch(offset, maxWaitMs=100))
    client.send(METADATA, 9, {"topics": None})
    assert [int.from_bytes(client.receive()[:4], "big") for _ in range(4)] == [1, 2, 3, 4]


def offset_at(client: Connection, timestamp: int, **fields: Any) -> tuple[int, int]:
    part = {"partitionIndex": 0, "timestamp": timestamp}
    body = {"replicaId": -1, "topics": [{"name": "orders", "partitions": [part]}], **fields}
    (topic,) = client.ask(LIST_OFFSETS, 11, body)["topics"]
    (found,) = topic["partitions"]
    assert found["errorCode"] == 0
    return found["offset"], found["timestamp"]


@for_each(
    "timestamp, found",
    [
        (-1, (100, -1)),
        (-2, (0, -1)),
        (-3, (9, 1_700_000_000_009)),
        (-4, (0, -1)),
        (-5, (-1, -1)),
        (-6, (-1, -1)),
        (0, (0, 1_700_000_000_000)),
        (1_700_000_000_004, (4, 1_700_000_000_004)),
        (1_800_000_000_000, (-1, -1)),
    ],
)
def test_list_offsets_answers_all_times(client: Connection, timestamp: int, found: tuple[int, int]) -> None:
    assert offset_at(client, timestamp) == found


@for_each("version", range(14))
def test_metadata_names_the_topics(client: Connection, running: Running, version: int) -> None:
    answer = client.ask(METADATA, version, {"topics": [] if version == 0 else None})
    (broker,) = answer["brokers"]
    assert (broker["host"], broker["port"]) == running.address
    (topic,) = answer["topics"]
    assert (topic["name"], topic["errorCode"]) == ("orders", 0)
    (part,) = topic["partitions"]
    assert part["leaderId"] == broker["nodeId"]
    assert version < 10 or topic["topicId"] == TOPIC_ID


def test_bytes_after_a_request_are_ignored_as_by_brokers(client: Connection) -> None:
    frame = request(METADATA, 13, {"topics": None}) + bytes(3)  # as librdkafka 2.16 asks for all topics
    client.socket.sendall(len(frame).to_bytes(4, "big") + frame)
    message = read_response(client.receive(), METADATA, 13)
    assert message.body is not None
    assert [topic["name"] for topic in message.body["topics"]] == ["orders"]


def test_what_clients_say_stays_in_its_line(client: Connection, running: Running) -> None:
    client.ask(FIND_COORDINATOR, 4, {"coordinatorKeys": ["a\nkseg: forged\x1b[2J" + "x" * 1000]})
    client.send(FIND_COORDINATOR, 4, {})
    client.receive()
    line = next(line for line in running.requests if "forged" in line)
    assert line.isprintable()
    assert len(line) < 300


def test_metadata_creates_nothing(client: Connection) -> None:
    asked = {"topics": [{"name": "new"}], "allowAutoTopicCreation": True}
    assert [topic["errorCode"] for topic in client.ask(METADATA, 9, asked)["topics"]] == [3]
    by_id = {"topics": [{"name": None, "topicId": TOPIC_ID}, {"name": None, "topicId": "AAAAAAAAAAAAAAAAAAAAAQ"}]}
    assert [topic["errorCode"] for topic in client.ask(METADATA, 12, by_id)["topics"]] == [0, 100]


@pytest.mark.parametrize("version", range(6))
def test_api_versions_lists_what_is_answered(client: Connection, version: int) -> None:
    answer = client.ask(API_VERSIONS, version, {"clientSoftwareName": "test", "clientSoftwareVersion": "1"})
    found = {row["apiKey"]: (row["minVersion"], row["maxVersion"]) for row in answer["apiKeys"]}
    assert found.items() >= {0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 17: (0, 1), 18: (0, 5), 36: (0, 2)}.items()


def test_api_versions_are_those_of_a_broker(client: Connection) -> None:
    of_broker = next(
        frame.message.body
        for frame in recorded_frames()
        if frame.message.kind == "response" and frame.message.api_key == API_VERSIONS and frame.message.body
    )
    known = {row["apiKey"]: (row["minVersion"], row["maxVersion"]) for row in of_broker["apiKeys"]}
    answer = client.ask(API_VERSIONS, 4, {"clientSoftwareName": "test", "clientSoftwareVersion": "1"})
    found = {row["apiKey"]: (row["minVersion"], row["maxVersion"]) for row in answer["apiKeys"]}
    assert {key: versions for key, versions in found.items() if key != API_VERSIONS}.items() <= known.items()


def test_every_version_that_the_schemas_have_is_answered() -> None:
    """A version added to the schemas is neither offered nor answered before its handler's row has it."""
    missing = {
        api_name(api.key): versions.last
        for api in APIS.values()
        if (versions := version_range(REQUESTS[api.key].versions)) != api.versions
    }
    assert missing == {}


def test_unknown_api_versions_are_answered_in_the_first_version(client: Connection) -> None:
    client.socket.sendall(bytes.fromhex("0000000f 0012 0020 00000001 000474657374 00"))
    message = read_response(client.receive(), API_VERSIONS, 32)
    assert message.body is not None
    assert (message.body_version, message.body["errorCode"]) == (0, 35)


@pytest.mark.parametrize("version", [3, 8, 13])
def test_produce_is_refused(client: Connection, version: int) -> None:
    part = {"index": 0, "records": b"x"}
    topics = [{"name": "orders", "topicId": TOPIC_ID, "partitionData": [part]}]
    answer = client.ask(PRODUCE, version, {"acks": 1, "timeoutMs": 1, "topicData": topics})
    assert [each["errorCode"] for each in answer["responses"][0]["partitionResponses"]] == [29]


class Store:
    """The remote bytes of a log, until they fail."""

    def __init__(self, content: bytes) -> None:
        self.content, self.size, self.has_failed = content, len(content), False

    def check(self) -> None:
        """Accept: nothing is needed."""

    def read(self, position: int, size: int) -> bytes:
        if self.has_failed:
            raise ClusterError("can't be read: no answer", "s3://bucket/orders")
        return self.content[position : position + size]

    def stretch_end(self, position: int) -> int:
        return self.size


def test_store_that_fails_while_records_are_sent_closes_the_connection_and_is_named(partition: Path) -> None:
    log = partition / f"{0:020}.log"
    store = Store(log.read_bytes())
    log.unlink()
    placed = Placement(partition, str(partition)).path
    (placed / log.name).let_stand_for(store)
    with serving(placed) as running, open_connection(running) as client:
        assert partition_of(client.ask(FETCH, 11, fetch()))["records"] == store.content
        store.has_failed = True
        client.send(FETCH, 11, fetch())
        with pytest.raises(EOFError):
            client.receive()
        with open_connection(running) as other:
            assert other.ask(METADATA, 9, {"topics": None})["topics"]
    assert any("s3://bucket/orders: can't be read: no answer: closed" in line for line in running.requests)
    assert running.said == []


def test_apis_that_are_not_served_close_the_connection(client: Connection, running: Running) -> None:
    client.send(62, 0, {})  # BrokerRegistration
    assert client.is_closed()
    assert any("BrokerRegistration v0: not served: closed" in line for line in running.requests)


def test_no_client_id_makes_other_lines(client: Connection, running: Running) -> None:
    frame = request(METADATA, 9, {"topics": []}, client_id="a\nb\x1b[1m")
    client.socket.sendall(len(frame).to_bytes(4, "big") + frame)
    client.receive()
    assert client.ask(METADATA, 9, {"topics": None})["topics"]
    assert "a?b?[1m Metadata v9" in running.requests[0]


@pytest.mark.parametrize(
    "sent",
    [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"GET / HTTP/1.1\r\n\r\n", bytes.fromhex("16030100c8010000"), bytes(4)],
    ids=["2-gib", "negative", "http", "tls", "empty"],
)
def test_what_is_no_request_closes_its_connection_alone(running: Running, client: Connection, sent: bytes) -> None:
    with open_connection(running) as other:
        other.socket.sendall(sent)
        assert other.is_closed()
    assert client.ask(METADATA, 9, {"topics": None})["topics"]


def test_half_a_request_holds_up_nobody(running: Running, client: Connection) -> None:
    with open_connection(running) as other:
        other.socket.sendall(b"\0\0\0\x40\0\x12")
        assert client.ask(METADATA, 9, {"topics": None})["topics"]


def test_a_slow_reader_holds_up_nobody(running: Running, client: Connection) -> None:
    with open_connection(running) as other:
        for _ in range(500):
            other.send(FETCH, 12, fetch())
        assert client.ask(METADATA, 9, {"topics": None})["topics"]


def test_strict_answers_an_error_where_the_log_is_damaged(partition: Path) -> None:
    size = len(batch_bytes(NewBatch(RECORDS)))
    log = partition / f"{0:020}.log"
    content = bytearray(log.read_bytes())
    content[4 * size - 1] ^= 1
    log.write_bytes(content)
    with serving(partition, settings=ServeSettings(is_strict=True)) as running, open_connection(running) as client:
        assert len(partition_of(client.ask(FETCH, 12, fetch(0)))["records"]) == 3 * size
        assert partition_of(client.ask(FETCH, 12, fetch(30)))["errorCode"] == 2
        assert len(partition_of(client.ask(FETCH, 12, fetch(40)))["records"]) == 6 * size


def test_damage_is_passed_over_and_named_once(partition: Path) -> None:
    size = len(batch_bytes(NewBatch(RECORDS)))
    log = partition / f"{0:020}.log"
    content = bytearray(log.read_bytes())
    content[4 * size - 1] ^= 1
    log.write_bytes(content)
    with serving(partition) as running, open_connection(running) as client:
        for _ in range(2):
            assert partition_of(client.ask(FETCH, 12, fetch(0)))["records"] == content[: 3 * size] + content[4 * size :]
        assert [line.removeprefix(str(log)) for line in running.said] == [
            f": position {3 * size}: bad-crc: of a batch: offsets 30 to 39; kseg passes over it"
        ]


def test_a_directory_that_vanishes_is_named_once(partition: Path) -> None:
    with serving(partition) as running, open_connection(running) as client:
        shutil.rmtree(partition)
        for _ in range(2):
            assert partition_of(client.ask(FETCH, 12, fetch(0)))["errorCode"] == 56
        (line,) = running.said
        assert line.startswith("orders-0: can no longer be read, so clients get an error: ")


def test_the_high_watermark_of_the_checkpoint_bounds_what_is_served(partition: Path) -> None:
    (partition.parent / "replication-offset-checkpoint").write_text("0\n1\norders 0 40\n")
    settings = ServeSettings(high_watermark="checkpoint")
    with serving(partition, settings=settings) as running, open_connection(running) as client:
        part = partition_of(client.ask(FETCH, 12, fetch(0)))
        assert part["highWatermark"] == 40
        assert len(part["records"]) == 4 * len(batch_bytes(NewBatch(RECORDS)))
        assert offset_at(client, -1) == (40, -1)


def test_the_log_starts_where_the_checkpoint_says(partition: Path) -> None:
    (partition.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 20\n")
    with serving(partition) as running, open_connection(running) as client:
        assert offset_at(client, -2) == (20, -1)
        assert partition_of(client.ask(FETCH, 12, fetch(19)))["errorCode"] == 1
        assert int.from_bytes(partition_of(client.ask(FETCH, 12, fetch(20)))["records"][:8], "big") == 20


def test_aborted_transactions_are_named_to_those_who_read_committed() -> None:
    from kseg.log.committed import read_committed
    from kseg.log.partition import PartitionLog

    directory = golden.ROOT / "logs" / "2.3.1" / "txn-1"
    partition = PartitionLog(directory)
    spans = read_committed(partition.segments, partition).aborted
    wanted = {(producer_id, first) for producer_id, found in spans.items() for first, _ in found}
    with serving(directory) as running, open_connection(running) as client:
        topics = [
            {"topic": "txn", "partitions": [{"partition": 1, "fetchOffset": start, "partitionMaxBytes": 1 << 20}]}
            for start in [partition.log_start_offset()]
        ]
        part = partition_of(client.ask(FETCH, 11, fetch(topics=topics, isolationLevel=1)))
    found = [(each["producerId"], each["firstOffset"]) for each in part["abortedTransactions"]]
    assert found == sorted(found, key=lambda each: each[1])
    assert set(found) <= wanted
    assert found


def test_aborts_in_a_segment_that_grew_before_it_was_closed_are_named(client: Connection, partition: Path) -> None:
    assert partition_of(client.ask(FETCH, 11, fetch(90, isolationLevel=1)))["abortedTransactions"] == []
    aborted = NewBatch(RECORDS, 100, 7, 0, is_transactional=True)
    end = marker(ABORT, aborted)
    client.send(FETCH, 11, fetch(100, isolationLevel=1, maxWaitMs=1000 * PATIENCE))
    write_segment(partition, [NewBatch(RECORDS, end.next_offset)], end.next_offset)
    with (partition / f"{0:020}.log").open("ab") as log:
        log.write(batch_bytes(aborted) + batch_bytes(end))
    message = read_response(client.receive(), FETCH, 11)
    assert message.body is not None
    assert partition_of(message.body)["abortedTransactions"] == [{"producerId": 7, "firstOffset": 100}]


def test_replicas_on_several_disks_are_one_partition(tmp_path: Path) -> None:
    write_segment(tmp_path / "disk1" / "orders-0", [NewBatch(RECORDS)])
    write_segment(tmp_path / "disk2" / "orders-0", [NewBatch(RECORDS), NewBatch(RECORDS, base_offset=10)])
    with serving(tmp_path) as running, open_connection(running) as client:
        assert offset_at(client, -1) == (20, -1)
        assert running.said == ["1 partition in 2 copies"]


def test_partitions_that_are_elsewhere_are_empty(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-2", [NewBatch(RECORDS)])
    with serving(tmp_path) as running, open_connection(running) as client:
        (topic,) = client.ask(METADATA, 9, {"topics": None})["topics"]
        assert [part["partitionIndex"] for part in topic["partitions"]] == [0, 1, 2]
        assert offset_at(client, -1) == (0, -1)
        assert running.said == ["orders: partitions 0, 1 aren't here, and are served as empty"]


@pytest.mark.parametrize("numbers", [(), (range(1, 2),)])
def test_a_topic_has_as_many_partitions_as_the_metadata_tell_whatever_is_chosen(
    numbers: tuple[range, ...], tmp_path: Path
) -> None:
    write_segment(tmp_path / "orders-1", [NewBatch(RECORDS)])
    write_metadata(tmp_path, {"orders": "AAAAAAAAAAAAAAAAAAAABQ"}, count=4)
    choice = PartitionChoice(("orders",), numbers)
    with serving(tmp_path, choice=choice) as running, open_connection(running) as client:
        (topic,) = client.ask(METADATA, 9, {"topics": None})["topics"]
        assert [part["partitionIndex"] for part in topic["partitions"]] == [0, 1, 2, 3]
        assert "orders: partitions 0, 2, 3 aren't here, and are served as empty" in running.said


def test_a_choice_of_partitions_does_not_change_how_many_a_topic_has(tmp_path: Path) -> None:
    for number in range(3):
        write_segment(tmp_path / f"orders-{number}", [NewBatch(RECORDS)])
    with serving(tmp_path, choice=PartitionChoice((), (range(1),))) as running, open_connection(running) as client:
        (topic,) = client.ask(METADATA, 9, {"topics": None})["topics"]
        assert [part["partitionIndex"] for part in topic["partitions"]] == [0, 1, 2]
        assert running.said == []


@pytest.mark.parametrize(
    ("directory", "reason"),
    [
        (b"not-utf-8-\xff-0", "its name isn't UTF-8, so clients couldn't request it"),
        (b"orders-2147483646", "clients count partitions from 0, and a topic has at most 100000"),
    ],
)
def test_a_directory_that_no_client_could_take_hides_no_other(partition: Path, directory: bytes, reason: str) -> None:
    shutil.copytree(os.fsencode(partition), os.path.join(os.fsencode(partition.parent), directory))  # noqa: PTH118  bytes
    with serving(partition.parent) as running, open_connection(running) as client:
        topics = client.ask(METADATA, 12, {"topics": None})["topics"]
        assert [(topic["name"], len(topic["partitions"])) for topic in topics] == [("orders", 1)]
        (said,) = running.said
        assert said.endswith(f"not served: {reason}")
