"""Forms of a dump: their common interface, their environment, and the problems of files."""

import os
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING

from kseg.dump.log_steps import LogSummary, Rendering
from kseg.errors import OpenError
from kseg.formats.file_names import FileKind
from kseg.layouts import release_lines as layout
from kseg.layouts.template import IGNORING
from kseg.named_tuple import NamedTuple
from kseg.reading.blocks import Damage
from kseg.releases import Release, value_in
from kseg.system.placed_path import PlacedPath, StrPath
from kseg.system.terminal_text import escaped_text

if TYPE_CHECKING:
    from kseg.decode.record_decoders import RecordDecoder
    from kseg.dump.options import DumpOptions
    from kseg.kernel.entry_points import Output
    from kseg.output.progress import Talk

PIECE = 4096
"""Lines that are yielded at once."""

Columns = tuple[Sequence[int], Sequence[int]]
"""Type of the two numbers of each line."""


class Pairs:
    """Pairs of numbers in the order found, 16 bytes each: an index can have a million."""

    def __init__(self) -> None:
        self._numbers = array("q")

    def add(self, first: int, second: int) -> None:
        """Add a pair of 64-bit numbers."""
        self._numbers.extend((first, second))

    def as_found(self) -> Columns:
        """Return the pairs in the order found."""
        return self._numbers[::2], self._numbers[1::2]

    def last_found_first(self) -> Columns:
        """Return the pairs in the reverse order."""
        return self._numbers[-2::-2], self._numbers[::-2]

    def falling(self) -> Columns:
        """Return the pairs by descending first number; of pairs with the same number only the last found."""
        last = dict(zip(*self.as_found(), strict=True))
        firsts = sorted(last, reverse=True)
        return firsts, [last[first] for first in firsts]


class Reports:
    """Reports of Kafka's tool, by path: absolute, as `absolute_path` returns it."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.mismatches: defaultdict[str, Pairs] = defaultdict(Pairs)
        "Offsets of .index entries, and offsets in the log."
        self.timestamp_mismatches: defaultdict[str, Pairs] = defaultdict(Pairs)
        "Timestamps of .timeindex entries, and the largest timestamps of their batches."
        self.out_of_order_timestamps: defaultdict[str, Pairs] = defaultdict(Pairs)
        "Timestamps of .timeindex entries, and timestamps of the preceding entries."
        self.offsets_not_found: defaultdict[str, Pairs] = defaultdict(Pairs)
        "Offsets of .timeindex entries, and last offsets of the batches found for them; -1 without a batch."
        self.gaps: dict[str, list[tuple[int, int]]] = {}

    def lines(self, most: int | None = None) -> Iterator[str]:
        """Yield the reports in the release's words and order, one or more lines at once.

        Args:
            most: most lines of each file's report; omitted lines are counted.
        """
        last_first = value_in(self.release, layout.LAST_FOUND_FIRST)
        falling = Pairs.last_found_first if last_first else Pairs.falling
        not_found = value_in(self.release, layout.OFFSETS_NOT_FOUND)
        non_consecutive = value_in(self.release, layout.NON_CONSECUTIVE)
        parts: tuple[tuple[str, str, dict[str, Pairs], Callable[[Pairs], Columns]], ...] = (
            (layout.MISMATCHES, layout.MISMATCH, self.mismatches, falling),
            (layout.TIMESTAMP_MISMATCHES, layout.TIMESTAMP_MISMATCH, self.timestamp_mismatches, Pairs.as_found),
            (
                layout.OUT_OF_ORDER_TIMESTAMPS,
                layout.OUT_OF_ORDER_TIMESTAMP,
                self.out_of_order_timestamps,
                Pairs.as_found,
            ),
            (not_found, layout.OFFSET_NOT_FOUND, self.offsets_not_found, Pairs.as_found),
        )
        for header, line, found, in_order in parts:
            for path, pairs in found.items():
                yield header.format(path=escaped_text(path))
                yield from _lines(line, in_order(pairs), most)
        for path, gaps in self.gaps.items():
            yield non_consecutive.format(path=escaped_text(path))
            in_release_order = gaps[::-1] if last_first else sorted(dict(gaps).items())
            yield from _lines(layout.FOLLOWED_BY, _columns(in_release_order), most)


def _columns(pairs: Sequence[tuple[int, int]]) -> Columns:
    return [first for first, _ in pairs], [second for _, second in pairs]


def _lines(line: str, columns: Columns, most: int | None) -> Iterator[str]:
    firsts, seconds = columns
    count = len(firsts) if most is None else min(most, len(firsts))
    for start in range(0, count, PIECE):
        end = min(start + PIECE, count)
        yield "\n".join(map(line.format, firsts[start:end], seconds[start:end]))
    if count < len(firsts):
        yield f"  and {len(firsts) - count} more; `--like latest` shows all"


def absolute_path(path: StrPath) -> str:
    """Return the path as java.io.File makes it absolute.

    `.` and `..` stay; without a current directory the path is unchanged.
    """
    if isinstance(path, PlacedPath):
        return str(path)
    try:
        return os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118  pathlib would remove them
    except OSError:
        return str(path)


class Problems:
    """Problems of one file, or of all files of a dump; each part of the dump adds its own.

    lines: for stderr, after all output. details: problems that `add_problem` noted, without the file's name. reports:
    of Kafka's tool. is_wrong: whether the exit status is 1. unread_batches: batches whose records weren't checked.
    selected: number of selected records, or of batches if only batches are printed.
    """

    def __init__(self, release: Release) -> None:
        self.reports = Reports(release)
        self.lines: list[str] = []
        self.details: list[str] = []
        self.is_wrong = False
        self.unread_batches = 0
        self.selected = 0

    def note(self, line: str) -> None:
        """Note a line that isn't a problem of a file."""
        self.lines.append(f"kseg: {line}")

    def add_problem(self, path: StrPath, problem: str) -> None:
        """Note a problem of a file."""
        self.is_wrong = True
        self.details.append(problem)
        self.lines.append(f"kseg: {path}: {problem}")


class Printing(NamedTuple):
    """The environment of the forms: options, output, problems, stderr, progress bar.

    has_several_files: rows name their file; has_several_partitions: records name their partition. table_output: output
    of tables, None for standard output.
    """

    options: "DumpOptions"
    output: "Output"
    problems: Problems
    talk: "Talk"
    show_progress: Callable[[str, int, int], None]
    has_several_files: bool
    has_several_partitions: bool
    table_output: IO[str] | None = None

    def shown(self, path: StrPath) -> str:
        """Return a path in a line of text: as a release prints it, otherwise escaped for a terminal."""
        return str(path) if self.options.like is not None else escaped_text(str(path))

    def line(self, text: str) -> None:
        """Print a line on stdout."""
        self.output.write(text.encode("utf-8", "surrogateescape") + b"\n")


def require_file(path: StrPath) -> None:
    """Raise OpenError if a file is missing."""
    try:
        os.stat(path)  # noqa: PTH116  an empty path is none, to pathlib it is the current directory
    except OSError as error:
        raise OpenError(f"can't be opened: {error.strerror}", path) from error


class LogRendering(NamedTuple):
    """The rendering of the records of a log, and their decoder, if any."""

    rendering: Rendering
    decoder: "RecordDecoder | None" = None


class Form:
    """A form of output, which prints logs and other files.

    tells_damages_later: damages are lines for stderr; otherwise they are printed in their place. prints_unchanged: the
    rendered text of complete logs is the output; otherwise this process makes rows of it.
    """

    tells_damages_later = True
    prints_unchanged = True

    def __init__(self, printing: Printing) -> None:
        self.printing = printing
        self.options, self.problems = printing.options, printing.problems

    def rendering(self, path: StrPath) -> LogRendering:
        """Return the rendering of the records of a log."""
        raise NotImplementedError

    def print_file(self, path: StrPath, kind: FileKind) -> None:
        """Print a file that isn't a log. Raises OpenError if it can't be opened."""
        raise NotImplementedError

    def begin_log(self, path: StrPath, *, is_continued: bool) -> "Output":
        """Print the heading of a log; return the output for its records.

        is_continued: only appended data follows.
        """
        return self.printing.output

    def pass_over(self, path: StrPath) -> None:
        """Report that a file of an unknown kind isn't printed, as Kafka's tool does.

        Raises OpenError if such reports aren't requested, or the file is missing.
        """
        if self.options.like is not None:
            self.printing.talk.say(IGNORING.format(path=path))
            return
        from kseg.reading.other_files import refusal_of

        require_file(path)
        raise OpenError(refusal_of(path), path)

    def merged_heading(self, path: StrPath) -> bytes:
        """Return the heading of each record of a log among those of other logs."""
        return b""

    def merged_output(self) -> "Output":
        """Print the heading of records of several logs; return the output for them."""
        return self.printing.output

    def damage(self, damage: Damage) -> None:
        """Take a damage at its place in the output."""

    def finish_log(self, path: StrPath, summary: LogSummary, *, is_continued: bool) -> None:
        """Print the end of a log."""

    def note_problems(self, path: StrPath, log: LogRendering, summary: LogSummary) -> None:
        """Note the problems of a log."""
        if summary.records is None:
            self.problems.unread_batches += summary.batches
        self.problems.selected += summary.batches if summary.records is None else summary.records
        self.problems.is_wrong |= summary.is_wrong(path)
        if self.options.like is None and summary.gaps:
            from kseg.findings.kinds import status_of

            self.problems.is_wrong |= bool(status_of("offsets-fall"))
            self.problems.lines += [f"kseg: {path}: {line}" for line in summary.falls()]
        if self.tells_damages_later:
            self.problems.lines += summary.lines(path)
        if log.decoder is not None:
            self._note_failures(path, log.decoder)

    def _note_failures(self, path: StrPath, decoder: "RecordDecoder") -> None:
        """Note undecoded records: wrong data with strict decoding, or in an internal topic chosen by name."""
        self.problems.lines += decoder.summary_lines(path)
        if decoder.first_failure is not None:
            is_named = self.options.internal_decoder is not None
            self.problems.is_wrong |= self.options.is_strict or (is_named and decoder.has_failed)

    def finish(self) -> None:
        """Print the rest."""
