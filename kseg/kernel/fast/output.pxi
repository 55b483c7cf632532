# The buffer that collects text; integers and times as text.

@cython.final
cdef class Output:
    """Collects bytes and passes them to `write` in large pieces."""

    cdef uint8_t* buffer
    cdef Py_ssize_t used, capacity
    cdef object sink, storage

    def __init__(self, write, Py_ssize_t capacity):
        self.sink = write
        self.capacity = max(capacity, 2 * PIECE * WIDEST)
        self.storage = bytearray(self.capacity + ASCII_SLACK)
        self.buffer = <uint8_t*><char*>self.storage  # the storage is never resized

    def write(self, bytes text):
        """Add bytes after the rendered ones."""
        cdef Py_ssize_t size = PyBytes_Size(text)
        if size > self.capacity:
            self.flush()
            self.sink(memoryview(text))
            return
        self.need(size)
        memcpy(self.buffer + self.used, PyBytes_AsString(text), size)
        self.used += size

    def flush(self):
        """Pass on the collected bytes."""
        self._flush()

    cdef int _flush(self) except -1:
        cdef Py_ssize_t used = self.used
        self.used = 0
        if used:
            self.sink(memoryview(self.storage)[:used])
        return 0

    cdef inline int need(self, Py_ssize_t size) except -1 nogil:
        """Make room for `size` bytes, at most the capacity, and ASCII_SLACK more."""
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
        """Take some text."""
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
    """Write halves that don't wait for each other."""
    put_four(out, value // 10000)
    put_four(out + 4, value % 10000)


cdef uint8_t small_numbers[1000][4]  # the digits of each, and their count: sizes have one to three, unpredictably


cdef void prepare_numbers() noexcept:
    cdef uint32_t number, size
    cdef uint8_t digits[4]
    for number in range(1000):
        put_four(digits, number)
        size = 1 + (number >= 10) + (number >= 100)
        memcpy(small_numbers[number], digits + 4 - size, size)
        small_numbers[number][3] = size


prepare_numbers()


cdef inline uint8_t* put_small(uint8_t* out, uint32_t value) noexcept nogil:
    """Write up to 8 digits in place: copying them from elsewhere would wait for these writes."""
    if value < 1000:
        memcpy(out, small_numbers[value], 4)
        return out + small_numbers[value][3]
    if value < 10000:
        put_four(out, value)
        return out + 4
    out = put_small(out, value // 10000)
    put_four(out, value % 10000)
    return out + 4


cdef inline uint8_t* put_integer(uint8_t* out, int64_t value) noexcept nogil:
    """Write decimal digits."""
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
    # unsafe: literals have SHORT bytes after them, and the output has room for them
    cdef Py_ssize_t done = SHORT
    memcpy(out, literal, SHORT)
    while done < size:
        memcpy(out + done, literal + done, SHORT)
        done += SHORT
    return out + size


cdef inline uint8_t* put_two(uint8_t* out, uint32_t value) noexcept nogil:
    memcpy(out, two_digits + 2 * value, 2)
    return out + 2


cdef int64_t END_OF_YEAR_9999 = 253402300799999
cdef int64_t ZONE_CYCLE_START = 4102444800000  # as in the contract
cdef int64_t ZONE_CYCLE = 146097 * <int64_t>86400000


cdef struct Zone:
    int64_t* starts  # milliseconds, ascending
    int32_t* offsets  # seconds east of UTC from there on
    Py_ssize_t count  # 0: UTC
    int64_t second  # the last printed one, since 1970; its text up to the fraction, and its offset
    uint8_t text[20]
    int32_t offset


cdef int32_t zone_offset(Zone* zone, int64_t ms) noexcept nogil:
    """Return seconds east of UTC at a time that isn't negative."""
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
    """Return whether ISO 8601 has a year of four digits for the time."""
    return 0 <= ms <= END_OF_YEAR_9999 and ms + 1000LL * zone_offset(zone, ms) <= END_OF_YEAR_9999


cdef uint8_t* put_json_time(uint8_t* out, Zone* zone, int64_t ms) noexcept nogil:
    """Write a JSON string, or null."""
    if not has_time(zone, ms):
        memcpy(out, b"null", 4)
        return out + 4
    out[0] = c'"'
    out = put_time(out + 1, zone, ms)
    out[0] = c'"'
    return out + 1


cdef inline uint8_t* put_time(uint8_t* out, Zone* zone, int64_t ms) noexcept nogil:
    """Write ISO 8601. Most times in UTC lie in the second of the time before; a zone may change within one."""
    cdef uint32_t fraction = <uint32_t>(ms % 1000)
    if zone.count or ms // 1000 != zone.second:
        set_second(zone, ms // 1000, zone_offset(zone, ms))
    memcpy(out, zone.text, sizeof(zone.text))
    out += sizeof(zone.text)
    out[0] = c"0" + <uint8_t>(fraction // 100)
    out = put_two(out + 1, fraction % 100)
    if zone.count:
        return put_offset(out, zone.offset)
    out[0] = c"Z"
    return out + 1


cdef void set_second(Zone* zone, int64_t second, int32_t offset) noexcept nogil:
    """Set the text of a second. Civil date from days, Gregorian."""
    cdef uint32_t days, rest, era, day_of_era, year_of_era, day_of_year, month, year
    cdef uint8_t* at = zone.text
    zone.second, zone.offset = second, offset
    second += offset + 719468 * 86400LL  # from 0000-03-01
    days = <uint32_t>(second // 86400)
    rest = <uint32_t>(second % 86400)
    era = days // 146097
    day_of_era = days % 146097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    year = year_of_era + era * 400 + (1 if month >= 10 else 0)
    put_four(at, year)
    at[4] = c"-"
    at = put_two(at + 5, month + 3 if month < 10 else month - 9)
    at[0] = c"-"
    at = put_two(at + 1, day_of_year - (153 * month + 2) // 5 + 1)
    at[0] = c"T"
    at = put_two(at + 1, rest // 3600)
    at[0] = c":"
    at = put_two(at + 1, rest // 60 % 60)
    at[0] = c":"
    at = put_two(at + 1, rest % 60)
    at[0] = c"."


cdef uint8_t* put_offset(uint8_t* at, int32_t offset) noexcept nogil:
    """Write hours and minutes east of UTC, and seconds if the zone has some."""
    at[0] = c"-" if offset < 0 else c"+"
    offset = -offset if offset < 0 else offset
    at = put_two(at + 1, <uint32_t>offset // 3600)
    at[0] = c":"
    at = put_two(at + 1, <uint32_t>offset // 60 % 60)
    if offset % 60:
        at[0] = c":"
        at = put_two(at + 1, <uint32_t>offset % 60)
    return at
