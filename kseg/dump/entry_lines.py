"""Lines of indexes, snapshots, checkpoints and other files of entries."""

import json
import re
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from pathlib import Path
from struct import calcsize
from sys import byteorder
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kseg.dump.checked_batches import BatchReader, NoBatch, wrap_offset
from kseg.dump.forms import Pairs, Problems, absolute_path
from kseg.errors import FileError, OpenError, plural
from kseg.formats import checkpoints as checkpoint
from kseg.formats.checkpoints import TEXT_FILES, Members
from kseg.formats.codes import NO_TIMESTAMP, Codec
from kseg.formats.file_names import FileKind, parse_file_name
from kseg.formats.header_fields import (
    ENTRY_FIELDS,
    OFFSET_INDEX_ENTRY_FIELDS,
    PRODUCER_ENTRY_FIELDS,
    PRODUCER_SNAPSHOT_HEADER_FIELDS,
    PRODUCER_SNAPSHOT_VERSION,
    TIME_INDEX_ENTRY_FIELDS,
    TRANSACTION_INDEX_ENTRY_FIELDS,
    TRANSACTION_INDEX_VERSION,
    AbortedTransaction,
    FixedFields,
)
from kseg.index.entries import EntryFile
from kseg.index.producers import LARGEST_READ, ProducerSnapshot, ProducerState
from kseg.layouts import release_lines as layout
from kseg.layouts.release_lines import TRANSACTION_INDEX_LINE as LINE
from kseg.layouts.release_lines import Compared
from kseg.reading.batch import BatchHeader
from kseg.reading.log_file import LogFile
from kseg.releases import Release, value_in
from kseg.system.files import read_text_file
from kseg.system.placed_path import StrPath, as_path

if TYPE_CHECKING:
    from kseg.dump.forms import Printing
    from kseg.dump.options import DumpOptions


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


Check = TypeVar("Check", bound="_IndexCheck")


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


def print_entries(path: StrPath, printing: "Printing") -> None:
    """Print the entries of a file, one per line; of a malformed text file only its problem, on stderr.

    Raises OpenError if it can't be opened.
    """
    for line in _lines(path, printing.problems):
        printing.output.write(f"{line}\n".encode())


def check_entries(path: StrPath, found: Problems) -> None:
    """Find the problems of a file. Raises OpenError if it can't be opened."""
    for _ in _lines(path, found):
        pass  # its problems are noted


def entries(path: StrPath) -> Iterator[Members]:
    """Yield the entries of a file; zeros in holes of the file are none.

    Raises OpenError if it can't be opened. Raises KsegError if it is malformed: before the first entry of a text file,
    after the last complete one of others.
    """
    kind = parse_file_name(path).kind
    if kind in TEXT_FILES:
        yield from TEXT_FILES[kind].entries(read_text_file(path))
        return
    fields = ENTRY_FIELDS[kind]
    names = [re.sub("_(.)", lambda letter: letter[1].upper(), name) for name in fields.names]
    with EntryFile(path, fields) as file:
        for _, piece in file.stored_pieces():
            for entry in piece:
                yield dict(zip(names, entry, strict=True))
        if file.trailing_problem is not None:
            raise FileError(file.trailing_problem, path)


def _lines(path: StrPath, found: Problems) -> Iterator[str]:
    """Yield the lines of a file; its problems are noted."""
    try:
        if parse_file_name(path).kind is FileKind.META_PROPERTIES:
            yield from _property_lines(read_text_file(path))
        else:
            yield from filter(None, map(_line, entries(path)))
    except OpenError:
        raise
    except FileError as error:
        found.add_problem(path, error.message)


def _property_lines(content: bytes) -> Iterator[str]:
    """Yield each property on its own line, including a property that a later line overrides."""
    for name, value in checkpoint.parse_meta_properties(content).properties:
        yield f"{name}: {value}"


def _line(members: Members) -> str:
    """Return an entry's members as `name: value`, in their order; values other than text as JSON."""
    return " ".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}"
        for name, value in members.items()
    )


_HEADER, _ENTRY = PRODUCER_SNAPSHOT_HEADER_FIELDS, PRODUCER_ENTRY_FIELDS


def print_producer_snapshot(path: StrPath, printing: "Printing") -> None:
    """Print a `.snapshot`; of a corrupt one only the reason, on stderr. Raises OpenError if it can't be opened."""
    like = printing.options.like
    with ProducerSnapshot(path) as snapshot:
        failure = _failure(snapshot, like or layout.NAMES_FIELDS)
        if failure is not None and like is None:
            printing.problems.add_problem(path, failure)
            return
        if failure is not None:
            printing.problems.is_wrong = True
            printing.output.flush()
            printing.talk.say(failure)
            return
        if like is None and not snapshot.count:
            printing.problems.note(f"{path}: it has no producers")
        line = _ProducerLine(printing.options.release)
        for piece in snapshot.pieces():
            printing.output.write("".join(map(line.text, piece)).encode())


def check_producer_snapshot(path: StrPath, found: Problems) -> None:
    """Find the problems of a `.snapshot`. Raises OpenError if it can't be opened."""
    with ProducerSnapshot(path) as snapshot:
        failure = _failure(snapshot, layout.NAMES_FIELDS)
    if failure is not None:
        found.add_problem(path, failure)


def _failure(snapshot: ProducerSnapshot, release: Release) -> str | None:
    """Return the error of the release's tool for a snapshot that it doesn't read, or None if it reads it."""
    if value_in(release, layout.VERSION_COMES_FIRST):
        failure = _version_failure(snapshot, release) or _schema_failure(snapshot, release)
    else:
        failure = _schema_failure(snapshot, release) or _version_failure(snapshot, release)
    return failure or _crc_failure(snapshot, release)


def _version_failure(snapshot: ProducerSnapshot, release: Release) -> str | None:
    if snapshot.header_size < _HEADER.position("crc") or snapshot.version == PRODUCER_SNAPSHOT_VERSION:
        return None
    return value_in(release, layout.UNKNOWN_VERSION).format(version=snapshot.version)


def _schema_failure(snapshot: ProducerSnapshot, release: Release) -> str | None:
    reason = _schema_reason(snapshot, value_in(release, layout.SCHEMA_REASONS))
    return None if reason is None else layout.WRONG_SCHEMA.format(reason=reason)


def _schema_reason(snapshot: ProducerSnapshot, reasons: layout.SchemaReasons) -> str | None:
    if snapshot.is_cut:
        field = _cut_field(_HEADER, snapshot.header_size).replace("entries_count", "producer_entries")
        return reasons.cut_field.format(field=field)
    count, available = snapshot.count, snapshot.size - _HEADER.struct.size
    if count < 0:
        return reasons.negative_count.format(count=count)
    if count > available:
        return reasons.large_count.format(count=count, available=available)
    if count > snapshot.file.capacity:
        return reasons.cut_producer.format(field=_cut_field(_ENTRY, snapshot.file.trailing))
    return None


def _cut_field(fields: FixedFields, available: int) -> str:
    """Return the first field that doesn't fit into the available bytes."""
    order, codes = fields.struct.format[0], fields.struct.format[1:]
    ends = accumulate(calcsize(order + code) for code in codes)
    return next(name for name, end in zip(fields.names, ends, strict=True) if end > available)


def _crc_failure(snapshot: ProducerSnapshot, release: Release) -> str | None:
    if snapshot.size > LARGEST_READ:
        return f"the size is {plural(snapshot.size, 'byte')}, but the tool reads at most {LARGEST_READ}"
    computed = snapshot.compute_crc()
    if snapshot.crc == computed:
        return None
    return value_in(release, layout.WRONG_CRC).format(path=snapshot.file.name, stored=snapshot.crc, computed=computed)


class _ProducerLine:
    """A release's lines of producers."""

    def __init__(self, release: Release) -> None:
        self._line = value_in(release, layout.PRODUCER_LINES)
        self._optional = value_in(release, layout.OPTIONAL)
        self._always_shows_last_batch = value_in(release, layout.ALWAYS_SHOWS_LAST_BATCH)
        self._sequence_wraps = value_in(release, layout.SEQUENCE_WRAPS)

    def text(self, entry: ProducerState) -> str:
        """Return a producer's line."""
        template = self._line.producer
        if entry.last_offset >= 0 or self._always_shows_last_batch:
            template += self._line.last_batch
        optional = self._optional.present if entry.current_txn_first_offset >= 0 else self._optional.missing
        line = template.format(
            producerId=entry.producer_id,
            producerEpoch=entry.epoch,
            coordinatorEpoch=entry.coordinator_epoch,
            currentTxnFirstOffset=optional.format(entry.current_txn_first_offset),
            firstSequence=self._first_sequence(entry.last_sequence, entry.offset_delta),
            lastSequence=entry.last_sequence,
            firstOffset=entry.last_offset - entry.offset_delta,
            lastOffset=entry.last_offset,
            offsetDelta=entry.offset_delta,
            timestamp=entry.timestamp,
        )
        return line + "\n"

    def _first_sequence(self, last_sequence: int, offset_delta: int) -> int:
        """Return the first sequence, in 32-bit arithmetic. Source: DefaultRecordBatch.decrementSequence."""
        first = last_sequence - offset_delta
        if self._sequence_wraps and last_sequence < offset_delta:
            first += 2**31
        return (first + 2**31) % 2**32 - 2**31


def print_transaction_index(path: StrPath, printing: "Printing") -> None:
    """Print a `.txnindex`. Raises OpenError if it can't be opened."""
    for piece in checked_transactions(path, printing.problems, reads_holes=printing.options.like is not None):
        printing.output.write("".join([_aborted_transaction_line(entry) for entry in piece]).encode())


def _aborted_transaction_line(entry: AbortedTransaction) -> str:
    shown = entry.version >> 8  # AbortedTxn reads only the first of the version's two bytes
    return LINE.format(shown, *entry[1:])


def checked_transactions(
    path: StrPath, found: Problems, *, reads_holes: bool = False
) -> Iterator[list[AbortedTransaction]]:
    """Yield the entries of a `.txnindex`; their problems are noted at the end.

    `reads_holes`: zeros in holes of the file are entries too. Raises OpenError if it can't be opened.
    """
    unknown, falling, previous = 0, 0, -1
    count = 0
    with EntryFile(path, TRANSACTION_INDEX_ENTRY_FIELDS) as index:
        for stored in index.pieces() if reads_holes else (piece for _, piece in index.stored_pieces()):
            count += len(stored)
            piece = list(map(AbortedTransaction._make, stored))
            for entry in piece:
                unknown += entry.version != TRANSACTION_INDEX_VERSION
                falling += entry.last_offset <= previous
                previous = entry.last_offset
            yield piece
        if count < index.capacity:
            found.add_problem(
                path,
                f"{plural(index.capacity - count, 'entry is', 'entries are')} zeros in holes of the file, not printed",
            )
        if index.trailing_problem is not None:
            found.add_problem(path, index.trailing_problem)
    if unknown:
        found.add_problem(path, f"entries whose version isn't {TRANSACTION_INDEX_VERSION}: {unknown}")
    if falling:
        found.add_problem(path, f"entries whose last offset isn't above the preceding entry's: {falling}")
