"""Groups with only the commits for some partitions."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kseg.log.partition.partition_choice import PartitionChoice
from kseg.views.groups import Group, OffsetCommit


def groups_with_commits_for(choice: PartitionChoice, groups: Iterable[Group]) -> Iterator[Group]:
    """The groups that committed for partitions that are meant, with these commits alone; all if nothing is asked."""
    for group in groups:
        if choice.is_everything:
            yield group
            continue
        commits, pending = _chosen(choice, group.commits), _chosen(choice, group.pending_commits)
        if commits or pending:
            yield replace(group, commits=commits, pending_commits=pending)


def _chosen(choice: PartitionChoice, commits: tuple[OffsetCommit, ...]) -> tuple[OffsetCommit, ...]:
    return tuple(commit for commit in commits if choice.takes(commit.topic, commit.partition))
