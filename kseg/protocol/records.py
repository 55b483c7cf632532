"""Record batches inside requests and responses: runs of batches, with their bodies, and damages."""

from collections.abc import Iterator

from kseg import kernel
from kseg.formats.codes import ENTRY_MINIMUM_SIZE, DamageKind
from kseg.formats.positions import claimed_size
from kseg.kernel.contract import Stop, new_rows
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.damage import Damage
from kseg.reading.log_file import Run

LARGEST_BODY = 1 << 28
"""The largest size of a decompressed batch, in bytes: all records of a frame are in memory at once."""
_CODECS = 0b111


def record_slices(records: bytes, *, deep: bool) -> Iterator[Slice | Damage]:
    """The batches in slices, with their bodies if they are wanted, and damages. Positions are within the bytes."""
    if deep:
        yield from with_bodies(_runs(records), len(records), LARGEST_BODY)
        return
    for item in _runs(records):
        yield Slice(item, 0, item.row_count, None) if isinstance(item, Run) else item


def _runs(records: bytes) -> Iterator[Run | Damage]:
    """Runs of batches; a batch with a wrong CRC is a run of its own. Everything from a non-batch on is lost."""
    buffer, at = memoryview(records), 0
    while at < len(records):
        rows = new_rows(min(len(records) // ENTRY_MINIMUM_SIZE + 1, 1 << 12))
        count, end, stop, codecs = kernel.load().scan(buffer, at, len(records), rows, 0)
        if count:
            yield Run(buffer, 0, rows, count, codecs)
            at = end
            continue
        size = claimed_size(records, at)
        if stop == Stop.BAD_CRC and size is not None and at + size <= len(records):
            rows[:3] = type(rows)("q", (at, size, 0))
            yield Run(buffer, 0, rows, 1, _CODECS)
            at += size
            continue
        left = len(records) - at
        if stop == Stop.END:
            claim = "a batch" if size is None else f"a batch of {size} bytes"
            yield Damage(DamageKind.TORN_TAIL, at, left, f"{claim} begins, {left} bytes are left")
        else:
            yield Damage(
                DamageKind.BAD_LENGTH if stop == Stop.BAD_LENGTH else DamageKind.BAD_MAGIC, at, left, "no batch"
            )
        return
