# Carves: finds batches at any byte, splits them into runs, and joins the pieces of torn ones.

cdef extern from "carve.h" nogil:
    void carve_prepare()
    uint32_t crc32c_continue(uint32_t crc, const uint8_t* at, size_t size)
    uint32_t crc32c_moved(uint32_t crc, uint64_t size)
    uint32_t crc32c_moved_back(uint32_t crc, uint64_t size)
    uint32_t crc32c_factor(uint32_t power)
    void crc32c_steps(uint32_t* crcs, const uint8_t* at, int64_t count, int64_t step)
    uint32_t crc32c_scaled(uint32_t crc, uint32_t factor)
    int any_is_among(const uint32_t* numbers, int64_t size, const uint32_t* others, int64_t count)
    void crcs_of_adjacent(uint32_t* crcs, const uint32_t* before, int64_t count, int64_t blocks, uint32_t factor)
    int64_t marked_position(const uint8_t* base, int64_t at, int64_t end)
    int64_t marked_position_of_any(const uint8_t* base, int64_t at, int64_t end)

cdef enum:
    LEAST_RECORD = 7  # bytes of a record without key, value and headers
    LAST_CODEC = 4
    VALUE_LENGTH_SIZE = 4
    CRCS_AT_ONCE = 1024

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


def split_runs(const int64_t[::1] rows, Py_ssize_t count, int64_t block, int64_t phase):
    """Return the first row of each run; see the contract."""
    cdef const int64_t* row
    cdef const int64_t* before = NULL
    cdef int64_t into
    cdef Py_ssize_t i
    if count < 0 or count * HEADER_VALUES > rows.shape[0] or block <= 0 or not 0 <= phase < block:
        raise IndexError("rows that aren't there")
    found = []
    for i in range(count):
        row = &rows[i * HEADER_VALUES]
        into = (row[COLUMN_POSITION] - phase) % block
        into += block if into < 0 else 0
        if (
            before == NULL
            or before[COLUMN_POSITION] + before[COLUMN_SIZE] != row[COLUMN_POSITION]
            or before[COLUMN_LAST_OFFSET] >= row[COLUMN_BASE_OFFSET]
            or into < SURE_REST
            or block - into < SURE_BREAK
        ):
            found.append(i)
        before = row
    return found


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


def fit_breaks(const uint8_t[::1] head, const uint8_t[::1] tail, uint32_t crc, Py_ssize_t first, Py_ssize_t step):
    """Return each break for which head and tail fit; see the contract."""
    cdef Py_ssize_t size = tail.shape[0], end = min(head.shape[0], size - 1), at = CRC_START, cut = first
    cdef uint32_t of_head = 0xFFFFFFFFU, of_tail = 0, wanted
    if first <= 0 or step <= 0:
        raise IndexError("breaks before their batch")
    found = []
    if size <= CRC_START:
        return found
    wanted = crc ^ 0xFFFFFFFFU ^ crc32c_continue(0, &tail[CRC_START], size - CRC_START)
    while cut <= end:
        if cut > at:
            of_head = crc32c_continue(of_head, &head[at], cut - at)
            of_tail = crc32c_continue(of_tail, &tail[at], cut - at)
            at = cut
        if crc32c_moved(of_head ^ of_tail, size - at) == wanted:
            found.append(cut)
        cut += step
    return found


def find_headless(const uint8_t[::1] tail, Py_ssize_t block):
    """Return the batches that end with `tail` and lack their first bytes; see the contract."""
    cdef Py_ssize_t end = tail.shape[0], start, behind, missing, size, covered, stop
    cdef const uint8_t* at
    cdef uint32_t of_rest = 0, crc
    cdef bint is_first = True
    if block < BATCH_HEADER_SIZE:
        raise IndexError("blocks smaller than a header")
    found = []
    if end == 0:
        return found
    start = (end - 1) // block * block
    while start >= 0:
        stop = end if is_first else start + block
        for missing in range(1, BATCH_CRC_AT + 1):
            size = end - start + missing
            if size < BATCH_HEADER_SIZE or size > LARGEST_BATCH:
                continue
            at = &tail[start] - missing  # unsafe: no byte before tail[start] is read
            if missing <= BATCH_MAGIC_AT and at[BATCH_MAGIC_AT] != 2:
                continue
            if missing <= BATCH_LENGTH_AT and <int64_t>batch_length(at) + LOG_OVERHEAD != size:
                continue
            if at[BATCH_ATTRIBUTES_AT] or at[BATCH_FLAGS_AT] & 0x80 or not may_be_batch(at, size, missing):
                continue
            covered = start - missing + BATCH_ATTRIBUTES_AT
            crc = crc32c_continue(0xFFFFFFFFU, &tail[covered], stop - covered)
            crc = crc32c_moved(crc, end - stop) ^ of_rest ^ 0xFFFFFFFFU
            if crc == batch_crc(at):
                found.append((start, missing))
        of_rest ^= crc32c_moved(crc32c_continue(0, &tail[start], stop - start), end - stop)
        is_first = False
        start -= block
    return found


def chain_crcs(uint32_t[::1] crcs, int64_t block):
    """Replace the CRCs of blocks by those of all blocks up to each; see the contract."""
    cdef Py_ssize_t i
    cdef uint32_t factor = crc32c_factor(crc32c_moved(0x80000000U, block))
    with nogil:
        for i in range(1, crcs.shape[0]):
            crcs[i] ^= crc32c_scaled(crcs[i - 1], factor)


def block_crcs(const uint8_t[::1] buffer, Py_ssize_t block, uint32_t[::1] crcs):
    """Set the CRC of each block of a buffer; see the contract."""
    cdef Py_ssize_t count = crcs.shape[0], i
    if block <= 0 or count > buffer.shape[0] // block:
        raise IndexError("blocks beyond their buffer")
    with nogil:
        for i in range(count):
            crcs[i] = crc32c_continue(0, &buffer[i * block], block)


def find_heads(const uint8_t[::1] buffer, int64_t block):
    """Return the positions of headers that begin in a block and break at its end; see the contract."""
    cdef int64_t at = 0, last = buffer.shape[0] - BATCH_HEADER_SIZE + 1, claimed
    cdef const uint8_t* base
    if block <= 0:
        raise IndexError("blocks without bytes")
    found = []
    if last <= 0:
        return found
    base = &buffer[0]
    while True:
        at = marked_position(base, at, last)
        if at >= last:
            return found
        claimed = <int64_t>batch_length(base + at) + LOG_OVERHEAD
        if (
            claimed >= BATCH_HEADER_SIZE
            and SURE_BREAK <= block - at % block < claimed
            and batch_partition_leader_epoch(base + at) >= -1
            and batch_last_offset_delta(base + at) >= 0
            and batch_base_timestamp(base + at) >= -1
        ):
            found.append(at)
        at += 1


def find_middles(
    const uint8_t[::1] head,
    const uint8_t[::1] tail,
    int64_t size,
    uint32_t crc,
    int64_t first,
    int64_t block,
    const int64_t[::1] positions,
    const uint32_t[::1] crcs,
):
    """Return blocks that fit between the head and the tail of a batch; see the contract."""
    cdef int64_t count = positions.shape[0], padding, least_rest, heads, tails, i, rest
    cdef uint32_t* of_heads
    cdef uint32_t* of_tails
    if not CRC_START < first <= head.shape[0] <= size or first == size or tail.shape[0] > size or block <= 0:
        raise IndexError("ends beyond their batch")
    if crcs.shape[0] < count + 1:
        raise IndexError("blocks without CRCs")
    padding = 0 if tail.shape[0] else (block - (size - first) % block) % block
    least_rest = (size + padding - first) % block
    if tail.shape[0] and not least_rest:
        least_rest = block
    if tail.shape[0] < least_rest:
        return []
    heads = (head.shape[0] - first) // block + 1
    tails = (tail.shape[0] - least_rest) // block + 1
    of_heads = <uint32_t*>malloc((heads + tails) * sizeof(uint32_t))
    if of_heads == NULL:
        raise MemoryError()
    of_tails = of_heads + heads
    of_heads[0] = crc32c_continue(0xFFFFFFFFU, &head[CRC_START], first - CRC_START)
    for i in range(1, heads):
        of_heads[i] = crc32c_continue(of_heads[i - 1], &head[first + (i - 1) * block], block)
    of_tails[0] = crc32c_moved(crc ^ 0xFFFFFFFFU, padding)
    if least_rest:
        of_tails[0] ^= crc32c_continue(0, &tail[tail.shape[0] - least_rest], least_rest)
    for i in range(1, tails):
        rest = least_rest + i * block
        of_tails[i] = of_tails[i - 1] ^ crc32c_moved(
            crc32c_continue(0, &tail[tail.shape[0] - rest], block), rest - block
        )
    try:
        return middles_between(
            of_heads, heads, of_tails, tails, least_rest, &crcs[0], positions, size + padding - first, first, block
        )
    finally:
        free(of_heads)


cdef list middles_between(
    const uint32_t* of_heads,
    int64_t heads,
    const uint32_t* of_tails,
    int64_t tails,
    int64_t least_rest,
    const uint32_t* of_blocks,
    const int64_t[::1] positions,
    int64_t room,
    int64_t first,
    int64_t block,
):
    """Compare the CRCs of adjacent blocks with those that fit. room: bytes between the least head and the end."""
    cdef int64_t count = positions.shape[0], most = (room - least_rest) // block, middle, rest, i, j, pairs, start, some
    cdef uint32_t crcs[CRCS_AT_ONCE]
    cdef uint32_t factor, crc
    cdef uint32_t* wanted = <uint32_t*>malloc(heads * sizeof(uint32_t))
    cdef int64_t* cuts = <int64_t*>malloc(heads * sizeof(int64_t))
    cdef list found = []
    if wanted == NULL or cuts == NULL:
        free(wanted)
        free(cuts)
        raise MemoryError()
    for middle in range(1, min(most, count) + 1):
        pairs = 0
        for i in range(max(0, most - middle - tails + 1), min(heads, most - middle + 1)):
            rest = least_rest + (most - middle - i) * block
            crc = crc32c_moved(of_heads[i], room - i * block) ^ of_tails[most - middle - i]
            wanted[pairs] = crc32c_moved_back(crc, rest)
            cuts[pairs] = first + i * block
            pairs += 1
        if not pairs:
            continue
        factor = crc32c_factor(crc32c_moved(0x80000000U, middle * block))
        for start in range(0, count - middle + 1, CRCS_AT_ONCE):
            some = min(CRCS_AT_ONCE, count - middle + 1 - start)
            crcs_of_adjacent(crcs, of_blocks + start, some, middle, factor)
            if not any_is_among(wanted, pairs, crcs, some):
                continue
            for i in range(start, start + some):
                if positions[i + middle - 1] - positions[i] != (middle - 1) * block:
                    continue
                for j in range(pairs):
                    if wanted[j] == crcs[i - start] and len(found) < MOST_MIDDLES:
                        found.append((cuts[j], i, middle))
    free(wanted)
    free(cuts)
    return found
