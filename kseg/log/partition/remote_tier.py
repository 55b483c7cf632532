"""Which part of a partition's log is in the remote tier (KIP-405), and which is still on the broker's disk."""

from typing import NamedTuple

from kseg.errors import KsegError
from kseg.log.partition.partition_log import PartitionLog


class RemoteTier(NamedTuple):
    """A partition's remote tier: the log start offset, and the first local offset.

    `highest_offset`: the highest one that was copied to the tier; None if it isn't known.
    """

    log_start_offset: int
    local_start_offset: int
    highest_offset: int | None = None

    @property
    def has_remote_part(self) -> bool:
        """Whether some offsets are only remote."""
        return self.log_start_offset < self.local_start_offset

    def text(self) -> str:
        """Where its offsets are, for people; empty if all are local."""
        if not self.has_remote_part:
            return ""
        last = self.local_start_offset - 1
        return f"local from {self.local_start_offset}; {self.log_start_offset}\u2013{last} in the remote tier"


def remote_tier_of(partition: PartitionLog, is_tiered: bool | None) -> RemoteTier | None:
    """The tier of a partition; None if it has none.

    A broker lists a partition in `log-start-offset-checkpoint` if its log starts above its first segment, or if it has
    a tier: then the offset there may be below the segment. In a checkpoint from before the last deletion it is below,
    too; but then `leader-epoch-checkpoint`, which a broker cuts at the start of the log or tier, has nothing there.
    Source: LogManager.checkpointLogStartOffsetsInDir, LogLoader, LeaderEpochFileCache.truncateFromStart.

    Args:
        partition: the partition.
        is_tiered: by the topic's settings; None if they aren't known.
    """
    if not partition.base_offsets or is_tiered is False:
        return None
    base = partition.base_offsets[0]
    start = partition.checkpoints().log_start_offset
    if is_tiered:
        if start is None:
            start = _start_of_epochs(partition, base)
        return RemoteTier(start, max(start, base))
    if start is None or start >= base or _start_of_epochs(partition, start) >= base:
        return None
    return RemoteTier(start, base)


def _start_of_epochs(partition: PartitionLog, default: int) -> int:
    """The first offset in `leader-epoch-checkpoint`; the default if the file is missing or can't be read."""
    try:
        epochs = partition.read_leader_epochs() or ()
    except KsegError:
        return default
    return min((offset for _, offset in epochs), default=default)
