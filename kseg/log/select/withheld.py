"""What an open transaction withholds from consumers with `read_committed`: all from its first record on."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kseg import kernel
from kseg.index.headers import header_of, header_runs
from kseg.kernel.contract import MOST
from kseg.kernel.fold_contract import Event, HeaderFold
from kseg.log.partition.segment_files import SegmentFiles
from kseg.reading.damage import Damage
from kseg.reading.header import BatchHeader
from kseg.reading.log_file import Run


class Withheld(NamedTuple):
    """Offsets withheld, from `first_offset` to below `end_offset`, and the records there, as headers count them.

    producer_id: whose transaction is open; since_ms: the time of its first record, in milliseconds since 1970. Both are
    None if the batch at the first offset isn't there, or has none.
    """

    first_offset: int
    end_offset: int
    records: int
    producer_id: int | None
    since_ms: int | None


def find_withheld(segments: Sequence[SegmentFiles], open_from: int, end_offset: int = MOST) -> Withheld:
    """What a transaction that is open from an offset on withholds, by the headers from there to an end, or the log's.

    Raises OpenError if a log can't be opened.

    Args:
        segments: those of the partition.
        open_from: the first offset of the oldest open transaction.
        end_offset: the first one that isn't wanted.
    """
    fold = kernel.load().HeaderFold(Event.BOUND)
    fold.passes_legacy = True
    fold.offset_bound, fold.next_offset = open_from, open_from
    producer_id = since_ms = None
    for header in _stops(segments, open_from, fold):
        if fold.offset_bound == open_from:
            fold.records, fold.offset_bound = 0, end_offset
        if header.first_offset >= end_offset:
            break
        fold.take(header)
        if header.is_transactional and header.first_offset == open_from:
            producer_id, since_ms = header.producer_id, _time_of(header)
    return Withheld(open_from, min(fold.next_offset, end_offset), fold.records, producer_id, since_ms)


def _stops(segments: Sequence[SegmentFiles], offset: int, fold: HeaderFold) -> Iterator[BatchHeader]:
    """The headers at which a fold stops, of the batches that may reach an offset; they are to be taken."""
    for number, segment in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1].base_offset <= offset:
            continue
        with segment.open_log() as log_file:
            for item in header_runs(log_file):
                if not isinstance(item, Damage):
                    yield from _stops_in(item, fold)


def _stops_in(run: Run, fold: HeaderFold) -> Iterator[BatchHeader]:
    row = 0
    while row < run.row_count:
        row, _ = fold.fold(run.buffer, run.rows, row, run.row_count, run.position)
        if row < run.row_count:
            yield header_of(run, row)
            row += 1


def _time_of(header: BatchHeader) -> int | None:
    time = header.max_timestamp if header.is_log_append_time else header.base_timestamp
    return None if time < 0 else time
