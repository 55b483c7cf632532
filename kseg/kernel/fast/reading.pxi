# Bytes that are read in order and never beyond their end: integers, varints, sized bytes.

cdef struct Cursor:
    const uint8_t* at
    const uint8_t* end
    bint failed  # a read went beyond the end: all later results mean nothing


cdef struct Bytes:
    const uint8_t* at
    int64_t size  # -1: null


cdef inline int64_t big_endian(const uint8_t* at, int size) noexcept nogil:
    # unsafe: callers have `size` bytes
    cdef uint64_t value = 0
    cdef int i
    for i in range(size):
        value = (value << 8) | at[i]
    return <int64_t>value


cdef inline int32_t int32_at(const uint8_t* at) noexcept nogil:
    return <int32_t>big_endian(at, 4)


cdef inline const uint8_t* take(Cursor* cursor, int64_t size) noexcept nogil:
    """Return the next `size` bytes, or NULL (and set failed) if there are fewer."""
    cdef const uint8_t* at = cursor.at
    if size < 0 or size > cursor.end - at:
        cursor.failed = True
        return NULL
    cursor.at += size
    return at


cdef inline int64_t varlong(Cursor* cursor, int bytes_allowed) noexcept nogil:
    """Read a zig-zag number of at most 5 (int32) or 10 (int64) bytes; Kafka drops excess bits of the last byte."""
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    if cursor.at < cursor.end and cursor.at[0] < 0x80:  # most numbers have one byte
        byte = cursor.at[0]
        cursor.at += 1
        return (byte >> 1) ^ -<int64_t>(byte & 1)
    while cursor.at < cursor.end and shift < 7 * bytes_allowed:
        byte = cursor.at[0]  # unsafe: at < end
        cursor.at += 1
        value |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            if bytes_allowed == 5:
                value = <uint32_t>value
            return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)
        shift += 7
    cursor.failed = True
    return 0


cdef inline int64_t varint(Cursor* cursor) noexcept nogil:
    return varlong(cursor, 5)


cdef inline Bytes sized(Cursor* cursor, int64_t size) noexcept nogil:
    cdef Bytes result
    result.at = NULL
    result.size = -1
    if size >= 0:
        result.at = take(cursor, size)
        result.size = size
    return result


cdef inline int64_t int32_of(Cursor* cursor) noexcept nogil:
    """Read a size as v0 and v1 store them; -1 if it is missing."""
    cdef const uint8_t* at = take(cursor, 4)
    return int32_at(at) if at != NULL else -1


cdef inline Bytes sized_by_int32(Cursor* cursor) noexcept nogil:
    """Read bytes after their size, as v0 and v1 store them; null for a negative size, and for a missing one."""
    return sized(cursor, int32_of(cursor))


cdef inline const uint8_t* end_of(Bytes content) noexcept nogil:
    """Return the end of some bytes. A null has no place, and its size must not be added."""
    return content.at + content.size if content.size > 0 else content.at


cdef object to_object(Bytes text):
    return None if text.size < 0 else (<const char*>text.at)[:text.size]


cdef Bytes from_object(bytes text):
    # unsafe: the caller keeps `text` alive as long as the result is used
    cdef Bytes result
    result.at = <const uint8_t*>PyBytes_AsString(text)
    result.size = PyBytes_Size(text)
    return result


cdef Bytes bytes_or_null(object text) except *:
    # unsafe: as from_object
    cdef Bytes null
    null.at = NULL
    null.size = -1
    return null if text is None else from_object(text)
