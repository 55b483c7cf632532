"""Transactions of a disk as kseg reads them, and as a broker that is started on it reports them."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from tests.live.transaction_history import Records
from tests.live.wire import open_transactions
from tests.log.real_broker import PATIENCE
from tests.run import kseg

COMMITTED = ("--isolation", "read_committed")


class Answers(NamedTuple):
    """The answers on partition 0 of each topic.

    records: those that consumers of committed records get. stable, end: the last stable offset, and the log's end.
    open: producers and first offsets of open transactions.
    """

    records: Records
    stable: int
    end: int
    open: frozenset[tuple[int, int]]


# --- kseg -------------------------------------------------------------------------------------------------------------


def lines(disk: Path, *arguments: str) -> list[dict[str, object]]:
    ran = kseg([arguments[0], ".", *arguments[1:], "-o", "json"], disk)
    assert ran.status in (0, 1), ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def by_topic(topics: Iterable[str], rows: Iterable[dict[str, object]]) -> dict[str, Records]:
    found: dict[str, set[tuple[int, str]]] = {topic: set() for topic in topics}
    for row in rows:
        if row["topic"] in found:
            value = row.get("value")
            text = value.decode() if isinstance(value, bytes) else str(value)
            found[str(row["topic"])].add((int(str(row["offset"])), text))
    return {topic: frozenset(records) for topic, records in found.items()}


def ask_dump(disk: Path, topics: Sequence[str]) -> dict[str, Records]:
    return by_topic(topics, lines(disk, "dump", "--only", "records", *COMMITTED))


def ask_query(disk: Path, topics: Sequence[str]) -> dict[str, Records]:
    sql = 'SELECT topic, "offset", as_text(value) AS value FROM records'
    ran = kseg(["query", sql, ".", *COMMITTED, "-o", "json"], disk)
    assert ran.status in (0, 1), ran.stderr
    return by_topic(topics, map(json.loads, ran.stdout.splitlines()))


def ask_export(disk: Path, topics: Sequence[str]) -> dict[str, Records]:
    target = disk.parent / "exported"
    ran = kseg(["export", ".", str(target), *COMMITTED], disk)
    assert ran.status in (0, 1), ran.stderr
    return by_topic(topics, pq.read_table(target, columns=["topic", "offset", "value"]).to_pylist())


def of_disk(disk: Path, topics: Sequence[str]) -> dict[str, Answers]:
    """Return kseg's answers."""
    rows = lines(disk, "txns")
    partitions = {str(row["topic"]): row for row in rows if row["type"] == "partition"}
    opened: dict[str, set[tuple[int, int]]] = {topic: set() for topic in topics}
    for row in rows:
        if row["type"] == "transaction" and row["topic"] in opened and row["blocksLastStableOffset"]:
            opened[str(row["topic"])].add((int(str(row["producerId"])), int(str(row["firstOffset"]))))
    return {
        topic: Answers(
            records,
            int(str(partitions[topic]["lastStableOffset"])),
            int(str(partitions[topic]["logEndOffset"])),
            frozenset(opened[topic]),
        )
        for topic, records in ask_dump(disk, topics).items()
    }


# --- the broker -------------------------------------------------------------------------------------------------------


def of_broker(port: int, topics: Sequence[str]) -> dict[str, Answers]:
    """Return a running broker's answers."""
    from confluent_kafka import IsolationLevel

    records = consume(port, topics)
    stable = _ends(port, topics, IsolationLevel.READ_COMMITTED)
    ends = _ends(port, topics, IsolationLevel.READ_UNCOMMITTED)
    opened = open_transactions(port, topics)
    return {topic: Answers(records[topic], stable[topic], ends[topic], frozenset(opened[topic])) for topic in topics}


def consume(port: int, topics: Sequence[str]) -> dict[str, Records]:
    """Return a read_committed consumer's records; it skips batches with a wrong CRC."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    settings = {"group.id": "test", "isolation.level": "read_committed", "enable.partition.eof": True}
    own = {"enable.auto.commit": False, "check.crcs": False, "auto.offset.reset": "earliest", "log_level": 0}
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{port}", **settings, **own})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in topics])
    found: dict[str, set[tuple[int, str]]] = {topic: set() for topic in topics}
    awaited, failed = set(topics), Counter[tuple[str, str]]()
    while awaited and (message := consumer.poll(PATIENCE)) is not None:
        topic, error = message.topic(), message.error()
        if error is None:
            found[topic].add((message.offset(), message.value().decode()))
            continue
        failed[topic, error.str()] += 1
        if error.code() == KafkaError._PARTITION_EOF or failed[topic, error.str()] > 2:
            awaited.discard(topic)
    consumer.close()
    return {topic: frozenset(records) for topic, records in found.items()}


def _ends(port: int, topics: Iterable[str], isolation: object) -> dict[str, int]:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
    wanted = {TopicPartition(topic, 0): OffsetSpec.latest() for topic in topics}
    found = admin.list_offsets(wanted, isolation_level=isolation)
    return {partition.topic: future.result(PATIENCE).offset for partition, future in found.items()}
