# Rows of sums or values, each found by its first value.

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void* at) noexcept nogil


# The memory of a large table is kept for the next partition's: the system would clear it again, page by page. It changes
# under the GIL only.
cdef int64_t* spare_rows = NULL
cdef uint64_t* spare_places = NULL
cdef Py_ssize_t spare_row_room = 0, spare_place_room = 0


@cython.final
cdef class SumTable:
    """Rows of integers in the order of arrival, each found by its first; free places are probed in order.

    A place has a row's number + 1 and, above it, bits of the hash: they spare the look at most rows that are others.
    Where rows lie is salted: whoever makes up keys doesn't know which of them would be probed for long.
    """

    cdef int64_t* rows
    cdef uint64_t* places  # 0: free; `place_count` is a power of two
    cdef Py_ssize_t width, count, capacity, place_count
    cdef Py_ssize_t row_room, place_room  # allocated integers
    cdef uint64_t salt

    def __cinit__(self, Py_ssize_t width):
        self.width = width
        self.salt = int.from_bytes(urandom(8), "little")

    def __dealloc__(self):
        global spare_rows, spare_places, spare_row_room, spare_place_room
        if spare_rows == NULL and self.count >= WORTH_KEEPING:
            spare_rows, spare_row_room = self.rows, self.row_room
            spare_places, spare_place_room = self.places, self.place_room
            return
        free(self.rows)
        free(self.places)

    cdef int take_spare(self) except -1 with gil:
        """Take over the memory of a freed table."""
        global spare_rows, spare_places, spare_row_room, spare_place_room
        if spare_rows == NULL:
            return 0
        free(self.places)
        if self.count:
            memcpy(spare_rows, self.rows, self.count * self.width * sizeof(int64_t))
        free(self.rows)
        self.rows, self.row_room = spare_rows, spare_row_room
        self.places, self.place_room = spare_places, spare_place_room
        spare_rows = NULL
        return 0

    cdef int64_t* find(self, int64_t first) noexcept nogil:
        """Return NULL for a missing row."""
        cdef uint64_t hashed = mix(<uint64_t>first ^ self.salt)
        cdef uint64_t place = hashed, found
        cdef int64_t* row
        if self.place_count == 0:
            return NULL
        while True:
            place &= self.place_count - 1
            found = self.places[place]
            if found == 0:
                return NULL
            if (found ^ hashed) >> 32 == 0:
                row = self.rows + ((found & 0xFFFFFFFFU) - 1) * self.width
                if row[0] == first:
                    return row
            place += 1

    cdef void expect(self, int64_t first) noexcept nogil:
        """Prefetch memory that `find` will read soon: many such reads at once take little longer than one."""
        if self.place_count:
            prefetch(&self.places[mix(<uint64_t>first ^ self.salt) & (self.place_count - 1)])

    cdef int64_t* add(self, int64_t first) except NULL nogil:
        """Add a row of zeros after its first value, which must be new."""
        cdef int64_t* row
        if self.count == self.capacity:
            self.grow(max(4 * self.capacity, 16) if self.capacity < MANY_ROWS else 2 * self.capacity)
        row = self.rows + self.count * self.width
        memset(row, 0, self.width * sizeof(int64_t))
        row[0] = first
        self.take_place(self.count)
        self.count += 1
        return row

    cdef int grow(self, Py_ssize_t capacity) except -1 nogil:
        """Make room; at most half of the places are ever taken."""
        cdef int64_t* rows
        cdef uint64_t* places
        if capacity >= WORTH_KEEPING and spare_rows != NULL and spare_row_room > self.count * self.width:
            self.take_spare()
        if capacity * self.width > self.row_room:
            rows = <int64_t*>realloc(self.rows, capacity * self.width * sizeof(int64_t))
            if rows == NULL:
                return self.fail()
            self.rows, self.row_room = rows, capacity * self.width
        if 2 * capacity > self.place_room:
            places = <uint64_t*>realloc(self.places, 2 * capacity * sizeof(uint64_t))
            if places == NULL:
                return self.fail()
            self.places, self.place_room = places, 2 * capacity
        self.place_count, self.capacity = 2 * capacity, capacity
        self.place_all()
        return 0

    cdef int fail(self) except -1 with gil:
        raise MemoryError()

    cdef void expect_row(self, int64_t first) noexcept nogil:
        """Do the same for the most likely row."""
        cdef uint64_t found
        if self.place_count:
            found = self.places[mix(<uint64_t>first ^ self.salt) & (self.place_count - 1)]
            if found:
                prefetch(self.rows + ((found & 0xFFFFFFFFU) - 1) * self.width)

    cdef void place_all(self) noexcept nogil:
        cdef Py_ssize_t i
        memset(self.places, 0, self.place_count * sizeof(uint64_t))
        for i in range(self.count):
            self.take_place(i)

    cdef void take_place(self, Py_ssize_t number) noexcept nogil:
        cdef uint64_t hashed = mix(<uint64_t>self.rows[number * self.width] ^ self.salt)
        cdef uint64_t place = hashed & (self.place_count - 1)
        while self.places[place] != 0:
            place = (place + 1) & (self.place_count - 1)
        self.places[place] = (hashed >> 32 << 32) | <uint64_t>(number + 1)

    cdef bytes content(self):
        return b"" if self.count == 0 else (<const char*>self.rows)[:self.count * self.width * sizeof(int64_t)]
