"""Batches as values: their headers, their records, and a scan over an open log."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, TypeAlias
from zlib import crc32

from kseg import kernel
from kseg.codecs.bodies import Body, decompress
from kseg.codecs.limits import DEFAULT_LIMIT
from kseg.errors import DamagedError, UsageError, plural
from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    Codec,
    TimestampType,
    codec_name,
    wrapper_value,
)
from kseg.formats.header_fields import (
    BATCH_ATTRIBUTES,
    BATCH_HEADER_FIELDS,
    LOG_ENTRY_HEADER_V0_FIELDS,
    LOG_ENTRY_HEADER_V1_FIELDS,
)
from kseg.kernel.contract import ROW, SIZE, START, VALID, Problem, Program, RecordProblem, Rows, Template, new_rows
from kseg.kernel.entry_points import Columns
from kseg.kernel.record import Record
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, body_damage, problem_damage, with_bodies
from kseg.reading.log_file import LogFile, Run

_BATCH = BATCH_HEADER_FIELDS.struct
_ENTRY_V0 = LOG_ENTRY_HEADER_V0_FIELDS.struct
_ENTRY_V1 = LOG_ENTRY_HEADER_V1_FIELDS.struct
_LARGEST_SEQUENCE = 2**31 - 1


class BatchHeader(NamedTuple):
    """The header of a batch, or of a v0 or v1 log entry. Values that a format doesn't have are -1.

    The values are those of HEADER_NAMES, in its order. `position` and `size` are bytes of the file, including the
    first 12. `base_offset` and `records_count` are None for a v0 or v1 wrapper: they are in its compressed value.
    `last_offset` replaces the delta. `is_valid`: the CRC is right; None if unchecked.
    """

    position: int
    base_offset: int | None
    size: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int | None
    is_valid: bool | None

    @property
    def is_legacy(self) -> bool:
        """True for a v0 or v1 entry."""
        return self.magic < 2

    @property
    def codec(self) -> int:
        """Bits 0-2 of the attributes, see Codec; 5 to 7 are unknown to Kafka."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """The origin of the timestamps."""
        if self.magic < 1:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType.LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_MASK else TimestampType.CREATE_TIME

    @property
    def is_log_append_time(self) -> bool:
        """True if the broker's clock set the timestamps."""
        return self.magic >= 1 and bool(self.attributes & TIMESTAMP_TYPE_MASK)

    @property
    def is_transactional(self) -> bool:
        """Return True if the batch is part of a transaction."""
        return self.magic >= 2 and bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def is_control(self) -> bool:
        """True if the batch holds control records."""
        return self.magic >= 2 and bool(self.attributes & CONTROL_MASK)

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which tombstones and markers in the batch may be removed, if it is set."""
        is_set = self.magic >= 2 and bool(self.attributes & DELETE_HORIZON_MASK)
        return self.base_timestamp if is_set else None

    @property
    def first_offset(self) -> int:
        """The base offset; of a wrapper, whose own isn't known here, its last offset."""
        return self.last_offset if self.base_offset is None else self.base_offset

    @property
    def end(self) -> int:
        """The position after the batch."""
        return self.position + self.size

    @property
    def producer(self) -> tuple[int, int, int]:
        """The values of PRODUCER_NAMES: id, epoch, sequence of the first record."""
        return self.producer_id, self.producer_epoch, self.base_sequence

    def of_producer(self, producer_id: int, epoch: int, sequence: int) -> "BatchHeader":
        """Return the same header with other values of the producer."""
        return self._replace(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, -1 for none; 0 follows 2³¹ - 1."""
        if self.base_sequence < 0 or self.base_offset is None:
            return -1
        return (self.base_sequence + self.last_offset - self.base_offset) & _LARGEST_SEQUENCE

    def cut(self, first_offset: int, last_offset: int) -> "BatchHeader":
        """Return the header of a batch with only the records between two offsets; its count stays."""
        sequence = self.base_sequence
        if sequence >= 0:
            sequence = (sequence + first_offset - self.first_offset) & _LARGEST_SEQUENCE
        return self._replace(base_offset=first_offset, last_offset=last_offset, base_sequence=sequence)


def parse_header(
    buffer: bytes | bytearray | memoryview, at: int, position: int, is_valid: bool | None = None
) -> BatchHeader:
    """Parse the header at byte `at` of a buffer, which holds all of it; `position` is its position in the file."""
    magic = buffer[at + MAGIC_POSITION]
    if 2 <= magic < 128:
        base_offset, length, epoch, magic, crc, attributes, delta, *others = _BATCH.unpack_from(buffer, at)
        size, last_offset = length + LOG_OVERHEAD, base_offset + delta
        fields = (position, base_offset, size, epoch, magic, crc, attributes, last_offset, *others, is_valid)
        return BatchHeader._make(fields)
    timestamp = NO_TIMESTAMP
    if magic == 1:
        offset, size, crc, magic, attributes, timestamp, _ = _ENTRY_V1.unpack_from(buffer, at)
    else:
        offset, size, crc, magic, attributes, _ = _ENTRY_V0.unpack_from(buffer, at)
    is_plain = attributes & CODEC_MASK == Codec.NONE
    return BatchHeader(
        position,
        offset if is_plain else None,
        size + LOG_OVERHEAD,
        -1,
        magic,
        crc,
        attributes & 0xFF,
        offset,
        timestamp,
        timestamp,
        -1,
        -1,
        -1,
        1 if is_plain else None,
        is_valid,
    )


NEW_HEADER = BatchHeader(0, 0, 0, -1, 2, 0, 0, 0, NO_TIMESTAMP, NO_TIMESTAMP, -1, -1, -1, 0, None)
"""An empty v2 header, from which a writer starts."""


_NOTHING = Template((), b"", ())
_PRINTING_NOTHING = Program((None, None, None), (_NOTHING, _NOTHING, _NOTHING), None)
"""A program that reads all records and prints none."""


OnDamage: TypeAlias = Literal["raise", "skip"] | Callable[[Damage], object]
"""The reaction to unreadable records: raise DamagedError, skip them, or call a function and continue."""


class BatchProblem(NamedTuple):
    """The reason why not all records of a batch can be read: a wrong body, record or count."""

    problem: Problem | None
    detail: str


@dataclass(frozen=True, repr=False)
class Batch:
    """A v2 batch, or a v0 or v1 log entry: a message, or a wrapper of compressed ones.

    Has `header`, and `raw`, the batch's bytes. Values that a format doesn't have are -1, as in Kafka's own classes.
    Source: RecordBatch.
    """

    HEADER_SIZE: ClassVar[int] = BATCH_HEADER_SIZE
    """Bytes of a v2 batch before its records: 61."""

    header: BatchHeader
    raw: bytes

    @classmethod
    def parse(cls, raw: bytes, position: int, *, is_valid: bool) -> "Batch":
        """Parse the batch of these bytes, which must hold its header; `position`: their position in a file."""
        header = parse_header(raw.ljust(BATCH_HEADER_SIZE, b"\0"), 0, position, is_valid)
        return cls(header if header.size == len(raw) else header._replace(size=len(raw)), raw)

    @property
    def position(self) -> int:
        """Its position in the file."""
        return self.header.position

    @property
    def size(self) -> int:
        """Its size in bytes, including the first 12."""
        return self.header.size

    @property
    def magic(self) -> int:
        """Its format: 0, 1 or 2."""
        return self.header.magic

    @property
    def last_offset(self) -> int:
        """The offset of its last record when it was written."""
        return self.header.last_offset

    @property
    def partition_leader_epoch(self) -> int:
        """The leader epoch in which it was written."""
        return self.header.partition_leader_epoch

    @property
    def crc(self) -> int:
        """The stored checksum."""
        return self.header.crc

    @property
    def is_valid(self) -> bool:
        """True if the checksum is right."""
        return bool(self.header.is_valid)

    @property
    def attributes(self) -> int:
        """Return the codec, timestamp type and flags from the header."""
        return self.header.attributes

    @property
    def base_timestamp(self) -> int:
        """The base of the records' timestamps; a message's or wrapper's own timestamp."""
        return self.header.base_timestamp

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of its records, milliseconds since 1970."""
        return self.header.max_timestamp

    @property
    def producer_id(self) -> int:
        """The id of its idempotent or transactional producer."""
        return self.header.producer_id

    @property
    def producer_epoch(self) -> int:
        """The epoch of its producer."""
        return self.header.producer_epoch

    @property
    def base_sequence(self) -> int:
        """The sequence of its first record."""
        return self.header.base_sequence

    @property
    def is_legacy(self) -> bool:
        """True for a v0 or v1 entry."""
        return self.header.is_legacy

    @property
    def codec(self) -> int:
        """Bits 0-2 of the attributes, see Codec; 5 to 7 are unknown to Kafka."""
        return self.header.codec

    @property
    def timestamp_type(self) -> TimestampType:
        """The origin of the timestamps."""
        return self.header.timestamp_type

    @property
    def is_transactional(self) -> bool:
        """Return True if the batch is part of a transaction."""
        return self.header.is_transactional

    @property
    def is_control(self) -> bool:
        """True if it holds a control record."""
        return self.header.is_control

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which tombstones and markers in it may be removed, if it is set."""
        return self.header.delete_horizon_ms

    @property
    def base_offset(self) -> int:
        """The offset of its first record when it was written; a wrapper is decompressed to find it."""
        if self.header.base_offset is not None:
            return self.header.base_offset
        return next((record.offset for record in self.records(on_damage="skip")), self.last_offset)

    @property
    def count(self) -> int:
        """The number of records according to its header; a wrapper is decompressed to count them."""
        return self._readable_count if self.header.records_count is None else self.header.records_count

    @property
    def next_offset(self) -> int:
        """The offset after its last one."""
        return self.last_offset + 1

    def compute_crc(self) -> int:
        """Compute the checksum of the batch: CRC-32C in v2, and CRC-32 in v0 and v1."""
        if self.is_legacy:
            return crc32(self.raw[MAGIC_POSITION:])
        return kernel.load().crc32c(memoryview(self.raw)[BATCH_ATTRIBUTES.position :])

    def records(self, *, on_damage: OnDamage = "raise") -> Iterator[Record]:
        """Yield its records, including those before damage. A wrong CRC isn't damage here: `is_valid` reports it.

        Args:
            on_damage: the reaction to an unknown codec, a body that can't be decompressed, or a wrong record or count
                of records: "raise", "skip", or a function that is called with the Damage.

        Raises:
            DamagedError: at such damage, after the records before it, unless `on_damage` says otherwise.
        """
        check_on_damage(on_damage)
        return chain.from_iterable(self._record_lists(on_damage))

    def _record_lists(self, on_damage: OnDamage) -> Iterator[list[Record]]:
        failure = self.body.failure
        for part in self._read():
            if isinstance(part, list):
                yield part
            elif failure is None:
                meet(problem_damage(part), on_damage)
        if failure is not None:
            meet(body_damage(self.position, failure), on_damage)

    def __iter__(self) -> Iterator[Record]:
        """Yield its records. Raises DamagedError if they can't be read."""
        return self.records()

    def __repr__(self) -> str:
        """Return its header in one line: nothing is decompressed for it."""
        codec = codec_name(self.codec) or self.codec
        first = "" if self.header.base_offset is None else f"base_offset={self.header.base_offset}, "
        count = "" if self.header.records_count is None else f"count={self.header.records_count}, "
        return (
            f"Batch(position={self.position}, size={self.size}, magic={self.magic}, {first}"
            f"last_offset={self.last_offset}, {count}codec={codec}, is_valid={self.is_valid})"
        )

    def problem(self) -> BatchProblem | None:
        """Return the reason why not all of its records can be read, or None if they can."""
        if self.body.failure is not None:
            return BatchProblem(None, self.body.failure)
        rows, bodies = self._row()
        reader = kernel.load().Renderer(_PRINTING_NOTHING, kernel.load().Output(len, 0))
        reader.render(memoryview(self.raw), rows, 0, 1, self.position, bodies)
        for problem in reader.problems:
            return BatchProblem(problem.problem, f"only {plural(problem.records_read, 'record')} can be read")
        return None

    @cached_property
    def body(self) -> Body:
        """Decompressed body as far as it can be read; empty without a codec."""
        if self.codec == Codec.NONE:
            return Body(b"")
        raw = memoryview(self.raw)
        compressed = wrapper_value(raw) if self.is_legacy else raw[BATCH_HEADER_SIZE:]
        if compressed is None:
            return Body(b"", "a wrapper without a value")
        return decompress(self.codec, self.magic, compressed, DEFAULT_LIMIT)

    @cached_property
    def _readable_count(self) -> int:
        return sum(len(part) for part in self._read() if isinstance(part, list))

    def _read(self) -> Iterator[list[Record] | RecordProblem]:
        rows, bodies = self._row()
        return kernel.load().records(memoryview(self.raw), rows, 0, 1, self.position, bodies)

    def _row(self) -> tuple[Rows, list[bytes | None] | None]:
        """Return the table of this one batch for the kernel, and its body."""
        rows = new_rows(1)
        rows[1], rows[2] = self.size, int(self.is_valid)
        return rows, None if self.codec == Codec.NONE else [self.body.data]


def check_on_damage(on_damage: OnDamage) -> None:
    """Raise UsageError if `on_damage` is invalid."""
    if on_damage not in ("raise", "skip") and not callable(on_damage):
        raise UsageError(f'on_damage is {on_damage!r}; specify "raise", "skip" or a function that takes a Damage')


def meet(damage: Damage, on_damage: OnDamage, path: Path | None = None) -> None:
    """React to a damage as `on_damage` says. Raises DamagedError for "raise"."""
    if callable(on_damage):
        on_damage(damage)
    elif on_damage == "raise":
        hint = 'on_damage="skip" continues after it'
        raise DamagedError(f"{damage.kind}: {damage.detail}", path, damage.position, hint=hint)


def scan_log(log_file: LogFile, start: int = 0) -> Iterator[Batch | Damage]:
    """Yield batches and damages of an open log, in order, from a batch's position on."""
    for item in log_file.runs(start):
        if isinstance(item, Damage):
            yield item
        else:
            yield from (batch_of(item, row) for row in range(item.row_count))


def intact_records(log_file: LogFile) -> Iterator[Record]:
    """Yield the records of valid batches of an open log, control records too; damage is skipped."""
    for item in with_bodies(log_file.runs(), log_file.stored_size):
        for part in record_lists(item, lambda _: None) if isinstance(item, Slice) else ():
            yield from (record for record in part if record.is_valid)


def batch_of(run: Run, row: int) -> Batch:
    """Return the batch of a run's row, with a copy of its bytes."""
    start, size, valid = (run.rows[row * ROW + column] for column in (START, SIZE, VALID))
    return Batch.parse(bytes(run.buffer[start : start + size]), run.position + start, is_valid=bool(valid))


def record_lists(piece: Slice, meet_damage: Callable[[Damage], None]) -> Iterator[list[Record]]:
    """Yield the records of a slice in order, and a batch's damage after its readable records.

    An incomplete body is reported alone, without its consequences.
    """
    first = piece.first
    for row, damage in piece.damages:
        yield from _readable(piece, first, row, meet_damage)
        yield from _readable(piece, row, row + 1, lambda _: None)
        meet_damage(damage)
        first = row + 1
    yield from _readable(piece, first, piece.last, meet_damage)


def _readable(piece: Slice, first: int, last: int, meet_damage: Callable[[Damage], None]) -> Iterator[list[Record]]:
    """Yield the records of the given rows of a slice."""
    run = piece.run
    for part in kernel.load().records(run.buffer, run.rows, first, last, run.position, piece.bodies, piece.first):
        if isinstance(part, list):
            yield part
        else:
            meet_damage(problem_damage(part))


def damages_of(piece: Slice, columns: Columns) -> list[Damage]:
    """Return the damages of the batches of a slice in the file's order; an incomplete body has only one."""
    damages = {problem.position: problem_damage(problem) for problem in columns.problems}
    damages |= {damage.position: damage for _, damage in piece.damages}
    return [damages[position] for position in sorted(damages)]
