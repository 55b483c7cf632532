"""Follows growing logs: offsets by topic and partition are the progress, as with spark-sql-kafka."""

import re
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kseg.errors import DamagedError, UsageError
from kseg.export.settings import LogSelection, OffsetRange
from kseg.output.talk import talk
from kseg.spark.offset_options import EARLIEST, LATEST, stream_starts
from kseg.spark.order_tasks import OrderExecutor, split
from kseg.spark.request import Key, Request
from kseg.spark.source_options import BATCH_ONLY
from kseg.spark.stream_offsets import (
    HeldLogs,
    Progress,
    begin_of,
    continued,
    ends_of,
    held_logs,
    limited,
    losses,
    topic_ids,
)

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:  # pyspark before 4.2

        class SupportsTriggerAvailableNow:
            """What pyspark 4.2 asks such a reader to be."""


_Offsets = dict[str, dict[str, Any]]
_SECONDS = {"ms": 0.001, "": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


class KsegStreamReader(OrderExecutor, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream of what is appended to the partitions asked for, new partitions included."""

    def __init__(self, request: Request, columns: Sequence[str]) -> None:
        super().__init__(request, columns)
        if request.is_of_damages:
            raise UsageError("a stream has records only: leave `table` out")
        request.refuse(BATCH_ONLY, "a stream has no end; leave it out")
        self._is_strict = request.flag("failOnDataLoss")
        self._target: Progress | None = None
        self._last: Progress | None = None
        self._seen: Progress | None = None
        self._said: set[str] = set()
        self._last_batch = -float("inf")

    def initialOffset(self) -> _Offsets:
        """Where a new stream begins: where `startingOffsets` or a time says, else at the end, as the connector's."""
        copies = self.request.find()
        held = held_logs(copies, self.options.isolation)
        found = stream_starts(self.request, copies)
        ends = {EARLIEST: lambda key: held[key].first, LATEST: lambda key: held[key].end}
        starts = {key: ends[offset](key) if offset in ends else offset for key, offset in found.items()}
        self._last = Progress(starts, topic_ids(held.values()))
        return self._last.to_json()

    def getDefaultReadLimit(self) -> "ReadLimit":
        """What a batch may take, unless its trigger says otherwise. Asked from pyspark 4.2 on."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

        most, least = (self.request.number(name) for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger"))
        if most is not None:
            return ReadMaxRows(most)
        return ReadAllAvailable() if least is None else ReadMinRows(least)

    def prepareForTriggerAvailableNow(self) -> None:
        """Notes where the logs end: the query ends when that is read."""
        self._target = ends_of(self._held())

    def latestOffset(self, start: _Offsets | None = None, limit: Any = None) -> _Offsets:
        """Where the logs end; no further than the limit lets a batch go. Spark before 4.2 gives neither argument."""
        self._note_options(has_limits=limit is not None)
        begin = self._last if start is None else Progress.from_json(start)
        held = self._held()
        ends = ends_of(held)
        self._seen = ends
        if begin is None:
            return ends.to_json()
        self._lose(losses(begin, held))
        ends = continued(begin, held, self._target)
        if self._target is None and self._must_wait(begin, ends, held, limit):
            return begin.to_json()
        self._last_batch = time.monotonic()
        most = getattr(limit, "max_rows", None)
        return (ends if most is None else limited(begin, ends, held, most)).to_json()

    def reportLatestOffset(self) -> _Offsets | None:
        """Where the logs ended when they were looked at last, for the query's progress."""
        return None if self._seen is None else self._seen.to_json()

    def partitions(self, start: _Offsets, end: _Offsets) -> Sequence[InputPartition]:
        """Byte ranges that hold the offsets from `start` to below `end`."""
        begin, wanted = Progress.from_json(start), Progress.from_json(end)
        held = self._held()
        self._lose(losses(begin, held, wanted))
        ranges: dict[Key, OffsetRange] = {}
        for key, last in wanted.offsets.items():
            if (log := held.get(key)) is None:
                continue
            if wanted.is_of_another(key[0], log.topic_id):
                self._lose([f"{log.replica.path}: the topic was recreated before offsets up to {last} were read"])
                continue
            first = begin_of(begin, key, log)
            if last > log.end:
                self._lose([f"{log.replica.path}: the log ends at {log.end}; it was to be read up to {last}"])
            if min(last, log.end) > first:
                ranges[key] = OffsetRange(first, min(last, log.end))
        self._last = wanted
        copies = {key: [held[key].replica] for key in ranges}
        reached = {key: offsets.end for key, offsets in ranges.items() if offsets.end and not held[key].is_cleared}
        return split(copies, LogSelection(offsets_of=ranges), self.request, reached) if ranges else []

    def commit(self, end: _Offsets) -> None:
        """Nothing is kept here: the progress is in the query's checkpoint."""

    def stop(self) -> None:
        """Nothing is open between batches."""

    def _held(self) -> dict[Key, Any]:
        """The logs that are there. A path that can't be listed is an error, or told if losses are to be let pass."""
        refuse = None if self._is_strict else lambda error: self._say(str(error))
        return held_logs(self.request.find_present(refuse), self.options.isolation)

    def _lose(self, found: Iterable[str]) -> None:
        """Tells losses. Raises DamagedError at the first if they are to end the query."""
        for loss in found:
            if self._is_strict:
                raise DamagedError(f"{loss}; failOnDataLoss=false goes on")
            self._say(f"{loss}: going on, since failOnDataLoss is false")

    def _say(self, text: str) -> None:
        """Prints a line once."""
        if text not in self._said:
            self._said.add(text)
            talk(f"kseg: {text}")

    def _note_options(self, *, has_limits: bool) -> None:
        if self._seen is not None:
            return
        self.request.note_unused()
        given = {name.lower() for name in self.request.given}
        if not has_limits and {"maxoffsetspertrigger", "minoffsetspertrigger"} & given:
            talk("kseg: pyspark before 4.2 has no limits of batches: each reads all that is there")

    def _must_wait(self, begin: Progress, ends: Progress, held: HeldLogs, limit: Any) -> bool:
        """Whether too little has come for a batch, and not enough time has passed."""
        least = self.request.number("minOffsetsPerTrigger")
        if least is None or limit is None or type(limit).__name__ == "ReadAllAvailable":
            return False
        ahead = sum(max(ends.offsets[key] - begin_of(begin, key, log), 0) for key, log in held.items())
        delay = _seconds(self.request.text("maxTriggerDelay") or "")
        return ahead < least and time.monotonic() - self._last_batch < delay


def _seconds(text: str) -> float:
    """A duration as Spark's configuration has it."""
    match = re.fullmatch("([0-9]+)(ms|s|m|min|h|d|)", text.strip().lower())
    if match is None:
        raise UsageError(f"maxTriggerDelay is {text!r}; it can be 15m, 90s, …")
    return int(match[1]) * _SECONDS[match[2]]
