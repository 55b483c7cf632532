"""The contract of both kernels for statistics of records, and for compaction."""

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from kseg.kernel.contract import Buffer, Rows
from kseg.kernel.entry_points import Bodies
from kseg.kernel.fold_contract import FoldingKernel, ProducerTable

if TYPE_CHECKING:
    from collections.abc import Sequence


ENTRY_SIZE = 24
"""Bytes of a slot: a key's digest and its offset."""
DIGEST_SIZE = 16


class OffsetTable(Protocol):
    """Maps the digests of keys to offsets from 0 on, in given memory.

    latest_offset: the table has all keys of the log up to here; -1 at first. is_full: there is no room for another key.
    kept, superseded, without_key: records that `keep` and `rest` have counted. producers: active ones; the batch with
    the last record of one stays, as does the batch before end_offset.
    """

    latest_offset: int
    end_offset: int
    producers: ProducerTable
    is_full: bool
    kept: int
    superseded: int
    without_key: int

    def __init__(self, memory: Buffer, most: int, digest: Callable[[bytes], bytes], function: int = 0) -> None:
        """Take zeroed memory: slots of ENTRY_SIZE bytes, more than the `most` keys that it may hold.

        digest returns the DIGEST_SIZE bytes that identify a key. function is the address of a C function that does the
        same, or 0: it takes a key, its size and the place for the digest, and returns NULL on failure.
        """

    def put(self, key: bytes, offset: int) -> None:
        """Set a key's offset. Raises IndexError if there is no room."""

    def get(self, key: bytes) -> int:
        """Return a key's offset, -1 if the table doesn't have it."""

    def add(
        self,
        buffer: memoryview,
        rows: Rows,
        first: int,
        last: int,
        bodies: Bodies | None,
        first_body: int,
        first_offset: int,
    ) -> int:
        """Set the offsets of the keys of all records from `first_offset` on.

        Returns the row where it stopped: `last`, or the first row with a key for which there is no room, or whose
        records can't all be read. The table then has all preceding rows.
        """

    def keep(
        self,
        buffer: memoryview,
        rows: Rows,
        first: int,
        last: int,
        bodies: Bodies | None,
        first_body: int,
        target: bytearray,
        target_rows: Rows,
    ) -> tuple[int, int]:
        """Copy the batches that lose no record, and omit those that lose all.

        A record is superseded if the table has a larger offset for its key; records without a key are removed too. No
        record above `latest_offset` is removed. A batch that would stay and has a null value stops the call.

        The copies are written to `target`, as large as all rows together, and their rows to `target_rows`. Returns the
        row where it stopped: `last`, or the first row for the caller to handle, since it loses some records or has
        none, since its header stays, or since its records can't all be read; and the count of copies.
        """

    def rest(
        self, buffer: memoryview, rows: Rows, row: int, bodies: Bodies | None, first_body: int
    ) -> tuple[bytes, int, int, int] | None:
        """Return the rest of a v2 batch that loses some of its records.

        The result is the bytes of the records that stay, their number, the base timestamp to which their timestamps are
        now relative, and the largest of their timestamps. The base is the batch's delete horizon if it has one,
        otherwise the first remaining timestamp. Returns None, without counting, if no record stays, if a remaining
        record has a null value, if not all records can be read, or if it isn't a v2 batch.
        """


_OffsetTable: TypeAlias = OffsetTable


class CleaningKernel(FoldingKernel, Protocol):
    """A kernel with the part that compacts."""

    OffsetTable: type[_OffsetTable]


EXACT_BUCKETS = 64
"""Numbers below this have a bucket each."""
BUCKETS_A_DOUBLING = 32
"""Above, the number of buckets between a power of two and the next: none is wider than 1/32 of its numbers."""
BUCKETS = EXACT_BUCKETS + 57 * BUCKETS_A_DOUBLING
MOST_LARGEST = 10
"""Number of largest records whose places are kept."""
MOST_TIMES = 4096
"""Most separate stretches of time; if there are more, they are joined to longer ones."""
MOST_PRODUCERS = 4096
"""Most separate producers; the others share one entry."""
OTHER_PRODUCERS = -2
"""Id of the entry for the other producers."""
BATCH_SIZE = 16384
"""Bytes that `linger.ms` may fill: the default of a producer's `batch.size`."""
LINGERS_MS = (5, 20, 100)
WEEK_HOURS = 168
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
TIME_STEPS = (
    MINUTE_MS,
    5 * MINUTE_MS,
    15 * MINUTE_MS,
    HOUR_MS,
    6 * HOUR_MS,
    DAY_MS,
    7 * DAY_MS,
    70 * DAY_MS,
    700 * DAY_MS,
)
"""Lengths of stretches of time, in milliseconds."""


class Measure(IntEnum):
    """Measures that have a histogram."""

    BATCH_SIZE = 0
    "Bytes of a batch, as stored; for v0 and v1 of a wrapper or a message. Control batches aren't counted."
    BATCH_RECORDS = 1
    KEY_SIZE = 2
    VALUE_SIZE = 3
    HEADERS_SIZE = 4
    "Keys and values of a record's headers."
    RECORD_SIZE = 5
    "Key, value and headers."
    LATENESS = 6
    "Milliseconds of a record's timestamp before the largest so far, if it is before."


class OfHistogram(IntEnum):
    """Values at the beginning of a histogram; its buckets follow."""

    COUNT = 0
    SUM = 1
    LEAST = 2
    MOST = 3


class OfCodec(IntEnum):
    """Sums of the batches of a codec. UNCOMPRESSED_SIZE: of the bodies, STORED_SIZE: as stored."""

    BATCHES = 0
    RECORDS = 1
    STORED_SIZE = 2
    UNCOMPRESSED_SIZE = 3


class OfTime(IntEnum):
    """Sums of a stretch of time: its number since 1970, and sums of the batches whose largest timestamp is in it."""

    NUMBER = 0
    BATCHES = 1
    RECORDS = 2
    SIZE = 3


class OfProducer(IntEnum):
    """Values of a producer.

    FIRST_TIME is the base timestamp of its first batch, LAST_TIME the largest timestamp, -1 for none; EPOCH its last
    epoch, EPOCHS the number of changes of epoch; MARKERS batches that ended its transactions, which no other value
    counts. AFTER_…: the number of batches with each of LINGERS_MS.
    """

    ID = 0
    BATCHES = 1
    RECORDS = 2
    SIZE = 3
    FIRST_OFFSET = 4
    LAST_OFFSET = 5
    FIRST_TIME = 6
    LAST_TIME = 7
    EPOCH = 8
    EPOCHS = 9
    TRANSACTIONAL = 10
    MARKERS = 11
    AFTER_SHORT = 12
    AFTER_MIDDLE = 13
    AFTER_LONG = 14


class OfKey(IntEnum):
    """Values of a key: its hash, its records, their total size, its last record offset and size."""

    HASH = 0
    COUNT = 1
    SIZE = 2
    LAST_OFFSET = 3
    LAST_SIZE = 4


class Statistics(Protocol):
    """Sums of the batches of a partition, in the order of the log; batches with a wrong CRC are omitted.

    batches: all but control batches, size: of all. control_batches; records: not control records. largest_timestamp: of
    all batches' timestamps between the bounds, -1 for none. without_time: batches without a timestamp, beyond_time:
    with one out of bounds; append_time: batches with the broker's timestamps. transactional: batches, sparse: batches
    that lack offsets. magics: bit n for magic n.

    Only from records: null_keys, tombstones (a key and no value), tombstones_size, first_tombstone_time (-1: none),
    late: records before the largest timestamp. superseded: records whose key was written again, superseded_size. keys:
    number of known keys. dropped_below: some keys with fewer records, or some records of such a key, may be uncounted;
    0 if all are counted.
    """

    batches: int
    control_batches: int
    size: int
    records: int
    largest_timestamp: int
    without_time: int
    beyond_time: int
    append_time: int
    transactional: int
    sparse: int
    magics: int
    null_keys: int
    tombstones: int
    tombstones_size: int
    first_tombstone_time: int
    late: int
    superseded: int
    superseded_size: int
    keys: int
    dropped_below: int
    time_step: int

    def __init__(self, first_time: int, last_time: int, most_keys: int) -> None:
        """Take the bounds of timestamps, in milliseconds; timestamps outside aren't counted as such."""

    def take_headers(self, buffer: memoryview | bytes, rows: Rows, first: int, last: int) -> None:
        """Take the headers of rows first … last - 1; the buffer needs only these."""

    def take(
        self,
        buffer: memoryview,
        rows: Rows,
        first: int,
        last: int,
        bodies: "Bodies | Sequence[bytes | None] | None",
        first_body: int = -1,
    ) -> None:
        """Take rows first … last - 1 with their readable records."""

    def histogram(self, measure: int) -> bytes:
        """Return a histogram, int64: the values of OfHistogram, then BUCKETS counts."""

    def codecs(self) -> bytes:
        """Return the values of OfCodec for each of eight codecs, int64."""

    def times(self) -> bytes:
        """Return stretches of `time_step` milliseconds in the order of appearance: the values of OfTime, int64."""

    def week(self) -> bytes:
        """Return records and bytes of each hour of the week in UTC, from Monday on: WEEK_HOURS times two, int64."""

    def producers(self) -> bytes:
        """Return producers in the order of appearance: the values of OfProducer, int64."""

    def largest(self) -> bytes:
        """Return the largest records, largest first: size and offset, int64."""

    def top_keys(self, least: int) -> bytes:
        """Return keys with at least `least` records, in the order of appearance: the values of OfKey, int64."""

    def take_hashes(self) -> bytes:
        """Return hashes of keys that were dropped since the last call; with repetitions."""

    def hashes(self) -> bytes:
        """Return hashes of the known keys, in the order of appearance."""


_Statistics: TypeAlias = Statistics


class StatisticsKernel(CleaningKernel, Protocol):
    """A kernel with the part that computes statistics."""

    Statistics: type[_Statistics]


def bucket_of(number: int) -> int:
    """Return the bucket of a number of 0 or more."""
    if number < EXACT_BUCKETS:
        return number
    doublings = number.bit_length() - 1
    return EXACT_BUCKETS + (doublings - 6) * BUCKETS_A_DOUBLING + (number >> (doublings - 5) & (BUCKETS_A_DOUBLING - 1))


def bucket_bounds(bucket: int) -> tuple[int, int]:
    """Return the least and the largest number of a bucket."""
    if bucket < EXACT_BUCKETS:
        return bucket, bucket
    doublings, part = divmod(bucket - EXACT_BUCKETS, BUCKETS_A_DOUBLING)
    width = 1 << (doublings + 1)
    least = (BUCKETS_A_DOUBLING + part) * width
    return least, least + width - 1
