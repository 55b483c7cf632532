"""Printed lines of indexes and producer snapshots of DumpLogSegments by release."""

from enum import Enum
from typing import NamedTuple

from kseg.releases import Release, Since

OFFSET_INDEX_LINE = "offset: {} position: {}\n"
TIME_INDEX_LINE = "timestamp: {} offset: {}\n"
TRANSACTION_INDEX_LINE = "version: {} producerId: {} firstOffset: {} lastOffset: {} lastStableOffset: {}\n"
SANITY_PASSED = "{path} passed sanity check."
IS_EMPTY = "{path} is empty."

SAYS_EMPTY: Since[bool] = (((0, 8), False), ((2, 8), True))
"""True if the tool reports an .index without entries as empty, even instead of its sanity check."""


class Compared(Enum):
    """The offset of the batch at an .index entry's position that must equal the entry's offset."""

    FIRST_RECORD = "offset of its first record"
    LAST_OFFSET = "last offset"


COMPARED: Since[Compared] = (((0, 8), Compared.FIRST_RECORD), ((2, 3), Compared.LAST_OFFSET))

STOPS_BEFORE_ZERO_ENTRY: Since[bool] = (((0, 8), False), ((2, 3), True))
"""True if a zero entry (after the first) ends the dump at once.

Earlier releases compare it first; then an .index ends, but a .timeindex only if a batch ends at the base offset.

"""

LAST_OFFSET_ABOVE_BASE: Since[bool] = (((0, 8), True), ((2, 0), False))
"""True if an .index needs a last offset above the base offset to be sane; later releases allow equality."""


class ProducerLine(NamedTuple):
    """A producer's line: its constant part, and the part for a producer that has a batch left."""

    producer: str
    last_batch: str


_PRODUCER = (
    "producerId: {producerId} producerEpoch: {producerEpoch} coordinatorEpoch: {coordinatorEpoch}"
    " currentTxnFirstOffset: {currentTxnFirstOffset} "
)
_LAST_BATCH = (
    "firstSequence: {firstSequence} lastSequence: {lastSequence} lastOffset: {lastOffset} offsetDelta: {offsetDelta}"
    " timestamp: {timestamp}"
)

PRODUCER_LINES: Since[ProducerLine] = (
    (
        (0, 11),
        ProducerLine(
            "producerId: {producerId} producerEpoch: {producerEpoch} lastSequence: {lastSequence}"
            " lastOffset: {lastOffset} offsetDelta: {offsetDelta} lastTimestamp: {timestamp}"
            " coordinatorEpoch: {coordinatorEpoch} currentTxnFirstOffset: {currentTxnFirstOffset}",
            "",
        ),
    ),
    (
        (1, 0),
        ProducerLine(
            _PRODUCER,
            "cachedMetadata: Queue(BatchMetadata(firstSeq={firstSequence}, lastSeq={lastSequence},"
            " firstOffset={firstOffset}, lastOffset={lastOffset}, timestamp={timestamp}))",
        ),
    ),
    ((1, 0, 2), ProducerLine(_PRODUCER, _LAST_BATCH)),
    ((3, 1), ProducerLine(_PRODUCER + "lastTimestamp: {timestamp} ", _LAST_BATCH)),
    ((4, 3), ProducerLine(_PRODUCER + "lastTimestamp: {timestamp}", " " + _LAST_BATCH)),
)

ALWAYS_SHOWS_LAST_BATCH: Since[bool] = (((0, 11), True), ((2, 4), False))
"""True if a producer without a batch (last offset -1) shows the fields of one."""

SEQUENCE_WRAPS: Since[bool] = (((0, 11), False), ((2, 1), True))
"""True if a first sequence below 0 wraps around to 2147483647."""


class OptionalWords(NamedTuple):
    """Format a number that may be missing."""

    missing: str
    present: str


OPTIONAL: Since[OptionalWords] = (
    ((0, 11), OptionalWords("None", "Some({})")),
    ((3, 5), OptionalWords("OptionalLong.empty", "OptionalLong[{}]")),
)

WRONG_CRC: Since[str] = (
    (
        (0, 11),
        "Snapshot file '{path}' is corrupted (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}",
    ),
    ((0, 11, 0, 1), "Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}"),
)
WRONG_SCHEMA = "Snapshot failed schema validation: {reason}"
UNKNOWN_VERSION: Since[str] = (
    ((0, 11), "Snapshot contained an unknown file version {version}"),
    ((4, 0), WRONG_SCHEMA.format(reason="Snapshot contained an unknown file version {version}")),
)

VERSION_COMES_FIRST: Since[bool] = (((0, 11), False), ((4, 0), True))
"""True if the version is checked before the rest is parsed."""


class SchemaReasons(NamedTuple):
    """Reasons for an unreadable snapshot: it ends within its own or a producer's field, or its count is impossible."""

    cut_field: str
    cut_producer: str
    negative_count: str
    large_count: str


NAMES_FIELDS = Release((3, 9, 2))
"""The last release whose tool names the unreadable field, as kseg's own messages do."""

SCHEMA_REASONS: Since[SchemaReasons] = (
    (
        (0, 11),
        SchemaReasons(
            "Error reading field '{field}': java.nio.BufferUnderflowException",
            "Error reading field 'producer_entries': Error reading field '{field}': java.nio.BufferUnderflowException",
            "Error reading field 'producer_entries': Array size {count} cannot be negative",
            "Error reading field 'producer_entries': Error reading array of size {count}, only {available} bytes"
            " available",
        ),
    ),
    (
        (4, 0),
        SchemaReasons(
            "null",
            "null",
            "non-nullable field producerEntries was serialized as null",
            "Tried to allocate a collection of size {count}, but there are only {available} bytes remaining.",
        ),
    ),
)
