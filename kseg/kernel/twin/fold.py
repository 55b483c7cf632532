"""Folds of the twin over batches by their headers, and index entries compared with batches."""

from collections import deque
from typing import Any, cast

from kseg.formats.codes import BATCH_HEADER_SIZE, MAGIC_POSITION
from kseg.formats.header_fields import OFFSET_INDEX_ENTRY_FIELDS, TIME_INDEX_ENTRY_FIELDS
from kseg.kernel.contract import LEAST, MOST, Buffer, RecordProblem, Rows
from kseg.kernel.entry_points import Bodies
from kseg.kernel.fold_contract import RECENT, Event, ProducerValues
from kseg.kernel.twin.headers import Header, check_row, int64, read_header, read_lone_header, rows_of
from kseg.kernel.twin.records import MARKERS, RecordValues, Row, read_control

_LARGEST_SEQUENCE = 2**31 - 1


def end_marker(raw: memoryview | bytes) -> tuple[int, int, int] | None:
    """Return the marker in a control batch of the usual form; see the contract."""
    if len(raw) < BATCH_HEADER_SIZE or raw[MAGIC_POSITION] != 2:
        return None
    header = read_header(raw, 0, len(raw), 1, 0)
    if header.codec or header.records_count != 1:
        return None
    match list(Row(header, memoryview(raw), None).records()):
        case [RecordValues() as record]:
            control = read_control(record)
            if control is not None and control.type in MARKERS:
                return control.type, control.coordinator_epoch, record.timestamp
    return None


class ProducerTable:
    """The producer table of the contract."""

    def __init__(self) -> None:
        self._values: dict[int, ProducerValues] = {}
        self._passed: dict[int, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, producer_id: int) -> ProducerValues | None:
        """Return the values of a producer, or None for an unknown one."""
        return self._values.get(producer_id)

    def put(self, values: ProducerValues) -> None:
        """Set the values of a producer."""
        self._values[values[0]] = cast("ProducerValues", tuple(map(int64, values)))
        self._passed.pop(values[0], None)

    def pass_batch(self, values: ProducerValues, records: int) -> None:
        """Set the values of a producer after one more of its batches."""
        batches, records_before = self.count_passed(values[0])
        self.put(values)
        self._passed[values[0]] = batches + 1, int64(records_before + records)

    def count_passed(self, producer_id: int) -> tuple[int, int]:
        """Return the batches and records of a producer that were passed since its last `put`."""
        return self._passed.get(producer_id, (0, 0))

    def ids(self) -> list[int]:
        """Return producer ids."""
        return list(self._values)


class HeaderFold:
    """The header fold of the contract."""

    def __init__(self, watched: int, producers: ProducerTable | None = None) -> None:
        self.watched = watched
        self.producers = ProducerTable() if producers is None else producers
        self.next_offset, self.last_offset, self.leader_epoch = 0, -1, -1
        self.max_timestamp = self.offset_of_max_timestamp = self.append_time = -1
        self.largest_size = self.end = self.batches = self.records = self.gaps = self.missing = self.codecs = 0
        self.ends_keyed: bool | None = None
        self.passes_legacy = False
        self.offset_floor = LEAST
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
        """Pass rows from `first` on, up to `last` or the first row with an event; see the contract."""
        table = rows_of(rows, first, last)
        if bodies is not None and not 0 <= first - first_body <= last - first_body <= len(bodies):
            raise IndexError("fewer bodies than rows")
        for number, (at, size, is_valid) in enumerate(table, first):
            if self.watched & (Event.RECORDS | Event.ODD_NULL):
                check_row(buffer, at, size)
            if is_valid == 0:
                return number, Event.INVALID
            header = read_lone_header(buffer, at, size, is_valid, position + at)
            body = None if bodies is None else bodies[number - first_body]
            events = self._step(Row(header, memoryview(buffer)[at : at + size], body))
            if events:
                return number, events
        return last, 0

    def _step(self, row: Row) -> int:
        """Pass a row without events; otherwise return the events."""
        header = row.header
        if self.watched & Event.ODD_NULL and _has_odd_null(row):
            return Event.ODD_NULL
        if not header.is_batch and (not self.passes_legacy or self.watched & Event.RECORDS):
            return Event.LEGACY
        if header.is_wrapper:
            header = header._replace(records_count=0)
        events: int = self._events(header) & (self.watched | Event.BOUND)
        has_producer = self._is_of_producer(header)
        if not events and has_producer:
            events = self._events_of_producer(header) & self.watched
        if not events and self.watched & Event.RECORDS and not self._records_agree(row):
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

    def _events(self, header: Header) -> int:
        events, span = Event(0), header.last_offset_delta + 1 if header.is_batch else 1
        for is_met, event in (
            (header.is_control, Event.CONTROL),
            (header.is_transactional and not header.is_control, Event.TRANSACTIONAL),
            (header.has_delete_horizon, Event.DELETE_HORIZON),
            (header.append_time is not None, Event.APPEND_TIME),
            (header.codec, Event.COMPRESSED),
        ):
            if is_met:
                events |= event
        if header.base_offset > self.next_offset:
            events |= Event.GAP
        if header.base_offset < self.next_offset or header.last_offset < header.base_offset:
            events |= Event.FALL
        if header.last_offset < self.last_offset:
            events |= Event.DISORDER
        if span != header.records_count or span < 1:
            events |= Event.SPARSE
        if header.partition_leader_epoch != self.leader_epoch:
            events |= Event.EPOCH
        if (
            not self.offset_floor <= header.last_offset < self.offset_bound
            or header.max_timestamp >= self.timestamp_bound
            or header.position > self.position_bound
        ):
            events |= Event.BOUND
        return events

    def _is_of_producer(self, header: Header) -> bool:
        """Return True if the state of the header's producer is checked."""
        if header.producer_id >= 0 and self.watched & Event.PRODUCER:
            return True
        is_data = header.is_transactional and not header.is_control
        return is_data and bool(self.watched & Event.TRANSACTION)

    def _events_of_producer(self, header: Header) -> int:
        known = self.producers.get(header.producer_id)
        if header.producer_id < 0 or not self.watched & Event.PRODUCER:
            continues = known is not None and known[1] == header.producer_epoch and known[-1] >= 0
            return 0 if continues else Event.TRANSACTION
        if known is None or known[1] != header.producer_epoch:
            return Event.PRODUCER
        if header.is_control or (header.is_transactional and known[-1] < 0):
            return Event.PRODUCER
        if known[2] < 0 or header.base_sequence != (known[2] + 1) & _LARGEST_SEQUENCE:
            return Event.SEQUENCE
        return 0

    def _update_producer(self, header: Header) -> None:
        known = self.producers.get(header.producer_id)
        if known is not None:
            of_batch = _last_sequence(header), header.last_offset, header.last_offset_delta, header.max_timestamp
            self.producers.pass_batch((known[0], known[1], *of_batch, known[6], known[7]), header.records_count)
            if known[7] >= 0 and header.is_transactional:
                self._continued[known[0]] = header.append_time is not None

    def take_continued(self) -> list[tuple[int, int | None]]:
        """Return producers with batches of open transactions since the last call; see the contract."""
        continued, self._continued = self._continued, {}
        known = [(self.producers.get(producer_id), by_broker) for producer_id, by_broker in continued.items()]
        return [(values[0], values[5] if by_broker else None) for values, by_broker in known if values is not None]

    def _records_agree(self, row: Row) -> bool:
        """Return True if all records can be read, with increasing offsets, the largest timestamp, and usual nulls."""
        header = row.header
        offset, largest, ends_keyed = header.base_offset - 1, LEAST, None
        if header.last_offset < header.base_offset or (header.codec and row.body is None):
            return False
        for record in row.records():
            if isinstance(record, RecordProblem) or record.has_odd_null:
                return False
            if not offset < record.offset <= header.last_offset:
                return False
            offset, largest = record.offset, max(largest, record.timestamp)
            ends_keyed = record.key is not None
        if ends_keyed is not None and largest != header.max_timestamp:
            return False
        self.ends_keyed = ends_keyed
        return True

    def _indexes_agree(self, header: Header) -> bool:
        offsets, times = self.offset_entries, self.time_entries
        if offsets is not None and not offsets.pass_batch(header.base_offset, header.position, self.largest_size):
            return False
        return times is None or times.pass_batch(
            header.base_offset, header.last_offset, header.max_timestamp, has_records=header.records_count != 0
        )

    def _pass(self, header: Header) -> None:
        self._recent.append((header.base_offset, header.last_offset, header.crc))
        self.last_offset = header.last_offset
        self.next_offset = max(self.next_offset, int64(header.last_offset + 1))
        self.leader_epoch = max(self.leader_epoch, header.partition_leader_epoch)
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp, self.offset_of_max_timestamp = header.max_timestamp, header.last_offset
        if header.append_time is not None:
            self.append_time = max(self.append_time, header.append_time)
        self.largest_size = max(self.largest_size, header.size)
        self.end = header.position + header.size
        self.batches += 1
        self.records = int64(self.records + header.records_count)
        self.codecs |= 1 << header.codec
        if self.entry_writer is not None:
            self.entry_writer.add(header.position, header.last_offset, self.max_timestamp, self.offset_of_max_timestamp)

    def take(self, header: Any) -> None:
        """Pass a batch whatever its events; see the contract."""
        values: dict[str, Any] = {name: getattr(header, name, -1) for name in Header._fields}
        values["base_offset"], values["last_offset"] = int64(header.first_offset), int64(header.last_offset)
        values["records_count"], values["is_batch"] = header.records_count or 0, header.magic >= 2
        self._pass(Header(**values))

    def recent(self) -> list[tuple[int, int, int]]:
        """Return base offset, last offset and CRC of the last batches, at most RECENT."""
        return list(self._recent)


def _last_sequence(header: Header) -> int:
    """Return the sequence of the last record, or -1 for none."""
    is_there = header.base_sequence >= 0
    return (header.base_sequence + header.last_offset_delta) & _LARGEST_SEQUENCE if is_there else -1


def _has_odd_null(row: Row) -> bool:
    """Return True if a readable record, or a wrapper itself, has a negative size other than null's."""
    if row.header.is_wrapper and row.message().has_odd_null:
        return True
    return any(isinstance(record, RecordValues) and record.has_odd_null for record in row.records())


# --- index entries ---------------------------------------------------------------------------------------------------

_OFFSET_ENTRY = OFFSET_INDEX_ENTRY_FIELDS.struct
_TIME_ENTRY = TIME_INDEX_ENTRY_FIELDS.struct
_LARGEST_INT32 = 2**31 - 1


class OffsetEntries:
    """The .index entries of the contract."""

    def __init__(self, content: Buffer, base_offset: int, count: int, longest_stretch: int) -> None:
        if not 0 <= count <= len(content) // _OFFSET_ENTRY.size:
            raise IndexError("more entries than there are")
        self._entries = [_OFFSET_ENTRY.unpack_from(content, at * _OFFSET_ENTRY.size) for at in range(count)]
        self._base_offset, self._longest_stretch = base_offset, longest_stretch
        self.next, self.passed_offset, self.last_position = 0, -1, 0

    def pass_batch(self, base_offset: int, at: int, largest_size: int) -> bool:
        """Pass the entry of the batch at a position, if it exists; return False if an entry is wrong."""
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
    """The .timeindex entries of the contract."""

    def __init__(self, content: Buffer, base_offset: int, count: int) -> None:
        if not 0 <= count <= len(content) // _TIME_ENTRY.size:
            raise IndexError("more entries than there are")
        self._entries = [_TIME_ENTRY.unpack_from(content, at * _TIME_ENTRY.size) for at in range(count)]
        self._base_offset = base_offset
        self.next, self.last_timestamp = 0, -1
        self.largest = self.largest_of_records = -1
        self.has_all_times = True

    def pass_batch(self, base_offset: int, last_offset: int, timestamp: int, *, has_records: bool) -> bool:
        """Pass the entries up to a batch, and its largest timestamp; return False if an entry is wrong."""
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
    """The entry writer of the contract."""

    def __init__(self, base_offset: int, interval: int) -> None:
        self._base_offset, self._interval = base_offset, interval
        self._entry_position, self._last_timestamp = 0, -1
        self._last_offset: int | None = None
        self.offset_index = self.time_index = b""
        self.skipped = 0

    @property
    def offset_count(self) -> int:
        """Entries of the .index."""
        return len(self.offset_index) // _OFFSET_ENTRY.size

    @property
    def time_count(self) -> int:
        """Entries of the .timeindex."""
        return len(self.time_index) // _TIME_ENTRY.size

    def add(self, position: int, last_offset: int, max_timestamp: int, offset_of_max_timestamp: int) -> None:
        """Add the batch at a position; see the contract."""
        if position - self._entry_position <= self._interval:
            return
        offset = int64(last_offset)
        relative_offset = offset - self._base_offset
        rises = self._last_offset is None or offset > self._last_offset
        if rises and 0 <= relative_offset <= _LARGEST_INT32 and position <= _LARGEST_INT32:
            self.offset_index += _OFFSET_ENTRY.pack(relative_offset, position)
            self._last_offset = offset
        else:
            self.skipped += 1
        self.finish(max_timestamp, offset_of_max_timestamp)
        self._entry_position = position

    def finish(self, max_timestamp: int, offset_of_max_timestamp: int) -> None:
        """Add an entry of the time index, if the timestamp is larger than the last entry's."""
        relative_offset = int64(offset_of_max_timestamp) - self._base_offset
        if max_timestamp > self._last_timestamp and 0 <= relative_offset <= _LARGEST_INT32:
            self.time_index += _TIME_ENTRY.pack(max_timestamp, relative_offset)
            self._last_timestamp = max_timestamp
