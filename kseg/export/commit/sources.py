"""Results compared with the current listing of their sources: valid, completed and deleted ones."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kseg.cluster.copies import Copies, PartitionCopy, SegmentSource
from kseg.errors import OpenError
from kseg.export.commit.manifest import Key, Manifest
from kseg.export.coverage import Coverage
from kseg.export.plan import Done, is_read
from kseg.export.read.ranges import crc_of_range, is_cleaned, is_decayed
from kseg.export.results import Result, SourceFile
from kseg.export.settings import ReadOptions
from kseg.store.location import is_remote
from kseg.system.placed_path import StrPath

TopicKey = tuple[str, int | None, str | None]
"""A topic, a partition, and the topic's id."""


def with_known_ids(copies: Copies, results: Iterable[Result]) -> Copies:
    """Return the copies; one without a topic id gets that of the partition's newest result, which is the last.

    Empty directories keep none: a broker writes `partition.metadata` before the first record.
    """
    newest = {(result.topic, result.partition): result.topic_id for result in results if result.topic_id is not None}
    return {
        key: known
        if known[0].topic_id is not None or not any(copy.size for copy in known)
        else [copy._replace(topic_id=newest.get(key)) for copy in known]
        for key, known in copies.items()
    }


def split_by_presence(results: Iterable[Result], copies: Copies) -> tuple[list[Result], list[Result]]:
    """Return the results of existing partitions, and those of absent ones.

    A partition is absent if it was deleted, or if its topic's name now belongs to a later topic. A result without a
    topic's id counts as one of the existing topic, and gets its id.
    """
    present: list[Result] = []
    absent: list[Result] = []
    for result in results:
        known = copies.get((result.topic, result.partition))
        if not known or result.topic_id not in (None, known[0].topic_id):
            absent.append(result)
        else:
            topic_id = known[0].topic_id
            present.append(result if result.topic_id == topic_id else replace(result, topic_id=topic_id))
    return present, absent


def find_deleted_topics(absent: Iterable[Result], copies: Copies, sources: Iterable[StrPath]) -> frozenset[TopicKey]:
    """Return the deleted partitions by topic, partition and topic id; other sources may still have the rest.

    A partition is deleted if its topic was recreated, or if none of its former directories has it.
    """
    replicas: dict[TopicKey, set[str]] = {}
    for result in absent:
        replicas.setdefault((result.topic, result.partition, result.topic_id), set()).add(result.replica)
    roots = tuple(source.rstrip("/") + "/" for source in sources if isinstance(source, str))
    return frozenset(
        key for key, paths in replicas.items() if key[:2] in copies or all(_has_gone(path, roots) for path in paths)
    )


def _has_gone(replica: str, sources: tuple[str, ...]) -> bool:
    """Return True if a directory is missing; one in an object store, whether it would have been listed."""
    return replica.startswith(sources) if is_remote(replica) else not Path(replica).exists()


def find_unchanged(results: Iterable[Result], read: ReadOptions, copies: Copies) -> list[Result]:
    """Return the results whose sources are deleted, unchanged, compacted, or damaged since.

    Exported records stay even if compaction or damage has removed them from the log.
    """
    listed = {
        segment.log: (segment, replica)
        for replicas in copies.values()
        for replica in replicas
        for segment in replica.segments
    }
    found = (_as_it_is(result, listed) for result in results)
    kept = [result for result in found if result is not None]
    return kept if read.latest_per_key is None else _up_to_date(kept, copies)


def is_outdated(copies: Copies, results: Iterable[Result]) -> bool:
    """Return True if results have read more of a log than was listed, and the log isn't as it was listed either."""
    sizes = {each.log: each.size for known in copies.values() for copy in known for each in copy.segments}
    read = {each.path: each.end for result in results for each in result.sources if not each.is_cleaned}
    return any(sizes.get(path, end) < end and _size_now(path) != sizes[path] for path, end in read.items())


def _size_now(log: str) -> int | None:
    """Return a local log's size, or None if it is missing, or in a store, where asking costs as much as listing."""
    try:
        return None if is_remote(log) else Path(log).stat().st_size
    except OSError:
        return None


def keep_complete(results: Iterable[Result], there: Collection[str]) -> list[Result]:
    """Return the results whose files all exist, under their final or their attempts' names."""
    return [result for result in results if all(file.path in there or file.attempt in there for file in result.files)]


def _up_to_date(results: list[Result], copies: Copies) -> list[Result]:
    """Return the results of partitions that haven't grown, because newer records may replace older ones."""
    finished = find_exported(results)
    return [
        result
        for result in results
        if (key := (result.topic, result.partition)) not in copies or is_read(copies[key][0], finished[key])
    ]


def _as_it_is(result: Result, listed: Mapping[str, tuple[SegmentSource, PartitionCopy]]) -> Result | None:
    """Return the result if its sources are unchanged, compacted or damaged since; else None."""
    sources = []
    for source in result.sources:
        known = listed.get(source.path)
        if known is None:
            sources.append(source)
            continue
        segment, replica = known
        if _is_unchanged(source, segment):
            sources.append(source)
        elif _has_same_records(result, source, segment, replica):
            sources.append(source._replace(size=segment.size, modified_ms=segment.modified_ms, is_cleaned=True))
        else:
            return None
    return result if sources == [*result.sources] else replace(result, sources=tuple(sources))


def _is_unchanged(source: SourceFile, segment: SegmentSource) -> bool:
    if (segment.size, segment.modified_ms) == (source.size, source.modified_ms):
        return True
    if source.crc is None or source.is_cleaned or segment.size < source.end:
        return False
    with suppress(OpenError):  # the log was deleted or compacted since it was listed
        return crc_of_range(segment, source.start, source.end) == source.crc
    return True


def _has_same_records(result: Result, source: SourceFile, segment: SegmentSource, replica: PartitionCopy) -> bool:
    """Return True if a changed log of the same topic has no other records, only fewer: compaction or damage took some.

    The cleaner never rewrites the active segment.
    """
    if result.topic_id is None or result.topic_id != replica.topic_id:
        return False
    with suppress(OpenError):
        is_active = segment is replica.segments[-1]
        return (not is_active and is_cleaned(result, segment)) or is_decayed(result, source, segment)
    return True


def changed_keys(one: Manifest, other: Manifest) -> frozenset[Key]:
    """Return the partitions that differ between two manifests."""
    first, second = by_partition(one.results), by_partition(other.results)
    return frozenset(key for key in {*first, *second} if first.get(key) != second.get(key))


def by_partition(results: Iterable[Result]) -> dict[Key, list[Result]]:
    """Return the results of each partition, in the same order."""
    found: dict[Key, list[Result]] = defaultdict(list)
    for result in results:
        found[result.topic, result.partition].append(result)
    return found


def find_exported(results: Iterable[Result]) -> dict[Key, Done]:
    """Return the exported part of each partition: offsets, except lost ones, and files read to their end."""
    return {key: _done(own) for key, own in by_partition(results).items()}


def _done(results: list[Result]) -> Done:
    files, ends = set(), dict[str, int]()
    for result in results:
        for source in result.sources:
            if source.is_cleaned:
                continue  # its positions have changed
            ends[source.path] = max(source.end, ends.get(source.path, 0))
            if source.end >= source.size and result.tally.open_from is None:
                files.add((source.path, source.size, source.modified_ms))
    offsets = Coverage.join([result.tally.read_offsets for result in results])
    holes = Coverage.join([result.tally.open_holes for result in results])
    return Done(offsets, frozenset(files), ends, holes)


def drop_deleted_logs(results: Iterable[Result], copies: Copies) -> list[Result]:
    """Return the results without deleted logs of existing copies: such logs can't change any more."""
    listed = {replica.path: {each.log for each in replica.segments} for known in copies.values() for replica in known}
    return [_without_gone(result, listed[result.replica]) if result.replica in listed else result for result in results]


def _without_gone(result: Result, there: Collection[str]) -> Result:
    left = tuple(source for source in result.sources if source.path in there)
    return result if left == result.sources else replace(result, sources=left, is_partly_gone=True)
