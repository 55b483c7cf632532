# Replaces the values of headers where they stand.

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
