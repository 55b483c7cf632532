# Finds batches: their lengths and checksums, the next header after damage, those that a selection wants.

cdef inline bint crc_holds(const uint8_t* at, int64_t size) noexcept nogil:
    # unsafe: scan() has checked that `size` bytes are there, and that they hold the magic's header
    if at[MAGIC_AT] == 2:
        return crc32c_of(at + BATCH_ATTRIBUTES_AT, size - BATCH_ATTRIBUTES_AT) == batch_crc(at)
    return crc32_of(at + MAGIC_AT, size - MAGIC_AT) == entry_v0_crc(at)


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
            size = <int64_t>batch_length(base + at) + LOG_OVERHEAD
            magic = base[at + MAGIC_AT]
            if size < LEAST_SIZE_V0 or (magic == 2 and size < LEAST_SIZE_V2) or (magic == 1 and size < LEAST_SIZE_V1):
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
            codecs |= 1 << (base[at + (BATCH_FLAGS_AT if magic == 2 else ENTRY_V0_ATTRIBUTES_AT)] & CODEC_MASK)
            count += 1
            at += size
    return count, at, stop, codecs


def find_header(const uint8_t[::1] buffer, Py_ssize_t start, Py_ssize_t end, int64_t base_offset, int64_t room):
    """Where the next plausible header of a batch begins, or -1; see the contract."""
    cdef Py_ssize_t at, found = -1
    if start < 0 or end > buffer.shape[0]:
        raise IndexError("search beyond its buffer")
    with nogil:
        for at in range(start, end - LEAST_SIZE_V0 + 1):
            if buffer[at + MAGIC_AT] <= 2 and is_plausible(&buffer[at], base_offset, room - at):
                found = at
                break
    return found


cdef bint is_plausible(const uint8_t* at, int64_t base_offset, int64_t room) noexcept nogil:
    # unsafe: LEAST_SIZE_V0 bytes are there
    cdef int64_t size = <int64_t>batch_length(at) + LOG_OVERHEAD
    cdef uint64_t distance = <uint64_t>batch_base_offset(at) - <uint64_t>base_offset
    cdef uint8_t magic = at[MAGIC_AT]
    if size > room or distance > 2147483648U or batch_base_offset(at) < base_offset:
        return False
    if magic == 2:
        return size >= LEAST_SIZE_V2 and batch_attributes(at) & ~KNOWN_ATTRIBUTES_V2 == 0
    if magic == 1:
        return size >= LEAST_SIZE_V1 and entry_v1_attributes(at) & ~KNOWN_ATTRIBUTES_V1 == 0
    return size >= LEAST_SIZE_V0 and entry_v0_attributes(at) & ~KNOWN_ATTRIBUTES_V0 == 0


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
    # unsafe: LEAST_SIZE_V0 bytes are there, and `room` bytes
    cdef Facts facts
    cdef int attributes
    facts.base_offset = facts.last_offset = batch_base_offset(at)
    if batch_magic(at) < 2 or room < BATCH_HEADER_SIZE:
        attributes = entry_v0_attributes(at)
        facts.max_timestamp = facts.earliest = entry_v1_timestamp(at) if at[MAGIC_AT] == 1 else -1
        facts.producer_id = -1
        facts.is_transactional = facts.is_control = False
        facts.is_wrapper = attributes & CODEC_MASK != 0
        facts.has_one_timestamp = not facts.is_wrapper or (at[MAGIC_AT] == 1 and attributes & TIMESTAMP_TYPE_MASK != 0)
    else:
        attributes = batch_attributes(at)
        facts.last_offset = sum_of(facts.base_offset, batch_last_offset_delta(at))
        facts.max_timestamp = batch_max_timestamp(at)
        facts.earliest = min(batch_base_timestamp(at), facts.max_timestamp)
        facts.producer_id = batch_producer_id(at)
        facts.is_transactional = attributes >> TRANSACTIONAL_SHIFT & 1
        facts.is_control = attributes >> CONTROL_SHIFT & 1
        facts.is_wrapper = False
        facts.has_one_timestamp = attributes & TIMESTAMP_TYPE_MASK != 0
    facts.codec = attributes & CODEC_MASK
    return facts


def crc32c(const uint8_t[::1] data):
    """CRC-32C of some bytes."""
    return crc32c_of(&data[0], data.shape[0]) if data.shape[0] else 0
