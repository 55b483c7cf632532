# Compaction: a table of the last offsets of keys, and the batches that it keeps or removes completely.

# Computes a digest; NULL on failure. MD5 of libcrypto is one.
ctypedef const uint8_t* (*digest_function)(const uint8_t* content, size_t size, uint8_t* digest) noexcept nogil

cdef enum:
    SLOT_SIZE = 24  # cleaning_contract.ENTRY_SIZE
    DIGEST_SIZE = 16
    PROBES = DIGEST_SIZE - 4  # places in the digest where a number can begin, minus one

cdef enum:
    # the results of cleaning for a batch
    LOOK = 0
    WHOLE = 1
    NOTHING_LEFT = 2


@cython.final
cdef class OffsetTable:
    """The offset table of the contract.

    A slot has a digest, and the offset + 1 in the machine's byte order: 0 in a free one.
    """

    cdef uint8_t[::1] memory
    cdef uint64_t slots, count, most
    cdef object digest
    cdef digest_function function
    cdef RecordView view
    cdef RowWalk walk
    cdef public int64_t latest_offset, end_offset
    cdef public ProducerTable producers
    cdef readonly int64_t kept, superseded, without_key

    def __cinit__(self, uint8_t[::1] memory, uint64_t most, digest, size_t function=0):
        self.memory, self.slots, self.most = memory, memory.shape[0] // SLOT_SIZE, most
        if most >= max(self.slots, 1):
            raise IndexError("as many keys as slots: probing wouldn't end")
        self.digest, self.function = digest, <digest_function>function
        self.latest_offset = -1
        self.end_offset = MOST_INT64
        self.producers = ProducerTable()

    @property
    def is_full(self):
        return self.count >= self.most

    def put(self, bytes key, int64_t offset):
        cdef uint8_t digest[DIGEST_SIZE]
        self.compute(from_object(key), digest)
        if not self.put_digest(digest, offset):
            raise IndexError("no room for another key")

    def get(self, bytes key):
        return self.offset_of(from_object(key))

    cdef int compute(self, Bytes key, uint8_t* digest) except -1 nogil:
        if self.function != NULL and self.function(key.at, key.size, digest) != NULL:
            return 0
        with gil:
            result = self.digest(to_object(key))
            if len(result) != DIGEST_SIZE:
                raise ValueError("a digest of another size")
            memcpy(digest, PyBytes_AsString(result), DIGEST_SIZE)
        return 0

    cdef uint8_t* find(self, const uint8_t* digest) noexcept nogil:
        """Return the slot of a digest, or the free slot for it. Probes along the digest, then along the table."""
        cdef uint64_t probe = 0, start
        cdef uint8_t* slot
        while True:
            start = min(probe, <uint64_t>PROBES)
            slot = &self.memory[((<uint64_t><uint32_t>int32_at(digest + start)) + probe - start) % self.slots * SLOT_SIZE]
            if stored_offset(slot) == 0 or memcmp(slot, digest, DIGEST_SIZE) == 0:
                return slot
            probe += 1

    cdef bint put_digest(self, const uint8_t* digest, int64_t offset) noexcept nogil:
        """Return False if there is no room."""
        cdef uint8_t* slot
        cdef uint64_t stored = <uint64_t>offset + 1
        if self.slots == 0:
            return False
        slot = self.find(digest)
        if stored_offset(slot) == 0:
            if self.count + 1 >= self.slots:
                return False  # one stays free, so that probing ends
            self.count += 1
        memcpy(slot, digest, DIGEST_SIZE)
        memcpy(slot + DIGEST_SIZE, &stored, 8)
        self.latest_offset = offset
        return True

    cdef int64_t offset_of(self, Bytes key) except? -2 nogil:
        cdef uint8_t digest[DIGEST_SIZE]
        if self.slots == 0:
            return -1
        self.compute(key, digest)
        return <int64_t>(stored_offset(self.find(digest)) - 1)

    def add(self, const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t first, Py_ssize_t last, Bodies bodies,
            Py_ssize_t first_body, int64_t first_offset):
        cdef Py_ssize_t row = first
        check_range(rows, first, last, bodies, first_body)
        with nogil:
            while row < last and self.add_row(buffer, rows, row, bodies, row - first_body, first_offset):
                row += 1
        return row

    cdef bint add_row(self, const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t row, Bodies bodies,
                      Py_ssize_t body, int64_t first_offset) except -1 nogil:
        cdef uint8_t digest[DIGEST_SIZE]
        cdef RecordView* view = &self.view
        cdef int64_t last_offset
        start_row_at(&self.walk, view, buffer, rows, row, bodies, body)
        last_offset = view.slots[LAST_OFFSET]
        if last_offset < first_offset:
            return True
        while next_of_row(&self.walk, view):
            if view.texts[KEY].size < 0 or view.slots[OFFSET] < first_offset:
                continue
            if self.count >= self.most:
                return False
            self.compute(view.texts[KEY], digest)
            self.put_digest(digest, view.slots[OFFSET])
        if not has_all_records(&self.walk):
            return False
        self.latest_offset = last_offset
        return True

    def keep(self, const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t first, Py_ssize_t last, Bodies bodies,
             Py_ssize_t first_body, uint8_t[::1] target, int64_t[::1] target_rows):
        cdef Py_ssize_t row = first, copies = 0
        cdef int64_t used = 0, size
        cdef int verdict
        check_range(rows, first, last, bodies, first_body)
        with nogil:
            while row < last:
                verdict = self.judge(buffer, rows, row, bodies, row - first_body)
                if verdict == LOOK:
                    break
                if verdict == WHOLE:
                    size = rows[row * ROW + 1]
                    if size > target.shape[0] - used or (copies + 1) * ROW > target_rows.shape[0]:
                        with gil:
                            raise IndexError("no room for a copy")
                    memcpy(&target[used], &buffer[rows[row * ROW]], size)
                    target_rows[copies * ROW], target_rows[copies * ROW + 1], target_rows[copies * ROW + 2] = used, size, 1
                    used += size
                    copies += 1
                row += 1
        return row, copies

    cdef int judge(self, const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t row, Bodies bodies,
                   Py_ssize_t body) except -1 nogil:
        """Return the fate of a row; count its records unless the caller must handle it."""
        cdef RecordView* view = &self.view
        cdef int64_t kept = 0, superseded = 0, without_key = 0
        if rows[row * ROW + 2] == 0:
            return LOOK
        start_row_at(&self.walk, view, buffer, rows, row, bodies, body)
        while next_of_row(&self.walk, view):
            if self.walk.has_messages and view.slots[RECORD_IS_VALID] == 0:
                return LOOK
            if view.slots[OFFSET] > self.latest_offset:
                kept += 1
            elif view.texts[KEY].size < 0:
                without_key += 1
            elif view.slots[OFFSET] < self.offset_of(view.texts[KEY]):
                superseded += 1
            else:
                kept += 1
            if kept and (view.texts[VALUE].size < 0 or superseded + without_key):
                return LOOK
        if not has_all_records(&self.walk):
            return LOOK
        if kept:
            self.kept += kept
            return WHOLE
        if superseded + without_key == 0 or self.header_stays():
            return LOOK
        self.superseded += superseded
        self.without_key += without_key
        return NOTHING_LEFT

    def rest(self, const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t row, Bodies bodies, Py_ssize_t first_body):
        cdef RecordView* view = &self.view
        cdef Growing left = Growing()
        cdef int64_t kept = 0, superseded = 0, without_key = 0, base = 0, largest = 0
        cdef const uint8_t* at
        check_range(rows, row, row + 1, bodies, first_body)
        start_row_at(&self.walk, view, buffer, rows, row, bodies, row - first_body)
        if view.slots[MAGIC] < 2 or rows[row * ROW + 2] == 0:
            return None
        at = self.walk.records.body.at
        while next_of_row(&self.walk, view):
            if view.slots[OFFSET] <= self.latest_offset and view.texts[KEY].size < 0:
                without_key += 1
            elif view.slots[OFFSET] <= self.latest_offset and view.slots[OFFSET] < self.offset_of(view.texts[KEY]):
                superseded += 1
            elif view.texts[VALUE].size < 0:
                return None
            else:
                if kept == 0:
                    base = view.slots[BASE_TIMESTAMP if view.slots[HAS_DELETE_HORIZON] else TIMESTAMP]
                    largest = view.slots[TIMESTAMP]
                largest = max(largest, view.slots[TIMESTAMP])
                add_timed(left, at, self.walk.records.body.at, <int64_t>(<uint64_t>view.slots[TIMESTAMP] - <uint64_t>base))
                kept += 1
            at = self.walk.records.body.at
        if not has_all_records(&self.walk) or kept == 0:
            return None
        self.kept += kept
        self.superseded += superseded
        self.without_key += without_key
        return (<const char*>left.memory)[:left.used], kept, base, largest

    cdef bint header_stays(self) noexcept nogil:
        """Return whether the batch in the view stays without its records."""
        cdef Producer* known
        cdef int64_t* slots = self.view.slots
        if slots[MAGIC] < 2:
            return False
        known = self.producers.find(slots[PRODUCER_ID])
        return sum_of(slots[LAST_OFFSET], 1) == self.end_offset or (known != NULL and slots[LAST_OFFSET] == known.last_offset)


cdef int add_timed(Growing target, const uint8_t* at, const uint8_t* end, int64_t timestamp_delta) except -1:
    """Add a readable record with another timestamp delta. Its attributes become 0, as Kafka writes them."""
    cdef Cursor record
    cdef uint8_t* out
    cdef uint8_t* start
    cdef int64_t size
    record.at, record.end, record.failed = at, end, False
    varint(&record)
    take(&record, 1)
    varlong(&record, 10)
    size = 1 + varint_size(timestamp_delta) + (end - record.at)
    out = start = target.add(size + LONGEST_VARINT)
    out = put_varint(out, size)
    out[0] = 0
    out = put_varint(out + 1, timestamp_delta)
    memcpy(out, record.at, end - record.at)
    target.used -= size + LONGEST_VARINT - (out - start + (end - record.at))
    return 0


cdef inline uint64_t stored_offset(const uint8_t* slot) noexcept nogil:
    cdef uint64_t stored
    memcpy(&stored, slot + DIGEST_SIZE, 8)
    return stored


cdef int check_range(int64_t[::1] rows, Py_ssize_t first, Py_ssize_t last, Bodies bodies, Py_ssize_t first_body) except -1:
    if first < 0 or last < first or last * ROW > rows.shape[0]:
        raise IndexError("rows that aren't there")
    if bodies is not None and not 0 <= first - first_body <= last - first_body <= bodies.count:
        raise IndexError("fewer bodies than rows")
    return 0


cdef int start_row_at(RowWalk* walk, RecordView* view, const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t row,
                      Bodies bodies, Py_ssize_t body_number) except -1 nogil:
    """Begin a walk over the records of a row of the table."""
    cdef int64_t start = rows[row * ROW], size = rows[row * ROW + 1]
    cdef Bytes body
    check_whole(buffer.shape[0], rows, row)
    body.at, body.size = NULL, -1
    if bodies is not None:
        bodies.look_up(&body, body_number, 1)
    start_row(walk, view, &buffer[start], size, size, rows[row * ROW + 2], 0, body)
    return 0
