"""`kseg query` beside DuckDB over an export of the same log, and beside Spark over its data source.

python -m bench.query [--repeat 5] [--no-spark]

A log of 1 GiB, some six million records of 200 bytes, most keys of which come once. The ways take turns, after a round
that warms up; medians. CPU seconds are those of all processes.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from bench.datasets import make_segment
from bench.machine import describe
from bench.peers import fetch_jars
from bench.spark_parts import GIBIBYTE, MASTER, Figure, Times, index_of, measured
from kseg.export.commit.order import execute_here
from kseg.export.planning import Export
from kseg.export.run import run_export
from kseg.query.database import QueryLimits
from kseg.query.session import QuerySession, QuerySources, open_session

QUERIES = {
    "group by key": "SELECT key, count(*) AS n FROM {} GROUP BY key ORDER BY n DESC LIMIT 10",
    "count": "SELECT count(*) FROM {}",
    "bytes of values": "SELECT sum(octet_length(value)) FROM {}",
    "one offset": "SELECT * FROM {} WHERE `offset` = 3000000",
}
SLOWER_THAN_PARQUET, FASTER_THAN_SPARK = 1.5, 3.0


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="repetitions (default %(default)s)")
    parser.add_argument("--no-spark", action="store_true")
    arguments = parser.parse_args()
    fetch_jars("4.3.1")
    print(f"load before: {os.getloadavg()[0]:.1f}", *describe(), sep="\n")
    with TemporaryDirectory(prefix="kseg-bench-") as scratch:
        for figure in figures(Path(scratch), arguments.repeat, has_spark=not arguments.no_spark):
            print(" | ".join(figure), flush=True)
    print(f"load after: {os.getloadavg()[0]:.1f}")


def figures(work: Path, repeat: int, *, has_spark: bool) -> Iterator[Figure]:
    """Return the times of each query in each way, and their ratios."""
    logs, out = work / "logs", work / "out"
    segment = make_segment(GIBIBYTE, 0)
    (logs / "orders-0").mkdir(parents=True)
    for path in (segment.path, index_of(segment.path)):
        (logs / "orders-0" / path.name).symlink_to(path)
    run_export(Export((str(logs),), str(out)), execute_here)
    with ExitStack() as stack:
        session = stack.enter_context(open_session(QuerySources((logs,)), QueryLimits(), print))
        ways: dict[str, Callable[[str], object]] = {
            "kseg query": lambda sql: ours(session, sql.format("orders")),
            "DuckDB over Parquet": over_parquet(stack.enter_context(duckdb.connect()), out),
            **(by_spark(stack, logs) if has_spark else {}),
        }
        for name, sql in QUERIES.items():
            runs = {way: (segment.records, lambda run=run, sql=sql: run(sql)) for way, run in ways.items()}
            times = measured(runs, work / "nothing", repeat)
            yield from rows(name, times)


def rows(name: str, times: dict[str, Times]) -> Iterator[Figure]:
    """Yield a row for each way, with the ratios to kseg."""
    own = times["kseg query"]
    for way, taken in times.items():
        yield Figure(f"{name}: {way}", f"{taken.wall:.2f} s wall, {taken.cpu:.2f} s CPU")
    if name == "group by key":
        ratio = own.wall / times["DuckDB over Parquet"].wall
        reached = "yes" if ratio <= SLOWER_THAN_PARQUET else "no"
        yield Figure(f"{name}: kseg ÷ Parquet", f"{ratio:.2f} times", f"{SLOWER_THAN_PARQUET} times", reached)
        if "spark.sql" in times:
            ratio = times["spark.sql"].wall / own.wall
            reached = "yes" if ratio >= FASTER_THAN_SPARK else "no"
            yield Figure(f"{name}: Spark ÷ kseg", f"{ratio:.2f} times", f"{FASTER_THAN_SPARK} times", reached)


def ours(session: QuerySession, sql: str) -> int:
    """Return the rows of kseg's answer."""
    return sum(batch.num_rows for answer in session.answers(sql.replace("`", '"')) for batch in answer.batches)


def over_parquet(connection: Any, out: Path) -> Callable[[str], object]:
    """Return the rows of DuckDB's answer over the export's files."""

    def run(sql: str) -> object:
        return connection.execute(sql.replace("`", '"').format(f"'{out}/topic=*/*.parquet'")).fetchall()

    return run


def by_spark(stack: ExitStack, logs: Path) -> dict[str, Callable[[str], object]]:
    """Return the rows of Spark's answer over the data source, with as many tasks as processors."""
    from pyspark.sql import SparkSession

    from kseg.spark.data_source import register
    from kseg.spark.job import JAVA_OPTIONS, open_context

    settings = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "8", JAVA_OPTIONS: ""}
    spark = SparkSession(stack.enter_context(open_context(MASTER, settings)))
    register(spark)
    source = spark.read.format("kseg").option("minPartitions", "8").load(str(logs))
    source.createOrReplaceTempView("orders")
    return {"spark.sql": lambda sql: spark.sql(sql.format("orders")).collect()}


if __name__ == "__main__":
    main()
