# Statistics of batches and their records: histograms; sums by codec, time and producer; keys.

cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long number) noexcept nogil


cdef inline Py_ssize_t bucket_of(int64_t number) noexcept nogil:
    """Return the bucket of a number of 0 or more; see the contract."""
    cdef int doublings
    if number < EXACT_BUCKETS:
        return number
    doublings = 63 - leading_zeros(<unsigned long long>number)
    return EXACT_BUCKETS + (doublings - 6) * BUCKETS_A_DOUBLING + (number >> (doublings - 5) & (BUCKETS_A_DOUBLING - 1))


cdef uint64_t hash_of(Bytes key) noexcept nogil:
    """Return a hash of 64 bits: eight bytes at a time, little-endian."""
    cdef uint64_t result = mix(<uint64_t>key.size), word
    cdef int64_t at = 0
    cdef int i
    while key.size - at >= 8:
        word = 0
        for i in range(8):
            word |= <uint64_t>key.at[at + i] << (8 * i)
        result = mix(result ^ word)
        at += 8
    word = 0
    for i in range(<int>(key.size - at)):
        word |= <uint64_t>key.at[at + i] << (8 * i)
    return mix(result ^ word)


cdef int64_t floor_of(int64_t number, int64_t divisor) noexcept nogil:
    """Return the quotient, rounded down."""
    cdef int64_t quotient = number // divisor
    return quotient - 1 if number < 0 and quotient * divisor != number else quotient


cdef inline int64_t added(int64_t number, int64_t other) noexcept nogil:
    """Return the sum, or the largest number on overflow: sizes and times of damaged batches are arbitrary."""
    return number + other if number <= MOST_INT64 - other else MOST_INT64


cdef struct Largest:
    int64_t size, offset


cdef struct KeyOfRecord:
    int64_t key_hash, size, offset


@cython.final
cdef class Statistics:
    """The statistics of the contract."""

    cdef int64_t histograms[MEASURES][OF_HISTOGRAM_VALUES + BUCKETS]
    cdef int64_t codec_sums[8][OF_CODEC_VALUES]
    cdef int64_t week_sums[WEEK_HOURS][2]
    cdef Largest largest_records[MOST_LARGEST]
    cdef int64_t lingers[LINGERS]
    cdef int largest_count, waiting_count
    cdef KeyOfRecord waiting[MOST_WAITING]  # keys that aren't looked up yet
    cdef int64_t first_time, last_time
    cdef Py_ssize_t most_keys
    cdef SumTable time_sums, producer_sums, open_batches, known_keys
    cdef Growing dropped
    cdef RecordView view
    cdef RowWalk walk
    cdef readonly int64_t batches, control_batches, size, records, largest_timestamp, without_time, beyond_time
    cdef readonly int64_t append_time, transactional, sparse, magics, null_keys, tombstones, tombstones_size
    cdef readonly int64_t first_tombstone_time, late, superseded, superseded_size, dropped_below, time_step

    def __cinit__(self, int64_t first_time, int64_t last_time, Py_ssize_t most_keys):
        cdef int i
        self.first_time, self.last_time, self.most_keys = first_time, last_time, max(most_keys, 1)
        self.time_sums, self.producer_sums = SumTable(OF_TIME_VALUES), SumTable(OF_PRODUCER_VALUES)
        self.open_batches, self.known_keys = SumTable(1 + 2 * LINGERS), SumTable(OF_KEY_VALUES)
        self.dropped = Growing()
        self.largest_timestamp = self.first_tombstone_time = -1
        self.time_step = TIME_STEPS[0]
        for i in range(LINGERS):
            self.lingers[i] = LINGERS_MS[i]

    @property
    def keys(self):
        return self.known_keys.count

    def take_headers(self, const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t first, Py_ssize_t last):
        cdef Py_ssize_t row
        cdef const uint8_t* base = NULL
        cdef const uint8_t* at
        if first < 0 or last < first or last * ROW > rows.shape[0]:
            raise IndexError("rows that aren't there")
        if buffer.shape[0]:
            base = &buffer[0]
        with nogil:
            for row in range(first, last):
                check_header(buffer.shape[0], base, rows, row)
                if rows[row * ROW + 2] != 0:
                    at = base + rows[row * ROW]
                    if 2 <= at[MAGIC_AT] <= 127:
                        fill_batch(at, rows[row * ROW + 1], True, 0, &self.view)
                    else:
                        fill_entry_header(at, rows[row * ROW + 1], &self.view)
                        self.view.slots[COUNT] = self.view.slots[CODEC] == 0
                    self.take_batch(self.view.slots[COUNT], -1, -1)

    def take(self, const uint8_t[::1] buffer, int64_t[::1] rows, Py_ssize_t first, Py_ssize_t last, bodies,
             Py_ssize_t first_body=-1):
        cdef Py_ssize_t row
        check_rows(buffer.shape[0], rows, first, last)
        cdef Bytes* given = take_bodies(bodies, first - first_body if first_body >= 0 else 0, last - first)
        try:
            with nogil:
                for row in range(first, last):
                    if rows[row * ROW + 2] != 0:
                        self.take_row(&buffer[rows[row * ROW]], rows[row * ROW + 1], given[row - first])
                self.take_waiting()
        finally:
            free(given)

    cdef int take_row(self, const uint8_t* at, int64_t size, Bytes body) except -1 nogil:
        """Add a batch, an entry or a wrapper, with its records."""
        cdef RecordView* view = &self.view
        cdef int64_t walked = 0, stored
        cdef bint is_batch = batch_magic(at) >= 2 and size >= BATCH_HEADER_SIZE
        cdef Body compressed
        start_row(&self.walk, view, at, size, size, True, 0, body)
        if is_batch:
            stored = size - BATCH_HEADER_SIZE
        else:
            compressed = compressed_body(at, size)
            stored = compressed.frame.end - compressed.frame.at
        if view.slots[CODEC] == 0:
            body.size = stored
        while next_of_row(&self.walk, view):
            walked += 1
            if view.slots[IS_CONTROL] == 0:
                self.take_record(view)
        if not is_batch:
            fill_entry_header(at, size, view)
        self.take_batch(view.slots[COUNT] if is_batch else walked, stored, body.size)
        return 0

    # --- batches -----------------------------------------------------------------------------------------------------

    cdef int take_batch(self, int64_t count, int64_t stored, int64_t whole) except -1 nogil:
        """Add the batch in the view: its records, and the sizes of its stored and decompressed body; -1 if unknown."""
        cdef int64_t* slots = self.view.slots
        cdef int64_t* codec = self.codec_sums[slots[CODEC] & 7]
        cdef int64_t* producer
        cdef int64_t span = added(difference_of(slots[LAST_OFFSET], slots[BASE_OFFSET]), 1)
        count = max(count, 0)
        self.magics |= <int64_t>1 << min(slots[MAGIC] & 127, 62)
        self.size += slots[SIZE]
        producer = self.producer_of(slots[PRODUCER_ID])
        if producer[OF_PRODUCER_EPOCH] != slots[PRODUCER_EPOCH]:
            producer[OF_PRODUCER_EPOCHS] += producer[OF_PRODUCER_BATCHES] + producer[OF_PRODUCER_MARKERS] > 0
            producer[OF_PRODUCER_EPOCH] = slots[PRODUCER_EPOCH]
        self.take_time(0 if slots[IS_CONTROL] else count)
        if slots[IS_CONTROL]:
            self.control_batches += 1
            producer[OF_PRODUCER_MARKERS] += 1
            return 0
        self.batches += 1
        self.records += count
        self.transactional += slots[IS_TRANSACTIONAL] != 0
        self.sparse += slots[MAGIC] >= 2 and count < span
        self.put(MEASURE_BATCH_SIZE, slots[SIZE])
        if count > 0 or slots[MAGIC] >= 2:
            self.put(MEASURE_BATCH_RECORDS, count)
        codec[OF_CODEC_BATCHES] += 1
        codec[OF_CODEC_RECORDS] += count
        codec[OF_CODEC_STORED_SIZE] += max(stored, 0)
        codec[OF_CODEC_UNCOMPRESSED_SIZE] += max(whole, 0)
        self.take_producer(producer, count)
        return 0

    cdef int take_time(self, int64_t count) except -1 nogil:
        cdef int64_t* slots = self.view.slots
        cdef int64_t time = slots[MAX_TIMESTAMP], hour
        cdef int64_t* sums
        self.append_time += slots[TIMESTAMP_TYPE] == 1
        if time < 0:
            self.without_time += 1
            return 0
        if not self.first_time <= time <= self.last_time:
            self.beyond_time += 1
            return 0
        self.largest_timestamp = max(self.largest_timestamp, time)
        sums = self.time_sums.find(floor_of(time, self.time_step))
        while sums == NULL and self.time_sums.count >= MOST_TIMES:
            self.lengthen_times()
            sums = self.time_sums.find(floor_of(time, self.time_step))
        if sums == NULL:
            sums = self.time_sums.add(floor_of(time, self.time_step))
        sums[OF_TIME_BATCHES] += 1
        sums[OF_TIME_RECORDS] += count
        sums[OF_TIME_SIZE] += slots[SIZE]
        hour = (floor_of(time, HOUR_MS) + 72) % WEEK_HOURS  # 1970 began on a Thursday
        self.week_sums[hour][0] += count
        self.week_sums[hour][1] += slots[SIZE]
        return 0

    cdef int lengthen_times(self) except -1 with gil:
        """Join stretches of time to longer ones."""
        cdef SumTable before = self.time_sums
        cdef int64_t longer = min([step for step in TIME_STEPS if step > self.time_step], default=10 * self.time_step)
        self.time_sums = SumTable(OF_TIME_VALUES)
        cdef Py_ssize_t i
        cdef int64_t* sums
        cdef int64_t* old
        cdef int64_t number
        for i in range(before.count):
            old = before.rows + i * OF_TIME_VALUES
            number = floor_of(old[OF_TIME_NUMBER] * self.time_step, longer)
            sums = self.time_sums.find(number)
            if sums == NULL:
                sums = self.time_sums.add(number)
            sums[OF_TIME_BATCHES] += old[OF_TIME_BATCHES]
            sums[OF_TIME_RECORDS] += old[OF_TIME_RECORDS]
            sums[OF_TIME_SIZE] += old[OF_TIME_SIZE]
        self.time_step = longer
        return 0

    cdef int64_t* producer_of(self, int64_t producer_id) except NULL nogil:
        cdef int64_t* producer = self.producer_sums.find(producer_id)
        if producer == NULL and self.producer_sums.count >= MOST_PRODUCERS:
            producer_id = OTHER_PRODUCERS
            producer = self.producer_sums.find(producer_id)
        if producer == NULL:
            producer = self.producer_sums.add(producer_id)
            producer[OF_PRODUCER_FIRST_OFFSET] = producer[OF_PRODUCER_LAST_OFFSET] = -1
            producer[OF_PRODUCER_FIRST_TIME] = producer[OF_PRODUCER_LAST_TIME] = producer[OF_PRODUCER_EPOCH] = -1
        return producer

    cdef int take_producer(self, int64_t* producer, int64_t count) except -1 nogil:
        cdef int64_t* slots = self.view.slots
        if producer[OF_PRODUCER_BATCHES] == 0:
            producer[OF_PRODUCER_FIRST_OFFSET] = slots[BASE_OFFSET]
            producer[OF_PRODUCER_FIRST_TIME] = max(slots[BASE_TIMESTAMP], -1)
        producer[OF_PRODUCER_BATCHES] += 1
        producer[OF_PRODUCER_RECORDS] += count
        producer[OF_PRODUCER_SIZE] += slots[SIZE]
        producer[OF_PRODUCER_LAST_OFFSET] = max(producer[OF_PRODUCER_LAST_OFFSET], slots[LAST_OFFSET])
        producer[OF_PRODUCER_LAST_TIME] = max(producer[OF_PRODUCER_LAST_TIME], slots[MAX_TIMESTAMP])
        producer[OF_PRODUCER_TRANSACTIONAL] += slots[IS_TRANSACTIONAL] != 0
        return self.linger(producer)

    cdef int linger(self, int64_t* producer) except -1 nogil:
        """Count the batches that a producer would have sent for each time of lingering."""
        cdef int64_t* slots = self.view.slots
        cdef int64_t* batch = self.open_batches.find(producer[OF_PRODUCER_ID])
        cdef int64_t waited, size = slots[SIZE]
        cdef bint is_timed = slots[MAGIC] >= 2 and slots[TIMESTAMP_TYPE] == 0 and slots[BASE_TIMESTAMP] >= 0
        cdef int i
        if batch == NULL:
            batch = self.open_batches.add(producer[OF_PRODUCER_ID])
        for i in range(LINGERS):
            waited = difference_of(slots[BASE_TIMESTAMP], batch[1 + 2 * i])
            if (is_timed and batch[2 + 2 * i] > 0 and 0 <= waited <= self.lingers[i]
                    and size <= FULL_BATCH - batch[2 + 2 * i]):
                batch[2 + 2 * i] += size - BATCH_HEADER_SIZE
                continue
            producer[OF_PRODUCER_AFTER_SHORT + i] += 1
            batch[1 + 2 * i], batch[2 + 2 * i] = slots[BASE_TIMESTAMP], size if is_timed else 0
        return 0

    # --- records -----------------------------------------------------------------------------------------------------

    cdef inline void put(self, int measure, int64_t number) noexcept nogil:
        """Add a number of 0 or more to a histogram."""
        cdef int64_t* histogram = self.histograms[measure]
        if histogram[OF_HISTOGRAM_COUNT] == 0:
            histogram[OF_HISTOGRAM_LEAST] = histogram[OF_HISTOGRAM_MOST] = number
        histogram[OF_HISTOGRAM_COUNT] += 1
        histogram[OF_HISTOGRAM_SUM] = added(histogram[OF_HISTOGRAM_SUM], number)
        histogram[OF_HISTOGRAM_LEAST] = min(histogram[OF_HISTOGRAM_LEAST], number)
        histogram[OF_HISTOGRAM_MOST] = max(histogram[OF_HISTOGRAM_MOST], number)
        histogram[OF_HISTOGRAM_VALUES + bucket_of(number)] += 1

    cdef int take_record(self, RecordView* view) except -1 nogil:
        cdef int64_t key_size = view.texts[KEY].size, value_size = view.texts[VALUE].size
        cdef int64_t headers_size = headers_size_of(view), size
        size = max(key_size, 0) + max(value_size, 0) + headers_size
        if key_size >= 0:
            self.put(MEASURE_KEY_SIZE, key_size)
        else:
            self.null_keys += 1
        if value_size >= 0:
            self.put(MEASURE_VALUE_SIZE, value_size)
        if headers_size or view.slots[HEADER_COUNT]:
            self.put(MEASURE_HEADERS_SIZE, headers_size)
        self.put(MEASURE_RECORD_SIZE, size)
        self.take_largest(size, view.slots[OFFSET])
        self.take_record_time(view.slots[TIMESTAMP], view.slots[TIMESTAMP_TYPE])
        if key_size >= 0:
            if value_size < 0:
                self.take_tombstone(size, view.slots[TIMESTAMP])
            self.take_key_later(<int64_t>hash_of(view.texts[KEY]), size, view.slots[OFFSET])
        return 0

    cdef int take_key_later(self, int64_t key_hash, int64_t size, int64_t offset) except -1 nogil:
        cdef KeyOfRecord* key = &self.waiting[self.waiting_count]
        key.key_hash, key.size, key.offset = key_hash, size, offset
        self.known_keys.expect(key_hash)
        self.waiting_count += 1
        return self.take_waiting() if self.waiting_count == MOST_WAITING else 0

    cdef int take_waiting(self) except -1 nogil:
        cdef int i
        for i in range(self.waiting_count):
            self.known_keys.expect_row(self.waiting[i].key_hash)
        for i in range(self.waiting_count):
            self.take_key(self.waiting[i].key_hash, self.waiting[i].size, self.waiting[i].offset)
        self.waiting_count = 0
        return 0

    cdef void take_record_time(self, int64_t time, int64_t kind) noexcept nogil:
        if kind != 0 or time < 0 or not self.first_time <= time <= self.last_time:
            return
        if time < self.largest_timestamp:
            self.late += 1
            self.put(MEASURE_LATENESS, self.largest_timestamp - time)
        else:
            self.largest_timestamp = time

    cdef void take_tombstone(self, int64_t size, int64_t time) noexcept nogil:
        self.tombstones += 1
        self.tombstones_size += size
        if time >= 0 and (self.first_tombstone_time < 0 or time < self.first_tombstone_time):
            self.first_tombstone_time = time

    cdef void take_largest(self, int64_t size, int64_t offset) noexcept nogil:
        """Keep the largest records in order; of equal sizes the first ones."""
        cdef int place = self.largest_count
        if place == MOST_LARGEST:
            if size <= self.largest_records[place - 1].size:
                return
            place -= 1
        else:
            self.largest_count += 1
        while place > 0 and self.largest_records[place - 1].size < size:
            self.largest_records[place] = self.largest_records[place - 1]
            place -= 1
        self.largest_records[place].size, self.largest_records[place].offset = size, offset

    cdef int take_key(self, int64_t key_hash, int64_t size, int64_t offset) except -1 nogil:
        cdef int64_t* key = self.known_keys.find(key_hash)
        if key == NULL:
            if self.known_keys.count >= self.most_keys:
                self.drop_keys()
            key = self.known_keys.add(key_hash)
        else:
            self.superseded += 1
            self.superseded_size += key[OF_KEY_LAST_SIZE]
        key[OF_KEY_COUNT] += 1
        key[OF_KEY_SIZE] += size
        key[OF_KEY_LAST_OFFSET], key[OF_KEY_LAST_SIZE] = offset, size
        return 0

    cdef int drop_keys(self) except -1 with gil:
        """Drop half of the keys or more: those with the fewest records."""
        cdef SumTable keys = self.known_keys
        cdef int64_t least = 1
        cdef Py_ssize_t i, dropped = 0, left = 0
        while 2 * dropped < keys.count:
            least *= 2
            dropped = 0
            for i in range(keys.count):
                dropped += keys.rows[i * OF_KEY_VALUES + OF_KEY_COUNT] < least
        for i in range(keys.count):
            if keys.rows[i * OF_KEY_VALUES + OF_KEY_COUNT] < least:
                (<int64_t*>self.dropped.add(8))[0] = keys.rows[i * OF_KEY_VALUES]
                continue
            if left < i:
                memcpy(keys.rows + left * OF_KEY_VALUES, keys.rows + i * OF_KEY_VALUES, OF_KEY_VALUES * sizeof(int64_t))
            left += 1
        keys.count = left
        keys.place_all()
        self.dropped_below += least
        return 0

    # --- results -----------------------------------------------------------------------------------------------------

    def histogram(self, int measure):
        if not 0 <= measure < MEASURES:
            raise IndexError("no such histogram")
        return (<const char*>self.histograms[measure])[:(OF_HISTOGRAM_VALUES + BUCKETS) * sizeof(int64_t)]

    def codecs(self):
        return (<const char*>self.codec_sums)[:8 * OF_CODEC_VALUES * sizeof(int64_t)]

    def times(self):
        return self.time_sums.content()

    def week(self):
        return (<const char*>self.week_sums)[:WEEK_HOURS * 2 * sizeof(int64_t)]

    def producers(self):
        return self.producer_sums.content()

    def largest(self):
        return (<const char*>self.largest_records)[:self.largest_count * sizeof(Largest)]

    def top_keys(self, int64_t least):
        cdef Growing chosen = Growing()
        cdef Py_ssize_t i
        for i in range(self.known_keys.count):
            if self.known_keys.rows[i * OF_KEY_VALUES + OF_KEY_COUNT] >= least:
                memcpy(chosen.add(8 * OF_KEY_VALUES), self.known_keys.rows + i * OF_KEY_VALUES, 8 * OF_KEY_VALUES)
        return (<const char*>chosen.memory)[:chosen.used] if chosen.used else b""

    def take_hashes(self):
        taken = (<const char*>self.dropped.memory)[:self.dropped.used] if self.dropped.used else b""
        self.dropped.used = 0
        return taken

    def hashes(self):
        cdef Growing firsts = Growing()
        cdef Py_ssize_t i
        for i in range(self.known_keys.count):
            (<int64_t*>firsts.add(8))[0] = self.known_keys.rows[i * OF_KEY_VALUES]
        return (<const char*>firsts.memory)[:firsts.used] if firsts.used else b""


cdef int64_t headers_size_of(RecordView* view) noexcept nogil:
    """Return bytes of the keys and values of a record's headers."""
    cdef Cursor headers = view.headers
    cdef int64_t size = 0, i
    for i in range(view.slots[HEADER_COUNT]):
        size += max(sized(&headers, varint(&headers)).size, 0)
        size += max(sized(&headers, varint(&headers)).size, 0)
    return size
