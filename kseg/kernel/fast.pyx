# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The compiled kernel: scans, renders and splits runs of batches at the speed of memory.

Headers are read at fixed places, of rows that `scan` or `check_rows` found to lie within their buffer. Whatever has a
length of its own (records, inner messages, compressed bodies) is read through `Cursor`, which never passes its end.
`twin.py` does the same in Python; tests hold the two equal on valid and on damaged bytes.
"""

cimport cython
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memset
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from functools import lru_cache

from kseg.kernel.contract import Problem as ProblemValue
from kseg.kernel.contract import RecordProblem

cdef extern from "crc.h" nogil:
    void crc_prepare()
    uint32_t crc32_of(const uint8_t* at, size_t size)
    uint32_t crc32c_of(const uint8_t* at, size_t size)

NAME = "fast"
crc_prepare()

# The numbers of kseg.kernel.contract; a test holds them equal.
cpdef enum Stop:
    END, BAD_LENGTH, BAD_MAGIC, BAD_CRC, FULL

cpdef enum Problem:
    BAD_RECORD, BAD_COUNT, BAD_CONTROL, BAD_MESSAGE

cdef enum:
    BASE_OFFSET, LAST_OFFSET, COUNT, BASE_SEQUENCE, LAST_SEQUENCE, PRODUCER_ID, PRODUCER_EPOCH, PARTITION_LEADER_EPOCH
    IS_TRANSACTIONAL, IS_CONTROL, HAS_DELETE_HORIZON, BASE_TIMESTAMP, MAX_TIMESTAMP, TIMESTAMP_TYPE, POSITION, SIZE
    MAGIC, CODEC, CRC, IS_VALID, ATTRIBUTES
    OFFSET, TIMESTAMP, SEQUENCE, KEY_SIZE, VALUE_SIZE, HEADER_COUNT, RECORD_CRC, RECORD_IS_VALID, RECORD_CODEC
    RECORD_MAGIC, CONTROL_TYPE, CONTROL_VERSION, COORDINATOR_EPOCH, TIMESTAMP_DELTA, RECORD_ATTRIBUTES

cpdef enum Op:
    LITERAL, INTEGER, WORD, TEXT, HEADER_KEYS, SKIP_IF_NULL, SKIP_IF_ZERO, JSON_TEXT, JSON_HEADERS, JSON_TIME
    SKIP_UNLESS_NULL, SKIP_UNLESS_ZERO, SKIP_IF_NEGATIVE, CSV_TEXT, CSV_HEADERS, TIME, CSV_SAFE_TEXT, JSON_VALUE

cdef enum:
    SLOTS = 36
    TEXTS = 7
    FIRST_DECODED_TEXT = 3
    ROW = 3
    LOG_OVERHEAD = 12
    MAGIC_AT = 16
    BATCH_HEADER = 61
    V0_ENTRY = 12 + 14
    V1_ENTRY = 12 + 22
    UNKNOWN_CONTROL = 7
    MALFORMED_CONTROL = 8
    CONTROL_TEMPLATES = 9
    LONGEST_NUMBER = 48  # more bytes than an integer or an ISO time needs
    NOTHING = 100  # operations of the kernel's own: only a literal,
    END_OF_LINE = 101  # and the end of a template
    PIECE = 16384  # bytes of a text that are decoded between two looks at the room left
    MANY_HEADERS = 1000
    SHORT = 32  # literals up to this size are copied by one copy of this size; what it writes too much is written over
    WIDEST = 6  # bytes that one byte of text can become: \u0000 in JSON


# --- reading ---------------------------------------------------------------------------------------------------------

cdef struct Cursor:
    const uint8_t* at
    const uint8_t* end
    bint failed  # something was wanted that isn't there: what is read behind it means nothing


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


cdef inline int64_t int64_at(const uint8_t* at) noexcept nogil:
    return big_endian(at, 8)


cdef inline const uint8_t* take(Cursor* cursor, int64_t size) noexcept nogil:
    """The next `size` bytes, or NULL (and failed) if there are fewer."""
    cdef const uint8_t* at = cursor.at
    if size < 0 or size > cursor.end - at:
        cursor.failed = True
        return NULL
    cursor.at += size
    return at


cdef inline int64_t varlong(Cursor* cursor, int bytes_allowed) noexcept nogil:
    """A zig-zag number of at most 5 (int32) or 10 (int64) bytes; Kafka drops what doesn't fit of the last byte."""
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


cdef inline const uint8_t* end_of(Bytes content) noexcept nogil:
    """Where some bytes end. A null lies nowhere, and its size is none that could be added."""
    return content.at + content.size if content.size > 0 else content.at


# --- scanning --------------------------------------------------------------------------------------------------------

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


# --- writing ---------------------------------------------------------------------------------------------------------

@cython.final
cdef class Output:
    """Collects bytes and hands them to `write` in large pieces."""

    cdef uint8_t* buffer
    cdef Py_ssize_t used, capacity
    cdef object sink, storage

    def __init__(self, write, Py_ssize_t capacity):
        self.sink = write
        self.capacity = max(capacity, 2 * PIECE * WIDEST)
        self.storage = bytearray(self.capacity + SHORT)
        self.buffer = <uint8_t*><char*>self.storage  # the storage is never resized

    def write(self, bytes text):
        """Adds bytes behind what was rendered."""
        cdef Py_ssize_t size = PyBytes_GET_SIZE(text)
        if size > self.capacity:
            self.flush()
            self.sink(memoryview(text))
            return
        self.need(size)
        memcpy(self.buffer + self.used, PyBytes_AS_STRING(text), size)
        self.used += size

    def flush(self):
        """Hands over what is collected."""
        self._flush()

    cdef int _flush(self) except -1:
        cdef Py_ssize_t used = self.used
        self.used = 0
        if used:
            self.sink(memoryview(self.storage)[:used])
        return 0

    cdef inline int need(self, Py_ssize_t size) except -1 nogil:
        """Makes room for `size` bytes, at most the capacity, and SHORT more."""
        return self.make_room() if size > self.capacity - self.used else 0

    cdef int make_room(self) except -1 with gil:
        return self._flush()


@cython.final
cdef class Doubling:
    """Puts text into an output with its quotes doubled."""

    cdef Output out

    def __init__(self, Output out):
        self.out = out

    def write(self, const uint8_t[::1] text):
        """Takes some text."""
        cdef const uint8_t* at = &text[0]
        cdef const uint8_t* end = at + text.shape[0]
        cdef const uint8_t* stop
        while at < end:
            stop = min(at + PIECE, end)
            self.out.need(PIECE * WIDEST)
            self.out.used += put_doubled(self.out.buffer + self.out.used, at, stop)
            at = stop


cdef extern from *:
    """
    static const char two_digits[] =
        "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
        "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
    """
    const char* two_digits


cdef inline void put_four(uint8_t* out, uint32_t value) noexcept nogil:
    memcpy(out, two_digits + 2 * (value // 100), 2)
    memcpy(out + 2, two_digits + 2 * (value % 100), 2)


cdef inline void put_eight(uint8_t* out, uint32_t value) noexcept nogil:
    """Halves that don't wait for each other."""
    put_four(out, value // 10000)
    put_four(out + 4, value % 10000)


cdef inline uint8_t* put_small(uint8_t* out, uint32_t value) noexcept nogil:
    """Up to 8 digits. They are written where they belong: copying them from elsewhere would wait for these writes."""
    if value < 10:
        out[0] = c"0" + <uint8_t>value
        return out + 1
    if value < 100:
        memcpy(out, two_digits + 2 * value, 2)
        return out + 2
    if value < 1000:
        out[0] = c"0" + <uint8_t>(value // 100)
        memcpy(out + 1, two_digits + 2 * (value % 100), 2)
        return out + 3
    if value < 10000:
        put_four(out, value)
        return out + 4
    out = put_small(out, value // 10000)
    put_four(out, value % 10000)
    return out + 4


cdef inline uint8_t* put_integer(uint8_t* out, int64_t value) noexcept nogil:
    """Decimal digits."""
    cdef uint64_t rest = <uint64_t>value
    if value < 0:
        out[0] = c"-"
        out += 1
        rest = -rest
    if rest < 100000000:
        return put_small(out, <uint32_t>rest)
    if rest < 10000000000000000ULL:
        out = put_small(out, <uint32_t>(rest // 100000000))
    else:
        out = put_small(out, <uint32_t>(rest // 10000000000000000ULL))
        put_eight(out, <uint32_t>(rest // 100000000 % 100000000))
        out += 8
    put_eight(out, <uint32_t>(rest % 100000000))
    return out + 8


cdef inline uint8_t* put_literal(uint8_t* out, const uint8_t* literal, Py_ssize_t size) noexcept nogil:
    # unsafe: literals have SHORT bytes behind them, and the output has room for them
    if size <= SHORT:
        memcpy(out, literal, SHORT)
    else:
        memcpy(out, literal, size)
    return out + size


cdef inline uint8_t* put_digits(uint8_t* out, int value, int width) noexcept nogil:
    cdef int i
    for i in range(width - 1, -1, -1):
        out[i] = c"0" + value % 10
        value //= 10
    return out + width


cdef int64_t END_OF_YEAR_9999 = 253402300799999
cdef int64_t ZONE_CYCLE_START = 4102444800000  # as the contract has them
cdef int64_t ZONE_CYCLE = 146097 * <int64_t>86400000


cdef struct Zone:
    int64_t* starts  # milliseconds, rising
    int32_t* offsets  # seconds east of UTC from there on
    Py_ssize_t count  # 0: UTC


cdef int32_t zone_offset(Zone* zone, int64_t ms) noexcept nogil:
    """Seconds east of UTC at a time that isn't negative."""
    cdef Py_ssize_t low = 0, high = zone.count, middle
    if zone.count == 0:
        return 0
    if ms >= ZONE_CYCLE_START + ZONE_CYCLE:
        ms = ZONE_CYCLE_START + (ms - ZONE_CYCLE_START) % ZONE_CYCLE
    while high - low > 1:
        middle = (low + high) // 2
        if zone.starts[middle] <= ms:
            low = middle
        else:
            high = middle
    return zone.offsets[low]


cdef inline bint has_time(Zone* zone, int64_t ms) noexcept nogil:
    """Whether ISO 8601 has a year of four digits for it."""
    return 0 <= ms <= END_OF_YEAR_9999 and ms + 1000LL * zone_offset(zone, ms) <= END_OF_YEAR_9999


cdef uint8_t* put_json_time(uint8_t* out, Zone* zone, int64_t ms) noexcept nogil:
    """A JSON string, or null."""
    if not has_time(zone, ms):
        memcpy(out, b"null", 4)
        return out + 4
    out[0] = c'"'
    out = put_time(out + 1, zone, ms)
    out[0] = c'"'
    return out + 1


cdef uint8_t* put_time(uint8_t* out, Zone* zone, int64_t ms) noexcept nogil:
    """ISO 8601. Civil date from days, Gregorian."""
    cdef int32_t offset = zone_offset(zone, ms)
    cdef int64_t days, era, day_of_era, year_of_era, day_of_year, month, year, rest
    cdef uint8_t* at = out
    ms += 1000LL * offset + 719468 * 86400000LL  # from 0000-03-01
    days = ms // 86400000
    rest = ms % 86400000
    era = days // 146097
    day_of_era = days % 146097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    year = year_of_era + era * 400 + (1 if month >= 10 else 0)
    at = put_digits(at, <int>year, 4)
    at[0] = c"-"
    at = put_digits(at + 1, <int>(month + 3 if month < 10 else month - 9), 2)
    at[0] = c"-"
    at = put_digits(at + 1, <int>(day_of_year - (153 * month + 2) // 5 + 1), 2)
    at[0] = c"T"
    at = put_digits(at + 1, <int>(rest // 3600000), 2)
    at[0] = c":"
    at = put_digits(at + 1, <int>(rest // 60000 % 60), 2)
    at[0] = c":"
    at = put_digits(at + 1, <int>(rest // 1000 % 60), 2)
    at[0] = c"."
    at = put_digits(at + 1, <int>(rest % 1000), 3)
    if zone.count:
        return put_offset(at, offset)
    at[0] = c"Z"
    return at + 1


cdef uint8_t* put_offset(uint8_t* at, int32_t offset) noexcept nogil:
    """Hours and minutes east of UTC; and seconds, where a zone had such."""
    at[0] = c"-" if offset < 0 else c"+"
    offset = -offset if offset < 0 else offset
    at = put_digits(at + 1, offset // 3600, 2)
    at[0] = c":"
    at = put_digits(at + 1, offset // 60 % 60, 2)
    if offset % 60:
        at[0] = c":"
        at = put_digits(at + 1, offset % 60, 2)
    return at


# --- text ------------------------------------------------------------------------------------------------------------

cdef inline const uint8_t* ascii_end(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """Where the first byte over 127 stands, or the end."""
    cdef uint64_t word
    while end - at >= 8:
        memcpy(&word, at, 8)
        if word & 0x8080808080808080U:
            break
        at += 8
    while at < end and at[0] < 0x80:
        at += 1
    return at


cdef inline int sequence_size(const uint8_t* at, const uint8_t* end, bint* good) noexcept nogil:
    """Bytes of the UTF-8 sequence at `at` (a byte over 127); if not good, bytes that Java replaces by one U+FFFD.

    Java takes what could have begun a sequence as one error, and an encoded surrogate whole.
    """
    cdef uint8_t first = at[0], low = 0x80, high = 0xBF
    cdef int wanted, i
    good[0] = False
    if first < 0xC2 or first > 0xF4:
        return 1
    wanted = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if first == 0xE0:
        low = 0xA0
    elif first == 0xF0:
        low = 0x90
    elif first == 0xF4:
        high = 0x8F
    for i in range(1, wanted):
        if at + i == end or at[i] < low or at[i] > high:
            return i
        low, high = 0x80, 0xBF
    good[0] = not (first == 0xED and at[1] >= 0xA0)
    return wanted


cdef enum:
    NOT_UTF8 = 0
    PLAIN = 1
    CONTROLLING = 2  # UTF-8 with characters of kseg.control_characters beyond ASCII

cdef uint8_t may_control[256]  # 1 for bytes with which such a character can begin
for _byte in range(256):
    may_control[_byte] = _byte in b"\xc2\xd8\xe1\xe2\xef\xf3"


cdef bint is_control(const uint8_t* at) noexcept nogil:
    """Whether a valid sequence of several bytes is a character that JSON escapes."""
    cdef uint8_t second = at[1]
    if at[0] == 0xC2:
        return second <= 0x9F
    if at[0] == 0xD8:
        return second == 0x9C
    if at[0] == 0xE1:
        return second == 0xA0 and at[2] == 0x8E
    if at[0] == 0xE2 and second == 0x80:
        return at[2] == 0x8B or at[2] == 0x8E or at[2] == 0x8F or 0xA8 <= at[2] <= 0xAE
    if at[0] == 0xE2:
        return second == 0x81 and at[2] >= 0xA0 and at[2] <= 0xAF
    if at[0] == 0xEF:
        return (second == 0xBB and at[2] == 0xBF) or (second == 0xBF and at[2] >= 0xB9 and at[2] <= 0xBB)
    return at[0] == 0xF3 and second == 0xA0 and at[2] <= 0x81


cdef int text_kind(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """NOT_UTF8, PLAIN or CONTROLLING."""
    cdef bint good
    cdef int size, kind = PLAIN
    at = ascii_end(at, end)
    while at < end:
        size = sequence_size(at, end, &good)
        if not good:
            return NOT_UTF8
        if may_control[at[0]] and is_control(at):
            kind = CONTROLLING
        at = ascii_end(at + size, end)
    return kind


cdef inline bint copy_sixteen(uint8_t* out, const uint8_t* at) noexcept nogil:
    """Copies 16 bytes if none is over 127. unsafe: they are there."""
    cdef uint64_t first, second
    memcpy(&first, at, 8)
    memcpy(&second, at + 8, 8)
    if (first | second) & 0x8080808080808080U:
        return False
    memcpy(out, &first, 8)
    memcpy(out + 8, &second, 8)
    return True


cdef inline int64_t copy_ascii(uint8_t* out, const uint8_t* at, int64_t size) noexcept nogil:
    """Copies up to the first byte over 127; gives how many."""
    cdef int64_t done = 0
    while size - done >= 16 and copy_sixteen(out + done, at + done):
        done += 16
    if size >= 16 and size - done < 16 and copy_sixteen(out + size - 16, at + size - 16):
        return size  # the last 16, some of them again
    while done < size and at[done] < 0x80:
        out[done] = at[done]
        done += 1
    return done


cdef inline uint8_t* put_java_text(uint8_t* out, const uint8_t** text, const uint8_t* stop, const uint8_t* end) noexcept nogil:
    """Decodes and encodes again, up to `stop` or just over it; a sequence may reach up to `end`."""
    cdef const uint8_t* at = text[0]
    cdef bint good
    cdef int64_t size
    while at < stop:
        size = copy_ascii(out, at, stop - at)
        out += size
        at += size
        if at < stop:
            size = sequence_size(at, end, &good)
            if good:
                memcpy(out, at, size)
                out += size
            else:
                memcpy(out, b"\xef\xbf\xbd", 3)
                out += 3
            at += size
    text[0] = at
    return out


cdef enum:
    WORD_SIZE = 8

cdef inline uint64_t each(uint8_t byte) noexcept nogil:
    """A word of that byte eight times."""
    return byte * <uint64_t>0x0101010101010101U


cdef inline uint64_t zeros(uint64_t word) noexcept nogil:
    """Marks the bytes that are zero, by their highest bit."""
    return ~(((word & each(0x7F)) + each(0x7F)) | word | each(0x7F))


cdef uint8_t json_letters[256]  # what stands for a byte: itself, or the letter behind a backslash
cdef uint8_t json_escapes[256]  # 1 if a backslash comes before it, 2 if it takes the form \\u00xx
for _byte in range(256):
    json_letters[_byte] = {ord("\n"): ord("n"), ord("\t"): ord("t"), ord("\r"): ord("r")}.get(_byte, _byte)
    json_escapes[_byte] = 1 if _byte in b'"\\\n\t\r' else 2 if _byte < 0x20 or _byte == 0x7F else 0


cdef inline uint8_t* put_json_byte(uint8_t* out, uint8_t byte) noexcept nogil:
    """Without a branch for all but rare bytes: whether a quote comes next is nothing that can be foretold."""
    cdef uint8_t escape = json_escapes[byte]
    if escape == 2:
        memcpy(out, b"\\u00", 4)
        out[4] = b"0123456789abcdef"[byte >> 4]
        out[5] = b"0123456789abcdef"[byte & 15]
        return out + 6
    out[0] = c"\\"
    out[escape] = json_letters[byte]
    return out + 1 + escape


cdef Py_ssize_t put_json_text(uint8_t* out, const uint8_t* at, const uint8_t* stop) noexcept nogil:
    """Escapes UTF-8 for a JSON string: quotes, backslashes, control characters."""
    cdef uint8_t* start = out
    cdef uint64_t word
    cdef int i
    while stop - at >= WORD_SIZE:
        memcpy(&word, at, WORD_SIZE)
        if zeros(word ^ each(c'"')) | zeros(word & each(0xE0)) | zeros(word ^ each(c"\\")) | zeros(word ^ each(0x7F)):
            for i in range(WORD_SIZE):
                out = put_json_byte(out, at[i])
        else:
            memcpy(out, &word, WORD_SIZE)
            out += WORD_SIZE
        at += WORD_SIZE
    while at < stop:
        out = put_json_byte(out, at[0])
        at += 1
    return out - start


cdef uint8_t* put_json_unit(uint8_t* out, uint32_t unit) noexcept nogil:
    """A unit of UTF-16 as \\uxxxx."""
    cdef int i
    memcpy(out, b"\\u", 2)
    for i in range(4):
        out[2 + i] = b"0123456789abcdef"[unit >> (12 - 4 * i) & 15]
    return out + 6


cdef uint8_t* put_json_control(uint8_t* out, const uint8_t* at, int size) noexcept nogil:
    """A character of several bytes by its number; above U+FFFF as two halves."""
    cdef uint32_t number = at[0] & (0xFF >> (size + 1))
    cdef int i
    for i in range(1, size):
        number = number << 6 | (at[i] & 0x3F)
    if number < 0x10000:
        return put_json_unit(out, number)
    number -= 0x10000
    return put_json_unit(put_json_unit(out, 0xD800 | number >> 10), 0xDC00 | (number & 0x3FF))


cdef Py_ssize_t put_json_controls(uint8_t* out, const uint8_t** text, const uint8_t* stop, const uint8_t* end) noexcept nogil:
    """As put_json_text, with characters beyond ASCII that control. Ends at `stop`, or behind a character across it."""
    cdef uint8_t* start = out
    cdef const uint8_t* at = text[0]
    cdef bint good
    cdef int size
    while at < stop:
        size = 1 if at[0] < 0x80 else sequence_size(at, end, &good)
        if size == 1:
            out = put_json_byte(out, at[0])
        elif is_control(at):
            out = put_json_control(out, at, size)
        else:
            memcpy(out, at, size)
            out += size
        at += size
    text[0] = at
    return out - start


cdef Py_ssize_t put_base64(uint8_t* out, const uint8_t* at, Py_ssize_t size) noexcept nogil:
    cdef const char* alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    cdef uint8_t* start = out
    cdef uint32_t word
    while size >= 3:
        word = <uint32_t>at[0] << 16 | <uint32_t>at[1] << 8 | at[2]
        out[0] = alphabet[word >> 18]
        out[1] = alphabet[word >> 12 & 63]
        out[2] = alphabet[word >> 6 & 63]
        out[3] = alphabet[word & 63]
        at += 3
        size -= 3
        out += 4
    if size:
        word = <uint32_t>at[0] << 16 | (<uint32_t>at[1] << 8 if size == 2 else 0)
        out[0] = alphabet[word >> 18]
        out[1] = alphabet[word >> 12 & 63]
        out[2] = alphabet[word >> 6 & 63] if size == 2 else c"="
        out[3] = c"="
        out += 4
    return out - start


cdef int put_text(Output out, Bytes text, bint is_raw) except -1 nogil:
    """A text as Java decodes it, or as it is."""
    cdef const uint8_t* at = text.at
    cdef const uint8_t* end = end_of(text)
    cdef Py_ssize_t size
    while at < end:
        out.need(PIECE * WIDEST)
        if is_raw:
            size = min(PIECE, end - at)
            memcpy(out.buffer + out.used, at, size)
            out.used += size
            at += size
            continue
        out.used = put_java_text(out.buffer + out.used, &at, min(at + PIECE, end), end) - out.buffer
    return 0


cdef int put_json(Output out, Bytes text) except -1 nogil:
    """What follows an open JSON name: its end, a colon and the text; or Base64 in the name if it isn't UTF-8."""
    cdef int kind
    out.need(LONGEST_NUMBER)
    if text.size < 0:
        memcpy(out.buffer + out.used, b'":null', 6)
        out.used += 6
        return 0
    kind = text_kind(text.at, end_of(text))
    if kind == NOT_UTF8:
        memcpy(out.buffer + out.used, b"Base64", 6)
        out.used += 6
    memcpy(out.buffer + out.used, b'":', 2)
    out.used += 2
    return put_json_string(out, text, kind)


cdef int put_json_value(Output out, Bytes text) except -1 nogil:
    """A JSON string; null for null. What isn't UTF-8, or begins as if it weren't, is Base64 after `base64:`."""
    cdef int kind
    out.need(LONGEST_NUMBER)
    if text.size < 0:
        memcpy(out.buffer + out.used, b"null", 4)
        out.used += 4
        return 0
    kind = text_kind(text.at, end_of(text))
    return put_json_string(out, text, NOT_UTF8 if has_base64_mark(text) else kind, True)


cdef inline bint has_base64_mark(Bytes text) noexcept nogil:
    return text.size >= 7 and memcmp(text.at, b"base64:", 7) == 0


cdef int put_json_string(Output out, Bytes text, int kind, bint is_marked=False) except -1 nogil:
    """A text in quotes, in Base64 if it is of the kind NOT_UTF8: is_marked puts `base64:` before that."""
    cdef const uint8_t* at = text.at
    cdef const uint8_t* end = end_of(text)
    cdef const uint8_t* stop
    out.need(LONGEST_NUMBER)
    memcpy(out.buffer + out.used, b'"base64:', 8)
    out.used += 8 if is_marked and kind == NOT_UTF8 else 1
    while at < end:
        stop = min(at + PIECE - PIECE % 3, end)
        out.need(PIECE * WIDEST)
        if kind == CONTROLLING:
            out.used += put_json_controls(out.buffer + out.used, &at, stop, end)
            continue
        if kind == PLAIN:
            out.used += put_json_text(out.buffer + out.used, at, stop)
        else:
            out.used += put_base64(out.buffer + out.used, at, stop - at)
        at = stop
    out.need(1)
    out.buffer[out.used] = c'"'
    out.used += 1
    return 0


cdef bint is_formula(const uint8_t* at, Py_ssize_t size) noexcept nogil:
    """Whether it begins as one, as the contract's FORMULA_STARTS say: the last of them have three bytes."""
    if size >= 3 and at[0] == 0xEF and at[1] == 0xBC:
        return at[2] in (0x9D, 0x8B, 0x8D, 0xA0)
    return size > 0 and at[0] in (c"=", c"+", c"-", c"@", c"\t", c"\r", c"\n")


cdef int put_csv(Output out, Bytes text, bint is_safe) except -1 nogil:
    """A field in quotes; nothing for null. What isn't UTF-8, or begins as if it weren't, is Base64 after `base64:`.

    is_safe: an apostrophe comes before what a spreadsheet would take for a formula.
    """
    cdef const uint8_t* at = text.at
    cdef const uint8_t* end = end_of(text)
    cdef const uint8_t* stop
    cdef bint readable
    if text.size < 0:
        return 0
    readable = text_kind(at, end) != NOT_UTF8 and not has_base64_mark(text)
    out.need(LONGEST_NUMBER)
    memcpy(out.buffer + out.used, b'"base64:', 8)
    out.used += 1 if readable else 8
    if is_safe and readable and is_formula(at, end - at):
        out.buffer[out.used] = c"'"
        out.used += 1
    while at < end:
        stop = min(at + PIECE - PIECE % 3, end)
        out.need(PIECE * WIDEST)
        if readable:
            out.used += put_doubled(out.buffer + out.used, at, stop)
        else:
            out.used += put_base64(out.buffer + out.used, at, stop - at)
        at = stop
    out.need(1)
    out.buffer[out.used] = c'"'
    out.used += 1
    return 0


cdef Py_ssize_t put_doubled(uint8_t* out, const uint8_t* at, const uint8_t* stop) noexcept nogil:
    """Text with its quotes doubled."""
    cdef uint8_t* start = out
    while at < stop:
        out[0] = c'"'
        out += at[0] == c'"'
        out[0] = at[0]
        out += 1
        at += 1
    return out - start


# --- templates -------------------------------------------------------------------------------------------------------

cdef struct Operation:
    # a literal, and what follows it; of operations that pass over others, b is where to go on
    int32_t literal, literal_size, code, a, b


cdef struct WordTable:
    int64_t first
    int32_t count
    int32_t* starts  # count + 1 of them, in the literals


cdef struct Template:
    Operation* ops  # the last one is an END
    WordTable* words
    const uint8_t* literals
    Py_ssize_t fixed_size  # bytes that the line takes at most, its texts aside
    bint is_raw  # texts are given as they are
    Zone zone


SKIPS = (SKIP_IF_NULL, SKIP_IF_ZERO, SKIP_UNLESS_NULL, SKIP_UNLESS_ZERO, SKIP_IF_NEGATIVE)
TEXT_OPS = (TEXT, SKIP_IF_NULL, SKIP_UNLESS_NULL, JSON_TEXT, JSON_VALUE, CSV_TEXT, CSV_SAFE_TEXT)
SLOT_OPS = (INTEGER, WORD, SKIP_IF_ZERO, SKIP_UNLESS_ZERO, SKIP_IF_NEGATIVE, JSON_TIME, TIME)


def joined(flat):
    """Operations (literal, its size, code, a, b) that each begin with the literal before them; an END_OF_LINE last."""
    given = [tuple(flat[i : i + 3]) for i in range(0, len(flat), 3)]
    targets = {i + 1 + b for i, (code, _, b) in enumerate(given) if code in SKIPS}
    operations, places = [], {}
    literal = (0, 0)
    for i, (code, a, b) in enumerate([*given, (END_OF_LINE, 0, 0)]):
        if literal[1] and (code == LITERAL or i in targets):
            operations.append([*literal, NOTHING, 0, 0])
            literal = (0, 0)
        places[i] = len(operations)
        if code == LITERAL:
            literal = (a, b)
            continue
        operations.append([*literal, code, a, i + 1 + b if code in SKIPS else b])
        literal = (0, 0)
    for operation in operations:
        if operation[2] in SKIPS:
            if operation[4] not in places:
                raise IndexError("nothing there to pass over")
            operation[4] = places[operation[4]]
    return operations


@cython.final
cdef class CompiledTemplate:
    """Owns a Template in C's memory, checked once so that running it needs no checks."""

    cdef Template template
    cdef bytes literals
    cdef Py_ssize_t word_tables

    def __cinit__(self, template):
        flat, literals, words, is_raw, zone = template
        self.template.is_raw = is_raw
        self._take_zone(zone)
        self.word_tables = len(words)
        cdef int32_t literal, literal_size, code, a, b
        cdef Py_ssize_t i
        self.literals = literals + b"".join(b"".join(table.texts) for table in words) + bytes(SHORT)
        self.template.literals = <const uint8_t*>PyBytes_AS_STRING(self.literals)
        self.template.words = <WordTable*>calloc(self.word_tables + 1, sizeof(WordTable))
        self.template.ops = <Operation*>calloc(len(flat) // 3 + 1, sizeof(Operation))
        if self.template.ops == NULL or self.template.words == NULL:
            raise MemoryError()
        longest_word = self._take_words(words, len(literals))
        for i, operation in enumerate(joined(flat)):
            self._check(operation, len(literals), len(flat) // 3)
            literal, literal_size, code, a, b = operation
            self.template.ops[i] = Operation(literal, literal_size, code, a, b)
            self.template.fixed_size += literal_size + (longest_word if code == WORD else LONGEST_NUMBER) + SHORT

    def _check(self, operation, literals_size, count):
        literal, literal_size, code, a, b = operation
        if not 0 <= literal <= literal + literal_size <= literals_size:
            raise IndexError("literal outside the template's text")
        if code == WORD and not 0 <= b < self.word_tables:
            raise IndexError("no such table of words")
        if code in SLOT_OPS and not 0 <= a < SLOTS:
            raise IndexError("no such slot")
        if code in TEXT_OPS and not 0 <= a < TEXTS:
            raise IndexError("no such text")
        if code in SKIPS and not 0 <= b <= count:
            raise IndexError("nothing there to pass over")

    def _take_zone(self, zone):
        self.template.zone.starts = <int64_t*>calloc(len(zone) + 1, sizeof(int64_t))
        self.template.zone.offsets = <int32_t*>calloc(len(zone) + 1, sizeof(int32_t))
        if self.template.zone.starts == NULL or self.template.zone.offsets == NULL:
            raise MemoryError()
        for i, (start, offset) in enumerate(zone):
            if not -86400 < offset < 86400:
                raise ValueError("a zone is less than a day from UTC")
            self.template.zone.starts[i] = start
            self.template.zone.offsets[i] = offset
        self.template.zone.count = len(zone)

    def _take_words(self, words, start):
        longest = 0
        for i, (first, texts) in enumerate(words):
            self.template.words[i].first = first
            self.template.words[i].count = len(texts)
            self.template.words[i].starts = <int32_t*>calloc(len(texts) + 1, sizeof(int32_t))
            if self.template.words[i].starts == NULL:
                raise MemoryError()
            for k, text in enumerate(texts):
                self.template.words[i].starts[k] = start
                start += len(text)
                longest = max(longest, len(text))
            self.template.words[i].starts[len(texts)] = start
        return longest

    def __dealloc__(self):
        cdef Py_ssize_t i
        free(self.template.ops)
        free(self.template.zone.starts)
        free(self.template.zone.offsets)
        if self.template.words != NULL:
            for i in range(self.word_tables):
                free(self.template.words[i].starts)
            free(self.template.words)


@lru_cache(maxsize=256)
def compiled(template):
    """The template in C's memory; the same one for all files."""
    return CompiledTemplate(template)


cdef inline uint8_t* put_word(uint8_t* out, const uint8_t* literals, WordTable* table, int64_t number) noexcept nogil:
    cdef int64_t index = number - table.first
    if index < 0 or index >= table.count:
        index = table.count - 1
    return put_literal(out, literals + table.starts[index], table.starts[index + 1] - table.starts[index])


# --- records ---------------------------------------------------------------------------------------------------------

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


# --- filtering -------------------------------------------------------------------------------------------------------

cdef inline bint is_part(const uint8_t* at, int64_t size, const uint8_t* part, int64_t part_size) noexcept nogil:
    """Whether some bytes hold others."""
    cdef const uint8_t* end = at + size - part_size + 1
    if part_size == 0:
        return True
    while at < end:
        at = <const uint8_t*>memchr(at, part[0], end - at)
        if at == NULL:
            return False
        if memcmp(at, part, part_size) == 0:
            return True
        at += 1
    return False


cdef inline bint is_same(Bytes* text, Bytes* other) noexcept nogil:
    return text.size == other.size and (text.size <= 0 or memcmp(text.at, other.at, text.size) == 0)


cdef inline uint64_t mixed(uint64_t number) noexcept nogil:
    """The number's bits mixed evenly: splitmix64."""
    number += 0x9E3779B97F4A7C15U
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9U
    number = (number ^ (number >> 27)) * 0x94D049BB133111EBU
    return number ^ (number >> 31)


@cython.final
cdef class Filter:
    """A contract.RecordFilter in C's types; keeps what it points to alive."""

    cdef int64_t first_offset, last_offset, first_timestamp, last_timestamp
    cdef bint has_share, asks_python
    cdef uint64_t share
    cdef Bytes key, key_part, value_part
    cdef Bytes* headers  # name and value of each; a value of size -1 asks nothing
    cdef Py_ssize_t header_count
    cdef object predicate, owner

    def __cinit__(self, wanted):
        self.owner = wanted
        self.first_offset, self.last_offset = wanted.first_offset, wanted.last_offset
        self.first_timestamp, self.last_timestamp = wanted.first_timestamp, wanted.last_timestamp
        self.has_share = wanted.share is not None
        self.share = wanted.share if self.has_share else 0
        self.key = bytes_or_null(wanted.key)
        self.key_part = bytes_or_null(wanted.key_part)
        self.value_part = bytes_or_null(wanted.value_part)
        self.header_count = len(wanted.headers)
        self.headers = <Bytes*>malloc((2 * self.header_count + 1) * sizeof(Bytes))
        if self.headers == NULL:
            raise MemoryError()
        for i, (name, value) in enumerate(wanted.headers):
            self.headers[2 * i] = from_object(name)
            self.headers[2 * i + 1] = bytes_or_null(value)
        self.predicate = wanted.predicate
        self.asks_python = self.predicate is not None

    def __dealloc__(self):
        free(self.headers)

    cdef bint takes(self, Line* line) except -1 nogil:
        cdef int64_t offset = line.slots[OFFSET], timestamp = line.slots[TIMESTAMP]
        if offset < self.first_offset or offset > self.last_offset:
            return False
        if timestamp < self.first_timestamp or timestamp > self.last_timestamp:
            return False
        if self.has_share and mixed(<uint64_t>offset) >= self.share:
            return False
        if self.key.size >= 0 and not (
                line.texts[0].size == self.key.size and memcmp(line.texts[0].at, self.key.at, self.key.size) == 0):
            return False
        if not self.has_part(&line.texts[0], &self.key_part) or not self.has_part(&line.texts[1], &self.value_part):
            return False
        if self.header_count and not self.has_headers(line):
            return False
        if not self.asks_python:
            return True
        with gil:
            return bool(self.predicate(to_object(line.texts[0]), to_object(line.texts[1])))

    cdef inline bint has_part(self, Bytes* text, Bytes* part) noexcept nogil:
        return part.size < 0 or (text.size >= part.size and is_part(text.at, text.size, part.at, part.size))

    cdef bint has_headers(self, Line* line) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.header_count):
            if not self.has_header(line, &self.headers[2 * i], &self.headers[2 * i + 1]):
                return False
        return True

    cdef bint has_header(self, Line* line, Bytes* name, Bytes* value) noexcept nogil:
        cdef Cursor headers = line.headers
        cdef Bytes found_name, found_value
        cdef int64_t i
        for i in range(line.slots[HEADER_COUNT]):
            found_name = sized(&headers, varint(&headers))
            found_value = sized(&headers, varint(&headers))
            if is_same(&found_name, name) and (value.size < 0 or is_same(&found_value, value)):
                return True
        return False


cdef Bytes bytes_or_null(object text) except *:
    # unsafe: as from_object
    cdef Bytes null
    null.at = NULL
    null.size = -1
    return null if text is None else from_object(text)


cdef object headers_of(Line* line):
    """A record's headers as (key, value); very many are read when they are asked for."""
    cdef Cursor headers = line.headers
    cdef int64_t i
    cdef list found = []
    if line.slots[HEADER_COUNT] > MANY_HEADERS:
        from kseg.kernel.twin_headers import ManyHeaders

        return ManyHeaders((<const char*>headers.at)[:headers.end - headers.at], 0, line.slots[HEADER_COUNT])
    for i in range(line.slots[HEADER_COUNT]):
        key = to_object(sized(&headers, varint(&headers)))
        found.append((key, to_object(sized(&headers, varint(&headers)))))
    return found


def has_csv_headers(program):
    """Whether a template of the program shows headers as a field of CSV."""
    templates = [*program.batch, *program.record, *(program.control or ())]
    return any(CSV_HEADERS in template.ops[::3] for template in templates if template is not None)


# --- rendering -------------------------------------------------------------------------------------------------------

@cython.final
cdef class Renderer:
    """Renders batches of one file, and remembers what it met; see the contract."""

    cdef Output out
    cdef list owners  # keep the templates alive
    cdef Template* batch_templates[3]
    cdef Template* record_templates[3]
    cdef Template* control_templates[CONTROL_TEMPLATES]
    cdef bint stopped, deep_legacy, deep_v2, has_control, has_decoder, has_control_decoder, has_last_offset
    cdef int gap_rule
    cdef int64_t last_offset
    cdef object decode, decode_control, decode_all, decoded
    cdef Line line, batch_line
    cdef Template* waiting  # line of the batch that is printed with the first record that the filter takes
    cdef Filter filter
    cdef bint has_filter
    cdef int64_t to_skip, limit
    cdef Output scratch
    cdef readonly bint is_full
    cdef public int64_t records
    cdef public list problems, gaps

    def __init__(self, program, Output output, decode=None, decode_control=None, int gap_rule=0, last_offset=None,
                 decode_all=None, record_filter=None):
        cdef int i
        self.out = output
        self.owners = []
        for i in range(3):
            self.batch_templates[i] = self._compile(program.batch[i])
            self.record_templates[i] = self._compile(program.record[i])
        self.has_control = program.control is not None
        for i in range(CONTROL_TEMPLATES if self.has_control else 0):
            self.control_templates[i] = self._compile(program.control[i])
        self.deep_legacy = self.record_templates[0] != NULL or self.record_templates[1] != NULL
        self.deep_v2 = self.record_templates[2] != NULL
        self.has_decoder = decode is not None or decode_all is not None
        self.decode_all = decode_all
        self.has_filter = record_filter is not None
        self.limit = -1
        self.is_full = False
        if self.has_filter:
            self.filter = Filter(record_filter)
            self.to_skip = record_filter.skip
            self.limit = -1 if record_filter.limit is None else record_filter.limit
            self.is_full = self.limit == 0
        self.waiting = NULL
        self.scratch = Output(Doubling(output).write, 0) if has_csv_headers(program) else None
        self.has_control_decoder = decode_control is not None
        self.decode, self.decode_control = decode, decode_control
        self.gap_rule = gap_rule
        self.has_last_offset = last_offset is not None
        self.last_offset = last_offset or 0
        self.records = 0
        self.problems = []
        self.gaps = []
        for i in range(2, TEXTS):
            self.line.texts[i].size = -1

    cdef Template* _compile(self, template) except? NULL:
        cdef CompiledTemplate owner
        if template is None:
            return NULL
        owner = compiled(template)
        if owner.template.fixed_size > self.out.capacity:
            raise ValueError("a template longer than the output's buffer")
        self.owners.append(owner)
        return &owner.template

    def render(self, const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t first, Py_ssize_t last, int64_t position,
               bodies, Py_ssize_t first_body=-1):
        """Prints rows from `first` on, up to `last` or through the first batch with a problem; see the contract."""
        cdef const uint8_t* base = &buffer[0]
        check_rows(buffer.shape[0], rows, first, last)
        cdef Bytes* given = take_bodies(bodies, first - first_body if first_body >= 0 else 0, last - first)
        cdef Py_ssize_t i = first
        self.stopped = self.is_full
        try:
            with nogil:
                while i < last and not self.stopped:
                    self.one_batch(base + rows[i * ROW], rows[i * ROW + 1], buffer.shape[0] - rows[i * ROW],
                                   rows[i * ROW + 2], position + rows[i * ROW], given[i - first])
                    i += 1
        finally:
            free(given)
        return i

    cdef int one_batch(self, const uint8_t* at, int64_t size, int64_t room, bint valid, int64_t position,
                       Bytes body) except -1 nogil:
        """One row. A size of less than a v2 header doesn't keep Kafka from reading one, if `room` bytes are there."""
        cdef Line* line = &self.line
        cdef int8_t magic = <int8_t>at[MAGIC_AT]
        if magic < 2 or room < BATCH_HEADER:
            return self.one_entry(at, size, valid, position, body)
        fill_batch(at, size, valid, position, line)
        self.put_batch(self.batch_templates[2], self.deep_v2)
        if not self.deep_v2:
            self.records += max(line.slots[COUNT], 0)
            return 0
        if size < BATCH_HEADER:
            return self.problem(Problem.BAD_RECORD, 0, 0)
        if line.slots[CODEC] == 0:
            body.at = at + BATCH_HEADER
            body.size = size - BATCH_HEADER
        if body.size < 0:
            return 0
        return self.batch_records(body)

    cdef int batch_records(self, Bytes bytes_of_records) except -1 nogil:
        cdef Line* line = &self.line
        cdef Cursor body
        cdef int64_t i
        body.at = bytes_of_records.at
        body.end = end_of(bytes_of_records)
        body.failed = False
        if line.slots[COUNT] < 0:
            return self.problem(Problem.BAD_COUNT, 0, 0)
        for i in range(line.slots[COUNT]):
            if body.at == body.end:
                return self.problem(Problem.BAD_COUNT, i, bytes_of_records.size)
            if not read_record(&body, line):
                return self.problem(Problem.BAD_RECORD, i, body.at - bytes_of_records.at)
            if self.gap_rule & 1:
                self.note_offset()
            if self.has_filter and not self.takes():
                continue
            self.records += 1
            if line.slots[IS_CONTROL] and self.has_control:
                self.put_control(i)
            else:
                self.put_record(self.record_templates[2])
            if self.is_full:
                return 0
        if body.at != body.end:
            return self.problem(Problem.BAD_COUNT, line.slots[COUNT], body.at - bytes_of_records.at)
        return 0

    cdef int put_control(self, int64_t index) except -1 nogil:
        cdef Line* line = &self.line
        cdef Bytes key = line.texts[0], value = line.texts[1]
        cdef int64_t kind
        line.slots[CONTROL_TYPE] = line.slots[CONTROL_VERSION] = line.slots[COORDINATOR_EPOCH] = -1
        if key.size < 4 or <int16_t>big_endian(key.at, 2) < 0:
            self.problem(Problem.BAD_CONTROL, index, 0)
            return self.put(self.control_templates[MALFORMED_CONTROL])
        kind = <int16_t>big_endian(key.at + 2, 2)
        line.slots[CONTROL_VERSION] = <int16_t>big_endian(key.at, 2)
        line.slots[CONTROL_TYPE] = kind
        if 0 <= kind <= 1:
            if value.size < 6 or <int16_t>big_endian(value.at, 2) < 0:
                line.slots[CONTROL_TYPE] = line.slots[CONTROL_VERSION] = -1
                self.problem(Problem.BAD_CONTROL, index, 0)
                return self.put(self.control_templates[MALFORMED_CONTROL])
            line.slots[COORDINATOR_EPOCH] = int32_at(value.at + 2)
        elif self.has_control_decoder and 0 <= kind < UNKNOWN_CONTROL:
            with gil:
                self.decoded = self.decode_control(to_object(key), to_object(value))
                if self.decoded is not None:
                    line.texts[2] = from_object(self.decoded)
        self.put(self.control_templates[kind if 0 <= kind < UNKNOWN_CONTROL else UNKNOWN_CONTROL])
        line.texts[2].size = -1
        return 0

    cdef int one_entry(self, const uint8_t* at, int64_t size, bint valid, int64_t position, Bytes body) except -1 nogil:
        cdef Line* line = &self.line
        cdef bint readable = fill_entry(at, size, valid, position, line)
        cdef int magic = 1 if line.slots[MAGIC] == 1 else 0
        cdef Inner inner
        cdef int64_t shift
        if line.slots[CODEC] == 0 or not self.deep_legacy:
            if self.gap_rule == 2 and line.slots[CODEC] == 0:
                self.note_offset()
            elif self.gap_rule == 2:
                self.has_last_offset = True
                self.last_offset = line.slots[OFFSET]
            if not self.deep_legacy:
                self.records += 1
                return self.put_record(self.batch_templates[magic])  # up to 0.10.2 this line shows key and value
            self.put_batch(self.batch_templates[magic], True)
            if not readable:
                return self.problem(Problem.BAD_RECORD, 0, 0)
            if self.gap_rule & 1:
                self.note_offset()
            if self.has_filter and not self.takes():
                return 0
            self.records += 1
            return self.put_record(self.record_templates[magic])
        if body.size < 0:
            return self.put_batch(self.batch_templates[magic], True)
        inner = survey(body.at, end_of(body))
        shift = inner_shift(magic, line.slots[LAST_OFFSET], inner.last_offset)
        line.slots[BASE_OFFSET] = sum_of(inner.first_offset, shift)
        line.slots[COUNT] = inner.count
        self.put_batch(self.batch_templates[magic], True)
        if inner.count == 0 or (shift < 0 and magic == 1):
            return self.problem(Problem.BAD_RECORD, 0, 0)
        return self.wrapper_records(body, magic, shift)

    cdef int wrapper_records(self, Bytes body, int magic, int64_t shift) except -1 nogil:
        cdef const uint8_t* at = body.at
        cdef const uint8_t* end = end_of(body)
        cdef int64_t size, index = 0
        cdef bint has_wrong = not self.line.slots[IS_VALID]
        while end - at >= LOG_OVERHEAD:
            size = next_inner(at, end, magic, shift, &self.line)
            if size < 0:
                return self.problem(Problem.BAD_RECORD, index, at - body.at)
            if size == 0:
                return 0
            if not (has_wrong or self.line.slots[RECORD_IS_VALID]):
                has_wrong = True
                self.problem(Problem.BAD_MESSAGE, index, 0)
            index += 1
            at += size
            if self.gap_rule:
                self.note_offset()
            if self.has_filter and not self.takes():
                continue
            self.records += 1
            self.put_record(self.record_templates[magic])
            if self.is_full:
                return 0
        return 0

    cdef int note_offset(self) except -1 nogil:
        cdef int64_t offset = self.line.slots[OFFSET]
        cdef bint is_gap = offset <= self.last_offset if self.gap_rule == 3 else offset != sum_of(self.last_offset, 1)
        if self.has_last_offset and is_gap:
            with gil:
                self.gaps.append((self.last_offset, offset))
        self.has_last_offset = True
        self.last_offset = offset
        return 0

    cdef int problem(self, int kind, int64_t records_read, int64_t body_position) except -1 with gil:
        self.stopped = True
        self.problems.append(
            RecordProblem(self.line.slots[POSITION], ProblemValue(kind), records_read, body_position)
        )
        return 0

    cdef int put_batch(self, Template* template, bint is_deep) except -1 nogil:
        """The batch's line; with a filter it waits for the first record taken, if records are looked at."""
        if not self.has_filter or not is_deep:
            return self.put(template)
        self.waiting = template
        if template != NULL:
            self.batch_line = self.line
        return 0

    cdef bint takes(self) except -1 nogil:
        """Whether the line's record is to be printed; if so, its batch's line comes before it."""
        cdef Line record
        if self.is_full or not self.filter.takes(&self.line):
            return False
        if self.to_skip > 0:
            self.to_skip -= 1
            return False
        if self.limit >= 0 and self.records + 1 >= self.limit:
            self.is_full = self.stopped = True
        if self.waiting != NULL:
            record = self.line
            self.line = self.batch_line
            self.put(self.waiting)
            self.waiting = NULL
            self.line = record
        return True

    cdef int put_record(self, Template* template) except -1 nogil:
        cdef int i
        if self.has_decoder and template != NULL:
            with gil:
                self.decode_texts()
            self.put(template)
            for i in range(FIRST_DECODED_TEXT, TEXTS):
                self.line.texts[i].size = -1
            return 0
        return self.put(template)

    cdef int decode_texts(self) except -1:
        """Puts the decoder's texts in the place of key and value; `decoded` keeps them alive while they are shown."""
        cdef int i, place
        key, value = to_object(self.line.texts[0]), to_object(self.line.texts[1])
        if self.decode_all is None:
            self.decoded = self.decode(key, value, self.line.slots[OFFSET])
        else:
            self.decoded = self.decode_all(key, value, self.line.slots[OFFSET], headers_of(&self.line))
        for i in range(len(self.decoded)):
            place = i if i < 2 else i - 2 + FIRST_DECODED_TEXT
            self.line.texts[place].size = -1
            if self.decoded[i] is not None:
                self.line.texts[place] = from_object(self.decoded[i])
        return 0

    cdef int put(self, Template* template) except -1 nogil:
        return 0 if template == NULL else self.run(template, self.out)

    cdef int run(self, Template* template, Output out) except -1 nogil:
        """One line: the template's operations."""
        cdef Line* line = &self.line
        cdef Operation* op = template.ops
        cdef uint8_t* at
        cdef const uint8_t* source
        cdef int code
        out.need(template.fixed_size)
        at = out.buffer + out.used
        while True:
            at = put_literal(at, template.literals + op.literal, op.literal_size)
            code = op.code
            if code == INTEGER:
                at = put_integer(at, line.slots[op.a])
            elif code == WORD:
                at = put_word(at, template.literals, &template.words[op.b], line.slots[op.a])
            elif code == END_OF_LINE:
                out.used = at - out.buffer
                return 0
            elif code == JSON_TIME:
                at = put_json_time(at, &template.zone, line.slots[op.a])
            elif code in (SKIP_IF_NULL, SKIP_UNLESS_NULL):
                if (line.texts[op.a].size < 0) == (code == SKIP_IF_NULL):
                    op = &template.ops[op.b]
                    continue
            elif code in (SKIP_IF_ZERO, SKIP_UNLESS_ZERO):
                if (line.slots[op.a] == 0) == (code == SKIP_IF_ZERO):
                    op = &template.ops[op.b]
                    continue
            elif code == SKIP_IF_NEGATIVE:
                if line.slots[op.a] < 0:
                    op = &template.ops[op.b]
                    continue
            elif code == TEXT and line.texts[op.a].size < 0:
                pass
            elif code == TEXT and 3 * line.texts[op.a].size + template.fixed_size < out.capacity - (at - out.buffer):
                source = line.texts[op.a].at
                if template.is_raw:
                    memcpy(at, source, line.texts[op.a].size)
                    at += line.texts[op.a].size
                else:
                    at = put_java_text(at, &source, source + line.texts[op.a].size, source + line.texts[op.a].size)
            elif code == HEADER_KEYS and line.slots[HEADER_COUNT] == 0:
                pass
            elif code != NOTHING:
                out.used = at - out.buffer
                if code == TEXT:
                    put_text(out, line.texts[op.a], template.is_raw)
                elif code == JSON_TEXT:
                    put_json(out, line.texts[op.a])
                elif code == JSON_VALUE:
                    put_json_value(out, line.texts[op.a])
                elif code == HEADER_KEYS:
                    self.put_header_keys(out, template.is_raw)
                elif code == JSON_HEADERS:
                    self.put_json_headers(out)
                elif code in (CSV_TEXT, CSV_SAFE_TEXT):
                    put_csv(out, line.texts[op.a], code == CSV_SAFE_TEXT)
                elif code == CSV_HEADERS:
                    self.put_csv_headers(out)
                elif code == TIME and has_time(&template.zone, line.slots[op.a]):
                    out.used = put_time(out.buffer + out.used, &template.zone, line.slots[op.a]) - out.buffer
                out.need(template.fixed_size)  # a text may have filled what was reserved for the rest of the line
                at = out.buffer + out.used
            op += 1

    cdef int put_header_keys(self, Output out, bint is_raw) except -1 nogil:
        cdef Cursor headers = self.line.headers
        cdef int64_t i
        for i in range(self.line.slots[HEADER_COUNT]):
            out.need(1)
            if i:
                out.buffer[out.used] = c","
                out.used += 1
            put_text(out, sized(&headers, varint(&headers)), is_raw)
            sized(&headers, varint(&headers))
        return 0

    cdef int put_json_headers(self, Output out) except -1 nogil:
        cdef Cursor headers = self.line.headers
        cdef int64_t i
        out.need(LONGEST_NUMBER)
        out.buffer[out.used] = c"["
        out.used += 1
        for i in range(self.line.slots[HEADER_COUNT]):
            out.need(LONGEST_NUMBER)
            memcpy(out.buffer + out.used, b',{"key' if i else b'{"key', 6 if i else 5)
            out.used += 6 if i else 5
            put_json(out, sized(&headers, varint(&headers)))
            out.need(LONGEST_NUMBER)
            memcpy(out.buffer + out.used, b',"value', 7)
            out.used += 7
            put_json(out, sized(&headers, varint(&headers)))
            out.need(LONGEST_NUMBER)
            out.buffer[out.used] = c"}"
            out.used += 1
        out.need(LONGEST_NUMBER)
        out.buffer[out.used] = c"]"
        out.used += 1
        return 0

    cdef int put_csv_headers(self, Output out) except -1 nogil:
        """The JSON of the headers as a field: it is UTF-8 always."""
        out.need(LONGEST_NUMBER)
        out.buffer[out.used] = c'"'
        out.used += 1
        if self.line.slots[HEADER_COUNT] == 0:
            memcpy(out.buffer + out.used, b"[]", 2)
            out.used += 2
        else:
            self.put_json_headers(self.scratch)
            with gil:
                self.scratch._flush()
        out.need(LONGEST_NUMBER)
        out.buffer[out.used] = c'"'
        out.used += 1
        return 0


# --- redacting -------------------------------------------------------------------------------------------------------

def replace_header_values(uint8_t[::1] records, Py_ssize_t start, Py_ssize_t end, int64_t count, replace):
    """Replaces the values of the records' headers where they stand; see the contract."""
    cdef Line line
    cdef Cursor body, headers
    cdef Bytes value
    cdef int64_t i, k
    cdef bytes replaced
    if not 0 <= start <= end <= records.shape[0]:
        raise IndexError("records outside the buffer")
    if start == end:
        return
    memset(&line, 0, sizeof(Line))
    body.at, body.end, body.failed = &records[0] + start, &records[0] + end, False
    for i in range(count):
        if body.at == body.end or not read_record(&body, &line):
            return
        headers = line.headers
        for k in range(line.slots[HEADER_COUNT]):
            sized(&headers, varint(&headers))
            value = sized(&headers, varint(&headers))
            if value.size > 0:
                replaced = replace(to_object(value))
                if PyBytes_GET_SIZE(replaced) != value.size:
                    raise ValueError("what replaces a value must have its size")
                memcpy(<uint8_t*>value.at, PyBytes_AS_STRING(replaced), value.size)


# --- columns ---------------------------------------------------------------------------------------------------------

# Bodies come and go with every piece of work. The allocator would give their memory back to the system each time, and the
# system would clear it again: that costs more than a quick codec. Both arrays change under the GIL only.
cdef enum:
    MOST_SPARES = 4
    LARGEST_SPARE = 1 << 22
    COPIED_BODY = 1 << 16

cdef uint8_t* spare_memory[MOST_SPARES]
cdef Py_ssize_t spare_capacity[MOST_SPARES]
cdef int spare_count = 0


@cython.final
cdef class Growing:
    """Memory that grows, and that Arrow and numpy can look into."""

    cdef uint8_t* memory
    cdef Py_ssize_t used, capacity
    cdef bint is_kept  # the memory, for the next one of its kind

    def __dealloc__(self):
        global spare_count
        if self.is_kept and self.memory != NULL and spare_count < MOST_SPARES and self.capacity <= LARGEST_SPARE:
            spare_memory[spare_count], spare_capacity[spare_count] = self.memory, self.capacity
            spare_count += 1
        else:
            free(self.memory)

    cdef void keep(self) noexcept:
        """Takes the memory of one that is gone, and leaves its own to a later one."""
        global spare_count
        self.is_kept = True
        if self.memory == NULL and spare_count:
            spare_count -= 1
            self.memory, self.capacity = spare_memory[spare_count], spare_capacity[spare_count]

    cdef uint8_t* add(self, Py_ssize_t size) except NULL nogil:
        """Room for `size` more bytes."""
        cdef uint8_t* larger
        cdef Py_ssize_t capacity
        if size > self.capacity - self.used or self.memory == NULL:
            capacity = max(2 * self.capacity, self.used + size, 256)
            larger = <uint8_t*>realloc(self.memory, capacity)
            if larger == NULL:
                with gil:
                    raise MemoryError()
            self.memory, self.capacity = larger, capacity
        self.used += size
        return self.memory + self.used - size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.memory, self.used, 1, flags)


cdef int add_int32(Growing column, int64_t value) except -1 nogil:
    (<int32_t*>column.add(4))[0] = <int32_t>value
    return 0


cdef int add_int64(Growing column, int64_t value) except -1 nogil:
    (<int64_t*>column.add(8))[0] = value
    return 0


@cython.final
cdef class Texts:
    """A column of byte strings: offsets, a bit for each that isn't null, and the bytes."""

    cdef Growing offsets, validity, data
    cdef int64_t count

    def __cinit__(self):
        self.offsets, self.validity, self.data = Growing(), Growing(), Growing()
        self.count = 0
        add_int32(self.offsets, 0)
        self.validity.add(0)
        self.data.add(0)

    cdef int add(self, Bytes text) except -1 nogil:
        cdef uint8_t* last
        if self.count & 7 == 0:
            self.validity.add(1)[0] = 0
        if text.size >= 0:
            last = self.validity.memory + (self.count >> 3)
            last[0] = last[0] | (1 << (self.count & 7))
            memcpy(self.data.add(text.size), text.at, text.size)
        if self.data.used > 2147483647LL:
            with gil:
                raise OverflowError("more than 2 GiB of keys or values in one piece")
        add_int32(self.offsets, self.data.used)
        self.count += 1
        return 0


@cython.final
cdef class Columns:
    """Records of a run of batches, column by column; see the contract."""

    cdef readonly int64_t count
    cdef readonly Growing rows, offsets, timestamps, timestamp_types, sequences, checksums, valid, control, header_offsets
    cdef Texts keys, values, header_keys, header_values
    cdef readonly list problems
    cdef Line line

    def __cinit__(self):
        self.rows, self.offsets, self.timestamps, self.sequences = Growing(), Growing(), Growing(), Growing()
        self.checksums, self.valid, self.header_offsets = Growing(), Growing(), Growing()
        self.timestamp_types, self.control = Growing(), Growing()
        self.keys, self.values, self.header_keys, self.header_values = Texts(), Texts(), Texts(), Texts()
        self.problems = []
        add_int32(self.header_offsets, 0)

    @property
    def header_count(self):
        return self.header_keys.count

    @property
    def key_offsets(self):
        return self.keys.offsets

    @property
    def key_validity(self):
        return self.keys.validity

    @property
    def key_data(self):
        return self.keys.data

    @property
    def value_offsets(self):
        return self.values.offsets

    @property
    def value_validity(self):
        return self.values.validity

    @property
    def value_data(self):
        return self.values.data

    @property
    def header_key_offsets(self):
        return self.header_keys.offsets

    @property
    def header_key_data(self):
        return self.header_keys.data

    @property
    def header_value_offsets(self):
        return self.header_values.offsets

    @property
    def header_value_validity(self):
        return self.header_values.validity

    @property
    def header_value_data(self):
        return self.header_values.data

    cdef int problem(self, int kind, int64_t records_read, int64_t body_position) except -1 with gil:
        self.problems.append(
            RecordProblem(self.line.slots[POSITION], ProblemValue(kind), records_read, body_position)
        )
        return 0

    cdef int add(self, int64_t row) except -1 nogil:
        """The line's record."""
        cdef Line* line = &self.line
        cdef Cursor headers = line.headers
        cdef int64_t i
        add_int32(self.rows, row)
        add_int64(self.offsets, line.slots[OFFSET])
        add_int64(self.timestamps, line.slots[TIMESTAMP])
        add_int32(self.sequences, line.slots[SEQUENCE])
        add_int64(self.checksums, line.slots[RECORD_CRC])
        self.valid.add(1)[0] = line.slots[RECORD_IS_VALID]
        self.control.add(1)[0] = line.slots[IS_CONTROL]
        add_int32(self.timestamp_types, line.slots[TIMESTAMP_TYPE])
        self.keys.add(line.texts[0])
        self.values.add(line.texts[1])
        for i in range(line.slots[HEADER_COUNT]):
            self.header_keys.add(sized(&headers, varint(&headers)))
            self.header_values.add(sized(&headers, varint(&headers)))
        add_int32(self.header_offsets, self.header_keys.count)
        self.count += 1
        return 0

    cdef int add_batch(self, int64_t row, Bytes bytes_of_records) except -1 nogil:
        cdef Cursor body
        cdef int64_t i
        body.at = bytes_of_records.at
        body.end = end_of(bytes_of_records)
        body.failed = False
        if self.line.slots[COUNT] < 0:
            return self.problem(Problem.BAD_COUNT, 0, 0)
        for i in range(self.line.slots[COUNT]):
            if body.at == body.end:
                return self.problem(Problem.BAD_COUNT, i, bytes_of_records.size)
            if not read_record(&body, &self.line):
                return self.problem(Problem.BAD_RECORD, i, body.at - bytes_of_records.at)
            self.add(row)
        if body.at != body.end:
            return self.problem(Problem.BAD_COUNT, self.line.slots[COUNT], body.at - bytes_of_records.at)
        return 0

    cdef int add_entry(self, int64_t row, bint readable, Bytes body) except -1 nogil:
        """A message, or the messages of a wrapper."""
        cdef Line* line = &self.line
        cdef int magic = 1 if line.slots[MAGIC] == 1 else 0
        cdef Inner inner
        cdef int64_t shift, size, index = 0
        cdef const uint8_t* at = body.at
        cdef const uint8_t* end = end_of(body)
        if line.slots[CODEC] == 0:
            return self.add(row) if readable else self.problem(Problem.BAD_RECORD, 0, 0)
        if body.size < 0:
            return 0
        inner = survey(at, end)
        shift = inner_shift(magic, line.slots[LAST_OFFSET], inner.last_offset)
        if inner.count == 0 or (shift < 0 and magic == 1):
            return self.problem(Problem.BAD_RECORD, 0, 0)
        while end - at >= LOG_OVERHEAD:
            size = next_inner(at, end, magic, shift, line)
            if size < 0:
                return self.problem(Problem.BAD_RECORD, index, at - body.at)
            if size == 0:
                return 0
            self.add(row)
            index += 1
            at += size
        return 0


def columns(const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t first, Py_ssize_t last, int64_t position, bodies):
    """The records of rows first … last - 1, control records too; see the contract."""
    cdef Columns result = Columns()
    cdef const uint8_t* base = &buffer[0]
    cdef Py_ssize_t i
    check_rows(buffer.shape[0], rows, first, last)
    cdef Bytes* given = take_bodies(bodies, 0, last - first)
    try:
        with nogil:
            for i in range(first, last):
                columns_of(result, base + rows[i * ROW], rows[i * ROW + 1], rows[i * ROW + 2],
                           position + rows[i * ROW], i, given[i - first])
    finally:
        free(given)
    return result


cdef int columns_of(Columns result, const uint8_t* at, int64_t size, bint valid, int64_t position, int64_t row,
                    Bytes body) except -1 nogil:
    cdef bint readable
    if <int8_t>at[MAGIC_AT] < 2 or size < BATCH_HEADER:
        readable = fill_entry(at, size, valid, position, &result.line)
        return result.add_entry(row, readable, body)
    fill_batch(at, size, valid, position, &result.line)
    if result.line.slots[CODEC] == 0:
        body.at = at + BATCH_HEADER
        body.size = size - BATCH_HEADER
    return 0 if body.size < 0 else result.add_batch(row, body)


cdef int check_rows(Py_ssize_t buffer_size, int64_t[::1] rows, Py_ssize_t first, Py_ssize_t last) except -1:
    """Holds what all pointer arithmetic rests on: every row lies within its buffer."""
    cdef Py_ssize_t i
    if first < 0 or last < first or last * ROW > rows.shape[0]:
        raise IndexError("rows that aren't there")
    for i in range(first, last):
        if rows[i * ROW] < 0 or rows[i * ROW + 1] < V0_ENTRY or rows[i * ROW] + rows[i * ROW + 1] > buffer_size:
            raise IndexError("a row outside the buffer")
    return 0


cdef object to_object(Bytes text):
    return None if text.size < 0 else (<const char*>text.at)[:text.size]


cdef Bytes from_object(bytes text):
    # unsafe: the caller keeps `text` alive as long as the result is used
    cdef Bytes result
    result.at = <const uint8_t*>PyBytes_AS_STRING(text)
    result.size = PyBytes_GET_SIZE(text)
    return result


cdef Bytes* take_bodies(bodies, Py_ssize_t first, Py_ssize_t count) except NULL:
    """Where bodies first … first + count - 1 lie. unsafe: `bodies` keeps them alive while they are read."""
    if bodies is not None and not 0 <= first <= len(bodies) - count:
        raise IndexError("fewer bodies than rows")
    cdef Bytes* result = <Bytes*>malloc((count + 1) * sizeof(Bytes))
    cdef Py_ssize_t i
    if result == NULL:
        raise MemoryError()
    for i in range(count):
        result[i].at = NULL
        result[i].size = -1
    if isinstance(bodies, Bodies):
        (<Bodies>bodies).look_up(result, first, count)
    elif bodies is not None:
        for i in range(count):
            if bodies[first + i] is not None:
                result[i] = from_object(bodies[first + i])
    return result


# --- bodies ----------------------------------------------------------------------------------------------------------

# Functions of the codecs' libraries, by their own names; each writes at most the capacity that it is given.
ctypedef int (*lz4_decompress_safe)(const char* source, char* target, int size, int capacity) noexcept nogil
ctypedef void* (*zstd_create_context)() noexcept nogil
ctypedef size_t (*zstd_free_context)(void* context) noexcept nogil
ctypedef size_t (*zstd_decompress)(void* context, void* target, size_t capacity, const void* source, size_t size) noexcept nogil
ctypedef unsigned long long (*zstd_decompress_bound)(const void* source, size_t size) noexcept nogil

cdef enum:
    LZ4 = 3
    ZSTD = 4
    LZ4_FRAME_HEADER = 7
    LZ4_BLOCK = 65536


cdef struct Body:
    int codec, magic  # codec 0: it isn't compressed
    Cursor frame  # at is NULL where a wrapper has no value


cdef Body compressed_body(const uint8_t* at, int64_t size) noexcept nogil:
    """The compressed bytes of the row that begins there; see formats.body."""
    cdef Body body
    cdef Cursor entry
    cdef const uint8_t* field
    cdef Bytes value
    body.magic = at[MAGIC_AT]
    body.frame.at, body.frame.end, body.frame.failed = NULL, NULL, False
    if 2 <= body.magic <= 127 and size >= BATCH_HEADER:
        body.codec = at[22] & 7
        body.frame.at, body.frame.end = at + BATCH_HEADER, at + size
        return body
    body.codec = at[17] & 7
    entry.at, entry.end, entry.failed = at, at + size, False
    take(&entry, V1_ENTRY - 8 if body.magic == 1 else V0_ENTRY - 8)
    field = take(&entry, 4)
    if field != NULL:
        sized(&entry, int32_at(field))
    field = take(&entry, 4)
    if field != NULL:
        value = sized(&entry, int32_at(field))
        if value.size >= 0 and not entry.failed:
            body.frame.at, body.frame.end = value.at, end_of(value)
    return body


cdef tuple left_row(Py_ssize_t row, Body body, const uint8_t* base):
    """What is told of a row that the libraries' Python interfaces shall decompress."""
    if body.frame.at == NULL:
        return row, body.codec, body.magic, -1, -1
    return row, body.codec, body.magic, body.frame.at - base, body.frame.end - base


@cython.final
cdef class Zstd:
    """The way into libzstd of one call, which no thread shares; its context is NULL if the functions can't be had."""

    cdef void* context
    cdef zstd_free_context free
    cdef zstd_decompress decompress
    cdef zstd_decompress_bound bound

    def __cinit__(self, functions):
        cdef zstd_create_context create = <zstd_create_context><size_t>functions.zstd_create_context
        self.free = <zstd_free_context><size_t>functions.zstd_free_context
        self.decompress = <zstd_decompress><size_t>functions.zstd_decompress
        self.bound = <zstd_decompress_bound><size_t>functions.zstd_decompress_bound
        self.context = create() if create != NULL else NULL

    def __dealloc__(self):
        if self.context != NULL:
            self.free(self.context)


@cython.final
cdef class Bodies:
    """Bodies of the rows of a slice: bytes objects, or stretches of one piece of memory."""

    cdef list objects
    cdef Growing arena
    cdef Py_ssize_t count
    cdef int64_t* starts  # in the arena, -1: none
    cdef int64_t* sizes

    def __cinit__(self, Py_ssize_t count):
        cdef Py_ssize_t i
        self.objects = [None] * count
        self.arena = Growing()
        self.arena.keep()
        self.count = count
        self.starts = <int64_t*>malloc((count + 1) * sizeof(int64_t))
        self.sizes = <int64_t*>malloc((count + 1) * sizeof(int64_t))
        if self.starts == NULL or self.sizes == NULL:
            raise MemoryError()
        for i in range(count):
            self.starts[i] = -1

    def __dealloc__(self):
        free(self.starts)
        free(self.sizes)

    def __len__(self):
        return self.count

    def __setitem__(self, Py_ssize_t index, bytes body):
        if not 0 <= index < self.count:
            raise IndexError("no such body")
        if len(body) > COPIED_BODY:
            self.objects[index] = body
        else:  # its own memory is free at once for the next body, while it is still in the processor's cache
            memcpy(self.arena.add(len(body)), PyBytes_AS_STRING(body), len(body))
            self.starts[index], self.sizes[index] = self.arena.used - len(body), len(body)

    cdef int look_up(self, Bytes* result, Py_ssize_t first, Py_ssize_t count) except -1:
        cdef Py_ssize_t i
        for i in range(count):
            if self.starts[first + i] >= 0:
                result[i].at = self.arena.memory + self.starts[first + i]
                result[i].size = self.sizes[first + i]
            elif self.objects[first + i] is not None:
                result[i] = from_object(self.objects[first + i])
        return 0

    def __getitem__(self, Py_ssize_t index):
        if not 0 <= index < self.count:
            raise IndexError("no such body")
        if self.starts[index] < 0:
            return self.objects[index]
        return (<const char*>self.arena.memory)[self.starts[index]:self.starts[index] + self.sizes[index]]

    def decompress(self, const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t first, functions, int64_t limit,
                   int64_t enough):
        """Decompresses the usual lz4 and zstd bodies of rows from `first` on; see the contract.

        Usual is what Kafka writes: of lz4 frames of independent blocks of up to 64 KiB with no checksums but the
        header's; of zstd, in v2 batches, frames that tell how large they may become. Everything else, damage too, is
        left to the libraries' Python interfaces.
        """
        cdef Py_ssize_t i, end = 0
        cdef const uint8_t* base = &buffer[0]
        cdef int64_t start
        cdef int is_done
        cdef Body body
        cdef lz4_decompress_safe unlz4 = <lz4_decompress_safe><size_t>functions.lz4_decompress_safe
        cdef Zstd zstd = Zstd(functions)
        cdef list left = []
        check_rows(buffer.shape[0], rows, first, first + self.count)
        with nogil:
            for i in range(self.count):
                if self.arena.used >= enough:
                    break
                end = i + 1
                body = compressed_body(base + rows[(first + i) * ROW], rows[(first + i) * ROW + 1])
                if body.codec == 0:
                    continue
                start = self.arena.used
                if body.codec == LZ4 and unlz4 != NULL:
                    is_done = self.take_lz4(body, unlz4, start + limit)
                elif body.codec == ZSTD and zstd.context != NULL:
                    is_done = self.take_zstd(body, zstd, min(limit, enough))
                else:
                    is_done = False
                if is_done:
                    self.starts[i] = start
                    self.sizes[i] = self.arena.used - start
                else:
                    self.arena.used = start
                    with gil:
                        left.append(left_row(first + i, body, base))
        return first + end, left

    cdef int take_zstd(self, Body body, Zstd zstd, int64_t most) except -1 nogil:
        """A body's frames into the arena; False for what the library refuses, or what may become too large."""
        cdef size_t size = body.frame.end - body.frame.at
        cdef unsigned long long bound = zstd.bound(body.frame.at, size)  # an error is a number near the largest
        cdef size_t got
        if body.magic < 2 or size == 0 or bound > <unsigned long long>most:
            return False
        # unsafe: libzstd writes at most the capacity that it is given
        got = zstd.decompress(zstd.context, self.arena.add(bound), bound, body.frame.at, size)
        if got > bound:
            return False
        self.arena.used -= bound - got
        return True

    cdef int take_lz4(self, Body body, lz4_decompress_safe decompress, int64_t most) except -1 nogil:
        """A body's frame into the arena; False where it isn't usual."""
        cdef const uint8_t* header = take(&body.frame, LZ4_FRAME_HEADER)
        if header == NULL or memcmp(header, b"\x04\x22\x4d\x18\x60\x40", 6) != 0:
            return False
        if header[6] != 0x82 and body.magic != 0:  # v0's checksum is wrong by design
            return False
        return self.blocks_of(&body.frame, decompress, most)

    cdef int blocks_of(self, Cursor* frame, lz4_decompress_safe decompress, int64_t most) except -1 nogil:
        cdef const uint8_t* at
        cdef uint8_t* target
        cdef uint32_t size
        cdef int got
        while True:
            at = take(frame, 4)
            if at == NULL:
                return False
            size = at[0] | <uint32_t>at[1] << 8 | <uint32_t>at[2] << 16 | <uint32_t>at[3] << 24
            if size == 0:
                return True
            at = take(frame, size & 0x7FFFFFFF)
            if at == NULL or size & 0x7FFFFFFF > LZ4_BLOCK:
                return False
            target = self.arena.add(LZ4_BLOCK)
            if size & 0x80000000U:
                got = size & 0x7FFFFFFF
                memcpy(target, at, got)
            else:
                # unsafe: liblz4 writes at most the capacity that it is given
                got = decompress(<const char*>at, <char*>target, size, LZ4_BLOCK)
                if got < 0:
                    return False
            self.arena.used -= LZ4_BLOCK - got
            if self.arena.used > most:
                return False


# --- records to bytes ------------------------------------------------------------------------------------------------

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
    """Size and bytes; of null only the size, which is -1."""
    out = put_varint(out, content.size)
    if content.size > 0:
        memcpy(out, content.at, content.size)
        out += content.size
    return out


UNUSUAL_TIME = 1 << 62  # below it no difference of two overflows


cdef inline bint is_bytes(object content) noexcept:
    return content is None or type(content) is bytes


cdef inline Bytes nullable(object content) noexcept:
    """Bytes, or size -1 for None. unsafe: the caller keeps them alive."""
    cdef Bytes result
    result.at, result.size = NULL, -1
    return result if content is None else from_object(<bytes>content)


@cython.final
cdef class Encoded:
    """Records as they stand in a batch, one after another."""

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
        """Bytes of all."""
        return self.memory.used

    def add(self, bytes record, int64_t offset_delta, int64_t timestamp):
        """Adds what is encoded already."""
        memcpy(self.memory.add(len(record)), PyBytes_AS_STRING(record), len(record))
        self.count += 1
        self.max_timestamp = max(self.max_timestamp, timestamp)
        self.next_delta = offset_delta + 1

    def start(self, int64_t base_timestamp):
        """Sets the time to which those of usual records are relative."""
        self.is_started, self.base_timestamp = True, base_timestamp

    def body(self):
        """All records."""
        return self.memory.memory[:self.memory.used] if self.memory.used else b""

    def append(self, timestamp, key, value, headers):
        """Encodes a record at the next offset if it is usual; see the contract."""
        return self.add_usual(timestamp, key, value, headers)

    def extend(self, records):
        """Encodes records without headers, of less than a gibibyte; see the contract."""
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
        time, key, value = timestamp, nullable(key_object), nullable(value_object)
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
