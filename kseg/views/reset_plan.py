"""What groups had committed, as the CSV that `kafka-consumer-groups.sh --reset-offsets --from-file` takes."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kseg.views.group import Group, OffsetCommit

LINE_END = "\n"
"""Kafka's tool takes the file apart at these before it looks for quotes."""
_TOOL = "kafka-consumer-groups.sh --bootstrap-server localhost:9092"
_PLAIN = re.compile("[A-Za-z0-9._-]+")


class ResetPlan(NamedTuple):
    """Lines of the file, and what it can't carry, in words."""

    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The file."""
        return "".join(f"{line}{LINE_END}" for line in self.lines)


def reset_plan(groups: Sequence[Group], *, names_groups: bool) -> ResetPlan:
    """The plan that brings groups back to what they had committed.

    `names_groups`: each line begins with the group, for several of them; without, it is the form of one group, which
    tools before 2.4 take too. Source: OffsetsUtils.parseResetPlan.
    """
    commits = [commit for group in groups for commit in group.commits]
    kept = [commit for commit in commits if LINE_END not in f"{commit.group}{commit.topic}"]
    lines = tuple(",".join(_fields(commit, names_groups=names_groups)) for commit in kept)
    whose = "--all-groups" if names_groups else f"--group {shlex.quote(groups[0].group)}" if groups else ""
    use = (f"try it: {_TOOL} {whose} --reset-offsets --from-file FILE --dry-run",) if lines else ()
    return ResetPlan(lines, (*_left_out(groups), *_lost(commits, kept), *use))


def _fields(commit: OffsetCommit, *, names_groups: bool) -> Iterator[str]:
    for name in (commit.group, commit.topic) if names_groups else (commit.topic,):
        yield name if _PLAIN.fullmatch(name) else _quoted(name)
    yield str(commit.partition)
    yield str(commit.offset)


def _quoted(name: str) -> str:
    """A field of CSV in quotes, as in RFC 4180."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _left_out(groups: Iterable[Group]) -> Iterator[str]:
    """What no line is about, as the tool doesn't reset it."""
    for group in groups:
        if group.type == "share":
            yield f"{group.group} is left out: a share group commits nothing; kafka-share-groups.sh resets it"
        if group.pending_commits:
            yield f"{group.group}: left out commits of transactions that haven't ended: {len(group.pending_commits)}"


def _lost(commits: Sequence[OffsetCommit], kept: Sequence[OffsetCommit]) -> Iterator[str]:
    """What the lines don't say of commits."""
    if len(kept) < len(commits):
        yield f"left out commits, since a line of the CSV can't have a line feed in a name: {len(commits) - len(kept)}"
    with_metadata = sum(bool(commit.metadata) for commit in kept)
    with_epochs = sum(commit.leader_epoch >= 0 for commit in kept)
    for count, what in ((with_metadata, "metadata"), (with_epochs, "leader epochs")):
        if count:
            yield f"the CSV has offsets alone: {count} of {len(kept)} commits have {what}, which it can't carry"
