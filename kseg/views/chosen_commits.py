"""Groups of some names with only what they have of some partitions: commits, and share-partitions."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice

from kseg.errors import UsageError
from kseg.formats.names import plain_text
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.views.group import Group, OffsetCommit

ALL_GROUPS = "*"
_SHOWN_GROUPS = 8
"""The most groups that an error lists."""


def chosen_groups(groups: Sequence[Group], pattern: str, choice: PartitionChoice) -> list[Group]:
    """The groups whose names match, that read partitions that are meant. Raises UsageError if there are only others."""
    matching = (group for group in groups if fnmatchcase(group.group, pattern))
    found = list(groups_with_commits_for(choice, matching))
    if found or not groups or (pattern == ALL_GROUPS and choice.is_everything):
        return found
    asked = [] if pattern == ALL_GROUPS else [f"--group {plain_text(pattern)}"]
    asked += [] if choice.is_everything else [str(choice)]
    names = ", ".join(plain_text(group.group) for group in islice(groups, _SHOWN_GROUPS))
    more = f" and {len(groups) - _SHOWN_GROUPS} more" if len(groups) > _SHOWN_GROUPS else ""
    raise UsageError(f"{' '.join(asked)}: no such group here; there are {names}{more}")


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
