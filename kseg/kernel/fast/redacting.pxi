# Replaces the values of headers where they stand.

def replace_header_values(uint8_t[::1] records, Py_ssize_t start, Py_ssize_t end, int64_t count, replace):
    """Replaces the values of the records' headers where they stand; see the contract."""
    cdef RecordView view
    cdef Walk walk
    cdef Cursor headers
    cdef Bytes value
    cdef int64_t i
    cdef bytes replaced
    if not 0 <= start <= end <= records.shape[0]:
        raise IndexError("records outside the buffer")
    if start == end:
        return
    memset(&view, 0, sizeof(RecordView))
    value.at, value.size = &records[0] + start, end - start
    start_walk(&walk, value, count)
    while next_record(&walk, &view):
        headers = view.headers
        for i in range(view.slots[HEADER_COUNT]):
            sized(&headers, varint(&headers))
            value = sized(&headers, varint(&headers))
            if value.size > 0:
                replaced = replace(to_object(value))
                if PyBytes_Size(replaced) != value.size:
                    raise ValueError("what replaces a value must have its size")
                memcpy(<uint8_t*>value.at, PyBytes_AsString(replaced), value.size)
