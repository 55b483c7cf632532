"""Where a follower truncates its log under a leader: by leader epochs or, before there were any, the high watermark."""

from collections.abc import Sequence
from contextlib import closing
from enum import StrEnum
from typing import NamedTuple

from kseg.errors import KsegError
from kseg.log.diff.batch_cursor import BatchCursor
from kseg.log.partition.leader_epochs import EpochStarts, last_epoch, noted_epochs
from kseg.log.partition.partition_log import PartitionEnd, PartitionLog
from kseg.log.partition.side_files import epochs_contradiction, leader_epochs


class Rule(StrEnum):
    """By what a follower truncates."""

    LEADER_EPOCHS = "leaderEpochs"
    HIGH_WATERMARK = "highWatermark"
    "It has no leader epochs."
    LOG_START = "logStart"
    "Its log ends below the leader's start: it drops all, and begins there."
    UNKNOWN = "unknown"
    "It has no leader epochs, and no checkpoint has its high watermark."


class Lineage(NamedTuple):
    """Which leader wrote which offsets of a copy, from its log start offset to its log end offset."""

    epochs: EpochStarts
    log_start: int
    log_end: int
    high_watermark: int | None


def read_lineage(partition: PartitionLog, log_end: int) -> Lineage:
    """A copy's lineage: by `leader-epoch-checkpoint` or, where that is missing or contradicts the batches, by these.

    Reads all headers. Raises OpenError if a log can't be opened.
    """
    found = tuple(leader_epochs(partition))
    noted = noted_epochs(partition, log_end)
    is_right = noted.latest >= EpochStarts(found).latest and epochs_contradiction(noted.starts, found) is None
    epochs = noted if is_right and _have_no_older_batches(partition, noted, found) else EpochStarts(found)
    start = partition.log_start_offset()
    return Lineage(_ending_at(epochs, log_end), start, log_end, partition.checkpoints().high_watermark)


def _have_no_older_batches(partition: PartitionLog, noted: EpochStarts, found: Sequence[tuple[int, int]]) -> bool:
    """Whether no batch after the start of a noted epoch is of an earlier one; asks where no batch is of that epoch."""
    with_batches = {epoch for epoch, _ in found}
    for epoch, start in noted.starts:
        if epoch not in with_batches:
            with closing(BatchCursor(partition, start)) as cursor:
                if not cursor.is_at_end and 0 <= cursor.header().partition_leader_epoch < epoch:
                    return False
    return True


class TruncationEnd(NamedTuple):
    """Where a log ends after truncating, None if that isn't known, and by what it is found."""

    to_offset: int | None
    rule: Rule


def truncation(follower: Lineage, leader: Lineage) -> TruncationEnd:
    """The log end offset that a follower has after truncating under a leader, and by what it is found.

    A new leader's own epoch begins at its log end offset. Both sides are asked until they agree.
    Source: AbstractFetcherThread.getOffsetTruncationState, ReplicaFetcherThread, LeaderEpochFileCache.endOffsetFor.
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
    elected = EpochStarts((*leader.epochs.starts, (newest, leader.log_end)))
    own, end = follower.epochs, follower.log_end
    while own.starts:
        epoch, leader_end = elected.end_of(own.latest, leader.log_end)
        own_epoch, own_end = own.end_of(epoch, end)
        following = min(own_end, end) if own_epoch != epoch else min(own_end, leader_end, end)
        if following == end:
            break
        end = following
        own = _ending_at(own, end)
    return TruncationEnd(end, Rule.LEADER_EPOCHS)


def _ending_at(epochs: EpochStarts, log_end: int) -> EpochStarts:
    """The epochs that begin before the end of a log. Source: LeaderEpochFileCache.truncateFromEnd."""
    return EpochStarts(tuple(each for each in epochs.starts if each[1] < log_end))


def latest_epoch(partition: PartitionLog, end: PartitionEnd) -> int:
    """The latest leader epoch that a copy knows, -1 if it knows none."""
    noted = noted_epochs(partition, end.offset).latest
    if end.last is not None:
        return max(noted, end.last.partition_leader_epoch)
    try:
        return max(noted, last_epoch(partition))
    except KsegError:
        return noted
