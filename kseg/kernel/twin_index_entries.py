"""Entries of .index and .timeindex: the twin's comparison with batches, and what writes them."""

from kseg.formats.header_fields import OFFSET_INDEX_ENTRY_FIELDS, TIME_INDEX_ENTRY_FIELDS
from kseg.kernel.contract import Buffer
from kseg.kernel.twin_values import int64

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
