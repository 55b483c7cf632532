"""Joins of runs: what proves that two pieces are of one file, by position, offsets and CRCs.

A link is proof, or a touch of two whole batches, or only likely. A likely link shows a place to look at, and nothing
else depends on it: batches of partitions that were written in lockstep have the same offsets and sizes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import NamedTuple
from zlib import crc32

from kseg import kernel
from kseg.carve.loose_blocks import Ends, LooseBlocks
from kseg.carve.runs import Run, Runs, StartIndex, TornHead
from kseg.formats.codes import BATCH_HEADER_SIZE, LOG_OVERHEAD
from kseg.formats.header_fields import BATCH_HEADER_FIELDS, BATCH_LENGTH, BATCH_MAGIC
from kseg.kernel.carve_contract import SURE_BREAK, SURE_REST
from kseg.reading.batch import Batch, BatchHeader, parse_header

MOST_CANDIDATES = 64
"""Most runs that are tried for one torn batch; with more, it stays unplaced."""
_LEAST_SEARCHED = 1 << 20
"""The least bytes before a run in which a batch without its first bytes is looked for: `message.max.bytes`."""
_MOST_LEGACY = 1 << 28
"""The most bytes whose CRC is computed for a message of format 0 or 1, whose pieces have no quick tests."""
_LEAST_DIFFERENT = 8
"""The least bytes of a batch's rest that must be unlike the end of the preceding batch."""
_MOST_COMPARED = 256
"""The most bytes of a batch's rest that are compared with that end: headers of records are smaller."""
_EPOCH = BATCH_HEADER_FIELDS.field("partition_leader_epoch")


class LinkKind(StrEnum):
    """Kinds of links between a run and the preceding one."""

    TOUCHING = "touching"
    "The next offset follows directly; no other place in the images has it at the same place of a block."
    CRC = "crc"
    "A batch with one piece in each has the right CRC."
    EXTENT = "extent"
    "A list of a file's blocks in the file system has both, and the offsets agree."
    LIKELY = "likely"
    "Offsets and CRC fit, but another partition's batch may fit as well."


class How(StrEnum):
    """Ways in which a batch is found."""

    WHOLE = "whole"
    JOINED = "joined"
    "In two pieces, which the CRC joins."
    JOINED_3 = "joined-3"
    "In three pieces, which the CRC joins."
    HEADLESS = "headless"
    "By its CRC; its first bytes, or their offset, follow from the batch after it."


class PiecedBatch(NamedTuple):
    """A batch that isn't in one place: bytes that were rebuilt, then pieces of the images.

    header: its position is the first piece's. pieces: start and end of each.
    """

    header: BatchHeader
    rebuilt: bytes
    pieces: tuple[tuple[int, int], ...]
    how: How


class Link(NamedTuple):
    """A run that comes directly before another one in its file."""

    before: int
    kind: LinkKind


@dataclass(slots=True)
class Joins:
    """The links of all runs.

    leads: by run, the pieced batches before it, the last of them perhaps instead of its first one. trails: by run, the
    pieced batches after it, before the next run. apart: pieced batches of files without any run. skipped: runs whose
    first batch is left out: there is another one in `leads`, or its offset is unknown. links: by run, what is certainly
    before it. likely: pairs of runs. torn: heads without their rest.
    """

    leads: dict[int, list[PiecedBatch]] = field(default_factory=dict)
    trails: dict[int, list[PiecedBatch]] = field(default_factory=dict)
    apart: list[list[PiecedBatch]] = field(default_factory=list)
    skipped: set[int] = field(default_factory=set)
    links: dict[int, Link] = field(default_factory=dict)
    likely: list[tuple[int, int]] = field(default_factory=list)
    torn: list[TornHead] = field(default_factory=list)


def join_runs(runs: Runs) -> Joins:
    """Link runs, the surest rules first."""
    return _Joiner(runs).join()


class _Joiner:
    def __init__(self, runs: Runs) -> None:
        self._runs, self._kernel, self._found = runs, kernel.load(), Joins()
        self._index = StartIndex(runs)
        self._next_of: dict[int, int] = {}
        """By run, the run that directly follows it by its position and offset."""

    def join(self) -> Joins:
        runs = self._runs.runs
        for run in runs:
            self._judge_first_batch(run)
        for run in runs:
            if self._follows(run):
                self._next_of[run.number - 1] = run.number
        heads = [head for run in runs if run.number not in self._next_of and (head := self._runs.torn_head(run))]
        heads = self._join_torn(heads)
        self._link_adjacent(heads)
        heads = self._join_early_breaks(heads)
        self._find_headless()
        self._found.torn = self._join_by_loose_blocks(heads)
        return self._found

    # --- whole batches ---

    def _judge_first_batch(self, run: Run) -> None:
        """Check the offset of a batch that has few bytes in its first block: these may be of another file."""
        if not run.missing:
            return
        one, runs = self._runs.batches.header(run.first), self._runs
        before = runs.runs[run.number - 1] if runs.is_adjacent(run.number) else None
        follower = self._follower(run)
        if follower is not None and follower.base_offset == one.last_offset + 1:
            return
        is_cleaned = runs.is_cleaned(run.first + 1, run.last)
        if before is not None:
            is_cleaned |= runs.is_cleaned(before.first, before.last)
        is_cleaned |= one.is_legacy
        is_next = before is not None and before.next_offset == run.base_offset
        is_behind = before is not None and before.next_offset <= run.base_offset
        if is_next if follower is None else is_cleaned and is_behind:
            return
        self._found.skipped.add(run.number)
        is_of_zeros = before is None and run.base_offset == 0
        if follower is None or is_cleaned or (before is None and not is_of_zeros):
            return
        epoch = one.partition_leader_epoch if run.missing <= _EPOCH.position else follower.partition_leader_epoch
        rebuilt = _new_head(one, follower, epoch)[: _EPOCH.end]
        if rebuilt:
            self._add_lead(run, rebuilt, ((run.start + _EPOCH.end, one.end),), How.HEADLESS)

    def _follower(self, run: Run) -> BatchHeader | None:
        """Return the batch after the first one of a run, if it is adjacent."""
        if run.last - run.first > 1:
            return self._runs.batches.header(run.first + 1)
        if run.number + 1 < len(self._runs.runs) and self._runs.is_adjacent(run.number + 1):
            return self._runs.batches.header(run.last)
        return None

    def _follows(self, run: Run) -> bool:
        """Return True if a run continues the adjacent one before it."""
        if not self._runs.is_adjacent(run.number) or run.number in self._found.skipped:
            return False
        before = self._runs.runs[run.number - 1]
        return before.next_offset == run.base_offset and before.last_epoch <= run.first_epoch

    def _link_adjacent(self, torn: list[TornHead]) -> None:
        """Link adjacent runs unless a run elsewhere wants, or has, the same offset at the same place of a block."""
        place_of, runs = self._runs.place_of, self._runs.runs
        ends: dict[tuple[int, int], set[int]] = {}  # by offset and place, the CRCs of the batches before them
        starts: dict[tuple[int, int], set[int]] = {}
        for head in torn:
            if head.next_offset is not None:
                ends.setdefault((head.next_offset, place_of(head.end)), set()).add(head.header.crc)
        followed = {link.before for link in self._found.links.values()}
        for run in runs:
            if run.number not in self._next_of and run.number not in followed and self._runs.may_continue(run):
                ends.setdefault((run.next_offset, place_of(run.end)), set()).add(self._crc_of(run.last - 1))
            is_free = run.number not in self._found.links and run.number not in self._found.leads
            if place_of(run.start) < SURE_REST and is_free and self._next_of.get(run.number - 1) != run.number:
                starts.setdefault((run.base_offset, place_of(run.start)), set()).add(self._crc_of(run.first))
        for before, after in self._next_of.items():
            run = runs[after]
            key = run.base_offset, place_of(run.start)
            rivals = ends.get(key, set()) - {self._crc_of(runs[before].last - 1)}
            rivals |= starts.get(key, set()) - {self._crc_of(run.first)}
            last = self._runs.batches.header(runs[before].last - 1)
            size = place_of(run.start)
            is_rest_sure = size < SURE_REST and self._has_sure_rest(last, run.start, size)
            if rivals and not is_rest_sure:
                self._found.likely.append((before, after))
            else:
                self._found.links[after] = Link(before, LinkKind.TOUCHING)

    def _crc_of(self, row: int) -> int:
        return self._runs.batches.header(row).crc

    def _has_sure_rest(self, header: BatchHeader, end: int, size: int) -> bool:
        """Return True if the last bytes of a batch certainly are of its file.

        They tell that only if the batches before and after it don't end with nearly the same ones.
        """
        compared = min(size, _MOST_COMPARED)
        rest = self._ending(end, compared)
        neighbours = [self._ending(header.position, compared)]
        follower = self._runs.run_at(end)
        if follower is not None:
            neighbours.append(self._ending(self._runs.batches.header(follower.first).end, compared))
        return all(size - _common_ending(rest, each) >= _LEAST_DIFFERENT for each in neighbours)

    def _ending(self, end: int, size: int) -> bytes:
        """Return the bytes before a position, at most some of them."""
        return self._runs.images.read(max(end - size, self._runs.images.first_position(end)), end)

    # --- torn batches ---

    def _is_open(self, number: int) -> bool:
        """Return True if nothing is known before a run, so that a torn batch's rest may be there."""
        found = self._found
        is_taken = number in found.leads or number in found.skipped or number in found.links
        return not is_taken and self._next_of.get(number - 1) != number

    def _join_torn(self, heads: list[TornHead]) -> list[TornHead]:
        """Join batches whose head has enough bytes to tell it from others; return the other heads."""
        fits: dict[int, list[tuple[TornHead, int]]] = {}
        runs_of: dict[int, set[int]] = {}
        for head in heads:
            for number, cut in self._fitting_runs(head):
                fits.setdefault(number, []).append((head, cut))
                runs_of.setdefault(head.run, set()).add(number)
        joined: set[int] = set()
        for number, found in sorted(fits.items()):
            head, cut = found[0]
            if len({each.run for each, _ in found}) > 1 or len(runs_of[head.run]) > 1 or self._has_twin(head, number):
                self._found.likely += [(each.run, number) for each, _ in found]
                continue
            start, end = head.header.position, self._runs.runs[number].start
            self._add_joined(head, end, number, ((start, start + cut), (end - head.header.size + cut, end)))
            joined.add(head.run)
        return [head for head in heads if head.run not in joined]

    def _add_joined(
        self, head: TornHead, end: int | None, tail: int | None, pieces: tuple[tuple[int, int], ...]
    ) -> bool:
        """Add a torn batch; return True if it proves what follows it. Too short a rest may be of another partition."""
        how = How.JOINED if len(pieces) == 2 else How.JOINED_3
        is_sure = end is not None and self._has_sure_rest(head.header, end, end - pieces[-1][0])
        if is_sure and tail is not None:
            self._add_lead(self._runs.runs[tail], b"", pieces, how)
            self._found.links[tail] = Link(head.run, LinkKind.CRC)
        else:
            self._found.trails.setdefault(head.run, []).append(self._torn_batch(b"", pieces, how))
            if tail is not None:
                self._found.likely.append((head.run, tail))
        return is_sure

    def _has_twin(self, head: TornHead, number: int) -> bool:
        """Return True if a batch next to the torn one is elsewhere too, so that the torn one may be as well."""
        repeated = self._runs.repeated
        return self._runs.runs[head.run].last - 1 in repeated or self._runs.runs[number].first in repeated

    def _fitting_runs(self, head: TornHead) -> Iterator[tuple[int, int]]:
        """Yield runs, and breaks, with which a head has the right CRC."""
        first = head.room if head.room >= SURE_BREAK else head.room + self._runs.block
        if first >= head.header.size or head.header.last_offset < head.header.first_offset:
            return
        numbers = self._index.at(self._runs.place_of(head.end), head.header.last_offset + 1)
        numbers = [number for number in numbers if self._is_open(number)]
        if not numbers or len(numbers) > MOST_CANDIDATES:
            return
        size = head.header.size
        beginning = self._beginning(head)
        for number in numbers:
            rest = self._rest(number, size)
            least = size - self._uncovered_before(number)
            cut = first + max(0, -(-(least - first) // self._runs.block)) * self._runs.block
            for each in self._fit_breaks(head, beginning, rest, cut)[:1]:
                yield number, each

    def _fit_breaks(self, head: TornHead, beginning: bytes, rest: bytes, first: int) -> list[int]:
        """Return the breaks, `first` or some blocks later, with which a batch or message has its CRC."""
        block, crc = self._runs.block, head.header.crc
        if not head.header.is_legacy:
            return self._kernel.fit_breaks(memoryview(beginning), memoryview(rest), crc, first, block)
        cuts = range(first, min(len(beginning), len(rest) - 1) + 1, block)
        if len(cuts) * len(rest) > _MOST_LEGACY:
            return []
        of_head = (crc32(beginning[BATCH_MAGIC.position : cut]) for cut in cuts)
        return [cut for cut, before in zip(cuts, of_head, strict=True) if crc32(rest[cut:], before) == crc]

    def _beginning(self, head: TornHead) -> bytes:
        """Return the bytes from a head's position on that may be its batch's."""
        start, end = head.header.position, head.end
        following = self._runs.next_start(start)
        return self._runs.images.read(start, end if following is None else min(end, following))

    def _rest(self, number: int, size: int) -> bytes:
        """Return the bytes before a run: as many as a batch has, zeros where the image begins."""
        return self._ending(self._runs.runs[number].start, size).rjust(size, b"\0")

    def _uncovered_before(self, number: int) -> int:
        """Return the bytes between a run and the preceding one, or the start of its image."""
        return self._runs.uncovered_before(self._runs.runs[number].start)

    def _join_early_breaks(self, heads: list[TornHead]) -> list[TornHead]:
        """Join batches whose head ends before SURE_BREAK: they are of their rest's file. Return the other heads."""
        left: list[TornHead] = []
        for head in heads:
            found = list(self._early_fits(head))
            for number in found:
                self._found.likely.append((head.run, number))
            if not found:
                left.append(head)
        return left

    def _early_fits(self, head: TornHead) -> Iterator[int]:
        size, room, position = head.header.size, head.room, head.header.position
        if room >= SURE_BREAK or room >= size or head.header.is_legacy:
            return
        beginning = self._runs.images.read(position, position + room)
        for number in self._index.after(self._runs.place_of(head.end), head.header.first_offset, MOST_CANDIDATES):
            run = self._runs.runs[number]
            found = self._found
            if number in found.links or number in found.skipped or self._next_of.get(number - 1) == number:
                continue
            if size - room > self._uncovered_before(number):
                continue
            rest = self._rest(number, size)
            header = parse_header((beginning + rest[room:])[:BATCH_HEADER_SIZE], 0, position)
            if header.last_offset + 1 != run.base_offset:
                continue
            if self._kernel.fit_breaks(memoryview(beginning), memoryview(rest), header.crc, room, size):
                if number not in self._found.leads:
                    rebuilt = _new_head(header, self._runs.batches.header(run.first), run.first_epoch)
                    pieces = ((position + _EPOCH.end, position + room), (run.start - size + room, run.start))
                    self._add_lead(run, rebuilt[: _EPOCH.end], pieces, How.HEADLESS)
                yield number

    def _find_headless(self) -> None:
        """Find batches before runs by their CRC alone."""
        runs, block = self._runs, self._runs.block
        searched = max(_LEAST_SEARCHED, runs.largest_batch)
        for run in runs.runs:
            if not self._is_open(run.number) or (run.missing and runs.is_adjacent(run.number)):
                continue
            start = run.start - min(self._uncovered_before(run.number), searched)
            start += runs.room_after(start)
            if start >= run.start:
                continue
            tail = runs.images.read(start, run.start)
            found = self._kernel.find_headless(memoryview(tail), block)
            if len(found) != 1:
                continue
            at, missing = found[0]
            size = len(tail) - at + missing
            known = bytes(missing) + tail[at : at + BATCH_HEADER_SIZE]
            header = parse_header(_with_magic(known), 0, start + at)._replace(size=size)
            follower = runs.batches.header(run.first)
            rebuilt = _new_head(header, follower, follower.partition_leader_epoch)[:missing]
            if rebuilt:
                self._add_lead(run, rebuilt, ((start + at, run.start),), How.HEADLESS)

    def _join_by_loose_blocks(self, heads: list[TornHead]) -> list[TornHead]:
        """Join batches whose pieces are in blocks without other batches. Return the other heads."""
        if not heads:
            return []
        leads, trails = self._found.leads.values(), self._found.trails.values()
        taken = [piece for batch in chain.from_iterable((*leads, *trails)) for piece in batch.pieces]
        loose = LooseBlocks(self._runs, taken, [head.header.position for head in heads])
        left: list[TornHead] = []
        while heads:
            joined: set[int] = set()
            following: list[TornHead] = []
            for ends, pieces in loose.fits([ends for head in heads for ends in self._ends(head, loose)]):
                head = ends.head
                joined.add(head.run)
                if self._add_joined(head, ends.end, ends.tail, pieces) and ends.end is not None and ends.tail is None:
                    torn = self._runs.torn_head_at(ends.end, head.header.last_offset + 1, head.run)
                    following += [torn] if torn else []
            left += [head for head in heads if head.run not in joined]
            heads = self._join_torn(following)
        return left

    def _ends(self, head: TornHead, loose: LooseBlocks) -> Iterator[Ends]:
        """Yield the beginning of a torn batch with each of its possible ends, also with none."""
        header = head.header
        beginning = self._beginning(head)
        is_known = SURE_BREAK <= head.room < header.size and header.last_offset >= header.first_offset
        if header.is_legacy or not is_known or len(beginning) < head.room:
            return
        yield Ends(head, beginning, None, None, b"")
        place, wanted = self._runs.place_of(head.end), header.last_offset + 1
        numbers = [number for number in self._index.at(place, wanted) if self._is_open(number)]
        ends: list[tuple[int, int | None]] = [(self._runs.runs[number].start, number) for number in numbers]
        ends += [(position, None) for position in loose.heads_at(place, wanted)]
        for end, tail in ends if len(ends) <= MOST_CANDIDATES else ():
            size = min(self._runs.uncovered_before(end), header.size)
            if size:
                yield Ends(head, beginning, end, tail, self._runs.images.read(end - size, end))

    def _torn_batch(self, rebuilt: bytes, pieces: tuple[tuple[int, int], ...], how: How) -> PiecedBatch:
        beginnings = (self._runs.images.read(start, min(end, start + BATCH_HEADER_SIZE)) for start, end in pieces)
        first = rebuilt + b"".join(beginnings)[:BATCH_HEADER_SIZE]
        header = parse_header(first.ljust(BATCH_HEADER_SIZE, b"\0"), 0, pieces[0][0], is_valid=True)
        if header.base_offset is None:
            wrapper = b"".join(self._runs.images.read(*piece) for piece in pieces)
            header = header._replace(base_offset=Batch.parse(wrapper, 0, is_valid=True).base_offset)
        return PiecedBatch(header, rebuilt, pieces, how)

    def _add_lead(self, run: Run, rebuilt: bytes, pieces: tuple[tuple[int, int], ...], how: How) -> None:
        self._found.leads[run.number] = [self._torn_batch(rebuilt, pieces, how)]


def _common_ending(one: bytes, other: bytes) -> int:
    """Return the number of last bytes that are the same."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return next((count for count, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _with_magic(header: bytes) -> bytes:
    return header[: BATCH_MAGIC.position] + b"\2" + header[BATCH_MAGIC.end :]


def _new_head(header: BatchHeader, follower: BatchHeader, epoch: int) -> bytes:
    """Return the first bytes of a batch, up to its magic, so that it ends where another one begins.

    Empty if it would begin before offset 0.
    """
    base_offset = follower.first_offset - (header.last_offset - header.first_offset) - 1
    if base_offset < 0:
        return b""
    head = bytearray(BATCH_MAGIC.end)
    BATCH_HEADER_FIELDS.field("base_offset").write(head, base_offset)
    BATCH_LENGTH.write(head, header.size - LOG_OVERHEAD)
    _EPOCH.write(head, epoch)
    BATCH_MAGIC.write(head, 2)
    return bytes(head)
