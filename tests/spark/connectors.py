"""Tables as Spark reads them, with an older Spark that the connectors of Delta and Iceberg support."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from tests import golden

sys.path.insert(0, str(golden.ROOT.parent / "tools"))
import peer_spark

SPARK = Path(sys.prefix) / "spark-4.1"
CONNECTORS = (
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "io.delta:delta-storage:4.4.0",
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
)
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}
"""Settings of Spark; the last three speed up wide tables with few rows."""


def run_with_connectors(module: str, arguments: Sequence[str], work: Path) -> None:
    """Run a program of the tests with the older Spark; its last argument is the list of the connectors' jars."""
    assert SPARK.is_dir(), f"{SPARK} is missing: make .venv/spark-4.1/installed"
    jars = ",".join(map(str, peer_spark.fetched_jars(CONNECTORS, work)))
    command = [sys.executable, "-m", module, *arguments, jars]
    subprocess.run(command, cwd=golden.ROOT.parent, env={**os.environ, "PYTHONPATH": str(SPARK)}, check=True)


def read_by_spark(tables: Sequence[tuple[str, str]], work: Path) -> list[pa.Table]:
    """Return the rows of tables, each by its format and its location."""
    run_with_connectors("tests.spark.connectors", [json.dumps(tables), str(work)], work / "jars")
    return [pa.ipc.open_file(pa.memory_map(str(work / f"{number}.arrow"))).read_all() for number in range(len(tables))]


def main(tables: str, work: str, jars: str) -> None:
    """Read tables, and write their rows."""
    from pyspark.sql import SparkSession

    from kseg.spark.job import open_context

    with open_context("local[2]", {**SETTINGS, "spark.jars": jars}) as context:
        session = SparkSession(context)
        for number, (table_format, location) in enumerate(json.loads(tables)):
            found = session.read.format(table_format).load(location).toArrow()
            path = Path(work, f"{number}.arrow")
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, found.schema) as writer:
                writer.write_table(found)


if __name__ == "__main__":
    main(*sys.argv[1:])
