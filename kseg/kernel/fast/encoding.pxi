# Records to bytes.

cdef enum:
    LONGEST_VARINT = 10
    USUAL_RECORD = 1 << 30  # bytes of key and value together


cdef inline uint64_t zigzag(int64_t value) noexcept nogil:
    return <uint64_t>value << 1 ^ <uint64_t>(value >> 63)


cdef inline int varint_size(int64_t value) noexcept nogil:
    cdef uint64_t rest = zigzag(value) >> 7
    cdef int size = 1
    while rest:
        size += 1
        rest >>= 7
    return size


cdef inline uint8_t* put_varint(uint8_t* out, int64_t value) noexcept nogil:
    cdef uint64_t rest = zigzag(value)
    while rest > 0x7F:
        out[0] = <uint8_t>(rest | 0x80)
        out += 1
        rest >>= 7
    out[0] = <uint8_t>rest
    return out + 1


cdef inline uint8_t* put_sized(uint8_t* out, Bytes content) noexcept nogil:
    """Write size and bytes; for null only the size, which is -1."""
    out = put_varint(out, content.size)
    if content.size > 0:
        memcpy(out, content.at, content.size)
        out += content.size
    return out


UNUSUAL_TIME = 1 << 62  # below it no difference of two overflows


cdef inline bint is_bytes(object content) noexcept:
    return content is None or type(content) is bytes


@cython.final
cdef class Encoded:
    """Encoded records of a batch, one after another."""

    cdef Growing memory
    cdef Py_ssize_t count
    cdef bint is_started
    cdef int64_t base_timestamp
    cdef readonly int64_t max_timestamp, next_delta

    def __cinit__(self):
        self.memory = Growing()
        self.max_timestamp = -1

    def __len__(self):
        return self.count

    @property
    def size(self):
        """Bytes in total."""
        return self.memory.used

    def add(self, bytes record, int64_t offset_delta, int64_t timestamp):
        """Add an encoded record."""
        memcpy(self.memory.add(len(record)), PyBytes_AsString(record), len(record))
        self.count += 1
        self.max_timestamp = max(self.max_timestamp, timestamp)
        self.next_delta = offset_delta + 1

    def start(self, int64_t base_timestamp):
        """Set the time to which timestamps of usual records are relative."""
        self.is_started, self.base_timestamp = True, base_timestamp

    def body(self):
        """Return all records."""
        return self.memory.memory[:self.memory.used] if self.memory.used else b""

    def append(self, timestamp, key, value, headers):
        """Encode a record at the next offset if it is usual; see the contract."""
        return self.add_usual(timestamp, key, value, headers)

    def extend(self, records):
        """Encode records without headers, of less than a gibibyte; see the contract."""
        for record in records:
            timestamp, key, value, headers = record
            if not self.add_usual(timestamp, key, value, headers):
                return record
        return None

    cdef int add_usual(self, timestamp, key_object, value_object, headers) except -1:
        cdef Bytes key, value
        cdef int64_t time
        if headers or not self.is_started or not is_bytes(key_object) or not is_bytes(value_object):
            return False
        if not 0 <= timestamp < UNUSUAL_TIME:
            return False
        time, key, value = timestamp, bytes_or_null(key_object), bytes_or_null(value_object)
        if key.size + value.size > USUAL_RECORD or self.memory.used > USUAL_RECORD or self.next_delta > USUAL_RECORD:
            return False
        self.add_record(time - self.base_timestamp, self.next_delta, key, value)
        self.max_timestamp = max(self.max_timestamp, time)
        self.next_delta += 1
        return True

    cdef int add_record(self, int64_t timestamp_delta, int64_t offset_delta, Bytes key, Bytes value) except -1:
        cdef int64_t size = (2 + varint_size(timestamp_delta) + varint_size(offset_delta) + varint_size(key.size)
                             + varint_size(value.size) + max(key.size, 0) + max(value.size, 0))
        cdef uint8_t* start = self.memory.add(size + LONGEST_VARINT)
        cdef uint8_t* at = put_varint(start, size)
        self.memory.used -= LONGEST_VARINT - (at - start)
        at[0] = 0  # attributes
        at = put_varint(at + 1, timestamp_delta)
        at = put_varint(at, offset_delta)
        at = put_sized(at, key)
        at = put_sized(at, value)
        at[0] = 0  # no headers
        self.count += 1
        return 0
