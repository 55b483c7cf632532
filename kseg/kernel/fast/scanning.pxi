# Finds batches: their lengths and checksums, and the next header after damage.

cdef inline bint crc_holds(const uint8_t* at, int64_t size) noexcept nogil:
    # unsafe: scan() has checked that `size` bytes exist, and that they include the magic's header
    if at[MAGIC_AT] == 2:
        return crc32c_of(at + BATCH_ATTRIBUTES_AT, size - BATCH_ATTRIBUTES_AT) == batch_crc(at)
    return crc32_of(at + MAGIC_AT, size - MAGIC_AT) == entry_v0_crc(at)


def scan(const uint8_t[::1] buffer, Py_ssize_t start, Py_ssize_t end, int64_t[::1] rows, Py_ssize_t count):
    """Fill `rows` from row `count` on with the intact batches from `start`; see the contract."""
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
    """Return the position of the next plausible header of a batch, or -1; see the contract."""
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
    # unsafe: LEAST_SIZE_V0 bytes exist
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


def crc32c(const uint8_t[::1] data):
    """Return CRC-32C of some bytes."""
    return crc32c_of(&data[0], data.shape[0]) if data.shape[0] else 0
