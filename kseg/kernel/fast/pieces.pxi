# Joins the pieces of torn batches: tests by CRCs of parts, computed once for each piece.

cdef extern from "carve.h" nogil:
    uint32_t crc32c_moved_back(uint32_t crc, uint64_t size)
    uint32_t crc32c_factor(uint32_t power)
    uint32_t crc32c_scaled(uint32_t crc, uint32_t factor)
    enum: CRC_SLOTS, SLOT_WORDS
    int64_t crc_slot(uint32_t crc)
    int64_t find_adjacent(
        uint32_t* crcs,
        int64_t* numbers,
        const uint32_t* before,
        int64_t count,
        int64_t blocks,
        uint32_t factor,
        const uint64_t* slots,
    )

cdef enum:
    BLOCKS_AT_ONCE = 1024

ctypedef struct middle_crc:
    uint32_t crc
    uint32_t next  # number of the next one in the same slot, counted from 1
    int64_t search
    int64_t cut


def wanted_crcs(const uint8_t[::1] head, int64_t size, uint32_t crc, int64_t first, int64_t block):
    """Return the CRCs that the rest of a batch must have, by break; see the contract."""
    cdef int64_t end = min(<int64_t>head.shape[0], size - 1), at = CRC_START, cut = first
    cdef uint32_t of_head = 0xFFFFFFFFU
    if first <= 0 or block <= 0 or size <= CRC_START or (first < CRC_START and head.shape[0] < CRC_START):
        raise IndexError("breaks outside of their batch")
    found = []
    while cut <= end:
        if cut < CRC_START:  # the rest begins with bytes that the CRC doesn't cover
            of_head = 0xFFFFFFFFU ^ crc32c_continue(0, &head[cut], CRC_START - cut)
            found.append(crc32c_moved(of_head, size - CRC_START) ^ crc ^ 0xFFFFFFFFU)
            of_head = 0xFFFFFFFFU
        else:
            if cut > at:
                of_head = crc32c_continue(of_head, &head[at], cut - at)
                at = cut
            found.append(crc32c_moved(of_head, size - cut) ^ crc ^ 0xFFFFFFFFU)
        cut += block
    return found


def rest_crcs(const uint8_t[::1] ending, int64_t least, int64_t block):
    """Return the CRCs of the last bytes of an ending; see the contract."""
    cdef int64_t end = ending.shape[0], size = least
    cdef uint32_t crc
    if least <= 0 or block <= 0:
        raise IndexError("rests without bytes")
    found = []
    if size > end:
        return found
    crc = crc32c_continue(0, &ending[end - size], size)
    found.append(crc)
    while size + block <= end:
        crc ^= crc32c_moved(crc32c_continue(0, &ending[end - size - block], block), size)
        found.append(crc)
        size += block
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
    const int64_t[::1] searches,
    const uint32_t[::1] wanted,
    const uint32_t[::1] rests,
    const int64_t[::1] positions,
    const uint32_t[::1] crcs,
    int64_t block,
):
    """Return the blocks between beginnings and rests; see the contract."""
    cdef Py_ssize_t count = searches.shape[0] // OF_MIDDLE_VALUES
    cdef int64_t middle, most = 0, room = 0, pairs, start, stop, some, hits, number, i, blocks = positions.shape[0]
    cdef int64_t numbers[BLOCKS_AT_ONCE]
    cdef uint32_t adjacent[BLOCKS_AT_ONCE]
    cdef uint32_t factor, slot
    cdef middle_crc* middles = NULL
    cdef uint32_t* last_of_slot = NULL
    cdef uint64_t* slots = NULL
    cdef uint8_t* counts = NULL
    cdef middle_crc* one
    if block <= 0 or crcs.shape[0] < blocks + 1:
        raise IndexError("blocks without CRCs")
    for i in range(count):
        check_search(&searches[i * OF_MIDDLE_VALUES], wanted.shape[0], rests.shape[0], blocks)
        most = max(most, min(searches[i * OF_MIDDLE_VALUES + OF_MIDDLE_MOST_BLOCKS], blocks))
        room += searches[i * OF_MIDDLE_VALUES + OF_MIDDLE_BREAKS]
    found = []
    if room == 0 or most <= 0:
        return found
    middles = <middle_crc*>malloc(room * sizeof(middle_crc))
    last_of_slot = <uint32_t*>calloc(CRC_SLOTS, sizeof(uint32_t))
    slots = <uint64_t*>calloc(SLOT_WORDS, sizeof(uint64_t))
    counts = <uint8_t*>calloc(count, 1)
    try:
        if middles == NULL or last_of_slot == NULL or slots == NULL or counts == NULL:
            raise MemoryError()
        for middle in range(1, most + 1):
            start, stop = blocks, 0
            pairs = put_middles(middles, middle, searches, wanted, rests, block, &start, &stop)
            for i in range(pairs - 1, -1, -1):  # the first of a slot is found first
                slot = crc_slot(middles[i].crc)
                middles[i].next, last_of_slot[slot] = last_of_slot[slot], i + 1
                slots[slot >> 6] |= <uint64_t>1 << (slot & 63)
            factor = crc32c_factor(crc32c_moved(0x80000000U, middle * block))
            while start < stop:
                some = min(BLOCKS_AT_ONCE, stop - start)
                hits = find_adjacent(adjacent, numbers, &crcs[start], some, middle, factor, slots)
                for i in range(hits):
                    number = start + numbers[i]
                    if positions[number + middle - 1] - positions[number] != (middle - 1) * block:
                        continue
                    slot = last_of_slot[crc_slot(adjacent[i])]
                    while slot:
                        one = &middles[slot - 1]
                        slot = one.next
                        if one.crc == adjacent[i] and counts[one.search] < MOST_MIDDLES:
                            if is_in_window(&searches[one.search * OF_MIDDLE_VALUES], number, middle):
                                counts[one.search] += 1
                                found.append((one.search, one.cut, number, middle))
                start += some
            for i in range(pairs):
                slot = crc_slot(middles[i].crc)
                slots[slot >> 6], last_of_slot[slot] = 0, 0
    finally:
        free(middles)
        free(last_of_slot)
        free(slots)
        free(counts)
    return found


cdef int check_search(const int64_t* search, int64_t wanted, int64_t rests, int64_t blocks) except -1:
    cdef bint has_crcs = (
        0 <= search[OF_MIDDLE_BREAKS]
        and 0 <= search[OF_MIDDLE_RESTS]
        and 0 <= search[OF_MIDDLE_FIRST_BREAK] <= wanted - search[OF_MIDDLE_BREAKS]
        and 0 <= search[OF_MIDDLE_FIRST_REST] <= rests - search[OF_MIDDLE_RESTS]
    )
    if not has_crcs or search[OF_MIDDLE_LEAST_REST] < 0 or search[OF_MIDDLE_PADDING] < 0:
        raise IndexError("a search without its CRCs")
    if not 0 <= search[OF_MIDDLE_FIRST_BLOCK] <= search[OF_MIDDLE_LAST_BLOCK] <= blocks:
        raise IndexError("a search outside of the blocks")
    return 0


cdef inline bint is_in_window(const int64_t* search, int64_t number, int64_t middle) noexcept nogil:
    return search[OF_MIDDLE_FIRST_BLOCK] <= number <= search[OF_MIDDLE_LAST_BLOCK] - middle


cdef int64_t put_middles(
    middle_crc* middles,
    int64_t middle,
    const int64_t[::1] searches,
    const uint32_t[::1] wanted,
    const uint32_t[::1] rests,
    int64_t block,
    int64_t* start,
    int64_t* stop,
) noexcept nogil:
    """Put the CRCs of so many blocks between each beginning and rest, and the part of the blocks to compare."""
    cdef int64_t pairs = 0, number, left, i, rest
    cdef const int64_t* search
    cdef uint32_t crc
    for number in range(searches.shape[0] // OF_MIDDLE_VALUES):
        search = &searches[number * OF_MIDDLE_VALUES]
        left = search[OF_MIDDLE_MOST_BLOCKS] - middle
        if left < 0 or not is_in_window(search, search[OF_MIDDLE_FIRST_BLOCK], middle):
            continue
        for i in range(max(0, left - search[OF_MIDDLE_RESTS] + 1), min(search[OF_MIDDLE_BREAKS], left + 1)):
            rest = search[OF_MIDDLE_LEAST_REST] + (left - i) * block
            crc = crc32c_moved(wanted[search[OF_MIDDLE_FIRST_BREAK] + i], search[OF_MIDDLE_PADDING])
            crc ^= rests[search[OF_MIDDLE_FIRST_REST] + left - i]
            middles[pairs].crc = crc32c_moved_back(crc, rest)
            middles[pairs].search, middles[pairs].cut = number, i
            pairs += 1
            start[0] = min(start[0], search[OF_MIDDLE_FIRST_BLOCK])
            stop[0] = max(stop[0], search[OF_MIDDLE_LAST_BLOCK] - middle + 1)
    return pairs
