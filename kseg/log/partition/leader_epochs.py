"""The leader epochs of a partition: which leader wrote which offsets."""

from bisect import bisect_right
from typing import NamedTuple

from kseg.errors import KsegError
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.segment_tail import read_tail
from kseg.log.partition.side_files import leader_epochs, unsorted_epochs

UNKNOWN = -1
"""Epoch or offset that isn't known."""


class EpochStarts(NamedTuple):
    """Epochs with the offsets that they begin with, both rising."""

    starts: tuple[tuple[int, int], ...] = ()

    @property
    def latest(self) -> int:
        """The last epoch; UNKNOWN without any."""
        return self.starts[-1][0] if self.starts else UNKNOWN

    def of_offset(self, offset: int) -> int:
        """The epoch in which an offset was written, or will be; UNKNOWN below the first one that is known."""
        slot = bisect_right([start for _, start in self.starts], offset) - 1
        return self.starts[slot][0] if slot >= 0 else UNKNOWN

    def end_of(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The last epoch that isn't after the given one, and the offset after it; both UNKNOWN for a later epoch.

        Source: LeaderEpochFileCache.endOffsetFor.
        """
        if epoch < 0 or epoch > self.latest:
            return UNKNOWN, UNKNOWN
        if epoch == self.latest:
            return epoch, log_end
        slot = bisect_right([each for each, _ in self.starts], epoch)
        return (self.starts[slot - 1][0] if slot else epoch), self.starts[slot][1]


def noted_epochs(partition: PartitionLog, log_end: int) -> EpochStarts:
    """The epochs in `leader-epoch-checkpoint`, those that begin within the log; none if it isn't there, or unusable."""
    try:
        noted = partition.read_leader_epochs() or ()
    except KsegError:
        return EpochStarts()
    if unsorted_epochs(noted) is not None:
        return EpochStarts()
    return EpochStarts(tuple(each for each in noted if each[0] >= 0 and each[1] <= log_end))


def all_epochs(partition: PartitionLog, log_end: int) -> EpochStarts:
    """The same or, if the log ends with a later one, the epochs in the headers of all batches.

    A checkpoint may be older than its log: a client that read later records would think they had been truncated. Raises
    OpenError if a log can't be opened.
    """
    noted = noted_epochs(partition, log_end)
    if noted.latest >= last_epoch(partition):
        return noted
    return EpochStarts(tuple(leader_epochs(partition)))


def last_epoch(partition: PartitionLog) -> int:
    """The epoch in the last batch's header; UNKNOWN without any. Raises OpenError if a log can't be opened."""
    for segment in reversed(partition.segments):
        last = read_tail(segment).last
        if last is not None:
            return last.partition_leader_epoch
    return UNKNOWN
