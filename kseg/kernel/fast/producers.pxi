# A table of producers: what a fold knows of each, found by its id.

cdef extern from "Python.h":
    unsigned long long PyLong_AsUnsignedLongLongMask(object number) except? 18446744073709551615ULL


cdef struct Producer:
    # index.producer_state.ProducerState
    int64_t id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, first_offset
    int64_t batches, records  # passed since it was put in
    int continued  # whether a fold has passed a batch of its open transaction: NOT_CONTINUED, or who set the time


@cython.final
cdef class ProducerTable:
    """See the contract. Ids are hashed; a free place is probed for one after another."""

    cdef Producer* entries  # in the order of arrival
    cdef int32_t* places  # numbers of entries, FREE_PLACE where there is none; `place_count` is a power of two
    cdef Py_ssize_t count, capacity, place_count

    def __dealloc__(self):
        free(self.entries)
        free(self.places)

    def __len__(self):
        return self.count

    cdef Producer* find(self, int64_t producer_id) noexcept nogil:
        """NULL for one that isn't known."""
        cdef uint64_t place = mixed(<uint64_t>producer_id)
        if self.place_count == 0:
            return NULL
        while True:
            place &= self.place_count - 1
            if self.places[place] == FREE_PLACE:
                return NULL
            if self.entries[self.places[place]].id == producer_id:
                return &self.entries[self.places[place]]
            place += 1

    cdef int grow(self) except -1:
        """Makes room for another one; at most half of the places are ever taken."""
        cdef Py_ssize_t capacity = max(2 * self.capacity, 16), i
        cdef int32_t* places
        cdef Producer* entries = <Producer*>realloc(self.entries, capacity * sizeof(Producer))
        if entries == NULL:
            raise MemoryError()
        self.entries = entries
        places = <int32_t*>realloc(self.places, 2 * capacity * sizeof(int32_t))
        if places == NULL:
            raise MemoryError()
        self.places, self.place_count, self.capacity = places, 2 * capacity, capacity
        for i in range(self.place_count):
            self.places[i] = FREE_PLACE
        for i in range(self.count):
            self.take_place(i)
        return 0

    cdef void take_place(self, Py_ssize_t number) noexcept:
        cdef uint64_t place = mixed(<uint64_t>self.entries[number].id) & (self.place_count - 1)
        while self.places[place] != FREE_PLACE:
            place = (place + 1) & (self.place_count - 1)
        self.places[place] = number

    def get(self, int64_t producer_id):
        cdef Producer* known = self.find(producer_id)
        if known == NULL:
            return None
        return (known.id, known.epoch, known.last_sequence, known.last_offset, known.offset_delta, known.timestamp,
                known.coordinator_epoch, known.first_offset)

    def passed(self, int64_t producer_id):
        cdef Producer* known = self.find(producer_id)
        if known == NULL:
            return 0, 0
        return known.batches, known.records

    def put(self, values):
        cdef Producer producer
        cdef Producer* known
        (producer.id, producer.epoch, producer.last_sequence, producer.last_offset, producer.offset_delta,
         producer.timestamp, producer.coordinator_epoch, producer.first_offset) = [wrapped(value) for value in values]
        known = self.find(producer.id)
        producer.batches = producer.records = 0
        producer.continued = NOT_CONTINUED if known == NULL else known.continued
        if known != NULL:
            known[0] = producer
            return
        if self.count == self.capacity:
            self.grow()
        self.entries[self.count] = producer
        self.take_place(self.count)
        self.count += 1

    def ids(self):
        return [self.entries[i].id for i in range(self.count)]


cdef object wrapped(number):
    """A sum as Java's long holds it."""
    return <int64_t>PyLong_AsUnsignedLongLongMask(number)
