# Templates of lines, checked and compiled to C's memory.

cdef struct Operation:
    # a literal, and the operation after it; for operations that skip others, b is where to continue
    int32_t literal, literal_size, code, a, b


cdef struct WordTable:
    int64_t first
    int32_t count
    int32_t* starts  # count + 1 of them, in the literals


cdef struct Memo:
    # numbers of a line that seldom change, as they were in the preceding line, and their text with preceding literals
    int32_t slots[MEMO_SLOTS]
    int32_t count, size  # of the slots; of the text, -1 before the first
    int64_t values[MEMO_SLOTS]
    uint8_t text[MEMO_SIZE + SHORT]


cdef struct Template:
    Operation* ops  # the last one is an END
    WordTable* words
    Memo* memos  # as they are at first: each renderer has its own
    int32_t memo_count
    const uint8_t* literals
    Py_ssize_t fixed_size  # most bytes of the line without its texts
    bint is_raw  # texts are given unchanged
    Zone zone


SKIPS = (SKIP_IF_NULL, SKIP_IF_ZERO, SKIP_UNLESS_NULL, SKIP_UNLESS_ZERO, SKIP_IF_NEGATIVE)
TEXT_OPS = (TEXT, SKIP_IF_NULL, SKIP_UNLESS_NULL, JSON_TEXT, JSON_VALUE, CSV_TEXT, CSV_SAFE_TEXT)
SLOT_OPS = (INTEGER, WORD, SKIP_IF_ZERO, SKIP_UNLESS_ZERO, SKIP_IF_NEGATIVE, JSON_TIME, TIME)


def join_literals(flat):
    """Return operations (literal, its size, code, a, b) that each begin with their literal; the last is END_OF_LINE.

    And the slots of each memo: neighbours that change as seldom stand between a SAME and a KEEP.
    """
    given = [tuple(flat[i : i + 3]) for i in range(0, len(flat), 3)]
    targets = {i + 1 + b for i, (code, _, b) in enumerate(given) if code in SKIPS}
    operations, places = [], {}
    literal = (0, 0)
    groups = list(neighbours(given, targets))
    starts, ends = ({find(group): k for k, group in enumerate(groups)} for find in (min, max))
    for i, (code, a, b) in enumerate([*given, (END_OF_LINE, 0, 0)]):
        if literal[1] and (code == LITERAL or i in targets):
            operations.append([*literal, NOTHING, 0, 0])
            literal = (0, 0)
        places[i] = len(operations)
        if i in starts:
            same = [0, 0, SAME, starts[i], 0]
            operations.append(same)
        if code == LITERAL:
            literal = (a, b)
            continue
        operations.append([*literal, code, a, i + 1 + b if code in SKIPS else b])
        literal = (0, 0)
        if i in ends:
            operations.append([0, 0, KEEP, ends[i], 0])
            same[4] = len(operations)
    for operation in operations:
        if operation[2] in SKIPS:
            if operation[4] not in places:
                raise IndexError("nothing there to pass over")
            operation[4] = places[operation[4]]
    return operations, [[given[i][1] for i in group if given[i][0] != LITERAL] for group in groups]


def neighbours(given, targets):
    """Return indexes of two or more operations about numbers that change equally seldom, and their literals.

    Nothing leads from elsewhere to one after the first.
    """
    group, kind = [], None
    for i, (code, a, _) in enumerate([*given, (END_OF_LINE, 0, 0)]):
        if code == LITERAL and group and i not in targets:
            continue
        own = None if code not in (INTEGER, WORD) else 1 if a in STEADY else 2 if a in OFTEN_STEADY else None
        if group and (own != kind or i in targets or len(group) == MEMO_SLOTS):
            if len(group) > 1:
                yield list(range(min(group), max(group) + 1))
            group = []
        if own is not None:
            group.append(i)
        kind = own


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
        operations, memos = join_literals(flat)
        self.template.ops = <Operation*>calloc(len(operations), sizeof(Operation))
        self.template.memos = <Memo*>calloc(len(memos) + 1, sizeof(Memo))
        if self.template.ops == NULL or self.template.words == NULL or self.template.memos == NULL:
            raise MemoryError()
        longest_word = self._take_words(words, len(literals))
        self._take_memos(memos)
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
        if code in (*SKIPS, SAME) and not 0 <= b <= count:
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

    def _take_memos(self, memos):
        self.template.memo_count = len(memos)
        for i, slots in enumerate(memos):
            self.template.memos[i].count = len(slots)
            self.template.memos[i].size = -1
            for k, slot in enumerate(slots):
                self.template.memos[i].slots[k] = slot

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
        free(self.template.memos)
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


cdef inline bint holds(Memo* memo, int64_t* slots) noexcept nogil:
    """Return whether its numbers are the line's."""
    cdef int64_t different = memo.size >> 31
    cdef int32_t i
    for i in range(memo.count):
        different |= memo.values[i] ^ slots[memo.slots[i]]
    return different == 0


cdef inline uint8_t* put_memo(uint8_t* out, Memo* memo) noexcept nogil:
    # unsafe: SHORT bytes exist after the text, and in the output
    cdef int32_t done = 0
    while done < memo.size:
        memcpy(out + done, memo.text + done, SHORT)
        done += SHORT
    return out + memo.size


cdef inline void keep(Memo* memo, int64_t* slots, const uint8_t* text, Py_ssize_t size) noexcept nogil:
    """Keep the line's numbers and their text, if it isn't unusually long."""
    cdef int32_t i
    memo.size = -1
    if size > MEMO_SIZE:
        return
    for i in range(memo.count):
        memo.values[i] = slots[memo.slots[i]]
    memcpy(memo.text, text, size)
    memo.size = <int32_t>size
