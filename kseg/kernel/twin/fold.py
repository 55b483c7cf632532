"""Walks over batch headers, header tables and folds, and index entries compared with batches, by the twin."""

from array import array
from collections import deque
from operator import ge
from typing import Any, NamedTuple, cast

from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    size_field,
)
from kseg.formats.header_fields import (
    BATCH_ATTRIBUTES,
    BATCH_HEADER_FIELDS,
    BATCH_RECORDS_COUNT,
    HEADER_NAMES,
    LEAST_SIZES,
    LOG_ENTRY_HEADER_V0_FIELDS,
    LOG_ENTRY_HEADER_V1_FIELDS,
    OFFSET_INDEX_ENTRY_FIELDS,
    TIME_INDEX_ENTRY_FIELDS,
)
from kseg.kernel.contract import MOST, ROW, SIZE, START, VALID, Bodies, Buffer, RecordProblem, Rows, Slot
from kseg.kernel.fold_contract import RECENT, UNCHECKED, Event, ProducerValues
from kseg.kernel.twin.records import MARKERS, batch_pieces, has_odd_null, is_odd_entry, read_batch, read_control
from kseg.kernel.twin.values import CODEC, COUNT, OFFSET, int64, key_of, offset_of, timestamp_of

_BATCH = BATCH_HEADER_FIELDS.struct
_ENTRY_V0 = LOG_ENTRY_HEADER_V0_FIELDS.struct
_ENTRY_V1 = LOG_ENTRY_HEADER_V1_FIELDS.struct
_ONLY_OF_BATCHES = (-1,) * (HEADER_NAMES.index("records_count") - HEADER_NAMES.index("max_timestamp") - 1)
"""Values of an entry where a batch has its producer's."""
_HEADER_SIZES = {0: _ENTRY_V0.size, 1: _ENTRY_V1.size, 2: BATCH_HEADER_SIZE}
_LARGEST_SEQUENCE = 2**31 - 1
_LEAST = -(2**63)


def walk(buffer: memoryview | bytes, start: int, rows: Rows, room: int) -> tuple[int, int, bool]:
    """Fills `rows` with batches whose headers lie in the buffer; see the contract."""
    if start < 0:
        raise IndexError("a walk before its buffer")
    capacity, count, at, end = len(rows) // ROW, 0, start, len(buffer)
    while count < capacity and end - at > MAGIC_POSITION:
        magic = buffer[at + MAGIC_POSITION]
        if magic > 2:
            return count, at, True
        if end - at < (BATCH_HEADER_SIZE if magic == 2 else LEAST_SIZES[magic]):
            break
        size = size_field(buffer, at) + LOG_OVERHEAD
        if not LEAST_SIZES[magic] <= size <= room - at:
            return count, at, True
        rows[count * ROW : count * ROW + ROW] = array("q", (at, size, UNCHECKED))
        count += 1
        at += size
    return count, at, False


def end_marker(raw: memoryview | bytes) -> tuple[int, int, int] | None:
    """The marker in a control batch of the usual form; see the contract."""
    if len(raw) < BATCH_HEADER_SIZE or raw[MAGIC_POSITION] != 2:
        return None
    buffer = memoryview(raw)
    batch = read_batch(buffer, 0, len(raw), 1, 0)
    if batch[CODEC] or batch[COUNT] != 1:
        return None
    pieces = list(batch_pieces(buffer, 0, batch, None))
    if len(pieces) != 1 or isinstance(pieces[0], RecordProblem) or len(pieces[0]) != 1:
        return None
    control = read_control(pieces[0][0])
    if control is None or control[0] not in MARKERS:
        return None
    kind, record = control
    return kind, cast("int", record[Slot.COORDINATOR_EPOCH - OFFSET]), timestamp_of(record)


class HeaderColumns:
    """See the contract."""

    def __init__(self, headers: list[tuple[int, ...]], *, has_wrappers: bool) -> None:
        self.has_wrappers = has_wrappers
        self._columns = list(zip(*headers, strict=True)) if headers else [()] * len(HEADER_NAMES)

    def column(self, name: str) -> Buffer:
        """The column of a name; see the contract."""
        return array("q", self._columns[HEADER_NAMES.index(name)]).tobytes()


def header_columns(buffer: memoryview | bytes, rows: Rows, first: int, last: int, position: int) -> HeaderColumns:
    """The headers of rows first … last - 1; see the contract."""
    if not 0 <= first <= last <= len(rows) // ROW:
        raise IndexError("rows that aren't there")
    headers = []
    for row in range(first * ROW, last * ROW, ROW):
        start, size, is_valid = rows[row : row + ROW]
        _check_header(buffer, start, size)
        values = _entry_values if buffer[start + MAGIC_POSITION] not in range(2, 128) else _batch_values
        headers.append((position + start, *values(buffer, start, size), is_valid))
    has_wrappers = any(header[1] == header[-2] == -1 and header[4] < 2 for header in headers)
    return HeaderColumns(headers, has_wrappers=has_wrappers)


def _batch_values(buffer: memoryview | bytes, at: int, size: int) -> tuple[int, ...]:
    base_offset, _, epoch, magic, crc, attributes, delta, *others = _BATCH.unpack_from(buffer, at)
    return (base_offset, size, epoch, magic, crc, attributes, int64(base_offset + delta), *others)


def _entry_values(buffer: memoryview | bytes, at: int, size: int) -> tuple[int, ...]:
    timestamp = -1
    if buffer[at + MAGIC_POSITION] == 1:
        offset, _, crc, magic, attributes, timestamp, _ = _ENTRY_V1.unpack_from(buffer, at)
    else:
        offset, _, crc, magic, attributes, _ = _ENTRY_V0.unpack_from(buffer, at)
    is_wrapper = bool(attributes & CODEC_MASK)
    first, count = (-1, -1) if is_wrapper else (offset, 1)
    return first, size, -1, magic, crc, attributes & 0xFF, offset, timestamp, timestamp, *_ONLY_OF_BATCHES, count


def _check_header(buffer: memoryview | bytes, start: int, size: int) -> None:
    """Raises IndexError unless the header of a row's magic lies within the buffer, if not its bytes."""
    left = len(buffer) - start
    if start >= 0 and size >= LEAST_SIZES[0] and left >= _HEADER_SIZES[0]:
        magic = buffer[start + MAGIC_POSITION]
        if left >= (_HEADER_SIZES[2] if 2 <= magic < 128 else _HEADER_SIZES[1 if magic == 1 else 0]) and (
            not 2 <= magic < 128 or size >= BATCH_HEADER_SIZE
        ):
            return
    raise IndexError("a row whose header isn't in the buffer")


class ProducerTable:
    """See the contract."""

    def __init__(self) -> None:
        self._values: dict[int, ProducerValues] = {}
        self._passed: dict[int, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, producer_id: int) -> ProducerValues | None:
        """The values of a producer; None if it isn't known."""
        return self._values.get(producer_id)

    def put(self, values: ProducerValues) -> None:
        """Sets the values of a producer."""
        self._values[values[0]] = cast("ProducerValues", tuple(map(int64, values)))
        self._passed.pop(values[0], None)

    def pass_batch(self, values: ProducerValues, records: int) -> None:
        """Sets the values of a producer after one more of its batches."""
        batches, records_before = self.passed(values[0])
        self.put(values)
        self._passed[values[0]] = batches + 1, int64(records_before + records)

    def passed(self, producer_id: int) -> tuple[int, int]:
        """Batches and records of a producer that were passed since it was put in."""
        return self._passed.get(producer_id, (0, 0))

    def ids(self) -> list[int]:
        """Producer ids."""
        return list(self._values)


class _Header(NamedTuple):
    """The facts of a header that a fold looks at."""

    position: int
    size: int
    base_offset: int
    last_offset_delta: int
    last_offset: int
    leader_epoch: int
    crc: int
    attributes: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    sequence: int
    records_count: int

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; -1 for none."""
        return -1 if self.sequence < 0 else (self.sequence + self.last_offset_delta) & _LARGEST_SEQUENCE


def _batch_header(buffer: memoryview | bytes, at: int, size: int, position: int) -> _Header:
    base_offset, _, epoch, _, crc, attributes, delta, _, *others = _BATCH.unpack_from(buffer, at)
    return _Header(position, size, base_offset, delta, int64(base_offset + delta), epoch, crc, attributes, *others)


def _entry_header(buffer: memoryview | bytes, at: int, size: int, position: int) -> _Header:
    """Of a v0 or v1 entry; a wrapper's own base offset and records aren't known here."""
    _, _, _, magic, crc, attributes, offset, _, timestamp, *_, count = _entry_values(buffer, at, size)
    attributes &= CODEC_MASK | TIMESTAMP_TYPE_MASK if magic == 1 else CODEC_MASK
    return _Header(position, size, offset, 0, offset, -1, crc, attributes, timestamp, -1, -1, -1, max(count, 0))


class HeaderFold:
    """See the contract."""

    def __init__(self, watched: int, producers: ProducerTable | None = None) -> None:
        self.watched = watched
        self.producers = ProducerTable() if producers is None else producers
        self.next_offset, self.last_offset, self.leader_epoch = 0, -1, -1
        self.max_timestamp = self.offset_of_max_timestamp = self.append_time = -1
        self.largest_size = self.end = self.batches = self.records = self.gaps = self.missing = self.codecs = 0
        self.ends_keyed: bool | None = None
        self.passes_legacy = False
        self.offset_floor = _LEAST
        self.offset_bound = self.timestamp_bound = self.position_bound = MOST
        self.offset_entries: OffsetEntries | None = None
        self.time_entries: TimeEntries | None = None
        self.entry_writer: EntryWriter | None = None
        self._continued: dict[int, bool] = {}
        self._recent: deque[tuple[int, int, int]] = deque(maxlen=RECENT)

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
        """Passes rows from `first` on, up to `last` or the first in which something happens; see the contract."""
        if not 0 <= first <= last <= len(rows) // ROW:
            raise IndexError("rows that aren't there")
        if bodies is not None and not 0 <= first - first_body <= last - first_body <= len(bodies):
            raise IndexError("fewer bodies than rows")
        for row in range(first, last):
            start, size, is_valid = (rows[row * ROW + column] for column in (START, SIZE, VALID))
            if self.watched & (Event.RECORDS | Event.ODD_NULL) and not (
                start >= 0 and LEAST_SIZES[0] <= size <= len(buffer) - start
            ):
                raise IndexError("a row outside the buffer")
            if is_valid == 0:
                return row, Event.INVALID
            _check_header(buffer, start, size)
            body = None if bodies is None else bodies[row - first_body]
            events = self._step(buffer, start, size, position + start, body)
            if events:
                return row, events
        return last, 0

    def _step(self, buffer: memoryview | bytes, at: int, size: int, position: int, body: bytes | None) -> int:
        """Passes a row if nothing happens in it; else the events."""
        if self.watched & Event.ODD_NULL and _finds_odd_null(bytes(buffer[at : at + size]), body):
            return Event.ODD_NULL
        if 2 <= buffer[at + MAGIC_POSITION] < 128:
            header = _batch_header(buffer, at, size, position)
        elif not self.passes_legacy or self.watched & Event.RECORDS:
            return Event.LEGACY
        else:
            header = _entry_header(buffer, at, size, position)
        events: int = self._events(header) & (self.watched | Event.BOUND)
        has_producer = self._is_of_producer(header)
        if not events and has_producer:
            events = self._events_of_producer(header) & self.watched
        if not events and self.watched & Event.RECORDS and not self._records_agree(buffer, at, header, body):
            events = Event.RECORDS
        if not events and self.watched & Event.INDEX and not self._indexes_agree(header):
            events = Event.INDEX
        if events:
            return events
        if has_producer:
            self._update_producer(header)
        if header.base_offset > self.next_offset:
            self.gaps += 1
            self.missing = int64(self.missing + header.base_offset - self.next_offset)
        self._pass(header)
        return 0

    def _events(self, header: _Header) -> int:
        attributes, span = header.attributes, header.last_offset_delta + 1
        is_control = bool(attributes & CONTROL_MASK)
        events = Event.CONTROL if is_control else Event(0)
        if attributes & TRANSACTIONAL_MASK and not is_control:
            events |= Event.TRANSACTIONAL
        for mask, event in _FLAGS:
            if attributes & mask:
                events |= event
        if header.base_offset > self.next_offset:
            events |= Event.GAP
        if header.base_offset < self.next_offset or header.last_offset < header.base_offset:
            events |= Event.FALL
        if header.last_offset < self.last_offset:
            events |= Event.DISORDER
        if span != header.records_count or span < 1:
            events |= Event.SPARSE
        if header.leader_epoch != self.leader_epoch:
            events |= Event.EPOCH
        if (
            not self.offset_floor <= header.last_offset < self.offset_bound
            or header.max_timestamp >= self.timestamp_bound
            or header.position > self.position_bound
        ):
            events |= Event.BOUND
        return events

    def _is_of_producer(self, header: _Header) -> bool:
        """Whether the state of the header's producer is looked at."""
        if header.producer_id >= 0 and self.watched & Event.PRODUCER:
            return True
        kind = header.attributes & (TRANSACTIONAL_MASK | CONTROL_MASK)
        return kind == TRANSACTIONAL_MASK and bool(self.watched & Event.TRANSACTION)

    def _events_of_producer(self, header: _Header) -> int:
        known = self.producers.get(header.producer_id)
        if header.producer_id < 0 or not self.watched & Event.PRODUCER:
            continues = known is not None and known[1] == header.producer_epoch and known[-1] >= 0
            return 0 if continues else Event.TRANSACTION
        if known is None or known[1] != header.producer_epoch:
            return Event.PRODUCER
        if header.attributes & CONTROL_MASK or (header.attributes & TRANSACTIONAL_MASK and known[-1] < 0):
            return Event.PRODUCER
        if known[2] < 0 or header.sequence != (known[2] + 1) & _LARGEST_SEQUENCE:
            return Event.SEQUENCE
        return 0

    def _update_producer(self, header: _Header) -> None:
        known = self.producers.get(header.producer_id)
        if known is not None:
            of_batch = header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp
            self.producers.pass_batch((known[0], known[1], *of_batch, known[6], known[7]), header.records_count)
            if known[7] >= 0 and header.attributes & TRANSACTIONAL_MASK:
                self._continued[known[0]] = bool(header.attributes & TIMESTAMP_TYPE_MASK)

    def continued(self) -> list[tuple[int, int | None]]:
        """Producers with batches of open transactions since this was last asked; see the contract."""
        continued, self._continued = self._continued, {}
        known = [(self.producers.get(producer_id), by_broker) for producer_id, by_broker in continued.items()]
        return [(values[0], values[5] if by_broker else None) for values, by_broker in known if values is not None]

    def _records_agree(self, buffer: memoryview | bytes, at: int, header: _Header, body: bytes | None) -> bool:
        """Whether all records can be read, with rising offsets among the header's, its largest time, usual nulls."""
        batch = read_batch(memoryview(buffer), at, header.size, 1, header.position)
        offset, largest, ends_keyed = header.base_offset - 1, _LEAST, None
        if header.last_offset < header.base_offset or (header.attributes & CODEC_MASK and body is None):
            return False
        for piece in batch_pieces(memoryview(buffer), at, batch, body):
            if isinstance(piece, RecordProblem):
                return False
            offsets = [offset, *map(offset_of, piece)]
            if offsets[-1] > header.last_offset or any(map(ge, offsets, offsets[1:])):
                return False
            if piece:
                offset = offsets[-1]
                largest = max(largest, max(map(timestamp_of, piece)))
                ends_keyed = key_of(piece[-1]) is not None
        if ends_keyed is not None and largest != header.max_timestamp:
            return False
        records = bytes(buffer[at + BATCH_HEADER_SIZE : at + header.size]) if body is None else bytes(body)
        if has_odd_null(records, header.records_count):
            return False
        self.ends_keyed = ends_keyed
        return True

    def _indexes_agree(self, header: _Header) -> bool:
        offsets, times = self.offset_entries, self.time_entries
        if offsets is not None and not offsets.pass_batch(header.base_offset, header.position, self.largest_size):
            return False
        return times is None or times.pass_batch(
            header.base_offset, header.last_offset, header.max_timestamp, has_records=header.records_count != 0
        )

    def _pass(self, header: _Header) -> None:
        self._recent.append((header.base_offset, header.last_offset, header.crc))
        self.last_offset = header.last_offset
        self.next_offset = max(self.next_offset, int64(header.last_offset + 1))
        self.leader_epoch = max(self.leader_epoch, header.leader_epoch)
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp, self.offset_of_max_timestamp = header.max_timestamp, header.last_offset
        if header.attributes & TIMESTAMP_TYPE_MASK:
            self.append_time = max(self.append_time, header.max_timestamp)
        self.largest_size = max(self.largest_size, header.size)
        self.end = header.position + header.size
        self.batches += 1
        self.records = int64(self.records + header.records_count)
        self.codecs |= 1 << (header.attributes & CODEC_MASK)
        if self.entry_writer is not None:
            self.entry_writer.add(header.position, header.last_offset, self.max_timestamp, self.offset_of_max_timestamp)

    def take(self, header: Any) -> None:
        """Passes a batch whatever happens in it; see the contract."""
        self._pass(
            _Header(
                header.position,
                header.size,
                int64(header.first_offset),
                0,
                int64(header.last_offset),
                header.partition_leader_epoch,
                header.crc,
                header.attributes if header.magic else header.attributes & CODEC_MASK,
                header.max_timestamp,
                -1,
                -1,
                -1,
                header.records_count or 0,
            )
        )

    def recent(self) -> list[tuple[int, int, int]]:
        """Base offset, last offset and CRC of the last batches, at most RECENT."""
        return list(self._recent)


_FLAGS = (
    (DELETE_HORIZON_MASK, Event.DELETE_HORIZON),
    (TIMESTAMP_TYPE_MASK, Event.APPEND_TIME),
    (CODEC_MASK, Event.COMPRESSED),
)


_OFFSET_ENTRY = OFFSET_INDEX_ENTRY_FIELDS.struct
_TIME_ENTRY = TIME_INDEX_ENTRY_FIELDS.struct
_LARGEST_INT32 = 2**31 - 1


class OffsetEntries:
    """See the contract."""

    def __init__(self, content: Buffer, base_offset: int, count: int, longest_stretch: int) -> None:
        if not 0 <= count <= len(content) // _OFFSET_ENTRY.size:
            raise IndexError("more entries than there are")
        self._entries = [_OFFSET_ENTRY.unpack_from(content, at * _OFFSET_ENTRY.size) for at in range(count)]
        self._base_offset, self._longest_stretch = base_offset, longest_stretch
        self.next, self.passed_offset, self.last_position = 0, -1, 0

    def pass_batch(self, base_offset: int, at: int, largest_size: int) -> bool:
        """Passes the entry of the batch at a position, if there is one; False where an entry is wrong."""
        if not 0 <= self.next < len(self._entries):
            return True
        relative_offset, position = self._entries[self.next]
        if position > at:
            return True
        offset = self._base_offset + relative_offset
        is_right = position == at and self.passed_offset < base_offset <= offset
        is_near = at - self.last_position <= self._longest_stretch + 2 * largest_size
        if not is_right or not is_near or not self._rises(relative_offset, position):
            return False
        self.passed_offset, self.last_position = offset, at
        self.next += 1
        return True

    def _rises(self, relative_offset: int, position: int) -> bool:
        before = self._entries[self.next - 1]
        return self.next == 0 or (relative_offset > before[0] and position > before[1])


class TimeEntries:
    """See the contract."""

    def __init__(self, content: Buffer, base_offset: int, count: int) -> None:
        if not 0 <= count <= len(content) // _TIME_ENTRY.size:
            raise IndexError("more entries than there are")
        self._entries = [_TIME_ENTRY.unpack_from(content, at * _TIME_ENTRY.size) for at in range(count)]
        self._base_offset = base_offset
        self.next, self.last_timestamp = 0, -1
        self.largest = self.largest_of_records = -1
        self.has_all_times = True

    def pass_batch(self, base_offset: int, last_offset: int, timestamp: int, *, has_records: bool) -> bool:
        """Passes the entries up to a batch, and its largest time; False where one is wrong."""
        largest, largest_of_records = max(self.largest, timestamp), self.largest_of_records
        if has_records:
            largest_of_records = max(largest_of_records, timestamp)
        if not self._pass_entries(base_offset - 1, self.largest, self.largest_of_records):
            return False
        if not self._pass_entries(last_offset, largest, largest_of_records):
            return False
        self.largest, self.largest_of_records = largest, largest_of_records
        return True

    def _pass_entries(self, last_offset: int, largest: int, largest_of_records: int) -> bool:
        while 0 <= self.next < len(self._entries):
            timestamp, relative_offset = self._entries[self.next]
            if self._base_offset + relative_offset > last_offset:
                return True
            is_wrong = timestamp < largest_of_records or (self.has_all_times and timestamp > largest)
            if is_wrong or not self._rises(timestamp, relative_offset):
                return False
            self.last_timestamp = timestamp
            self.next += 1
        return True

    def _rises(self, timestamp: int, relative_offset: int) -> bool:
        before = self._entries[self.next - 1]
        return self.next == 0 or (timestamp > before[0] and relative_offset >= before[1])


class EntryWriter:
    """See the contract."""

    def __init__(self, base_offset: int, interval: int) -> None:
        self._base_offset, self._interval = base_offset, interval
        self._entry_position, self._last_timestamp = 0, -1
        self._last_offset: int | None = None
        self._offsets, self._times = bytearray(), bytearray()
        self.skipped = 0

    @property
    def offset_index(self) -> bytes:
        """The bytes of the .index."""
        return bytes(self._offsets)

    @property
    def time_index(self) -> bytes:
        """The bytes of the .timeindex."""
        return bytes(self._times)

    @property
    def offset_count(self) -> int:
        """Entries of the .index."""
        return len(self._offsets) // _OFFSET_ENTRY.size

    @property
    def time_count(self) -> int:
        """Entries of the .timeindex."""
        return len(self._times) // _TIME_ENTRY.size

    def add(self, position: int, last_offset: int, max_timestamp: int, offset_of_max_timestamp: int) -> None:
        """Adds the batch at a position; see the contract."""
        if position - self._entry_position <= self._interval:
            return
        offset = int64(last_offset)
        relative_offset = offset - self._base_offset
        rises = self._last_offset is None or offset > self._last_offset
        if rises and 0 <= relative_offset <= _LARGEST_INT32 and position <= _LARGEST_INT32:
            self._offsets += _OFFSET_ENTRY.pack(relative_offset, position)
            self._last_offset = offset
        else:
            self.skipped += 1
        self.finish(max_timestamp, offset_of_max_timestamp)
        self._entry_position = position

    def finish(self, max_timestamp: int, offset_of_max_timestamp: int) -> None:
        """Adds an entry of the time index, if the time is larger than the last one's."""
        relative_offset = int64(offset_of_max_timestamp) - self._base_offset
        if max_timestamp > self._last_timestamp and 0 <= relative_offset <= _LARGEST_INT32:
            self._times += _TIME_ENTRY.pack(max_timestamp, relative_offset)
            self._last_timestamp = max_timestamp


def _finds_odd_null(batch: bytes, body: bytes | None) -> bool:
    if not 2 <= batch[MAGIC_POSITION] < 128:
        return is_odd_entry(batch, body)
    is_compressed = BATCH_ATTRIBUTES.read(batch) & CODEC_MASK
    if is_compressed and body is None:
        return False
    records = batch[BATCH_HEADER_SIZE:] if body is None else bytes(body)
    return has_odd_null(records, BATCH_RECORDS_COUNT.read(batch))
