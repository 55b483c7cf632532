# Finds batches: their lengths and checksums, the next header after damage, those that a selection wants.

cdef inline bint crc_holds(const uint8_t* at, int64_t size) noexcept nogil:
    # unsafe: scan() has checked that `size` bytes are there, and that they hold the magic's header
    if at[MAGIC_AT] == 2:
        return crc32c_of(at + 21, size - 21) == <uint32_t>big_endian(at + 17, 4)
    return crc32_of(at + MAGIC_AT, size - MAGIC_AT) == <uint32_t>big_endian(at + LOG_OVERHEAD, 4)


def scan(const uint8_t[::1] buffer, Py_ssize_t start, Py_ssize_t end, int64_t[::1] rows, Py_ssize_t count):
    """Fills `rows` from row `count` on with the intact batches from `start`; see the contract."""
    cdef Py_ssize_t capacity = rows.shape[0] // ROW, at = start
    cdef const uint8_t* base
    cdef int64_t size
    cdef uint8_t magic
    cdef int stop = Stop.END, codecs = 0
    if start < 0 or end > buffer.shape[0]:
        raise IndexError("scan beyond its buffer")
    if end - start <= MAGIC_AT:
        return count, at, stop, 0
    base = &buffer[0]
    with nogil:
        while end - at > MAGIC_AT:
            size = <int64_t>int32_at(base + at + 8) + LOG_OVERHEAD
            magic = base[at + MAGIC_AT]
            if size < V0_ENTRY or (magic == 2 and size < BATCH_HEADER) or (magic == 1 and size < V1_ENTRY):
                stop = Stop.BAD_LENGTH
                break
            if size > end - at:
                break
            if magic > 2:
                stop = Stop.BAD_MAGIC
                break
            if not crc_holds(base + at, size):
                stop = Stop.BAD_CRC
                break
            if count == capacity:
                stop = Stop.FULL
                break
            rows[count * ROW] = at
            rows[count * ROW + 1] = size
            rows[count * ROW + 2] = 1
            codecs |= 1 << (base[at + (22 if magic == 2 else 17)] & 7)
            count += 1
            at += size
    return count, at, stop, codecs


def find_header(const uint8_t[::1] buffer, Py_ssize_t start, Py_ssize_t end, int64_t base_offset, int64_t room):
    """Where the next plausible header of a batch begins, or -1; see the contract."""
    cdef Py_ssize_t at, found = -1
    if start < 0 or end > buffer.shape[0]:
        raise IndexError("search beyond its buffer")
    with nogil:
        for at in range(start, end - V0_ENTRY + 1):
            if buffer[at + MAGIC_AT] <= 2 and is_plausible(&buffer[at], base_offset, room - at):
                found = at
                break
    return found


cdef bint is_plausible(const uint8_t* at, int64_t base_offset, int64_t room) noexcept nogil:
    # unsafe: V0_ENTRY bytes are there
    cdef int64_t size = <int64_t>int32_at(at + 8) + LOG_OVERHEAD
    cdef uint64_t distance = <uint64_t>int64_at(at) - <uint64_t>base_offset
    cdef uint8_t magic = at[MAGIC_AT]
    if size > room or distance > 2147483648U or int64_at(at) < base_offset:
        return False
    if magic == 2:
        return size >= BATCH_HEADER and at[21] == 0 and at[22] < 0x80
    if magic == 1:
        return size >= V1_ENTRY and at[17] < 0x10
    return size >= V0_ENTRY and at[17] < 0x08


def select(const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t count, wanted):
    """Keeps of the first `count` rows those whose headers say what is wanted; see the contract."""
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
    cdef Facts facts
    check_rows(buffer.shape[0], rows, 0, count)
    with nogil:
        for i in range(count):
            facts = facts_of(&buffer[0] + rows[i * ROW], buffer.shape[0] - rows[i * ROW])
            earliest = min(earliest, facts.earliest)
            is_behind = is_behind or (previous >= last_offset if facts.is_wrapper else facts.base_offset > last_offset)
            previous = facts.last_offset
            if (facts.last_offset < first_offset and not (facts.is_wrapper and facts.last_offset == 0)
                    or (facts.base_offset > last_offset and not facts.is_wrapper)
                    or facts.max_timestamp < first_timestamp
                    or (facts.has_one_timestamp and facts.max_timestamp > last_timestamp)
                    or (has_producer and facts.producer_id != producer_id)
                    or (transactional >= 0 and facts.is_transactional != transactional)
                    or (control >= 0 and facts.is_control != control)):
                continue
            rows[kept * ROW] = rows[i * ROW]
            rows[kept * ROW + 1] = rows[i * ROW + 1]
            rows[kept * ROW + 2] = rows[i * ROW + 2]
            codecs |= 1 << facts.codec
            kept += 1
    return kept, codecs, earliest, bool(is_behind)


cdef struct Facts:
    # of a header, for the choice of batches
    int64_t base_offset, last_offset, max_timestamp, earliest, producer_id
    bint is_wrapper, has_one_timestamp, is_transactional, is_control
    int codec


cdef Facts facts_of(const uint8_t* at, Py_ssize_t room) noexcept nogil:
    # unsafe: V0_ENTRY bytes are there, and `room` bytes
    cdef Facts facts
    cdef uint8_t attributes
    facts.base_offset = facts.last_offset = int64_at(at)
    if <int8_t>at[MAGIC_AT] < 2 or room < BATCH_HEADER:
        attributes = at[17]
        facts.max_timestamp = facts.earliest = int64_at(at + 18) if at[MAGIC_AT] == 1 else -1
        facts.producer_id = -1
        facts.is_transactional = facts.is_control = False
        facts.is_wrapper = attributes & 7 != 0
        facts.has_one_timestamp = attributes & 7 == 0 or (at[MAGIC_AT] == 1 and attributes & 8 != 0)
    else:
        attributes = at[22]
        facts.last_offset = <int64_t>(<uint64_t>facts.base_offset + <uint64_t><int64_t>int32_at(at + 23))
        facts.max_timestamp = int64_at(at + 35)
        facts.earliest = min(int64_at(at + 27), facts.max_timestamp)
        facts.producer_id = int64_at(at + 43)
        facts.is_transactional = attributes >> 4 & 1
        facts.is_control = attributes >> 5 & 1
        facts.is_wrapper = False
        facts.has_one_timestamp = attributes & 8 != 0
    facts.codec = attributes & 7
    return facts


def crc32c(const uint8_t[::1] data):
    """CRC-32C of some bytes."""
    return crc32c_of(&data[0], data.shape[0]) if data.shape[0] else 0
