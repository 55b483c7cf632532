"""A real broker's tier: the broker, kseg, and kseg's copies return the same records. Needs Java."""

import json
import shutil
from pathlib import Path

import pytest

from tests.log.real_broker import PATIENCE, ServedRecord, make_topics, new_broker, put_in_place, served_records
from tests.run import kseg
from tests.tiered.tiered_broker import TOPIC, change_topic, tiered_broker, wait_until

pytestmark = pytest.mark.kafka

COUNT, SIZE = 5000, 1000
SEGMENTS_IN_TIER = 4


def write(port: int, topic: str) -> None:
    """Write transactions of a hundred records, of which each third is aborted."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "transactional.id": "t", "linger.ms": 5})
    producer.init_transactions(PATIENCE)
    for first in range(0, COUNT, 100):
        producer.begin_transaction()
        for number in range(first, first + 100):
            producer.produce(topic, b"%d " % number + bytes(SIZE), b"k%d" % (number % 9))
        producer.flush(PATIENCE)
        (producer.abort_transaction if first % 300 == 0 else producer.commit_transaction)(PATIENCE)


def records_of(paths: list[str], directory: Path, *options: str) -> list[tuple[int, str]]:
    ran = kseg(["dump", *paths, "-o", "json", "--only", "records", "-q", "--topic", "orders", *options], directory)
    assert ran.stderr == b""
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    return [(each["offset"], each["key"]) for each in found]


def test_records_of_a_tier_are_the_brokers_and_so_are_those_that_were_saved(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tier = tmp_path / "tier"
    broker = tiered_broker(tmp_path_factory, tier)
    logs = broker.logs / "orders-0"

    def is_moved() -> bool:
        bases = sorted(int(path.stem) for path in logs.glob("*.log"))
        return bases[0] > 0 and len(list(tier.rglob("*.log"))) >= SEGMENTS_IN_TIER

    with broker.running("write"):
        make_topics(broker.port, ["orders"], {"orders": TOPIC})
        write(broker.port, "orders")
        wait_until(is_moved, "nothing was moved into the tier")
        change_topic(broker.port, "orders", {"local.retention.ms": "-2"})  # existing segments stay
        served = {
            level: served_records(broker.port, "orders", level) for level in ("read_uncommitted", "read_committed")
        }
    topic_id = (logs / "partition.metadata").read_text()
    together = [str(broker.logs), "--tier", str(tier)]
    for level, expected in served.items():
        assert records_of(together, tmp_path, "--isolation", level, "--no-control") == [
            (offset, (key or b"").decode()) for offset, _, key, _ in expected
        ]
    checked = kseg(["verify", *together, "--topic", "orders"], tmp_path)
    assert (checked.status, checked.stdout) == (0, b"ok\n"), checked.stdout
    saved = kseg(["salvage", str(tier), str(broker.logs), "--topic", "orders", "--to", "saved"], tmp_path)
    assert saved.status == 0, saved.stdout
    assert (tmp_path / "saved" / "orders-0" / "partition.metadata").read_text() == topic_id

    for path in tier.rglob("*.log"):
        path.unlink()  # from now on, all is read from the broker's own disk
    shutil.rmtree(logs)
    shutil.copytree(tmp_path / "saved" / "orders-0", logs)
    (broker.logs / ".kafka_cleanshutdown").unlink()
    with broker.running("read"):
        for level, expected in served.items():
            assert served_records(broker.port, "orders", level) == expected
    check_on_another_cluster(tmp_path / "saved" / "orders-0", served, tmp_path_factory)


def check_on_another_cluster(
    saved: Path, served: dict[str, list[ServedRecord]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Check the loss of a cluster: a new one, without a tier, gives the topic another id."""
    broker = new_broker(tmp_path_factory)
    with broker.running("new"):
        make_topics(broker.port, ["orders"])
    put_in_place(saved, broker.logs / "orders-0")
    (broker.logs / ".kafka_cleanshutdown").unlink()
    with broker.running("taken"):
        for level, expected in served.items():
            assert served_records(broker.port, "orders", level) == expected
