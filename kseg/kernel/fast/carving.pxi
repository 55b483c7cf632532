# Carves: finds batches at any byte, and their copies.

cdef extern from "carve.h" nogil:
    void carve_prepare()
    uint32_t crc32c_continue(uint32_t crc, const uint8_t* at, size_t size)
    uint32_t crc32c_moved(uint32_t crc, uint64_t size)
    void crc32c_steps(uint32_t* crcs, const uint8_t* at, int64_t count, int64_t step)
    int64_t marked_position(const uint8_t* base, int64_t at, int64_t end)
    int64_t marked_position_of_any(const uint8_t* base, int64_t at, int64_t end)

cdef enum:
    LAST_CODEC = 4
    VALUE_LENGTH_SIZE = 4

carve_prepare()


def step_crcs(const uint8_t[::1] buffer, Py_ssize_t first, Py_ssize_t last, uint32_t[::1] crcs):
    """Set the CRCs of all bytes before steps; see the contract."""
    if not 0 <= first <= last or last * CRC_STEP > buffer.shape[0] or last >= crcs.shape[0]:
        raise IndexError("steps beyond their buffer")
    if first < last:
        with nogil:
            crc32c_steps(&crcs[first], &buffer[first * CRC_STEP], last - first, CRC_STEP)


cdef inline bint may_be_batch(const uint8_t* at, int64_t size, int present) noexcept nogil:
    """Whether bytes from `present` on are those of a batch's header; those before it may be missing."""
    # unsafe: BATCH_HEADER_SIZE bytes exist from `at` + `present` on, and none before it is read
    cdef int32_t count = batch_records_count(at), codec = at[BATCH_FLAGS_AT] & CODEC_MASK
    if present <= BATCH_PARTITION_LEADER_EPOCH_AT and batch_partition_leader_epoch(at) < -1:
        return False
    if batch_last_offset_delta(at) < 0 or not 0 <= count <= <int64_t>batch_last_offset_delta(at) + 1:
        return False
    if batch_base_timestamp(at) < -1 or batch_max_timestamp(at) < -1 or batch_producer_id(at) < -1:
        return False
    if batch_producer_epoch(at) < -1 or batch_base_sequence(at) < -1 or codec > LAST_CODEC:
        return False
    return codec != 0 or size - BATCH_HEADER_SIZE >= <int64_t>count * LEAST_RECORD


cdef inline uint32_t crc_before(const uint8_t* base, int64_t end, const uint32_t* crcs) noexcept nogil:
    cdef int64_t step = end // CRC_STEP
    return crc32c_continue(crcs[step], base + step * CRC_STEP, end - step * CRC_STEP)


cdef inline bint crc_matches(const uint8_t* base, int64_t at, int64_t size, const uint32_t* crcs) noexcept nogil:
    # unsafe: find_batches() has checked that the bytes and the CRCs of their steps exist
    cdef int64_t covered = at + BATCH_ATTRIBUTES_AT, end = at + size
    cdef uint32_t before, crc
    if size <= SMALL_BATCH:
        crc = crc32c_of(base + covered, end - covered)
    else:
        before = crc_before(base, covered, crcs) ^ 0xFFFFFFFFU
        crc = crc32c_moved(before, end - covered) ^ crc_before(base, end, crcs) ^ 0xFFFFFFFFU
    return crc == batch_crc(base + at)


cdef inline bint may_be_message(const uint8_t* at, int64_t size, int64_t room) noexcept nogil:
    """Whether key and value fill a message exactly, if its lengths are in the first `room` bytes."""
    # unsafe: BATCH_HEADER_SIZE bytes exist
    cdef bint has_timestamp = at[MAGIC_AT] == 1
    cdef int64_t key_at = LOG_ENTRY_HEADER_V1_SIZE if has_timestamp else LOG_ENTRY_HEADER_V0_SIZE
    cdef int32_t key_length = entry_v1_key_length(at) if has_timestamp else entry_v0_key_length(at), value_length
    cdef int64_t value_at = key_at + max(key_length, 0) + VALUE_LENGTH_SIZE
    if key_length < -1 or value_at > size or (has_timestamp and entry_v1_timestamp(at) < -1):
        return False
    if at[ENTRY_V0_ATTRIBUTES_AT] & ~(KNOWN_ATTRIBUTES_V1 if has_timestamp else KNOWN_ATTRIBUTES_V0):
        return False
    if (at[ENTRY_V0_ATTRIBUTES_AT] & CODEC_MASK) > LAST_CODEC:
        return False
    if value_at > room:
        return True
    value_length = int32_at(at + value_at - VALUE_LENGTH_SIZE)
    return value_length >= -1 and value_at + max(value_length, 0) == size


cdef inline void put_row(const uint8_t* at, int64_t size, int64_t position, int64_t* row) noexcept nogil:
    cdef int64_t timestamp
    if at[MAGIC_AT] == 2:
        put_batch_header(at, row, 1)
        row[COLUMN_LAST_OFFSET] = batch_base_offset(at) + batch_last_offset_delta(at)
    else:
        timestamp = entry_v1_timestamp(at) if at[MAGIC_AT] == 1 else -1
        row[COLUMN_BASE_OFFSET] = row[COLUMN_LAST_OFFSET] = entry_v0_offset(at)
        row[COLUMN_MAGIC] = at[MAGIC_AT]
        row[COLUMN_CRC] = entry_v0_crc(at)
        row[COLUMN_ATTRIBUTES] = at[ENTRY_V0_ATTRIBUTES_AT]
        row[COLUMN_BASE_TIMESTAMP] = row[COLUMN_MAX_TIMESTAMP] = timestamp
        row[COLUMN_PARTITION_LEADER_EPOCH] = row[COLUMN_PRODUCER_ID] = -1
        row[COLUMN_PRODUCER_EPOCH] = row[COLUMN_BASE_SEQUENCE] = -1
        row[COLUMN_RECORDS_COUNT] = 1
    row[COLUMN_POSITION] = position
    row[COLUMN_SIZE] = size
    row[COLUMN_IS_VALID] = 1


cdef inline bint may_be_item(const uint8_t* at, int64_t size, int64_t room) noexcept nogil:
    if at[MAGIC_AT] == 2:
        return size >= BATCH_HEADER_SIZE and may_be_batch(at, size, 0)
    return may_be_message(at, size, room)


cdef inline bint item_is_intact(
    const uint8_t* base, int64_t at, int64_t size, const uint32_t* crcs, int64_t* left
) noexcept nogil:
    if base[at + MAGIC_AT] == 2:
        return crc_matches(base, at, size, crcs)
    if size > max(left[0], SMALL_BATCH):
        return False
    if crc32_of(base + at + MAGIC_AT, size - MAGIC_AT) == entry_v0_crc(base + at):
        return True
    left[0] -= size
    return False


def find_batches(
    const uint8_t[::1] buffer,
    Py_ssize_t start,
    Py_ssize_t end,
    int64_t position,
    const uint32_t[::1] crcs,
    int64_t[::1] rows,
    Py_ssize_t count,
    bint is_last,
    bint is_legacy,
):
    """Fill `rows` with the intact batches at any position; see the contract."""
    cdef int64_t at = start, last = end - BATCH_HEADER_SIZE + 1, size
    cdef int64_t left = LARGEST_BATCH + (end - start) * MOST_READ  # bytes of messages whose CRC may be wrong
    cdef Py_ssize_t capacity = rows.shape[0] // HEADER_VALUES
    cdef const uint8_t* base
    if start < 0 or end > buffer.shape[0] or end // CRC_STEP >= crcs.shape[0]:
        raise IndexError("a search beyond its buffer")
    if last <= start:
        return count, start
    base = &buffer[0]
    with nogil:
        while True:
            at = marked_position_of_any(base, at, last) if is_legacy else marked_position(base, at, last)
            if at >= last:
                break
            size = <int64_t>batch_length(base + at) + LOG_OVERHEAD
            if may_be_item(base + at, size, end - at):
                if size > end - at:
                    if not is_last:
                        break
                elif item_is_intact(base, at, size, &crcs[0], &left):
                    if count >= capacity:
                        break
                    put_row(base + at, size, position + at, &rows[count * HEADER_VALUES])
                    count += 1
                    at += size
                    continue
            at += 1
    return count, at


def find_copies(const int64_t[::1] rows, Py_ssize_t count):
    """Return each row that an earlier row equals, with that row; see the contract."""
    cdef Py_ssize_t places = 16, i
    cdef int64_t* first_rows
    cdef const int64_t* row
    cdef const int64_t* other
    cdef uint64_t place
    if count < 0 or count * HEADER_VALUES > rows.shape[0]:
        raise IndexError("rows that aren't there")
    while places < 2 * count:
        places *= 2
    first_rows = <int64_t*>calloc(places, sizeof(int64_t))  # numbers of rows, counted from 1
    if first_rows == NULL:
        raise MemoryError()
    found = []
    try:
        for i in range(count):
            row = &rows[i * HEADER_VALUES]
            place = (<uint64_t>row[COLUMN_BASE_OFFSET] << 32 | <uint64_t>row[COLUMN_CRC]) * 0x9E3779B97F4A7C15U
            place = (place ^ place >> 32) & (places - 1)
            while first_rows[place]:
                other = &rows[(first_rows[place] - 1) * HEADER_VALUES]
                if (
                    other[COLUMN_BASE_OFFSET] == row[COLUMN_BASE_OFFSET]
                    and other[COLUMN_CRC] == row[COLUMN_CRC]
                    and other[COLUMN_SIZE] == row[COLUMN_SIZE]
                ):
                    found.append((i, first_rows[place] - 1))
                    break
                place = (place + 1) & (places - 1)
            else:
                first_rows[place] = i + 1
    finally:
        free(first_rows)
    return found
