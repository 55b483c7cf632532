"""Next steps of findings of one kind: steps that differ only in the partition are joined into one command."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from kseg.doctor.examination import Trouble
from kseg.doctor.kinds import command_line, path_word

JOINED = frozenset({"salvage", "reindex", "ls", "verify", "groups", "txns"})
"""Commands that take several partitions, by paths or by topics and numbers."""
MOST_PATHS = 3
"""The most directories or topics that one command names."""


class Step(NamedTuple):
    """A command to run next, for some troubles: the same for each, or one for all their partitions."""

    line: str
    troubles: tuple[Trouble, ...]


def steps_of(alike: Iterable[Trouble]) -> list[Step]:
    """Return the next steps of some troubles, each once, in the order of the troubles."""
    joined: dict[tuple[object, ...], list[Trouble]] = {}
    for each in alike:
        if each.command is not None:
            joined.setdefault(_template(each) or (each.command,), []).append(each)
    return [Step(_line(troubles), tuple(troubles)) for troubles in joined.values()]


def _template(each: Trouble) -> tuple[object, ...] | None:
    """Return a step without its partition, in its log directory, or None if it can't be joined.

    Copies in several log directories can't: commands would read them as one partition.
    """
    if each.directory is None or not each.words or each.words[0] not in JOINED or each.topic is None:
        return None
    own = path_word(each.directory)
    if each.directory.name != f"{each.topic}-{each.partition}" or each.words.count(own) != 1:
        return None
    return (each.directory.parent, *(None if word == own else word for word in each.words))


def _line(troubles: Sequence[Trouble]) -> str:
    first = troubles[0]
    directories = list(dict.fromkeys(each.directory for each in troubles if each.directory is not None))
    if len(directories) < 2 or first.words is None or _template(first) is None:
        return first.command or ""
    at = first.words.index(path_word(directories[0]))
    places = list(map(path_word, directories))
    options: list[str] = []
    if len(places) > MOST_PATHS:
        places = [path_word(directories[0].parent)]
        options = _choice({(str(each.topic), each.partition or 0) for each in troubles})
    return command_line([*first.words[:at], *places, *options, *first.words[at + 1 :]])


def _choice(partitions: set[tuple[str, int]]) -> list[str]:
    """Return the options that choose some partitions; none if they are of many topics."""
    topics = sorted({topic for topic, _ in partitions})
    if len(topics) > MOST_PATHS:
        return []
    chosen = [word for topic in topics for word in ("--topic", topic)]
    return chosen if len(topics) > 1 else [*chosen, "--partition", ranges([number for _, number in partitions])]


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers for `--partition`: `0,4-7`."""
    ordered = sorted(set(numbers))
    starts = [ordered[0], *(after for before, after in pairwise(ordered) if after > before + 1)]
    ends = [*(before for before, after in pairwise(ordered) if after > before + 1), ordered[-1]]
    return ",".join(
        str(first) if first == last else f"{first}-{last}" for first, last in zip(starts, ends, strict=True)
    )
