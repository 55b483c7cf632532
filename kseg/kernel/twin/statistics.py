"""Statistics of batches and their records, computed by the twin."""

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain

from kseg.formats.codes import BATCH_HEADER_SIZE, CODEC_MASK, compressed_body
from kseg.kernel.contract import MOST, Rows
from kseg.kernel.statistics_contract import (
    BATCH_SIZE,
    BUCKETS,
    HOUR_MS,
    LINGERS_MS,
    MOST_LARGEST,
    MOST_PRODUCERS,
    MOST_TIMES,
    OTHER_PRODUCERS,
    TIME_STEPS,
    WEEK_HOURS,
    Measure,
    OfCodec,
    OfHistogram,
    OfKey,
    OfProducer,
    OfTime,
    bucket_of,
)
from kseg.kernel.twin.headers import Header, int64, read_lone_header, rows_of
from kseg.kernel.twin.records import RecordValues, read_rows
from kseg.kernel.twin.rows import mix

_WORD = 8
_FIRST_HOUR = 72
"""Hour of the week at the epoch: 1970 began on a Thursday."""


def hash_of(key: bytes) -> int:
    """Return a hash of 64 bits: eight bytes at a time, little-endian."""
    result = mix(len(key))
    for at in range(0, len(key) + 1, _WORD):
        result = mix(result ^ int.from_bytes(key[at : at + _WORD], "little"))
    return int64(result)


class Statistics:
    """The statistics of the contract."""

    def __init__(self, first_time: int, last_time: int, most_keys: int) -> None:
        self._first_time, self._last_time, self._most_keys = first_time, last_time, max(most_keys, 1)
        self.batches = self.control_batches = self.size = self.records = 0
        self.largest_timestamp = self.first_tombstone_time = -1
        self.without_time = self.beyond_time = self.append_time = self.transactional = self.sparse = self.magics = 0
        self.null_keys = self.tombstones = self.tombstones_size = 0
        self.late = self.superseded = self.superseded_size = self.dropped_below = 0
        self.time_step = TIME_STEPS[0]
        self._histograms = [[0] * (len(OfHistogram) + BUCKETS) for _ in Measure]
        self._codecs = [[0] * len(OfCodec) for _ in range(CODEC_MASK + 1)]
        self._week = [[0, 0] for _ in range(WEEK_HOURS)]
        self._times: dict[int, list[int]] = {}
        self._producers: dict[int, list[int]] = {}
        self._open_batches: dict[int, list[tuple[int, int]]] = {}
        self._keys: dict[int, list[int]] = {}
        self._dropped: list[int] = []
        self._largest: list[tuple[int, int]] = []

    @property
    def keys(self) -> int:
        """Number of known keys."""
        return len(self._keys)

    def take_headers(self, buffer: memoryview | bytes, rows: Rows, first: int, last: int) -> None:
        """Take the headers of the given rows; see the contract."""
        for at, size, is_valid in rows_of(rows, first, last):
            header = read_lone_header(buffer, at, size, is_valid, at)
            if is_valid:
                self._take_batch(header, 0 if header.is_wrapper else header.records_count, -1, -1)

    def take(
        self,
        buffer: memoryview,
        rows: Rows,
        first: int,
        last: int,
        bodies: Sequence[bytes | None] | None,
        first_body: int = -1,
    ) -> None:
        """Take rows with their records; see the contract."""
        for row in read_rows(buffer, rows, first, last, 0, bodies, first_body):
            header, walked = row.header, 0
            if not header.is_valid:
                continue
            for record in row.records():
                if isinstance(record, RecordValues) and not header.is_control:
                    self._take_record(record, header.timestamp_type)
                    walked += 1
            _, _, start, end = compressed_body(row.content, 0, header.size)
            stored = end - start if start >= 0 else 0
            whole = stored if header.codec == 0 else -1 if row.body is None else len(row.body)
            self._take_batch(header, header.records_count if header.is_batch else walked, stored, whole)

    # --- batches -----------------------------------------------------------------------------------------------------

    def _take_batch(self, header: Header, count: int, stored: int, whole: int) -> None:
        """Add a batch: its records, and the sizes of its stored and its decompressed body, or -1 if unknown."""
        count = max(count, 0)
        self.magics |= 1 << min(header.magic & 127, 62)
        self.size += header.size
        producer = self._producer(header.producer_id)
        if producer[OfProducer.EPOCH] != header.producer_epoch:
            producer[OfProducer.EPOCHS] += producer[OfProducer.BATCHES] + producer[OfProducer.MARKERS] > 0
            producer[OfProducer.EPOCH] = header.producer_epoch
        self._take_time(header, 0 if header.is_control else count)
        if header.is_control:
            self.control_batches += 1
            producer[OfProducer.MARKERS] += 1
            return
        self.batches += 1
        self.records += count
        self.transactional += header.is_transactional
        span = min(int64(header.last_offset - header.base_offset) + 1, MOST)
        self.sparse += header.is_batch and count < span
        self._put(Measure.BATCH_SIZE, header.size)
        if count > 0 or header.is_batch:
            self._put(Measure.BATCH_RECORDS, count)
        sums = (1, count, max(stored, 0), max(whole, 0))
        codec = header.codec
        self._codecs[codec] = [known + more for known, more in zip(self._codecs[codec], sums, strict=True)]
        self._take_producer(producer, header, count)

    def _take_time(self, header: Header, count: int) -> None:
        time = header.max_timestamp
        self.append_time += header.append_time is not None
        if time < 0:
            self.without_time += 1
            return
        if not self._first_time <= time <= self._last_time:
            self.beyond_time += 1
            return
        self.largest_timestamp = max(self.largest_timestamp, time)
        while time // self.time_step not in self._times and len(self._times) >= MOST_TIMES:
            self._lengthen_times()
        _add(self._times, time // self.time_step, (1, count, header.size))
        hour = self._week[(time // HOUR_MS + _FIRST_HOUR) % WEEK_HOURS]
        hour[0] += count
        hour[1] += header.size

    def _lengthen_times(self) -> None:
        """Merge short intervals into longer ones."""
        longer = min((step for step in TIME_STEPS if step > self.time_step), default=10 * self.time_step)
        before, self._times = self._times, {}
        for number, (_, *sums) in before.items():
            _add(self._times, number * self.time_step // longer, sums)
        self.time_step = longer

    def _producer(self, producer_id: int) -> list[int]:
        if producer_id not in self._producers and len(self._producers) >= MOST_PRODUCERS:
            producer_id = OTHER_PRODUCERS
        return self._producers.setdefault(producer_id, [producer_id, 0, 0, 0, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0])

    def _take_producer(self, producer: list[int], header: Header, count: int) -> None:
        if producer[OfProducer.BATCHES] == 0:
            producer[OfProducer.FIRST_OFFSET] = header.base_offset
            producer[OfProducer.FIRST_TIME] = max(header.base_timestamp, -1)
        producer[OfProducer.BATCHES] += 1
        producer[OfProducer.RECORDS] += count
        producer[OfProducer.SIZE] += header.size
        producer[OfProducer.LAST_OFFSET] = max(producer[OfProducer.LAST_OFFSET], header.last_offset)
        producer[OfProducer.LAST_TIME] = max(producer[OfProducer.LAST_TIME], header.max_timestamp)
        producer[OfProducer.TRANSACTIONAL] += header.is_transactional
        self._linger(producer, header)

    def _linger(self, producer: list[int], header: Header) -> None:
        """Count the batches that a producer would have sent for each time of lingering."""
        is_timed = header.is_batch and header.append_time is None and header.base_timestamp >= 0
        batches = self._open_batches.setdefault(producer[OfProducer.ID], [(0, 0)] * len(LINGERS_MS))
        for number, linger in enumerate(LINGERS_MS):
            began, size = batches[number]
            waited = int64(header.base_timestamp - began)
            if is_timed and size > 0 and 0 <= waited <= linger and header.size <= BATCH_SIZE - size:
                batches[number] = began, size + header.size - BATCH_HEADER_SIZE
                continue
            producer[OfProducer.AFTER_SHORT + number] += 1
            batches[number] = header.base_timestamp, header.size if is_timed else 0

    # --- records -----------------------------------------------------------------------------------------------------

    def _put(self, measure: Measure, number: int) -> None:
        """Add a number of 0 or more to a histogram."""
        histogram = self._histograms[measure]
        if histogram[OfHistogram.COUNT] == 0:
            histogram[OfHistogram.LEAST] = histogram[OfHistogram.MOST] = number
        histogram[OfHistogram.COUNT] += 1
        histogram[OfHistogram.SUM] = min(histogram[OfHistogram.SUM] + number, MOST)
        histogram[OfHistogram.LEAST] = min(histogram[OfHistogram.LEAST], number)
        histogram[OfHistogram.MOST] = max(histogram[OfHistogram.MOST], number)
        histogram[len(OfHistogram) + bucket_of(number)] += 1

    def _take_record(self, record: RecordValues, timestamp_type: int) -> None:
        key, value, headers = record.key, record.value, record.headers
        headers_size = sum(len(name) + len(content or b"") for name, content in headers)
        size = len(key or b"") + len(value or b"") + headers_size
        if key is None:
            self.null_keys += 1
        else:
            self._put(Measure.KEY_SIZE, len(key))
        if value is not None:
            self._put(Measure.VALUE_SIZE, len(value))
        if len(headers):
            self._put(Measure.HEADERS_SIZE, headers_size)
        self._put(Measure.RECORD_SIZE, size)
        self._largest = sorted([*self._largest, (size, record.offset)], key=lambda each: -each[0])[:MOST_LARGEST]
        self._take_record_time(record.timestamp, timestamp_type)
        if key is not None:
            if value is None:
                self._take_tombstone(size, record.timestamp)
            self._take_key(hash_of(key), size, record.offset)

    def _take_record_time(self, time: int, timestamp_type: int) -> None:
        if timestamp_type != 0 or time < 0 or not self._first_time <= time <= self._last_time:
            return
        if time < self.largest_timestamp:
            self.late += 1
            self._put(Measure.LATENESS, self.largest_timestamp - time)
        else:
            self.largest_timestamp = time

    def _take_tombstone(self, size: int, time: int) -> None:
        self.tombstones += 1
        self.tombstones_size += size
        if time >= 0 and (self.first_tombstone_time < 0 or time < self.first_tombstone_time):
            self.first_tombstone_time = time

    def _take_key(self, key_hash: int, size: int, offset: int) -> None:
        key = self._keys.get(key_hash)
        if key is None:
            if len(self._keys) >= self._most_keys:
                self._drop_keys()
            key = self._keys[key_hash] = [key_hash, 0, 0, 0, 0]
        else:
            self.superseded += 1
            self.superseded_size += key[OfKey.LAST_SIZE]
        key[OfKey.COUNT] += 1
        key[OfKey.SIZE] += size
        key[OfKey.LAST_OFFSET], key[OfKey.LAST_SIZE] = offset, size

    def _drop_keys(self) -> None:
        """Drop half of the keys or more: those with the fewest records."""
        least = 2
        while 2 * sum(key[OfKey.COUNT] < least for key in self._keys.values()) < len(self._keys):
            least *= 2
        self._dropped += [key[OfKey.HASH] for key in self._keys.values() if key[OfKey.COUNT] < least]
        self._keys = {place: key for place, key in self._keys.items() if key[OfKey.COUNT] >= least}
        self.dropped_below += least

    # --- results -----------------------------------------------------------------------------------------------------

    def histogram(self, measure: int) -> bytes:
        """Return a histogram; see the contract."""
        return _pack(self._histograms[Measure(measure)])

    def codecs(self) -> bytes:
        """Return sums by codec; see the contract."""
        return _pack(chain.from_iterable(self._codecs))

    def times(self) -> bytes:
        """Return sums by stretches of time; see the contract."""
        return _pack(chain.from_iterable(self._times.values()))

    def week(self) -> bytes:
        """Return sums by hours of the week; see the contract."""
        return _pack(chain.from_iterable(self._week))

    def producers(self) -> bytes:
        """Return the values of each producer; see the contract."""
        return _pack(chain.from_iterable(self._producers.values()))

    def largest(self) -> bytes:
        """Return the largest records; see the contract."""
        return _pack(chain.from_iterable(self._largest))

    def top_keys(self, least: int) -> bytes:
        """Return keys with many records; see the contract."""
        return _pack(chain.from_iterable(key for key in self._keys.values() if key[OfKey.COUNT] >= least))

    def take_hashes(self) -> bytes:
        """Return hashes of dropped keys; see the contract."""
        taken, self._dropped = _pack(self._dropped), []
        return taken

    def hashes(self) -> bytes:
        """Return hashes of the known keys; see the contract."""
        return _pack(self._keys)


def _add(sums: dict[int, list[int]], number: int, more: Iterable[int]) -> None:
    """Add to the sums of a stretch of time."""
    known = sums.setdefault(number, [number] + [0] * (len(OfTime) - 1))
    sums[number] = [number, *(each + other for each, other in zip(known[1:], more, strict=True))]


def _pack(numbers: Iterable[int]) -> bytes:
    return array("q", numbers).tobytes()
