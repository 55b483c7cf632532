"""Batches and records as values: what a log file holds, field by field."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, repeat
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias
from zlib import crc32

from kseg import kernel
from kseg.codecs import DEFAULT_LIMIT, Body, decompress
from kseg.errors import DamagedError, UsageError
from kseg.formats.body import wrapper_value
from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    MAGIC_POSITION,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    Codec,
    TimestampType,
)
from kseg.formats.fixed import BATCH_ATTRIBUTES, BATCH_HEADER_FIELDS, ENTRY_V0_CRC, ENTRY_V1_TIMESTAMP
from kseg.formats.positions import LEGACY_FLAGS_POSITION, signed_magic, stored_offset
from kseg.kernel.contract import Buffer, Columns, Problem, Program, Rows, Template, new_rows
from kseg.reading.bodies import body_damage, problem_damage
from kseg.reading.log_file import Damage

_NOTHING = Template((), b"", ())
_PRINTING_NOTHING = Program((None, None, None), (_NOTHING, _NOTHING, _NOTHING), None)
"""Reads all records and prints none."""


OnDamage: TypeAlias = Literal["raise", "skip"] | Callable[[Damage], object]
"""What to do about records that can't be read: raise DamagedError, go on without them, or call this and go on."""


class Header(NamedTuple):
    """A header of a record; `value` may be null (None)."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """A record of a v2 batch, or a v0 or v1 message.

    `timestamp` is milliseconds since 1970, -1 for none; `sequence` -1 for none; `position` the batch's in the file.
    `crc` is the stored checksum: the message's own, or its batch's for a v2 record; `is_valid` tells whether it holds.
    Null keys and values are None, empty ones b"".
    """

    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    sequence: int
    position: int
    crc: int
    is_valid: bool

    @property
    def key_size(self) -> int:
        """Bytes of the key; -1 for a null key."""
        return -1 if self.key is None else len(self.key)

    @property
    def value_size(self) -> int:
        """Bytes of the value; -1 for a null value."""
        return -1 if self.value is None else len(self.value)

    @property
    def has_key(self) -> bool:
        """Whether the key isn't null."""
        return self.key is not None

    @property
    def is_null(self) -> bool:
        """Whether the value is null: a tombstone, where there is a key."""
        return self.value is None

    @property
    def next_offset(self) -> int:
        """The offset after this one."""
        return self.offset + 1


class BatchProblem(NamedTuple):
    """Why not all records of a batch can be read: the body doesn't decompress, or a record or their count is wrong."""

    problem: Problem | None
    detail: str


@dataclass(frozen=True, repr=False)
class Batch:
    """A v2 batch, or a v0 or v1 log entry: a message, or a wrapper of compressed ones.

    `position` and `size` are bytes of the file, the first 12 included. What a format doesn't have is -1, as Kafka's own
    classes say it. `is_valid`: the CRC holds. Source: RecordBatch.
    """

    position: int
    size: int
    magic: int
    last_offset: int
    partition_leader_epoch: int
    crc: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_valid: bool
    raw: bytes
    header_base_offset: int | None
    header_count: int | None

    @classmethod
    def parse(cls, raw: bytes, position: int, *, is_valid: bool) -> "Batch":
        """The batch of these bytes, which must hold its header."""
        if raw[MAGIC_POSITION] < 2 or raw[MAGIC_POSITION] > 127 or len(raw) < BATCH_HEADER_SIZE:
            return cls._parse_entry(raw, position, is_valid)
        (
            base_offset,
            _,
            epoch,
            magic,
            crc,
            attributes,
            delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        ) = BATCH_HEADER_FIELDS.struct.unpack_from(raw)
        return cls(
            position,
            len(raw),
            magic,
            base_offset + delta,
            epoch,
            crc,
            attributes,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            is_valid,
            raw,
            base_offset,
            count,
        )

    @classmethod
    def _parse_entry(cls, raw: bytes, position: int, is_valid: bool) -> "Batch":
        offset = stored_offset(raw)
        magic = signed_magic(raw)
        timestamp = NO_TIMESTAMP
        if magic == 1:
            timestamp = ENTRY_V1_TIMESTAMP.read(raw)
        attributes = raw[LEGACY_FLAGS_POSITION]
        plain = attributes & CODEC_MASK == Codec.NONE
        crc = ENTRY_V0_CRC.read(raw)
        return cls(
            position,
            len(raw),
            magic,
            offset,
            partition_leader_epoch=-1,
            crc=crc,
            attributes=attributes,
            base_timestamp=timestamp,
            max_timestamp=timestamp,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            is_valid=is_valid,
            raw=raw,
            header_base_offset=offset if plain else None,
            header_count=1 if plain else None,
        )

    @property
    def is_legacy(self) -> bool:
        """Whether it is a v0 or v1 entry."""
        return self.magic < 2

    @property
    def codec(self) -> int:
        """Bits 0-2 of the attributes, see Codec; 5 to 7 are unknown to Kafka."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """Who set the timestamps."""
        if self.magic < 1:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType(int(bool(self.attributes & TIMESTAMP_TYPE_MASK)))

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction."""
        return not self.is_legacy and bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def is_control(self) -> bool:
        """Whether it holds a control record."""
        return not self.is_legacy and bool(self.attributes & CONTROL_MASK)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers in it may go, if that is set."""
        is_set = not self.is_legacy and bool(self.attributes & DELETE_HORIZON_MASK)
        return self.base_timestamp if is_set else None

    @property
    def base_offset(self) -> int:
        """Offset of the first record as written; of a wrapper the first inner one's, for which it is decompressed."""
        if self.header_base_offset is not None:
            return self.header_base_offset
        return next((record.offset for record in self.records(on_damage="skip")), self.last_offset)

    @property
    def count(self) -> int:
        """Records that it says it has; of a wrapper those that are in it, for which it is decompressed."""
        return self._columns.count if self.header_count is None else self.header_count

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
        """Its records, those before damage too. A wrong CRC is no damage here: `is_valid` tells of it.

        Args:
            on_damage: what to do where the codec is unknown, the body can't be decompressed, or a record or the count
                of records is wrong: "raise", "skip", or a function that is called with the Damage.

        Raises:
            DamagedError: at such damage, after the records before it, unless `on_damage` says otherwise.
        """
        check_on_damage(on_damage)
        return self._records(on_damage)

    def _records(self, on_damage: OnDamage) -> Iterator[Record]:
        columns = self._columns
        yield from records_of(columns, lambda _: self.position)
        failure = self._body.failure
        if failure is not None:
            meet(body_damage(self.position, failure), on_damage)
        elif columns.problems:
            meet(problem_damage(columns.problems[0]), on_damage)

    def __iter__(self) -> Iterator[Record]:
        """Its records. Raises DamagedError where they can't be read."""
        return self.records()

    def __repr__(self) -> str:
        """What its header tells, in one line: nothing is decompressed for it."""
        codec = Codec(self.codec).name.lower() if self.codec in set(Codec) else self.codec
        first = "" if self.header_base_offset is None else f"base_offset={self.header_base_offset}, "
        count = "" if self.header_count is None else f"count={self.header_count}, "
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
    def _columns(self) -> Columns:
        rows, bodies = self._row()
        return kernel.load().columns(memoryview(self.raw), rows, 0, 1, self.position, bodies)

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


def records_of(columns: Columns, position_of: Callable[[int], int]) -> Iterator[Record]:
    """Records out of a kernel's columns, built column by column; `position_of` gives the position of a row's batch."""
    rows = memoryview(columns.rows).cast("i").tolist()
    positions = {row: position_of(row) for row in dict.fromkeys(rows)}
    return map(
        Record._make,
        zip(
            memoryview(columns.offsets).cast("q"),
            memoryview(columns.timestamps).cast("q"),
            [_TIMESTAMP_TYPES[code] for code in memoryview(columns.timestamp_types).cast("i")],
            texts(columns.key_offsets, columns.key_validity, columns.key_data, columns.count),
            texts(columns.value_offsets, columns.value_validity, columns.value_data, columns.count),
            _headers(columns),
            memoryview(columns.sequences).cast("i"),
            [positions[row] for row in rows],
            memoryview(columns.checksums).cast("q"),
            map(bool, memoryview(columns.valid)),
            strict=True,
        ),
    )


_TIMESTAMP_TYPES = {kind.value: kind for kind in TimestampType}


def texts(offsets: Buffer, validity: Buffer, data: Buffer, count: int) -> list[bytes | None]:
    """The byte strings of a column, None for nulls."""
    whole = bytes(memoryview(data))
    ends = memoryview(offsets).cast("i").tolist()
    found: list[bytes | None] = [whole[start:end] for start, end in pairwise(ends)]
    bits = bytes(memoryview(validity))
    if bits.count(0xFF) < count // 8 or count % 8:
        for i in range(count):
            if not bits[i >> 3] >> (i & 7) & 1:
                found[i] = None
    return found


def _headers(columns: Columns) -> Iterable[tuple[Header, ...]]:
    if not columns.header_count:
        return repeat((), columns.count)
    whole = bytes(memoryview(columns.header_key_data))
    ends = memoryview(columns.header_key_offsets).cast("i").tolist()
    names = [whole[start:end].decode("utf-8", "replace") for start, end in pairwise(ends)]
    values = texts(
        columns.header_value_offsets, columns.header_value_validity, columns.header_value_data, columns.header_count
    )
    headers = list(map(Header, names, values))
    first = memoryview(columns.header_offsets).cast("i").tolist()
    return [tuple(headers[start:end]) for start, end in pairwise(first)]
