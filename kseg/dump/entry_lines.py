"""Lines of producer snapshots, transaction indexes, checkpoints and other files of entries."""

import json
import re
from collections.abc import Iterator
from itertools import accumulate
from struct import calcsize
from typing import TYPE_CHECKING

from kseg.dump.forms import Problems
from kseg.errors import FileError, OpenError, plural
from kseg.formats import checkpoints as checkpoint
from kseg.formats.checkpoints import TEXT_FILES, Members
from kseg.formats.file_names import FileKind, parse_file_name
from kseg.formats.header_fields import (
    ENTRY_FIELDS,
    PRODUCER_ENTRY_FIELDS,
    PRODUCER_SNAPSHOT_HEADER_FIELDS,
    PRODUCER_SNAPSHOT_VERSION,
    TRANSACTION_INDEX_ENTRY_FIELDS,
    TRANSACTION_INDEX_VERSION,
    AbortedTransaction,
    FixedFields,
)
from kseg.index.entries import EntryFile
from kseg.index.producers import LARGEST_READ, ProducerSnapshot, ProducerState
from kseg.layouts import entry_lines as layout
from kseg.layouts.entry_lines import TRANSACTION_INDEX_LINE as LINE
from kseg.releases import Release, value_in
from kseg.system.files import read_text_file
from kseg.system.placed_path import StrPath

if TYPE_CHECKING:
    from kseg.dump.forms import Printing


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
