"""Logs that changed during an export: they are listed again; re-created topics are told apart."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.copies import Copies, PartitionCopy, SegmentSource, copies_of, find_replicas
from kseg.errors import OpenError
from kseg.export.commit import manifest as manifests
from kseg.export.commit.manifest import Key
from kseg.export.plan import Done
from kseg.export.results import Result, Tally
from kseg.export.settings import LogSelection, OffsetRange
from kseg.store.location import is_remote
from kseg.system.placed_path import StrPath

TopicKey = tuple[str, int | None, str | None]
"""Topic, partition, and the topic's id."""


def with_known_ids(copies: Copies, results: Iterable[Result]) -> Copies:
    """The copies; those without an id have that of the newest results of the partition, which are the last ones.

    Directories without records say nothing: a broker writes `partition.metadata` before the first record.
    """
    newest = {(result.topic, result.partition): result.topic_id for result in results if result.topic_id is not None}
    return {
        key: known
        if known[0].topic_id is not None or not any(copy.size for copy in known)
        else [copy._replace(topic_id=newest.get(key)) for copy in known]
        for key, known in copies.items()
    }


def told_apart(results: Iterable[Result], copies: Copies) -> tuple[list[Result], list[Result]]:
    """Results of the partitions that are there, and results of those that aren't.

    Not there are partitions that have gone, and those of a topic whose name a later one has now. Results that know no
    id count as those of the topic that is there, and get its id.
    """
    present: list[Result] = []
    absent: list[Result] = []
    for result in results:
        known = copies.get((result.topic, result.partition))
        if not known or result.topic_id not in (None, known[0].topic_id):
            absent.append(result)
        else:
            present.append(replace(result, topic_id=known[0].topic_id))
    return present, absent


def gone_topics(absent: Iterable[Result], copies: Copies, sources: Iterable[StrPath]) -> frozenset[TopicKey]:
    """The partitions that are gone, by topic, partition and topic's id: not those that other sources may have.

    Those whose topic was recreated, and those that are no longer in any directory where they were.
    """
    replicas: dict[TopicKey, set[str]] = {}
    for result in absent:
        replicas.setdefault((result.topic, result.partition, result.topic_id), set()).add(result.replica)
    roots = tuple(source.rstrip("/") + "/" for source in sources if isinstance(source, str))
    return frozenset(
        key for key, paths in replicas.items() if key[:2] in copies or all(_has_gone(path, roots) for path in paths)
    )


def _has_gone(replica: str, sources: tuple[str, ...]) -> bool:
    """Whether a directory isn't there; of one in an object store, where it would have been listed."""
    return replica.startswith(sources) if is_remote(replica) else not Path(replica).exists()


class ListedAgain(NamedTuple):
    """The partitions as they are now, what needn't be read of them, and what can't be read any more."""

    copies: Copies
    done: Mapping[Key, Done]
    missed: list[Result]


def list_again(
    sources: Iterable[StrPath],
    before: Copies,
    keys: Collection[Key],
    selection: LogSelection,
    results: Iterable[Result],
    first: Copies,
) -> ListedAgain:
    """Lists partitions again whose logs changed since `before`; results: all there are of them.

    first: as the run listed them first. A log that isn't the file any more that it was then has no position from which
    reading could go on. Raises UsageError for copies of different topics.
    """
    results = [result for result in results if (result.topic, result.partition) in keys]
    listed = copies_of(find_replicas(sources, _pass_over))
    copies = with_known_ids({key: listed[key] for key in keys if key in listed}, results)
    present, _ = told_apart(results, copies)
    of_present = manifests.done(present)
    done, lost = {}, list[Result]()
    for key in keys:
        best, known = before[key][0], of_present.get(key, Done())
        done[key] = known._replace(ends=_in_same_files(known.ends, first[key], copies.get(key, ())))
        if key in copies and copies[key][0].topic_id == best.topic_id:
            done[key] = done[key]._replace(listed_from=best.segments[0].base_offset)
        else:
            lost += _lost_with(best, selection, [result for result in results if result.topic_id == best.topic_id])
    return ListedAgain(copies, done, lost)


def require_changed(before: Copies, now: Copies, keys: Iterable[Key]) -> None:
    """Looks whether logs that had gone for those who read them have changed here too.

    Raises OpenError if they are as they were listed: then whoever reads is on a machine that doesn't have them.
    """
    for key in keys:
        if now.get(key) == before[key]:
            what = "is here, but not on the machine that reads it: all machines must reach it"
            raise OpenError(what, before[key][0].place)


def _in_same_files(
    ends: Mapping[str, int], first: Iterable[PartitionCopy], now: Iterable[PartitionCopy]
) -> dict[str, int]:
    listed, there = ({each.log: each for copy in copies for each in copy.segments} for copies in (first, now))
    return {path: end for path, end in ends.items() if path not in there or _is_same(listed.get(path), there[path])}


def _is_same(listed: SegmentSource | None, segment: SegmentSource) -> bool:
    """Whether it is the file that was listed, be it longer now; of a remote one, whether nothing has changed."""
    if listed is None or listed.inode != segment.inode:
        return False
    return bool(segment.inode) or listed == segment


def _pass_over(_: OpenError) -> None:
    """An error that the first listing reported, or of what has gone since."""


def _lost_with(copy: PartitionCopy, selection: LogSelection, results: list[Result]) -> Iterator[Result]:
    """What a copy that has gone had, as far as its listing tells, and no result has: up to its last segment."""
    wanted = selection.range_of(copy.topic, copy.partition)
    if wanted is None:
        return
    first, last = copy.segments[0].base_offset, copy.segments[-1].base_offset
    end = last if wanted.end is None else min(last, wanted.end)
    known = manifests.done(results).get((copy.topic, copy.partition), Done())
    note = f"{copy.place}: has gone while it was read: what it had from offset {end} on isn't known"
    notes = [note]
    for part in (*known.offsets.missing(OffsetRange(max(first, wanted.first or 0), end)).ranges, None):
        if part is None and not notes:
            return
        start, stop = (end, end) if part is None else (part.first or 0, part.end or 0)
        tally = Tally(first_offset=start, next_offset=stop, missed=stop - start, notes=notes)
        yield Result(
            topic=copy.topic,
            partition=copy.partition,
            replica=copy.path,
            wanted=OffsetRange(start, stop),
            sources=(),
            tally=tally,
            files=(),
            seconds=0.0,
            topic_id=copy.topic_id,
        )
        notes = []
