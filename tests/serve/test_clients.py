"""Clients read the same from a server as `kseg dump` from the disk: all golden directories, healthy and damaged."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kseg.log.committed import read_committed
from kseg.log.partition import PartitionLog
from tests import golden
from tests.loops import for_each, some, some_of_each
from tests.serve.reading import Got, by_librdkafka, on_disk
from tests.serve.running import Running, log_directories, serving
from tests.transactional import TRANSACTIONAL, committed_offsets

LOGS = golden.ROOT / "logs"
BROKERS = sorted(path for path in LOGS.iterdir() if log_directories(path))
LIBRDKAFKA_CANNOT = {
    "by-hand",  # two gzip members in a batch: it reads the first one, and asks again forever
    "242-inner-torn",  # a torn message ends a wrapper: Java reads those before it
    "157-record-header-key-not-utf8",  # Python's binding accepts only UTF-8
    "158-record-header-key-not-utf8",
}
FALLING = {"214-duplicated", "220-offset-lower", "223-offset-negative"}
"""Directories with falling offsets: a client returns none twice, and none below the previous one."""
STRAY = {"078-flip-baseOffset": 1, "098-flip-offset": 1}
"""Damaged directories with a batch whose offset is too large and which is skipped, with its number of records."""


def expected_records(running: Running) -> dict[str, list[Got]]:
    found = {}
    for partition in running.served.partitions:
        assert partition.listed is not None
        found[str(partition)] = on_disk(partition.listed.path)
    return found


def read_by_librdkafka(*paths: Path) -> tuple[dict[str, list[Got]], dict[str, list[Got]]]:
    """Return confluent-kafka's records of the given directories, and the expected ones."""
    with serving(*paths) as running:
        wanted = {
            name: [as_librdkafka(each) for each in records] for name, records in expected_records(running).items()
        }
        read = by_librdkafka(running)
        got = {name: [as_librdkafka(each) for each in records] for name, records in read.items()}
    assert {name for name, records in got.items() if records} <= set(wanted)
    return {name: got[name] for name in wanted}, wanted


def as_librdkafka(record: Got) -> Got:
    """Return the record without the facts that the client lacks: in some formats it has no timestamps up to 0."""
    return record._replace(timestamp=max(record.timestamp, 0))


@for_each("broker", some(BROKERS, 2), ids=lambda path: path.name, shards=2)
def test_librdkafka_reads_what_is_on_the_disk(broker: Path) -> None:
    got, wanted = read_by_librdkafka(*(each for each in log_directories(broker) if each.name not in LIBRDKAFKA_CANNOT))
    assert got == wanted


def test_librdkafka_reads_what_is_intact_on_damaged_disks() -> None:
    cannot = LIBRDKAFKA_CANNOT | FALLING | STRAY.keys()
    directories = [each for each in log_directories(golden.ROOT / "damaged") if each.name not in cannot]
    directories = some_of_each(directories, lambda each: each.name.partition("-")[2])
    assert len(directories) > 130
    got, wanted = read_by_librdkafka(*directories)
    assert got == wanted


def test_a_batch_whose_offset_is_too_large_is_passed_over() -> None:
    got, wanted = read_by_librdkafka(*(golden.ROOT / "damaged" / name for name in STRAY))
    for name, lost in STRAY.items():
        assert set(got[f"{name}-0"]) < set(wanted[f"{name}-0"])
        assert len(wanted[f"{name}-0"]) - len(got[f"{name}-0"]) == lost


def test_offsets_that_fall_stop_no_client() -> None:
    got, wanted = read_by_librdkafka(*(golden.ROOT / "damaged" / name for name in sorted(FALLING)))
    for name, records in got.items():
        assert set(records) <= set(wanted[name])
        assert records[-1] == wanted[name][-1]


@pytest.mark.parametrize("name", TRANSACTIONAL)
def test_librdkafka_reads_what_is_committed(name: str) -> None:
    with serving(LOGS / name) as running:
        (served,) = running.served.partitions
        got = by_librdkafka(running, **{"isolation.level": "read_committed"})[str(served)]
        start = served.offsets().log_start
    assert [record.offset for record in got] == [offset for offset in committed_offsets(LOGS / name) if offset >= start]


@pytest.mark.parametrize("release", ["0.9.0.1", "0.10.2.2", "2.3.1", "4.3.1"])
def test_aiokafka_reads_what_is_on_the_disk(release: str) -> None:
    directories = [each for each in log_directories(LOGS / release) if "lz4" not in each.name]
    with serving(*directories) as running:
        wanted = expected_records(running)
        got = asyncio.run(by_aiokafka(running))
    assert {name: got[name] for name in wanted} == wanted


async def by_aiokafka(running: Running, **settings: Any) -> dict[str, list[Got]]:
    places = [(each.topic, each.number) for each in running.served.partitions]
    return await partitions_by_aiokafka(running.bootstrap, places, **settings)


async def partitions_by_aiokafka(
    bootstrap: str, places: Iterable[tuple[str, int]], **settings: Any
) -> dict[str, list[Got]]:
    """Return the records of partitions, by the names of their directories."""
    from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped]

    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        fetch_max_wait_ms=10,
        auto_offset_reset="earliest",
        check_crcs=True,
        **settings,
    )
    try:
        await consumer.start()
        parts = [TopicPartition(*place) for place in places]
        consumer.assign(parts)
        ends = await consumer.end_offsets(parts)
        found: dict[str, list[Got]] = {f"{each.topic}-{each.partition}": [] for each in parts}
        while any([await consumer.position(each) < ends[each] for each in parts]):
            for part, records in (await consumer.getmany(timeout_ms=100)).items():
                found[f"{part.topic}-{part.partition}"] += [by_aiokafka_record(record) for record in records]
        return found
    finally:
        await consumer.stop()


def by_aiokafka_record(record: Any) -> Got:
    timestamp = -1 if record.timestamp is None else record.timestamp
    return Got(record.offset, timestamp, record.key, record.value, tuple(record.headers))


KCAT = shutil.which("kcat") or shutil.which("kafkacat")


@pytest.mark.skipif(KCAT is None, reason="kcat isn't installed")
def test_kcat_reads_a_topic_to_its_end() -> None:
    assert KCAT is not None
    with serving(LOGS / "4.3.1" / "zstd-0") as running:
        line = [KCAT, "-b", running.bootstrap, "-C", "-t", "zstd", "-o", "beginning", "-e", "-q", "-f", "%o\n"]
        ran = subprocess.run(line, capture_output=True, check=True)
    assert list(map(int, ran.stdout.split())) == [record.offset for record in on_disk(LOGS / "4.3.1" / "zstd-0")]


def test_open_transactions_are_withheld_as_from_dump() -> None:
    directory = LOGS / "4.3.1" / "__consumer_offsets-1"
    partition = PartitionLog(directory)
    stable = read_committed(partition.segments, partition).last_stable_offset
    with serving(directory) as running:
        (served,) = running.served.partitions
        offsets = served.offsets()
        assert served.last_stable_offset(offsets) == (
            offsets.high_watermark if stable is None else max(stable, offsets.log_start)
        )
