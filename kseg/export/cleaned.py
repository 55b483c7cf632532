"""What the log cleaner makes of logs that were exported: files whose bytes changed, though their records didn't.

Of two logs of a topic that have a batch of one offset and leader epoch, all before it is the same, but for what
compaction took (KIP-101). So the last batch that a file has of the offsets exported tells whether it is the same log.
"""

from bisect import bisect_right
from contextlib import suppress

from kseg.errors import KsegError
from kseg.export import remote
from kseg.export.copies import SegmentSource
from kseg.export.plan import ByteRange
from kseg.export.ranges import RangeReader
from kseg.export.result import Result
from kseg.export.tally import Tally
from kseg.index.headers import checked_headers
from kseg.index.offset_index import OffsetIndex
from kseg.kernel.contract import MOST
from kseg.reading.damage import Damage
from kseg.reading.header import BatchHeader


def is_cleaned(result: Result, segment: SegmentSource) -> bool:
    """Whether a segment that isn't appended to any more holds what compaction left of what a result has exported.

    Its log belongs to the same topic. False if the log was truncated since and rewritten, if that can't be told, and
    where damage was met: it may have been mended. Raises OpenError if the log has gone.
    """
    tally = result.tally
    if not tally.epochs or tally.disordered or any(not loss.is_harmless for loss in tally.losses):
        return False
    first, end = tally.epochs[0][1], tally.next_offset or 0
    last = _last_below(end, segment)
    if last is None:
        return True
    if last.last_offset < first:
        return last.partition_leader_epoch <= tally.epochs[0][0]
    epochs = {_epoch_of(max(last.first_offset, first), tally), _epoch_of(min(last.last_offset, end - 1), tally)}
    return epochs == {last.partition_leader_epoch}


def _epoch_of(offset: int, tally: Tally) -> int:
    place = bisect_right(tally.epochs, offset, key=lambda entry: entry[1]) - 1
    return tally.epochs[place][0]


def _last_below(end: int, segment: SegmentSource) -> BatchHeader | None:
    """The header of the last intact batch that begins below an offset; None if there is none."""
    whole = ByteRange(segment.log, segment.base_offset, 0, segment.size, segment.size, segment.modified_ms)
    with RangeReader(whole, 0, checksum=False) as reader, reader.open(0, segment.size, None) as log_file:
        for start in (_position_below(end, segment), 0):
            found = None
            for item in checked_headers(log_file, start):
                if isinstance(item, Damage) or not item.is_valid:
                    continue
                if item.first_offset >= end:
                    break
                found = item
            if found is not None:
                return found
    return None


def _position_below(end: int, segment: SegmentSource) -> int:
    """A position to look from, as the offset index tells; 0 if there is none that can be read here."""
    if segment.offset_index is None or remote.is_remote(segment.offset_index):
        return 0
    with suppress(KsegError), OffsetIndex(segment.offset_index, segment.base_offset) as index:
        position = index.lookup(min(end, MOST) - 1).position
        return position if position < segment.size else 0
    return 0
