"""A consumer gets the same from kseg as from a real broker over the same directory, committed or not.

Needs Java and Maven.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import golden
from tests.serve.reading import Got
from tests.serve.running import serving
from tests.serve.test_clients import LOGS
from tests.serve.test_java_clients import LOGGER, read

if TYPE_CHECKING:
    from tools.kafka_classes import KafkaClasses
    from tools.peer_spark import Broker

pytestmark = pytest.mark.kafka

KAFKAS_OWN = "__"
"""The beginning of the names of a broker's own topics, some of which clients can't read."""


def golden_partitions() -> dict[str, list[Path]]:
    """Return partitions 0 of all releases' brokers, by the names of their topics on the server."""
    return {
        f"{path.name.removesuffix('-0')}_{path.parent.name}".replace(".", "-"): [path]
        for path in sorted(LOGS.glob("[0-9]*/*-0"))
        if not path.name.startswith("_") and any(log.stat().st_size for log in path.glob("*.log"))
    }


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Broker"]:
    sys.path.insert(0, str(golden.ROOT.parent / "tools"))
    import peer_spark

    with peer_spark.serving(golden_partitions(), tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="module")
def consumer(tmp_path_factory: pytest.TempPathFactory) -> "KafkaClasses":
    from tools.kafka_classes import KafkaClasses

    artifacts = ["org.apache.kafka:kafka-clients:4.3.1", LOGGER]
    return KafkaClasses(artifacts, [], tmp_path_factory.mktemp("java"))


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_consumer_gets_the_same(isolation: str, broker: "Broker", consumer: "KafkaClasses") -> None:
    of_broker = records_of(consumer, broker.bootstrap, isolation)
    with serving(broker.logs) as running:
        of_kseg = records_of(consumer, running.bootstrap, isolation)
    assert of_kseg == of_broker
    assert len(of_broker) > 100


def records_of(consumer: "KafkaClasses", bootstrap: str, isolation: str) -> dict[str, list[Got]]:
    found = read(consumer, bootstrap, isolation)
    return {name: records for name, records in found.items() if not name.startswith(KAFKAS_OWN)}
