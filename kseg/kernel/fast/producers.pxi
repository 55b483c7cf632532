# A table of producers: a fold's facts about each, found by its id.

cdef extern from "Python.h":
    unsigned long long PyLong_AsUnsignedLongLongMask(object number) except? 18446744073709551615ULL


cdef struct Producer:
    # index.producer_state.ProducerState
    int64_t id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, first_offset
    int64_t batches, records  # passed since its last put
    int64_t continued  # NOT_CONTINUED if no batch of its open transaction was passed, or the source of the time


@cython.final
cdef class ProducerTable:
    """The producer table of the contract."""

    cdef SumTable table  # a row is a Producer

    def __cinit__(self):
        self.table = SumTable(sizeof(Producer) // sizeof(int64_t))

    def __len__(self):
        return self.table.count

    cdef inline Producer* find(self, int64_t producer_id) noexcept nogil:
        """Return NULL for an unknown one."""
        return <Producer*>self.table.find(producer_id)

    def get(self, int64_t producer_id):
        cdef Producer* known = self.find(producer_id)
        if known == NULL:
            return None
        return (known.id, known.epoch, known.last_sequence, known.last_offset, known.offset_delta, known.timestamp,
                known.coordinator_epoch, known.first_offset)

    def count_passed(self, int64_t producer_id):
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
        if known == NULL:
            known = <Producer*>self.table.add(producer.id)
        producer.batches = producer.records = 0
        producer.continued = known.continued  # NOT_CONTINUED is 0, as in a new row
        known[0] = producer

    def ids(self):
        return [(<Producer*>self.table.rows)[i].id for i in range(self.table.count)]


cdef object wrapped(number):
    """Return a sum with the overflow of Java's long."""
    return <int64_t>PyLong_AsUnsignedLongLongMask(number)
