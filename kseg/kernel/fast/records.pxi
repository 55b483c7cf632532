# Batches, entries and records, read into what a line can show.

cdef struct Line:
    # what a template can show
    int64_t slots[SLOTS]
    Bytes texts[TEXTS]  # key, value, what a control record's decoder made; the four that other decoders make
    Cursor headers


cdef inline bint read_headers(Cursor* cursor, Line* line) noexcept nogil:
    """Passes over a record's headers and checks them; they are read again where a template shows them."""
    cdef int64_t count = varint(cursor), i
    line.headers.at = cursor.at
    line.headers.failed = False
    if cursor.failed or count < 0 or count > cursor.end - cursor.at:
        return False
    for i in range(count):
        if take(cursor, varint(cursor)) == NULL:  # a header's key is never null
            return False
        sized(cursor, varint(cursor))
        if cursor.failed:
            return False
    line.headers.end = cursor.at
    line.slots[HEADER_COUNT] = count
    return True


cdef bint read_record(Cursor* body, Line* line) noexcept nogil:
    """One record of a v2 batch; False if it can't be read as Kafka does. Source: DefaultRecord.readFrom."""
    cdef Cursor record
    cdef int64_t size = varint(body), timestamp_delta, offset_delta
    cdef const uint8_t* attributes
    record.at = body.at
    record.failed = False
    if body.failed or take(body, size) == NULL:
        return False
    record.end = body.at
    attributes = take(&record, 1)
    timestamp_delta = varlong(&record, 10)
    offset_delta = varint(&record)
    line.texts[0] = sized(&record, varint(&record))
    line.texts[1] = sized(&record, varint(&record))
    if record.failed or not read_headers(&record, line) or record.at != record.end:
        return False
    line.slots[OFFSET] = sum_of(line.slots[BASE_OFFSET], offset_delta)
    if line.slots[TIMESTAMP_TYPE] == 1:
        line.slots[TIMESTAMP] = line.slots[MAX_TIMESTAMP]
    else:
        line.slots[TIMESTAMP] = sum_of(line.slots[BASE_TIMESTAMP], timestamp_delta)
    line.slots[SEQUENCE] = sequence_after(line.slots[BASE_SEQUENCE], offset_delta)
    line.slots[KEY_SIZE] = line.texts[0].size
    line.slots[VALUE_SIZE] = line.texts[1].size
    line.slots[TIMESTAMP_DELTA] = timestamp_delta
    line.slots[RECORD_ATTRIBUTES] = <int8_t>attributes[0]  # unsafe: `record` hasn't failed, the byte is there
    return True


cdef inline int64_t sum_of(int64_t number, int64_t delta) noexcept nogil:
    """Wraps around as Java's long does."""
    return <int64_t>(<uint64_t>number + <uint64_t>delta)


cdef inline int64_t sequence_after(int64_t base, int64_t delta) noexcept nogil:
    """Sequences run 0 … 2³¹-1 and begin again at 0. Source: DefaultRecordBatch.incrementSequence."""
    if base == -1:
        return -1
    base += delta
    return base - 2147483648LL if base > 2147483647LL else base


cdef bint read_message(const uint8_t* at, int64_t size, Line* line) noexcept nogil:
    """A v0 or v1 message behind its 12 bytes into the record's slots; False if it is too short for what it says."""
    cdef Cursor message
    cdef const uint8_t* fixed
    cdef uint8_t magic, attributes
    message.at = at
    message.end = at + size
    message.failed = False
    fixed = take(&message, 6)
    if fixed == NULL:
        return False
    magic = fixed[4]
    attributes = fixed[5]
    line.slots[RECORD_CRC] = <uint32_t>big_endian(fixed, 4)
    line.slots[RECORD_IS_VALID] = size >= 14 and crc32_of(at + 4, size - 4) == <uint32_t>line.slots[RECORD_CRC]
    line.slots[RECORD_MAGIC] = <int8_t>magic
    line.slots[RECORD_CODEC] = attributes & 7
    line.slots[TIMESTAMP] = -1
    if magic == 1:
        fixed = take(&message, 8)
        line.slots[TIMESTAMP] = int64_at(fixed) if fixed != NULL else -1
    line.slots[KEY_SIZE] = line.slots[VALUE_SIZE] = -1
    line.texts[0].size = line.texts[1].size = -1
    line.slots[SEQUENCE] = -1
    line.slots[HEADER_COUNT] = 0
    fixed = take(&message, 4)
    if fixed != NULL:
        line.texts[0] = sized(&message, int32_at(fixed))
    fixed = take(&message, 4)
    if fixed != NULL:
        line.texts[1] = sized(&message, int32_at(fixed))
    if message.failed:
        line.texts[0].size = line.texts[1].size = -1
        return False
    line.slots[KEY_SIZE] = max(line.texts[0].size, -1)
    line.slots[VALUE_SIZE] = max(line.texts[1].size, -1)
    return True


cdef inline void clear_record(Line* line) noexcept nogil:
    """What a line shows of a record where there is none."""
    line.slots[SEQUENCE] = line.slots[CONTROL_TYPE] = line.slots[CONTROL_VERSION] = -1
    line.slots[COORDINATOR_EPOCH] = line.slots[TIMESTAMP_DELTA] = line.slots[RECORD_ATTRIBUTES] = -1
    line.slots[HEADER_COUNT] = 0


cdef void fill_batch(const uint8_t* at, int64_t size, bint valid, int64_t position, Line* line) noexcept nogil:
    """A v2 batch's slots. unsafe: `size` ≥ 61 bytes are there."""
    cdef int64_t attributes = <int16_t>big_endian(at + 21, 2)
    cdef int64_t* slots = line.slots
    clear_record(line)
    slots[BASE_OFFSET] = int64_at(at)
    slots[PARTITION_LEADER_EPOCH] = int32_at(at + 12)
    slots[MAGIC] = slots[RECORD_MAGIC] = <int8_t>at[MAGIC_AT]
    slots[CRC] = slots[RECORD_CRC] = <uint32_t>big_endian(at + 17, 4)
    slots[ATTRIBUTES] = attributes
    slots[CODEC] = slots[RECORD_CODEC] = attributes & 0x07
    slots[TIMESTAMP_TYPE] = attributes >> 3 & 1
    slots[IS_TRANSACTIONAL] = attributes >> 4 & 1
    slots[IS_CONTROL] = attributes >> 5 & 1
    slots[HAS_DELETE_HORIZON] = attributes >> 6 & 1
    slots[LAST_OFFSET] = sum_of(slots[BASE_OFFSET], int32_at(at + 23))
    slots[BASE_TIMESTAMP] = int64_at(at + 27)
    slots[MAX_TIMESTAMP] = slots[TIMESTAMP] = int64_at(at + 35)
    slots[PRODUCER_ID] = int64_at(at + 43)
    slots[PRODUCER_EPOCH] = <int16_t>big_endian(at + 51, 2)
    slots[BASE_SEQUENCE] = int32_at(at + 53)
    slots[LAST_SEQUENCE] = sequence_after(slots[BASE_SEQUENCE], int32_at(at + 23))
    slots[COUNT] = int32_at(at + 57)
    slots[OFFSET] = slots[LAST_OFFSET]
    slots[POSITION] = position
    slots[SIZE] = size
    slots[IS_VALID] = slots[RECORD_IS_VALID] = valid
    line.texts[0].size = line.texts[1].size = -1
    slots[KEY_SIZE] = -1
    slots[VALUE_SIZE] = size - BATCH_HEADER


cdef bint fill_entry(const uint8_t* at, int64_t size, bint valid, int64_t position, Line* line) noexcept nogil:
    """A v0 or v1 entry's slots, as a batch and as a message. unsafe: `size` ≥ 26 bytes are there."""
    cdef int64_t* slots = line.slots
    clear_record(line)
    cdef bint readable = read_message(at + LOG_OVERHEAD, size - LOG_OVERHEAD, line)
    slots[MAGIC] = slots[RECORD_MAGIC]
    slots[ATTRIBUTES] = at[17]
    slots[CODEC] = slots[RECORD_CODEC]
    slots[CRC] = slots[RECORD_CRC]
    slots[BASE_OFFSET] = slots[LAST_OFFSET] = slots[OFFSET] = int64_at(at)
    slots[MAX_TIMESTAMP] = slots[BASE_TIMESTAMP] = slots[TIMESTAMP]
    slots[TIMESTAMP_TYPE] = (at[17] >> 3 & 1) if slots[MAGIC] == 1 else -1
    slots[IS_TRANSACTIONAL] = slots[IS_CONTROL] = slots[HAS_DELETE_HORIZON] = 0
    slots[BASE_SEQUENCE] = slots[LAST_SEQUENCE] = slots[PRODUCER_ID] = slots[PRODUCER_EPOCH] = -1
    slots[PARTITION_LEADER_EPOCH] = -1
    slots[COUNT] = 1
    slots[POSITION] = position
    slots[SIZE] = size
    slots[IS_VALID] = valid
    return readable


cdef struct Inner:
    # what a look through a wrapper's entries found
    int64_t first_offset, last_offset  # as stored
    int64_t count


cdef Inner survey(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """The whole entries of a wrapper's body. A short last entry ends it silently, as Kafka does."""
    cdef Inner inner
    cdef int64_t size
    inner.count = inner.first_offset = inner.last_offset = 0
    while end - at >= LOG_OVERHEAD:
        size = <int64_t>int32_at(at + 8) + LOG_OVERHEAD
        if size < V0_ENTRY or size > end - at:
            break
        inner.last_offset = int64_at(at)
        if inner.count == 0:
            inner.first_offset = inner.last_offset
        inner.count += 1
        at += size
    return inner


cdef inline int64_t inner_shift(int64_t magic, int64_t wrapper_offset, int64_t last_stored) noexcept nogil:
    """What to add to stored offsets: v0 stores them absolute; v1 relative, unless the wrapper's offset is 0."""
    return <int64_t>(<uint64_t>wrapper_offset - <uint64_t>last_stored) if magic == 1 and wrapper_offset else 0


cdef int64_t next_inner(const uint8_t* at, const uint8_t* end, int magic, int64_t shift, Line* line) noexcept nogil:
    """A wrapper's entry at `at` into the line, and its size; 0 if it is cut short, -1 if Kafka refuses it."""
    cdef int64_t size = <int64_t>int32_at(at + 8) + LOG_OVERHEAD
    if size > end - at and size >= V0_ENTRY:
        return 0
    if (size < V0_ENTRY or not read_message(at + LOG_OVERHEAD, size - LOG_OVERHEAD, line)
            or line.slots[RECORD_CODEC] or line.slots[RECORD_MAGIC] != magic):
        return -1
    line.slots[OFFSET] = sum_of(int64_at(at), shift)
    if line.slots[TIMESTAMP_TYPE] == 1:
        line.slots[TIMESTAMP] = line.slots[MAX_TIMESTAMP]
    return size
