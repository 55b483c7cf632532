"""Entries of offset, time and transaction indexes, producer snapshots, and sizes of a remote segment's chunks."""

from construct import (
    Array,
    Bytes,
    ConstructError,
    Default,
    GreedyBytes,
    IfThenElse,
    Int8ub,
    Int32sb,
    Struct,
    Terminated,
    len_,
    this,
)

from kseg.errors import FileError, plural
from kseg.formats.grammar import grammars
from kseg.formats.header_fields import (
    OFFSET_INDEX_ENTRY_FIELDS,
    PRODUCER_ENTRY_FIELDS,
    PRODUCER_SNAPSHOT_HEADER_FIELDS,
    TIME_INDEX_ENTRY_FIELDS,
    TRANSACTION_INDEX_ENTRY_FIELDS,
    AbortedTransaction,
    OffsetIndexEntry,
    TimeIndexEntry,
)

__all__ = [
    "ABORTED_TRANSACTION",
    "OFFSET_INDEX_ENTRY",
    "TIME_INDEX_ENTRY",
    "AbortedTransaction",
    "OffsetIndexEntry",
    "TimeIndexEntry",
]

OFFSET_INDEX_ENTRY = Struct(*grammars(OFFSET_INDEX_ENTRY_FIELDS))
"""8 bytes. Source: OffsetIndex."""

TIME_INDEX_ENTRY = Struct(*grammars(TIME_INDEX_ENTRY_FIELDS))
"""12 bytes. Source: TimeIndex."""

ABORTED_TRANSACTION = Struct(*grammars(TRANSACTION_INDEX_ENTRY_FIELDS))
"""34 bytes. Source: AbortedTxn."""


PRODUCER_ENTRY = Struct(*grammars(PRODUCER_ENTRY_FIELDS))
"""46 bytes."""

PRODUCER_SNAPSHOT = Struct(
    *grammars(PRODUCER_SNAPSHOT_HEADER_FIELDS, entries_count=len_(this.entries)),
    "entries" / Array(this.entries_count, PRODUCER_ENTRY) * "one per producer",
    "trailing" / Default(GreedyBytes, b"") * "bytes after the last entry; Kafka never writes any, and ignores them",
)
"""The complete file; the CRC is built as given. Source: ProducerStateManager."""


_FEW = 1
MOST_VALUE_BYTES = 4
_SIZES_OVERHEAD = 13
"""Bytes of the count, the base, the size of a value, and the last chunk's size."""

CHUNK_SIZES = Struct(
    "count" / Int32sb * "how many chunks the segment has",
    "last" / IfThenElse(this.count == _FEW, Int32sb, Bytes(0)) * "size of the only chunk",
)
_SEVERAL = Struct(
    "count" / Int32sb * "how many chunks the segment has: two or more",
    "base" / Int32sb * "size of the smallest chunk but the last",
    "value_size" / Int8ub * "bytes of a value, 1 to 4",
    "values" / Bytes((this.count - 1) * this.value_size) * "sizes of all chunks but the last, minus the base",
    "last" / Int32sb * "size of the last chunk",
    Terminated,
)
"""Source: ChunkSizesBinaryCodec of tiered-storage-for-apache-kafka."""


def most_bytes_of_sizes(count: int) -> int:
    """Return the most bytes for the sizes of `count` chunks."""
    return _SIZES_OVERHEAD + MOST_VALUE_BYTES * count


def parse_chunk_sizes(content: bytes, count: int) -> tuple[int, ...]:
    """Parse the sizes of `count` chunks. Raises KsegError for other contents."""
    try:
        fields = (_SEVERAL if count > _FEW else CHUNK_SIZES).parse(content)
    except ConstructError as error:
        raise FileError("the sizes of chunks can't be read") from error
    if fields.count != count:
        raise FileError(f"there are sizes of {fields.count} chunks, but the segment has {count}")
    if count <= _FEW:
        return (fields.last,) if count else ()
    size = fields.value_size
    if not 1 <= size <= MOST_VALUE_BYTES:
        raise FileError(f"the size of a chunk can't take {plural(size, 'byte')}")
    values = (int.from_bytes(fields["values"][at : at + size]) for at in range(0, size * (count - 1), size))
    return (*(fields.base + value for value in values), fields.last)
