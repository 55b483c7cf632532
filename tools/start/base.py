"""Base disks: small clusters that a broker wrote, stopped cleanly or killed; and their archives."""

import gzip
import io
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from start.cells import COPIES, topics
from start.served import GROUP, MINUTE_MS, START_MS

FOREVER_MS = 50 * 365 * 86_400_000
"""Retention that keeps records of 2024; records with timestamps near 1970 are deleted."""
LONG = 2**31 - 1
SETTINGS: dict[str, object] = {
    "log.index.size.max.bytes": 4096,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "offsets.retention.minutes": LONG,
    "transaction.max.timeout.ms": LONG,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 86_400_000,
    "producer.id.expiration.ms": LONG,
    "log.retention.check.interval.ms": 500,
    "log.initial.task.delay.ms": 300,
    "log.flush.offset.checkpoint.interval.ms": 500,
    "metadata.max.idle.interval.ms": 0,
    "metadata.max.retention.ms": FOREVER_MS,
    "metadata.log.max.record.bytes.between.snapshots": 3000,
    "metadata.log.segment.min.bytes": 8000,
    "internal.metadata.log.segment.bytes": 8000,
    "broker.session.timeout.ms": 1500,
    "broker.heartbeat.interval.ms": 300,
    "auto.create.topics.enable": "false",
}
SEGMENT_BYTES = 1400
TOPIC_SETTINGS = {
    "retention.ms": str(FOREVER_MS),
    "segment.ms": str(FOREVER_MS),
    "index.interval.bytes": "200",
    "segment.index.bytes": "1200",
}
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
RECORDS = 5
KEYS = 3
PATIENCE = 60


def segment_setting(release: str) -> str:
    """Return the setting of a topic's segment size; from 4.1 on the usual one requires a megabyte."""
    return "internal.segment.bytes" if tuple(map(int, release.split(".")[:2])) >= (4, 0) else "segment.bytes"


def make_topics(port: int, release: str) -> None:
    """Create all topics, in order, so that the metadata grows by several batches."""
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    for kind in COPIES:
        own = COMPACTED if kind == "compacted" else {}
        config = {**TOPIC_SETTINGS, segment_setting(release): str(SEGMENT_BYTES), **own}
        for name in topics(kind):
            admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(PATIENCE)


def write_records(port: int, minutes: Iterable[int]) -> None:
    """Write a batch to each topic for each minute; every third transaction is aborted."""
    plain = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "linger.ms": 50})
    transactional = transactional_producer(port, "ends")
    for minute in minutes:
        for kind in ("plain", "compacted"):
            for topic in topics(kind):
                send(plain, topic, minute)
        plain.flush()
        transactional.begin_transaction()
        for topic in topics("transactional"):
            send(transactional, topic, minute)
        transactional.flush()
        (transactional.abort_transaction if minute % 3 == 1 else transactional.commit_transaction)()


def leave_open(port: int, minute: int) -> None:
    """Write a transaction to the transactional topics, and leave it open."""
    producer = transactional_producer(port, "stays-open")
    producer.begin_transaction()
    for topic in topics("transactional"):
        send(producer, topic, minute)
    producer.flush()


def transactional_producer(port: int, name: str) -> Producer:
    """Return a producer whose transactions never time out."""
    settings = {"transactional.id": name, "transaction.timeout.ms": LONG, "linger.ms": 50}
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", **settings})
    producer.init_transactions(PATIENCE)
    return producer


def send(producer: Producer, topic: str, minute: int) -> None:
    """Send a batch of records of one time."""
    for number in range(RECORDS):
        key, value = f"key-{number % KEYS}", f"{topic} {minute} {number}"
        producer.produce(topic, value, key, partition=0, timestamp=START_MS + minute * MINUTE_MS)


def commit(port: int) -> None:
    """Commit offsets of a group, for each kind's topics."""
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{port}", "group.id": GROUP, "enable.auto.commit": False})
    try:
        offsets = [
            TopicPartition(topic, 0, 10 + number) for kind in COPIES for number, topic in enumerate(topics(kind))
        ]
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as error:
        raise SystemExit(f"start_matrix: no commits: {error}") from error
    finally:
        consumer.close()


def pack(disk: Path, archive: Path) -> None:
    """Write a disk as an archive: the same disk gives the same bytes."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(disk.rglob("*")):
            entry = tarfile.TarInfo(path.relative_to(disk).as_posix())
            entry.mtime = START_MS // 1000
            if path.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
            else:
                entry.size, entry.mode = path.stat().st_size, 0o644
                tar.addfile(entry, io.BytesIO(path.read_bytes()))
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(gzip.compress(content.getvalue(), 9, mtime=0))


def unpack(archive: Path, disk: Path) -> None:
    """Unpack an archive's disk; zeros of preallocated indexes take no room."""
    disk.mkdir(parents=True)
    with tarfile.open(archive) as tar:
        for entry in tar:
            path = disk / entry.name
            if entry.isdir():
                path.mkdir()
                continue
            member = tar.extractfile(entry)
            assert member is not None
            content = member.read()
            path.write_bytes(content.rstrip(b"\0"))
            os.truncate(path, len(content))
