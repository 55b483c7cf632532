"""Bounds of queries: the first and the last offset to read of each partition."""

from collections.abc import Collection, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from kseg.cluster.copies import Copies, PartitionCopy
from kseg.cluster.lookup import look_up_in_copies
from kseg.cluster.replicas import Copy, CopyStatus, PartitionReplicas
from kseg.errors import KsegError, UsageError
from kseg.export.settings import OffsetRange
from kseg.log.partition import PartitionLog, read_checkpoints
from kseg.spark.options import Key, Request
from kseg.system.placed_path import as_path

EARLIEST, LATEST = -2, -1
"""Special values of offsets, and of times. Source: JsonUtils of spark-sql-kafka, ListOffsetsRequest."""
_NAMES = {"earliest": EARLIEST, "latest": LATEST}
_MOST_NAMED = 3
"""The most partitions in a message."""


class _Bound(NamedTuple):
    """One end of a query: its three options, the one with precedence first, and its default.

    refused: the end of the log that it can't be in a batch query.
    """

    timestamp: str
    by_timestamp: str
    offsets: str
    default: int
    refused: int


_STARTING = _Bound("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets", EARLIEST, LATEST)
_ENDING = _Bound("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets", LATEST, EARLIEST)


def batch_ranges(request: Request, copies: Copies) -> dict[Key, OffsetRange]:
    """Return the offsets that a batch query reads of each partition.

    Raises UsageError if an option doesn't name exactly the partitions, or a range ends before it begins; KsegError if
    requested offsets aren't in the log, unless `failOnDataLoss` is false.
    """
    starts, ends = (_positions(request, bound, copies, is_batch=True) for bound in (_STARTING, _ENDING))
    log_starts = first_offsets(request, copies)
    ranges = {}
    for key, (replica, *_) in copies.items():
        first, end = (
            {EARLIEST: log_starts[key], LATEST: None}.get(offsets[key], offsets[key]) for offsets in (starts, ends)
        )
        if first is None:
            first = log_end(replica)
        if end is None and first > log_starts[key] and not replica.is_remote:
            end = log_end(replica)
        if end is not None and first > end:
            raise UsageError(f"the start offset {first} is greater than the end offset {end}", replica.path)
        offsets = OffsetRange(first, None if ends[key] == LATEST else end)
        if request.flag("failOnDataLoss"):
            _require_held(replica, offsets, log_starts[key])
        first = max(first, log_starts[key])
        ranges[key] = OffsetRange(first if first > replica.segments[0].base_offset else None, offsets.end)
    return ranges


def stream_starts(request: Request, copies: Copies) -> dict[Key, int]:
    """Return a new stream's start; EARLIEST and LATEST are the log's ends. Default: LATEST, as in the connector."""
    return _positions(request, _STARTING._replace(default=LATEST), copies, is_batch=False)


def first_offsets(request: Request, copies: Copies) -> dict[Key, int]:
    """Return the first offset to read of each partition's best copy: the log start offset, if it is respected.

    Logs in object stores begin with their first segment.
    """
    checkpoints = cache(read_checkpoints)
    found = {key: replicas[0].segments[0].base_offset for key, replicas in copies.items()}
    if request.respects_log_start:
        for key, (best, *_) in copies.items():
            known = {} if best.is_remote else checkpoints(as_path(best.place).parent)
            if key in known:
                found[key] = max(found[key], PartitionLog(best.place, known[key]).log_start_offset())
    return found


def log_end(replica: PartitionCopy) -> int:
    """Return the next offset to write. Raises UsageError if that requires reading a remote log."""
    if replica.is_remote:
        raise UsageError("the log end is known only for local files; specify offsets below it", replica.path)
    return replica.open().read_log_end_offset()


def _positions(request: Request, bound: _Bound, copies: Copies, *, is_batch: bool) -> dict[Key, int]:
    if request.text(bound.timestamp) is not None:
        time = request.number(bound.timestamp, EARLIEST) or 0
        return {key: _at_time(request, replicas, time, bound) for key, replicas in copies.items()}
    if request.text(bound.by_timestamp) is not None:
        times = _named_for(request, bound.by_timestamp, copies)
        return {key: _at_time(request, copies[key], time, bound) for key, time in times.items()}
    text = request.text(bound.offsets)
    word = (text or "").strip().lower()
    if text is None:
        named = dict.fromkeys(copies, bound.default)
    elif word in _NAMES:
        named = dict.fromkeys(copies, _NAMES[word])
    else:
        named = _named_for(request, bound.offsets, copies)
    for offset in (*named.values(), _NAMES.get(word, 0)):
        if offset < EARLIEST or (is_batch and offset == bound.refused):
            raise UsageError(f"{bound.offsets} can't be {text!r}" + " in a batch query" * is_batch)
    return named


def _named_for(request: Request, option: str, copies: Copies) -> dict[Key, int]:
    """Return an option's numbers by partition. Raises UsageError unless it names exactly the partitions."""
    named = request.by_partition(option)
    problems = {"lacks": copies.keys() - named.keys(), "adds": named.keys() - copies.keys()}
    if found := [f"it {verb} {_names_of(keys)}" for verb, keys in problems.items() if keys]:
        raise UsageError(f"{option} must name exactly the partitions that are read: {' and '.join(found)}")
    return named


def _names_of(keys: Collection[Key]) -> str:
    names = sorted(f"{topic}-{partition}" for topic, partition in keys)
    more = len(names) - _MOST_NAMED
    return ", ".join(islice(names, _MOST_NAMED)) + (f" and {more} more" if more > 0 else "")


def _at_time(request: Request, replicas: Sequence[PartitionCopy], time: int, bound: _Bound) -> int:
    """Return the offset of the first record at or after a time; without one, the end, or the strategy's choice.

    Times below 0 are the ends of the log, as for a broker.
    """
    path = replicas[0].path
    if replicas[0].is_remote:
        raise UsageError("only local files can be searched by time; specify offsets", path)
    if time < 0:
        return max(time, EARLIEST)
    found = _offset_of_time(replicas, time)
    if found is not None or bound is _ENDING:
        return LATEST if found is None else found
    strategy = request.choice("startingOffsetsByTimestampStrategy", ("error", "latest"))
    if strategy == "error":
        raise UsageError(
            f"no record has the timestamp {time} or a later one; set startingOffsetsByTimestampStrategy=latest to"
            " begin at the log end",
            path,
        )
    return LATEST


def _offset_of_time(copies: Sequence[PartitionCopy], time: int) -> int | None:
    """Return the offset of the first record at or after a time in a partition's copies, the best of which is first.

    None if there is none. Raises OpenError if a directory or a log can't be opened.
    """
    best = copies[0]
    opened = (
        Copy(each.open(), each.path, None, each.topic_id, CopyStatus.CURRENT, each.agreed_end)
        for each in copies
        if not each.is_remote
    )
    replicas = PartitionReplicas(best.topic, best.partition, best.topic_id, tuple(opened))
    found = look_up_in_copies(replicas, time, is_time=True).record
    return None if found is None else found.offset


def _require_held(replica: PartitionCopy, offsets: OffsetRange, lowest: int) -> None:
    if offsets.first is not None and offsets.first < lowest:
        gone = f"offsets {offsets.first} to {lowest - 1} no longer exist"
        raise KsegError(
            f"the log begins at offset {lowest}, so {gone}; set failOnDataLoss=false to continue",
            replica.path,
        )
    if offsets.end is not None and not replica.is_remote and (end := log_end(replica)) < offsets.end:
        raise KsegError(
            f"the log ends at offset {end}, before the requested offset {offsets.end}; set failOnDataLoss=false to"
            " continue",
            replica.path,
        )
