# Entries of .index and .timeindex, written while batches are passed.

@cython.final
cdef class EntryWriter:
    """The entry writer of the contract."""

    cdef int64_t base_offset, interval, entry_position, last_offset, last_timestamp
    cdef bint has_offset
    cdef readonly int64_t skipped
    cdef Growing offsets, times

    def __cinit__(self, int64_t base_offset, int64_t interval):
        self.base_offset, self.interval, self.last_timestamp = base_offset, interval, -1
        self.offsets, self.times = Growing(), Growing()

    @property
    def offset_index(self):
        return bytes(self.offsets)

    @property
    def time_index(self):
        return bytes(self.times)

    @property
    def offset_count(self):
        return self.offsets.used // OFFSET_INDEX_ENTRY_SIZE

    @property
    def time_count(self):
        return self.times.used // TIME_INDEX_ENTRY_SIZE

    def add(self, int64_t position, last_offset, int64_t max_timestamp, offset_of_max_timestamp):
        self.pass_batch(position, wrapped(last_offset), max_timestamp, wrapped(offset_of_max_timestamp))

    def finish(self, int64_t max_timestamp, offset_of_max_timestamp):
        self.add_time(max_timestamp, wrapped(offset_of_max_timestamp))

    cdef int pass_batch(self, int64_t position, int64_t last_offset, int64_t max_timestamp,
                        int64_t offset_of_max_timestamp) except -1 nogil:
        if position - self.entry_position > self.interval:
            self.add_offset(last_offset, position)
            self.add_time(max_timestamp, offset_of_max_timestamp)
            self.entry_position = position
        return 0

    cdef int add_offset(self, int64_t offset, int64_t position) except -1 nogil:
        if (self.has_offset and offset <= self.last_offset) or not self.fits(offset) or position > LARGEST_INT32:
            self.skipped += 1
            return 0
        add_big_endian(self.offsets, offset - self.base_offset, 4)
        add_big_endian(self.offsets, position, 4)
        self.last_offset, self.has_offset = offset, True
        return 0

    cdef int add_time(self, int64_t timestamp, int64_t offset) except -1 nogil:
        if timestamp <= self.last_timestamp or not self.fits(offset):
            return 0
        add_big_endian(self.times, timestamp, 8)
        add_big_endian(self.times, offset - self.base_offset, 4)
        self.last_timestamp = timestamp
        return 0

    cdef bint fits(self, int64_t offset) noexcept nogil:
        """Return whether an entry has room for the offset, relative to the segment's."""
        return offset >= self.base_offset and <uint64_t>offset - <uint64_t>self.base_offset <= LARGEST_INT32


cdef int add_big_endian(Growing target, uint64_t number, int size) except -1 nogil:
    cdef uint8_t* at = target.add(size)
    cdef int i
    for i in range(size):
        at[i] = <uint8_t>(number >> 8 * (size - 1 - i))
    return 0
