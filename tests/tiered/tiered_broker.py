"""A real broker that keeps old segments in Apache's LocalTieredStorage."""

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from zipfile import ZipFile

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


_PLUGIN_RELEASE = "4.3.1"
"""The newest release whose test jar is in Maven's repository; later brokers need classes that have moved since."""
_MOVED = "org/apache/kafka/common/utils/LogContext"


def tiered_broker(tmp_path_factory: pytest.TempPathFactory, tier: Path, release: str = RELEASE) -> Broker:
    """Start a broker whose tier is a directory; its plugin is in a test jar of Kafka."""
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
    broker = new_broker(tmp_path_factory, settings, release)
    jars = broker.work / "jars"
    _fetch(f"org.apache.kafka:kafka-storage:{_PLUGIN_RELEASE}:jar:test", jars)
    if release != _PLUGIN_RELEASE:
        moved = broker.work / "moved"
        _fetch(f"org.apache.kafka:kafka-clients:{_PLUGIN_RELEASE}:jar", moved)
        with ZipFile(next(moved.glob("*.jar"))) as clients, ZipFile(jars / "moved.jar", "w") as jar:
            for name in clients.namelist():
                if name.startswith(_MOVED):
                    jar.writestr(name, clients.read(name))
    return broker


def _fetch(artifact: str, directory: Path) -> None:
    goal = ["dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={directory}"]
    subprocess.run(["mvn", "-q", "-B", "-Dstyle.color=never", *goal], cwd=directory.parent, check=True)


def change_topic(port: int, topic: str, settings: Mapping[str, str]) -> None:
    """Set some of the settings of a topic."""
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(PATIENCE)


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Wait for an automatic action of the broker."""
    end = time.monotonic() + 2 * PATIENCE
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.2)  # the broker gives no sign of it
