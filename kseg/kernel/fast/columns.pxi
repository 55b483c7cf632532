# Records column by column, for Arrow and numpy.

cdef enum:
    FEW_RECORDS = 32

cdef int add_int64(Growing column, int64_t value) except -1 nogil:
    (<int64_t*>column.add(8))[0] = value
    return 0


@cython.final
cdef class Texts:
    """A column of byte strings: offsets, a bit for each that isn't null, and the bytes."""

    cdef Growing offsets, validity, data
    cdef int64_t count, room  # texts, and the number of texts for which offsets and bits have memory

    def __cinit__(self):
        self.offsets, self.validity, self.data = Growing(), Growing(), Growing()
        self.count = self.room = 0

    cdef int reserve(self, int64_t room) except -1 nogil:
        """Make room for this number of texts, whatever their sizes."""
        self.offsets.reserve(4 * (room + 1))
        self.validity.reserve(room // 8 + 1)
        self.room = room
        return 0

    cdef inline int add(self, Bytes text) except -1 nogil:
        cdef int64_t count = self.count
        cdef uint8_t* last
        if count >= self.room:
            self.reserve(max(2 * count, FEW_RECORDS))
        if count & 7 == 0:
            self.validity.memory[count >> 3] = 0
        (<int32_t*>self.offsets.memory)[count] = <int32_t>self.data.used
        if text.size >= 0:
            last = self.validity.memory + (count >> 3)
            last[0] = last[0] | (1 << (count & 7))
        if text.size > 0:  # the memory may still be missing
            if text.size > self.data.capacity - self.data.used:
                self.data.reserve(max(2 * self.data.capacity, self.data.used + text.size))
            memcpy(self.data.memory + self.data.used, text.at, text.size)
            self.data.used += text.size
            if self.data.used > LARGEST_INT32:
                with gil:
                    raise OverflowError("more than 2 GiB of keys or values in one piece")
        self.count = count + 1
        return 0

    cdef int finish(self, int64_t count) except -1 nogil:
        """Complete the column; texts that weren't added up to a count are null."""
        self.reserve(max(count, FEW_RECORDS))
        while self.count < count:
            if self.count & 7 == 0:
                self.validity.memory[self.count >> 3] = 0
            (<int32_t*>self.offsets.memory)[self.count] = <int32_t>self.data.used
            self.count += 1
        (<int32_t*>self.offsets.memory)[count] = <int32_t>self.data.used
        self.data.reserve(0)  # Arrow accepts no missing memory
        self.offsets.used = 4 * (count + 1)
        self.validity.used = (count + 7) // 8
        return 0


@cython.final
cdef class Columns:
    """Records of a run of batches, column by column; see the contract."""

    cdef readonly int64_t count
    cdef readonly Growing rows, offsets, timestamps, timestamp_types, sequences, checksums, valid, control, header_offsets
    cdef readonly Growing places, key_offsets, key_validity, key_data, value_offsets, value_validity, value_data
    cdef readonly Growing header_key_offsets, header_key_data
    cdef readonly Growing header_value_offsets, header_value_validity, header_value_data
    cdef Texts keys, values, header_keys, header_values
    cdef readonly list problems
    cdef RecordView view
    cdef Filter filter
    cdef bint has_filter, is_full, has_keys, has_values, has_headers
    cdef int64_t to_skip, limit, read_count
    cdef int64_t room  # the number of records for which the columns have memory

    def __cinit__(self, record_filter, int contents):
        self.has_keys, self.has_values = contents & Contents.KEYS, contents & Contents.VALUES
        self.has_headers = contents & Contents.HEADERS
        self.has_filter = record_filter is not None
        self.to_skip = self.read_count = self.room = 0
        self.limit = -1
        if self.has_filter:
            self.filter = Filter(record_filter)
            self.to_skip = record_filter.skip
            self.limit = -1 if record_filter.limit is None else record_filter.limit
        self.is_full = self.limit == 0
        self.places = Growing()
        self.rows, self.offsets, self.timestamps, self.sequences = Growing(), Growing(), Growing(), Growing()
        self.checksums, self.valid, self.header_offsets = Growing(), Growing(), Growing()
        self.timestamp_types, self.control = Growing(), Growing()
        self.keys, self.values, self.header_keys, self.header_values = Texts(), Texts(), Texts(), Texts()
        self.key_offsets, self.key_validity, self.key_data = self.keys.offsets, self.keys.validity, self.keys.data
        self.value_offsets, self.value_validity = self.values.offsets, self.values.validity
        self.value_data = self.values.data
        self.header_key_offsets, self.header_key_data = self.header_keys.offsets, self.header_keys.data
        self.header_value_offsets = self.header_values.offsets
        self.header_value_validity, self.header_value_data = self.header_values.validity, self.header_values.data
        self.problems = []

    cdef int reserve(self, int64_t room) except -1 nogil:
        """Make room for this number of records, without their contents."""
        self.rows.reserve(4 * room)
        self.offsets.reserve(8 * room)
        self.timestamps.reserve(8 * room)
        self.sequences.reserve(4 * room)
        self.checksums.reserve(8 * room)
        self.valid.reserve(room)
        self.control.reserve(room)
        self.timestamp_types.reserve(4 * room)
        self.header_offsets.reserve(4 * (room + 1))
        if self.has_filter:
            self.places.reserve(4 * room)
        self.room = room
        return 0

    cdef int expect(self, const uint8_t* base, int64_t* rows, int64_t count, const Bytes* bodies) except -1:
        """Make room for all records of some rows, as far as their bodies can have so many: growing memory copies it.

        unsafe: check_rows has checked the rows.
        """
        cdef int64_t i, size, claimed, records = 0, most = 0
        cdef const uint8_t* at
        cdef Growing column
        for i in range(count):
            at = base + rows[i * ROW]
            size = bodies[i].size if bodies[i].size >= 0 else rows[i * ROW + 1]
            claimed = batch_records_count(at) if rows[i * ROW + 1] >= BATCH_HEADER_SIZE and batch_magic(at) == 2 else 1
            records += min(max(claimed, 0), size // LEAST_RECORD)
            most += size
        if self.has_values:
            self.values.data.keep(most)
            self.values.data.reserve(most)
        for column in (self.offsets, self.timestamps, self.checksums):
            column.keep(8 * records)
        for column in (self.rows, self.sequences, self.timestamp_types, self.header_offsets, self.keys.offsets,
                       self.values.offsets):
            column.keep(4 * records + 4)
        self.reserve(records)
        if self.has_keys:
            self.keys.reserve(records)
        if self.has_values:
            self.values.reserve(records)
        return 0

    @property
    def header_count(self):
        return self.header_keys.count

    cdef bint takes(self) except -1 nogil:
        """Return whether the filter takes the record in the view."""
        if self.is_full or not self.filter.takes(&self.view):
            return False
        if self.to_skip > 0:
            self.to_skip -= 1
            return False
        self.is_full = self.limit >= 0 and self.count + 1 >= self.limit
        return True

    cdef int add(self, int64_t row) except -1 nogil:
        """Add the record in the view, if the filter takes it."""
        cdef RecordView* view = &self.view
        cdef Cursor headers
        cdef int64_t count = self.count, i
        self.read_count += 1
        if self.has_filter and not self.takes():
            return 0
        if count >= self.room:
            self.reserve(max(2 * count, FEW_RECORDS))
        if self.has_filter:
            (<int32_t*>self.places.memory)[count] = <int32_t>(self.read_count - 1)
        (<int32_t*>self.rows.memory)[count] = <int32_t>row
        (<int64_t*>self.offsets.memory)[count] = view.slots[OFFSET]
        (<int64_t*>self.timestamps.memory)[count] = view.slots[TIMESTAMP]
        (<int32_t*>self.sequences.memory)[count] = <int32_t>view.slots[SEQUENCE]
        (<int64_t*>self.checksums.memory)[count] = view.slots[RECORD_CRC]
        self.valid.memory[count] = <uint8_t>view.slots[RECORD_IS_VALID]
        self.control.memory[count] = <uint8_t>view.slots[IS_CONTROL]
        (<int32_t*>self.timestamp_types.memory)[count] = <int32_t>view.slots[TIMESTAMP_TYPE]
        if self.has_keys:
            self.keys.add(view.texts[KEY])
        if self.has_values:
            self.values.add(view.texts[VALUE])
        (<int32_t*>self.header_offsets.memory)[count] = <int32_t>self.header_keys.count
        if self.has_headers and view.slots[HEADER_COUNT]:
            headers = view.headers
            for i in range(view.slots[HEADER_COUNT]):
                self.header_keys.add(sized(&headers, varint(&headers)))
                self.header_values.add(sized(&headers, varint(&headers)))
        self.count = count + 1
        return 0

    cdef int finish(self) except -1 nogil:
        """Complete the columns with their sizes."""
        cdef int64_t count = self.count
        self.reserve(max(count, FEW_RECORDS))
        (<int32_t*>self.header_offsets.memory)[count] = <int32_t>self.header_keys.count
        self.places.used = 4 * count if self.has_filter else 0
        self.rows.used = self.sequences.used = self.timestamp_types.used = 4 * count
        self.offsets.used = self.timestamps.used = self.checksums.used = 8 * count
        self.valid.used = self.control.used = count
        self.header_offsets.used = 4 * (count + 1)
        self.keys.finish(count)
        self.values.finish(count)
        self.header_keys.finish(self.header_keys.count)
        self.header_values.finish(self.header_values.count)
        return 0

    cdef int add_row(self, int64_t row, RowWalk* walk) except -1 nogil:
        """Add the records of a row, and its problem."""
        while next_of_row(walk, &self.view):
            self.add(row)
            if self.is_full:
                return 0
        if walk.records.problem != NO_PROBLEM:
            with gil:
                self.problems.append(problem_of(walk, &self.view))
        return 0


def columns(const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t first, Py_ssize_t last, int64_t position, bodies,
            record_filter=None, Py_ssize_t first_body=-1, int contents=7):
    """Return the records of rows first … last - 1, including control records; see the contract."""
    cdef Columns result = Columns(record_filter, contents)
    cdef const uint8_t* base = &buffer[0]
    cdef RowWalk walk
    cdef Py_ssize_t i
    check_rows(buffer.shape[0], rows, first, last)
    cdef Bytes* given = take_bodies(bodies, first - first_body if first_body >= 0 else 0, last - first)
    try:
        if first < last and not result.has_filter:
            result.expect(base, &rows[first * ROW], last - first, given)
        with nogil:
            for i in range(first, last):
                if result.is_full:
                    break
                start_row(&walk, &result.view, base + rows[i * ROW], rows[i * ROW + 1], buffer.shape[0] - rows[i * ROW],
                          rows[i * ROW + 2], position + rows[i * ROW], given[i - first])
                result.add_row(i, &walk)
            result.finish()
    finally:
        free(given)
    return result
