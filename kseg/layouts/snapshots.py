"""The lines of producer snapshots, release by release: a producer's, and those of a corrupt file.

Lines have Python's `{holes}`, named as the tool names the field.
"""

from typing import NamedTuple

from kseg.releases import Release, Since


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
"""Whether a producer without a batch (last offset -1) shows the fields of one."""

SEQUENCE_WRAPS: Since[bool] = (((0, 11), False), ((2, 1), True))
"""Whether a first sequence below 0 wraps around to 2147483647."""


class OptionalWords(NamedTuple):
    """Shows a number that may be missing."""

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
"""Whether the version is checked before the rest is parsed."""


class SchemaReasons(NamedTuple):
    """Why a snapshot can't be read: it ends within a field of its own or of a producer, or its count is impossible."""

    cut_field: str
    cut_producer: str
    negative_count: str
    large_count: str


NAMES_FIELDS = Release((3, 9, 2))
"""The last release whose tool says which field can't be read; kseg's own messages are those."""

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
