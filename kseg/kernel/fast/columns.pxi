# Records column by column, for Arrow and numpy.

cdef int add_int32(Growing column, int64_t value) except -1 nogil:
    (<int32_t*>column.add(4))[0] = <int32_t>value
    return 0


cdef int add_int64(Growing column, int64_t value) except -1 nogil:
    (<int64_t*>column.add(8))[0] = value
    return 0


@cython.final
cdef class Texts:
    """A column of byte strings: offsets, a bit for each that isn't null, and the bytes."""

    cdef Growing offsets, validity, data
    cdef int64_t count

    def __cinit__(self):
        self.offsets, self.validity, self.data = Growing(), Growing(), Growing()
        self.count = 0
        add_int32(self.offsets, 0)
        self.validity.add(0)
        self.data.add(0)

    cdef int add(self, Bytes text) except -1 nogil:
        cdef uint8_t* last
        if self.count & 7 == 0:
            self.validity.add(1)[0] = 0
        if text.size >= 0:
            last = self.validity.memory + (self.count >> 3)
            last[0] = last[0] | (1 << (self.count & 7))
            memcpy(self.data.add(text.size), text.at, text.size)
        if self.data.used > 2147483647LL:
            with gil:
                raise OverflowError("more than 2 GiB of keys or values in one piece")
        add_int32(self.offsets, self.data.used)
        self.count += 1
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

    def __cinit__(self, record_filter, int contents):
        self.has_keys, self.has_values = contents & Contents.KEYS, contents & Contents.VALUES
        self.has_headers = contents & Contents.HEADERS
        self.has_filter = record_filter is not None
        self.to_skip = self.read_count = 0
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
        add_int32(self.header_offsets, 0)

    @property
    def header_count(self):
        return self.header_keys.count

    cdef bint takes(self) except -1 nogil:
        """Return whether the filter takes the record in the view; keep its place then."""
        if self.is_full or not self.filter.takes(&self.view):
            return False
        if self.to_skip > 0:
            self.to_skip -= 1
            return False
        add_int32(self.places, self.read_count - 1)
        self.is_full = self.limit >= 0 and self.count + 1 >= self.limit
        return True

    cdef int add(self, int64_t row) except -1 nogil:
        """Add the record in the view, if the filter takes it."""
        cdef RecordView* view = &self.view
        cdef Cursor headers = view.headers
        cdef Bytes null
        null.at, null.size = NULL, -1
        cdef int64_t i
        self.read_count += 1
        if self.has_filter and not self.takes():
            return 0
        add_int32(self.rows, row)
        add_int64(self.offsets, view.slots[OFFSET])
        add_int64(self.timestamps, view.slots[TIMESTAMP])
        add_int32(self.sequences, view.slots[SEQUENCE])
        add_int64(self.checksums, view.slots[RECORD_CRC])
        self.valid.add(1)[0] = view.slots[RECORD_IS_VALID]
        self.control.add(1)[0] = view.slots[IS_CONTROL]
        add_int32(self.timestamp_types, view.slots[TIMESTAMP_TYPE])
        self.keys.add(view.texts[KEY] if self.has_keys else null)
        self.values.add(view.texts[VALUE] if self.has_values else null)
        for i in range(view.slots[HEADER_COUNT] if self.has_headers else 0):
            self.header_keys.add(sized(&headers, varint(&headers)))
            self.header_values.add(sized(&headers, varint(&headers)))
        add_int32(self.header_offsets, self.header_keys.count)
        self.count += 1
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
        with nogil:
            for i in range(first, last):
                if result.is_full:
                    break
                start_row(&walk, &result.view, base + rows[i * ROW], rows[i * ROW + 1], buffer.shape[0] - rows[i * ROW],
                          rows[i * ROW + 2], position + rows[i * ROW], given[i - first])
                result.add_row(i, &walk)
    finally:
        free(given)
    return result
