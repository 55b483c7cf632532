"""Parts of the benchmark of Spark that run in separate processes.

`plan DIRECTORY SIZE`, `read DIRECTORY FIRST END`, `start MASTER`.
"""

import os
import resource
import sys
import time
from pathlib import Path

from kseg.cluster.copies import copies_of, find_replicas
from kseg.export.plan import Splitting, plan_orders
from kseg.export.settings import FileOptions, LogSelection, OffsetRange, ReadOptions


def plan(logs: str, target_size: int) -> None:
    """Print seconds, peak bytes and orders of an export's plan."""
    from kseg.export.planning import Export, plan_export

    start = time.monotonic()
    orders = plan_export(Export((logs,), f"{logs}-out", files=FileOptions(target_size=target_size))).orders
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(time.monotonic() - start, peak, len(orders))


def read(logs: str, first: int, end: int) -> None:
    """Print the number of bytes for planning and reading a range of offsets; modules are loaded before."""
    read_range(logs, first, end)
    before = bytes_read()
    read_range(logs, first, end)
    print(bytes_read() - before)


def read_range(logs: str, first: int, end: int) -> None:
    """Plan and read."""
    from kseg.export.read.order_reader import OrderReader

    selection = LogSelection(offsets=OffsetRange(first, end))
    (order,) = plan_orders(copies_of(find_replicas([logs])), selection, Splitting(1 << 40))
    rows = sum(batch.num_rows for batch in OrderReader(order, ReadOptions()).batches())
    assert rows == end - first, rows


def bytes_read() -> int:
    """Return the bytes that this process requested from files."""
    return int(Path("/proc/self/io").read_text().split()[1])


def start(master: str) -> None:
    """Start a default session of Spark, run an empty job, and end both, with the JVM."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master(master).getOrCreate()
    spark.sparkContext.parallelize([0], 1).collect()
    spark.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    {"plan": plan, "read": read, "start": start}[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:]))
