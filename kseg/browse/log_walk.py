"""Walks through a log for batches and damages: every byte is read, and all records, but only as far as it is asked."""

from collections.abc import Iterator
from typing import NamedTuple

from kseg import kernel
from kseg.errors import OpenError
from kseg.findings.finding_kinds import id_of_damage, status_of
from kseg.formats.names import FileKind, parse_file_name
from kseg.index.offset_index import OffsetIndex, slot_range
from kseg.kernel.contract import ROW, SIZE, START, VALID
from kseg.log.partition.closed_segment import was_closed
from kseg.log.partition.segment_tail import entry_problem
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.damage import Damage
from kseg.reading.log_file import LogFile
from kseg.reading.scan import damages_of


class Stretch(NamedTuple):
    """Bytes of a log: a batch, or a damage that no batch is in. damage: what is wrong; None if nothing is."""

    position: int
    size: int
    is_batch: bool
    damage: Damage | None = None

    @property
    def end(self) -> int:
        """The position after them."""
        return self.position + self.size


def stretches(log_file: LogFile, start: int) -> Iterator[list[Stretch]]:
    """What lies in a log from a batch's position on: some at a time, as they are read."""
    for piece in with_bodies(log_file.runs(start), log_file.stored_size):
        if isinstance(piece, Slice):
            yield _batches(log_file, piece)
        elif piece.size:
            yield [Stretch(piece.position, piece.size, is_batch=False, damage=piece)]


def _batches(log_file: LogFile, piece: Slice) -> list[Stretch]:
    run = piece.run
    columns = kernel.load().columns(run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies)
    damages = {damage.position: damage for damage in damages_of(piece, columns)}
    found = []
    for row in range(piece.first, piece.last):
        start, size, is_valid = (run.rows[row * ROW + column] for column in (START, SIZE, VALID))
        position = run.position + start
        damage = damages.get(position) if is_valid else log_file.crc_damage(position, size)
        found.append(Stretch(position, size, is_batch=True, damage=damage))
    return found


def is_harmful(damage: Damage, *, is_last: bool) -> bool:
    """Whether `verify` would find more in a damage than a note; is_last: of the last segment of its partition."""
    return status_of(id_of_damage(damage.kind, is_last=is_last)) != 0


def is_last_log(log_file: LogFile) -> bool:
    """Whether a log is the last one of its partition, which may end in the midst of a batch."""
    return not was_closed(log_file.path)


def start_before(log_file: LogFile, position: int) -> int:
    """Position of a batch at or before another position, near to it if the offset index knows one; else 0."""
    name = parse_file_name(log_file.path)
    if name.kind is not FileKind.LOG or name.base_offset is None or position <= 0:
        return 0
    suffix = name.suffix or ""
    stem = str(log_file.path).removesuffix(suffix).removesuffix(".log")
    for path in dict.fromkeys((f"{stem}.index{suffix}", f"{stem}.index")):
        try:
            with OffsetIndex(path, name.base_offset) as index:
                slot = slot_range(index.file, index.count, position, 1).lower
                entry = index.entry(slot) if slot >= 0 else None
        except OpenError:
            continue
        if entry is not None and entry_problem(log_file, entry.offset, entry.position) is None:
            return entry.position
    return 0
