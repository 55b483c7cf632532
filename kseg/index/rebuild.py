"""Indexes rebuilt from the log, byte for byte as a broker of 2.0 or later writes them at recovery.

From 3.9.1, 4.0.1 and 4.1 on, a broker writes the same while it appends. Earlier, its entries are for whole appends,
whose bounds aren't in the log. Source: LogSegment.recover.
"""

from dataclasses import dataclass, field

from kseg import kernel
from kseg.formats.codes import MAXIMUM_RELATIVE_OFFSET, NO_TIMESTAMP
from kseg.formats.entries import TRANSACTION_INDEX_VERSION
from kseg.formats.fixed import OFFSET_INDEX_ENTRY_FIELDS, TIME_INDEX_ENTRY_FIELDS, TRANSACTION_INDEX_ENTRY_FIELDS
from kseg.index.folding import events
from kseg.index.producer_state import EndMarker, ProducerStates, end_marker_in
from kseg.kernel.contract import MOST
from kseg.kernel.fold_contract import Event, HeaderFold
from kseg.reading.damage import Damage
from kseg.reading.header import BatchHeader
from kseg.reading.log_file import LogFile

INDEX_INTERVAL_BYTES = 4096
"""`log.index.interval.bytes` / `index.interval.bytes`."""


@dataclass(slots=True)
class IndexBuilder:
    """Builds a segment's indexes batch by batch; `finish` closes the time index.

    interval: the least bytes between entries. states: the producers before the segment's first batch; its batches
    update them. skipped: entries that don't fit into the offset index, since their offset doesn't increase or is too
    far from the base offset; Kafka would fail there.
    """

    base_offset: int
    interval: int = INDEX_INTERVAL_BYTES
    states: ProducerStates = field(default_factory=ProducerStates)
    offset_index: bytearray = field(default_factory=bytearray)
    time_index: bytearray = field(default_factory=bytearray)
    transaction_index: bytearray = field(default_factory=bytearray)
    skipped: int = 0
    size: int = 0
    _entry_position: int = 0
    _last_offset: int | None = None
    _max_timestamp: int = NO_TIMESTAMP
    _offset_of_max_timestamp: int = -1
    _last_timestamp: int = NO_TIMESTAMP

    def add(self, header: BatchHeader, marker: EndMarker | None = None) -> None:
        """Adds the segment's next batch, at position `size`; `marker` if it ends a transaction."""
        if header.max_timestamp > self._max_timestamp:
            self._max_timestamp, self._offset_of_max_timestamp = header.max_timestamp, header.last_offset
        if self.size - self._entry_position > self.interval:
            self._add_offset(header.last_offset)
            self._add_time()
            self._entry_position = self.size
        self.size += header.size
        completed = self.states.add(header, marker)
        if completed is not None and completed.is_aborted:
            self.transaction_index += TRANSACTION_INDEX_ENTRY_FIELDS.struct.pack(
                TRANSACTION_INDEX_VERSION,
                completed.producer_id,
                completed.first_offset,
                completed.last_offset,
                completed.last_stable_offset,
            )

    @property
    def next_entry_bound(self) -> int:
        """A batch that begins behind this position gets an entry."""
        return min(self._entry_position + self.interval, MOST)

    def add_passed(self, fold: HeaderFold) -> None:
        """Adds all that a fold has passed: batches without entries, whose producers are in `states` already."""
        self.size = fold.end
        self._max_timestamp, self._offset_of_max_timestamp = fold.max_timestamp, fold.offset_of_max_timestamp

    def finish(self) -> None:
        """Adds the time index's last entry, the segment's largest time, as closing a segment does."""
        self._add_time()

    def _add_offset(self, offset: int) -> None:
        relative_offset = offset - self.base_offset
        rises = self._last_offset is None or offset > self._last_offset
        if not rises or not 0 <= relative_offset <= MAXIMUM_RELATIVE_OFFSET:
            self.skipped += 1
            return
        self.offset_index += OFFSET_INDEX_ENTRY_FIELDS.struct.pack(relative_offset, self.size)
        self._last_offset = offset

    def _add_time(self) -> None:
        if self._max_timestamp <= self._last_timestamp:
            return
        relative_offset = self._offset_of_max_timestamp - self.base_offset
        if 0 <= relative_offset <= MAXIMUM_RELATIVE_OFFSET:
            self.time_index += TIME_INDEX_ENTRY_FIELDS.struct.pack(self._max_timestamp, relative_offset)
            self._last_timestamp = self._max_timestamp


@dataclass(frozen=True, slots=True)
class RebuiltIndexes:
    """The files' contents; an empty transaction index means no file.

    valid_size: bytes of the log that they cover; recovery would cut the log there. damage: what is there, or None.
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
    """Indexes of a segment's log, up to its first damage, as recovery makes them.

    Args:
        log_file: the segment's log.
        base_offset: the segment's; from the file's name if None.
        interval: `index.interval.bytes`.
        states: the producers up to the segment's first batch, from the snapshot there or the segments before; they
            are updated up to its end. Without them a transaction that began in an earlier segment isn't known.
    """
    base = base_offset if base_offset is not None else log_file.base_offset or 0
    builder = IndexBuilder(base, interval, states if states is not None else ProducerStates())
    damage = _add_batches(log_file, builder)
    builder.finish()
    return RebuiltIndexes(
        bytes(builder.offset_index),
        bytes(builder.time_index),
        bytes(builder.transaction_index),
        builder.size,
        damage,
        builder.skipped,
    )


def _add_batches(log_file: LogFile, builder: IndexBuilder) -> Damage | None:
    """Adds batches up to the first damage, which it returns."""
    fold = kernel.load().HeaderFold(Event.PRODUCER | Event.CONTROL, builder.states.producers.table)
    fold.passes_legacy = True
    fold.position_bound = builder.next_entry_bound
    for item in log_file.runs():
        if isinstance(item, Damage):
            return item
        for header, _ in events(fold, item):
            builder.add_passed(fold)
            if not header.is_valid:
                return log_file.crc_damage(header.position, header.size)
            has_marker = header.is_control and header.producer_id >= 0
            builder.add(header, end_marker_in(item, log_file, header) if has_marker else None)
            fold.position_bound = builder.next_entry_bound
        builder.add_passed(fold)
    return None
