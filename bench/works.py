"""Tables of measured commands, comparisons and their targets."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from bench.datasets import Segment
from bench.measure import Command, Measurement, Sink
from bench.peers import HEADER_WALK, LINES, dump_tool

HOME = Path(__file__).parent
PYTHON = sys.executable
KSEG = str(Path(PYTHON).with_name("kseg"))
# Placeholders in a command: the segment's path, its partition's path, the path of the empty segment after it, an offset
# near its end, and a new directory.
FILE, PARTITION, EMPTY, LATE_OFFSET, NEW = "FILE", "PARTITION", "EMPTY", "LATE OFFSET", "NEW"
FROM_END = 10  # that offset's distance to the end

MIB = 1024 * 1024
PEAK_SIZE = 48 * MIB  # target for kseg's peak memory, without batches
PEAK_BATCHES = 3  # multiple of the largest batch that is added to the target


class Run(NamedTuple):
    """A reader and its work, with the place of its stdout."""

    reader: str
    work: str
    sink: Sink = "null"

    def reads_file(self) -> bool:
        """Return True if the run reads all records."""
        return self.work not in ("help", "pass", "import click", "text of nothing")

    def __str__(self) -> str:
        return f"{self.reader} {self.work}" + ("" if self.sink == "null" else f" ({self.sink})")


class Target(NamedTuple):
    """A target for the median of a ratio."""

    at_least: float = 0.0
    below: float = float("inf")

    def __str__(self) -> str:
        return f"≥ {self.at_least:g}" if self.at_least else f"< {self.below:g}"

    def is_reached(self, ratio: float) -> bool:
        """Return True if the ratio reaches the target."""
        return self.at_least <= ratio < self.below


class Comparison(NamedTuple):
    """A ratio `dividend` ÷ `divisor`, in CPU or wall seconds, for each repetition and each data set.

    start: a run whose seconds are subtracted from the dividend's.
    """

    data_sets: tuple[str, ...]
    dividend: Run
    divisor: Run
    target: Target | None = None
    unit: Literal["CPU", "wall"] = "CPU"
    start: Run | None = None

    def runs(self) -> tuple[Run, ...]:
        """Return the runs that it needs."""
        return (self.divisor, self.dividend) if self.start is None else (self.divisor, self.dividend, self.start)

    def names(self) -> set[str]:
        """Return the words for `--only` that choose it."""
        return {self.divisor.work, *([self.dividend.work] if self.dividend.reader == "kseg" else [])}

    def ratios(self, measurements: Mapping[Run, Sequence[Measurement]]) -> list[float]:
        """Return the ratio of each repetition."""
        seconds = [[self._seconds(measurement) for measurement in measurements[run]] for run in self.runs()]
        return [(dividend - sum(start)) / divisor for divisor, dividend, *start in zip(*seconds, strict=True)]

    def _seconds(self, measurement: Measurement) -> float:
        return measurement.cpu_seconds if self.unit == "CPU" else measurement.wall_seconds


# The command-line arguments for each work, by family of readers.
KSEG_WORKS = {
    "batches": ("dump", "--like", "4.3", "--files", FILE),
    "text": ("dump", "--like", "4.3", "--print-data-log", "--files", FILE),
    "text of nothing": ("dump", "--like", "4.3", "--print-data-log", "--files", EMPTY),
    "json": ("dump", "-o", "json", "--files", FILE),
    "help": ("--help",),
    "shallow": ("dump", "--shallow", "--files", FILE),
    "verify": ("verify", PARTITION),
    "salvage": ("salvage", "--dry-run", PARTITION),
    "reindex": ("reindex", "--dry-run", PARTITION),
    "compact": ("compact", "--dry-run", PARTITION),
    "ls": ("ls", PARTITION),
    "retain": ("retain", PARTITION),
    "txns": ("txns", PARTITION),
    "lookup": ("lookup", PARTITION, "--offset", LATE_OFFSET),
    "slice": ("slice", PARTITION, "--to", NEW),
    "diff": ("diff", PARTITION, PARTITION),
}
KAFKA_WORKS = {
    "batches": ("--files", FILE),
    "text": ("--print-data-log", "--files", FILE),
    "help": ("--help",),
}
# Ways to start kseg: the words before it, and its environment.
KSEG_READERS: dict[str, tuple[tuple[str, ...], tuple[tuple[str, str], ...]]] = {
    "kseg": ((), ()),
    "kseg, twin": ((), (("KSEG_KERNEL", "twin"),)),
    "kseg, zlib": ((), (("PYTHONPATH", str(HOME / "without_isal")),)),
    "kseg, one core": (("taskset", "-c", str(min(os.sched_getaffinity(0)))), ()),
}
PYTHON_READERS = {
    ("kseg", "iterate"): (str(HOME / "iterate.py"), "kseg", FILE),
    ("kseg", "columns"): (str(HOME / "columns.py"), FILE),
    ("kseg", "table"): (str(HOME / "table.py"), PARTITION),
    ("kseg export", "table"): (str(HOME / "export_read.py"), PARTITION),
    ("aiokafka", "iterate"): (str(HOME / "iterate.py"), "aiokafka", FILE),
    ("kafka-python", "iterate"): (str(HOME / "iterate.py"), "kafka-python", FILE),
    ("python", "pass"): ("-c", "pass"),
    ("python", "import click"): ("-c", "import click"),
    ("python -S", "pass"): ("-S", "-c", "pass"),  # without the start-up hooks of installed packages
}


# Programs that know nothing of Kafka, and programs in C: one checks headers and CRCs, the other prints the text.
OTHER_READERS = {
    ("C", "headers and CRC"): (str(HEADER_WALK), FILE),
    ("C", "text"): (str(LINES), FILE),
    ("cp", "slice"): ("sh", "-c", 'mkdir "$1" && cp --reflink=never "$0" "$1/0.log" && sync "$1/0.log"', FILE, NEW),
}


def command(run: Run, segment: Segment, scratch: Path) -> Command:
    """Return the run's command on a segment; its output goes to a new directory within `scratch`."""
    places = {
        FILE: str(segment.path),
        PARTITION: str(segment.partition()),
        EMPTY: str(segment.empty_segment()),
        LATE_OFFSET: str(segment.records - FROM_END),
        NEW: str(scratch / "topic-0"),
    }
    program = _program(run)
    return program._replace(arguments=tuple(places.get(argument, argument) for argument in program.arguments))


def _program(run: Run) -> Command:
    if run.reader.startswith("Kafka "):
        arguments = (*dump_tool(run.reader.removeprefix("Kafka ")), *KAFKA_WORKS[run.work])
        return Command(arguments, exit_status=1 if run.work == "help" else 0)
    if (run.reader, run.work) in PYTHON_READERS:
        return Command((PYTHON, *PYTHON_READERS[run.reader, run.work]))
    if (run.reader, run.work) in OTHER_READERS:
        return Command(OTHER_READERS[run.reader, run.work])
    prefix, environment = KSEG_READERS[run.reader]
    return Command((*prefix, KSEG, *KSEG_WORKS[run.work]), environment)


SIXTEEN_KIB = ("16k-none", "16k-gzip", "16k-snappy", "16k-lz4", "16k-zstd")
SINGLE = ("single-none", "single-lz4")
OTHER = ("1m-zstd", "v1-none", "v1-gzip", "headers", "large-values")
ALL = (*SIXTEEN_KIB, *SINGLE, *OTHER)
TABLES = ("16k-none", "16k-lz4", "single-none", "headers")
PLAIN = ("16k-none", "single-none", "headers")
ITERATED = ("16k-none", "16k-lz4", *SINGLE)

BATCHES, TEXT, JSON = Run("kseg", "batches"), Run("kseg", "text"), Run("kseg", "json")
ITERATE, COLUMNS, HELP = Run("kseg", "iterate"), Run("kseg", "columns"), Run("kseg", "help")
TWIN, ZLIB, ONE_CORE = Run("kseg, twin", "text"), Run("kseg, zlib", "text"), Run("kseg, one core", "text")
KAFKA_BATCHES, KAFKA_TEXT = Run("Kafka 4.3.1", "batches"), Run("Kafka 4.3.1", "text")
KAFKA_39_BATCHES, KAFKA_39_TEXT = Run("Kafka 3.9.1", "batches"), Run("Kafka 3.9.1", "text")
AIOKAFKA = Run("aiokafka", "iterate")
PASS, IMPORT_CLICK = Run("python", "pass"), Run("python", "import click")
SHALLOW, SLICE = Run("kseg", "shallow"), Run("kseg", "slice")
HEADERS, C_TEXT = Run("C", "headers and CRC"), Run("C", "text")
WALKED = ("16k-none", "single-none")
SEARCHING = tuple(Run("kseg", work) for work in ("verify", "salvage", "reindex", "ls", "retain", "txns", "lookup"))
COMPACT = Run("kseg", "compact")
DIFF, VERIFY = Run("kseg", "diff"), Run("kseg", "verify")
TWO_SIDES = 2
# Runs that print the same text.
TEXTS = (TEXT, KAFKA_TEXT, C_TEXT)
# Runs with a bound on memory.
BOUNDED = (BATCHES, TEXT, JSON, SHALLOW, ITERATE, *SEARCHING, SLICE, DIFF)

READING = (
    Comparison(SIXTEEN_KIB, KAFKA_BATCHES, BATCHES, Target(at_least=5)),
    Comparison(SINGLE, KAFKA_BATCHES, BATCHES, Target(at_least=12)),
    Comparison(OTHER, KAFKA_BATCHES, BATCHES),
    Comparison(ALL, KAFKA_39_BATCHES, BATCHES),
    Comparison(("16k-none", "headers"), KAFKA_TEXT, TEXT, Target(at_least=28)),
    Comparison(("v1-none",), KAFKA_TEXT, TEXT, Target(at_least=25)),
    Comparison(("16k-lz4",), KAFKA_TEXT, TEXT, Target(at_least=24)),
    Comparison(SINGLE, KAFKA_TEXT, TEXT, Target(at_least=20)),
    Comparison(("16k-snappy", "16k-zstd"), KAFKA_TEXT, TEXT, Target(at_least=13)),
    Comparison(("16k-gzip",), KAFKA_TEXT, TEXT, Target(at_least=9)),
    Comparison(("16k-gzip",), KAFKA_TEXT, ZLIB, Target(at_least=5)),
    Comparison(("1m-zstd", "v1-gzip", "large-values"), KAFKA_TEXT, TEXT),
    Comparison(ALL, KAFKA_39_TEXT, TEXT),
    Comparison(("16k-none",), Run("Kafka 4.3.1", "text", "pipe"), Run("kseg", "text", "pipe")),
    Comparison(("16k-none",), Run("Kafka 4.3.1", "text", "file"), Run("kseg", "text", "file")),
    Comparison(("16k-none",), KAFKA_TEXT, JSON, Target(at_least=22)),
    Comparison(tuple(name for name in ALL if name != "16k-none"), KAFKA_TEXT, JSON),
    Comparison(("16k-none",), KAFKA_TEXT, TWIN),
    Comparison(("16k-gzip", "16k-zstd", "1m-zstd"), ONE_CORE, TEXT, Target(at_least=1.5), unit="wall"),
    Comparison(("16k-none", "16k-lz4"), KAFKA_TEXT, COLUMNS, Target(at_least=12)),
    Comparison(("16k-none", "16k-lz4"), AIOKAFKA, COLUMNS, Target(at_least=1)),
    Comparison(("16k-zstd", "single-none", "v1-none", "headers"), AIOKAFKA, COLUMNS),
    Comparison(TABLES, Run("kseg export", "table"), Run("kseg", "table"), Target(at_least=1)),
    Comparison(ITERATED, AIOKAFKA, ITERATE, Target(at_least=3)),
    Comparison(("16k-zstd", "v1-none", "headers"), AIOKAFKA, ITERATE),
    Comparison(("16k-none", "single-none", "v1-none"), Run("kafka-python", "iterate"), ITERATE),
)
# Walks through a log batch by batch, compared with a program that only checks headers and CRCs, and with peers.
WALKS = (
    *(Comparison(WALKED, run, HEADERS) for run in (*SEARCHING, COMPACT, SHALLOW, TEXT, JSON)),
    Comparison(WALKED, KAFKA_BATCHES, SHALLOW),
    Comparison(("1g-none",), SLICE, Run("cp", "slice"), Target(below=1.1), unit="wall"),
    Comparison(("1g-none",), SLICE, Run("cp", "slice"), Target(below=1.2)),
    Comparison((*WALKED, "1g-none"), DIFF, VERIFY, Target(below=1.5 * TWO_SIDES)),
)
# The text by a program in C, without and with the start of kseg.
LINES_IN_C = (
    Comparison(PLAIN, TEXT, C_TEXT, Target(below=1.7), start=Run("kseg", "text of nothing")),
    Comparison(PLAIN, TEXT, C_TEXT),
)
START = (
    Comparison(("small",), KAFKA_TEXT, TEXT, Target(at_least=4)),
    Comparison(("small",), TEXT, PASS, Target(below=3.5)),
    Comparison(("small",), TEXT, IMPORT_CLICK, Target(below=1.2)),
    Comparison(("small",), Run("Kafka 4.3.1", "help"), HELP),
    Comparison(("small",), HELP, PASS),
    Comparison(("small",), HELP, IMPORT_CLICK, Target(below=1.2)),
    Comparison(("small",), IMPORT_CLICK, PASS),
    Comparison(("small",), TEXT, Run("python -S", "pass")),
)
GROUPS = {"walks": WALKS, "lines": LINES_IN_C, "start": START}
COMPARISONS = tuple(dict.fromkeys((*READING, *WALKS, *LINES_IN_C, *START)))
