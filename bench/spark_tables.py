"""The cost of table formats: CPU seconds of exports of a large segment, compared with a plain pyarrow program."""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from bench.datasets import DataSet, make_segment
from bench.spark_parts import GIBIBYTE, PROCESSES, Figure, Times, at_most, in_pool, index_of, measured, plain

MOST_OVER_PLAIN = 1.1
MOST_OVER_PARQUET = 1.15


def tables(work: Path, repeat: int, data_set: DataSet = GIBIBYTE) -> Iterator[Figure]:
    """Yield CPU seconds of exports in each format; the first round warms up."""
    from kseg.export.commit.formats import FORMATS

    logs, out = work / "logs", work / "out"
    segment = make_segment(data_set, 0)
    (logs / "tables-0").mkdir(parents=True)
    for path in (segment.path, index_of(segment.path)):
        (logs / "tables-0" / path.name).symlink_to(path)
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        ways: dict[str, tuple[int, Callable[[], object]]] = {
            "plain pyarrow": (segment.records, lambda: plain(pool, logs, out)),
            **{name: (segment.records, partial(export_as, name, pool, logs, out)) for name in FORMATS},
        }
        times = measured(ways, out, repeat)
    for name, taken in times.items():
        yield Figure(f"{name}, {data_set.name}", f"{taken.wall:.2f} s wall, {taken.cpu:.2f} s CPU")
    parquet = times["parquet"]
    yield over("kseg export ÷ plain pyarrow", parquet, times["plain pyarrow"], MOST_OVER_PLAIN)
    for name in FORMATS:
        if name != "parquet":
            yield over(f"{name} ÷ parquet", times[name], parquet, MOST_OVER_PARQUET)


def over(work: str, first: Times, second: Times, target: float) -> Figure:
    """Return the CPU seconds of the first as a multiple of the second."""
    return at_most(f"{work}, CPU", first.cpu / second.cpu, "times", target)


def export_as(table_format: str, pool: ProcessPoolExecutor, logs: Path, out: Path) -> object:
    """Export to a table format, in running processes."""
    from kseg.export.planning import Export
    from kseg.export.run import run_export
    from kseg.export.settings import FileOptions

    files = FileOptions(table_format=table_format)
    return run_export(Export((str(logs),), str(out), files=files, parallelism=PROCESSES), in_pool(pool))
