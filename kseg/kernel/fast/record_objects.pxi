# Records as objects, which look like kernel.record.Record.

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass
    object PyBytes_FromStringAndSize(const char* at, Py_ssize_t size)
    object PyUnicode_DecodeUTF8(const char* at, Py_ssize_t size, const char* errors)
    object PyDescr_NewMember(PyTypeObject* owner, PyMemberDef* member)

cdef extern from *:
    """
    /* Where Cython's structure of a Record has its objects. */
    #define RECORD_PLACE(member) offsetof(struct __pyx_obj_4kseg_6kernel_4fast_Record, member)
    #define OFFSET_PLACE RECORD_PLACE(offset)
    #define TIMESTAMP_PLACE RECORD_PLACE(timestamp)
    #define KEY_PLACE RECORD_PLACE(key)
    #define VALUE_PLACE RECORD_PLACE(value)
    """
    Py_ssize_t OFFSET_PLACE, TIMESTAMP_PLACE, KEY_PLACE, VALUE_PLACE

cdef extern from "structmember.h":
    ctypedef struct PyMemberDef:
        const char* name
        int type
        Py_ssize_t offset
        int flags
    int T_OBJECT_EX, READONLY

cdef enum:
    RECORDS_AT_ONCE = 256  # as many as the free list of Record keeps
    BYTES_AT_ONCE = 1 << 18

cdef object record_class = None  # kernel.record.Record, imported with the first record
cdef object header_class
cdef dict timestamp_types
cdef PyMemberDef members[4]


@cython.final
@cython.no_gc
@cython.freelist(256)
cdef class Record:
    """One record: frequent values as objects, others as numbers, which become objects on access.

    Its objects hold no others, and so can't be part of a cycle: the garbage collector needs not know of it.
    """

    cdef object offset, timestamp, key, value
    cdef object known_headers  # a tuple; before the first access their bytes; None without headers
    cdef int64_t header_count, batch_position, stored_crc
    cdef int32_t own_sequence
    cdef int8_t time_type, validity

    @property
    def timestamp_type(self):
        return timestamp_types[self.time_type]

    @property
    def headers(self):
        known = self.known_headers
        if isinstance(known, bytes):
            known = self.known_headers = headers_in(known, self.header_count)
        return () if known is None else known

    @property
    def sequence(self):
        return self.own_sequence

    @property
    def position(self):
        return self.batch_position

    @property
    def crc(self):
        return self.stored_crc

    @property
    def is_valid(self):
        return self.validity != 0

    @property
    def __class__(self):
        return record_class

    def __eq__(self, other):
        return record_class.__eq__(self, other)

    def __hash__(self):
        return record_class.__hash__(self)

    def __repr__(self):
        return record_class.__repr__(self)

    def __reduce__(self):
        return record_class, tuple([getattr(self, name) for name in record_class.__dataclass_fields__])


cdef Record new_record(RecordView* view):
    cdef Record record = Record.__new__(Record)
    record.offset = view.slots[OFFSET]
    record.timestamp = view.slots[TIMESTAMP]
    record.key = bytes_object(view.texts[KEY])
    record.value = bytes_object(view.texts[VALUE])
    record.header_count = view.slots[HEADER_COUNT]
    if record.header_count:
        record.known_headers = PyBytes_FromStringAndSize(<const char*>view.headers.at, view.headers.end - view.headers.at)
    record.batch_position = view.slots[POSITION]
    record.stored_crc = view.slots[RECORD_CRC]
    record.own_sequence = <int32_t>view.slots[SEQUENCE]
    record.time_type = view.slots[TIMESTAMP_TYPE]
    record.validity = view.slots[RECORD_IS_VALID]
    return record


cdef inline object bytes_object(Bytes text):
    return None if text.size < 0 else PyBytes_FromStringAndSize(<const char*>text.at, text.size)


cdef tuple headers_in(bytes content, int64_t count):
    """Return headers from their bytes, which were read before."""
    cdef Cursor headers
    cdef Bytes name
    cdef int64_t i
    cdef list found = []
    name = from_object(content)
    headers.at, headers.end, headers.failed = name.at, end_of(name), False
    for i in range(count):
        name = sized(&headers, varint(&headers))
        text = PyUnicode_DecodeUTF8(<const char*>name.at, name.size, "replace")
        found.append(header_class(text, to_object(sized(&headers, varint(&headers)))))
    return tuple(found)


cdef int prepare_records() except -1:
    """Give the objects the attributes of kernel.record.Record; a class of the limited API allows setting them."""
    global record_class, header_class, timestamp_types
    from kseg.formats.codes import TimestampType
    from kseg.kernel import record as home

    header_class = home.Header
    timestamp_types = {kind.value: kind for kind in TimestampType}
    face = vars(home.Record)
    show_members()
    for name, part in face.items():
        if isinstance(part, property):
            setattr(Record, name, part)
    Record.__dataclass_fields__ = face["__dataclass_fields__"]  # of dataclasses.replace, asdict, fields
    record_class = home.Record
    return 0


cdef int show_members() except -1:
    """Shows the objects of a record like __slots__.

    The interpreter reads these without a call: with properties a loop over all records takes a fifth longer.
    """
    cdef int i
    members[0].name, members[0].offset = "offset", OFFSET_PLACE
    members[1].name, members[1].offset = "timestamp", TIMESTAMP_PLACE
    members[2].name, members[2].offset = "key", KEY_PLACE
    members[3].name, members[3].offset = "value", VALUE_PLACE
    for i in range(4):
        members[i].type, members[i].flags = T_OBJECT_EX, READONLY
        setattr(Record, members[i].name.decode(), PyDescr_NewMember(<PyTypeObject*>Record, &members[i]))
    return 0


@cython.final
cdef class RecordReader:
    """Records of rows in lists, and a batch's problem after its records; see the contract."""

    cdef const uint8_t[::1] buffer
    cdef int64_t[::1] rows
    cdef object bodies  # keeps the targets of `given` alive
    cdef Bytes* given
    cdef Py_ssize_t row, first, last
    cdef int64_t position
    cdef bint is_in_row
    cdef RowWalk walk
    cdef RecordView view
    cdef object problem  # follows the list in progress

    def __dealloc__(self):
        free(self.given)

    def __iter__(self):
        return self

    def __next__(self):
        cdef list records = []
        cdef int64_t size = 0
        while self.problem is None and len(records) < RECORDS_AT_ONCE and size < BYTES_AT_ONCE:
            if not self.is_in_row:
                if self.row == self.last:
                    break
                self.begin(self.row)
                self.row += 1
            elif next_of_row(&self.walk, &self.view):
                records.append(new_record(&self.view))
                size += max(self.view.texts[KEY].size, 0) + max(self.view.texts[VALUE].size, 0)
            else:
                self.is_in_row = False
                if self.walk.records.problem != NO_PROBLEM:
                    self.problem = problem_of(&self.walk, &self.view)
        if records:
            return records
        problem, self.problem = self.problem, None
        if problem is None:
            raise StopIteration
        return problem

    cdef int begin(self, Py_ssize_t row) except -1:
        check_rows(self.buffer.shape[0], self.rows, row, row + 1)
        cdef int64_t start = self.rows[row * ROW]
        start_row(&self.walk, &self.view, &self.buffer[start], self.rows[row * ROW + 1], self.buffer.shape[0] - start,
                  self.rows[row * ROW + 2], self.position + start, self.given[row - self.first])
        self.is_in_row = True
        return 0


def records(const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t first, Py_ssize_t last, int64_t position, bodies,
            Py_ssize_t first_body=-1):
    """Return the records of rows first … last - 1 as values; see the contract."""
    cdef RecordReader reader = RecordReader.__new__(RecordReader)
    if record_class is None:
        prepare_records()
    check_rows(buffer.shape[0], rows, first, last)
    reader.given = take_bodies(bodies, first - first_body if first_body >= 0 else 0, last - first)
    reader.buffer, reader.rows, reader.bodies = buffer, rows, bodies
    reader.row = reader.first = first
    reader.last = last
    reader.position = position
    return reader
