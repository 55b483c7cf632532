"""Blocks of a file system: their size, and the place where they begin, which the breaks of torn batches show."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from kseg.carve.images import Images
from kseg.carve.piece_crcs import PieceCrcs
from kseg.carve.runs import Blocks, Run, Runs
from kseg.carve.scan import FoundBatches
from kseg.reading.blocks import SMALLEST_BLOCK

USUAL_SIZE = 4096
"""The size of a block in ext4, xfs and btrfs with their defaults."""
_LARGE_SIZE = 65536
_SIZES = (USUAL_SIZE, 1024, SMALLEST_BLOCK)
_ENDLESS = Blocks(1 << 62)
_MOST_BREAKS = 128
_MOST_TRIES = 2048
_MOST_CANDIDATES = 16
_LEAST_LARGE = 16
"""The least breaks that show large blocks: fewer may be at multiples of their size by chance."""
_LEAST_SHARE = 0.95
"""The least share of breaks at a block's start. If fewer are, a disk has several file systems."""


class _Wanted(NamedTuple):
    """The next offset after a torn batch, and the place of its header in a sector."""

    place: int
    offset: int


def find_blocks(batches: FoundBatches, images: Images, size: int | None = None) -> Blocks:
    """Return the blocks in which batches break: of the usual sizes, or of the given size.

    Each break is proven by a CRC over both pieces of a batch, at any sector. Without breaks, blocks are of the usual
    size, from position 0 on.
    """
    breaks = list(islice(_breaks(Runs(batches, images, _ENDLESS)), 2 * _MOST_BREAKS))
    if not breaks:
        return Blocks(size or USUAL_SIZE)
    sizes = _SIZES if len(breaks) < _LEAST_LARGE else (_LARGE_SIZE, *_SIZES)
    for each in sizes if size is None else (size,):
        phase, count = Counter(position % each for position in breaks).most_common(1)[0]
        if count >= _LEAST_SHARE * len(breaks):
            return Blocks(each, phase)
    return Blocks(SMALLEST_BLOCK if size is None else size)


def _breaks(runs: Runs) -> Iterator[int]:
    """Yield positions at which the pieces of torn batches end and begin."""
    starts: dict[_Wanted, list[Run]] = {}
    for run in runs.runs:
        starts.setdefault(_Wanted(run.start % SMALLEST_BLOCK, run.base_offset), []).append(run)
    crcs = PieceCrcs(runs, Blocks(SMALLEST_BLOCK))
    for run in runs.runs[:: len(runs.runs) // _MOST_TRIES + 1]:
        head = runs.torn_head(run)
        if head is None:
            continue
        header = head.header
        candidates = starts.get(_Wanted(header.end % SMALLEST_BLOCK, header.last_offset + 1), [])[:_MOST_CANDIDATES]
        rests = [crcs.rest(candidate.start, header.size) for candidate in candidates]
        for end, cut in crcs.fits(crcs.beginning(header), crcs.table(rests)):
            yield header.position + cut
            yield end - header.size + cut
