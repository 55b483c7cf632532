# Reads batches by their headers: finds them without their CRCs, and folds batches without events.

def walk(const uint8_t[::1] buffer, Py_ssize_t start, int64_t[::1] rows, int64_t room):
    """Fill `rows` with batches whose headers are in the buffer; see the contract."""
    cdef Py_ssize_t capacity = rows.shape[0] // ROW, count = 0, end = buffer.shape[0], least
    cdef int64_t at = start, size
    cdef const uint8_t* header
    cdef bint is_stuck = False
    if start < 0:
        raise IndexError("a walk before its buffer")
    with nogil:
        while count < capacity and end - at > MAGIC_AT:
            header = &buffer[at]
            least = LEAST_SIZE_V2 if header[MAGIC_AT] == 2 else LEAST_SIZE_V1 if header[MAGIC_AT] == 1 else LEAST_SIZE_V0
            is_stuck = header[MAGIC_AT] > 2
            if is_stuck or end - at < (BATCH_HEADER_SIZE if header[MAGIC_AT] == 2 else least):
                break
            size = <int64_t>batch_length(header) + LOG_OVERHEAD
            is_stuck = size < least or size > room - at
            if is_stuck:
                break
            rows[count * ROW] = at
            rows[count * ROW + 1] = size
            rows[count * ROW + 2] = UNCHECKED
            count += 1
            at += size
    return count, at, bool(is_stuck)


def walk_file(int descriptor, int64_t position, uint8_t[::1] buffer, int64_t[::1] rows, int64_t room, int64_t large):
    """Fill `rows` with batches whose headers are read one by one; see the contract."""
    cdef Py_ssize_t capacity = rows.shape[0] // ROW, count = 0
    cdef int64_t at = 0, size
    cdef uint8_t* header
    with nogil:
        while count < capacity and at + BATCH_HEADER_SIZE <= min(<int64_t>buffer.shape[0], room):
            header = &buffer[at]
            if pread(descriptor, header, BATCH_HEADER_SIZE, position + at) != BATCH_HEADER_SIZE or header[MAGIC_AT] != 2:
                break
            size = <int64_t>batch_length(header) + LOG_OVERHEAD
            if size < max(large, LEAST_SIZE_V2) or size > room - at or batch_attributes(header) >> CONTROL_SHIFT & 1:
                break
            rows[count * ROW] = at
            rows[count * ROW + 1] = size
            rows[count * ROW + 2] = UNCHECKED
            count += 1
            at += size
    return count, at


def end_marker(const uint8_t[::1] raw):
    """Return the marker in a control batch of the usual form; see the contract."""
    cdef const uint8_t* at
    cdef RecordView view
    cdef Walk walk
    cdef Bytes body
    cdef int kind
    if raw.shape[0] < BATCH_HEADER_SIZE or raw[MAGIC_AT] != 2:
        return None
    at = &raw[0]
    if batch_attributes(at) & CODEC_MASK or batch_records_count(at) != 1:
        return None
    fill_batch(at, raw.shape[0], True, 0, &view)
    body.at, body.size = at + BATCH_HEADER_SIZE, raw.shape[0] - BATCH_HEADER_SIZE
    start_walk(&walk, body, 1)
    if not next_record(&walk, &view) or walk.body.at != walk.body.end:
        return None
    if view.texts[KEY].size < CONTROL_RECORD_KEY_SIZE or view.texts[VALUE].size < END_TXN_MARKER_SIZE:
        return None
    kind = control_key_type(view.texts[KEY].at)
    if not 0 <= kind <= 1 or control_key_version(view.texts[KEY].at) < 0:
        return None
    if marker_version(view.texts[VALUE].at) < 0:
        return None
    return kind, marker_coordinator_epoch(view.texts[VALUE].at), view.slots[TIMESTAMP]


@cython.final
cdef class HeaderColumns:
    """The columns of the contract, one after another in `values`."""

    cdef readonly bint has_wrappers
    cdef Growing values
    cdef Py_ssize_t count

    def __cinit__(self, Py_ssize_t count):
        self.values, self.count = Growing(), count
        self.values.add(8 * HEADER_VALUES * count)

    def column(self, name):
        """Return the column of a name; see the contract."""
        cdef Py_ssize_t size = 8 * self.count, start = HEADER_NAMES.index(name) * size
        return memoryview(self.values)[start:start + size]

    cdef void put(self, Py_ssize_t row, const uint8_t* at, int64_t size, int64_t valid, int64_t position) noexcept nogil:
        """Set a row. unsafe: the header of the row's magic exists, and `row` is below `count`."""
        cdef int64_t* to = <int64_t*>self.values.memory + row
        cdef Py_ssize_t step = self.count, column
        if 2 <= at[MAGIC_AT] <= 127:
            put_batch_header(at, to, step)
            to[COLUMN_LAST_OFFSET * step] = sum_of(batch_base_offset(at), batch_last_offset_delta(at))
        else:
            for column in range(HEADER_VALUES):
                to[column * step] = -1
            self.put_entry(at, to, step)
        to[COLUMN_POSITION * step] = position
        to[COLUMN_SIZE * step] = size
        to[COLUMN_IS_VALID * step] = valid

    cdef void put_entry(self, const uint8_t* at, int64_t* to, Py_ssize_t step) noexcept nogil:
        """Set the values of a v0 or v1 entry; a wrapper's own base offset and records aren't known here."""
        if entry_v0_attributes(at) & CODEC_MASK:
            self.has_wrappers = True
        else:
            to[COLUMN_BASE_OFFSET * step] = entry_v0_offset(at)
            to[COLUMN_RECORDS_COUNT * step] = 1
        to[COLUMN_MAGIC * step] = entry_v0_magic(at)
        to[COLUMN_CRC * step] = entry_v0_crc(at)
        to[COLUMN_ATTRIBUTES * step] = <uint8_t>entry_v0_attributes(at)
        to[COLUMN_LAST_OFFSET * step] = entry_v0_offset(at)
        if at[MAGIC_AT] == 1:
            to[COLUMN_BASE_TIMESTAMP * step] = to[COLUMN_MAX_TIMESTAMP * step] = entry_v1_timestamp(at)


cdef int check_header(Py_ssize_t buffer_size, const uint8_t* base, int64_t[::1] rows, Py_ssize_t row) except -1 nogil:
    """Check the base of all reading of headers: the header of a row's magic is within the buffer, if not its bytes."""
    cdef int64_t start = rows[row * ROW], size = rows[row * ROW + 1]
    cdef bint is_batch
    if start >= 0 and size >= LEAST_SIZE_V0 and start <= buffer_size - LOG_ENTRY_HEADER_V0_SIZE:
        is_batch = 2 <= base[start + MAGIC_AT] <= 127
        if (size >= BATCH_HEADER_SIZE and start <= buffer_size - BATCH_HEADER_SIZE) if is_batch else (
                base[start + MAGIC_AT] != 1 or start <= buffer_size - LOG_ENTRY_HEADER_V1_SIZE):
            return 0
    with gil:
        raise IndexError("a row whose header isn't in the buffer")


def header_columns(const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t first, Py_ssize_t last, int64_t position):
    """Return the headers of rows first … last - 1; see the contract."""
    cdef HeaderColumns columns
    cdef const uint8_t* base = NULL
    cdef Py_ssize_t row
    if first < 0 or last < first or last * ROW > rows.shape[0]:
        raise IndexError("rows that aren't there")
    columns = HeaderColumns(last - first)
    if buffer.shape[0]:
        base = &buffer[0]
    with nogil:
        for row in range(first, last):
            check_header(buffer.shape[0], base, rows, row)
            columns.put(
                row - first, base + rows[row * ROW], rows[row * ROW + 1], rows[row * ROW + 2], position + rows[row * ROW])
    return columns


cdef struct HeaderView:
    # the facts of a v2 header that a fold reads
    int64_t base_offset, last_offset, leader_epoch, max_timestamp, producer_id, size, position, records_count
    uint32_t crc
    int attributes, last_offset_delta


# --- index entries --------------------------------------------------------------------------------------------------

@cython.final
cdef class OffsetEntries:
    """The .index entries of the contract."""

    cdef const uint8_t[::1] content
    cdef Py_ssize_t count
    cdef int64_t base_offset, longest_stretch
    cdef public int64_t next, passed_offset, last_position

    def __cinit__(self, const uint8_t[::1] content, int64_t base_offset, Py_ssize_t count, int64_t longest_stretch):
        if not 0 <= count <= content.shape[0] // OFFSET_INDEX_ENTRY_SIZE:
            raise IndexError("more entries than there are")
        self.content, self.base_offset, self.count = content, base_offset, count
        self.longest_stretch = longest_stretch
        self.passed_offset = -1

    cdef bint pass_batch(self, int64_t base_offset, int64_t position, int64_t largest_size) noexcept nogil:
        """Pass the entry of the batch at a position, if there is one; return False if an entry is wrong."""
        cdef const uint8_t* at
        cdef int64_t offset
        if not 0 <= self.next < self.count:
            return True
        at = &self.content[self.next * OFFSET_INDEX_ENTRY_SIZE]
        if offset_entry_position(at) > position:
            return True
        offset = self.base_offset + offset_entry_relative_offset(at)
        if (offset_entry_position(at) < position or offset < base_offset or self.passed_offset >= base_offset
                or position - self.last_position > self.longest_stretch + 2 * largest_size
                or not self.rises(at)):
            return False
        self.passed_offset, self.last_position = offset, position
        self.next += 1
        return True

    cdef bint rises(self, const uint8_t* at) noexcept nogil:
        """Return whether the entry is above the preceding one."""
        cdef const uint8_t* before = at - OFFSET_INDEX_ENTRY_SIZE
        return self.next == 0 or (
            offset_entry_relative_offset(at) > offset_entry_relative_offset(before)
            and offset_entry_position(at) > offset_entry_position(before))


@cython.final
cdef class TimeEntries:
    """The .timeindex entries of the contract."""

    cdef const uint8_t[::1] content
    cdef Py_ssize_t count
    cdef int64_t base_offset
    cdef public int64_t next, last_timestamp, largest, largest_of_records
    cdef public bint has_all_times

    def __cinit__(self, const uint8_t[::1] content, int64_t base_offset, Py_ssize_t count):
        if not 0 <= count <= content.shape[0] // TIME_INDEX_ENTRY_SIZE:
            raise IndexError("more entries than there are")
        self.content, self.base_offset, self.count = content, base_offset, count
        self.last_timestamp = self.largest = self.largest_of_records = -1
        self.has_all_times = True

    cdef bint pass_batch(self, HeaderView* header) noexcept nogil:
        """Pass the entries up to a batch, and its largest timestamp; return False if one is wrong."""
        cdef int64_t base_offset = header.base_offset, last_offset = header.last_offset
        cdef int64_t largest = max(self.largest, header.max_timestamp), largest_of_records = self.largest_of_records
        if header.records_count:
            largest_of_records = max(largest_of_records, header.max_timestamp)
        if base_offset > INT64_MIN and not self.pass_entries(
                base_offset - 1, self.largest, self.largest_of_records):
            return False
        if not self.pass_entries(last_offset, largest, largest_of_records):
            return False
        self.largest, self.largest_of_records = largest, largest_of_records
        return True

    cdef bint pass_entries(self, int64_t last_offset, int64_t largest, int64_t largest_of_records) noexcept nogil:
        cdef const uint8_t* at
        cdef int64_t timestamp
        while 0 <= self.next < self.count:
            at = &self.content[self.next * TIME_INDEX_ENTRY_SIZE]
            if self.base_offset + time_entry_relative_offset(at) > last_offset:
                return True
            timestamp = time_entry_timestamp(at)
            if (timestamp < largest_of_records or (self.has_all_times and timestamp > largest)
                    or not self.rises(at)):
                return False
            self.last_timestamp = timestamp
            self.next += 1
        return True

    cdef bint rises(self, const uint8_t* at) noexcept nogil:
        cdef const uint8_t* before = at - TIME_INDEX_ENTRY_SIZE
        return self.next == 0 or (
            time_entry_timestamp(at) > time_entry_timestamp(before)
            and time_entry_relative_offset(at) >= time_entry_relative_offset(before))


# --- the fold -------------------------------------------------------------------------------------------------------

cdef void view_batch(HeaderView* header, const uint8_t* at) noexcept nogil:
    """Read a header. unsafe: a v2 header exists."""
    header.base_offset = batch_base_offset(at)
    header.last_offset_delta = batch_last_offset_delta(at)
    header.last_offset = sum_of(header.base_offset, header.last_offset_delta)
    header.leader_epoch = batch_partition_leader_epoch(at)
    header.attributes = batch_attributes(at)
    header.max_timestamp = batch_max_timestamp(at)
    header.producer_id = batch_producer_id(at)
    header.records_count = batch_records_count(at)
    header.crc = batch_crc(at)


cdef void view_entry(HeaderView* header, const uint8_t* at) noexcept nogil:
    """Read a header. unsafe: the header of a v0 or v1 entry exists."""
    header.base_offset = header.last_offset = entry_v0_offset(at)
    header.last_offset_delta = 0
    header.leader_epoch = header.max_timestamp = header.producer_id = -1
    header.attributes = entry_v0_attributes(at) & CODEC_MASK
    header.records_count = header.attributes == 0
    header.crc = entry_v0_crc(at)
    if at[MAGIC_AT] == 1:
        header.attributes = entry_v0_attributes(at) & (CODEC_MASK | TIMESTAMP_TYPE_MASK)
        header.max_timestamp = entry_v1_timestamp(at)


@cython.final
cdef class HeaderFold:
    """The header fold of the contract."""

    cdef public int64_t next_offset, last_offset, leader_epoch, max_timestamp, offset_of_max_timestamp, append_time
    cdef public int64_t largest_size, end, batches, records, gaps, missing, codecs
    cdef public int64_t offset_bound, timestamp_bound, position_bound, offset_floor
    cdef public bint passes_legacy
    cdef public int watched
    cdef int keyed  # -1: unknown
    cdef readonly ProducerTable producers
    cdef public OffsetEntries offset_entries
    cdef public TimeEntries time_entries
    cdef public EntryWriter entry_writer
    cdef int64_t recent_batches[3 * RECENT]
    cdef Growing continued_ids
    cdef RecordView view

    def __cinit__(self, int watched, ProducerTable producers=None):
        self.watched = watched
        self.continued_ids = Growing()
        self.producers = ProducerTable() if producers is None else producers
        self.last_offset = self.leader_epoch = self.max_timestamp = self.offset_of_max_timestamp = -1
        self.append_time = self.keyed = -1
        self.offset_bound = self.timestamp_bound = self.position_bound = MOST_INT64
        self.offset_floor = -MOST_INT64 - 1

    @property
    def ends_keyed(self):
        return None if self.keyed < 0 else bool(self.keyed)

    @ends_keyed.setter
    def ends_keyed(self, is_keyed):
        self.keyed = -1 if is_keyed is None else bool(is_keyed)

    def fold(self, const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t first, Py_ssize_t last, int64_t position,
             Bodies bodies=None, Py_ssize_t first_body=0):
        cdef const uint8_t* base = NULL
        cdef Py_ssize_t row = first
        cdef int events = 0
        cdef Bytes body
        if first < 0 or last < first or last * ROW > rows.shape[0]:
            raise IndexError("rows that aren't there")
        if bodies is not None and not 0 <= first - first_body <= last - first_body <= bodies.count:
            raise IndexError("fewer bodies than rows")
        if buffer.shape[0]:
            base = &buffer[0]
        with nogil:
            while row < last:
                body.size = -1
                if self.watched & (EVENT_RECORDS | EVENT_ODD_NULL):
                    check_whole(buffer.shape[0], rows, row)
                    if bodies is not None:
                        bodies.look_up(&body, row - first_body, 1)
                if rows[row * ROW + 2] == 0:
                    events = EVENT_INVALID
                    break
                check_header(buffer.shape[0], base, rows, row)
                events = self.step(base + rows[row * ROW], rows[row * ROW + 1], position + rows[row * ROW], body)
                if events:
                    break
                row += 1
        return row, events

    cdef int step(self, const uint8_t* at, int64_t size, int64_t position, Bytes body) except -1 nogil:
        """Pass a row without events; otherwise return the events. unsafe: its header exists."""
        cdef HeaderView header
        cdef Producer* producer = NULL
        cdef int events
        header.position, header.size = position, size
        if self.watched & EVENT_ODD_NULL and self.finds_odd_null(at, size, position, body):
            return EVENT_ODD_NULL
        if 2 <= at[MAGIC_AT] <= 127:
            view_batch(&header, at)
        elif not self.passes_legacy or self.watched & EVENT_RECORDS:
            return EVENT_LEGACY
        else:
            view_entry(&header, at)
        events = self.events_of(&header) & (self.watched | EVENT_BOUND)
        if not events and header.producer_id >= 0 and self.watched & EVENT_PRODUCER:
            producer = self.producers.find(header.producer_id)
            events = self.events_of_producer(at, &header, producer) & self.watched
        elif not events and header.attributes & (TRANSACTIONAL_MASK | CONTROL_MASK) == TRANSACTIONAL_MASK \
                and self.watched & EVENT_TRANSACTION:
            producer = self.producers.find(header.producer_id)
            if producer == NULL or producer.epoch != batch_producer_epoch(at) or producer.first_offset < 0:
                events = EVENT_TRANSACTION
        if not events and self.watched & EVENT_RECORDS and not self.records_agree(at, &header, body):
            events = EVENT_RECORDS
        if not events and self.watched & EVENT_INDEX and not self.indexes_agree(&header):
            events = EVENT_INDEX
        if events:
            return events
        if producer != NULL:
            producer.last_sequence = last_sequence_of(at)
            producer.last_offset = header.last_offset
            producer.offset_delta = header.last_offset_delta
            producer.timestamp = header.max_timestamp
            producer.batches += 1
            producer.records = sum_of(producer.records, header.records_count)
            if producer.first_offset >= 0 and header.attributes & TRANSACTIONAL_MASK:
                self.note_continued(producer, header.attributes & TIMESTAMP_TYPE_MASK != 0)
        if header.base_offset > self.next_offset:
            self.gaps += 1
            self.missing = sum_of(self.missing, difference_of(header.base_offset, self.next_offset))
        self.pass_header(&header)
        return 0

    cdef int note_continued(self, Producer* producer, bint has_append_time) except -1 nogil:
        if producer.continued == NOT_CONTINUED:
            add_int64(self.continued_ids, producer.id)
        producer.continued = CONTINUED_BY_BROKER if has_append_time else CONTINUED
        return 0

    def take_continued(self):
        cdef Growing ids = self.continued_ids
        cdef Producer* producer
        cdef Py_ssize_t i
        if ids.used == 0:
            return []
        result = []
        self.continued_ids = Growing()
        for i in range(ids.used // 8):
            producer = self.producers.find((<int64_t*>ids.memory)[i])
            has_append_time = producer.continued == CONTINUED_BY_BROKER
            producer.continued = NOT_CONTINUED
            result.append((producer.id, producer.timestamp if has_append_time else None))
        return result

    cdef int events_of(self, HeaderView* header) noexcept nogil:
        cdef int events = 0
        cdef int64_t span = <int64_t>header.last_offset_delta + 1
        if header.attributes & CONTROL_MASK:
            events |= EVENT_CONTROL
        elif header.attributes & TRANSACTIONAL_MASK:
            events |= EVENT_TRANSACTIONAL
        if header.attributes & DELETE_HORIZON_MASK:
            events |= EVENT_DELETE_HORIZON
        if header.attributes & TIMESTAMP_TYPE_MASK:
            events |= EVENT_APPEND_TIME
        if header.attributes & CODEC_MASK:
            events |= EVENT_COMPRESSED
        if header.base_offset > self.next_offset:
            events |= EVENT_GAP
        if header.base_offset < self.next_offset or header.last_offset < header.base_offset:
            events |= EVENT_FALL
        if header.last_offset < self.last_offset:
            events |= EVENT_DISORDER
        if span != header.records_count or span < 1:
            events |= EVENT_SPARSE
        if header.leader_epoch != self.leader_epoch:
            events |= EVENT_EPOCH
        if (header.last_offset >= self.offset_bound or header.last_offset < self.offset_floor
                or header.max_timestamp >= self.timestamp_bound or header.position > self.position_bound):
            events |= EVENT_BOUND
        return events

    cdef int events_of_producer(self, const uint8_t* at, HeaderView* header, Producer* known) noexcept nogil:
        cdef bint begins
        if known == NULL or known.epoch != batch_producer_epoch(at):
            return EVENT_PRODUCER
        begins = header.attributes & TRANSACTIONAL_MASK != 0 and known.first_offset < 0
        if begins or header.attributes & CONTROL_MASK:
            return EVENT_PRODUCER
        return 0 if continues_sequence(at, known.last_sequence) else EVENT_SEQUENCE

    cdef bint records_agree(self, const uint8_t* at, HeaderView* header, Bytes body) noexcept nogil:
        """Return whether all records are readable, with rising offsets in range, largest timestamp, usual nulls."""
        cdef Walk walk
        cdef int64_t largest = -MOST_INT64 - 1, offset
        cdef int64_t* slots = self.view.slots
        if header.attributes & CODEC_MASK == 0:
            body.at, body.size = at + BATCH_HEADER_SIZE, header.size - BATCH_HEADER_SIZE
        if body.size < 0:
            return False
        slots[BASE_OFFSET] = header.base_offset
        slots[TIMESTAMP_TYPE] = header.attributes >> TIMESTAMP_TYPE_SHIFT & 1
        slots[BASE_TIMESTAMP], slots[MAX_TIMESTAMP] = batch_base_timestamp(at), header.max_timestamp
        start_walk(&walk, body, header.records_count)
        if header.base_offset == -MOST_INT64 - 1 or header.last_offset < header.base_offset:
            return False
        offset = header.base_offset - 1
        while next_record(&walk, &self.view):
            if slots[OFFSET] <= offset or slots[OFFSET] > header.last_offset or self.view.has_odd_null:
                return False
            offset = slots[OFFSET]
            largest = max(largest, slots[TIMESTAMP])
        if walk.problem != NO_PROBLEM or (walk.index and largest != header.max_timestamp):
            return False
        self.keyed = self.view.texts[KEY].size >= 0 if walk.index else -1
        return True

    cdef bint finds_odd_null(self, const uint8_t* at, int64_t size, int64_t position, Bytes body) noexcept nogil:
        """Return whether a readable record has a negative size other than null's. unsafe: as step."""
        cdef RowWalk walk
        start_row(&walk, &self.view, at, size, size, True, position, body)
        if walk.has_messages and self.view.has_odd_null:
            return True
        while next_of_row(&walk, &self.view):
            if self.view.has_odd_null:
                return True
        return walk.lacks_body and walk.is_message and self.view.has_odd_null

    cdef bint indexes_agree(self, HeaderView* header) noexcept nogil:
        if self.offset_entries is not None and not self.offset_entries.pass_batch(
                header.base_offset, header.position, self.largest_size):
            return False
        return self.time_entries is None or self.time_entries.pass_batch(header)

    cdef int pass_header(self, HeaderView* header) except -1 nogil:
        cdef Py_ssize_t place = self.batches % RECENT * 3
        self.recent_batches[place], self.recent_batches[place + 1] = header.base_offset, header.last_offset
        self.recent_batches[place + 2] = header.crc
        self.last_offset = header.last_offset
        self.next_offset = max(self.next_offset, sum_of(header.last_offset, 1))
        self.leader_epoch = max(self.leader_epoch, header.leader_epoch)
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp, self.offset_of_max_timestamp = header.max_timestamp, header.last_offset
        if header.attributes & TIMESTAMP_TYPE_MASK:
            self.append_time = max(self.append_time, header.max_timestamp)
        self.largest_size = max(self.largest_size, header.size)
        self.end = header.position + header.size
        self.batches += 1
        self.records = sum_of(self.records, header.records_count)
        self.codecs |= 1 << (header.attributes & CODEC_MASK)
        if self.entry_writer is not None:
            self.entry_writer.pass_batch(
                header.position, header.last_offset, self.max_timestamp, self.offset_of_max_timestamp)
        return 0

    def take(self, header):
        cdef HeaderView view
        records_count = header.records_count
        view.base_offset, view.last_offset = wrapped(header.first_offset), wrapped(header.last_offset)
        view.leader_epoch, view.max_timestamp = header.partition_leader_epoch, header.max_timestamp
        view.size, view.position, view.crc = header.size, header.position, header.crc
        view.records_count = 0 if records_count is None else records_count
        view.attributes = header.attributes if header.magic else header.attributes & CODEC_MASK
        self.pass_header(&view)

    def recent(self):
        cdef Py_ssize_t first = max(self.batches - RECENT, 0), i
        cdef int64_t* at = self.recent_batches
        return [(at[i % RECENT * 3], at[i % RECENT * 3 + 1], at[i % RECENT * 3 + 2]) for i in range(first, self.batches)]
