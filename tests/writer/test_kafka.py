"""kseg builds the same bytes as Kafka's classes of 4.4.0, and these read them."""

import struct
import subprocess
from collections.abc import Iterator
from typing import IO

import pytest
from hypothesis import HealthCheck, given, settings

from kseg.formats.codes import Codec, TimestampType
from tests.writer.cases import Appended, Case, cases
from tools.kafka_classes import KafkaClasses

pytestmark = pytest.mark.kafka

ARTIFACTS = ["org.apache.kafka:kafka-clients:4.4.0"]
TYPES = {
    TimestampType.NO_TIMESTAMP_TYPE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


class Kafka:
    """A process with Kafka's classes; see tools/BuildRecords.java for its input and output."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin: IO[bytes] = process.stdin
        self.stdout: IO[bytes] = process.stdout

    def build_and_read(self, case: Case, raw: bytes) -> tuple[bytes, list[Appended]]:
        """Return the bytes that Kafka builds for the case, and the records that it reads from some bytes."""
        self.stdin.write(request(case) + with_size(raw))
        self.stdin.flush()
        built = self.bytes() or b""
        records = []
        while self.number("?"):
            place = (self.number("q"), self.number("q"))
            content = (self.bytes(), self.bytes())
            headers = tuple(((self.bytes() or b"").decode(), self.bytes()) for _ in range(self.number("i")))
            records.append((*place, *content, headers))
        return built, records

    def number(self, form: str) -> int:
        form = f">{form}"
        number: int = struct.unpack(form, self.stdout.read(struct.calcsize(form)))[0]
        return number

    def bytes(self) -> bytes | None:
        size = self.number("i")
        return None if size < 0 else self.stdout.read(size)


def with_size(content: bytes | None) -> bytes:
    return struct.pack(">i", -1) if content is None else struct.pack(">i", len(content)) + content


def request(case: Case) -> bytes:
    name = TYPES[case.timestamp_type].encode()
    horizon = -1 if case.delete_horizon_ms is None else case.delete_horizon_ms
    parts = [
        struct.pack(">bbH", case.magic, case.codec, len(name)) + name,
        struct.pack(
            ">qqqhi", case.base_offset, case.log_append_time, case.producer_id, case.producer_epoch, case.base_sequence
        ),
        struct.pack(">??iq", case.is_transactional, case.is_control, case.partition_leader_epoch, horizon),
        struct.pack(">i", len(case.records)),
    ]
    for offset, timestamp, key, value, headers in case.records:
        parts += [
            struct.pack(">qq", offset, timestamp),
            with_size(key),
            with_size(value),
            struct.pack(">i", len(headers)),
        ]
        parts += [with_size(name.encode()) + with_size(content) for name, content in headers]
    return b"".join(parts)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    classes = KafkaClasses(ARTIFACTS, ["BuildRecords"], tmp_path_factory.mktemp("classes"))
    command = classes.command("BuildRecords")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Kafka(process)


def as_read(case: Case) -> list[Appended]:
    """The records as a reader sees them: the append time, or none in v0, in place of their own."""
    if case.magic == 0:
        return [(offset, -1, *rest) for offset, _, *rest in case.records]  # type: ignore[misc]
    if case.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return [(offset, case.log_append_time, *rest) for offset, _, *rest in case.records]  # type: ignore[misc]
    return list(case.records)


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases((Codec.NONE,)))
def test_uncompressed_records_are_kafkas_byte_for_byte(kafka: Kafka, case: Case) -> None:
    raw = case.build().raw
    built, read = kafka.build_and_read(case, raw)
    assert raw == built
    assert read == as_read(case)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases((Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)))
def test_kafka_reads_compressed_records(kafka: Kafka, case: Case) -> None:
    _, read = kafka.build_and_read(case, case.build().raw)
    assert read == as_read(case)
