"""The benchmark's page: tables in Markdown, aligned so that they read well on a terminal too."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from bench.building import Speed, speed_rows
from bench.datasets import MIB, DataSet, Segment
from bench.imports import ImportTime
from bench.measure import Measurement
from bench.works import BOUNDED, PEAK_BATCHES, PEAK_SIZE, Comparison, Run

SHOWN_IMPORTS = 8
LIMITS = ("cat", "memcpy", "CRC", "codec", "codec, isal", "write")
Row = tuple[str, ...]


class DataSetResult(NamedTuple):
    """Measurements of one data set."""

    data_set: DataSet
    segment: Segment
    measurements: dict[Run, list[Measurement]]
    failures: dict[Run, str]
    limits: dict[str, float]  # CPU seconds
    comparison: str  # whether all programs with this work printed the same text

    def name(self) -> str:
        """Return the data set's name."""
        return self.data_set.name


def report(
    results: Sequence[DataSetResult],
    comparisons: Sequence[Comparison],
    imports: dict[str, list[ImportTime]],
    speeds: list[Speed],
    circumstances: Sequence[str],
) -> str:
    """Return the page."""
    with_target = [comparison for comparison in comparisons if comparison.target]
    others = [comparison for comparison in comparisons if not comparison.target]
    targets = [*_ratio_rows(results, with_target)]
    sections = (
        ("Where kseg misses its targets", "", (RATIO_COLUMNS, *(row for row in targets if row[-1] != "yes"))),
        ("Where it reaches them", "", (RATIO_COLUMNS, *(row for row in targets if row[-1] == "yes"))),
        ("Other ratios", "", (RATIO_COLUMNS[:-2], *(row[:-2] for row in _ratio_rows(results, others)))),
        ("Peak memory", PEAK_NOTE, (PEAK_COLUMNS, *_peak_rows(results))),
        ("Data sets", DATA_NOTE, (DATA_COLUMNS, *map(_data_row, results))),
        ("Physical limits", LIMIT_NOTE, (("data set", *LIMITS), *map(_limit_row, filter(_has_limits, results)))),
        ("Measurements", RUN_NOTE, (RUN_COLUMNS, *_run_rows(results))),
        ("Building", BUILD_NOTE, (BUILD_COLUMNS, *speed_rows(speeds))),
        ("Imports", IMPORT_NOTE, (IMPORT_COLUMNS, *_import_rows(imports))),
    )
    page = ["# Benchmarks", "\n".join(f"- {line}" for line in circumstances), RATIO_NOTE]
    for title, note, (columns, *rows) in sections:
        if rows:
            page += [f"## {title}", *filter(None, (note, markdown_table(columns, rows)))]
    return "\n\n".join(page) + "\n"


RATIO_NOTE = (
    "A ratio is the seconds of the first ÷ the seconds of the second, in each repetition. Targets apply to the median. "
    "Where a target is a lower bound (≥), kseg is the second. "
    "Without start: the seconds of the same command for an empty segment are subtracted from the first."
)
RATIO_COLUMNS = ("data set", "first", "second", "seconds", "min", "median", "max", "target", "reached")


def _ratio_rows(results: Sequence[DataSetResult], comparisons: Sequence[Comparison]) -> Iterator[Row]:
    for comparison in comparisons:
        for result in results:
            if result.name() in comparison.data_sets:
                yield _ratio_row(result, comparison)


def _ratio_row(result: DataSetResult, comparison: Comparison) -> Row:
    seconds = f"{comparison.unit}{', without start' if comparison.start else ''}"
    start = (result.name(), str(comparison.dividend), str(comparison.divisor), seconds)
    target = str(comparison.target or "")
    for run in comparison.runs():
        if run in result.failures:
            return (*start, "failed", result.failures[run], "", target, "no")
    ratios = comparison.ratios(result.measurements)
    middle = median(ratios)
    reached = "" if comparison.target is None else _yes(comparison.target.is_reached(middle))
    return (*start, *(f"{ratio:.2f}" for ratio in (min(ratios), middle, max(ratios))), target, reached)


PEAK_NOTE = (
    f"Bound: {PEAK_SIZE // MIB} MiB + {PEAK_BATCHES} times the file's largest batch, for all commands but `compact`. "
    "No figure is lower than the benchmark's own memory, which `python pass` shows."
)
PEAK_COLUMNS = ("data set", "run", "largest batch KiB", "peak MiB", "bound MiB", "reached")


def _peak_rows(results: Sequence[DataSetResult]) -> Iterator[Row]:
    for result in results:
        bound = PEAK_SIZE + PEAK_BATCHES * result.segment.largest_batch
        for run in BOUNDED:
            if measurements := result.measurements.get(run):
                peak = max(measurement.peak_size for measurement in measurements)
                largest = f"{result.segment.largest_batch / 1024:.1f}"
                yield result.name(), str(run), largest, _mib(peak), _mib(bound), _yes(peak <= bound)


DATA_NOTE = (
    "Kafka 4.3.1's own record classes wrote the data; in v1, each log entry is a batch. "
    "Equal: the text of kseg is the same as that of the measured peers, Kafka 4.3.1 and C, byte for byte."
)
DATA_COLUMNS = ("data set", "magic", "codec", "MiB", "batches", "records", "largest batch KiB", "equal")


def _data_row(result: DataSetResult) -> Row:
    data_set, segment = result.data_set, result.segment
    counts = f"{segment.batches:,}", f"{segment.records:,}", f"{segment.largest_batch / 1024:.1f}"
    return data_set.name, str(data_set.magic), data_set.codec, _mib(segment.size), *counts, result.comparison


LIMIT_NOTE = "The least CPU seconds of any reader; `bench/limits.py` explains each figure."


def _has_limits(result: DataSetResult) -> bool:
    return bool(result.limits)


def _limit_row(result: DataSetResult) -> Row:
    return result.name(), *(f"{result.limits[name]:.3f}" if name in result.limits else "" for name in LIMITS)


RUN_NOTE = (
    "The figures are medians. Output is the bytes passed to write(). For Kafka, it includes the codecs' native "
    "libraries, which it unpacks (up to 1 MiB)."
)
RUN_COLUMNS = ("data set", "run", "CPU s", "wall s", "peak MiB", "output MiB", "records per CPU s")


def _run_rows(results: Sequence[DataSetResult]) -> Iterator[Row]:
    for result in results:
        for run, measurements in result.measurements.items():
            yield result.name(), str(run), *_run_figures(result, run, measurements)


def _run_figures(result: DataSetResult, run: Run, measurements: Sequence[Measurement]) -> Row:
    if run in result.failures:
        return "failed", "", "", "", ""
    cpu, wall, peak = (median(values) for values in list(zip(*measurements, strict=True))[:3])
    output = measurements[0].output_size
    speed = f"{result.segment.records / cpu:,.0f}" if run.reads_file() else ""
    return f"{cpu:.3f}", f"{wall:.3f}", _mib(peak), "" if output is None else _mib(output), speed


BUILD_NOTE = (
    "Each builder makes batches in memory, of 75 records of 200 bytes, after a run that isn't measured. "
    "`kseg` gets one record at a time, like the peers; `at once` gets all records of a batch together."
)
BUILD_COLUMNS = ("codec", "builder", "records per CPU s", "ratios", "targets", "reached")

IMPORT_NOTE = "The figures include Python's own modules. A module's time doesn't include its own imports."
IMPORT_COLUMNS = ("program", "all ms", "slowest, ms")


def _import_rows(imports: dict[str, list[ImportTime]]) -> Iterator[Row]:
    for program, times in imports.items():
        slowest = ", ".join(f"{each.module} {each.microseconds / 1000:.1f}" for each in times[:SHOWN_IMPORTS])
        yield program, f"{sum(each.microseconds for each in times) / 1000:.1f}", slowest


def markdown_table(columns: Row, rows: Sequence[Row]) -> str:
    """Return a table whose first line has the columns' names."""
    lines = [columns, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join(f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines)


def _mib(size: float) -> str:
    return f"{size / MIB:.1f}"


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"
