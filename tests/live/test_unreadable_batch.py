"""docs/how-to/unreadable-batch.md on a real broker: a batch with a right CRC and unreadable records.

Needs Java and Maven.
"""

import pytest

from tests import run
from tests.log import edits
from tests.log.real_broker import PATIENCE, Broker, make_topics, new_broker, put_in_place, served_records
from tests.verify.test_verify_kafka import delete_records

pytestmark = pytest.mark.kafka

TOPICS = ("deleted", "dropped", "sliced", "compacted")
BATCHES = 4
BAD = 1
"""The offset of the only record of a batch that then claims gzip, wrongly."""
GZIP = 1
"""The change of the attributes."""


def test_each_way_lets_consumers_go_on(tmp_path_factory: pytest.TempPathFactory) -> None:
    from confluent_kafka import KafkaError, KafkaException

    broker = new_broker(tmp_path_factory)
    with broker.running("before"):
        make_topics(broker.port, TOPICS, {"compacted": {"cleanup.policy": "compact"}})
        write(broker.port)
    for topic in ("deleted", "dropped", "compacted"):
        spoil(broker, topic)
    mend(broker, "dropped", "salvage", "--drop-unreadable", status=1)
    mend(broker, "sliced", "slice", "--drop-offset", str(BAD), status=0)
    with broker.running("after"):
        delete_records(broker.port, {"deleted": BAD + 1})
        with pytest.raises(KafkaException) as refused:
            delete_records(broker.port, {"compacted": BAD + 1})
        assert refused.value.args[0].code() == KafkaError.POLICY_VIOLATION
        assert offsets(broker.port, "deleted") == [2, 3]
        assert offsets(broker.port, "dropped") == offsets(broker.port, "sliced") == [0, 2, 3]


def write(port: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}"})
    for topic in TOPICS:
        for number in range(BATCHES):
            producer.produce(topic, b"value", b"key %d" % number)
            assert producer.flush(PATIENCE) == 0


def spoil(broker: Broker, topic: str) -> None:
    """Make a batch claim gzip, wrongly, under a right CRC."""
    (log,) = edits.logs(broker.logs / f"{topic}-0")
    edits.edit_batch(log, BAD, attributes=GZIP)


def mend(broker: Broker, topic: str, *command: str, status: int) -> None:
    """Replace a partition by a command's result."""
    place, saved = broker.logs / f"{topic}-0", broker.work / topic
    name, *options = command
    ran = run.kseg([name, str(place), *options, "--to", str(saved)], broker.work)
    assert ran.status == status, ran.stderr.decode()
    put_in_place(saved / place.name if name == "salvage" else saved, place)


def offsets(port: int, topic: str) -> list[int]:
    return [offset for offset, _, _, _ in served_records(port, topic)]
