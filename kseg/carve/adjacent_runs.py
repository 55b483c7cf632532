"""Adjacent runs: whether bytes that follow each other in an image certainly follow each other in a file."""

from collections.abc import Iterable, Iterator

from kseg.carve.headless import EPOCH, Headless, rebuild_batch
from kseg.carve.runs import Run, Runs
from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.reading.batch import BatchHeader

_LEAST_DIFFERENT = 8
"""The least bytes of a batch's rest that must be unlike the ends of the batches around it."""
_LEAST_SURE = 264
"""The least rest that isn't compared with these ends: records' headers, which may be alike, are smaller."""


def uncertain_first_batches(runs: Runs) -> Iterator[tuple[int, Headless | None]]:
    """Yield the runs whose first batch may have another file's first bytes, with the batch that follows from the next.

    It has few bytes in its first block, and its offset doesn't agree with the batches around it.
    """
    for run in runs.runs:
        if run.missing and not _offset_agrees(runs, run):
            yield run.number, _with_offset(runs, run)


def _offset_agrees(runs: Runs, run: Run) -> bool:
    before, follower = _run_before(runs, run), _follower(runs, run)
    if follower is not None and follower.base_offset == runs.batches.header(run.first).last_offset + 1:
        return True
    if follower is None:
        return before is not None and before.next_offset == run.base_offset
    return before is not None and before.next_offset <= run.base_offset and _is_cleaned(runs, run)


def _with_offset(runs: Runs, run: Run) -> Headless | None:
    """Return the first batch of a run with the offset that the next one implies."""
    before, follower = _run_before(runs, run), _follower(runs, run)
    is_of_zeros = before is None and run.base_offset == 0
    if follower is None or (before is None and not is_of_zeros) or _is_cleaned(runs, run):
        return None
    one = runs.batches.header(run.first)
    epoch = one.partition_leader_epoch if run.missing <= EPOCH.position else follower.partition_leader_epoch
    known = runs.images.read(one.position, one.position + BATCH_HEADER_SIZE)
    return rebuild_batch(known, one.size, EPOCH.end, follower.first_offset, epoch, ((run.start + EPOCH.end, one.end),))


def _run_before(runs: Runs, run: Run) -> Run | None:
    return runs.runs[run.number - 1] if runs.is_adjacent(run.number) else None


def _follower(runs: Runs, run: Run) -> BatchHeader | None:
    """Return the batch after the first one of a run, if it is adjacent."""
    if run.last - run.first > 1:
        return runs.batches.header(run.first + 1)
    if run.number + 1 < len(runs.runs) and runs.is_adjacent(run.number + 1):
        return runs.batches.header(run.last)
    return None


def _is_cleaned(runs: Runs, run: Run) -> bool:
    """Return True if gaps between offsets around a run's first batch mean nothing: the log may be cleaned."""
    before = _run_before(runs, run)
    if runs.batches.header(run.first).is_legacy or runs.is_cleaned(run.first + 1, run.last):
        return True
    return before is not None and runs.is_cleaned(before.first, before.last)


def continuing_runs(runs: Runs, skipped: Iterable[int]) -> dict[int, int]:
    """Return the runs that continue the adjacent one before them, by the number of that."""
    left_out = set(skipped)
    found = {}
    for run in runs.runs:
        if runs.is_adjacent(run.number) and run.number not in left_out:
            before = runs.runs[run.number - 1]
            if before.next_offset == run.base_offset and before.last_epoch <= run.first_epoch:
                found[before.number] = run.number
    return found


class Rivals:
    """Batches that begin or end with one offset at one place of a block, by the CRCs of their contents."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._crcs: dict[tuple[int, int], set[int]] = {}

    def add(self, offset: int | None, position: int, crc: int) -> None:
        """Add a batch whose end, or beginning, is at a position, and whose next offset, or own one, is given."""
        if offset is not None:
            self._crcs.setdefault((offset, self._runs.place_of(position)), set()).add(crc)

    def has_other(self, offset: int, position: int, crc: int) -> bool:
        """Return True if there is a batch with another CRC."""
        crcs = self._crcs.get((offset, self._runs.place_of(position)), ())
        return len(crcs) > (crc in crcs)


def has_sure_rest(runs: Runs, header: BatchHeader, end: int, size: int) -> bool:
    """Return True if the last bytes of a batch certainly are of its file.

    They tell that only if the batches before and after it don't end with nearly the same ones.
    """
    if size >= _LEAST_SURE:
        return True
    if size < _LEAST_DIFFERENT:
        return False
    compared = size - _LEAST_DIFFERENT + 1
    rest = runs.ending(end, compared)
    follower = runs.run_at(end)
    is_unlike_next = follower is None or runs.ending(runs.batches.header(follower.first).end, compared) != rest
    return is_unlike_next and runs.ending(header.position, compared) != rest
