"""Producer snapshots (.snapshot): the state of idempotent and transactional producers up to an offset."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from construct import (
    Array,
    Default,
    GreedyBytes,
    Int16sb,
    Int32sb,
    Int32ub,
    Int64sb,
    Rebuild,
    Struct,
    len_,
    this,
)

from kseg.errors import KsegError

CRC_START = 6
"""Position of the first byte that the CRC covers; it covers all from there to the file's end."""

PRODUCER_ENTRY = Struct(
    "producer_id" / Int64sb * "the producer's id",
    "epoch" / Int16sb * "the producer's epoch",
    "last_sequence" / Int32sb * "last sequence of its last data batch; -1 none",
    "last_offset" / Int64sb * "last offset of that batch; -1 none",
    "offset_delta" / Int32sb * "last offset minus first offset of that batch",
    "timestamp" / Int64sb * "max timestamp of that batch, in milliseconds",
    "coordinator_epoch" / Int32sb * "coordinator epoch of its last marker; -1 none",
    "current_txn_first_offset" / Int64sb * "first offset of its open transaction; -1 none",
)
"""46 bytes."""

_HEADER = (
    "version" / Int16sb * "version of the file: 1",
    "crc" / Int32ub * "CRC-32C of all bytes behind it",
    "entries_count" / Rebuild(Int32sb, len_(this.entries)) * "producers in the file",
)

PRODUCER_SNAPSHOT = Struct(
    *_HEADER,
    "entries" / Array(this.entries_count, PRODUCER_ENTRY) * "one per producer",
    "trailing" / Default(GreedyBytes, b"") * "bytes behind the last entry, which Kafka never writes and ignores",
)
"""The whole file; the CRC is built as given. Source: ProducerStateManager."""


@dataclass(frozen=True, slots=True)
class ProducerEntry:
    """State of one producer; fields as in PRODUCER_ENTRY, which gives their meaning."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


@dataclass(frozen=True, slots=True)
class ProducerSnapshotFile:
    """What a .snapshot holds, with both CRCs: they differ in a damaged file."""

    version: int
    stored_crc: int
    computed_crc: int
    entries: tuple[ProducerEntry, ...]

    @property
    def is_valid(self) -> bool:
        """Whether the stored CRC is that of the bytes."""
        return self.stored_crc == self.computed_crc


class SnapshotSchemaError(KsegError):
    """The bytes of a producer snapshot end inside a field, or its count can't be true.

    `field` names the field of PRODUCER_SNAPSHOT or PRODUCER_ENTRY that can't be read, `position` is where it begins,
    `available` the bytes from there (behind the count, for `entries_count`) to the end; `count` is what the file
    claims where that is the reason, else None. Kafka's tool reports such a file as "failed schema validation".
    """

    def __init__(self, message: str, *, field: str, position: int, available: int, count: int | None = None) -> None:
        super().__init__(message, position=position)
        self.field = field
        self.available = available
        self.count = count


def parse_producer_snapshot(content: bytes) -> ProducerSnapshotFile:
    """The producers in a .snapshot's bytes, with its version and both CRCs.

    An unknown version and a wrong CRC are given, not raised: the layout of the file has never changed. Raises
    SnapshotSchemaError where the file is too short, or its count is negative or beyond the bytes that are there.
    """
    from crc32c import crc32c

    _check_sizes(content)
    fields = PRODUCER_SNAPSHOT.parse(content)
    names = ProducerEntry.__dataclass_fields__
    return ProducerSnapshotFile(
        version=fields.version,
        stored_crc=fields.crc,
        computed_crc=crc32c(content[CRC_START:]),
        entries=tuple(ProducerEntry(*(entry[name] for name in names)) for entry in fields.entries),
    )


def _check_sizes(content: bytes) -> None:
    start = _check_fields(content, _HEADER, 0)
    available = len(content) - start
    position = start - Int32sb.sizeof()
    count = Int32sb.parse(content[position:start])
    if not 0 <= count <= available:
        message = f"the number of producers is {count}, with {available} bytes behind it"
        raise SnapshotSchemaError(message, field="entries_count", position=position, available=available, count=count)
    whole = available // PRODUCER_ENTRY.sizeof()
    if count > whole:
        _check_fields(content, PRODUCER_ENTRY.subcons, start + whole * PRODUCER_ENTRY.sizeof())


def _check_fields(content: bytes, fields: Iterable[Any], start: int) -> int:
    """The position behind fields of fixed size that begin at `start`; raises at the first that is cut."""
    for field in fields:
        available = len(content) - start
        if field.sizeof() > available:
            message = f"{field.name} needs {field.sizeof()} bytes, {available} are left"
            raise SnapshotSchemaError(message, field=field.name, position=start, available=available)
        start += field.sizeof()
    return start
