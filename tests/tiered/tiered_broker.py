"""A real broker that keeps old segments in Apache's LocalTieredStorage."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.log.real_broker import PATIENCE, RELEASE, Broker, new_broker

SEGMENT = 1 << 20
TOPIC = {
    "remote.storage.enable": "true",
    "local.retention.ms": "1000",
    "segment.bytes": str(SEGMENT),
    "file.delete.delay.ms": "100",
}
_PLUGIN = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"


def tiered_broker(tmp_path_factory: pytest.TempPathFactory, tier: Path) -> Broker:
    """A broker whose tier is a directory; its plugin is in a test jar of Kafka."""
    settings = {
        "remote.log.storage.system.enable": "true",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "remote.log.storage.manager.class.name": _PLUGIN,
        "rsm.config.dir": tier,
        "rlmm.config.remote.log.metadata.topic.replication.factor": 1,
        "rlmm.config.remote.log.metadata.topic.num.partitions": 2,
        "remote.log.manager.task.interval.ms": 500,
        "log.retention.check.interval.ms": 1000,
        "log.initial.task.delay.ms": 500,
    }
    broker = new_broker(tmp_path_factory, settings)
    artifact = f"-Dartifact=org.apache.kafka:kafka-storage:{RELEASE}:jar:test"
    goal = ["dependency:copy", artifact, f"-DoutputDirectory={broker.work / 'jars'}"]
    subprocess.run(["mvn", "-q", "-B", "-Dstyle.color=never", *goal], cwd=broker.work, check=True)
    return broker


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Waits for something that the broker does by itself."""
    end = time.monotonic() + 2 * PATIENCE
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.2)  # the broker says nothing of it
