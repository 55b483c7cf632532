# The bodies of rows: decompressed, kept, looked up; and checks of the rows.

# Functions of the codecs' libraries, by their own names; each writes at most the capacity that it is given.
ctypedef int (*lz4_decompress_safe)(const char* source, char* target, int size, int capacity) noexcept nogil
ctypedef void* (*zstd_create_context)() noexcept nogil
ctypedef size_t (*zstd_free_context)(void* context) noexcept nogil
ctypedef size_t (*zstd_decompress)(void* context, void* target, size_t capacity, const void* source, size_t size) noexcept nogil
ctypedef unsigned long long (*zstd_decompress_bound)(const void* source, size_t size) noexcept nogil

cdef enum:
    LZ4 = 3
    ZSTD = 4
    LZ4_FRAME_HEADER = 7
    LZ4_BLOCK = 65536


cdef struct Body:
    int codec, magic  # codec 0: uncompressed
    Cursor frame  # at is NULL for a wrapper without a value


cdef Body compressed_body(const uint8_t* at, int64_t size) noexcept nogil:
    """Return the compressed bytes of the row that begins there; see formats.body."""
    cdef Body body
    cdef Cursor entry
    cdef Bytes value
    body.magic = at[MAGIC_AT]
    body.frame.at, body.frame.end, body.frame.failed = NULL, NULL, False
    if 2 <= body.magic <= 127 and size >= BATCH_HEADER_SIZE:
        body.codec = batch_attributes(at) & CODEC_MASK
        body.frame.at, body.frame.end = at + BATCH_HEADER_SIZE, at + size
        return body
    body.codec = entry_v0_attributes(at) & CODEC_MASK
    entry.at, entry.end, entry.failed = at, at + size, False
    take(&entry, ENTRY_V1_KEY_LENGTH_AT if body.magic == 1 else ENTRY_V0_KEY_LENGTH_AT)
    sized_by_int32(&entry)
    value = sized_by_int32(&entry)
    if value.size >= 0 and not entry.failed:
        body.frame.at, body.frame.end = value.at, end_of(value)
    return body


cdef tuple left_row(Py_ssize_t row, Body body, const uint8_t* base):
    """Return the facts with which the libraries' Python interfaces decompress a row."""
    if body.frame.at == NULL:
        return row, body.codec, body.magic, -1, -1
    return row, body.codec, body.magic, body.frame.at - base, body.frame.end - base


@cython.final
cdef class Zstd:
    """Access to libzstd for one call, which no thread shares; its context is NULL without the functions."""

    cdef void* context
    cdef zstd_free_context free
    cdef zstd_decompress decompress
    cdef zstd_decompress_bound bound

    def __cinit__(self, functions):
        cdef zstd_create_context create = <zstd_create_context><size_t>functions.zstd_create_context
        self.free = <zstd_free_context><size_t>functions.zstd_free_context
        self.decompress = <zstd_decompress><size_t>functions.zstd_decompress
        self.bound = <zstd_decompress_bound><size_t>functions.zstd_decompress_bound
        self.context = create() if create != NULL else NULL

    def __dealloc__(self):
        if self.context != NULL:
            self.free(self.context)


@cython.final
cdef class Bodies:
    """Bodies of the rows of a slice: bytes objects, or stretches of one piece of memory."""

    cdef list objects
    cdef Growing arena
    cdef Py_ssize_t count
    cdef int64_t* starts  # in the arena, -1: none
    cdef int64_t* sizes

    def __cinit__(self, Py_ssize_t count):
        cdef Py_ssize_t i
        self.objects = [None] * count
        self.arena = Growing()
        self.arena.keep(LARGEST_SPARE)
        self.count = count
        self.starts = <int64_t*>malloc((count + 1) * sizeof(int64_t))
        self.sizes = <int64_t*>malloc((count + 1) * sizeof(int64_t))
        if self.starts == NULL or self.sizes == NULL:
            raise MemoryError()
        for i in range(count):
            self.starts[i] = -1

    def __dealloc__(self):
        free(self.starts)
        free(self.sizes)

    def __len__(self):
        return self.count

    def __setitem__(self, Py_ssize_t index, bytes body):
        if not 0 <= index < self.count:
            raise IndexError("no such body")
        if len(body) > COPIED_BODY:
            self.objects[index] = body
        else:  # its own memory is free at once for the next body, while it is still in the processor's cache
            memcpy(self.arena.add(len(body)), PyBytes_AsString(body), len(body))
            self.starts[index], self.sizes[index] = self.arena.used - len(body), len(body)

    cdef int look_up(self, Bytes* result, Py_ssize_t first, Py_ssize_t count) except -1 nogil:
        cdef Py_ssize_t i
        for i in range(count):
            if self.starts[first + i] >= 0:
                result[i].at = self.arena.memory + self.starts[first + i]
                result[i].size = self.sizes[first + i]
            else:
                with gil:
                    if self.objects[first + i] is not None:
                        result[i] = from_object(self.objects[first + i])
        return 0

    def __getitem__(self, Py_ssize_t index):
        if not 0 <= index < self.count:
            raise IndexError("no such body")
        if self.starts[index] < 0:
            return self.objects[index]
        return (<const char*>self.arena.memory)[self.starts[index]:self.starts[index] + self.sizes[index]]

    def decompress(self, const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t first, functions, int64_t limit,
                   int64_t enough):
        """Decompress the usual lz4 and zstd bodies of rows from `first` on; see the contract.

        Usual is what Kafka writes: of lz4 frames of independent blocks of up to 64 KiB with no checksums but the
        header's; of zstd, in v2 batches, frames that tell how large they may become. Everything else, damage too, is
        left to the libraries' Python interfaces.
        """
        cdef Py_ssize_t i, end = 0
        cdef const uint8_t* base = &buffer[0]
        cdef int64_t start
        cdef int is_done
        cdef Body body
        cdef lz4_decompress_safe unlz4 = <lz4_decompress_safe><size_t>functions.lz4_decompress_safe
        cdef Zstd zstd = Zstd(functions)
        cdef list left = []
        check_rows(buffer.shape[0], rows, first, first + self.count)
        with nogil:
            for i in range(self.count):
                if self.arena.used >= enough:
                    break
                end = i + 1
                body = compressed_body(base + rows[(first + i) * ROW], rows[(first + i) * ROW + 1])
                if body.codec == 0:
                    continue
                start = self.arena.used
                if body.codec == LZ4 and unlz4 != NULL:
                    is_done = self.take_lz4(body, unlz4, start + limit)
                elif body.codec == ZSTD and zstd.context != NULL:
                    is_done = self.take_zstd(body, zstd, min(limit, enough))
                else:
                    is_done = False
                if is_done:
                    self.starts[i] = start
                    self.sizes[i] = self.arena.used - start
                else:
                    self.arena.used = start
                    with gil:
                        left.append(left_row(first + i, body, base))
        return first + end, left

    cdef int take_zstd(self, Body body, Zstd zstd, int64_t most) except -1 nogil:
        """Decompress a body's frames into the arena; return False for refused and possibly too large ones."""
        cdef size_t size = body.frame.end - body.frame.at
        cdef unsigned long long bound = zstd.bound(body.frame.at, size)  # an error is a number near the largest
        cdef size_t got
        if body.magic < 2 or size == 0 or bound > <unsigned long long>most:
            return False
        # unsafe: libzstd writes at most the capacity that it is given
        got = zstd.decompress(zstd.context, self.arena.add(bound), bound, body.frame.at, size)
        if got > bound:
            return False
        self.arena.used -= bound - got
        return True

    cdef int take_lz4(self, Body body, lz4_decompress_safe decompress, int64_t most) except -1 nogil:
        """Decompress a body's frame into the arena; return False for an unusual one."""
        cdef const uint8_t* header = take(&body.frame, LZ4_FRAME_HEADER)
        if header == NULL or memcmp(header, b"\x04\x22\x4d\x18\x60\x40", 6) != 0:
            return False
        if header[6] != 0x82 and body.magic != 0:  # v0's checksum is wrong by design
            return False
        return self.blocks_of(&body.frame, decompress, most)

    cdef int blocks_of(self, Cursor* frame, lz4_decompress_safe decompress, int64_t most) except -1 nogil:
        cdef const uint8_t* at
        cdef uint8_t* target
        cdef uint32_t size
        cdef int got
        while True:
            at = take(frame, 4)
            if at == NULL:
                return False
            size = at[0] | <uint32_t>at[1] << 8 | <uint32_t>at[2] << 16 | <uint32_t>at[3] << 24
            if size == 0:
                return True
            at = take(frame, size & 0x7FFFFFFF)
            if at == NULL or size & 0x7FFFFFFF > LZ4_BLOCK:
                return False
            target = self.arena.add(LZ4_BLOCK)
            if size & 0x80000000U:
                got = size & 0x7FFFFFFF
                memcpy(target, at, got)
            else:
                # unsafe: liblz4 writes at most the capacity that it is given
                got = decompress(<const char*>at, <char*>target, size, LZ4_BLOCK)
                if got < 0:
                    return False
            self.arena.used -= LZ4_BLOCK - got
            if self.arena.used > most:
                return False


cdef int check_rows(Py_ssize_t buffer_size, int64_t[::1] rows, Py_ssize_t first, Py_ssize_t last) except -1:
    """Check the base of all pointer arithmetic: every row lies within its buffer."""
    cdef Py_ssize_t i
    if first < 0 or last < first or last * ROW > rows.shape[0]:
        raise IndexError("rows that aren't there")
    for i in range(first, last):
        if rows[i * ROW] < 0 or rows[i * ROW + 1] < LEAST_SIZE_V0 or rows[i * ROW] + rows[i * ROW + 1] > buffer_size:
            raise IndexError("a row outside the buffer")
    return 0


cdef Bytes* take_bodies(bodies, Py_ssize_t first, Py_ssize_t count) except NULL:
    """Return the places of bodies first … first + count - 1. unsafe: `bodies` keeps them alive while they are read."""
    if bodies is not None and not 0 <= first <= len(bodies) - count:
        raise IndexError("fewer bodies than rows")
    cdef Bytes* result = <Bytes*>malloc((count + 1) * sizeof(Bytes))
    cdef Py_ssize_t i
    if result == NULL:
        raise MemoryError()
    for i in range(count):
        result[i].at = NULL
        result[i].size = -1
    if isinstance(bodies, Bodies):
        (<Bodies>bodies).look_up(result, first, count)
    elif bodies is not None:
        for i in range(count):
            if bodies[first + i] is not None:
                result[i] = from_object(bodies[first + i])
    return result
