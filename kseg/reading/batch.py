"""Batches as values: what a log file holds, field by field, and the records in them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, TypeAlias
from zlib import crc32

from kseg import kernel
from kseg.codecs.body import Body, decompress
from kseg.codecs.bounds import DEFAULT_LIMIT
from kseg.errors import DamagedError, UsageError
from kseg.formats.body import wrapper_value
from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    MAGIC_POSITION,
    Codec,
    TimestampType,
    codec_name,
)
from kseg.formats.header_fields import BATCH_ATTRIBUTES
from kseg.kernel.contract import Problem, RecordProblem, Rows, new_rows
from kseg.kernel.program import Program, Template
from kseg.kernel.record import Record
from kseg.reading.bodies import body_damage, problem_damage
from kseg.reading.damage import Damage
from kseg.reading.header import BatchHeader, parse_header

_NOTHING = Template((), b"", ())
_PRINTING_NOTHING = Program((None, None, None), (_NOTHING, _NOTHING, _NOTHING), None)
"""Reads all records and prints none."""


OnDamage: TypeAlias = Literal["raise", "skip"] | Callable[[Damage], object]
"""What to do about records that can't be read: raise DamagedError, go on without them, or call this and go on."""


class BatchProblem(NamedTuple):
    """Why not all records of a batch can be read: the body doesn't decompress, or a record or their count is wrong."""

    problem: Problem | None
    detail: str


@dataclass(frozen=True, repr=False)
class Batch:
    """A v2 batch, or a v0 or v1 log entry: a message, or a wrapper of compressed ones.

    `header` and the batch's bytes, `raw`. What a format doesn't have is -1, as Kafka's own classes say it.
    Source: RecordBatch.
    """

    HEADER_SIZE: ClassVar[int] = BATCH_HEADER_SIZE
    """Bytes of a v2 batch before its records: 61."""

    header: BatchHeader
    raw: bytes

    @classmethod
    def parse(cls, raw: bytes, position: int, *, is_valid: bool) -> "Batch":
        """The batch of these bytes, which stand at a position of a file and must hold its header."""
        header = parse_header(raw.ljust(BATCH_HEADER_SIZE, b"\0"), 0, position, is_valid)
        return cls(header if header.size == len(raw) else header._replace(size=len(raw)), raw)

    @property
    def position(self) -> int:
        """Where it begins, in bytes of the file."""
        return self.header.position

    @property
    def size(self) -> int:
        """Its bytes, the first 12 included."""
        return self.header.size

    @property
    def magic(self) -> int:
        """Its format: 0, 1 or 2."""
        return self.header.magic

    @property
    def last_offset(self) -> int:
        """Offset of the last record as written."""
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
        """Whether the checksum holds."""
        return bool(self.header.is_valid)

    @property
    def attributes(self) -> int:
        """Codec, timestamp type and flags, as they stand in the header."""
        return self.header.attributes

    @property
    def base_timestamp(self) -> int:
        """What the records' times count from; a message's or wrapper's own time."""
        return self.header.base_timestamp

    @property
    def max_timestamp(self) -> int:
        """The largest time of its records, milliseconds since 1970."""
        return self.header.max_timestamp

    @property
    def producer_id(self) -> int:
        """The idempotent or transactional producer."""
        return self.header.producer_id

    @property
    def producer_epoch(self) -> int:
        """That producer's epoch."""
        return self.header.producer_epoch

    @property
    def base_sequence(self) -> int:
        """Sequence of the first record."""
        return self.header.base_sequence

    @property
    def is_legacy(self) -> bool:
        """Whether it is a v0 or v1 entry."""
        return self.header.is_legacy

    @property
    def codec(self) -> int:
        """Bits 0-2 of the attributes, see Codec; 5 to 7 are unknown to Kafka."""
        return self.header.codec

    @property
    def timestamp_type(self) -> TimestampType:
        """Who set the timestamps."""
        return self.header.timestamp_type

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction."""
        return self.header.is_transactional

    @property
    def is_control(self) -> bool:
        """Whether it holds a control record."""
        return self.header.is_control

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers in it may go, if that is set."""
        return self.header.delete_horizon_ms

    @property
    def base_offset(self) -> int:
        """Offset of the first record as written; of a wrapper the first inner one's, for which it is decompressed."""
        if self.header.base_offset is not None:
            return self.header.base_offset
        return next((record.offset for record in self.records(on_damage="skip")), self.last_offset)

    @property
    def count(self) -> int:
        """Records that it says it has; of a wrapper those that are in it, for which it is decompressed."""
        return self._readable_count if self.header.records_count is None else self.header.records_count

    @property
    def next_offset(self) -> int:
        """The offset after its last one."""
        return self.last_offset + 1

    def compute_crc(self) -> int:
        """The checksum that its bytes give: CRC-32C from the attributes on, in v0 and v1 CRC-32 from the magic on."""
        if self.is_legacy:
            return crc32(self.raw[MAGIC_POSITION:])
        return kernel.load().crc32c(memoryview(self.raw)[BATCH_ATTRIBUTES.position :])

    def records(self, *, on_damage: OnDamage = "raise") -> Iterator[Record]:
        """Its records, those before damage too. A wrong CRC isn't damage here: `is_valid` reports it.

        Args:
            on_damage: what to do where the codec is unknown, the body can't be decompressed, or a record or the count
                of records is wrong: "raise", "skip", or a function that is called with the Damage.

        Raises:
            DamagedError: at such damage, after the records before it, unless `on_damage` says otherwise.
        """
        check_on_damage(on_damage)
        return chain.from_iterable(self._record_lists(on_damage))

    def _record_lists(self, on_damage: OnDamage) -> Iterator[list[Record]]:
        failure = self._body.failure
        for part in self._read():
            if isinstance(part, list):
                yield part
            elif failure is None:
                meet(problem_damage(part), on_damage)
        if failure is not None:
            meet(body_damage(self.position, failure), on_damage)

    def __iter__(self) -> Iterator[Record]:
        """Its records. Raises DamagedError where they can't be read."""
        return self.records()

    def __repr__(self) -> str:
        """What its header tells, in one line: nothing is decompressed for it."""
        codec = codec_name(self.codec) or self.codec
        first = "" if self.header.base_offset is None else f"base_offset={self.header.base_offset}, "
        count = "" if self.header.records_count is None else f"count={self.header.records_count}, "
        return (
            f"Batch(position={self.position}, size={self.size}, magic={self.magic}, {first}"
            f"last_offset={self.last_offset}, {count}codec={codec}, is_valid={self.is_valid})"
        )

    def problem(self) -> BatchProblem | None:
        """What keeps its records from being read to the end; None if nothing does."""
        if self._body.failure is not None:
            return BatchProblem(None, self._body.failure)
        rows, bodies = self._row()
        reader = kernel.load().Renderer(_PRINTING_NOTHING, kernel.load().Output(len, 0))
        reader.render(memoryview(self.raw), rows, 0, 1, self.position, bodies)
        for problem in reader.problems:
            return BatchProblem(problem.problem, f"{problem.records_read} records can be read")
        return None

    @cached_property
    def _body(self) -> Body:
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
        """The table of this one batch for the kernel, and its body."""
        rows = new_rows(1)
        rows[1], rows[2] = self.size, int(self.is_valid)
        return rows, None if self.codec == Codec.NONE else [self._body.data]


def check_on_damage(on_damage: OnDamage) -> None:
    """Raises UsageError for what `on_damage` can't be."""
    if on_damage not in ("raise", "skip") and not callable(on_damage):
        raise UsageError(f'on_damage is {on_damage!r}: give "raise", "skip" or a function that takes a Damage')


def meet(damage: Damage, on_damage: OnDamage, path: Path | None = None) -> None:
    """Does about a damage what is asked. Raises DamagedError if that is it."""
    if callable(on_damage):
        on_damage(damage)
    elif on_damage == "raise":
        hint = 'on_damage="skip" goes on after it'
        raise DamagedError(f"{damage.kind}: {damage.detail}", path, damage.position, hint=hint)
