"""Checks of a partition of `__consumer_offsets`, which a coordinator loads."""

from kseg.findings.findings import Findings
from kseg.log.group_loading import GroupLoading
from kseg.log.partition import PartitionLog
from kseg.log.replay import Unreadable, partition_batches


def check_group_loading(partition: PartitionLog, findings: Findings) -> None:
    """Whether a coordinator can load the groups. Raises OpenError if a segment has gone meanwhile."""
    loading = GroupLoading()
    for item in partition_batches(partition):
        if isinstance(item, Unreadable) or item.is_control:
            continue
        for record in item.records(on_damage=lambda _: None):
            loading.take(record)
        if (found := loading.unloadable) is not None:
            offsets = (found.offset, found.offset)
            findings.add(
                "group-unloadable", partition.path, f"offset {found.offset}: {found.sentence}", offsets=offsets
            )
            return
