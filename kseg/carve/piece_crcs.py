"""CRCs of the pieces of torn batches: each piece is read once, and a break is tested by comparing two numbers."""

from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

from kseg.carve.runs import Blocks, Runs
from kseg.formats.header_fields import BATCH_MAGIC
from kseg.kernel.carve_contract import SURE_BREAK
from kseg.reading.batch import BatchHeader

_MOST_KEPT = 128
"""The most rests whose CRCs are kept: twice the runs that are compared with one torn batch."""

_MOST_LEGACY = 1 << 28
"""The most bytes whose CRC-32 is computed for a message and a run."""


class Beginning(NamedTuple):
    """The bytes of a torn batch before each of its possible breaks.

    first: bytes before the first break; each other one is a block later. crcs: by break, the CRC that the rest must
    have, as `wanted_crcs` returns it.
    """

    header: BatchHeader
    first: int
    crcs: "array[int]"


class Rest(NamedTuple):
    """The bytes before a position that no batch has: the end of a torn batch may be there.

    least: the fewest bytes that may be a rest; each larger one has a block more. crcs: by size, as `rest_crcs` returns
    them.
    """

    end: int
    least: int
    crcs: "array[int]"


class PieceCrcs:
    """CRCs of the pieces between runs, which break where blocks begin."""

    def __init__(self, runs: Runs, blocks: Blocks) -> None:
        self._runs, self._block, self._phase = runs, *blocks
        self._read_rest = lru_cache(_MOST_KEPT)(self._rest_of)

    def beginning(self, header: BatchHeader) -> Beginning:
        """Return the beginning of a torn batch of format 2, with breaks that leave enough bytes to tell its file."""
        start, end, first = header.position, self._end_of_beginning(header), self._first_break(header)
        if first > end - start or first >= header.size:
            return Beginning(header, first, array("I"))
        head = memoryview(self._runs.images.read(start, end))
        crcs = self._runs.kernel.wanted_crcs(head, header.size, header.crc, first, self._block)
        return Beginning(header, first, array("I", crcs))

    def _first_break(self, header: BatchHeader) -> int:
        return SURE_BREAK + (self._phase - header.position - SURE_BREAK) % self._block

    def _end_of_beginning(self, header: BatchHeader) -> int:
        following = self._runs.next_start(header.position)
        return header.end if following is None else min(header.end, following)

    def rest(self, end: int, size: int) -> Rest:
        """Return the bytes before a position, enough of them for a batch of `size` bytes if there are."""
        return self._read_rest(end, min(1 << size.bit_length(), self._runs.uncovered_before(end)))

    def _rest_of(self, end: int, size: int) -> Rest:
        least = (end - self._phase) % self._block or self._block
        ending = memoryview(self._runs.images.read(end - size, end))
        return Rest(end, least, array("I", self._runs.kernel.rest_crcs(ending, least, self._block)))

    def table(self, rests: Iterable[Rest]) -> "RestTable":
        """Return rests at one place of a block by their sizes and CRCs."""
        found: RestTable = {}
        for rest in rests:
            for number, crc in enumerate(rest.crcs):
                found.setdefault((rest.least + number * self._block, crc), []).append(rest.end)
        return found

    def fits(self, beginning: Beginning, table: "RestTable") -> Iterator[tuple[int, int]]:
        """Yield the ends of rests that fit a beginning, with the breaks, the first ones first."""
        for number, crc in enumerate(beginning.crcs):
            cut = beginning.first + number * self._block
            for end in table.get((beginning.header.size - cut, crc), ()):
                yield end, cut

    def legacy_fits(self, header: BatchHeader, ends: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield the same for a message of format 0 or 1, whose CRC-32 is computed for each break."""
        beginning = self._runs.images.read(header.position, self._end_of_beginning(header))
        for end in ends:
            rest = self._runs.ending(end, header.size).rjust(header.size, b"\0")
            first = self._first_break(header)
            least = header.size - self._runs.uncovered_before(end)
            first += max(0, -(-(least - first) // self._block)) * self._block
            cuts = range(first, min(len(beginning), header.size - 1) + 1, self._block)
            if len(cuts) * header.size <= _MOST_LEGACY:
                of_head = (crc32(beginning[BATCH_MAGIC.position : cut]) for cut in cuts)
                yield from (
                    (end, cut)
                    for cut, before in zip(cuts, of_head, strict=True)
                    if crc32(rest[cut:], before) == header.crc
                )


RestTable = dict[tuple[int, int], list[int]]
"""The ends of rests by the size and the CRC that they have."""
