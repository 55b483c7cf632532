"""A stream over changing logs, stopped and restarted at random: no duplicate, and no silent loss."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.growing_topic import GrowingTopic, Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

RUNS = 30
CRASH = "the sink ends here"
LOSS = "set failOnDataLoss=false to continue"


class Sink:
    """A sink that takes each batch once; before or after that it may fail, and the broker may change the logs."""

    def __init__(self, topic: GrowingTopic, random: Random) -> None:
        self.batches: dict[int, list[Place]] = {}
        self.changes = self.crashes = 0
        self.is_calm = False
        self._topic = topic
        self._random = random

    def take(self, frame: "DataFrame", number: int) -> None:
        rows = frame.selectExpr("partition", "offset", "cast(value as string) value").collect()
        places = []
        for row in rows:
            life, partition, offset = map(int, row.value.split("/"))
            assert (partition, offset) == (row.partition, row.offset)
            places.append((life, partition, offset))
        self._maybe_crash()
        if number not in self.batches:
            self.batches[number] = places
        if not self.is_calm and self._random.random() < 0.3:
            self._topic.change()
            self.changes += 1
        self._maybe_crash()

    def _maybe_crash(self) -> None:
        if not self.is_calm and self._random.random() < 0.08:
            self.crashes += 1
            raise RuntimeError(CRASH)

    def places(self) -> Iterator[Place]:
        for batch in self.batches.values():
            yield from batch


def run(spark: "SparkSession", topic: GrowingTopic, sink: Sink, **options: Any) -> str | None:
    """Read the logs up to their ends at the start; return the error if the query fails."""
    from pyspark.errors import StreamingQueryException

    stream = spark.readStream.format("kseg").option("startingOffsets", "earliest").options(**options)
    query = (
        stream.load(str(topic.root))
        .writeStream.foreachBatch(sink.take)
        .option("checkpointLocation", str(topic.root.parent / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    with suppress(StreamingQueryException):
        query.awaitTermination()
    ended = query.exception()
    assert ended is None or CRASH in str(ended) or LOSS in str(ended), ended
    return None if ended is None else str(ended)


@pytest.mark.parametrize("seed", [1])
def test_no_record_comes_twice_and_none_is_lost_in_silence(seed: int, spark: "SparkSession", tmp_path: Path) -> None:
    random = Random(seed)
    topic = GrowingTopic(tmp_path / "logs", random)
    sink = Sink(topic, random)
    told: set[Place] = set()
    losses = 0
    for number in range(RUNS):
        sink.is_calm = number == RUNS - 1
        for _ in range(0 if sink.is_calm else random.randrange(1, 8)):
            topic.change()
        unread, held = topic.went - set(sink.places()) - told, topic.held_records()
        limit = random.choice((20, 60, 200))
        ended = run(spark, topic, sink, maxOffsetsPerTrigger=limit)
        if ended is not None and LOSS in ended:
            losses += 1
            told |= topic.went - set(sink.places())
            unread, held = set(), topic.held_records()
            ended = run(spark, topic, sink, maxOffsetsPerTrigger=limit, failOnDataLoss="false")
            told |= topic.went - set(sink.places())
        if ended is None:
            assert not unread
            assert held - topic.went - topic.compacted - set(sink.places()) == set()
    found = [*sink.places()]
    assert len(found) == len(set(found))
    assert set(found) <= topic.appended
    assert topic.appended - set(found) <= told | topic.compacted
    print(  # noqa: T201
        f"seed {seed}: {RUNS} runs, {len(sink.batches)} batches, {sink.crashes} crashes, {losses} losses told; "
        f"{len(topic.appended)} records in {topic.life} lives, {len(found)} read, {len(told)} lost, none twice"
    )
