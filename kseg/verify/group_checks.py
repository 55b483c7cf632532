"""Checks of a partition of `__consumer_offsets`, which a coordinator loads."""

from kseg.errors import OpenError
from kseg.findings.findings import Findings
from kseg.log.group_loading import GroupLoading, Unloadable
from kseg.log.partition import PartitionLog
from kseg.log.replay import Unreadable, partition_batches


def check_group_loading(partition: PartitionLog, findings: Findings) -> None:
    """Check whether a coordinator can load the groups; unknown if a segment can't be opened."""
    try:
        found = _first_unloadable(partition)
    except OpenError:  # the segments' checks report it; or the cleaner has replaced it meanwhile
        return
    if found is not None:
        sentence = f"offset {found.offset}: {found.sentence}"
        findings.add("group-unloadable", partition.path, sentence, offsets=(found.offset, found.offset))


def _first_unloadable(partition: PartitionLog) -> Unloadable | None:
    loading = GroupLoading()
    for item in partition_batches(partition):
        if isinstance(item, Unreadable) or item.is_control:
            continue
        for record in item.records(on_damage=lambda _: None):
            loading.take(record)
        if loading.unloadable is not None:
            break
    return loading.unloadable
