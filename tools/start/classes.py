"""The consequence of a fault: a start on a disk with it, compared with a start on the same disk without it."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from start.runs import Seen
from start.served import LEVELS, Served

WELL = "well"
REPAIRS = "repairs itself"
LOSES = "loses records"
HIDES = "hides them (stray)"
WRONG = "serves wrong records"
REFUSES = "refuses to start"
EMPTY = "starts as an empty cluster"
CLASSES = (WELL, REPAIRS, LOSES, HIDES, WRONG, REFUSES, EMPTY)
HARMLESS = (WELL, REPAIRS)
STRAY = "-stray"
NOTHING = Served({level: {} for level in LEVELS}, {}, {}, is_appended=False)


class Files(NamedTuple):
    """Changes to the files of the given directories, by their former names."""

    renamed: list[str]
    deleted: list[str]
    rewritten: list[str]


def became(before: Mapping[str, str], after: Mapping[str, str], usual: Collection[str], place: str) -> Files:
    """Compare files before and after a start. usual: files that any start changes; place: the file with the fault."""
    made = {path.split("/")[0] for path in after} - {path.split("/")[0] for path in before}
    strays = {name.partition(".")[0]: name for name in made if name.endswith(STRAY)}
    renamed = sorted(f"{name} -> {name}.ID{STRAY}" for name in strays)
    deleted, rewritten = [], []
    for path, digest in before.items():
        directory = path.split("/")[0]
        now = after.get(path.replace(directory, strays[directory], 1) if directory in strays else path)
        if path in usual and path != place:
            continue
        if now is None:
            deleted.append(path)
        elif now != digest:
            rewritten.append(path)
    return Files(renamed, sorted(deleted), sorted(rewritten))


def class_of(topics: Iterable[str], seen: Seen, healthy: Seen, *, is_touched: bool) -> str:
    """Return the gravest consequence for the given topics.

    is_touched: whether the broker repaired something, or complained.
    """
    if not seen.is_up:
        return REFUSES
    if not seen.answers.topics:
        return EMPTY
    topics = list(topics)
    if any(is_stray(topic, seen) for topic in topics):
        return HIDES
    pairs = [(seen.answers.served.get(topic, NOTHING), healthy.answers.served[topic]) for topic in topics]
    if any(_is_wrong(after, before) for after, before in pairs):
        return WRONG
    if (
        any(_lacks(after, before) for after, before in pairs)
        or seen.answers.commits.items() < healthy.answers.commits.items()
    ):
        return LOSES
    return REPAIRS if is_touched else WELL


def is_harmed(topic: str, seen: Seen, healthy: Seen) -> bool:
    """Return True if a topic isn't served as it is without faults."""
    after, before = seen.answers.served.get(topic, NOTHING), healthy.answers.served[topic]
    return is_stray(topic, seen) or after != before


def is_stray(topic: str, seen: Seen) -> bool:
    """Return True if the start renamed the topic's directory to be a stray."""
    return any(name.startswith(f"{topic}-0.") and name.endswith(STRAY) for name in seen.made)


def _is_wrong(after: Served, before: Served) -> bool:
    """Return True if wrong records are served, or an offset or time leads elsewhere."""
    extra = any(after.records[level].items() - before.records[level].items() for level in LEVELS)
    is_complete = after.records == before.records
    return extra or (is_complete and (after.sought != before.sought or after.times != before.times))


def _lacks(after: Served, before: Served) -> bool:
    return after.records != before.records or after.is_appended != before.is_appended


def counts(topics: Iterable[str], seen: Seen) -> dict[str, int]:
    """Return the numbers of records of the given topics by isolation level."""
    served = [seen.answers.served.get(topic, NOTHING) for topic in topics]
    return {level: sum(len(each.records[level]) for each in served) for level in LEVELS}
