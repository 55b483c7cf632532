"""A log's lineage: the leader epoch of each range of offsets, and the offset where the lineages of two copies part."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from kseg.errors import FileError, KsegError
from kseg.index.header_scan import FoldWithin, header_runs, walk_headers
from kseg.kernel.contract import MOST
from kseg.kernel.fold_contract import Event
from kseg.log.partition import PartitionEnd, PartitionLog
from kseg.log.segment_search import SegmentStep, seek_offset
from kseg.log.segments import read_tail
from kseg.reading.blocks import Damage

UNKNOWN = -1
"""An unknown epoch or offset."""
ENDLESS = MOST
"""The log end of a lineage if the log's end wasn't read: its last epoch has no end."""


class EpochStarts(NamedTuple):
    """Leader epochs with their start offsets, both increasing."""

    starts: tuple[tuple[int, int], ...] = ()

    @property
    def latest(self) -> int:
        """The last epoch; UNKNOWN without any."""
        return self.starts[-1][0] if self.starts else UNKNOWN

    def of_offset(self, offset: int) -> int:
        """Return the epoch of an offset, written or future; UNKNOWN below the first known epoch."""
        slot = bisect_right([start for _, start in self.starts], offset) - 1
        return self.starts[slot][0] if slot >= 0 else UNKNOWN

    def end_of(self, epoch: int, log_end: int) -> tuple[int, int]:
        """Return the last epoch up to the given one, and the offset after it; both UNKNOWN for a later epoch.

        Source: LeaderEpochFileCache.endOffsetFor.
        """
        if epoch < 0 or epoch > self.latest:
            return UNKNOWN, UNKNOWN
        if epoch == self.latest:
            return epoch, log_end
        slot = bisect_right([each for each, _ in self.starts], epoch)
        return (self.starts[slot - 1][0] if slot else epoch), self.starts[slot][1]


def noted_epochs(partition: PartitionLog, log_end: int, problems: list[KsegError] | None = None) -> EpochStarts:
    """Return the epochs in `leader-epoch-checkpoint` that begin within the log; empty if it is missing or unusable.

    problems: collects the reason why it can't be read.
    """
    try:
        noted = partition.read_leader_epochs() or ()
    except FileError as error:
        if problems is not None:
            problems.append(error)
        return EpochStarts()
    if unsorted_epochs(noted) is not None:
        return EpochStarts()
    return EpochStarts(tuple(each for each in noted if each[0] >= 0 and each[1] <= log_end))


def all_epochs(partition: PartitionLog, log_end: int) -> EpochStarts:
    """Return the noted epochs or, if the log ends with a later one, the epochs in the headers of all batches.

    A checkpoint may be older than its log: a client that read later records would then assume a truncation. Raises
    OpenError if a log can't be opened.
    """
    noted = noted_epochs(partition, log_end)
    if noted.latest >= last_epoch(partition):
        return noted
    return EpochStarts(tuple(leader_epochs(partition)))


def last_epoch(partition: PartitionLog) -> int:
    """Return the epoch in the last batch header; UNKNOWN without any. Raises OpenError if a log can't be opened."""
    for segment in reversed(partition.segments):
        last = read_tail(segment).last
        if last is not None:
            return last.partition_leader_epoch
    return UNKNOWN


def leader_epochs(partition: PartitionLog) -> Iterator[tuple[int, int]]:
    """Yield (epoch, start offset) of the batches of a partition, both increasing, none below the log start offset.

    Raises OpenError if a log can't be opened.
    """
    log_start = partition.log_start_offset()
    within = FoldWithin(Event.EPOCH, range(log_start, MOST + 1))
    for segment in partition.segments:
        with segment.open_log(keep_cache=False) as log_file:
            for item in header_runs(log_file):
                if isinstance(item, Damage):
                    continue
                for header in within.events(item):
                    if header.partition_leader_epoch > within.fold.leader_epoch:
                        within.fold.leader_epoch = header.partition_leader_epoch
                        yield header.partition_leader_epoch, max(header.first_offset, log_start)


def unsorted_epochs(entries: Sequence[tuple[int, int]]) -> tuple[int, str] | None:
    """Return the start offset and the problem of the first entry of leader-epoch-checkpoint that doesn't increase."""
    for (epoch, start), (next_epoch, next_start) in pairwise(entries):
        if next_epoch <= epoch or next_start <= start:
            return next_start, f"epoch {next_epoch} from offset {next_start} follows epoch {epoch} from offset {start}"
    return None


def stored_epoch(entries: Sequence[tuple[int, int]], offset: int) -> int | None:
    """Return an offset's epoch by leader-epoch-checkpoint; None below its first entry."""
    place = bisect_right(entries, offset, key=itemgetter(1))
    return entries[place - 1][0] if place else None


def epochs_contradiction(entries: Sequence[tuple[int, int]], found: Iterable[tuple[int, int]]) -> str | None:
    """Return how the epochs of the batches contradict leader-epoch-checkpoint, or None if they don't.

    A later beginning is fine: brokers clear epochs at the log's start.
    """
    wrong = unsorted_epochs(entries)
    if wrong is not None:
        return wrong[1]
    for epoch, offset in found:
        stored = stored_epoch(entries, offset)
        if stored not in (None, epoch):
            return f"offset {offset} has epoch {stored}, but its batch has epoch {epoch}"
    return None


class Rule(StrEnum):
    """The rule by which a follower truncates."""

    LEADER_EPOCHS = "leaderEpochs"
    HIGH_WATERMARK = "highWatermark"
    """The follower has no leader epochs."""
    LOG_START = "logStart"
    """The follower's log ends below the leader's start: it drops everything, and begins there."""
    UNKNOWN = "unknown"
    """The follower has no leader epochs, and no checkpoint has its high watermark."""


class Lineage(NamedTuple):
    """The leader epochs of a copy from its log start offset to its log end offset."""

    epochs: EpochStarts
    log_start: int
    log_end: int
    high_watermark: int | None


def read_lineage(partition: PartitionLog, log_end: int) -> Lineage:
    """Return a copy's lineage by `leader-epoch-checkpoint`; by its batches if that is missing or contradicts them.

    Reads all headers. Raises OpenError if a log can't be opened.
    """
    found = tuple(leader_epochs(partition))
    noted = noted_epochs(partition, log_end)
    is_right = noted.latest >= EpochStarts(found).latest and epochs_contradiction(noted.starts, found) is None
    epochs = noted if is_right and _have_no_older_batches(partition, noted, found) else EpochStarts(found)
    start = partition.log_start_offset()
    return Lineage(_ending_at(epochs, log_end), start, log_end, partition.checkpoints().high_watermark)


def _have_no_older_batches(partition: PartitionLog, noted: EpochStarts, found: Sequence[tuple[int, int]]) -> bool:
    """Return True if no batch after the start of a noted epoch is of an earlier epoch.

    Only epochs without batches need this check.
    """
    with_batches = {epoch for epoch, _ in found}
    return all(
        epoch in with_batches or not 0 <= _epoch_of_batch_from(partition, start) < epoch
        for epoch, start in noted.starts
    )


def _epoch_of_batch_from(partition: PartitionLog, offset: int) -> int:
    """Return the epoch of the first batch that doesn't end below an offset; UNKNOWN if there is none."""
    for segment in partition.segments[partition.floor_slot(offset) or 0 :]:
        step = SegmentStep(segment)
        with segment.open_log(keep_cache=False) as log_file:
            seek_offset(log_file, step, offset, [])
            for item in walk_headers(log_file, step.scan_position):
                if not isinstance(item, Damage) and item.last_offset >= offset:
                    return item.partition_leader_epoch
    return UNKNOWN


class TruncationEnd(NamedTuple):
    """A log's end after truncation, None if unknown, and the rule that gives it."""

    to_offset: int | None
    rule: Rule


def truncation(follower: Lineage, leader: Lineage) -> TruncationEnd:
    """Return a follower's log end offset after truncation under a leader, and the rule that gives it.

    A new leader's own epoch begins at its log end offset.
    Source: AbstractFetcherThread.getOffsetTruncationState, ReplicaFetcherThread.
    """
    if follower.log_end < leader.log_start:
        return TruncationEnd(leader.log_start, Rule.LOG_START)
    if follower.log_end == follower.log_start:
        return TruncationEnd(min(follower.log_end, leader.log_end), Rule.LEADER_EPOCHS)
    if not follower.epochs.starts:
        if follower.high_watermark is None:
            return TruncationEnd(None, Rule.UNKNOWN)
        end = min(follower.high_watermark, follower.log_end, leader.log_end)
        return TruncationEnd(end, Rule.HIGH_WATERMARK)
    newest = max(follower.epochs.latest, leader.epochs.latest) + 1
    return TruncationEnd(_common_end(follower, _elect_leader(leader, newest), leader.log_end), Rule.LEADER_EPOCHS)


def agreed_end(copy: Lineage, chosen: Lineage) -> int:
    """Return the offset where a copy left the chosen copy's lineage: below it, the chosen copy has or had the same.

    Unlike a follower, a copy may continue within the chosen copy's last epoch, which had one leader: the chosen copy
    lost that part, or never got it. Without epochs on either side nothing shows a difference.
    """
    if not copy.epochs.starts or not chosen.epochs.starts or copy.log_end <= chosen.log_start:
        return copy.log_end
    if copy.epochs.latest > chosen.epochs.latest:
        return _common_end(copy, _elect_leader(chosen, copy.epochs.latest + 1), chosen.log_end)
    return _common_end(copy, chosen.epochs, max(copy.log_end, chosen.log_end))


def _elect_leader(leader: Lineage, epoch: int) -> EpochStarts:
    """Return the epochs of a leader that was elected for one more."""
    return EpochStarts((*leader.epochs.starts, (epoch, leader.log_end)))


def _common_end(follower: Lineage, leader: EpochStarts, leader_log_end: int) -> int:
    """Return the offset where two lineages part: both sides are asked until they agree.

    Source: LeaderEpochFileCache.endOffsetFor.
    """
    own, end = follower.epochs, follower.log_end
    while own.starts:
        epoch, leader_end = leader.end_of(own.latest, leader_log_end)
        own_epoch, own_end = own.end_of(epoch, end)
        following = min(own_end, end) if own_epoch != epoch else min(own_end, leader_end, end)
        if following == end:
            break
        end = following
        own = _ending_at(own, end)
    return end


def _ending_at(epochs: EpochStarts, log_end: int) -> EpochStarts:
    """Return the epochs that begin before the end of a log. Source: LeaderEpochFileCache.truncateFromEnd."""
    return EpochStarts(tuple(each for each in epochs.starts if each[1] < log_end))


def latest_epoch(partition: PartitionLog, end: PartitionEnd, problems: list[KsegError] | None = None) -> int:
    """Return the latest leader epoch of a copy, by its checkpoint or its last batch; UNKNOWN without any.

    problems: collects the reason why the checkpoint can't be read.
    """
    noted = noted_epochs(partition, end.offset, problems).latest
    if end.last is not None:
        return max(noted, end.last.partition_leader_epoch)
    try:
        return max(noted, last_epoch(partition))
    except FileError:
        return noted
