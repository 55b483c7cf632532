# Records of several batches become those of one.

@cython.final
cdef class MergedRecords:
    """The merged records of the contract."""

    cdef Growing memory
    cdef RecordView view
    cdef RowWalk walk
    cdef bint is_comparable, is_complete
    cdef Py_ssize_t count
    cdef readonly int64_t base_timestamp, max_timestamp
    cdef public int64_t to_skip

    def __cinit__(self, *, bint is_comparable=False):
        self.memory = Growing()
        self.memory.keep(LARGEST_SPARE)
        self.is_comparable = is_comparable
        self.base_timestamp = self.max_timestamp = -1

    def __len__(self):
        return self.count

    @property
    def size(self):
        return self.memory.used

    @property
    def records(self):
        self.is_complete = True  # unsafe: a view of the memory, which must not grow from now on
        return memoryview(self.memory)

    def add(self, const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t first, Py_ssize_t last, Bodies bodies,
            Py_ssize_t first_body, record_filter, int64_t enough):
        cdef Py_ssize_t row = first
        cdef Filter wanted = None if record_filter is None else Filter(record_filter)
        if self.is_complete:
            raise BufferError("records can't be added after they were taken")
        check_range(rows, first, last, bodies, first_body)
        with nogil:
            while row < last:
                start_row_at(&self.walk, &self.view, buffer, rows, row, bodies, row - first_body)
                self.add_row(wanted)
                row += 1
                if self.memory.used >= enough:
                    break
        return row

    cdef int add_row(self, Filter wanted) except -1 nogil:
        cdef bint is_v2 = not self.walk.is_message and not self.walk.has_messages
        cdef const uint8_t* at = self.walk.records.body.at
        while next_of_row(&self.walk, &self.view):
            if wanted is None or wanted.takes(&self.view):
                if self.to_skip > 0:
                    self.to_skip -= 1
                elif is_v2:
                    self.add_record(at, self.walk.records.body.at)
                else:
                    self.add_message()
            at = self.walk.records.body.at
        return 0

    cdef int add_record(self, const uint8_t* at, const uint8_t* end) except -1 nogil:
        """Add a readable record of a v2 batch."""
        cdef Cursor stored
        cdef uint8_t* out
        stored.at, stored.end, stored.failed = at, end, False
        varint(&stored)
        take(&stored, 1)
        varlong(&stored, 10)
        varint(&stored)
        out = self.begin_record(end - stored.at)
        memcpy(out, stored.at, end - stored.at)
        return 0

    cdef int add_message(self) except -1 nogil:
        """Add the message of format 0 or 1 in the view."""
        cdef Bytes key = self.view.texts[KEY], value = self.view.texts[VALUE]
        cdef uint8_t* out
        key.size, value.size = max(key.size, -1), max(value.size, -1)
        self.view.slots[RECORD_ATTRIBUTES] = 0
        out = self.begin_record(varint_size(key.size) + max(key.size, 0) + varint_size(value.size) + max(value.size, 0) + 1)
        out = put_sized(out, key)
        out = put_sized(out, value)
        out[0] = 0  # no headers
        return 0

    cdef uint8_t* begin_record(self, int64_t rest_size) except NULL nogil:
        """Write a record up to its key's size; return the place of the rest, which is `rest_size` bytes long."""
        cdef int64_t timestamp = self.view.slots[TIMESTAMP], offset_delta = 0, size
        cdef uint8_t* start
        cdef uint8_t* out
        if self.count == 0:
            self.base_timestamp, self.max_timestamp = 0 if self.is_comparable else timestamp, timestamp
        self.max_timestamp = max(self.max_timestamp, timestamp)
        if not self.is_comparable:
            offset_delta = self.count
        timestamp = difference_of(timestamp, self.base_timestamp)
        size = 1 + varint_size(timestamp) + varint_size(offset_delta) + rest_size
        start = self.memory.add(size + LONGEST_VARINT)
        out = put_varint(start, size)
        out[0] = <uint8_t>self.view.slots[RECORD_ATTRIBUTES]
        out = put_varint(out + 1, timestamp)
        out = put_varint(out, offset_delta)
        self.memory.used -= size + LONGEST_VARINT - (out - start + rest_size)
        self.count += 1
        return out
