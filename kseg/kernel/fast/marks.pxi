# Notes marks in an image: old offset checkpoints, and the signatures of a file system's structures.

cdef extern from "carve.h" nogil:
    int64_t marked_text(const uint8_t* base, int64_t at, int64_t end)

cdef enum:
    # formats/checkpoints.py's OFFSET_CHECKPOINT_START
    VERSION_LINE = 2  # bytes: "0\n"
    COUNT_DIGITS = 7
    TOPIC_SIZE = 249
    PARTITION_DIGITS = 10
    OFFSET_DIGITS = 19
    LEAST_CHECKPOINT = 10  # bytes: "0\n1\nt 0 0\n"
    MOST_PLACES = 64


cdef inline bint is_digit(uint8_t byte) noexcept nogil:
    return c'0' <= byte <= c'9'


cdef inline bint is_of_topic(uint8_t byte) noexcept nogil:
    return is_digit(byte) or c'a' <= (byte | 0x20) <= c'z' or byte == c'.' or byte == c'_' or byte == c'-'


cdef inline const uint8_t* after_number(const uint8_t* at, const uint8_t* end, int most, uint8_t stop) noexcept nogil:
    """The byte after 1 to `most` digits and the byte that stops them; NULL if that isn't there."""
    cdef const uint8_t* first = at
    while at < end and at - first < most and is_digit(at[0]):
        at += 1
    return at + 1 if first < at < end and at[0] == stop else NULL


cdef inline bint begins_checkpoint(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """Whether a version, a number of entries and an entry follow each other."""
    cdef const uint8_t* first
    if at[VERSION_LINE] == c'0':  # unsafe: LEAST_CHECKPOINT bytes exist
        return False
    at = first = after_number(at + VERSION_LINE, end, COUNT_DIGITS, c'\n')
    if at == NULL:
        return False
    while at < end and at - first < TOPIC_SIZE and is_of_topic(at[0]):
        at += 1
    if not first < at < end or at[0] != c' ':
        return False
    at = after_number(at + 1, end, PARTITION_DIGITS, c' ')
    return at != NULL and after_number(at, end, OFFSET_DIGITS, c'\n') != NULL


def find_checkpoints(const uint8_t[::1] buffer, Py_ssize_t most):
    """Return the starts of offset checkpoints; see the contract."""
    cdef int64_t at = 0, size = buffer.shape[0], last = size - LEAST_CHECKPOINT + 1
    cdef const uint8_t* base
    found = []
    if last <= 0:
        return found
    base = &buffer[0]
    while len(found) < most:
        with nogil:
            at = marked_text(base, at, last)
            while at < last and not begins_checkpoint(base + at, base + size):
                at = marked_text(base, at + 1, last)
        if at >= last:
            break
        found.append(at)
        at += 1
    return found


def find_signatures(const uint8_t[::1] buffer, signatures):
    """Return the signatures' places; see the contract."""
    cdef int64_t places[MOST_PLACES]
    cdef int64_t numbers[MOST_PLACES]
    cdef uint8_t magics[MOST_PLACES][2]
    cdef int64_t sector = 0, size = buffer.shape[0], step = max((each.slot for each in signatures), default=1), at = -1
    cdef Py_ssize_t count = 0, i = 0
    cdef const uint8_t* base
    for number, each in enumerate(signatures):
        for place in range(each.place, step, each.slot):
            if step % each.slot or count == MOST_PLACES:
                raise ValueError("slots that don't fit the largest one, or too many places")
            places[count], numbers[count] = place, number
            magics[count][0], magics[count][1] = each.magic
            count += 1
    found = []
    if not size:
        return found
    base = &buffer[0]
    while True:
        with nogil:
            at = -1
            while sector < size and at < 0:
                while i < count and at < 0:
                    if (
                        sector + places[i] + 2 <= size
                        and base[sector + places[i]] == magics[i][0]
                        and base[sector + places[i] + 1] == magics[i][1]
                    ):
                        at = sector + places[i]
                    i += 1
                if at < 0:
                    i = 0
                    sector += step
        if at < 0:
            return found
        found.append((numbers[i - 1], at))
