"""Groups with only what they have of some partitions: commits, and share-partitions."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kseg.log.partition.partition_choice import PartitionChoice
from kseg.views.group import Group, OffsetCommit


def groups_with_commits_for(choice: PartitionChoice, groups: Iterable[Group]) -> Iterator[Group]:
    """The groups that read partitions that are meant, with these alone; all if nothing is asked."""
    for group in groups:
        if choice.is_everything:
            yield group
            continue
        commits, pending = _chosen(choice, group.commits), _chosen(choice, group.pending_commits)
        shared = tuple(each for each in group.share_partitions if choice.takes(each.topic, each.partition))
        if commits or pending or shared:
            yield replace(group, commits=commits, pending_commits=pending, share_partitions=shared)


def _chosen(choice: PartitionChoice, commits: tuple[OffsetCommit, ...]) -> tuple[OffsetCommit, ...]:
    return tuple(commit for commit in commits if choice.takes(commit.topic, commit.partition))
