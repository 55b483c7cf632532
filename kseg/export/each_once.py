"""Each offset once, in a log whose offsets don't rise: which record of an offset counts, if several have it."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from kseg.export.settings import OffsetRange
from kseg.kernel.contract import LEAST, MOST
from kseg.reading.header import BatchHeader


class OffsetSet:
    """A set of offsets, kept as runs of consecutive ones: 16 bytes for each run."""

    def __init__(self) -> None:
        self._firsts, self._lasts = array("q"), array("q")

    def __contains__(self, offset: int) -> bool:
        place = bisect_right(self._firsts, offset) - 1
        return place >= 0 and offset <= self._lasts[place]

    def add(self, first: int, last: int) -> None:
        """Adds the offsets from one to another, the second included."""
        low = bisect_left(self._lasts, max(first - 1, LEAST))
        high = bisect_right(self._firsts, min(last + 1, MOST), low)
        if low < high:
            first, last = min(first, self._firsts[low]), max(last, self._lasts[high - 1])
        self._firsts[low:high], self._lasts[low:high] = array("q", [first]), array("q", [last])

    def meets(self, first: int, last: int) -> bool:
        """Whether one of the offsets is in the set."""
        place = bisect_left(self._lasts, first)
        return place < len(self._firsts) and self._firsts[place] <= last

    def next_after_run_below(self, offset: int) -> int | None:
        """The offset after the last one in the set that is below the given one; None if there is none."""
        place = bisect_left(self._firsts, offset) - 1
        return None if place < 0 else min(self._lasts[place] + 1, offset)

    def ranges(self, first: int, end: int) -> Iterator[OffsetRange]:
        """The runs that share offsets with a range."""
        for place in range(bisect_left(self._lasts, first), bisect_left(self._firsts, end)):
            yield OffsetRange(self._firsts[place], self._lasts[place] + 1)

    def runs(self) -> Iterator[tuple[int, int]]:
        """The first and last offsets of its runs."""
        return zip(self._firsts, self._lasts, strict=True)

    @property
    def first(self) -> int | None:
        """The lowest offset."""
        return self._firsts[0] if self._firsts else None


class LeaderEpochs:
    """For each offset the highest leader epoch of a batch that has it in its range."""

    def __init__(self) -> None:
        self._firsts, self._lasts, self._epochs = array("q"), array("q"), array("q")

    def add(self, first: int, last: int, epoch: int) -> None:
        """Takes a batch's range, the last offset included."""
        low, high = bisect_left(self._lasts, first), bisect_right(self._firsts, last)
        parts: list[tuple[int, int, int]] = []
        at = first
        for place in range(low, high):
            known_first, known_last, known = self._firsts[place], self._lasts[place], self._epochs[place]
            if known_first < first:
                parts.append((known_first, first - 1, known))
            if at < known_first:
                parts.append((at, known_first - 1, epoch))
            parts.append((max(known_first, first), min(known_last, last), max(known, epoch)))
            if known_last > last:
                parts.append((last + 1, known_last, known))
            at = known_last + 1
        if at <= last:
            parts.append((at, last, epoch))
        if low == high == len(self._firsts) and low and self._continues(first, epoch):
            self._lasts[-1] = last
            return
        for column, values in zip((self._firsts, self._lasts, self._epochs), zip(*parts, strict=True), strict=True):
            column[low:high] = array("q", values)

    def _continues(self, first: int, epoch: int) -> bool:
        return self._lasts[-1] + 1 == first and self._epochs[-1] == epoch

    def highest(self, offset: int) -> int:
        """The highest epoch of an offset; -1 if none is known."""
        place = bisect_left(self._lasts, offset)
        is_there = place < len(self._firsts) and self._firsts[place] <= offset
        return self._epochs[place] if is_there else -1


class EachOnce:
    """Which records count: of those with one offset that of the highest leader epoch, of equal ones the first.

    `note` takes all batches before the first question.
    """

    def __init__(self) -> None:
        self._epochs = LeaderEpochs()
        self.taken = OffsetSet()

    def note(self, first: int, last: int, epoch: int) -> None:
        """Takes the range of a batch that is intact."""
        first, last = max(first, LEAST), min(last, MOST)
        if first <= last:
            self._epochs.add(first, last, epoch)

    def take(self, offset: int, epoch: int) -> bool:
        """Whether a record is the one of its offset; then it is taken."""
        if epoch < self._epochs.highest(offset) or offset in self.taken:
            return False
        self.taken.add(offset, offset)
        return True


class FileOrder:
    """Offsets that batches as they stand in the file explain: those in their ranges, and those that compaction took.

    Compaction may have taken what lies between a batch and the one after it, if that is higher, and no record lies in
    between anywhere else.
    """

    def __init__(self) -> None:
        self._ranges = OffsetSet()
        self._between = array("q"), array("q")
        self._next: int | None = None

    def add(self, header: BatchHeader, *, is_damaged: bool) -> None:
        """Takes the next batch of the file; is_damaged: there is damage before it."""
        first, last = max(header.first_offset, LEAST), min(header.last_offset, MOST)
        if first > last:
            return
        if self._next is not None and self._next < first and not is_damaged:
            self._between[0].append(self._next)
            self._between[1].append(first - 1)
        self._ranges.add(first, last)
        self._next = last + 1

    def explained(self, taken: OffsetSet) -> OffsetSet:
        """The offsets, and `taken`, which are those of all records. Nothing can be added after that."""
        for first, last in zip(*self._between, strict=True):
            if not taken.meets(first, last):
                self._ranges.add(first, last)
        for first, last in taken.runs():
            self._ranges.add(first, last)
        return self._ranges
