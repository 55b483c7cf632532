"""The selected records of logs as values, and the batches that hold them."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator

from kseg.findings.finding_kinds import id_of_damage, status_of
from kseg.formats.codes import MAGIC_POSITION, DamageKind
from kseg.kernel.contract import ROW, START
from kseg.kernel.record import Record
from kseg.log.partition.closed_segment import was_closed
from kseg.log.select.record_picker import RecordPicker, SelectedLog
from kseg.reading.batch import Batch, OnDamage, meet
from kseg.reading.bodies import Slice
from kseg.reading.damage import Damage
from kseg.reading.scan import batch_of, damages_of, record_lists

MAGIC_V2 = 2
MeetDamage = Callable[[Damage], None]


def meeting(log: SelectedLog, on_damage: OnDamage) -> MeetDamage:
    """What to do about damage of a log; what `verify` only notes, such as the zeros of a preallocated file, is none."""

    def meet_harmful(damage: Damage) -> None:
        if status_of(id_of_damage(damage.kind, is_last=not was_closed(log.path))):
            meet(damage, on_damage, log.path)

    return meet_harmful


def selected_records(log: SelectedLog, on_damage: OnDamage) -> Iterator[list[Record]]:
    """The selected records of a log, in its order; those of a batch or message whose CRC is wrong are left out.

    Raises DamagedError at damage, after the records before it, unless `on_damage` says otherwise.
    """
    met = meeting(log, on_damage)
    for piece in log.intact_slices(met):
        lists = record_lists(piece, met) if log.picker.takes_all else _picked(piece, log.picker, met)
        yield from _with_right_checksums(lists, met) if _may_hold_messages(piece) else lists


def _picked(piece: Slice, picker: RecordPicker, met: MeetDamage) -> Iterator[list[Record]]:
    """The records of a slice that are picked, made only where there are any."""
    taken = picker.columns(piece)
    if not taken.count:
        for damage in damages_of(piece, taken):
            met(damage)
        return
    places = memoryview(taken.places).cast("B").cast("i")
    first = at = 0
    for part in record_lists(piece, met):
        end = bisect_left(places, first + len(part), at)
        yield [part[place - first] for place in places[at:end]]
        if end == len(places) and picker.is_full:
            return
        first, at = first + len(part), end


def _may_hold_messages(piece: Slice) -> bool:
    """Whether messages with a CRC of their own may be inside: any of its batches is a compressed v0 or v1 one."""
    if piece.bodies is None:
        return False
    starts = piece.run.rows[piece.first * ROW + START : piece.last * ROW : ROW]
    magics = map(piece.run.buffer.__getitem__, map(MAGIC_POSITION.__add__, starts))
    return min(magics, default=MAGIC_V2) < MAGIC_V2


def _with_right_checksums(lists: Iterator[list[Record]], met: MeetDamage) -> Iterator[list[Record]]:
    """The records, but messages whose own CRC is wrong are damage: one of each batch."""
    position = -1
    for part in lists:
        first = 0
        for place, record in enumerate(part):
            if not record.is_valid:
                yield part[first:place]
                if record.position != position:
                    met(message_damage(record.position, record.offset))
                position, first = record.position, place + 1
        yield part[first:]


def message_damage(position: int, offset: int) -> Damage:
    """The damage of a batch at a position: the message at an offset inside of it has a wrong CRC of its own."""
    return Damage(DamageKind.BAD_RECORD, position, 0, f"the CRC of the message at offset {offset} is wrong")


def selected_batches(log: SelectedLog, on_damage: OnDamage) -> Iterator[Batch]:
    """The batches of a log that hold selected records; damage within a batch isn't looked for, but its CRC is checked.

    Raises DamagedError at a wrong CRC, and at bytes that aren't a batch, unless `on_damage` says otherwise.
    """
    met = meeting(log, on_damage)
    for piece in log.intact_slices(met):
        held: Collection[int] = range(piece.first, piece.last)
        if not log.picker.takes_all:
            held = sorted(set(memoryview(log.picker.columns(piece).rows).cast("B").cast("i")))
        yield from (batch_of(piece.run, row) for row in held)
