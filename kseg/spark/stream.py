"""A stream over growing logs, and its offsets in checkpoints."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kseg.cluster.copies import Copies, PartitionCopy, others_here
from kseg.cluster.joined_log import joined_at
from kseg.errors import DamagedError, UsageError
from kseg.export.settings import Isolation, LogSelection, OffsetRange
from kseg.log.committed import read_last_stable_offset
from kseg.output.progress import talk
from kseg.spark.bounds import EARLIEST, LATEST, first_offsets, stream_starts
from kseg.spark.options import BATCH_ONLY, EXAMPLE_OF_OFFSETS, Key, Request, number_of, numbers_by_key
from kseg.spark.partitions import find_partitions, find_present_partitions
from kseg.spark.tasks import OrderExecutor, split

_TOPIC_ID = re.compile("kseg/topicId/([^/]+)/([^/]+)")
_GONE = re.compile("kseg/gone/([^/]+)/([^/]+)/([0-9]+)")
"""Names under which an offset has what the connector's lacks.

Their values are empty: for the connector, they are topics without partitions. No topic has a `/`.
"""


@dataclass(frozen=True)
class Progress:
    """The next offset of each partition, and the ids of topics that have `partition.metadata`.

    gone: the same for missing partitions that were reported; a returning one continues from there.
    """

    offsets: Mapping[Key, int]
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    gone: Mapping[Key, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, dict[str, int]]:
        """Return offsets by topic and partition, in a fixed order, since Spark compares the text."""
        members: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in _in_order(self.offsets):
            members.setdefault(topic, {})[str(partition)] = offset
        names = [f"kseg/gone/{topic}/{partition}/{offset}" for (topic, partition), offset in _in_order(self.gone)]
        topics = {topic for topic, _ in (*self.offsets, *self.gone)}
        names += [f"kseg/topicId/{topic}/{self.topic_ids[topic]}" for topic in sorted(topics & self.topic_ids.keys())]
        return {**members, **{name: {} for name in names}}

    @classmethod
    def from_json(cls, members: Any) -> "Progress":
        """Return the progress of `to_json`, or of the connector's checkpoint. Raises UsageError for another form."""
        offsets = numbers_by_key(members)
        if offsets is None:
            raise UsageError(f"the checkpoint has {members}, {EXAMPLE_OF_OFFSETS}; use a new checkpoint")
        gone = {(found[1], number_of(found[2])): int(found[3]) for found in map(_GONE.fullmatch, members) if found}
        ids = {found[1]: found[2] for found in map(_TOPIC_ID.fullmatch, members) if found}
        return cls(offsets, ids, gone)

    def offset_of(self, key: Key) -> int | None:
        """Return the next offset of a partition, or None if it is new."""
        return self.offsets.get(key, self.gone.get(key))

    def is_of_another(self, topic: str, topic_id: str | None) -> bool:
        """Return True if the topic was recreated since, as far as ids are known."""
        known = self.topic_ids.get(topic)
        return known is not None and topic_id is not None and known != topic_id


def _in_order(offsets: Mapping[Key, int]) -> list[tuple[Key, int]]:
    return sorted(offsets.items(), key=lambda item: (item[0][0], item[0][1] or 0))


class HeldLog(NamedTuple):
    """A snapshot of a partition's log: its first offset, and the end that a stream may read up to."""

    replica: PartitionCopy
    first: int
    end: int
    is_cleared: bool
    """True if its last records were deleted, so no record reaches its end."""

    @classmethod
    def of(cls, copies: Sequence[PartitionCopy], isolation: Isolation, first: int) -> "HeldLog":
        """Return the snapshot of the best copy. Raises OpenError if it is missing, UsageError if it is remote."""
        replica = copies[0]
        if replica.is_remote:
            raise UsageError("a stream reads only local directories; use a batch query", replica.path)
        place = joined_at(Path(replica.path), others_here(copies, replica.path))
        end = place.read_log_end_offset()
        is_cleared = place.log_start_offset() >= end
        if isolation is Isolation.READ_COMMITTED:
            stable = read_last_stable_offset(place)
            end = end if stable is None else min(end, stable)
        return cls(replica, first, max(first, end), is_cleared)


HeldLogs = Mapping[Key, HeldLog]


def snapshot_logs(copies: Copies, isolation: Isolation, request: Request) -> dict[Key, HeldLog]:
    """Return the snapshot of each partition's best copy. Raises OpenError if one was deleted meanwhile."""
    firsts = first_offsets(request, copies)
    return {key: HeldLog.of(replicas, isolation, firsts[key]) for key, replicas in copies.items()}


def ends_of(held: HeldLogs) -> Progress:
    """Return the ends of the logs."""
    return Progress({key: log.end for key, log in held.items()}, topic_ids(held.values()))


def topic_ids(logs: Iterable[HeldLog]) -> dict[str, str]:
    """Return the ids of topics."""
    return {log.replica.topic: log.replica.topic_id for log in logs if log.replica.topic_id is not None}


def begin_of(start: Progress, key: Key, log: HeldLog) -> int:
    """Return the first offset to read: the end of earlier reading, or the start of the log if that is higher."""
    known = start.offset_of(key)
    if known is None or start.is_of_another(key[0], log.replica.topic_id):
        return log.first
    return min(max(known, log.first), log.end)


def continue_from(start: Progress, held: HeldLogs, target: Progress | None) -> Progress:
    """Return the progress that a stream can make from `start`, up to a target if it exists."""
    ends: dict[Key, int] = {}
    for key, log in held.items():
        if target is None:
            ends[key] = log.end
        elif key in target.offsets:
            ends[key] = min(log.end, target.offsets[key])
        elif start.offset_of(key) is not None:
            ends[key] = begin_of(start, key, log)
    ids = {**start.topic_ids, **topic_ids(held.values())}
    gone = {
        key: offset
        for key, offset in {**start.gone, **start.offsets}.items()
        if key not in held and ids.get(key[0]) == start.topic_ids.get(key[0])
    }
    return Progress(ends, ids, gone)


def losses(start: Progress, held: HeldLogs, told: Progress | None = None) -> Iterator[str]:
    """Yield the losses of a stream that has reached `start`, except for partitions whose deletion was reported.

    Source: KafkaMicroBatchStream.
    """
    known = {key: offset for key, offset in {**start.gone, **start.offsets}.items() if key in held}
    known |= {key: offset for key, offset in start.offsets.items() if told is None or key not in told.gone}
    for (topic, partition), offset in sorted(known.items(), key=str):
        log = held.get((topic, partition))
        if log is None:
            yield f"{topic}-{partition} no longer exists; the stream has read it up to offset {offset}"
        elif start.is_of_another(topic, log.replica.topic_id):
            new, was = log.replica.topic_id, start.topic_ids[topic]
            yield f"{log.replica.path}: the topic was deleted and recreated: its id is {new}, expected {was}"
        elif log.end < offset:
            yield f"{log.replica.path}: the log ends at offset {log.end}, but the stream has read up to {offset}"
        elif log.first > offset:
            yield f"{log.replica.path}: offsets {offset} to {log.first - 1} were removed before they were read"
    for key, log in held.items():
        if start.offset_of(key) is None and log.first > 0:
            yield f"{log.replica.path}: the new partition begins at offset {log.first}, expected 0"


def limit_ends(start: Progress, ends: Progress, held: HeldLogs, maximum: int) -> Progress:
    """Return ends that leave at most `maximum` offsets, shared among partitions. Source: KafkaMicroBatchStream."""
    begins = {key: begin_of(start, key, held[key]) for key in ends.offsets if key in held}
    ahead = {key: max(ends.offsets[key] - begin, 0) for key, begin in begins.items()}
    total = sum(ahead.values())
    if total <= maximum:
        return ends
    shares = {key: min(max(count * maximum // total, 1), count) for key, count in ahead.items()}
    reached = {key: begins[key] + shares[key] if shares.get(key) else offset for key, offset in ends.offsets.items()}
    return Progress(reached, ends.topic_ids, ends.gone)


if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:  # pyspark before 4.2

        class SupportsTriggerAvailableNow:
            """The interface that pyspark 4.2 requires of such a reader."""


_Offsets = dict[str, dict[str, int]]
_SECONDS = {"ms": 0.001, "": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


class KsegStreamReader(OrderExecutor, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream of new records in the requested partitions, including new partitions."""

    def __init__(self, request: Request, columns: Sequence[str]) -> None:
        super().__init__(request, columns)
        if request.is_of_damages:
            raise UsageError("a stream has only records; omit the option `table`")
        request.refuse(BATCH_ONLY, "a stream has no end; omit this option")
        self._is_strict = request.flag("failOnDataLoss")
        self._target: Progress | None = None
        self._last: Progress | None = None
        self._seen: Progress | None = None
        self._said: set[str] = set()
        self._last_batch = -float("inf")

    def initialOffset(self) -> _Offsets:
        """Return the start of a new stream: `startingOffsets`, a time, or else the end, as in the connector."""
        copies = find_partitions(self.request)
        held = snapshot_logs(copies, self.options.isolation, self.request)
        found = stream_starts(self.request, copies)
        ends = {EARLIEST: lambda key: held[key].first, LATEST: lambda key: held[key].end}
        starts = {key: ends[offset](key) if offset in ends else offset for key, offset in found.items()}
        self._last = Progress(starts, topic_ids(held.values()))
        return self._last.to_json()

    def getDefaultReadLimit(self) -> "ReadLimit":
        """Return the limit of a batch without a trigger's own limit. Called from pyspark 4.2 on."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

        most, least = (self.request.number(name) for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger"))
        if most is not None:
            return ReadMaxRows(most)
        return ReadAllAvailable() if least is None else ReadMinRows(least)

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember where the logs currently end, so the query stops there."""
        self._target = ends_of(self._held_logs())

    def latestOffset(self, start: _Offsets | None = None, limit: Any = None) -> _Offsets:
        """Return the ends of the logs, within the limit of a batch. Spark before 4.2 passes neither argument."""
        self._note_options(has_limits=limit is not None)
        begin = self._last if start is None else Progress.from_json(start)
        held = self._held_logs()
        ends = ends_of(held)
        self._seen = ends
        if begin is None:
            return ends.to_json()
        self._report_losses(losses(begin, held))
        ends = continue_from(begin, held, self._target)
        if self._target is None and self._must_wait(begin, ends, held, limit):
            return begin.to_json()
        self._last_batch = time.monotonic()
        most = getattr(limit, "max_rows", None)
        return (ends if most is None else limit_ends(begin, ends, held, most)).to_json()

    def reportLatestOffset(self) -> _Offsets | None:
        """Return the ends of the logs at the last check, for the query's progress."""
        return None if self._seen is None else self._seen.to_json()

    def partitions(self, start: _Offsets, end: _Offsets) -> Sequence[InputPartition]:
        """Return byte ranges that contain the offsets from `start` to below `end`."""
        begin, wanted = Progress.from_json(start), Progress.from_json(end)
        held = self._held_logs()
        self._report_losses(losses(begin, held, wanted))
        ranges: dict[Key, OffsetRange] = {}
        for key, last in wanted.offsets.items():
            if (log := held.get(key)) is None:
                continue
            if wanted.is_of_another(key[0], log.replica.topic_id):
                self._report_losses(
                    [f"{log.replica.path}: the topic was recreated before offsets up to {last} were read"]
                )
                continue
            first = begin_of(begin, key, log)
            if last > log.end:
                self._report_losses(
                    [f"{log.replica.path}: the log ends at offset {log.end}, but the batch goes up to {last}"]
                )
            if min(last, log.end) > first:
                ranges[key] = OffsetRange(first, min(last, log.end))
        self._last = wanted
        copies = {key: [held[key].replica] for key in ranges}
        reached = {key: offsets.end for key, offsets in ranges.items() if offsets.end and not held[key].is_cleared}
        return split(copies, LogSelection(offsets_of=ranges), self.request, reached) if ranges else []

    def commit(self, end: _Offsets) -> None:
        """Do nothing: the query's checkpoint has the progress."""

    def stop(self) -> None:
        """Do nothing: no file is open between batches."""

    def _held_logs(self) -> dict[Key, Any]:
        """Return the snapshots of the existing logs.

        A path that can't be listed is an error, or only reported if losses are allowed.
        """
        refuse = None if self._is_strict else lambda error: self._say(str(error))
        return snapshot_logs(find_present_partitions(self.request, refuse), self.options.isolation, self.request)

    def _report_losses(self, found: Iterable[str]) -> None:
        """Report losses. Raises DamagedError at the first one if losses end the query."""
        for loss in found:
            if self._is_strict:
                raise DamagedError(f"{loss}; set failOnDataLoss=false to continue")
            self._say(f"{loss}; the stream continues, since failOnDataLoss is false")

    def _say(self, text: str) -> None:
        """Print a line once."""
        if text not in self._said:
            self._said.add(text)
            talk(f"kseg: {text}")

    def _note_options(self, *, has_limits: bool) -> None:
        if self._seen is not None:
            return
        self.request.note_unused()
        given = {name.lower() for name in self.request.given}
        if not has_limits and {"maxoffsetspertrigger", "minoffsetspertrigger"} & given:
            talk("kseg: pyspark before 4.2 can't limit batches, so each reads all available records; update pyspark")

    def _must_wait(self, begin: Progress, ends: Progress, held: HeldLogs, limit: Any) -> bool:
        """Return True if a batch would be too small, and not enough time has passed."""
        least = self.request.number("minOffsetsPerTrigger")
        if least is None or limit is None or type(limit).__name__ == "ReadAllAvailable":
            return False
        ahead = sum(max(ends.offsets[key] - begin_of(begin, key, log), 0) for key, log in held.items())
        delay = _seconds(self.request.text("maxTriggerDelay") or "")
        return ahead < least and time.monotonic() - self._last_batch < delay


def _seconds(text: str) -> float:
    """Return a duration in the notation of Spark's configuration."""
    match = re.fullmatch("([0-9]+)(ms|s|m|min|h|d|)", text.strip().lower())
    if match is None:
        raise UsageError(f"maxTriggerDelay is {text!r}; use a duration such as 15m or 90s")
    return int(match[1]) * _SECONDS[match[2]]
