# Prints rows by templates.

@cython.final
cdef class Renderer:
    """Renders batches of one file, and records counts and problems; see the contract."""

    cdef Output out
    cdef list owners  # keep the templates alive
    cdef Template templates[6 + CONTROL_TEMPLATES]  # with this renderer's last second
    cdef int template_count
    cdef Template* batch_templates[3]
    cdef Template* record_templates[3]
    cdef Template* control_templates[CONTROL_TEMPLATES]
    cdef BatchTemplate batch_template  # of records of v2 batches, if these are read
    cdef bint stopped, deep_legacy, deep_v2, has_control, has_decoder, has_control_decoder, has_last_offset
    cdef int gap_rule
    cdef int64_t last_offset
    cdef object decode, decode_control, decoded
    cdef RecordView view, batch_view
    cdef Template* waiting  # line of the batch that is printed with the first record that the filter takes
    cdef Filter filter
    cdef bint has_filter
    cdef int64_t to_skip, limit
    cdef Output scratch
    cdef readonly bint is_full
    cdef public int64_t records
    cdef public list problems, gaps

    def __init__(self, program, Output output, decode=None, decode_control=None, int gap_rule=0, last_offset=None,
                 record_filter=None):
        cdef int i
        self.out = output
        self.owners = []
        for i in range(3):
            self.batch_templates[i] = self._compile(program.batch[i])
            self.record_templates[i] = self._compile(program.record[i])
        if program.record[2] is not None:
            self.batch_template = BatchTemplate()
            self.batch_template.take(self.record_templates[2], compiled(program.record[2]))
        self.has_control = program.control is not None
        for i in range(CONTROL_TEMPLATES if self.has_control else 0):
            self.control_templates[i] = self._compile(program.control[i])
        self.deep_legacy = self.record_templates[0] != NULL or self.record_templates[1] != NULL
        self.deep_v2 = self.record_templates[2] != NULL
        self.has_decoder = decode is not None
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
            self.view.texts[i].size = -1

    @property
    def compared_offset(self):
        """The offset with which the rule for gaps compares the next one."""
        return self.last_offset if self.has_last_offset else None

    cdef Template* _compile(self, template) except? NULL:
        cdef CompiledTemplate owner
        cdef Template* own
        if template is None:
            return NULL
        owner = compiled(template)
        if owner.template.fixed_size > self.out.capacity:
            raise ValueError("a template longer than the output's buffer")
        self.owners.append(owner)
        own = &self.templates[self.template_count]
        own[0] = owner.template
        self.template_count += 1
        return own

    def render(self, const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t first, Py_ssize_t last, int64_t position,
               bodies, Py_ssize_t first_body=-1):
        """Print rows from `first` on, up to `last` or through the first batch with a problem; see the contract."""
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
        """Print one row. Like Kafka, it reads a v2 header although the size is smaller, if `room` bytes exist."""
        cdef RecordView* view = &self.view
        cdef int8_t magic = batch_magic(at)
        if magic < 2 or room < BATCH_HEADER_SIZE:
            return self.one_entry(at, size, valid, position, body)
        fill_batch(at, size, valid, position, view)
        self.put_batch(self.batch_templates[2], self.deep_v2)
        if not self.deep_v2:
            self.records += max(view.slots[COUNT], 0)
            return 0
        if size < BATCH_HEADER_SIZE:
            return self.problem(Problem.BAD_RECORD, 0, 0)
        if view.slots[CODEC] == 0:
            body.at = at + BATCH_HEADER_SIZE
            body.size = size - BATCH_HEADER_SIZE
        if body.size < 0:
            return 0
        return self.batch_records(body)

    cdef int batch_records(self, Bytes body) except -1 nogil:
        cdef RecordView* view = &self.view
        cdef Template* template = self.record_templates[2]
        cdef Walk walk
        if view.slots[COUNT] >= WORTH_FILLING:
            template = self.batch_template.fill(view)
        start_walk(&walk, body, view.slots[COUNT])
        while next_record(&walk, view):
            if self.gap_rule & 1:
                self.note_offset()
            if self.has_filter and not self.takes():
                continue
            self.records += 1
            if view.slots[IS_CONTROL] and self.has_control:
                self.put_control(walk.index - 1)
            else:
                self.put_record(template)
            if self.is_full:
                return 0
        return self.end_of_walk(&walk)

    cdef int end_of_walk(self, Walk* walk) except -1 nogil:
        if walk.problem == NO_PROBLEM:
            return 0
        return self.problem(walk.problem, walk.index, body_position(walk))

    cdef int put_control(self, int64_t index) except -1 nogil:
        cdef RecordView* view = &self.view
        cdef Bytes key = view.texts[KEY], value = view.texts[VALUE]
        cdef int64_t kind
        view.slots[CONTROL_TYPE] = view.slots[CONTROL_VERSION] = view.slots[COORDINATOR_EPOCH] = -1
        if key.size < CONTROL_RECORD_KEY_SIZE or control_key_version(key.at) < 0:
            self.problem(Problem.BAD_CONTROL, index, 0)
            return self.put(self.control_templates[MALFORMED_CONTROL])
        kind = control_key_type(key.at)
        view.slots[CONTROL_VERSION] = control_key_version(key.at)
        view.slots[CONTROL_TYPE] = kind
        if 0 <= kind <= 1:
            if value.size < END_TXN_MARKER_SIZE or marker_version(value.at) < 0:
                view.slots[CONTROL_TYPE] = view.slots[CONTROL_VERSION] = -1
                self.problem(Problem.BAD_CONTROL, index, 0)
                return self.put(self.control_templates[MALFORMED_CONTROL])
            view.slots[COORDINATOR_EPOCH] = marker_coordinator_epoch(value.at)
        elif self.has_control_decoder and 0 <= kind < UNKNOWN_CONTROL:
            with gil:
                self.decoded = self.decode_control(to_object(key), to_object(value))
                if self.decoded is not None:
                    view.texts[DECODED] = from_object(self.decoded)
        self.put(self.control_templates[kind if 0 <= kind < UNKNOWN_CONTROL else UNKNOWN_CONTROL])
        view.texts[DECODED].size = -1
        return 0

    cdef int one_entry(self, const uint8_t* at, int64_t size, bint valid, int64_t position, Bytes body) except -1 nogil:
        cdef RecordView* view = &self.view
        cdef bint readable = fill_entry(at, size, valid, position, view)
        cdef int magic = 1 if view.slots[MAGIC] == 1 else 0
        cdef Walk walk
        if view.slots[CODEC] == 0 or not self.deep_legacy:
            if self.gap_rule == 2 and view.slots[CODEC] == 0:
                self.note_offset()
            elif self.gap_rule == 2:
                self.has_last_offset = True
                self.last_offset = view.slots[OFFSET]
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
        start_in_wrapper(&walk, body, view)
        self.put_batch(self.batch_templates[magic], True)
        return self.wrapper_records(&walk)

    cdef int wrapper_records(self, Walk* walk) except -1 nogil:
        cdef RecordView* view = &self.view
        cdef bint has_wrong = not view.slots[IS_VALID]
        while next_message(walk, view):
            if not (has_wrong or view.slots[RECORD_IS_VALID]):
                has_wrong = True
                self.problem(Problem.BAD_MESSAGE, walk.index - 1, 0)
            if self.gap_rule:
                self.note_offset()
            if self.has_filter and not self.takes():
                continue
            self.records += 1
            self.put_record(self.record_templates[walk.magic])
            if self.is_full:
                return 0
        return self.end_of_walk(walk)

    cdef int note_offset(self) except -1 nogil:
        cdef int64_t offset = self.view.slots[OFFSET]
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
            RecordProblem(self.view.slots[POSITION], ProblemValue(kind), records_read, body_position)
        )
        return 0

    cdef int put_batch(self, Template* template, bint is_deep) except -1 nogil:
        """Print the batch's line; with a filter it waits for the first taken record, if records are read."""
        if not self.has_filter or not is_deep:
            return self.put(template)
        self.waiting = template
        if template != NULL:
            self.batch_view = self.view
        return 0

    cdef bint takes(self) except -1 nogil:
        """Return whether the record is printed; if so, print its batch's line before it."""
        cdef RecordView record
        if self.is_full or not self.filter.takes(&self.view):
            return False
        if self.to_skip > 0:
            self.to_skip -= 1
            return False
        if self.limit >= 0 and self.records + 1 >= self.limit:
            self.is_full = self.stopped = True
        if self.waiting != NULL:
            record = self.view
            self.view = self.batch_view
            self.put(self.waiting)
            self.waiting = NULL
            self.view = record
        return True

    cdef int put_record(self, Template* template) except -1 nogil:
        cdef int i
        if self.has_decoder and template != NULL:
            with gil:
                self.decode_texts()
            self.put(template)
            for i in range(KEY_DECODED, TEXTS):
                self.view.texts[i].size = -1
            return 0
        return self.put(template)

    cdef int decode_texts(self) except -1:
        """Replace key and value by the decoder's texts; `decoded` keeps them alive while they are shown."""
        cdef int i, place
        key, value = to_object(self.view.texts[KEY]), to_object(self.view.texts[VALUE])
        self.decoded = self.decode(key, value, self.view.slots[OFFSET], headers_of(&self.view))
        for i in range(len(self.decoded)):
            place = i if i < 2 else i - 2 + KEY_DECODED
            self.view.texts[place].size = -1
            if self.decoded[i] is not None:
                self.view.texts[place] = from_object(self.decoded[i])
        return 0

    cdef int put(self, Template* template) except -1 nogil:
        return 0 if template == NULL else self.run(template, self.out)

    cdef int run(self, Template* template, Output out) except -1 nogil:
        """Print one line: the template's operations."""
        cdef RecordView* view = &self.view
        cdef Operation* op = template.ops
        cdef uint8_t* at
        cdef int code
        out.need(template.fixed_size)
        at = out.buffer + out.used
        while True:
            at = put_literal(at, template.literals + op.literal, op.literal_size)
            code = op.code
            if code == INTEGER:
                at = put_integer(at, view.slots[op.a])
            elif code == WORD:
                at = put_word(at, template.literals, &template.words[op.b], view.slots[op.a])
            elif code == END_OF_LINE:
                out.used = at - out.buffer
                return 0
            elif code == JSON_TIME:
                at = put_json_time(at, &template.zone, view.slots[op.a])
            elif code in (SKIP_IF_NULL, SKIP_UNLESS_NULL):
                if (view.texts[op.a].size < 0) == (code == SKIP_IF_NULL):
                    op = &template.ops[op.b]
                    continue
            elif code in (SKIP_IF_ZERO, SKIP_UNLESS_ZERO):
                if (view.slots[op.a] == 0) == (code == SKIP_IF_ZERO):
                    op = &template.ops[op.b]
                    continue
            elif code == SKIP_IF_NEGATIVE:
                if view.slots[op.a] < 0:
                    op = &template.ops[op.b]
                    continue
            elif code == TEXT and fits(out, at, view.texts[op.a], template.fixed_size):
                at = put_whole_text(at, view.texts[op.a], template.is_raw)
            elif code == JSON_TEXT:
                out.used = at - out.buffer
                put_json(out, view.texts[op.a])
                out.need(template.fixed_size)
                at = out.buffer + out.used
            elif code == HEADER_KEYS and view.slots[HEADER_COUNT] == 0:
                pass
            elif code == JSON_HEADERS and view.slots[HEADER_COUNT] == 0:
                memcpy(at, b"[]", 2)
                at += 2
            elif code != NOTHING:
                out.used = at - out.buffer
                self.put_content(out, template, op)
                out.need(template.fixed_size)  # a text may have filled what was reserved for the rest of the line
                at = out.buffer + out.used
            op += 1

    cdef inline int put_content(self, Output out, Template* template, Operation* op) except -1 nogil:
        """Print what has no largest size, and what seldom occurs."""
        cdef RecordView* view = &self.view
        if op.code == TEXT:
            put_text(out, view.texts[op.a], template.is_raw)
        elif op.code == HEADER_KEYS:
            self.put_header_keys(out, template.is_raw)
        elif op.code == JSON_VALUE:
            put_json_value(out, view.texts[op.a])
        elif op.code == JSON_HEADERS:
            self.put_json_headers(out)
        elif op.code in (CSV_TEXT, CSV_SAFE_TEXT):
            put_csv(out, view.texts[op.a], op.code == CSV_SAFE_TEXT)
        elif op.code == CSV_HEADERS:
            self.put_csv_headers(out)
        elif op.code == TIME and has_time(&template.zone, view.slots[op.a]):
            out.used = put_time(out.buffer + out.used, &template.zone, view.slots[op.a]) - out.buffer
        return 0

    cdef int put_header_keys(self, Output out, bint is_raw) except -1 nogil:
        cdef Cursor headers = self.view.headers
        cdef int64_t i
        for i in range(self.view.slots[HEADER_COUNT]):
            out.need(1)
            if i:
                out.buffer[out.used] = c","
                out.used += 1
            put_text(out, sized(&headers, varint(&headers)), is_raw)
            sized(&headers, varint(&headers))
        return 0

    cdef int put_json_headers(self, Output out) except -1 nogil:
        cdef Cursor headers = self.view.headers
        cdef int64_t i
        out.need(LONGEST_NUMBER)
        out.buffer[out.used] = c"["
        out.used += 1
        for i in range(self.view.slots[HEADER_COUNT]):
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
        """Print the JSON of the headers as a field, which is always UTF-8."""
        out.need(LONGEST_NUMBER)
        out.buffer[out.used] = c'"'
        out.used += 1
        if self.view.slots[HEADER_COUNT] == 0:
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
