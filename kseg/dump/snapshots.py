"""Prints producer snapshots. Source: DumpLogSegments, ProducerStateManager."""

from itertools import accumulate
from struct import calcsize
from typing import TYPE_CHECKING

from kseg.formats.entries import PRODUCER_SNAPSHOT_VERSION
from kseg.formats.header_fields import PRODUCER_ENTRY_FIELDS, PRODUCER_SNAPSHOT_HEADER_FIELDS, FixedFields
from kseg.index.producer_snapshot import LARGEST_READ, ProducerSnapshot
from kseg.index.producer_state import ProducerState
from kseg.layouts import snapshots as layout
from kseg.releases import Release, value_in

if TYPE_CHECKING:
    from kseg.dump.found import Found
    from kseg.dump.options import DumpContext

_HEADER, _ENTRY = PRODUCER_SNAPSHOT_HEADER_FIELDS, PRODUCER_ENTRY_FIELDS


def dump_producer_snapshot(path: str, context: "DumpContext") -> None:
    """Prints a `.snapshot`; of one that is corrupt only why, on stderr. Raises OpenError if it can't be opened."""
    like = context.options.like
    with ProducerSnapshot(path) as snapshot:
        failure = _failure(snapshot, like or layout.NAMES_FIELDS)
        if failure is not None and like is None:
            context.found.add_problem(path, failure)
            return
        if failure is not None:
            context.found.is_wrong = True
            context.output.flush()
            context.talk(failure)
            return
        line = _ProducerLine(context.options.release)
        for piece in snapshot.pieces():
            context.output.write("".join(map(line.text, piece)).encode())


def check_producer_snapshot(path: str, found: "Found") -> None:
    """Finds what is wrong with a `.snapshot`. Raises OpenError if it can't be opened."""
    with ProducerSnapshot(path) as snapshot:
        failure = _failure(snapshot, layout.NAMES_FIELDS)
    if failure is not None:
        found.add_problem(path, failure)


def _failure(snapshot: ProducerSnapshot, release: Release) -> str | None:
    """What the release's tool says of a snapshot that it doesn't read; None if it does."""
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
    """The first field that so few bytes don't hold whole."""
    order, codes = fields.struct.format[0], fields.struct.format[1:]
    ends = accumulate(calcsize(order + code) for code in codes)
    return next(name for name, end in zip(fields.names, ends, strict=True) if end > available)


def _crc_failure(snapshot: ProducerSnapshot, release: Release) -> str | None:
    if snapshot.size > LARGEST_READ:
        return f"{snapshot.size} bytes, the tool reads at most {LARGEST_READ}"
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
        """A producer's line."""
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
        """Source: DefaultRecordBatch.decrementSequence; all in 32 bits."""
        first = last_sequence - offset_delta
        if self._sequence_wraps and last_sequence < offset_delta:
            first += 2**31
        return (first + 2**31) % 2**32 - 2**31
