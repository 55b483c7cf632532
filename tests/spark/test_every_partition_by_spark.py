"""All golden partitions through Spark, at both isolation levels, in all table formats; and a live broker.

The rows match those of independent readers: aiokafka and `kseg dump` for golden partitions, spark-sql-kafka for the
broker.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kseg.export.commit.formats import FORMATS
from tests import golden
from tests.export import every_partition
from tests.live.one_broker import OneBroker
from tests.live.traffic import Traffic
from tests.log.real_broker import PATIENCE, new_broker

sys.path.insert(0, str(golden.ROOT.parent / "tools"))
import peer_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

STEPS = 40
SEED = 17
TOPICS = {"plain": (4, {}), "pay": (4, {}), "compacted": (2, {"cleanup.policy": "compact"})}
WAYS = {"export": ("export",), "spark-export": ("spark-export", "--master", "local[2]")}


def export(way: str, sources: list[Path], out: Path, *options: str) -> int:
    """Export by a separate command, and return its status."""
    command = [sys.executable, "-m", "kseg", *WAYS[way], *map(str, sources), "--to", str(out), *options]
    ran = subprocess.run(command, capture_output=True, check=False)
    assert ran.returncode in (0, 1), ran.stderr.decode()
    return ran.returncode


@pytest.mark.parametrize("isolation", every_partition.ISOLATIONS)
@pytest.mark.parametrize("table_format", FORMATS)
def test_every_partitions_rows_are_those_that_others_read(
    table_format: str, isolation: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    places = every_partition.link_partitions(tmp_path / "logs")
    options = ("--format", table_format, "--isolation", isolation)
    assert export("spark-export", [tmp_path / "logs"], tmp_path / "out", *options) == 1, "some are damaged"
    table = every_partition.TABLES[table_format](tmp_path / "out")
    assert every_partition.differences(places, table, isolation) == []
    with capsys.disabled():
        print(f"\n{table_format}, {isolation}: {table.num_rows} rows of {len(places)} partitions are equal")  # noqa: T201


# --- a live broker ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneBroker]:
    """Yield a running broker with committed and aborted transactions, and an open one."""
    second = tmp_path_factory.mktemp("disks") / "disk2"
    made = new_broker(tmp_path_factory, {"log.cleaner.backoff.ms": 3_600_000}, log_dirs=[second])
    with ExitStack() as running:
        running.enter_context(made.running("live"))
        broker = OneBroker(made, (made.logs, second), 0, running)
        traffic = Traffic(broker.server, TOPICS, SEED)
        traffic.write(STEPS)
        producer = traffic.open_transaction("pay")
        yield broker
        producer.abort_transaction(PATIENCE)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """Yield a session with the connector."""
    from pyspark.sql import SparkSession

    from kseg.spark.job import open_context

    jars = ",".join(map(str, peer_spark.connector_jars(tmp_path_factory.mktemp("jars"))))
    with open_context("local[2]", {"spark.jars": jars, "spark.driver.memory": "1g"}) as context:
        yield SparkSession(context)


@pytest.mark.kafka
@pytest.mark.parametrize("isolation", every_partition.ISOLATIONS)
@pytest.mark.parametrize("way", WAYS)
def test_a_live_brokers_rows_are_the_connectors(
    way: str,
    isolation: str,
    broker: OneBroker,
    session: "SparkSession",
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = {"subscribe": ",".join(TOPICS), "includeHeaders": "true", "kafka.isolation.level": isolation}
    connector = session.read.format("kafka").options(**options, **{"kafka.bootstrap.servers": broker.server}).load()
    topics = [option for name in TOPICS for option in ("--topic", name)]
    status = export(way, list(broker.disks), tmp_path / "out", "--isolation", isolation, *topics)
    report = json.loads((tmp_path / "out" / "_kseg" / "report.json").read_bytes())
    assert (status, report["isWhole"]) == (0, isolation == "read_uncommitted")
    ours = session.read.parquet(str(tmp_path / "out")).select(*connector.columns)
    compared = connector.count()
    assert ours.count() == compared > 0
    assert connector.exceptAll(ours).count() == ours.exceptAll(connector).count() == 0
    with capsys.disabled():
        print(f"\n{way}, {isolation}: {compared} rows of a live broker are the connector's")  # noqa: T201
