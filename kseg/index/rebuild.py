"""Indexes rebuilt from the log, byte for byte as a broker of 2.0 or later writes them at recovery.

From 3.9.1, 4.0.1 and 4.1 on, a broker writes the same while it appends. Earlier, its entries are for complete appends,
whose bounds aren't in the log. Source: LogSegment.recover.
"""

from dataclasses import dataclass, field

from kseg import kernel
from kseg.formats.codes import INDEX_INTERVAL_BYTES, NO_TIMESTAMP
from kseg.formats.header_fields import TRANSACTION_INDEX_ENTRY_FIELDS, TRANSACTION_INDEX_VERSION
from kseg.index.header_scan import events
from kseg.index.producers import EndMarker, ProducerStates, end_marker_in
from kseg.kernel.fold_contract import EntryWriter, Event, HeaderFold
from kseg.reading.batch import BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile


@dataclass(slots=True)
class IndexBuilder:
    """A builder of a segment's indexes, batch by batch; `finish` closes the time index.

    interval: the least bytes between entries. states: the producers before the segment's first batch, updated by its
    batches. entries: those of .index and .timeindex, without those at which Kafka would fail.
    """

    base_offset: int
    interval: int = INDEX_INTERVAL_BYTES
    states: ProducerStates = field(default_factory=ProducerStates)
    transaction_index: bytearray = field(default_factory=bytearray)
    size: int = 0
    entries: EntryWriter = field(init=False)
    _max_timestamp: int = NO_TIMESTAMP
    _offset_of_max_timestamp: int = -1

    def __post_init__(self) -> None:
        self.entries = kernel.load().EntryWriter(self.base_offset, self.interval)

    def add(self, header: BatchHeader, marker: EndMarker | None = None) -> None:
        """Add the segment's next batch, at position `size`; `marker` if it ends a transaction."""
        if header.max_timestamp > self._max_timestamp:
            self._max_timestamp, self._offset_of_max_timestamp = header.max_timestamp, header.last_offset
        self.entries.add(self.size, header.last_offset, self._max_timestamp, self._offset_of_max_timestamp)
        self.size += header.size
        self.add_producer(header, marker)

    def add_producer(self, header: BatchHeader, marker: EndMarker | None) -> None:
        """Add to the producers' states and to the transaction index alone."""
        completed = self.states.add(header, marker)
        if completed is not None and completed.is_aborted:
            self.transaction_index += TRANSACTION_INDEX_ENTRY_FIELDS.struct.pack(
                TRANSACTION_INDEX_VERSION,
                completed.producer_id,
                completed.first_offset,
                completed.last_offset,
                completed.last_stable_offset,
            )

    def new_fold(self) -> HeaderFold:
        """Return a fold that writes the entries of all batches it passes or takes; `add_producer` is for its stops."""
        fold = kernel.load().HeaderFold(Event.PRODUCER | Event.CONTROL, self.states.producers.table)
        fold.passes_legacy = True
        fold.entry_writer = self.entries
        return fold

    def add_passed(self, fold: HeaderFold) -> None:
        """Take the results of such a fold."""
        self.size = fold.end
        self._max_timestamp, self._offset_of_max_timestamp = fold.max_timestamp, fold.offset_of_max_timestamp

    def finish(self) -> None:
        """Add the time index's last entry, the segment's largest time, as closing a segment does."""
        self.entries.finish(self._max_timestamp, self._offset_of_max_timestamp)


@dataclass(frozen=True, slots=True)
class RebuiltIndexes:
    """The files' contents; an empty transaction index means no file.

    valid_size: bytes of the log that they cover; recovery would cut the log there. damage: the damage there, or None.
    """

    offset_index: bytes
    time_index: bytes
    transaction_index: bytes
    valid_size: int
    damage: Damage | None
    skipped: int


def rebuild(
    log_file: LogFile,
    base_offset: int | None = None,
    *,
    interval: int = INDEX_INTERVAL_BYTES,
    states: ProducerStates | None = None,
) -> RebuiltIndexes:
    """Rebuild the indexes of a segment, up to the first damage, like the log recovery of a broker.

    Args:
        log_file: the segment's log.
        base_offset: the segment's; from the file's name if None.
        interval: `index.interval.bytes`.
        states: the producers up to the segment's first batch, from the snapshot there or the segments before; they are
            updated up to its end. Without them transactions from earlier segments are unknown.
    """
    base = base_offset if base_offset is not None else log_file.base_offset or 0
    builder = IndexBuilder(base, interval, states if states is not None else ProducerStates())
    damage = _add_batches(log_file, builder)
    builder.finish()
    return RebuiltIndexes(
        builder.entries.offset_index,
        builder.entries.time_index,
        bytes(builder.transaction_index),
        builder.size,
        damage,
        builder.entries.skipped,
    )


def _add_batches(log_file: LogFile, builder: IndexBuilder) -> Damage | None:
    """Add batches up to the first damage, and return it."""
    fold = builder.new_fold()
    damage = _damage_after(log_file, builder, fold)
    builder.add_passed(fold)
    return damage


def _damage_after(log_file: LogFile, builder: IndexBuilder, fold: HeaderFold) -> Damage | None:
    """Add producers up to the first damage, while the fold passes the batches."""
    for item in log_file.runs():
        if isinstance(item, Damage):
            return item
        for header, _ in events(fold, item):
            if not header.is_valid:
                return log_file.crc_damage(header.position, header.size)
            has_marker = header.is_control and header.producer_id >= 0
            builder.add_producer(header, end_marker_in(item, log_file, header) if has_marker else None)
    return None
