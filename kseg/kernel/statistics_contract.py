"""The contract of both kernels for statistics of records, and for compaction."""

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from kseg.kernel.contract import Bodies, Buffer, Rows
from kseg.kernel.fold_contract import FoldingKernel, ProducerTable

if TYPE_CHECKING:
    from collections.abc import Sequence


ENTRY_SIZE = 24
"""Bytes of a slot: a key's digest and its offset."""
DIGEST_SIZE = 16


class OffsetTable(Protocol):
    """Maps the digests of keys to offsets from 0 on, in memory that is given.

    latest_offset: it has all keys of the log up to here; -1 at first. is_full: there is no room for another key.
    kept, superseded, without_key: records that `keep` and `rest` have judged. producers: active ones; the batch with
    the last record of one isn't left out, nor is the batch before end_offset.
    """

    latest_offset: int
    end_offset: int
    producers: ProducerTable
    is_full: bool
    kept: int
    superseded: int
    without_key: int

    def __init__(self, memory: Buffer, most: int, digest: Callable[[bytes], bytes], function: int = 0) -> None:
        """Takes memory that is all zero: slots of ENTRY_SIZE bytes, more than the `most` keys that it may hold.

        digest gives the DIGEST_SIZE bytes by which keys are told apart. function is the address of a C function that
        does the same, or 0: it takes a key, its size and where to put the digest, and returns NULL if it can't.
        """

    def put(self, key: bytes, offset: int) -> None:
        """Sets a key's offset. Raises IndexError if there is no room."""

    def get(self, key: bytes) -> int:
        """A key's offset, -1 if it isn't there."""

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
        """Sets the offsets of the keys of all records from `first_offset` on.

        Gives the row where it stopped: `last`, or the first with a key for which there is no room, or whose records
        can't all be read. What is before that is in the table then.
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
        """Copies the batches that lose no record, and leaves out those that lose all.

        A record is superseded if the table has a larger offset for its key; those without a key go too. None of those
        above `latest_offset` goes. A batch with a null value that would stay has to be looked at.

        The copies go to `target`, as large as all rows together, and their rows to `target_rows`. Gives the row where
        it stopped: `last`, or the first that has to be looked at, since it loses some records or has none, since its
        header stays, or since its records can't all be read; and the count of copies.
        """

    def rest(
        self, buffer: memoryview, rows: Rows, row: int, bodies: Bodies | None, first_body: int
    ) -> tuple[bytes, int, int, int] | None:
        """What is left of a v2 batch that loses some of its records.

        Gives the bytes of the records that stay, how many they are, the base timestamp to which theirs are relative
        now, and the largest of theirs. That base is the batch's delete horizon if it has one, else the first timestamp
        left. None, and nothing is counted, if no record stays, one of those that do has a null value, not all can be
        read, or it isn't a v2 batch.
        """


_OffsetTable: TypeAlias = OffsetTable


class CleaningKernel(FoldingKernel, Protocol):
    """A kernel, with the part that compacts."""

    OffsetTable: type[_OffsetTable]


EXACT_BUCKETS = 64
"""Numbers below this have a bucket each."""
BUCKETS_A_DOUBLING = 32
"""Above, so many buckets lie between a power of two and the next: none is wider than a thirty-second of its numbers."""
BUCKETS = EXACT_BUCKETS + 57 * BUCKETS_A_DOUBLING
MOST_LARGEST = 10
"""Records of which the place is kept since they are the largest."""
MOST_TIMES = 4096
"""Stretches of time that are told apart; then they are joined to longer ones."""
MOST_PRODUCERS = 4096
"""Producers that are told apart; the others are taken for one."""
OTHER_PRODUCERS = -2
"""The id of these."""
BATCH_SIZE = 16384
"""What `linger.ms` may fill: the default of a producer's `batch.size`."""
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
"""Lengths of stretches of time, milliseconds."""


class Measure(IntEnum):
    """What there is a histogram of."""

    BATCH_SIZE = 0
    "Bytes of a batch, as it is stored; of v0 and v1 of a wrapper or a message. Control batches aren't counted."
    BATCH_RECORDS = 1
    KEY_SIZE = 2
    VALUE_SIZE = 3
    HEADERS_SIZE = 4
    "Keys and values of a record's headers."
    RECORD_SIZE = 5
    "Key, value and headers."
    LATENESS = 6
    "Milliseconds that a record's time lies before the largest so far, of those that do."


class OfHistogram(IntEnum):
    """What a histogram begins with; its buckets follow."""

    COUNT = 0
    SUM = 1
    LEAST = 2
    MOST = 3


class OfCodec(IntEnum):
    """Sums of a codec's batches. UNCOMPRESSED_SIZE: of the bodies, STORED_SIZE: as they are stored."""

    BATCHES = 0
    RECORDS = 1
    STORED_SIZE = 2
    UNCOMPRESSED_SIZE = 3


class OfTime(IntEnum):
    """Sums of a stretch of time: its number from 1970 on, and of the batches whose largest time is in it."""

    NUMBER = 0
    BATCHES = 1
    RECORDS = 2
    SIZE = 3


class OfProducer(IntEnum):
    """What is known of a producer.

    FIRST_TIME is the base timestamp of its first batch, LAST_TIME the largest time, -1 for none; EPOCH its last one,
    EPOCHS how often another one came; MARKERS batches that ended its transactions, which no other value counts.
    AFTER_…: into how many batches its batches would have been put by each of LINGERS_MS.
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
    """What is known of a key: its hash, its records, their sizes together, its last record's offset and size."""

    HASH = 0
    COUNT = 1
    SIZE = 2
    LAST_OFFSET = 3
    LAST_SIZE = 4


class Statistics(Protocol):
    """What the batches of a partition add up to, taken in the order of the log; those whose CRC is wrong are left out.

    batches: all but control batches, size: of all. control_batches; records: not control records. largest_timestamp:
    of all batches' times between the bounds, -1 for none. without_time: batches without a time, beyond_time: with one
    out of bounds; append_time: batches with the broker's times. transactional: batches, sparse: batches that lack
    offsets. magics: bit n for magic n.

    Only from records: null_keys, tombstones (a key and no value), tombstones_size, first_tombstone_time (-1: none),
    late: records behind the largest time. superseded: records whose key came again, superseded_size. keys: how many are
    known; dropped_below: of keys with fewer records some, or some of a key's records, may not be counted; 0 while
    all are.
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
        """Starts with nothing. Times before the first or after the last one aren't taken for times; milliseconds."""

    def take_headers(self, buffer: memoryview | bytes, rows: Rows, first: int, last: int) -> None:
        """Takes the headers of rows first … last - 1; no more has to lie in the buffer."""

    def take(
        self,
        buffer: memoryview,
        rows: Rows,
        first: int,
        last: int,
        bodies: "Bodies | Sequence[bytes | None] | None",
        first_body: int = -1,
    ) -> None:
        """Takes rows first … last - 1 with their records, as far as these can be read."""

    def histogram(self, measure: int) -> bytes:
        """A histogram, int64: what OfHistogram names, then BUCKETS counts."""

    def codecs(self) -> bytes:
        """Eight times what OfCodec names, int64."""

    def times(self) -> bytes:
        """Stretches of `time_step` milliseconds in the order in which they were met: what OfTime names, int64."""

    def week(self) -> bytes:
        """Records and bytes of each hour of the week in UTC, from Monday on: WEEK_HOURS times two, int64."""

    def producers(self) -> bytes:
        """Producers in the order in which they were met: what OfProducer names, int64."""

    def largest(self) -> bytes:
        """The largest records, the largest first: size and offset, int64."""

    def top_keys(self, least: int) -> bytes:
        """Keys with at least so many records, in the order in which they were met: what OfKey names, int64."""

    def take_hashes(self) -> bytes:
        """Hashes of keys that had to be dropped since this was asked last; with repetitions."""

    def hashes(self) -> bytes:
        """Hashes of the keys that are known, in the order in which they were met."""


_Statistics: TypeAlias = Statistics


class StatisticsKernel(CleaningKernel, Protocol):
    """A kernel, with the part that adds up."""

    Statistics: type[_Statistics]


def bucket_of(number: int) -> int:
    """The bucket of a number of 0 or more."""
    if number < EXACT_BUCKETS:
        return number
    doublings = number.bit_length() - 1
    return EXACT_BUCKETS + (doublings - 6) * BUCKETS_A_DOUBLING + (number >> (doublings - 5) & (BUCKETS_A_DOUBLING - 1))


def bucket_bounds(bucket: int) -> tuple[int, int]:
    """The least and the largest number of a bucket."""
    if bucket < EXACT_BUCKETS:
        return bucket, bucket
    doublings, part = divmod(bucket - EXACT_BUCKETS, BUCKETS_A_DOUBLING)
    width = 1 << (doublings + 1)
    least = (BUCKETS_A_DOUBLING + part) * width
    return least, least + width - 1
