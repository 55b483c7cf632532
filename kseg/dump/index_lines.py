"""Lines of offset and time indexes, whose entries are compared with the log as the tool does it."""

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from sys import byteorder
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kseg.dump.checked_batches import BatchReader, NoBatch, wrap_offset
from kseg.dump.forms import Pairs, Problems, absolute_path
from kseg.errors import OpenError, plural
from kseg.formats.codes import NO_TIMESTAMP, Codec
from kseg.formats.file_names import parse_file_name
from kseg.formats.header_fields import (
    OFFSET_INDEX_ENTRY_FIELDS,
    TIME_INDEX_ENTRY_FIELDS,
    FixedFields,
)
from kseg.index.entries import EntryFile
from kseg.layouts import entry_lines as layout
from kseg.layouts.entry_lines import Compared
from kseg.reading.batch import BatchHeader
from kseg.reading.log_file import LogFile
from kseg.releases import Release, value_in
from kseg.system.placed_path import StrPath, as_path

if TYPE_CHECKING:
    from kseg.dump.forms import Printing
    from kseg.dump.options import DumpOptions


Check = TypeVar("Check", bound="_IndexCheck")
LARGEST_LOOKUP = 1 << 28
"""Most bytes of an .index that are used to find positions in the log."""
REBUILT = "delete the segment's indexes while the broker is down, and it rebuilds them at its start"
_DONT_RISE = "offset or position not above the preceding entry's"
_ADVICE: dict[str, str] = {
    NoBatch.TOO_LARGE: "raise it to compare them",
    NoBatch.UNREADABLE: "run `kseg dump` on the log for the reason",
    NoBatch.TOO_FAR: "kseg didn't compare them",
    NoBatch.TOO_COSTLY: "kseg didn't compare them",
}
"""Next steps for entries that can't be compared, if the cause isn't the index."""


def print_offset_index(path: StrPath, printing: "Printing") -> None:
    """Print an `.index`. Raises OpenError if it can't be opened."""
    with _open_log(path, OFFSET_INDEX_ENTRY_FIELDS, ToolOffsetCheck, printing.options, printing.problems) as (
        check,
        batches,
    ):
        if check.is_said_to_be_empty:
            printing.line(layout.IS_EMPTY.format(path=printing.shown(path)))
            check.tell_trailing()
        else:
            _dump_checked(check, batches, layout.OFFSET_INDEX_LINE, printing)


def print_time_index(path: StrPath, printing: "Printing") -> None:
    """Print a `.timeindex`. Raises OpenError if it can't be opened."""
    with _open_log(path, TIME_INDEX_ENTRY_FIELDS, ToolTimeCheck, printing.options, printing.problems) as (
        check,
        batches,
    ):
        _dump_checked(check, batches, layout.TIME_INDEX_LINE, printing)


def _dump_checked(check: "_IndexCheck", batches: BatchReader | None, line: str, printing: "Printing") -> None:
    if printing.options.index_sanity_check:
        if check.is_sane():
            printing.line(layout.SANITY_PASSED.format(path=printing.shown(check.index.name)))
        return
    for entries in check.checked_entries(batches):
        if not printing.options.verify_index_only:
            printing.output.write("".join([line.format(*entry) for entry in entries]).encode())
    check.tell()


def check_offset_index(path: StrPath, options: "DumpOptions", found: Problems) -> None:
    """Find the problems of an `.index`. Raises OpenError if it can't be opened."""
    with _open_log(path, OFFSET_INDEX_ENTRY_FIELDS, ToolOffsetCheck, options, found) as (check, batches):
        if check.is_said_to_be_empty:
            check.tell_trailing()
        else:
            _check(check, batches, options)


def check_time_index(path: StrPath, options: "DumpOptions", found: Problems) -> None:
    """Find the problems of a `.timeindex`. Raises OpenError if it can't be opened."""
    with _open_log(path, TIME_INDEX_ENTRY_FIELDS, ToolTimeCheck, options, found) as (check, batches):
        _check(check, batches, options)


def _check(check: "_IndexCheck", batches: BatchReader | None, options: "DumpOptions") -> None:
    if options.index_sanity_check:
        check.is_sane()
        return
    for _ in check.checked_entries(batches):
        pass  # its problems are noted
    check.tell()


@contextmanager
def _open_log(
    path: StrPath, fields: FixedFields, kind: type[Check], options: "DumpOptions", found: Problems
) -> Iterator[tuple[Check, BatchReader | None]]:
    with EntryFile(path, fields) as index:
        check = kind(index, options.release, found)
        with _open_adjacent_log(path, options, found) as batches:
            yield check, batches


def _adjacent_file(path: StrPath, extension: str) -> Path:
    """Return the file of the same segment with another extension.

    A file with the same suffix (`.deleted`) comes first.
    """
    file = as_path(path)
    stem = file.name.split(".", 1)[0]
    same_suffix = file.with_name(f"{stem}{extension}{parse_file_name(path).suffix or ''}")
    return same_suffix if same_suffix.exists() else file.with_name(stem + extension)


@contextmanager
def _open_adjacent_log(path: StrPath, options: "DumpOptions", found: Problems) -> Iterator[BatchReader | None]:
    """Yield a reader of the log next to an index; without a log, note it and yield None."""
    with ExitStack() as stack:
        reader = None
        try:
            log = stack.enter_context(LogFile(_adjacent_file(path, ".log")))
        except OpenError as error:
            found.add_problem(path, f"kseg couldn't check it, since the log next to it {error.message}")
        else:
            reader = BatchReader(log, options.max_message_size, options.max_decompressed)
        yield reader


class _IndexCheck(ABC):
    """The common part of both kinds of index: their base offset, and the impossible entries."""

    def __init__(self, index: EntryFile, release: Release, found: Problems) -> None:
        self.index = index
        self.release = release
        self.found = found
        self.absolute_path = absolute_path(index.name)
        self.stops_before_zero = value_in(self.release, layout.STOPS_BEFORE_ZERO_ENTRY)
        base_offset = parse_file_name(index.name).base_offset
        if base_offset is None:
            found.add_problem(index.name, "its name has no base offset; offsets are shown as stored")
        self.base_offset = base_offset or 0
        self._problems: dict[str, tuple[int, str]] = {}

    @abstractmethod
    def checked_entries(self, batches: BatchReader | None) -> Iterator[list[tuple[int, int]]]:
        """Yield the entries as lines show them, each compared with its batch, up to a preallocated file's zeros."""

    @abstractmethod
    def insanity(self) -> str | None:
        """Return the reason why a broker would reject the index at startup, or None if it wouldn't."""

    def offset(self, relative_offset: int) -> int:
        """Return the absolute offset."""
        return wrap_offset(self.base_offset + relative_offset)

    def add(self, problem: str, number: int, detail: str) -> None:
        """Count an entry with a problem; the first one's number and detail are kept."""
        count, first = self._problems.get(problem, (0, f"number {number} ({detail})"))
        self._problems[problem] = count + 1, first

    def tell(self) -> None:
        """Report the problems of entries, one line per kind."""
        for problem, (count, first) in self._problems.items():
            entries = "1 entry," if count == 1 else f"{count} entries, the first"
            advice = _ADVICE.get(problem, REBUILT)
            self.found.add_problem(self.index.name, f"{problem}: {entries} {first}; {advice}")
        self.tell_trailing()

    def tell_trailing(self) -> None:
        """Report that the file ends inside an entry, if it does."""
        if self.index.trailing_problem is not None:
            self._add_problem(self.index.trailing_problem)

    def tell_hidden(self, number: int) -> None:
        """Report content after a zero entry, which ends the dump, if there is any."""
        content = self.index.content_after(number)
        if content is not None:
            self._add_problem(
                f"entry {number} is zero and ends the dump, but more entries follow at position {content}"
            )

    def is_sane(self) -> bool:
        """Return True if the index passes a broker's check at its start; note the objection."""
        failure = self.insanity()
        if failure is None and self.index.trailing:
            failure = f"{plural(self.index.size, 'byte is', 'bytes are')} not a whole number of entries"
        if failure is not None:
            self._add_problem(f"sanity check failed: {failure}")
        return failure is None

    def _add_problem(self, problem: str) -> None:
        self.found.add_problem(self.index.name, f"{problem}; {REBUILT}")


class ToolOffsetCheck(_IndexCheck):
    """The check of one `.index`."""

    def __init__(self, index: EntryFile, release: Release, found: Problems) -> None:
        super().__init__(index, release, found)
        self._compared = value_in(self.release, layout.COMPARED)
        self._previous = -1, -1

    @property
    def is_said_to_be_empty(self) -> bool:
        """True if the release reports an index as empty, and nothing else."""
        return self.index.capacity == 0 and value_in(self.release, layout.SAYS_EMPTY)

    def insanity(self) -> str | None:
        """Return the objection of a broker's check at its start, or None if there isn't one."""
        failure = None
        if self.index.capacity:
            last = self.index.entry(self.index.capacity - 1)[0]
            is_strict = value_in(self.release, layout.LAST_OFFSET_ABOVE_BASE)
            if last < 0 or (is_strict and last == 0):
                relation = "not above" if is_strict else "below"
                failure = f"its last offset {self.offset(last)} is {relation} its base offset {self.base_offset}"
        return failure

    def checked_entries(self, batches: BatchReader | None) -> Iterator[list[tuple[int, int]]]:
        """Yield offset and position of the entries."""
        number = 0
        for piece in self.index.pieces():
            shown: list[tuple[int, int]] = []
            for relative_offset, position in piece:
                is_zero = relative_offset == 0 and number > 0
                if batches is not None and not (is_zero and self.stops_before_zero):
                    self._compare(number, relative_offset, position, batches)
                if is_zero:
                    yield shown
                    self.tell_hidden(number)
                    return
                shown.append((self.offset(relative_offset), position))
                number += 1
            yield shown

    def _compare(self, number: int, relative_offset: int, position: int, batches: BatchReader) -> None:
        offset = self.offset(relative_offset)
        is_written = relative_offset != 0 or (number == 0 and position != 0)
        if is_written and (relative_offset <= self._previous[0] or position <= self._previous[1]):
            self.add(_DONT_RISE, number, f"offset {offset}, position {position}")
        batch = batches.batch_at(position)
        found: int | NoBatch
        if isinstance(batch, NoBatch):
            found = batch
        else:
            found = batch.last_offset if self._compared is Compared.LAST_OFFSET else batches.first_offset(batch)
        if isinstance(found, NoBatch):
            if is_written:
                self.add(found, number, f"offset {offset}, position {position}")
        elif found != offset:
            self.found.reports.mismatches[self.absolute_path].add(offset, found)
            if is_written and isinstance(batch, BatchHeader) and not self.found.is_wrong:
                self.found.is_wrong = not _is_sound(offset, batch, batches)
        if is_written:
            self._previous = relative_offset, position


def _is_sound(offset: int, batch: BatchHeader, batches: BatchReader) -> bool:
    """Return True if some broker writes an entry with this offset for a batch.

    Brokers write the first offset of the batch, its last, or the last of all batches of an append. The file doesn't say
    which.
    """
    if offset > batch.last_offset:
        last = batches.find(batch.position, offset)
        return isinstance(last, BatchHeader) and last.last_offset == offset
    is_wrapper = batch.magic < 2 and batch.codec != Codec.NONE
    return is_wrapper or offset in (batch.base_offset, batch.last_offset)


class ToolTimeCheck(_IndexCheck):
    """The check of one `.timeindex`."""

    def __init__(self, index: EntryFile, release: Release, found: Problems) -> None:
        super().__init__(index, release, found)
        self._previous_timestamp = NO_TIMESTAMP

    def insanity(self) -> str | None:
        """Return the objection of a broker's check at its start, or None if there isn't one."""
        failure = None
        if self.index.capacity:
            first_timestamp, _ = self.index.entry(0)
            timestamp, last = self.index.entry(self.index.capacity - 1)
            if timestamp < first_timestamp:
                failure = f"its last timestamp {timestamp} is below its first, {first_timestamp}"
            elif last < 0:
                failure = f"its last offset {self.offset(last)} is below its base offset {self.base_offset}"
        return failure

    def checked_entries(self, batches: BatchReader | None) -> Iterator[list[tuple[int, int]]]:
        """Yield timestamp and offset of the entries."""
        positions = _read_positions(self.index.name, self.found) if batches is not None else None
        number = 0
        for piece in self.index.pieces():
            shown: list[tuple[int, int]] = []
            for timestamp, relative_offset in piece:
                is_zero = relative_offset == 0 and number > 0
                is_end = is_zero and (self.stops_before_zero or batches is None)
                if batches is not None and positions is not None and not is_end:
                    batch = batches.find(positions.before(relative_offset), self.offset(relative_offset))
                    is_written = not is_zero and (relative_offset, timestamp) != (0, 0)
                    entry = _TimeEntry(number, timestamp, self.offset(relative_offset), is_written)
                    is_end = self._compare(entry, batch, batches) and is_zero
                if is_end:
                    yield shown
                    self.tell_hidden(number)
                    return
                shown.append((timestamp, self.offset(relative_offset)))
                self._previous_timestamp = timestamp
                number += 1
            yield shown

    def _compare(self, entry: "_TimeEntry", batch: BatchHeader | NoBatch, batches: BatchReader) -> bool:
        """Report differences; return whether the batch ends at the entry's offset.

        Only differences that no broker writes set the exit status: cleaning and recovery leave entries inside or before
        batches, and messages of magic 0 have no timestamps.
        """
        if batch is NoBatch.BEYOND_END or (isinstance(batch, BatchHeader) and batch.last_offset != entry.offset):
            found = batch.last_offset if isinstance(batch, BatchHeader) else -1
            self._report(self.found.reports.offsets_not_found, entry.offset, found)
            self._judge(entry, is_wrong=isinstance(batch, NoBatch))
            return False
        timestamp = batch if isinstance(batch, NoBatch) else batches.largest_timestamp(batch)
        if isinstance(timestamp, NoBatch):
            if entry.is_written:
                self.add(timestamp, entry.number, f"timestamp {entry.timestamp}, offset {entry.offset}")
            return False
        if timestamp != entry.timestamp:
            self._report(self.found.reports.timestamp_mismatches, entry.timestamp, timestamp)
            self._judge(entry, is_wrong=timestamp != NO_TIMESTAMP)
        if self._previous_timestamp >= entry.timestamp:
            self._report(self.found.reports.out_of_order_timestamps, entry.timestamp, self._previous_timestamp)
            self._judge(entry, is_wrong=True)
        return True

    def _report(self, report: dict[str, Pairs], first: int, second: int) -> None:
        report[self.absolute_path].add(first, second)

    def _judge(self, entry: "_TimeEntry", *, is_wrong: bool) -> None:
        if is_wrong and entry.is_written:
            self.found.is_wrong = True


class _TimeEntry(NamedTuple):
    """An entry of a .timeindex; an unwritten entry is the zeros of a preallocated file."""

    number: int
    timestamp: int
    offset: int
    is_written: bool


class _Positions:
    """Positions in a log by relative offset, from an .index."""

    def __init__(self, content: bytes) -> None:
        """Take an .index's bytes; a zero tail is skipped."""
        size = OFFSET_INDEX_ENTRY_FIELDS.struct.size
        written = -(-len(content.rstrip(b"\0")) // size)
        fields = array("i", content[: min(written, len(content) // size) * size])
        if byteorder == "little":
            fields.byteswap()
        self._offsets, self._positions = fields[::2], fields[1::2]

    def before(self, relative_offset: int) -> int:
        """Return the position to start searching at: the last entry not above the offset, or 0."""
        slot = bisect_right(self._offsets, relative_offset)
        return self._positions[slot - 1] if slot else 0


def _read_positions(path: StrPath, found: Problems) -> _Positions:
    """Return the entries of the .index next to a .timeindex; without one, note it and return no entries."""
    try:
        with EntryFile(_adjacent_file(path, ".index"), OFFSET_INDEX_ENTRY_FIELDS) as index:
            return _Positions(index.read(0, LARGEST_LOOKUP))
    except OpenError as error:
        found.add_problem(path, f"kseg searched the log from its start, since the .index next to it {error.message}")
        return _Positions(b"")
