# Replaces contents of records where they stand.

@cython.final
cdef class Replacer:
    """Replaces keys and values by what stands for them; see the contract."""

    cdef keyed_secret secret
    cdef object redactor, tables, printable
    cdef bint keeps_keys, is_here

    def __cinit__(self, *_, **__):
        self.secret.known = <keyed_pair*>calloc(KEYED_SLOTS, sizeof(keyed_pair))
        if self.secret.known == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.secret.known)

    def __init__(self, redactor, *, bint keeps_keys=False):
        self.redactor, self.keeps_keys = redactor, keeps_keys
        self.tables = redactor.secret_tables()
        key = self.tables.key
        self.is_here = KEYED_IS_HERE and 0 < len(key) <= KEYED_LONGEST_KEY
        if not self.is_here:
            return
        self.secret.key_size = len(key)
        memcpy(self.secret.key, PyBytes_AsString(key), self.secret.key_size)
        for i, table in enumerate(self.tables[1:]):
            self.secret.singles[i] = <const uint8_t*>PyBytes_AsString(table)
        self.secret.printable = NULL
        keyed_begin(&self.secret)

    def __call__(self, key, value):
        return (key if self.keeps_keys else self.replaced(key)), self.replaced(value)

    cdef replaced(self, content):
        cdef Bytes copy
        cdef uint8_t[::1] made
        if not content:
            return content
        changed = bytearray(content)
        made = changed
        copy.at, copy.size = &made[0], len(changed)
        self.put_over(&copy)
        return bytes(changed)

    cdef int put_over(self, Bytes* content) except -1:
        """Replaces a content where it stands."""
        if content.size <= 0:
            return 0
        if not self.is_here:
            return put_over(content, self.redactor.replace_bytes(to_object(content[0])))
        if not keyed_replace(&self.secret, <uint8_t*>content.at, <size_t>content.size):
            from kseg.redaction import printable_characters

            self.printable = printable_characters()
            self.secret.printable = <const uint8_t*>PyBytes_AsString(self.printable)
            keyed_replace(&self.secret, <uint8_t*>content.at, <size_t>content.size)
        return 0


cdef int put_over(Bytes* old, new) except -1:
    """Writes a content over another one; null and empty ones have no bytes."""
    if old.size <= 0:
        return 0
    if PyBytes_Size(new) != old.size:
        raise ValueError("what replaces a content must have its size")
    memcpy(<uint8_t*>old.at, PyBytes_AsString(new), old.size)
    return 0


cdef int replace_pair(replace, Bytes* key, Bytes* value) except -1:
    """Replaces a key and its value; what is no Replacer is asked for other ones."""
    cdef Replacer replacer
    if isinstance(replace, Replacer):
        replacer = <Replacer>replace
        if not replacer.keeps_keys:
            replacer.put_over(key)
        return replacer.put_over(value)
    new_key, new_value = replace(to_object(key[0]), to_object(value[0]))
    put_over(key, new_key)
    return put_over(value, new_value)


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
            replace_pair(replace_record, &key, &value)
        if replace_header is None:
            continue
        headers = view.headers
        for i in range(view.slots[HEADER_COUNT]):
            key = sized(&headers, varint(&headers))
            value = sized(&headers, varint(&headers))
            replace_pair(replace_header, &key, &value)
