"""A real broker's cleaner and kseg have the same results for the same partitions. Needs Java and Maven."""

import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import NamedTuple

import pytest

from kseg.formats.codes import Codec, ControlType, TimestampType
from kseg.log.cleaner import CompactSettings
from kseg.log.compaction_plan import RemovalReason
from kseg.log.partition import PartitionLog
from kseg.reading.batch import Batch
from kseg.rewrite.compact import Compacted, compact_partition
from tests import golden
from tests.log.cleaner_logs import Pair, batch, batches, make, marker, produce_batch
from tests.log.real_broker import PATIENCE, make_topics, new_broker, put_in_place

pytestmark = pytest.mark.kafka

SEGMENT_BYTES = 1 << 20
"""The least that 4.x accepts."""
DEDUPE_BUFFER_SIZE = (1 << 20) + 64
"""A little more than the least."""
DELETE_RETENTION_MS = 1000
SETTINGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
    "segment.bytes": str(SEGMENT_BYTES),
    "delete.retention.ms": str(DELETE_RETENTION_MS),
}
HOUR = 3_600_000


class Case(NamedTuple):
    """A partition, and the result of kseg's cleaning."""

    source: PartitionLog
    cleaned: Path
    done: Compacted


def hand_made(now: int) -> Iterator[list[list[bytes]]]:
    """Yield segments of logs that together need every rule."""

    def plain(base: int, *pairs: Pair, **fields: object) -> bytes:
        return batch(base, *pairs, timestamp=now, **fields)

    def ended(base: int, *pairs: Pair, producer_id: int, kind: ControlType) -> list[bytes]:
        end = marker(base + len(pairs), kind, producer_id, timestamp=now)
        return [produce_batch(base, *pairs, producer_id=producer_id, timestamp=now), end]

    abort, commit = ControlType.ABORT, ControlType.COMMIT
    for codec in Codec:
        first = plain(0, ("a", "1"), ("b", "1"), ("a", "2"), ("c", None), codec=codec)
        yield [[first], [plain(4, ("b", "2"), ("d", "1"), codec=codec)]]
    for magic, codec in ((0, Codec.NONE), (0, Codec.GZIP), (1, Codec.NONE), (1, Codec.LZ4)):
        first = plain(0, ("a", "1"), ("b", "1"), ("a", "2"), ("c", None), magic=magic, codec=codec)
        yield [[first], [plain(4, ("b", "2"), ("d", "1"), magic=magic, codec=codec)]]
    append_time = {"timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time": now + 7}
    yield [[plain(0, ("a", "1"), ("b", "1"), ("a", None), **append_time)], [plain(3, ("b", None), **append_time)]]
    # tombstones: their time is in the future, and in the past
    for horizon in (now + HOUR, now - HOUR):
        yield [[plain(0, ("a", None), ("b", "1"), ("c", None), delete_horizon_ms=horizon)], [plain(3, ("c", "1"))]]
    # records without keys, also as the last ones
    yield [[plain(0, (None, "1"), ("a", "1"), (None, "2"))], [plain(3, ("b", "1")), plain(4, (None, "1"), (None, "2"))]]
    # transactions: committed, aborted, over several segments, several of one producer
    for kind in (abort, commit):
        log = ended(1, ("a", "2"), ("b", "1"), producer_id=1, kind=kind)
        yield [[plain(0, ("a", "1")), *log], [plain(4, ("c", "1"))]]
        yield [[plain(0, ("a", "1")), log[0]], [log[1]], [plain(4, ("b", "2"), ("a", "3"))]]
        yield [[*ended(0, ("a", "1"), producer_id=1, kind=kind), *ended(2, ("a", "2"), producer_id=1, kind=abort)]]
        yield [[*ended(0, ("a", "1"), producer_id=1, kind=abort), *ended(2, ("a", "2"), producer_id=1, kind=kind)]]
        for horizon in (now + HOUR, now - HOUR):
            alone = marker(0, kind, 1, horizon, timestamp=now)
            yield [[alone, plain(1, ("a", "1"))], ended(2, ("b", "1"), producer_id=2, kind=kind)]
            yield [[alone, *ended(1, ("a", "1"), producer_id=1, kind=commit)], [plain(3, ("b", "1"))]]
    # an open transaction
    yield [[plain(0, ("a", "1"), ("a", "2"))], [produce_batch(2, ("a", "3"), producer_id=1)], [plain(3, ("a", "4"))]]
    # last batches of producers
    idempotent = [
        produce_batch(n, ("a", str(n)), producer_id=n % 3, is_transactional=False, timestamp=now) for n in range(12)
    ]
    yield [idempotent[:5], idempotent[5:], [plain(12, ("a", "last"))]]
    # segments that are joined as far as their size allows
    value = "v" * 300_000
    yield [[plain(2 * n, (f"key {n % 5}", value), (f"other {n}", value[: 1000 * n]))] for n in range(9)]
    # more keys than the offset map holds
    yield [[plain(1000 * n, *((f"key {(1000 * n + m) * 7 % 90_001}", "v") for m in range(1000)))] for n in range(120)]


def golden_partitions() -> Iterator[Path]:
    """Yield partitions of several segments that a broker left in order."""
    for path in sorted({path.parent for path in golden.files(".log")}):
        is_left = not path.parent.name.endswith(("-live", "-killed", "-remote"))
        if is_left and len(PartitionLog(path).segments) > 1 and "_" not in path.name[:2]:
            yield path


def ends_with_old_record_that_goes(source: PartitionLog, done: Compacted) -> bool:
    """Return True if brokers from 4.0 on can't clean it.

    They would need an empty v0 or v1 entry, which doesn't exist.
    """
    before = [each for each in batches(source.path) if each.next_offset == done.plan.end_offset]
    return any(each.is_legacy and all(record.key is None for record in each.records()) for each in before)


def cleaned_by_kseg(sources: Sequence[PartitionLog], directory: Path) -> list[Case]:
    settings = CompactSettings(
        time.time_ns() // 1_000_000,
        delete_retention_ms=DELETE_RETENTION_MS,
        segment_bytes=SEGMENT_BYTES,
        dedupe_buffer_size=DEDUPE_BUFFER_SIZE,
    )
    cases = []
    for number, source in enumerate(sources):
        target = directory / str(number)
        target.mkdir(parents=True)
        cases.append(Case(source, target, compact_partition(source, settings, target)))
    return cases


def clean_offsets(logs: Path) -> dict[str, int]:
    """Return the offsets in the cleaner's checkpoint, by topic."""
    path = logs / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    return {topic: int(offset) for topic, _, offset in map(str.split, lines)}


def comparable_values(each: Batch, horizons: set[int]) -> object:
    """Return the values that must be equal: all bytes or, if compressed or with a new delete horizon, the contents."""
    is_new = each.delete_horizon_ms is not None and each.delete_horizon_ms not in horizons
    if each.codec == Codec.NONE and not is_new:
        return each.raw
    header = each.raw[:8] + each.raw[12:17] + each.raw[21:27] + each.raw[35:61]
    return header, [astuple(record)[:7] for record in each.records()]


def left_of(directory: Path, end_offset: int, source: Path) -> list[object]:
    """Return the contents below an offset; for old formats, which the broker converts to v2, only the records."""
    below = [each for each in batches(directory) if each.last_offset < end_offset]
    sources = batches(source)
    horizons = {each.delete_horizon_ms for each in sources if each.delete_horizon_ms is not None}
    if any(each.is_legacy for each in sources):
        return [(each.offset, each.timestamp, each.key, each.value) for batch in below for each in batch.records()]
    return [comparable_values(each, horizons) for each in below]


def test_broker_and_kseg_leave_the_same(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    now = time.time_ns() // 1_000_000
    made = [
        make(tmp_path / "made" / str(number) / "t-0", *segments, modified_ms=now)
        for number, segments in enumerate(hand_made(now))
    ]
    for number, path in enumerate(golden_partitions()):
        shutil.copytree(path, tmp_path / "golden" / str(number) / path.name)
    copied = [PartitionLog(path) for path in sorted((tmp_path / "golden").glob("*/*"))]
    cases = [
        case
        for case in cleaned_by_kseg([*made, *copied], tmp_path / "cleaned")
        if not ends_with_old_record_that_goes(case.source, case.done)
    ]
    topics = {f"topic-{number}": case for number, case in enumerate(cases)}
    sizes = {"log.cleaner.dedupe.buffer.size": DEDUPE_BUFFER_SIZE, "offsets.topic.num.partitions": 1}
    broker = new_broker(tmp_path_factory, sizes)
    with broker.running("first"):
        make_topics(broker.port, topics, dict.fromkeys(topics, SETTINGS))
    for topic, case in topics.items():
        put_in_place(case.source.path, broker.logs / f"{topic}-0")
    cleaned = {topic: case.done.plan.end_offset for topic, case in topics.items() if case.done.passes}
    with broker.running("second"):
        broker.tools.wait_until(
            lambda: cleaned.items() <= clean_offsets(broker.logs).items(), 2 * PATIENCE, "not all was cleaned"
        )
    for topic, case in topics.items():
        place, end = broker.logs / f"{topic}-0", case.done.plan.end_offset
        assert left_of(place, end, case.source.path) == left_of(case.cleaned, end, case.source.path), case.source.path
        bases = [base for base in PartitionLog(place).base_offsets if base < end]
        assert bases == [base for base in PartitionLog(case.cleaned).base_offsets if base < end], case.source.path
    assert max(case.done.passes for case in cases) > 1
    assert {reason for case in cases for reason in case.done.gone} == set(RemovalReason)
