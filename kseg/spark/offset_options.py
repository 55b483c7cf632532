"""Where a query begins and ends in each partition, by spark-sql-kafka's options: offsets, times, or the log's ends."""

from typing import NamedTuple

from kseg.errors import KsegError, UsageError
from kseg.export.copies import Copies, PartitionCopy
from kseg.export.settings import OffsetRange
from kseg.log.lookup.lookup import lookup_time
from kseg.spark.request import Key, Request

EARLIEST, LATEST = -2, -1
"""Offsets that aren't offsets. Source: JsonUtils of spark-sql-kafka."""
_NAMES = {"earliest": EARLIEST, "latest": LATEST}


class _Bound(NamedTuple):
    """One end of a query: its three options, that which wins first, and its default.

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
    """The offsets that a batch query reads of each partition.

    Raises UsageError if an option doesn't name all partitions, or what it names isn't there; KsegError if offsets asked
    for aren't in the log, unless `failOnDataLoss` is false.
    """
    starts, ends = (_positions(request, bound, copies, is_batch=True) for bound in (_STARTING, _ENDING))
    ranges = {}
    for key, replicas in copies.items():
        first = log_end(replicas[0]) if starts[key] == LATEST else starts[key]
        ranges[key] = OffsetRange(None if first == EARLIEST else first, None if ends[key] == LATEST else ends[key])
        if request.flag("failOnDataLoss"):
            _require_held(replicas[0], ranges[key])
    return ranges


def stream_starts(request: Request, copies: Copies) -> dict[Key, int]:
    """Where a new stream begins; EARLIEST and LATEST stand for the log's ends. Default: LATEST, as the connector's."""
    return _positions(request, _STARTING._replace(default=LATEST), copies, is_batch=False)


def log_end(replica: PartitionCopy) -> int:
    """The next offset to write. Raises UsageError if that would take reading a remote log."""
    if replica.is_remote:
        raise UsageError("the end of a log is known of local files only: give offsets below it", replica.path)
    return replica.open().read_log_end_offset()


def _positions(request: Request, bound: _Bound, copies: Copies, *, is_batch: bool) -> dict[Key, int]:
    time, times = request.number(bound.timestamp), request.text(bound.by_timestamp)
    if time is not None:
        return {key: _at_time(request, replicas[0], time, bound) for key, replicas in copies.items()}
    if times is not None:
        named = request.by_partition(bound.by_timestamp, copies)
        return {key: _at_time(request, copies[key][0], time, bound) for key, time in named.items()}
    text = request.text(bound.offsets)
    named = dict.fromkeys(copies, bound.default)
    if text in _NAMES:
        named = dict.fromkeys(copies, _NAMES[text])
    elif text is not None:
        named = request.by_partition(bound.offsets, copies)
    for offset in named.values():
        if offset < EARLIEST or (is_batch and offset == bound.refused):
            raise UsageError(f"{bound.offsets} can't be {text!r}" + " in a batch query" * is_batch)
    return named


def _at_time(request: Request, replica: PartitionCopy, time: int, bound: _Bound) -> int:
    """The offset of the first record of a time or later; if there is none, the end, or what the strategy says."""
    if replica.is_remote:
        raise UsageError("times can be asked of local files only; give offsets", replica.path)
    found = lookup_time(replica.open(), time).offset
    if found is not None or bound is _ENDING:
        return LATEST if found is None else found
    strategy = request.choice("startingOffsetsByTimestampStrategy", ("error", "latest"))
    if strategy == "error":
        raise UsageError(
            f"no record has time {time} or a later one; startingOffsetsByTimestampStrategy=latest begins at the end",
            replica.path,
        )
    return LATEST


def _require_held(replica: PartitionCopy, offsets: OffsetRange) -> None:
    lowest = replica.segments[0].base_offset
    if offsets.first is not None and offsets.first < lowest:
        raise KsegError(
            f"the log begins at {lowest}: offsets {offsets.first} to {lowest} are gone; failOnDataLoss=false goes on",
            replica.path,
        )
    if offsets.end is not None and not replica.is_remote and (end := log_end(replica)) < offsets.end:
        raise KsegError(
            f"the log ends at {end}, before the offset {offsets.end} asked for; failOnDataLoss=false goes on",
            replica.path,
        )
