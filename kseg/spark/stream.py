"""Follows growing logs: offsets by topic and partition are the progress, as with spark-sql-kafka."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kseg.errors import UsageError
from kseg.export.copies import Copies, PartitionCopy
from kseg.export.settings import Isolation, LogSelection, OffsetRange
from kseg.log.select.isolation import read_last_stable_offset
from kseg.spark.reader import OrderExecutor, split
from kseg.spark.request import Request, best

Offsets = dict[str, dict[str, int]]
"""Next offset by topic and by partition's number, as JSON has it."""


class KsegStreamReader(OrderExecutor, DataSourceStreamReader):
    """A stream of what is appended to the partitions asked for, new partitions included."""

    def __init__(self, request: Request, columns: Sequence[str]) -> None:
        super().__init__(request, columns)
        if request.text("table") != "records":
            raise UsageError("a stream has records only: leave `table` out")

    def initialOffset(self) -> Offsets:
        """Where a new stream begins: at `startingOffsets`, else at the end, as the connector's streams do."""
        copies = self.request.find()
        starting = self.request.text("startingOffsets") or "latest"
        if starting == "latest":
            return self._ends(copies)
        starts = self.request.offsets("startingOffsets", copies, default="earliest")
        firsts = {key: replicas[0].segments[0].base_offset for key, replicas in copies.items()}
        return _offsets({key: first if starts[key] is None else starts[key] for key, first in firsts.items()})

    def latestOffset(self, start: Offsets | None = None, limit: Any = None) -> Offsets:
        """Where the logs end; no further than the limit lets a batch go. Spark before 4.2 gives neither argument."""
        ends = self._ends(self.request.find())
        maximum = getattr(limit, "max_rows", None) or self.request.number("maxOffsetsPerTrigger")
        return ends if maximum is None or start is None else _limited(start, ends, maximum)

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """Byte ranges that hold the offsets from `start` to below `end`."""
        copies = self.request.find()
        ranges = {}
        for topic, partition in copies:
            last = end.get(topic, {}).get(str(partition))
            first = start.get(topic, {}).get(str(partition), 0)
            if last is not None and last > first:
                self._check_start(copies[topic, partition][0], first, start)
                ranges[topic, partition] = OffsetRange(first, last)
        if not ranges:
            return []
        wanted = {key: copies[key] for key in ranges}
        return split(wanted, LogSelection(offsets_of=ranges), self.request)

    def commit(self, end: Offsets) -> None:
        """Nothing is kept here: the progress is in the query's checkpoint."""

    def stop(self) -> None:
        """Nothing is open between batches."""

    def _check_start(self, replica: PartitionCopy, first: int, start: Offsets) -> None:
        is_known = str(replica.partition) in start.get(replica.topic, {})
        lowest = replica.segments[0].base_offset
        if is_known and first < lowest and self.request.flag("failOnDataLoss"):
            raise UsageError(
                f"offsets {first} to {lowest} are gone before they were read; failOnDataLoss=false goes on",
                replica.path,
            )

    def _ends(self, copies: Copies) -> Offsets:
        return _offsets({(replica.topic, replica.partition): self._end(replica) for replica in best(copies)})

    def _end(self, replica: PartitionCopy) -> int:
        if replica.is_remote:
            raise UsageError("a stream reads local directories only", replica.path)
        place = replica.open()
        end = place.read_log_end_offset()
        if self.options.isolation is Isolation.READ_COMMITTED:
            stable = read_last_stable_offset(place)
            end = end if stable is None else min(end, stable)
        return end


def _offsets(found: dict[tuple[str, int | None], int | None]) -> Offsets:
    offsets: Offsets = {}
    for (topic, partition), offset in sorted(found.items(), key=str):
        offsets.setdefault(topic, {})[str(partition)] = offset or 0
    return offsets


def _limited(start: Offsets, ends: Offsets, maximum: int) -> Offsets:
    """Ends that leave no more offsets than wanted, each partition its share. Source: KafkaMicroBatchStream."""
    ahead = {
        (topic, partition): end - start.get(topic, {}).get(partition, 0)
        for topic, partitions in ends.items()
        for partition, end in partitions.items()
    }
    total = sum(max(count, 0) for count in ahead.values())
    if total <= maximum:
        return ends
    limited: Offsets = {}
    for (topic, partition), count in ahead.items():
        first = start.get(topic, {}).get(partition, 0)
        share = -(-max(count, 0) * maximum // total)
        limited.setdefault(topic, {})[partition] = first + min(max(count, 0), share)
    return limited
