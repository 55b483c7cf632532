"""What an export can't see: the offsets of partitions that are in the remote tier alone."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kseg.errors import OpenError
from kseg.export.copies import Copies
from kseg.export.settings import LogSelection, OffsetRange
from kseg.log.partition.partition_log import Checkpoints, PartitionLog, read_checkpoints
from kseg.log.partition.remote_tier import RemoteTier, remote_tier_of
from kseg.views.metadata_beside import CHEAP_METADATA, MetadataBeside
from kseg.views.remote_tiers import find_tier

Key = tuple[str, int | None]


def find_remote_parts(copies: Copies, selection: LogSelection) -> Mapping[Key, OffsetRange]:
    """For the partitions wanted that have some, the offsets wanted that are in the remote tier alone.

    As checkpoints beside the best copies tell, unless the cluster's metadata beside them deny the topic a tier; these
    are read only then, if they aren't large. Copies in object stores are not looked at.
    """
    beside = MetadataBeside(CHEAP_METADATA)
    checkpoints = cache(read_checkpoints)
    found: dict[Key, OffsetRange] = {}
    for key, (best, *_) in copies.items():
        wanted = selection.range_of(*key)
        if wanted is None or best.is_remote or best.segments[0].base_offset == 0:
            continue
        own = checkpoints(Path(best.path).parent).get(key, Checkpoints())
        tier = _find_tier(best.path, own, beside)
        if tier is not None and tier.has_remote_part:
            first = max(tier.log_start_offset, wanted.first or 0)
            end = tier.local_start_offset if wanted.end is None else min(tier.local_start_offset, wanted.end)
            if first < end:
                found[key] = OffsetRange(first, end)
    return found


def _find_tier(path: str, checkpoints: Checkpoints, beside: MetadataBeside) -> RemoteTier | None:
    try:
        partition = PartitionLog(path, checkpoints)
    except OpenError:
        return None  # it has gone since it was read
    return None if remote_tier_of(partition, None) is None else find_tier(partition, beside)
