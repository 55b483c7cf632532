"""Exports side by side: plain pyarrow, kseg's processes, Spark's tasks, and, given a broker, spark-sql-kafka.

python -m bench.spark [--megabytes 400] [--repeat 3] [--data-set 16k-none …]

Four partitions, copies of one segment that Kafka's record classes made. CPU seconds count all processes of a way, the
JVM too; a session is started once. `plain` writes the same rows from memory, read beforehand: what Parquet alone costs.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from bench.datasets import DATA_SETS, MIB, make_segment
from bench.peers import fetch_jars
from kseg.arrow import record_batches
from kseg.export.run import Export, execute_one, run_export
from kseg.spark import register
from kseg.spark.job import by_spark
from kseg.spark.session import open_session

PARTITIONS = 4
PROCESSES = 2


class Cost(NamedTuple):
    """Of one run, in seconds."""

    wall: float
    cpu: float


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=400, help="of log in all partitions (%(default)s)")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--data-set", action="append", dest="data_sets")
    arguments = parser.parse_args()
    fetch_jars("4.3.1")
    print(f"{'data set':12} {'way':14} {'rows':>9} {'wall s':>7} {'rows/s':>10} {'CPU s':>7}  of plain")
    with (
        open_session(f"local[{PROCESSES}]", {"spark.driver.memory": "1g"}) as spark,
        ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool,
        tempfile.TemporaryDirectory() as work,
    ):
        register(spark)
        for name in arguments.data_sets or ["16k-none"]:
            logs = make_logs(name, arguments.megabytes * MIB // PARTITIONS, Path(work) / name)
            measure_data_set(name, logs, spark, pool, Path(work) / "out", arguments.repeat)


def make_logs(name: str, size: int, logs: Path) -> Path:
    """A log directory of four equal partitions."""
    (data_set,) = (data_set for data_set in DATA_SETS if data_set.name == name)
    segment = make_segment(data_set, size)
    for partition in range(PARTITIONS):
        directory = logs / f"bench-{partition}"
        directory.mkdir(parents=True)
        shutil.copy(segment.path, directory)
    return logs


def measure_data_set(name: str, logs: Path, spark, pool: ProcessPoolExecutor, out: Path, repeat: int) -> None:
    """Runs all ways in turns, and prints their medians."""
    paths = [str(path) for path in sorted(logs.rglob("*.log"))]
    rows = PARTITIONS * sum(batch.num_rows for batch in record_batches(paths[0]))
    wanted = Export((str(logs),), str(out), parallelism=PROCESSES)
    reader = spark.read.format("kseg").option("includeHeaders", "true")
    ways: dict[str, Callable[[], object]] = {
        "plain": lambda: list(pool.map(write_plain, [(path, f"{out}-{i}") for i, path in enumerate(paths)])),
        "kseg export": lambda: run_export(wanted, lambda orders, job: in_pool(pool, orders, job)),
        "spark-export": lambda: run_export(wanted, by_spark(spark, PROCESSES)),
        "kseg to noop": lambda: reader.load(str(logs)).write.format("noop").mode("overwrite").save(),
    }
    costs: dict[str, list[Cost]] = {way: [] for way in ways}
    for number in range(repeat + 1):
        for way, run in ways.items():
            shutil.rmtree(out, ignore_errors=True)
            cost = measure(run)
            if number:  # the first round warms all up
                costs[way].append(cost)
    plain = statistics.median(cost.wall for cost in costs["plain"])
    for way, measured in costs.items():
        wall, cpu = (statistics.median(values) for values in zip(*measured, strict=True))
        print(f"{name:12} {way:14} {rows:9} {wall:7.2f} {rows / wall:10.0f} {cpu:7.2f}  {plain / wall:.2f}", flush=True)


def measure(run: Callable[[], object]) -> Cost:
    """Wall and CPU seconds of this process and of all below it."""
    start, cpu = time.monotonic(), cpu_seconds()
    run()
    return Cost(time.monotonic() - start, cpu_seconds() - cpu)


def cpu_seconds() -> float:
    """Of this process and all below it, ended ones included."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        pid = int(stat.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        ticks[pid] = sum(map(int, fields[11:15]))
    waiting, total = [os.getpid()], 0
    while waiting:
        pid = waiting.pop()
        total += ticks.get(pid, 0)
        waiting += children.get(pid, [])
    return total / os.sysconf("SC_CLK_TCK")


def in_pool(pool: ProcessPoolExecutor, orders: Sequence, job) -> list:  # type: ignore[type-arg]
    """Orders in processes that are there already."""
    return list(pool.map(execute_one, orders, [job] * len(orders)))


_tables: dict[str, pa.Table] = {}


def write_plain(arguments: tuple[str, str]) -> None:
    """A partition's rows as Parquet: read by kseg once, then written from memory."""
    path, out = arguments
    if path not in _tables:
        _tables[path] = pa.Table.from_batches(list(record_batches(path))).drop_columns(["topic"])
    table = _tables[path]
    with pq.ParquetWriter(
        out,
        table.schema,
        compression="zstd",
        use_dictionary=["partition", "timestampType", "headers.list.element.key"],
        column_encoding={"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
    ) as writer:
        writer.write_table(table, row_group_size=300_000)


if __name__ == "__main__":
    main()
