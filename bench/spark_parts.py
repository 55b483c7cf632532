"""Parts of the benchmark of Spark: each takes an empty directory and a number of repetitions, and yields figures."""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import kseg
from bench.datasets import KIB, MIB, DataSet, make_segment
from kseg.index.entries import OffsetIndex
from kseg.index.header_scan import walk_headers
from kseg.index.rebuild import rebuild
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile

PARTITIONS = 4
PROCESSES = 2
MASTER = f"local[{PROCESSES}]"
ROWS = 2_000_000
VALUE = (160, 160)  # some 200 bytes with key and Kafka's own fields
# Sizes for half a million records each.
TOPICS = {
    "none": DataSet("200b-none", value_sizes=VALUE, size=92 * MIB),
    "lz4": DataSet("200b-lz4", codec="lz4", value_sizes=VALUE, size=60 * MIB),
    "zstd": DataSet("200b-zstd", codec="zstd", value_sizes=VALUE, size=43 * MIB),
    "single": DataSet("200b-single", batch_size=1, value_sizes=VALUE, size=120 * MIB),
}
GIBIBYTE = DataSet("gibibyte", value_sizes=VALUE, size=KIB * MIB)
INDEX_INTERVAL = 4096
MANY = 10_000
SPARSE_SIZE = 105 * MIB


class Figure(NamedTuple):
    """A measurement: its subject, the figure with its unit, the target, and whether the figure reaches it."""

    work: str
    figure: str
    target: str = ""
    reached: str = ""


def at_most(work: str, value: float, unit: str, target: float) -> Figure:
    """Return a figure with an upper bound as its target."""
    return Figure(work, f"{value:.2f} {unit}", f"{target} {unit}", "yes" if value <= target else "no")


# --- rows per second -------------------------------------------------------------------------------------------------


class Times(NamedTuple):
    """Rows, and medians of wall and CPU seconds: of this process and its descendants, without the broker."""

    rows: int
    wall: float
    cpu: float

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.wall

    @property
    def cpu_rate(self) -> float:
        """Rows per CPU second."""
        return self.rows / self.cpu


def at_least(work: str, first: Times, second: Times, target: float) -> Figure:
    """Return the first speed as a multiple of the second; by CPU seconds too, which other load disturbs less."""
    ratio = first.rate / second.rate
    figure = f"{ratio:.2f} times ({first.cpu_rate / second.cpu_rate:.2f} by CPU)"
    return Figure(work, figure, f"{target} times", "yes" if ratio >= target else "no")


def rates(work: Path, repeat: int) -> Iterator[Figure]:
    """Yield rows per second of exports and queries, in turns, with one session; the first round warms up."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
    import peer_spark
    from pyspark.sql import SparkSession

    from kseg.spark.data_source import register
    from kseg.spark.job import JAVA_OPTIONS, open_context

    logs = {name: make_topic(name, data_set, work / "logs" / name) for name, data_set in TOPICS.items()}
    rows = {name: PARTITIONS * make_segment(data_set, 0).records for name, data_set in TOPICS.items()}
    jars = ",".join(map(str, peer_spark.connector_jars(work / "connector")))
    served = {"none": sorted(logs["none"].iterdir())}
    (work / "broker").mkdir()
    with (
        peer_spark.serving(served, work / "broker", peer_spark.AS_IN_PRODUCTION) as broker,
        open_context(MASTER, {"spark.jars": jars, "spark.driver.memory": "1g", JAVA_OPTIONS: ""}) as context,
        ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool,
    ):
        spark = SparkSession(context)
        register(spark)
        options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "none", "includeHeaders": "true"}
        connector = spark.read.format("kafka").options(**options).load()
        ours = spark.read.format("kseg").option("includeHeaders", "true").load(str(logs["none"]))
        out = work / "out"
        ways: dict[str, tuple[int, Callable[[], object]]] = {
            "plain pyarrow": (rows["none"], lambda: plain(pool, logs["none"], out)),
            "kseg export": (rows["none"], lambda: export_by(in_pool(pool), logs["none"], out)),
            **{f"spark-export {name}": (rows[name], exporting(context, logs[name], out)) for name in logs},
            "connector to Parquet": (rows["none"], lambda: spark_parquet(connector, out)),
            "kseg source to Parquet": (rows["none"], lambda: spark_parquet(ours, out)),
            "kseg to noop": (rows["none"], lambda: to_noop(ours)),
            "connector to noop": (rows["none"], lambda: to_noop(connector)),
        }
        times = measured(ways, out, repeat)
    for name, taken in times.items():
        yield Figure(name, f"{taken.rate / 1000:.0f} k rows/s, {taken.wall:.2f} s wall, {taken.cpu:.2f} s CPU")
    export = times["spark-export none"]
    yield at_least("export ÷ connector to Parquet", export, times["connector to Parquet"], 5)
    yield at_least("export ÷ plain pyarrow", export, times["plain pyarrow"], 0.6)
    yield at_least("kseg export ÷ spark-export", times["kseg export"], export, 1)
    yield at_least(
        "source to Parquet ÷ connector to Parquet", times["kseg source to Parquet"], times["connector to Parquet"], 1
    )
    for name, target in (("lz4", 0.7), ("zstd", 0.7), ("single", 0.4)):
        yield at_least(f"export of {name} ÷ of none", times[f"spark-export {name}"], export, target)
    yield at_least("kseg to noop ÷ connector to noop", times["kseg to noop"], times["connector to noop"], 2)


def measured(ways: dict[str, tuple[int, Callable[[], object]]], out: Path, repeat: int) -> dict[str, Times]:
    """Return the medians of all ways, run in turns."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for number in range(repeat + 1):
        for name, (_, run) in ways.items():
            shutil.rmtree(out, ignore_errors=True)
            start_time, cpu = time.monotonic(), cpu_seconds()
            run()
            if number:
                taken[name].append((time.monotonic() - start_time, cpu_seconds() - cpu))
    medians = {name: map(statistics.median, zip(*pairs, strict=True)) for name, pairs in taken.items()}
    return {name: Times(ways[name][0], *medians[name]) for name in ways}


def make_topic(name: str, data_set: DataSet, directory: Path) -> Path:
    """Return a log directory of four equal partitions, with indexes."""
    segment = make_segment(data_set, 0)
    for partition in range(PARTITIONS):
        place = directory / f"{name}-{partition}"
        place.mkdir(parents=True)
        shutil.copy(segment.path, place)
        shutil.copy(index_of(segment.path), place)
    return directory


def index_of(log: Path) -> Path:
    """Return the offset index of a segment, as a broker would make it; it is made once."""
    index = log.with_suffix(".index")
    if not index.exists() or index.stat().st_mtime < log.stat().st_mtime:
        with LogFile(log) as log_file:
            index.write_bytes(rebuild(log_file, interval=INDEX_INTERVAL).offset_index)
    return index


def exporting(context: Any, logs: Path, out: Path) -> Callable[[], object]:
    """Export a log directory by Spark."""
    from kseg.spark.job import by_context

    return lambda: export_by(by_context(context, PROCESSES), logs, out)


def export_by(execute: Any, logs: Path, out: Path) -> object:
    """Export a log directory with the given executor of orders."""
    from kseg.export.planning import Export
    from kseg.export.run import run_export

    return run_export(Export((str(logs),), str(out), parallelism=PROCESSES), execute)


def in_pool(pool: ProcessPoolExecutor) -> Any:
    """Return an executor of orders in running processes."""
    return lambda orders, job: list(pool.map(_executed, orders, [job] * len(orders)))


def _executed(order: Any, job: Any) -> Any:
    from kseg.export.commit.order import execute_here

    return next(iter(execute_here([order], job)))


def spark_parquet(frame: Any, out: Path) -> None:
    """Write a source to Parquet by Spark's own job; with the connector, this job is without kseg."""
    frame.write.option("compression", "zstd").partitionBy("topic").parquet(str(out))


def to_noop(frame: Any) -> None:
    """Read all columns, and write nothing."""
    frame.write.format("noop").mode("overwrite").save()


def plain(pool: ProcessPoolExecutor, logs: Path, out: Path) -> None:
    """Write one Parquet file per log, without Spark and without an export's accounts."""
    out.mkdir()
    paths = sorted(logs.rglob("*.log"))
    list(pool.map(write_plain, [(str(path), str(out / f"{path.parent.name}.parquet")) for path in paths]))


def write_plain(arguments: tuple[str, str]) -> None:
    """Write the records of a log as Parquet, with the columns, the encoding and the row groups of an export."""
    path, out = arguments
    writer, waiting, size = None, [], 0
    for batch in kseg.open_segment(path).to_arrow():
        milliseconds = batch.column("timestamp").cast(pa.timestamp("ms", "UTC")).view(pa.int64())
        records = batch.drop_columns(["topic"]).append_column("timestampMs", milliseconds)
        if writer is None:
            writer = pq.ParquetWriter(
                out,
                records.schema,
                compression="zstd",
                use_dictionary=["partition", "timestampType", "headers.list.element.key"],
                column_encoding=dict.fromkeys(("offset", "timestamp", "timestampMs"), "DELTA_BINARY_PACKED"),
            )
        waiting.append(records)
        size += records.nbytes
        if size >= 64 * MIB:
            write_group(writer, waiting)
            waiting, size = [], 0
    if waiting:
        write_group(writer, waiting)
    if writer is not None:
        writer.close()


def write_group(writer: pq.ParquetWriter, batches: list[pa.RecordBatch]) -> None:
    """Write all waiting batches as one row group."""
    table = pa.Table.from_batches(batches)
    writer.write_table(table, row_group_size=table.num_rows)


# --- start, ranges, memory, plans ------------------------------------------------------------------------------------


def start(work: Path, repeat: int) -> Iterator[Figure]:
    """Yield the cost of Spark itself: commands on a small topic, compared with a program that only starts Spark."""
    caches = {name: os.environ | {"XDG_CACHE_HOME": str(work / name)} for name in ("empty", "warm")}
    kseg = [sys.executable, "-m", "kseg"]
    subprocess.run(
        [*kseg, "spark-export", "--prepare-jvm", "--master", MASTER],
        env=caches["warm"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    topic = str(Path(__file__).resolve().parent.parent / "golden" / "logs" / "4.3.1")
    here, by_spark = [*kseg, "export"], [*kseg, "spark-export", "--master", MASTER]
    export = ["--topic", "zstd", topic, str(work / "out")]
    many = [str(make_topic("none", TOPICS["none"], work / "logs")), str(work / "out")]
    bare = [sys.executable, "-m", "bench.spark_probe", "start", MASTER]
    commands = {
        "kseg export, 290 records": ([*here, *export], "empty"),
        "pyspark: a session and an empty job": (bare, "empty"),
        "kseg spark-export, 290 records": ([*by_spark, *export], "empty"),
        "the same after kseg spark-export --prepare-jvm": ([*by_spark, *export], "warm"),
        "kseg export, 2,000,000 records": ([*here, "-j", str(PROCESSES), *many], "empty"),
        "kseg spark-export --prepare-jvm, 2,000,000 records": ([*by_spark, *many], "warm"),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(repeat):
        for name, (command, cache) in commands.items():
            shutil.rmtree(work / "out", ignore_errors=True)
            start_time, cpu = time.monotonic(), children_seconds()
            subprocess.run(command, env=caches[cache], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            taken[name].append((time.monotonic() - start_time, children_seconds() - cpu))
    for name, pairs in taken.items():
        wall, cpu = (statistics.median(values) for values in zip(*pairs, strict=True))
        yield Figure(name, f"{wall:.2f} s wall, {cpu:.2f} s CPU")
    _, peer, cold, warm, many_here, many_by_spark = taken.values()
    yield at_most("kseg export ÷ kseg spark-export, 2,000,000 records", ratio_of(many_here, many_by_spark), "times", 1)
    yield at_most("kseg spark-export ÷ pyspark", ratio_of(cold, peer), "times", 1.15)
    yield at_most("the same after --prepare-jvm", ratio_of(warm, peer), "times", 1.15)
    yield at_most("kseg spark-export after --prepare-jvm", statistics.median(wall for wall, _ in warm), "s", 6)


def ratio_of(pairs: list[tuple[float, float]], peers: list[tuple[float, float]]) -> float:
    """Return the median of the ratios of wall seconds within each repetition."""
    return statistics.median(own[0] / peer[0] for own, peer in zip(pairs, peers, strict=True))


def children_seconds() -> float:
    """Return the CPU seconds of ended child processes and their descendants."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def narrow(work: Path, repeat: int) -> Iterator[Figure]:
    """Yield the bytes that a process reads for a hundred offsets of a segment of 1 GiB."""
    directory = work / "narrow-0"
    directory.mkdir()
    segment = make_segment(GIBIBYTE, 0)
    for path in (segment.path, index_of(segment.path)):
        (directory / path.name).symlink_to(path)
    middle = segment.records // 2
    for name, first, count in (("100 offsets", middle, 100), ("100,000 offsets", middle, 100_000)):
        amounts = [read_amounts(directory, first, first + count) for _ in range(repeat)]
        read, wanted = (statistics.median(values) for values in zip(*amounts, strict=True))
        yield at_most(f"{name} of 1 GiB: read beyond their {wanted / MIB:.2f} MiB", (read - wanted) / MIB, "MiB", 1)


def read_amounts(directory: Path, first: int, end: int) -> tuple[int, int]:
    """Return the bytes of log and index that a separate process reads, and the bytes of the offsets' batches."""
    read = int(probed("read", str(directory), str(first), str(end)))
    (log,) = directory.glob("*.log")
    with LogFile(log) as log_file, OffsetIndex(log.with_suffix(".index"), 0) as index:
        wanted = 0
        for header in walk_headers(log_file, index.lookup(first).position):
            if isinstance(header, Damage) or header.base_offset is None or header.base_offset >= end:
                break
            wanted += header.size if header.last_offset >= first else 0
    return read, wanted


def probed(*arguments: str) -> str:
    """Return the output of a separate process (spark_probe.py)."""
    command = [sys.executable, "-m", "bench.spark_probe", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def memory(work: Path, _: int) -> Iterator[Figure]:
    """Yield the peaks of the processes while Spark exports segments of 92 MiB and of 1 GiB."""
    sizes = {"4 of 92 MiB": [TOPICS["none"]] * PARTITIONS, "1 GiB": [GIBIBYTE]}
    peaks: dict[str, dict[str, int]] = {}
    for name, data_sets in sizes.items():
        logs = work / name.replace(" ", "")
        for number, data_set in enumerate(data_sets):
            segment = make_segment(data_set, 0)
            (logs / f"memory-{number}").mkdir(parents=True)
            for path in (segment.path, index_of(segment.path)):
                (logs / f"memory-{number}" / path.name).symlink_to(path)
        command = [sys.executable, "-m", "kseg", "spark-export", "--master", MASTER, str(logs), str(work / "out")]
        shutil.rmtree(work / "out", ignore_errors=True)
        peaks[name] = peak_sizes([*command, "--conf", "spark.driver.memory=1g"])
        for kind, peak in peaks[name].items():
            yield Figure(f"{kind}, {name}", f"{peak / MIB:.0f} MiB")
    small, large = (taken["largest worker"] for taken in peaks.values())
    yield at_most("largest worker with 1 GiB over 92 MiB", large / small, "times", 1.5)


def peak_sizes(command: list[str]) -> dict[str, int]:
    """Return the peak memory of a command's processes: itself, the JVM, the largest Python worker."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        peaks = {"driver": 0, "JVM": 0, "largest worker": 0}
        while process.poll() is None:
            for pid in descendants(process.pid):
                kind = "driver" if pid == process.pid else "JVM" if is_java(pid) else "largest worker"
                peaks[kind] = max(peaks[kind], peak_size(pid))
            time.sleep(0.05)
    assert process.returncode == 0, command
    return peaks


def is_java(pid: int) -> bool:
    """Return True if a process runs a JVM."""
    try:
        return Path(f"/proc/{pid}/exe").resolve().name == "java"
    except OSError:
        return False


def peak_size(pid: int) -> int:
    """Return a process's peak memory in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * KIB for line in lines if line.startswith("VmHWM")), 0)


def plan(work: Path, repeat: int) -> Iterator[Figure]:
    """10,000 partitions, 1 TiB of sparse logs, with indexes: whole, and cut into four orders each."""
    index = index_of(make_segment(TOPICS["none"], 0).path)
    for number in range(MANY):
        directory = work / f"sparse-{number}"
        directory.mkdir()
        with (directory / "00000000000000000000.log").open("wb") as log:
            log.truncate(SPARSE_SIZE)
        (directory / index.name).symlink_to(index)
    for name, target in (("", 256 * MIB), (", cut by their indexes", 32 * MIB)):
        results = [planned(work, target) for _ in range(min(repeat, 3))]
        seconds, peak, count = (statistics.median(values) for values in zip(*results, strict=True))
        yield at_most(f"plan of 10,000 partitions{name}: {count:.0f} orders", seconds, "s", 10)
        yield Figure(f"peak memory of that{name}", f"{peak / MIB:.0f} MiB")


def planned(logs: Path, target_size: int) -> tuple[float, ...]:
    """Return seconds, peak bytes and orders of a plan, which a separate process makes."""
    return tuple(map(float, probed("plan", str(logs), str(target_size)).split()))


# --- processes -------------------------------------------------------------------------------------------------------


def descendants(pid: int) -> list[int]:
    """Return a process and its descendants."""
    children: dict[int, list[int]] = {}
    for child, (parent, _) in process_table().items():
        children.setdefault(parent, []).append(child)
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


def process_table() -> dict[int, tuple[int, int]]:
    """Return parent and clock ticks by process; the ticks include ended children."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        found[int(stat.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    return found


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its descendants, also ended processes, without a broker."""
    table = process_table()
    own = [pid for pid in descendants(os.getpid()) if pid in table and not is_broker(pid)]
    return sum(table[pid][1] for pid in own) / os.sysconf("SC_CLK_TCK")


def is_broker(pid: int) -> bool:
    """Return True if a process is the peer's broker."""
    try:
        return b"kafka.Kafka\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
