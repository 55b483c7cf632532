# Bytes as text: as Java decodes them, as JSON, as CSV.

cdef inline const uint8_t* ascii_end(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """Return the position of the first byte over 127, or the end."""
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
    """Return bytes of the UTF-8 sequence at `at` (a byte over 127); if invalid, bytes that become one U+FFFD.

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
    CONTROLLING = 2  # UTF-8 with characters of kseg.system.terminal_text beyond ASCII

cdef uint8_t may_control[256]  # 1 for bytes with which such a character can begin
for _byte in range(256):
    may_control[_byte] = _byte in b"\xc2\xd8\xe1\xe2\xef\xf3"


cdef bint is_control(const uint8_t* at) noexcept nogil:
    """Return whether a valid sequence of several bytes is a character that JSON escapes."""
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
    """Return NOT_UTF8, PLAIN or CONTROLLING."""
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


cdef inline uint8_t* put_java_text(uint8_t* out, const uint8_t** text, const uint8_t* stop, const uint8_t* end) noexcept nogil:
    """Decode and encode again, up to `stop` or slightly over it; a sequence may reach up to `end`."""
    cdef const uint8_t* at = text[0]
    cdef bint good
    cdef int64_t size
    while at < stop:
        size = ascii_copy(out, at, stop - at)
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


cdef uint8_t json_letters[256]  # the written form of a byte: itself, or the letter after a backslash
cdef uint8_t json_escapes[256]  # 1 if a backslash precedes it, 2 if it takes the form \\u00xx
for _byte in range(256):
    json_letters[_byte] = {ord("\n"): ord("n"), ord("\t"): ord("t"), ord("\r"): ord("r")}.get(_byte, _byte)
    json_escapes[_byte] = 1 if _byte in b'"\\\n\t\r' else 2 if _byte < 0x20 or _byte == 0x7F else 0


cdef inline uint8_t* put_json_byte(uint8_t* out, uint8_t byte) noexcept nogil:
    """Escape without a branch for all but rare bytes: the next quote can't be predicted."""
    cdef uint8_t escape = json_escapes[byte]
    if escape == 2:
        memcpy(out, b"\\u00", 4)
        out[4] = b"0123456789abcdef"[byte >> 4]
        out[5] = b"0123456789abcdef"[byte & 15]
        return out + 6
    out[0] = c"\\"
    out[escape] = json_letters[byte]
    return out + 1 + escape


cdef inline uint8_t* put_json_text(uint8_t* out, const uint8_t* at, const uint8_t* stop, uint64_t* seen) noexcept nogil:
    """Escape UTF-8 for a JSON string: quotes, backslashes, control characters. `seen` gets the bits of all bytes.

    unsafe: there is room for WIDEST bytes for each byte, and for ASCII_SLACK more.
    """
    cdef int64_t i
    while True:
        escape_ascii(&out, &at, stop, seen)
        if at == stop:
            return out
        for i in range(min(8, stop - at)):
            seen[0] |= at[0]
            out = put_json_byte(out, at[0])
            at += 1


cdef uint8_t* put_json_unit(uint8_t* out, uint32_t unit) noexcept nogil:
    """Write a unit of UTF-16 as \\uxxxx."""
    cdef int i
    memcpy(out, b"\\u", 2)
    for i in range(4):
        out[2 + i] = b"0123456789abcdef"[unit >> (12 - 4 * i) & 15]
    return out + 6


cdef uint8_t* put_json_control(uint8_t* out, const uint8_t* at, int size) noexcept nogil:
    """Write a character of several bytes by its number; above U+FFFF as two halves."""
    cdef uint32_t number = at[0] & (0xFF >> (size + 1))
    cdef int i
    for i in range(1, size):
        number = number << 6 | (at[i] & 0x3F)
    if number < 0x10000:
        return put_json_unit(out, number)
    number -= 0x10000
    return put_json_unit(put_json_unit(out, 0xD800 | number >> 10), 0xDC00 | (number & 0x3FF))


cdef Py_ssize_t put_json_controls(uint8_t* out, const uint8_t** text, const uint8_t* stop, const uint8_t* end) noexcept nogil:
    """Like put_json_text, with control characters beyond ASCII. Ends at `stop`, or after a character across it."""
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


cdef inline uint8_t* put_whole_text(uint8_t* out, Bytes text, bint is_raw) noexcept nogil:
    """Write a text as Java decodes it, or unchanged; nothing for null. unsafe: three times its size fits."""
    cdef const uint8_t* at = text.at
    cdef const uint8_t* end = end_of(text)
    if is_raw and at < end:
        memcpy(out, at, end - at)
        return out + (end - at)
    return put_java_text(out, &at, end, end)


cdef inline int put_text(Output out, Bytes text, bint is_raw) except -1 nogil:
    """Write a text of any size."""
    if 3 * text.size > out.capacity - out.used:
        return put_pieces(out, text.at, end_of(text), is_raw)
    out.used = put_whole_text(out.buffer + out.used, text, is_raw) - out.buffer
    return 0


cdef inline bint fits(Output out, const uint8_t* at, Bytes text, Py_ssize_t rest) noexcept nogil:
    """Return whether there is room for a text, and for the rest of its line."""
    return 3 * text.size + rest < out.capacity - (at - out.buffer)


cdef int put_pieces(Output out, const uint8_t* at, const uint8_t* end, bint is_raw) except -1 nogil:
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
    """Write the text after an open JSON name: its end, a colon and the value; or Base64 if it isn't UTF-8."""
    cdef int kind
    out.need(LONGEST_NUMBER)
    if text.size < 0:
        memcpy(out.buffer + out.used, b'":null', 6)
        out.used += 6
        return 0
    if put_usual_string(out, text, b'":"', 3):
        return 0
    kind = text_kind(text.at, end_of(text))
    if kind == NOT_UTF8:
        memcpy(out.buffer + out.used, b"Base64", 6)
        out.used += 6
    memcpy(out.buffer + out.used, b'":', 2)
    out.used += 2
    return put_json_string(out, text, kind)


cdef int put_json_value(Output out, Bytes text) except -1 nogil:
    """Write a JSON string; null for null. Non-UTF-8 text, or text with the mark, is Base64 after `base64:`."""
    out.need(LONGEST_NUMBER)
    if text.size < 0:
        memcpy(out.buffer + out.used, b"null", 4)
        out.used += 4
        return 0
    if has_base64_mark(text):
        return put_json_string(out, text, NOT_UTF8, True)
    if put_usual_string(out, text, b'"', 1):
        return 0
    return put_json_string(out, text, text_kind(text.at, end_of(text)), True)


cdef inline bint put_usual_string(Output out, Bytes text, const char* start, Py_ssize_t start_size) noexcept nogil:
    """Write a text after `start`, in one pass; write nothing if it doesn't fit, or isn't of the kind PLAIN."""
    cdef uint64_t seen = 0
    cdef uint8_t* at = out.buffer + out.used
    if WIDEST * text.size + LONGEST_NUMBER > out.capacity - out.used:
        return False
    memcpy(at, start, start_size)
    at = put_json_text(at + start_size, text.at, end_of(text), &seen)
    if seen & 0x8080808080808080U and text_kind(text.at, end_of(text)) != PLAIN:
        return False
    at[0] = c'"'
    out.used = at + 1 - out.buffer
    return True


cdef inline bint has_base64_mark(Bytes text) noexcept nogil:
    return text.size >= 7 and memcmp(text.at, b"base64:", 7) == 0


cdef int put_json_string(Output out, Bytes text, int kind, bint is_marked=False) except -1 nogil:
    """Write a text in quotes, in Base64 for the kind NOT_UTF8: is_marked puts `base64:` before that."""
    cdef const uint8_t* at = text.at
    cdef const uint8_t* end = end_of(text)
    cdef const uint8_t* stop
    cdef uint64_t seen = 0  # the kind is known
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
            out.used = put_json_text(out.buffer + out.used, at, stop, &seen) - out.buffer
        else:
            out.used += put_base64(out.buffer + out.used, at, stop - at)
        at = stop
    out.need(1)
    out.buffer[out.used] = c'"'
    out.used += 1
    return 0


cdef bint is_formula(const uint8_t* at, Py_ssize_t size) noexcept nogil:
    """Return whether it begins like a formula, by the contract's FORMULA_STARTS: the last of them have three bytes."""
    if size >= 3 and at[0] == 0xEF and at[1] == 0xBC:
        return at[2] in (0x9D, 0x8B, 0x8D, 0xA0)
    return size > 0 and at[0] in (c"=", c"+", c"-", c"@", c"\t", c"\r", c"\n")


cdef int put_csv(Output out, Bytes text, bint is_safe) except -1 nogil:
    """Write a field in quotes; nothing for null. Non-UTF-8 text, or text with the mark, is Base64 after `base64:`.

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
    """Write text with its quotes doubled."""
    cdef uint8_t* start = out
    while at < stop:
        out[0] = c'"'
        out += at[0] == c'"'
        out[0] = at[0]
        out += 1
        at += 1
    return out - start
