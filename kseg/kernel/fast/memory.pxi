# Memory that grows, and is kept for the next owner.

# Bodies come and go with every piece of work. The allocator would give their memory back to the system each time, and the
# system would clear it again: that costs more than a quick codec. Both arrays change under the GIL only.
cdef enum:
    MOST_SPARES = 4
    LARGEST_SPARE = 1 << 22
    COPIED_BODY = 1 << 16

cdef uint8_t* spare_memory[MOST_SPARES]
cdef Py_ssize_t spare_capacity[MOST_SPARES]
cdef int spare_count = 0


@cython.final
cdef class Growing:
    """Memory that grows, and that Arrow and numpy can read."""

    cdef uint8_t* memory
    cdef Py_ssize_t used, capacity
    cdef bint is_kept  # the memory, for the next of its kind

    def __dealloc__(self):
        global spare_count
        if self.is_kept and self.memory != NULL and spare_count < MOST_SPARES and self.capacity <= LARGEST_SPARE:
            spare_memory[spare_count], spare_capacity[spare_count] = self.memory, self.capacity
            spare_count += 1
        else:
            free(self.memory)

    cdef void keep(self) noexcept:
        """Take the memory of a freed object, and leave its own to a later one."""
        global spare_count
        self.is_kept = True
        if self.memory == NULL and spare_count:
            spare_count -= 1
            self.memory, self.capacity = spare_memory[spare_count], spare_capacity[spare_count]

    cdef uint8_t* add(self, Py_ssize_t size) except NULL nogil:
        """Make room for `size` more bytes."""
        cdef uint8_t* larger
        cdef Py_ssize_t capacity
        if size > self.capacity - self.used or self.memory == NULL:
            capacity = max(2 * self.capacity, self.used + size, 256)
            larger = <uint8_t*>realloc(self.memory, capacity)
            if larger == NULL:
                with gil:
                    raise MemoryError()
            self.memory, self.capacity = larger, capacity
        self.used += size
        return self.memory + self.used - size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.memory, self.used, 1, flags)
