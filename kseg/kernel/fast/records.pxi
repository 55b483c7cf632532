# Batches, entries and records, read into a view; and walks over the records of a body.

cdef struct RecordView:
    # the values that a template can show
    int64_t slots[SLOTS]
    Bytes texts[TEXTS]
    Cursor headers
    bint has_odd_null  # whether one of the record's sizes is negative other than null's -1


cdef inline bint read_headers(Cursor* cursor, RecordView* view) noexcept nogil:
    """Skip a record's headers and check them; they are read again if a template shows them."""
    cdef int64_t count = varint(cursor), i, size
    view.headers.at = cursor.at
    view.headers.failed = False
    if cursor.failed or count < 0 or count > cursor.end - cursor.at:
        return False
    for i in range(count):
        if take(cursor, varint(cursor)) == NULL:  # a header's key is never null
            return False
        size = varint(cursor)
        view.has_odd_null |= size < -1
        sized(cursor, size)
        if cursor.failed:
            return False
    view.headers.end = cursor.at
    view.slots[HEADER_COUNT] = count
    return True


cdef bint read_record(Cursor* body, RecordView* view) noexcept nogil:
    """Read one record of a v2 batch; return False if Kafka can't read it. Source: DefaultRecord.readFrom."""
    cdef Cursor record
    cdef int64_t size = varint(body), timestamp_delta, offset_delta, key_size, value_size
    cdef const uint8_t* attributes
    record.at = body.at
    record.failed = False
    if body.failed or take(body, size) == NULL:
        return False
    record.end = body.at
    attributes = take(&record, 1)
    timestamp_delta = varlong(&record, 10)
    offset_delta = varint(&record)
    key_size = varint(&record)
    view.texts[KEY] = sized(&record, key_size)
    value_size = varint(&record)
    view.texts[VALUE] = sized(&record, value_size)
    view.has_odd_null = key_size < -1 or value_size < -1
    if record.failed or not read_headers(&record, view) or record.at != record.end:
        return False
    view.slots[OFFSET] = sum_of(view.slots[BASE_OFFSET], offset_delta)
    if view.slots[TIMESTAMP_TYPE] == 1:
        view.slots[TIMESTAMP] = view.slots[MAX_TIMESTAMP]
    else:
        view.slots[TIMESTAMP] = sum_of(view.slots[BASE_TIMESTAMP], timestamp_delta)
    view.slots[SEQUENCE] = sequence_after(view.slots[BASE_SEQUENCE], offset_delta)
    view.slots[KEY_SIZE] = view.texts[KEY].size
    view.slots[VALUE_SIZE] = view.texts[VALUE].size
    view.slots[TIMESTAMP_DELTA] = timestamp_delta
    view.slots[RECORD_ATTRIBUTES] = <int8_t>attributes[0]  # unsafe: `record` hasn't failed, the byte is there
    return True


cdef inline int64_t sum_of(int64_t number, int64_t delta) noexcept nogil:
    """Return a sum with the overflow of Java's long."""
    return <int64_t>(<uint64_t>number + <uint64_t>delta)


cdef inline int64_t difference_of(int64_t number, int64_t other) noexcept nogil:
    """Return a difference with the same overflow."""
    return <int64_t>(<uint64_t>number - <uint64_t>other)


cdef inline int64_t sequence_after(int64_t base, int64_t delta) noexcept nogil:
    """Return the sequence, which wraps from 2³¹-1 to 0. Source: DefaultRecordBatch.incrementSequence."""
    if base == -1:
        return -1
    base += delta
    return base - 2147483648LL if base > 2147483647LL else base


cdef inline int64_t last_sequence_of(const uint8_t* at) noexcept nogil:
    """Return the sequence of a batch's last record; -1 for none."""
    cdef int64_t base = batch_base_sequence(at)
    return -1 if base < 0 else (base + batch_last_offset_delta(at)) & LARGEST_SEQUENCE


cdef inline bint continues_sequence(const uint8_t* at, int64_t last) noexcept nogil:
    """Return whether a batch's first sequence is the one after `last`, which is -1 if unknown."""
    return last >= 0 and batch_base_sequence(at) == (last + 1) & LARGEST_SEQUENCE


cdef bint read_message(const uint8_t* at, int64_t size, bint valid, RecordView* view) noexcept nogil:
    """Read the message of a v0 or v1 entry into the record's slots; return False if it is shorter than it says.

    valid: its CRC is known to hold.
    unsafe: `size` ≥ LEAST_SIZE_V0 bytes are there, and so a v1 message's timestamp.
    """
    cdef Cursor message
    cdef int8_t magic = entry_v0_magic(at)
    cdef int64_t key_size, value_size
    message.at = at
    message.end = at + size
    message.failed = False
    take(&message, ENTRY_V1_KEY_LENGTH_AT if magic == 1 else ENTRY_V0_KEY_LENGTH_AT)
    view.slots[RECORD_CRC] = entry_v0_crc(at)
    view.slots[RECORD_IS_VALID] = valid or crc32_of(at + MAGIC_AT, size - MAGIC_AT) == entry_v0_crc(at)
    view.slots[RECORD_MAGIC] = magic
    view.slots[RECORD_CODEC] = entry_v0_attributes(at) & CODEC_MASK
    view.slots[TIMESTAMP] = entry_v1_timestamp(at) if magic == 1 else -1
    view.slots[KEY_SIZE] = view.slots[VALUE_SIZE] = -1
    view.slots[SEQUENCE] = -1
    view.slots[HEADER_COUNT] = 0
    key_size = int32_of(&message)
    view.texts[KEY] = sized(&message, key_size)
    value_size = int32_of(&message)
    view.texts[VALUE] = sized(&message, value_size)
    view.has_odd_null = key_size < -1 or value_size < -1
    if message.failed:
        view.texts[KEY].size = view.texts[VALUE].size = -1
        view.has_odd_null = False
        return False
    view.slots[KEY_SIZE] = max(view.texts[KEY].size, -1)
    view.slots[VALUE_SIZE] = max(view.texts[VALUE].size, -1)
    return True


cdef inline void clear_record(RecordView* view) noexcept nogil:
    """Set the values for a missing record."""
    view.slots[SEQUENCE] = view.slots[CONTROL_TYPE] = view.slots[CONTROL_VERSION] = -1
    view.slots[COORDINATOR_EPOCH] = view.slots[TIMESTAMP_DELTA] = view.slots[RECORD_ATTRIBUTES] = -1
    view.slots[HEADER_COUNT] = 0


cdef void fill_batch(const uint8_t* at, int64_t size, bint valid, int64_t position, RecordView* view) noexcept nogil:
    """Set a v2 batch's slots. unsafe: BATCH_HEADER_SIZE bytes exist."""
    cdef int64_t attributes = batch_attributes(at)
    cdef int64_t* slots = view.slots
    clear_record(view)
    slots[BASE_OFFSET] = batch_base_offset(at)
    slots[PARTITION_LEADER_EPOCH] = batch_partition_leader_epoch(at)
    slots[MAGIC] = slots[RECORD_MAGIC] = batch_magic(at)
    slots[CRC] = slots[RECORD_CRC] = batch_crc(at)
    slots[ATTRIBUTES] = attributes
    slots[CODEC] = slots[RECORD_CODEC] = attributes & CODEC_MASK
    slots[TIMESTAMP_TYPE] = attributes >> TIMESTAMP_TYPE_SHIFT & 1
    slots[IS_TRANSACTIONAL] = attributes >> TRANSACTIONAL_SHIFT & 1
    slots[IS_CONTROL] = attributes >> CONTROL_SHIFT & 1
    slots[HAS_DELETE_HORIZON] = attributes >> DELETE_HORIZON_SHIFT & 1
    slots[LAST_OFFSET] = sum_of(slots[BASE_OFFSET], batch_last_offset_delta(at))
    slots[BASE_TIMESTAMP] = batch_base_timestamp(at)
    slots[MAX_TIMESTAMP] = slots[TIMESTAMP] = batch_max_timestamp(at)
    slots[PRODUCER_ID] = batch_producer_id(at)
    slots[PRODUCER_EPOCH] = batch_producer_epoch(at)
    slots[BASE_SEQUENCE] = batch_base_sequence(at)
    slots[LAST_SEQUENCE] = sequence_after(slots[BASE_SEQUENCE], batch_last_offset_delta(at))
    slots[COUNT] = batch_records_count(at)
    slots[OFFSET] = slots[LAST_OFFSET]
    slots[POSITION] = position
    slots[SIZE] = size
    slots[IS_VALID] = slots[RECORD_IS_VALID] = valid
    view.texts[KEY].size = view.texts[VALUE].size = -1
    slots[KEY_SIZE] = -1
    slots[VALUE_SIZE] = size - BATCH_HEADER_SIZE


cdef void fill_entry_header(const uint8_t* at, int64_t size, RecordView* view) noexcept nogil:
    """Set a v0 or v1 entry's slots as a batch of one record. unsafe: the header of its magic exists, up to the key."""
    cdef int64_t* slots = view.slots
    clear_record(view)
    slots[MAGIC] = entry_v0_magic(at)
    slots[ATTRIBUTES] = <uint8_t>entry_v0_attributes(at)
    slots[CODEC] = slots[ATTRIBUTES] & CODEC_MASK
    slots[CRC] = entry_v0_crc(at)
    slots[BASE_OFFSET] = slots[LAST_OFFSET] = slots[OFFSET] = entry_v0_offset(at)
    slots[MAX_TIMESTAMP] = slots[BASE_TIMESTAMP] = entry_v1_timestamp(at) if slots[MAGIC] == 1 else -1
    slots[TIMESTAMP_TYPE] = (slots[ATTRIBUTES] >> TIMESTAMP_TYPE_SHIFT & 1) if slots[MAGIC] == 1 else -1
    slots[IS_TRANSACTIONAL] = slots[IS_CONTROL] = slots[HAS_DELETE_HORIZON] = 0
    slots[BASE_SEQUENCE] = slots[LAST_SEQUENCE] = slots[PRODUCER_ID] = slots[PRODUCER_EPOCH] = -1
    slots[PARTITION_LEADER_EPOCH] = -1
    slots[COUNT] = 1
    slots[SIZE] = size


cdef bint fill_entry(const uint8_t* at, int64_t size, bint valid, int64_t position, RecordView* view) noexcept nogil:
    """Do the same, and set the slots of its message. unsafe: `size` >= LEAST_SIZE_V0 bytes exist."""
    fill_entry_header(at, size, view)
    view.slots[POSITION] = position
    view.slots[IS_VALID] = valid
    return read_message(at, size, valid, view)


cdef struct Walk:
    # over the records of a batch, or the messages of a wrapper
    Cursor body
    const uint8_t* start
    int64_t index, count  # records read; and their number in the header
    int problem  # the reason for an early end, or NO_PROBLEM
    int magic  # of a wrapper's messages
    int64_t shift  # difference to the stored offsets of a wrapper's messages


cdef inline void start_walk(Walk* walk, Bytes body, int64_t count) noexcept nogil:
    walk.start = walk.body.at = body.at
    walk.body.end = end_of(body)
    walk.body.failed = False
    walk.index = 0
    walk.count = count
    walk.problem = NO_PROBLEM


cdef inline int64_t body_position(Walk* walk) noexcept nogil:
    """Return the position of the walk, in bytes of the body."""
    return walk.body.at - walk.start


cdef inline bint next_record(Walk* walk, RecordView* view) noexcept nogil:
    """Read the next record into the view; return False at the end, or if the records contradict the header."""
    if walk.index >= walk.count:
        if walk.count < 0 or walk.body.at != walk.body.end:
            walk.problem = Problem.BAD_COUNT
        return False
    if walk.body.at == walk.body.end:
        walk.problem = Problem.BAD_COUNT
        return False
    if not read_record(&walk.body, view):
        walk.problem = Problem.BAD_RECORD
        return False
    walk.index += 1
    return True


cdef void start_in_wrapper(Walk* walk, Bytes body, RecordView* view) noexcept nogil:
    """Begin a walk over the messages of the wrapper in the view, which gets their base offset and their count.

    v0 stores offsets absolute; v1 relative, so that the last one is the wrapper's, unless the wrapper's is 0.
    """
    cdef int64_t first = 0, last = 0, size, offset = view.slots[LAST_OFFSET]
    cdef const uint8_t* at = body.at
    start_walk(walk, body, 0)
    while walk.body.end - at >= LOG_OVERHEAD:  # a short last entry ends the messages silently, as in Kafka
        size = <int64_t>entry_v0_message_size(at) + LOG_OVERHEAD
        if size < LEAST_SIZE_V0 or size > walk.body.end - at:
            break
        last = entry_v0_offset(at)
        if walk.count == 0:
            first = last
        walk.count += 1
        at += size
    walk.magic = 1 if view.slots[MAGIC] == 1 else 0
    walk.shift = <int64_t>(<uint64_t>offset - <uint64_t>last) if walk.magic == 1 and offset else 0
    if walk.count == 0 or walk.shift < 0:
        walk.problem = Problem.BAD_RECORD
    view.slots[BASE_OFFSET] = sum_of(first, walk.shift)
    view.slots[COUNT] = walk.count


cdef inline bint next_message(Walk* walk, RecordView* view) noexcept nogil:
    """Read the next message into the view; return False at the end, at an incomplete entry, or at a refused one."""
    cdef const uint8_t* at = walk.body.at
    cdef int64_t size, left = walk.body.end - at
    if walk.problem != NO_PROBLEM or left < LOG_OVERHEAD:
        return False
    size = <int64_t>entry_v0_message_size(at) + LOG_OVERHEAD
    if size > left and size >= LEAST_SIZE_V0:
        return False
    if (size < LEAST_SIZE_V0 or not read_message(at, size, False, view)
            or view.slots[RECORD_CODEC] or view.slots[RECORD_MAGIC] != walk.magic):
        walk.problem = Problem.BAD_RECORD
        return False
    view.slots[OFFSET] = sum_of(entry_v0_offset(at), walk.shift)
    if view.slots[TIMESTAMP_TYPE] == 1:
        view.slots[TIMESTAMP] = view.slots[MAX_TIMESTAMP]
    walk.body.at += size
    walk.index += 1
    return True


cdef struct RowWalk:
    # over the records of a row, whatever its format
    Walk records
    bint is_message, has_messages  # a v0 or v1 entry that is a message, or that contains some
    bint lacks_body  # its records are compressed, and their body is missing: none of them is read


cdef inline void start_row(RowWalk* walk, RecordView* view, const uint8_t* at, int64_t size, int64_t room, bint valid,
                           int64_t position, Bytes body) noexcept nogil:
    """Begin a walk over the records of a row, and read the row's own facts into the view.

    A size of less than a v2 header doesn't keep Kafka from reading one, if `room` bytes are there.
    unsafe: `size` >= LEAST_SIZE_V0 bytes are there.
    """
    cdef bint is_batch = batch_magic(at) >= 2 and room >= BATCH_HEADER_SIZE, is_readable = True
    if is_batch:
        fill_batch(at, size, valid, position, view)
    else:
        is_readable = fill_entry(at, size, valid, position, view)
    walk.lacks_body = view.slots[CODEC] != 0 and body.size < 0
    walk.is_message = not is_batch and (view.slots[CODEC] == 0 or walk.lacks_body)
    walk.has_messages = not is_batch and not walk.is_message
    if walk.has_messages:
        start_in_wrapper(&walk.records, body, view)
        return
    if is_batch and view.slots[CODEC] == 0:
        body.at, body.size = at + BATCH_HEADER_SIZE, size - BATCH_HEADER_SIZE
    start_walk(&walk.records, body, 0 if walk.lacks_body else view.slots[COUNT] if is_batch else is_readable)
    if (not is_readable and not walk.lacks_body) or (is_batch and size < BATCH_HEADER_SIZE):
        walk.records.problem = Problem.BAD_RECORD


cdef inline bint next_of_row(RowWalk* walk, RecordView* view) noexcept nogil:
    """Read the next record into the view; return False at the end, or at a problem."""
    if walk.has_messages:
        return next_message(&walk.records, view)
    if walk.is_message:
        walk.records.count -= 1
        return walk.records.count == 0
    return walk.records.problem == NO_PROBLEM and next_record(&walk.records, view)


cdef inline bint has_all_records(RowWalk* walk) noexcept nogil:
    """Return whether the walk, which has ended, has met all of the row's records."""
    return walk.records.problem == NO_PROBLEM and not walk.lacks_body


cdef object problem_of(RowWalk* walk, RecordView* view):
    """Return the reason for the walk's early end."""
    return RecordProblem(
        view.slots[POSITION], ProblemValue(walk.records.problem), walk.records.index, body_position(&walk.records))


cdef int check_whole(Py_ssize_t buffer_size, int64_t[::1] rows, Py_ssize_t row) except -1 nogil:
    """Check the base of all reading of rows: a row's bytes are within the buffer."""
    if rows[row * ROW] < 0 or rows[row * ROW + 1] < LEAST_SIZE_V0 or rows[row * ROW + 1] > buffer_size - rows[row * ROW]:
        with gil:
            raise IndexError("a row outside the buffer")
    return 0
