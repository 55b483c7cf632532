# Memory that grows, and is kept for the next owner.

# Bodies and columns come and go with every piece of work. The allocator would give their memory back to the system each
# time, and the system would clear it again: that costs more than a quick codec. The arrays change under the GIL only.
cdef enum:
    MOST_SPARES = 20
    LARGEST_SPARE = 1 << 22
    LARGEST_SPARES = 1 << 24  # together
    COPIED_BODY = 1 << 16

cdef uint8_t* spare_memory[MOST_SPARES]
cdef Py_ssize_t spare_capacity[MOST_SPARES]
cdef int spare_count = 0
cdef Py_ssize_t spare_size = 0


@cython.final
cdef class Growing:
    """Memory that grows, and that Arrow and numpy can read."""

    cdef uint8_t* memory
    cdef Py_ssize_t used, capacity
    cdef bint is_kept  # the memory, for the next of its kind

    def __dealloc__(self):
        global spare_count, spare_size
        if (self.is_kept and self.memory != NULL and spare_count < MOST_SPARES and self.capacity <= LARGEST_SPARE
                and spare_size + self.capacity <= LARGEST_SPARES):
            spare_memory[spare_count], spare_capacity[spare_count] = self.memory, self.capacity
            spare_count += 1
            spare_size += self.capacity
        else:
            free(self.memory)

    cdef void keep(self, Py_ssize_t size) noexcept:
        """Take the memory of a freed object, the smallest with this size or else the largest; leave its own to a later one."""
        global spare_count, spare_size
        cdef int i, best = 0
        self.is_kept = True
        if self.memory != NULL or spare_count == 0:
            return
        for i in range(1, spare_count):
            if spare_capacity[i] > spare_capacity[best] if spare_capacity[best] < size else (
                    size <= spare_capacity[i] < spare_capacity[best]):
                best = i
        self.memory, self.capacity = spare_memory[best], spare_capacity[best]
        spare_count -= 1
        spare_size -= self.capacity
        spare_memory[best], spare_capacity[best] = spare_memory[spare_count], spare_capacity[spare_count]

    cdef int reserve(self, Py_ssize_t size) except -1 nogil:
        """Make room for `size` bytes altogether."""
        cdef uint8_t* larger
        if size > self.capacity or self.memory == NULL:
            larger = <uint8_t*>realloc(self.memory, max(size, 256))
            if larger == NULL:
                with gil:
                    raise MemoryError()
            self.memory, self.capacity = larger, max(size, 256)
        return 0

    cdef uint8_t* add(self, Py_ssize_t size) except NULL nogil:
        """Make room for `size` more bytes."""
        if size > self.capacity - self.used or self.memory == NULL:
            self.reserve(max(2 * self.capacity, self.used + size))
        self.used += size
        return self.memory + self.used - size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.memory, self.used, 1, flags)
