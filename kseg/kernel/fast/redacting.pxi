# Replaces contents of records where they stand.

cdef int put_over(Bytes* old, new) except -1:
    """Writes a content over another one; null and empty ones have no bytes."""
    if old.size <= 0:
        return 0
    if PyBytes_Size(new) != old.size:
        raise ValueError("what replaces a content must have its size")
    memcpy(<uint8_t*>old.at, PyBytes_AsString(new), old.size)
    return 0


def replace_contents(
    uint8_t[::1] records, Py_ssize_t start, Py_ssize_t end, int64_t count, replace_record, replace_header
):
    """Replaces keys, values and headers of records where they stand; see the contract."""
    cdef RecordView view
    cdef Walk walk
    cdef Cursor headers
    cdef Bytes key, value
    cdef int64_t i
    if not 0 <= start <= end <= records.shape[0]:
        raise IndexError("records outside the buffer")
    if start == end:
        return
    memset(&view, 0, sizeof(RecordView))
    value.at, value.size = &records[0] + start, end - start
    start_walk(&walk, value, count)
    while next_record(&walk, &view):
        if replace_record is not None:
            key, value = view.texts[KEY], view.texts[VALUE]
            new_key, new_value = replace_record(to_object(key), to_object(value))
            put_over(&key, new_key)
            put_over(&value, new_value)
        if replace_header is None:
            continue
        headers = view.headers
        for i in range(view.slots[HEADER_COUNT]):
            key = sized(&headers, varint(&headers))
            value = sized(&headers, varint(&headers))
            new_key, new_value = replace_header(to_object(key), to_object(value))
            put_over(&key, new_key)
            put_over(&value, new_value)
