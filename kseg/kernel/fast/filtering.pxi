# The choice of records and of batches: a contract.RecordFilter in C's types, and conditions on headers.

cdef inline bint is_part(const uint8_t* at, int64_t size, const uint8_t* part, int64_t part_size) noexcept nogil:
    """Return whether some bytes contain others."""
    cdef const uint8_t* end = at + size - part_size + 1
    if part_size == 0:
        return True
    while at < end:
        at = <const uint8_t*>memchr(at, part[0], end - at)
        if at == NULL:
            return False
        if memcmp(at, part, part_size) == 0:
            return True
        at += 1
    return False


cdef inline bint is_same(Bytes* text, Bytes* other) noexcept nogil:
    return text.size == other.size and (text.size <= 0 or memcmp(text.at, other.at, text.size) == 0)


cdef inline uint64_t mix(uint64_t number) noexcept nogil:
    """Return the number's bits mixed evenly: splitmix64."""
    number += 0x9E3779B97F4A7C15U
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9U
    number = (number ^ (number >> 27)) * 0x94D049BB133111EBU
    return number ^ (number >> 31)


@cython.final
cdef class Filter:
    """A contract.RecordFilter in C's types; it keeps its pointers' targets alive."""

    cdef int64_t first_offset, last_offset, first_timestamp, last_timestamp
    cdef bint has_share, asks_python
    cdef uint64_t share
    cdef Bytes key, key_part, value_part
    cdef Bytes* headers  # name and value of each; a value of size -1 matches any
    cdef Py_ssize_t header_count
    cdef object predicate, owner

    def __cinit__(self, wanted):
        self.owner = wanted
        self.first_offset, self.last_offset = wanted.first_offset, wanted.last_offset
        self.first_timestamp, self.last_timestamp = wanted.first_timestamp, wanted.last_timestamp
        self.has_share = wanted.share is not None
        self.share = wanted.share if self.has_share else 0
        self.key = bytes_or_null(wanted.key)
        self.key_part = bytes_or_null(wanted.key_part)
        self.value_part = bytes_or_null(wanted.value_part)
        self.header_count = len(wanted.headers)
        self.headers = <Bytes*>malloc((2 * self.header_count + 1) * sizeof(Bytes))
        if self.headers == NULL:
            raise MemoryError()
        for i, (name, value) in enumerate(wanted.headers):
            self.headers[2 * i] = from_object(name)
            self.headers[2 * i + 1] = bytes_or_null(value)
        self.predicate = wanted.predicate
        self.asks_python = self.predicate is not None

    def __dealloc__(self):
        free(self.headers)

    cdef bint takes(self, RecordView* view) except -1 nogil:
        cdef int64_t offset = view.slots[OFFSET], timestamp = view.slots[TIMESTAMP]
        if offset < self.first_offset or offset > self.last_offset:
            return False
        if timestamp < self.first_timestamp or timestamp > self.last_timestamp:
            return False
        if self.has_share and mix(<uint64_t>offset) >= self.share:
            return False
        if self.key.size >= 0 and not (
                view.texts[KEY].size == self.key.size and memcmp(view.texts[KEY].at, self.key.at, self.key.size) == 0):
            return False
        if not self.has_part(&view.texts[KEY], &self.key_part) or not self.has_part(&view.texts[VALUE], &self.value_part):
            return False
        if self.header_count and not self.has_headers(view):
            return False
        if not self.asks_python:
            return True
        with gil:
            return bool(self.predicate(to_object(view.texts[KEY]), to_object(view.texts[VALUE])))

    cdef inline bint has_part(self, Bytes* text, Bytes* part) noexcept nogil:
        return part.size < 0 or (text.size >= part.size and is_part(text.at, text.size, part.at, part.size))

    cdef bint has_headers(self, RecordView* view) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.header_count):
            if not self.has_header(view, &self.headers[2 * i], &self.headers[2 * i + 1]):
                return False
        return True

    cdef bint has_header(self, RecordView* view, Bytes* name, Bytes* value) noexcept nogil:
        cdef Cursor headers = view.headers
        cdef Bytes found_name, found_value
        cdef int64_t i
        for i in range(view.slots[HEADER_COUNT]):
            found_name = sized(&headers, varint(&headers))
            found_value = sized(&headers, varint(&headers))
            if is_same(&found_name, name) and (value.size < 0 or is_same(&found_value, value)):
                return True
        return False


cdef object headers_of(RecordView* view):
    """Return a record's headers as (key, value); very many are read on access."""
    cdef Cursor headers = view.headers
    cdef int64_t i
    cdef list found = []
    if view.slots[HEADER_COUNT] > MANY_HEADERS:
        from kseg.kernel.twin.records import ManyHeaders

        return ManyHeaders((<const char*>headers.at)[:headers.end - headers.at], 0, view.slots[HEADER_COUNT])
    for i in range(view.slots[HEADER_COUNT]):
        key = to_object(sized(&headers, varint(&headers)))
        found.append((key, to_object(sized(&headers, varint(&headers)))))
    return found


def has_csv_headers(program):
    """Return whether a template of the program shows headers as a field of CSV."""
    templates = [*program.batch, *program.record, *(program.control or ())]
    return any(CSV_HEADERS in template.ops[::3] for template in templates if template is not None)


def select(const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t count, wanted):
    """Keep the rows among the first `count` whose headers meet the conditions; see the contract."""
    cdef int64_t first_offset = wanted.first_offset, last_offset = wanted.last_offset
    cdef int64_t first_timestamp = wanted.first_timestamp, last_timestamp = wanted.last_timestamp
    cdef bint has_producer = wanted.producer_id is not None
    cdef int64_t producer_id = wanted.producer_id if has_producer else -1
    cdef int transactional = -1 if wanted.is_transactional is None else wanted.is_transactional
    cdef int control = -1 if wanted.is_control is None else wanted.is_control
    cdef Py_ssize_t i, kept = 0
    cdef int codecs = 0
    cdef bint is_behind = False
    cdef int64_t earliest = 9223372036854775807LL, previous = -1
    cdef RecordView view
    cdef int64_t* slots = view.slots
    cdef const uint8_t* at
    cdef bint is_entry, is_wrapper
    check_rows(buffer.shape[0], rows, 0, count)
    with nogil:
        for i in range(count):
            at = &buffer[0] + rows[i * ROW]
            is_entry = batch_magic(at) < 2 or buffer.shape[0] - rows[i * ROW] < BATCH_HEADER_SIZE
            if is_entry:
                fill_entry_header(at, rows[i * ROW + 1], &view)
            else:
                fill_batch(at, rows[i * ROW + 1], True, 0, &view)
            is_wrapper = is_entry and slots[CODEC] != 0
            earliest = min(earliest, slots[BASE_TIMESTAMP], slots[MAX_TIMESTAMP])
            is_behind = is_behind or (previous >= last_offset if is_wrapper else slots[BASE_OFFSET] > last_offset)
            previous = slots[LAST_OFFSET]
            if (slots[LAST_OFFSET] < first_offset and not (is_wrapper and slots[LAST_OFFSET] == 0)
                    or (slots[BASE_OFFSET] > last_offset and not is_wrapper)
                    or slots[MAX_TIMESTAMP] < first_timestamp
                    or (slots[MAX_TIMESTAMP] > last_timestamp and (slots[TIMESTAMP_TYPE] == 1 or is_entry > is_wrapper))
                    or (has_producer and slots[PRODUCER_ID] != producer_id)
                    or (transactional >= 0 and slots[IS_TRANSACTIONAL] != transactional)
                    or (control >= 0 and slots[IS_CONTROL] != control)):
                continue
            rows[kept * ROW] = rows[i * ROW]
            rows[kept * ROW + 1] = rows[i * ROW + 1]
            rows[kept * ROW + 2] = rows[i * ROW + 2]
            codecs |= 1 << slots[CODEC]
            kept += 1
    return kept, codecs, earliest, bool(is_behind)
