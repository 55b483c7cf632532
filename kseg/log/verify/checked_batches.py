"""A log's batches with everything that `verify` needs: header, checksums, offsets and times of the records."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from kseg import kernel
from kseg.formats.codes import NO_TIMESTAMP, DamageKind
from kseg.index.producer_state import EndMarker, is_control_record, parse_end_marker
from kseg.kernel.contract import ROW, SIZE, START, VALID, Columns
from kseg.reading.batch import Batch
from kseg.reading.bodies import PROBLEMS, Slice, with_bodies
from kseg.reading.damage import Damage
from kseg.reading.header import BatchHeader, parse_header
from kseg.reading.log_file import LogFile


class CheckedBatch(NamedTuple):
    """A batch whose CRC holds, and what its records say.

    base_offset: of the header, or a wrapper's first record's. offsets: of the records that could be read.
    largest_timestamp: of the records, -1 if there are none. begins_keyed, ends_keyed: whether the first and the last
    record have a key; None without records. marker: the transaction's end, in a control batch that is one. damage: why
    not all records could be read.
    """

    header: BatchHeader
    base_offset: int
    offsets: list[int]
    largest_timestamp: int
    begins_keyed: bool | None
    ends_keyed: bool | None
    marker: EndMarker | None
    damage: Damage | None

    @property
    def last_offset(self) -> int:
        """The header's last offset."""
        return self.header.last_offset

    @property
    def is_sparse(self) -> bool:
        """Whether records are missing in it, which only compaction does."""
        span = self.last_offset - self.base_offset + 1
        return self.damage is None and not self.header.is_control and len(self.offsets) < span


def checked_batches(log_file: LogFile) -> Iterator[CheckedBatch | Damage]:
    """Batches and damages of a log in file order; a batch whose CRC is wrong is a damage of its size."""
    for item in with_bodies(log_file.runs(), log_file.stored_size):
        if isinstance(item, Damage):
            yield item
        else:
            yield from checked_rows(log_file, item, item.first, item.last)


def offsets_problem(batch: CheckedBatch) -> str | None:
    """What is wrong with the offsets of a batch's records, if all of them can be read."""
    offsets, first, last = batch.offsets, batch.base_offset, batch.last_offset
    if batch.damage is not None or (last >= first and (not offsets or _rise_within(offsets, first, last))):
        return None
    shown = f", its records {offsets[0]} to {offsets[-1]}" if offsets else ""
    return f"the header has offsets {first} to {last}{shown}"


def _rise_within(offsets: list[int], first: int, last: int) -> bool:
    """Whether offsets rise strictly and lie from first to last."""
    if offsets[0] < first or offsets[-1] > last:
        return False
    if len(offsets) == last - first + 1 and offsets[0] == first and offsets == list(range(first, last + 1)):
        return True
    return all(a < b for a, b in pairwise(offsets))


def checked_rows(log_file: LogFile, piece: Slice, first: int, last: int) -> Iterator[CheckedBatch | Damage]:
    """The batches of a slice's rows first … last - 1; one whose CRC is wrong is a damage of its size."""
    run, bodies = piece.run, piece.bodies
    columns = kernel.load().columns(run.buffer, run.rows, first, last, run.position, bodies, first_body=piece.first)
    records = _RecordColumns(columns, piece)
    for row in range(first, last):
        start, size, valid = (run.rows[row * ROW + column] for column in (START, SIZE, VALID))
        if not valid:
            damage = log_file.crc_damage(run.position + start, size)
            yield Damage(damage.kind, damage.position, size, damage.detail, damage.next_offset)
            continue
        header = parse_header(run.buffer, start, run.position + start, is_valid=True)
        marker, problem = None, None
        if header.is_control:
            raw = bytes(run.buffer[start : start + size])
            marker = parse_end_marker(raw) if header.producer_id >= 0 else None
            problem = None if kernel.load().end_marker(raw) else _control_problem(raw, header)
        batch = records.batch(row, header, marker)
        yield batch._replace(damage=problem) if batch.damage is None and problem is not None else batch


def _control_problem(raw: bytes, header: BatchHeader) -> Damage | None:
    """What is wrong with a control batch's first record whose key or value isn't of its kind, as the kernel judges."""
    batch = Batch.parse(raw, header.position, is_valid=True)
    for index, record in enumerate(batch.records(on_damage="skip")):
        if not is_control_record(record.key, record.value):
            detail = f"control record {index} has no key or value of its kind"
            return Damage(DamageKind.BAD_RECORD, header.position, 0, detail)
    return None


class _RecordColumns:
    """The records of a slice, taken apart by batch."""

    def __init__(self, columns: Columns, piece: Slice) -> None:
        self._rows = memoryview(columns.rows).cast("B").cast("i")
        self._offsets = memoryview(columns.offsets).cast("B").cast("q")
        self._timestamps = memoryview(columns.timestamps).cast("B").cast("q")
        self._keys = memoryview(columns.key_validity)
        self._valid = memoryview(columns.valid).cast("B")
        self._next = 0
        self._damages = {
            problem.position: Damage(
                PROBLEMS[problem.problem].kind, problem.position, 0, f"{problem.records_read} records can be read"
            )
            for problem in columns.problems
        }
        self._damages |= {damage.position: damage for _, damage in piece.damages}

    def batch(self, row: int, header: BatchHeader, marker: EndMarker | None) -> CheckedBatch:
        """The batch of a row; rows come in order."""
        start = bisect_left(self._rows, row, self._next)
        end = self._next = bisect_left(self._rows, row + 1, start)
        offsets = self._offsets[start:end]
        base_offset = header.base_offset
        if base_offset is None:
            base_offset = offsets[0] if end > start else header.last_offset
        return CheckedBatch(
            header,
            base_offset,
            offsets.tolist(),
            max(self._timestamps[start:end], default=NO_TIMESTAMP),
            self._is_keyed(start) if end > start else None,
            self._is_keyed(end - 1) if end > start else None,
            marker,
            self._damages.get(header.position) or self._inner_damage(header, start, end),
        )

    def _inner_damage(self, header: BatchHeader, start: int, end: int) -> Damage | None:
        """Messages in a wrapper have CRCs of their own."""
        if header.magic >= 2 or all(self._valid[start:end]):
            return None
        detail = f"the CRC of inner message {bytes(self._valid[start:end]).index(0)} is wrong"
        return Damage(DamageKind.BAD_RECORD, header.position, 0, detail)

    def _is_keyed(self, number: int) -> bool:
        return bool(self._keys[number >> 3] >> (number & 7) & 1)
