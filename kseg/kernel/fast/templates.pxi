# Templates of lines, checked and compiled to C's memory.

cdef struct Operation:
    # a literal, and the operation after it; for operations that skip others, b is where to continue
    int32_t literal, literal_size, code, a, b


cdef struct WordTable:
    int64_t first
    int32_t count
    int32_t* starts  # count + 1 of them, in the literals


cdef struct Template:
    Operation* ops  # the last one is an END
    WordTable* words
    const uint8_t* literals
    Py_ssize_t fixed_size  # most bytes of the line without its texts
    bint is_raw  # texts are given unchanged
    Zone zone


cdef inline bint is_skip(int code) noexcept nogil:
    """Return whether an operation may skip others."""
    return code in (SKIP_IF_NULL, SKIP_IF_ZERO, SKIP_UNLESS_NULL, SKIP_UNLESS_ZERO, SKIP_IF_NEGATIVE)


TEXT_OPS = (TEXT, SKIP_IF_NULL, SKIP_UNLESS_NULL, JSON_TEXT, JSON_VALUE, CSV_TEXT, CSV_SAFE_TEXT)
SLOT_OPS = (INTEGER, WORD, SKIP_IF_ZERO, SKIP_UNLESS_ZERO, SKIP_IF_NEGATIVE, JSON_TIME, TIME)


def join_literals(flat):
    """Return operations [literal, its size, code, a, b] that each begin with their literal; the last is END_OF_LINE."""
    given = [tuple(flat[i : i + 3]) for i in range(0, len(flat), 3)]
    targets = {i + 1 + b for i, (code, _, b) in enumerate(given) if is_skip(code)}
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
        operations.append([*literal, code, a, i + 1 + b if is_skip(code) else b])
        literal = (0, 0)
    for operation in operations:
        if is_skip(operation[2]):
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
        self.template.literals = <const uint8_t*>PyBytes_AsString(self.literals)
        self.template.words = <WordTable*>calloc(self.word_tables + 1, sizeof(WordTable))
        operations = join_literals(flat)
        self.template.ops = <Operation*>calloc(len(operations), sizeof(Operation))
        if self.template.ops == NULL or self.template.words == NULL:
            raise MemoryError()
        longest_word = self._take_words(words, len(literals))
        for i, operation in enumerate(operations):
            self._check(operation, len(literals), len(operations) - 1)
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
        if is_skip(code) and not 0 <= b <= count:
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
        self.template.zone.second = -1

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
    """Return the template in C's memory; the same for all files."""
    return CompiledTemplate(template)


cdef inline uint8_t* put_word(uint8_t* out, const uint8_t* literals, WordTable* table, int64_t number) noexcept nogil:
    cdef int64_t index = number - table.first
    if index < 0 or index >= table.count:
        index = table.count - 1
    return put_literal(out, literals + table.starts[index], table.starts[index + 1] - table.starts[index])


cdef inline bint is_shared(int64_t slot, RecordView* view) noexcept nogil:
    """Return whether all records of the v2 batch in the view have its value of a slot."""
    if slot == SEQUENCE:
        return view.slots[BASE_SEQUENCE] == -1
    if slot == TIMESTAMP:
        return view.slots[TIMESTAMP_TYPE] == 1
    return slot < OFFSET or RECORD_CRC <= slot <= RECORD_MAGIC


@cython.final
cdef class BatchTemplate:
    """A record's template in which the numbers and words that a batch's records share are literals."""

    cdef Template template
    cdef Template* source
    cdef Py_ssize_t count
    cdef uint8_t* literals  # the template's own, for its other words, and after them the batch's
    cdef uint8_t* start
    cdef int32_t* places  # of the source's operations
    cdef uint8_t* is_target  # operations with which another one continues

    cdef int take(self, Template* source, CompiledTemplate owner) except -1:
        """Allocate what `fill` needs. unsafe: the source outlives this object, which takes one source only."""
        cdef Py_ssize_t i, literals_size = len(owner.literals)
        self.source, self.template = source, source[0]
        while source.ops[self.count].code != END_OF_LINE:
            self.count += 1
        self.count += 1
        self.template.ops = <Operation*>calloc(self.count, sizeof(Operation))
        self.literals = <uint8_t*>malloc(literals_size + source.fixed_size + SHORT)
        self.places = <int32_t*>calloc(self.count, sizeof(int32_t))
        self.is_target = <uint8_t*>calloc(self.count, 1)
        if self.template.ops == NULL or self.literals == NULL or self.places == NULL or self.is_target == NULL:
            raise MemoryError()
        memcpy(self.literals, source.literals, literals_size)
        self.start = self.literals + literals_size
        self.template.literals = self.literals
        for i in range(self.count):
            if is_skip(source.ops[i].code):
                self.is_target[source.ops[i].b] = True
        return 0

    cdef Template* fill(self, RecordView* view) noexcept nogil:
        """Return the template for the v2 batch in the view."""
        cdef uint8_t* at = self.start
        cdef uint8_t* literal = at
        cdef Operation* op
        cdef Py_ssize_t i, used = 0
        for i in range(self.count):
            op = &self.source.ops[i]
            if self.is_target[i] and at != literal:
                self.template.ops[used] = Operation(literal - self.literals, at - literal, NOTHING, 0, 0)
                used += 1
                literal = at
            self.places[i] = used
            at = put_literal(at, self.source.literals + op.literal, op.literal_size)
            if op.code == INTEGER and is_shared(op.a, view):
                at = put_integer(at, view.slots[op.a])
            elif op.code == WORD and is_shared(op.a, view):
                at = put_word(at, self.source.literals, &self.source.words[op.b], view.slots[op.a])
            else:
                self.template.ops[used] = Operation(literal - self.literals, at - literal, op.code, op.a, op.b)
                used += 1
                literal = at
        for i in range(used):
            if is_skip(self.template.ops[i].code):
                self.template.ops[i].b = self.places[self.template.ops[i].b]
        return &self.template

    def __dealloc__(self):
        free(self.template.ops)
        free(self.literals)
        free(self.places)
        free(self.is_target)
