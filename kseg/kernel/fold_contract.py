"""What both kernels offer to whoever goes through a log header by header: tables of headers, and folds over them."""

from enum import IntFlag
from typing import Any, Protocol, TypeAlias

from kseg.kernel.contract import Bodies, Buffer, Kernel, Rows

UNCHECKED = -1
"""A row's VALID where nobody has compared the CRC: `walk` finds batches by their headers alone."""
RECENT = 256
"""Batches that a fold remembers."""

ProducerValues = tuple[int, int, int, int, int, int, int, int]
"""Values of a producer, in the order of index.producer_state.ProducerState."""


class Event(IntFlag):
    """What can happen in a batch at which a fold stops.

    LEGACY, INVALID and BOUND are always watched.
    """

    LEGACY = 1
    "It's a v0 or v1 entry, and these aren't passed."
    INVALID = 2
    "Its CRC is wrong."
    BOUND = 4
    "One of the fold's bounds is reached."
    CONTROL = 8
    TRANSACTIONAL = 16
    PRODUCER = 32
    "It has a producer id that isn't known, has another epoch, or begins a transaction."
    SEQUENCE = 64
    "Its base sequence doesn't follow the last one of its producer."
    GAP = 128
    "Its base offset is above the next one."
    FALL = 256
    "Its base offset is below the next one, or above its last offset."
    OFFSET = GAP | FALL
    SPARSE = 512
    "It has fewer records than offsets: compaction removes some."
    DELETE_HORIZON = 1024
    EPOCH = 2048
    "Its leader epoch isn't the largest so far."
    COMPRESSED = 4096
    APPEND_TIME = 8192
    RECORDS = 16384
    """Its records can't all be read, their offsets don't rise within the header's, their largest time isn't there, or a
    size is negative without being null's own -1."""
    INDEX = 32768
    "An index entry up to here is wrong."
    TRANSACTION = 65536
    "It's transactional, and its producer isn't known, or not with this epoch and an open transaction."
    DISORDER = 131072
    "Its last offset is below that of the batch before it."
    ODD_NULL = 262144
    "A size of its records is negative, but not null's own -1; in v0 and v1 entries too, though these aren't passed."


class HeaderColumns(Protocol):
    """Headers of a run of batches, column by column.

    has_wrappers: whether one of them is that of a wrapper, whose base offset and count are -1 here.
    """

    has_wrappers: bool

    def column(self, name: str) -> Buffer:
        """The column of a name in formats.header_fields.HEADER_NAMES.

        All values are int64 in the machine's byte order; `is_valid` is a row's VALID.
        """


class ProducerTable(Protocol):
    """A table of producers, in the order in which they were first put in."""

    def __init__(self) -> None: ...

    def __len__(self) -> int: ...

    def get(self, producer_id: int) -> ProducerValues | None:
        """The values of a producer; None if it isn't known."""

    def put(self, values: ProducerValues) -> None:
        """Sets the values of a producer."""

    def passed(self, producer_id: int) -> tuple[int, int]:
        """Batches and records of a producer that folds have passed since it was put in last."""

    def ids(self) -> list[int]:
        """Producer ids."""


class OffsetEntries(Protocol):
    """Entries of an .index that a fold compares with the batches; those that are right it passes.

    next: number of the next entry. passed_offset: offset of the last entry whose batch was passed, -1 if there is none
    or damage came after it. last_position: where that batch stands.
    """

    next: int
    passed_offset: int
    last_position: int

    def __init__(self, content: Buffer, base_offset: int, count: int, longest_stretch: int) -> None:
        """Takes the file's first `count` entries.

        longest_stretch: bytes of log that may lie between two, beside twice the largest batch.
        """


class TimeEntries(Protocol):
    """Entries of a .timeindex, likewise.

    next: number of the next entry. last_timestamp: of the entry before it. largest: time so far, of all batches;
    largest_of_records: of those with records. has_all_times: whether a time above `largest` is wrong.
    """

    next: int
    last_timestamp: int
    largest: int
    largest_of_records: int
    has_all_times: bool

    def __init__(self, content: Buffer, base_offset: int, count: int) -> None:
        """Takes the file's first `count` entries."""


class EntryWriter(Protocol):
    """Entries of a segment's .index and .timeindex, written as a broker does at recovery; see index.rebuild.

    offset_index, time_index: the files' bytes. offset_count, time_count: entries in them. skipped: entries that don't
    fit into the offset index, since their offset doesn't increase or is too far from the base offset, or their position
    is too large.
    """

    offset_index: bytes
    time_index: bytes
    offset_count: int
    time_count: int
    skipped: int

    def __init__(self, base_offset: int, interval: int) -> None:
        """Takes the segment's base offset, and the least bytes between entries."""

    def add(self, position: int, last_offset: int, max_timestamp: int, offset_of_max_timestamp: int) -> None:
        """Adds the batch at a position; the largest time so far includes its own."""

    def finish(self, max_timestamp: int, offset_of_max_timestamp: int) -> None:
        """Adds the time index's last entry."""


class HeaderFold(Protocol):
    """Goes over batches by their headers: passes those in which nothing happens, and stops at the others.

    watched: the events to stop at. What is passed leaves this behind (a caller may set any of it):

    next_offset: after the largest offset. last_offset: of the last batch. ends_keyed: whether its last record has a
    key; None if nobody looked. leader_epoch: the largest. max_timestamp, offset_of_max_timestamp: the largest time, and
    the last offset of the first batch that has it. append_time: the largest LogAppendTime. largest_size: of a batch.
    end: position after the last batch. batches, records: how many. gaps, missing: between offsets of batches that were
    passed, not stopped at, and the offsets in them. codecs: bit n is set if a batch uses codec n.

    offset_bound, timestamp_bound: a batch that reaches one of these stops the fold; position_bound: one behind it;
    offset_floor: one that ends below it.
    passes_legacy: whether v0 and v1 entries are passed too, unless RECORDS is watched; a wrapper counts as without
    records then, and its last offset as its base offset.
    producers: known ones; updated where PRODUCER is watched, by transactional
    batches where TRANSACTION is. offset_entries, time_entries: compared where INDEX is. entry_writer: gets
    every batch that is passed or taken.
    """

    watched: int
    next_offset: int
    last_offset: int
    leader_epoch: int
    max_timestamp: int
    offset_of_max_timestamp: int
    append_time: int
    largest_size: int
    end: int
    batches: int
    records: int
    gaps: int
    missing: int
    codecs: int
    ends_keyed: bool | None
    offset_floor: int
    offset_bound: int
    timestamp_bound: int
    position_bound: int
    passes_legacy: bool
    offset_entries: OffsetEntries | None
    time_entries: TimeEntries | None
    entry_writer: EntryWriter | None

    def __init__(self, watched: int, producers: ProducerTable | None = None) -> None:
        """Starts with nothing: times, offsets and epochs are -1, and 0 is the next offset."""

    def fold(
        self,
        buffer: memoryview | bytes,
        rows: Rows,
        first: int,
        last: int,
        position: int,
        bodies: Bodies | None = None,
        first_body: int = 0,
    ) -> tuple[int, int]:
        """Passes rows from `first` on, up to `last` or the first in which something happens.

        If RECORDS is watched, all bytes of the rows are in the buffer, and their bodies are given; else the headers
        are enough. Gives the row where it stopped, which isn't passed yet, and its events; `last` and 0 if nothing
        happens.
        """

    def take(self, header: Any) -> None:
        """Passes a batch, a BatchHeader, whatever happens in it; producers and index entries stay as they are."""

    def continued(self) -> list[tuple[int, int | None]]:
        """Producers of whose open transactions batches were passed since this was last asked.

        With the time of the last one, if it's a LogAppendTime; else None.
        """

    def recent(self) -> list[tuple[int, int, int]]:
        """Base offset, last offset and CRC of the last batches, at most RECENT."""


_ProducerTable: TypeAlias = ProducerTable
_OffsetEntries: TypeAlias = OffsetEntries
_TimeEntries: TypeAlias = TimeEntries
_EntryWriter: TypeAlias = EntryWriter
_HeaderFold: TypeAlias = HeaderFold


class FoldingKernel(Kernel, Protocol):
    """A kernel, with the part that goes over headers."""

    ProducerTable: type[_ProducerTable]
    OffsetEntries: type[_OffsetEntries]
    TimeEntries: type[_TimeEntries]
    EntryWriter: type[_EntryWriter]
    HeaderFold: type[_HeaderFold]

    def walk(self, buffer: memoryview | bytes, start: int, rows: Rows, room: int) -> tuple[int, int, bool]:
        """Fills `rows` with the batches from `start` on whose headers lie in the buffer; their CRCs aren't looked at.

        A length is believed if it is plausible, and the batch ends within `room` bytes of the buffer's start; it may
        end after the buffer.
        Gives the count of rows; where the next batch would start; whether what stands there is no header, or doesn't
        end within the room. If not, the table is full, or the next header doesn't lie in the buffer.
        """

    def end_marker(self, raw: memoryview | bytes) -> tuple[int, int, int] | None:
        """Type, coordinator epoch and timestamp of the marker in the bytes of a control batch.

        None for whatever isn't an uncompressed v2 batch of one record that is a transaction's end.
        """

    def header_columns(
        self, buffer: memoryview | bytes, rows: Rows, first: int, last: int, position: int
    ) -> HeaderColumns:
        """The headers of rows first … last - 1."""
