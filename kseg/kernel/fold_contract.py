"""The contract of both kernels for reading a log header by header: tables of headers, and folds over them."""

from enum import IntFlag
from typing import Any, Protocol, TypeAlias

from kseg.kernel.contract import Buffer, Rows
from kseg.kernel.entry_points import Bodies, Kernel

UNCHECKED = -1
"""A row's VALID without a CRC check: `walk` finds batches only by their headers."""
RECENT = 256
"""Number of batches that a fold keeps."""

ProducerValues = tuple[int, int, int, int, int, int, int, int]
"""Values of a producer, in the order of index.producer_state.ProducerState."""


class Event(IntFlag):
    """Events in a batch at which a fold stops.

    LEGACY, INVALID and BOUND are always watched.
    """

    LEGACY = 1
    "The batch is a v0 or v1 entry, and the fold doesn't pass these."
    INVALID = 2
    "Its CRC is wrong."
    BOUND = 4
    "One of the fold's bounds is reached."
    CONTROL = 8
    TRANSACTIONAL = 16
    PRODUCER = 32
    "It has a producer id that is unknown, has another epoch, or begins a transaction."
    SEQUENCE = 64
    "Its base sequence doesn't follow the last sequence of its producer."
    GAP = 128
    "Its base offset is above the next one."
    FALL = 256
    "Its base offset is below the next one, or above its last offset."
    OFFSET = GAP | FALL
    SPARSE = 512
    "It has fewer records than offsets, since compaction removes records."
    DELETE_HORIZON = 1024
    EPOCH = 2048
    "Its leader epoch isn't the largest so far."
    COMPRESSED = 4096
    APPEND_TIME = 8192
    RECORDS = 16384
    """Not all of its records can be read, their offsets don't rise in range, or their largest timestamp is missing.

    Also a size that is negative other than null's -1.
    """
    INDEX = 32768
    "An index entry up to this batch is wrong."
    TRANSACTION = 65536
    "It is transactional, and its producer is unknown, or has another epoch or no open transaction."
    DISORDER = 131072
    "Its last offset is below the preceding batch's."
    ODD_NULL = 262144
    "A size of its records is negative other than null's -1, also in v0 and v1 entries that aren't passed."


class HeaderColumns(Protocol):
    """Headers of a run of batches, column by column.

    has_wrappers: whether a header is a wrapper's, whose base offset and count are -1 here.
    """

    has_wrappers: bool

    def column(self, name: str) -> Buffer:
        """Return the column of a name in formats.header_fields.HEADER_NAMES.

        All values are int64 in the machine's byte order; `is_valid` is a row's VALID.
        """


class ProducerTable(Protocol):
    """A table of producers, in the order of their first insertion."""

    def __init__(self) -> None: ...

    def __len__(self) -> int: ...

    def get(self, producer_id: int) -> ProducerValues | None:
        """Return the values of a producer, or None for an unknown one."""

    def put(self, values: ProducerValues) -> None:
        """Set the values of a producer."""

    def count_passed(self, producer_id: int) -> tuple[int, int]:
        """Return the batches and records of a producer since the last call of `put`."""

    def ids(self) -> list[int]:
        """Return producer ids."""


class OffsetEntries(Protocol):
    """Entries of an .index that a fold compares with the batches; it passes right entries.

    next: number of the next entry. passed_offset: offset of the last entry whose batch was passed, -1 without one or
    after damage. last_position: position of that batch.
    """

    next: int
    passed_offset: int
    last_position: int

    def __init__(self, content: Buffer, base_offset: int, count: int, longest_stretch: int) -> None:
        """Take the file's first `count` entries.

        longest_stretch: most bytes of log between two entries, not counting twice the largest batch.
        """


class TimeEntries(Protocol):
    """Entries of a .timeindex, likewise.

    next: number of the next entry. last_timestamp: of the preceding entry. largest: largest timestamp so far, of all
    batches; largest_of_records: of batches with records. has_all_times: whether a timestamp above `largest` is wrong.
    """

    next: int
    last_timestamp: int
    largest: int
    largest_of_records: int
    has_all_times: bool

    def __init__(self, content: Buffer, base_offset: int, count: int) -> None:
        """Take the file's first `count` entries."""


class EntryWriter(Protocol):
    """Entries of a segment's .index and .timeindex, written like a broker's recovery; see index.rebuild.

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
        """Take the base offset of the segment, and the least bytes between entries."""

    def add(self, position: int, last_offset: int, max_timestamp: int, offset_of_max_timestamp: int) -> None:
        """Add the batch at a position; the largest timestamp so far includes its own."""

    def finish(self, max_timestamp: int, offset_of_max_timestamp: int) -> None:
        """Add the time index's last entry."""


class HeaderFold(Protocol):
    """A fold over batches by their headers: it passes batches without events, and stops at the others.

    watched: the events to stop at. Passed batches set these attributes, which a caller may change:

    next_offset: after the largest offset. last_offset: of the last batch. ends_keyed: whether its last record has a
    key; None if unknown. leader_epoch: the largest. max_timestamp, offset_of_max_timestamp: the largest timestamp, and
    the last offset of the first batch that has it. append_time: the largest LogAppendTime. largest_size: of a batch.
    end: position after the last batch. batches, records: their numbers. gaps, missing: gaps between offsets of batches
    that were passed, not stopped at, and the offsets in them. codecs: bit n is set if a batch uses codec n.

    offset_bound, timestamp_bound: a batch that reaches one of these stops the fold. position_bound: a batch after this
    position does. offset_floor: a batch that ends below it does. passes_legacy: whether v0 and v1 entries are passed
    too, unless RECORDS is watched; a wrapper then counts as without records, and its last offset as its base offset.
    producers: known producers; updated if PRODUCER is watched, by transactional batches if TRANSACTION is.
    offset_entries, time_entries: compared if INDEX is watched. entry_writer: gets every batch that is passed or taken.
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
        """Start with nothing: times, offsets and epochs are -1, and 0 is the next offset."""

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
        """Pass rows from `first` on, up to `last` or the first row with an event.

        If RECORDS is watched, the buffer has all bytes of the rows, and their bodies are given; otherwise the headers
        suffice. Returns the row where it stopped, which isn't passed yet, and its events; `last` and 0 without events.
        """

    def take(self, header: Any) -> None:
        """Pass a batch, a BatchHeader, whatever its events; producers and index entries don't change."""

    def take_continued(self) -> list[tuple[int, int | None]]:
        """Return producers of open transactions with batches passed since the last call.

        Each has the timestamp of the last batch if it is a LogAppendTime; otherwise None.
        """

    def recent(self) -> list[tuple[int, int, int]]:
        """Return base offset, last offset and CRC of the last batches, at most RECENT."""


_ProducerTable: TypeAlias = ProducerTable
_OffsetEntries: TypeAlias = OffsetEntries
_TimeEntries: TypeAlias = TimeEntries
_EntryWriter: TypeAlias = EntryWriter
_HeaderFold: TypeAlias = HeaderFold


class FoldingKernel(Kernel, Protocol):
    """A kernel with the part that reads headers."""

    ProducerTable: type[_ProducerTable]
    OffsetEntries: type[_OffsetEntries]
    TimeEntries: type[_TimeEntries]
    EntryWriter: type[_EntryWriter]
    HeaderFold: type[_HeaderFold]

    def walk(self, buffer: memoryview | bytes, start: int, rows: Rows, room: int) -> tuple[int, int, bool]:
        """Fill `rows` with the batches from `start` on whose headers are in the buffer; CRCs aren't checked.

        A length is trusted if it is plausible, and the batch ends within `room` bytes of the buffer's start; it may end
        after the buffer. Returns the count of rows; the start of the next batch; and whether that isn't a header, or
        doesn't end within the room. If it is one, the table is full, or the next header isn't in the buffer.
        """

    def walk_file(
        self, descriptor: int, position: int, buffer: memoryview, rows: Rows, room: int, large: int
    ) -> tuple[int, int]:
        """Fill `rows` with the v2 batches of a file from a position on; reads only their headers, one by one.

        Each header goes to its batch's place in the buffer, which begins at that position; its other bytes mean
        nothing. `room`: bytes of the file from there on. Returns the count of rows, and the end of the last one's batch
        in the buffer. Stops before a batch of less than `large` bytes, since smaller ones are read faster together;
        before a control batch, whose marker readers need; and before anything that isn't a v2 header, can't be read,
        or ends after the room.
        """

    def end_marker(self, raw: memoryview | bytes) -> tuple[int, int, int] | None:
        """Return type, coordinator epoch and timestamp of the marker in the bytes of a control batch.

        None for anything but an uncompressed v2 batch of one record that ends a transaction.
        """

    def header_columns(
        self, buffer: memoryview | bytes, rows: Rows, first: int, last: int, position: int
    ) -> HeaderColumns:
        """Return the headers of rows first … last - 1."""
