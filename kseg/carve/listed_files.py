"""Files by lists of their extents: batches that follow each other in the bytes that a list puts together."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from itertools import accumulate, pairwise
from typing import TypeAlias
from zlib import crc32

from kseg import kernel
from kseg.carve.extents import FileExtents, FileRange
from kseg.carve.images import Images
from kseg.carve.joins import How, PiecedBatch
from kseg.carve.runs import Run, Runs
from kseg.carve.scan import FoundBatches, find_batches
from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.formats.header_fields import BATCH_MAGIC, LEAST_SIZES
from kseg.kernel.carve_contract import CRC_START, LARGEST_BATCH, SURE_BREAK, SURE_REST
from kseg.reading.batch import Batch, BatchHeader, parse_header

_MOST_STEPS = 1 << 20
"""The most runs and pieced batches that are visited: journals have many copies of a list."""
_STEPS_OF_SEARCH = 64
"""The steps that a search for torn batches takes at least."""
_MOST_CONTINUATIONS = 8
"""The most lists that are tried as the continuation of another one."""
_LEAST_BYTES = 64 << 20
_SHARE_OF_OTHERS = 16
"""One in so many bytes of the images may be searched in lists without a known batch: most are of other files."""

Step: TypeAlias = Run | PiecedBatch
"""A step along a file: batches that are in one place, or one that is in pieces."""
_Pieces: TypeAlias = tuple[FileRange, ...]


class ListedFiles:
    """Walks along files, with a bound for the work of all of them.

    A batch is read once for each list that has other pieces for it: images may have as many lists as they have room
    for, of overlapping extents.
    """

    def __init__(self, runs: Runs, skipped: Collection[int]) -> None:
        """skipped: runs whose first batch may be of another file."""
        self._runs, self._skipped, self._kernel = runs, skipped, kernel.load()
        size = sum(image.size for image in runs.images)
        self._steps = _MOST_STEPS
        self._left, self._left_of_others = size + _LEAST_BYTES, size // _SHARE_OF_OTHERS + _LEAST_BYTES
        self._batches: dict[_Pieces, BatchHeader | None] = {}
        self._searched: dict[_Pieces, list[int]] = {}

    def walks(self, lists: Iterable[FileExtents]) -> Iterator[list[Step]]:
        """Yield the steps that follow each other in a file, as far as its list and its contents agree."""
        lists = list(lists)
        known: list[FileExtents] = []
        others: list[FileExtents] = []
        for extents in lists:
            file = _FileBytes(self._runs.images, extents.ranges)
            is_known = self._next_run(file, 0) < file.size or (not extents.position and self._walk(file, 0)[0])
            (known if is_known else others).append(extents)
        for extents in known:
            yield from self._sure_walks(extents)
        yield from self._batches_between(known, lists)
        self._left = min(self._left, self._left_of_others)
        for extents in others:
            yield from self._sure_walks(extents)

    def _sure_walks(self, extents: FileExtents) -> Iterator[list[Step]]:
        """Yield the walks along a file, cut at weak places if there are several: some blocks may be another file's."""
        walks = list(self._walks_along(extents))
        for walk in walks:
            yield from [walk] if len(walks) == 1 else self._without_weak_places(walk)

    def _batches_between(self, known: list[FileExtents], lists: list[FileExtents]) -> Iterator[list[Step]]:
        """Yield batches between two lists, each with its neighbours: lists of many extents are in several blocks.

        Only the CRC of such a batch proves that the lists are of one file.
        """
        of_position: dict[int, list[FileExtents]] = {}
        for each in lists:
            of_position.setdefault(each.position, []).append(each)
        for one in known:
            for other in of_position.get(one.end, [])[:_MOST_CONTINUATIONS]:
                self._steps -= len(one.ranges) + len(other.ranges)
                if self._steps <= 0:
                    return
                for walk in self._walks_along(FileExtents(one.position, one.ranges + other.ranges)):
                    for number, step in enumerate(walk):
                        if _joins_at(step, other.ranges[0].start):
                            yield from self._without_weak_places(walk[max(number - 1, 0) : number + 2])

    def _without_weak_places(self, steps: list[Step]) -> Iterator[list[Step]]:
        """Yield the parts of a walk, cut where only the list says that a step follows the preceding one.

        Parts stay together if both have a batch whose CRC joins ranges: the list is right before and after the place.
        """
        parts: list[list[Step]] = []
        for step in steps:
            if not parts or self._is_weak_place(self._start_of(step)):
                parts.append([])
            parts[-1].append(step)
        held = parts[0]
        for before, after in pairwise(parts):
            if any(map(_joins_ranges, before)) and any(map(_joins_ranges, after)):
                held += after
            else:
                yield held
                held = after[has_weak_head(after[0]) :]
        yield held

    def _start_of(self, step: Step) -> int:
        return step.pieces[0][0] if isinstance(step, PiecedBatch) else self._first_of(step).position

    def _is_weak_place(self, position: int) -> bool:
        """Return True if the bytes around the start of a batch may be of two files, although offsets follow."""
        return self._runs.place_of(position) < SURE_REST or self._runs.room_after(position) < SURE_BREAK

    def _walks_along(self, extents: FileExtents) -> Iterator[list[Step]]:
        """Yield the steps from the start of a file on, and those after each place where list and contents disagree."""
        file = _FileBytes(self._runs.images, extents.ranges)
        steps, at = self._walk(file, 0) if not extents.position else ([], 0)
        if steps:
            yield steps
        while at < file.size and self._steps > 0:
            next_run = self._next_run(file, at)
            for start in (*self._torn_between(file, at, next_run), next_run):
                if at <= start < file.size:
                    steps, at = self._walk(file, start)
                    if steps:
                        yield steps
                    at = max(at, start + 1)
            at = max(at, next_run)

    def _walk(self, file: "_FileBytes", at: int) -> tuple[list[Step], int]:
        """Return the steps from a place on, and the place where they end."""
        steps: list[Step] = []
        while at < file.size and self._steps > 0:
            self._steps -= 1
            step = self._step_at(file, at, steps[-1] if steps else None)
            if step is None:
                break
            steps.append(step)
            at += step.header.size if isinstance(step, PiecedBatch) else step.end - file.place(at).start
        while steps and has_weak_head(steps[-1]):
            steps.pop()
        return steps, at

    def _step_at(self, file: "_FileBytes", at: int, before: Step | None) -> Step | None:
        """Return the step at a place, if it continues the one before it."""
        position, end = file.place(at)
        run = self._run_with(position)
        if run is None or (run.number in self._skipped and position == run.start):
            return self._batch_at(file, at, before)
        if run.first == run.last - 1 and run.number in self._skipped:
            return None
        first = self._first_of(run)
        is_here = position == first.position and run.end <= end
        return run if is_here and (before is None or self._follows(before, first)) else None

    def _run_with(self, position: int) -> Run | None:
        """Return the run that has a position."""
        number = bisect_right(self._runs.starts, position) - 1
        return self._runs.runs[number] if number >= 0 and position < self._runs.runs[number].end else None

    def _first_of(self, run: Run) -> BatchHeader:
        """Return the first batch of a run that certainly is of its file."""
        return self._runs.batches.header(run.first + (run.number in self._skipped))

    def _follows(self, before: Step, header: BatchHeader) -> bool:
        """Return True if a batch continues a step. Offsets may jump only between whole neighbours inside a block."""
        if isinstance(before, PiecedBatch):
            last, may_jump = before.header, False
        else:
            last = self._runs.batches.header(before.last - 1)
            may_jump = not self._is_weak_place(header.position)
        next_offset = last.last_offset + 1
        is_next = header.first_offset == next_offset or (may_jump and header.first_offset > next_offset)
        is_later = last.partition_leader_epoch <= header.partition_leader_epoch and last.magic <= header.magic
        return is_next and is_later

    def _batch_at(self, file: "_FileBytes", at: int, before: Step | None) -> PiecedBatch | None:
        """Return the batch at a place, if its CRC is right."""
        position = file.place(at).start
        content = file.read(at, at + BATCH_HEADER_SIZE)
        if len(content) <= BATCH_MAGIC.position or not 0 <= content[BATCH_MAGIC.position] <= 2:
            return None
        header = parse_header(content.ljust(BATCH_HEADER_SIZE, b"\0"), 0, position)
        is_sized = LEAST_SIZES[header.magic] <= header.size <= min(LARGEST_BATCH, file.size - at)
        if not is_sized or not 0 <= header.first_offset <= header.last_offset or (before is None and header.is_legacy):
            return None
        pieces = file.pieces(at, at + header.size)
        checked = self._valid_header(pieces, header)
        if checked is None or (before is not None and not self._follows(before, checked)):
            return None
        batch = PiecedBatch(checked, b"", pieces, How.WHOLE if len(pieces) == 1 else How.EXTENTS)
        return None if before is None and has_weak_head(batch) else batch

    def _valid_header(self, pieces: _Pieces, header: BatchHeader) -> BatchHeader | None:
        """Return the header of a batch whose CRC is right."""
        if pieces not in self._batches and self._may_read(header.size):
            raw = b"".join(self._runs.images.read(*piece) for piece in pieces)
            self._batches[pieces] = self._check(raw, header)
        return self._batches.get(pieces)

    def _check(self, raw: bytes, header: BatchHeader) -> BatchHeader | None:
        if not header.is_legacy:
            is_valid = self._kernel.crc32c(memoryview(raw)[CRC_START:]) == header.crc
        else:
            is_valid = crc32(memoryview(raw)[BATCH_MAGIC.position :]) == header.crc
        if is_valid and header.base_offset is None:
            header = header._replace(base_offset=Batch.parse(raw, 0, is_valid=True).base_offset)
        return header._replace(is_valid=True) if is_valid else None

    def _may_read(self, size: int) -> bool:
        self._left -= size
        return self._left >= 0

    def _next_run(self, file: "_FileBytes", at: int) -> int:
        """Return the place of the first certain batch of the next run; the file's size if there is none.

        The run doesn't cross the end of its range: if one does, the list is older than the contents.
        """
        for start, position, end in file.ranges_from(at):
            number = bisect_left(self._runs.starts, position)
            if number and self._runs.runs[number - 1].end > position:
                number -= 1  # a run whose first batch is left out may begin before `at`
            while number < len(self._runs.runs) and self._runs.starts[number] < end:
                run = self._runs.runs[number]
                first = run.first + (number in self._skipped)
                if first < run.last and run.end <= end:
                    found = self._runs.batches.header(first).position
                    if found >= position:
                        return start + found - position
                self._steps -= 1
                number += 1
            if self._steps <= 0:
                break
        return file.size

    def _torn_between(self, file: "_FileBytes", start: int, end: int) -> list[int]:
        """Return the places of the torn batches between two places, at any byte."""
        pieces = file.pieces(start, end)
        if len(pieces) < 2:
            return []
        if pieces not in self._searched:
            self._steps -= _STEPS_OF_SEARCH
            if not self._may_read(end - start):
                return []
            part, batches = _FileBytes(self._runs.images, pieces), FoundBatches()
            find_batches(part, batches, on_read=lambda _: None)
            self._searched[pieces] = [
                header.position
                for header in batches.headers(0, len(batches))
                if header.end > header.position + part.room_after(header.position)
            ]
        return [start + at for at in self._searched[pieces]]


def has_weak_head(step: Step) -> bool:
    """Return True for a batch whose first bytes, with the offset, may be of another file than the rest.

    A batch in one piece is the first one of a run, left out since the preceding block has few of its bytes.
    """
    if not isinstance(step, PiecedBatch):
        return False
    start, end = step.pieces[0]
    return len(step.pieces) == 1 or end - start < SURE_BREAK


def _joins_at(step: Step, position: int) -> bool:
    """Return True for a batch with a piece that begins at a position, and whose CRC proves that it is of its file."""
    return (
        isinstance(step, PiecedBatch)
        and not has_weak_head(step)
        and any(start == position for start, _ in step.pieces[1:])
    )


def _joins_ranges(step: Step) -> bool:
    """Return True for a batch whose CRC proves that two ranges of a list follow each other in the file."""
    return isinstance(step, PiecedBatch) and len(step.pieces) - has_weak_head(step) > 1


class _FileBytes:
    """The bytes of a file, or of a part of it: readable like an image."""

    base = 0

    def __init__(self, images: Images, ranges: _Pieces) -> None:
        self._images, self._ranges = images, ranges
        *self._starts, self.size = accumulate((each.end - each.start for each in ranges), initial=0)

    def place(self, at: int) -> FileRange:
        """Return the position of a byte, and the end of its range."""
        number = bisect_right(self._starts, at) - 1
        start, end = self._ranges[number]
        return FileRange(start + at - self._starts[number], end)

    def room_after(self, at: int) -> int:
        """Return the bytes from a place to the end of its range."""
        position, end = self.place(at)
        return end - position

    def ranges_from(self, at: int) -> Iterator[tuple[int, int, int]]:
        """Yield the ranges from a place on: the place, the position and the end of each."""
        for number in range(bisect_right(self._starts, at) - 1, len(self._ranges)):
            start, end = self._ranges[number]
            before = max(at - self._starts[number], 0)
            yield self._starts[number] + before, start + before, end

    def pieces(self, start: int, end: int) -> _Pieces:
        """Return the parts of the images that have some bytes of the file."""
        found = []
        for at, position, last in self.ranges_from(start):
            if at >= end:
                break
            found.append(FileRange(position, min(last, position + end - at)))
        return tuple(found)

    def read(self, start: int, end: int) -> bytes:
        """Return some bytes; fewer at the end of the file."""
        return b"".join(self._images.read(*piece) for piece in self.pieces(start, min(end, self.size)))

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill a buffer; return the number of bytes, fewer at the end of the file."""
        content = self.read(position, position + len(buffer))
        buffer[: len(content)] = content
        return len(content)
