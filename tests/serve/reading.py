"""Records as clients read them from a server, and as kseg reads them from the disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kseg.errors import DamagedError
from kseg.log.partition import PartitionLog
from kseg.reading.batch import scan_log
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile
from tests.serve.running import PATIENCE, Running


class Got(NamedTuple):
    """A record as its reader sees it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


ODD_NULLS = {
    "135-record-key-length-minus-2": range(40747, 40754),
    "136-record-key-length-minus-2": range(16935, 16944),
    "141-record-value-length-minus-2": range(40747, 40754),
    "142-record-value-length-minus-2": range(16945, 16965),
    "155-record-header-value-minus-2": range(70734, 70742),
    "156-record-header-value-minus-2": range(16121, 16126),
    "233-message-value-length-minus-2": range(45482, 45483),
}
"""Damaged directories with a size below -1, and the offsets of its batch, which no client gets."""


def on_disk(directory: Path) -> list[Got]:
    """Return the records of a partition for consumers: intact, without control records, from the log start on."""
    partition = PartitionLog(directory)
    start, lost = partition.log_start_offset(), ODD_NULLS.get(directory.name, ())
    found = (got for segment in partition.segments for got in _in_log(segment.path))
    return [got for got in found if got.offset >= start and got.offset not in lost]


def _in_log(path: Path) -> Iterator[Got]:
    with LogFile(path) as log_file:
        for batch in scan_log(log_file):
            if isinstance(batch, Damage) or batch.is_control or not batch.is_valid:
                continue
            try:
                records = list(batch.records())
            except DamagedError:
                continue
            for record in records if all(each.is_valid for each in records) else ():
                headers = tuple((header.key, header.value) for header in record.headers)
                yield Got(record.offset, record.timestamp, record.key, record.value, headers)


def by_librdkafka(running: Running, **settings: Any) -> dict[str, list[Got]]:
    """Return all records of all partitions, by `topic-partition`, as confluent-kafka reads them."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": running.bootstrap,
            "group.id": "none",
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
            "check.crcs": True,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
            **settings,
        }
    )
    wanted = [
        TopicPartition(topic.name, number, OFFSET_BEGINNING)
        for topic in running.served.topics.values()
        for number in topic.partitions
    ]
    found: dict[str, list[Got]] = {f"{each.topic}-{each.partition}": [] for each in wanted}
    left = set(found)
    consumer.list_topics(timeout=PATIENCE)  # otherwise it looks for a topic's leader only after half a second
    consumer.assign(wanted)
    while left:
        message = consumer.poll(PATIENCE)
        assert message is not None, f"nothing for {PATIENCE} s; left: {left}"
        name = f"{message.topic()}-{message.partition()}"
        error = message.error()
        if error is None:
            headers = tuple(message.headers() or ())
            timestamp = message.timestamp()[1]
            found[name].append(Got(message.offset(), timestamp, message.key(), message.value(), headers))
        else:
            assert error.code() == KafkaError._PARTITION_EOF, (name, error)
            left.discard(name)
    consumer.close()
    return found


def by_kafka_python(running: Running, **settings: Any) -> dict[str, list[Got]]:
    """Return the same as kafka-python reads them."""
    from kafka import KafkaConsumer, TopicPartition  # type: ignore[import-untyped]

    consumer = KafkaConsumer(bootstrap_servers=running.bootstrap, fetch_max_wait_ms=10, **settings)
    try:
        parts = [TopicPartition(each.topic, each.number) for each in running.served.partitions]
        consumer.assign(parts)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(parts)
        found: dict[str, list[Got]] = {f"{each.topic}-{each.partition}": [] for each in parts}
        while any(consumer.position(each) < ends[each] for each in parts):
            for part, records in consumer.poll(timeout_ms=100).items():
                found[f"{part.topic}-{part.partition}"] += [
                    Got(
                        each.offset,
                        -1 if each.timestamp is None else each.timestamp,
                        each.key,
                        each.value,
                        tuple(each.headers),
                    )
                    for each in records
                ]
        return found
    finally:
        consumer.close()


def by_kafka_python_record(record: Any) -> Got:
    timestamp = -1 if record.timestamp is None else record.timestamp
    return Got(record.offset, timestamp, record.key, record.value, tuple(record.headers))
