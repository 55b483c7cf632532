"""A real broker accepts salvaged partitions unchanged, and serves exactly the intact records. Needs Java and Maven."""

import os
import re
from pathlib import Path

import pytest

from kseg import open_segment
from kseg.cluster.cluster import Cluster
from kseg.log.partition import PartitionLog
from kseg.rewrite.salvage import write_salvage
from kseg.rewrite.salvage_plan import plan_salvage
from kseg.store.target import new_directory
from tests.log import edits
from tests.log.real_broker import Broker, ServedRecord, make_topics, new_broker, put_in_place, served_records

pytestmark = pytest.mark.kafka

# Messages of a broker that doesn't accept a log as it is.
REBUILDING = ("Recovering unflushed segment", "Found invalid", "corrupt", "Rebuil", "missing", "runcat", "Deleting")
# Message with the offset from which it reads batches for the state of producers.
READS_FROM = re.compile(r"partition=(saved-\d+)-0.* rebuilding producer state from offset (\d+)")
DAMAGED = [
    "3.6.2/plain-1",
    "2.3.1/txn-1",
    "2.8.2/broker-lz4-0",
    "2.4.1/zstd-0",
    "2.0.1/retained-0",
    "1.1.1/v1-gzip-0",
    "4.3.1/compacted-txn-0",
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Broker:
    return new_broker(tmp_path_factory)


def damage(partition: Path) -> None:
    """Flip a bit in the second batch of the largest segment, and tear the end of the last segment with batches."""
    logs = [log for log in edits.logs(partition) if log.stat().st_size]
    largest = max(logs, key=lambda log: log.stat().st_size)
    data = bytearray(largest.read_bytes())
    position, size = list(edits.v2_batches(largest))[1]
    data[position + size - 3] ^= 0x40
    largest.write_bytes(data)
    os.truncate(logs[-1], logs[-1].stat().st_size - 7)


def salvage_partition(name: str, directory: Path) -> Path:
    partition = edits.copy_partition(directory / "damaged", name)
    damage(partition)
    (found,) = Cluster([partition]).partitions()
    plan = plan_salvage(found)
    assert not plan.is_whole
    with new_directory(directory / "saved" / found.name) as target:
        write_salvage(plan, target)
    return directory / "saved" / found.name / found.name


def intact_records(partition: Path) -> list[ServedRecord]:
    """Return the records of the salvaged logs, without control records, which consumers don't get."""
    found: list[ServedRecord] = []
    for log in edits.logs(partition):
        with open_segment(log) as segment:
            for batch in segment.batches():
                assert batch.is_valid
                if not batch.is_control:
                    found += [(each.offset, each.timestamp, each.key, each.value) for each in batch.records()]
    return found


def indexes_of(partition: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in partition.iterdir() if "index" in path.suffix}


def test_broker_serves_exactly_the_intact_records(broker: Broker, tmp_path: Path) -> None:
    topics = {f"saved-{number}": salvage_partition(name, tmp_path / str(number)) for number, name in enumerate(DAMAGED)}
    with broker.running("first"):
        make_topics(broker.port, list(topics))
    indexes = {topic: indexes_of(saved) for topic, saved in topics.items()}
    for topic, saved in topics.items():
        put_in_place(saved, broker.logs / f"{topic}-0")
    with broker.running("second") as said:
        for topic, saved in topics.items():
            assert served_records(broker.port, topic) == intact_records(saved)
    lines = [line for line in said.read_text().splitlines() if "saved-" in line]
    reads_from = {match[1]: int(match[2]) for match in map(READS_FROM.search, lines) if match}
    assert reads_from == {topic: PartitionLog(saved).read_log_end_offset() for topic, saved in topics.items()}
    assert [line for line in lines if any(word in line for word in REBUILDING)] == []
    for topic, contents in indexes.items():
        there = {name: (broker.logs / f"{topic}-0" / name).read_bytes() for name in contents}
        assert there == contents, f"the broker changed the indexes of {topic}"
    (broker.logs / ".kafka_cleanshutdown").unlink()
    (broker.logs / "recovery-point-offset-checkpoint").unlink()
    with broker.running("third") as said:  # as after a crash: it recovers all of each log
        for topic, saved in topics.items():
            assert served_records(broker.port, topic) == intact_records(saved)
    assert all(any(topic in line and "Recovering unflushed" in line for line in said.open()) for topic in topics)
