"""Folds over a log give the same results as reading each header."""

import random
from pathlib import Path
from struct import pack

import pytest

from kseg import open_segment
from kseg.formats.codes import Codec, TimestampType
from kseg.index.header_scan import checked_headers, walk_headers
from kseg.index.producers import ProducerStates, read_end_marker
from kseg.index.rebuild import IndexBuilder, rebuild
from kseg.log.lineage import leader_epochs
from kseg.log.listing import ListingSettings, list_partition
from kseg.log.partition import PartitionLog
from kseg.log.segment_search import SHOWN_BATCHES, SearchTarget, SegmentStep, first_match, largest_timestamp
from kseg.log.segments import RetentionSettings, SegmentFiles, read_tail
from kseg.log.side_files import states_at
from kseg.log.transactions import PartitionTransactions
from kseg.reading.batch import BatchHeader
from kseg.reading.blocks import Damage
from kseg.writer.batches import RecordsBuilder
from tests.loops import for_each

SEEDS = range(6)
BATCHES = 500
INTERVAL = 300


class OddLog:
    """Batches with events in odd places: gaps, epochs, producers, transactions, both clocks, v0, v1 and v2, damage."""

    def __init__(self, seed: int, *, is_damaged: bool) -> None:
        self._random = random.Random(seed)
        self._is_damaged = is_damaged
        self._offset = self._epoch = 0
        self._sequences: dict[tuple[int, int], int] = {}
        self._epochs = dict.fromkeys(range(5), 0)

    def content(self) -> bytes:
        """The log's bytes."""
        return b"".join(self._piece() for _ in range(BATCHES))

    def _piece(self) -> bytes:
        chance = self._random.random()
        self._offset += self._random.choice((0,) * 12 + (1, 7))
        self._epoch += self._random.choice((0,) * 50 + (1,))
        if chance < 0.1:
            return self._entry(self._random.choice((0, 1)))
        raw = self._marker() if chance < 0.2 else self._batch(chance < 0.6)
        if self._is_damaged and chance > 0.98:
            return bytes((*raw[:70], raw[70] ^ 1, *raw[71:])) if chance > 0.99 else raw[:50]
        return raw

    def _entry(self, magic: int) -> bytes:
        builder = RecordsBuilder(self._offset, magic=magic, codec=self._random.choice((Codec.NONE, Codec.GZIP)))
        return self._built(builder, [self._time() if magic else -1] * self._random.choice((1, 2)))

    def _marker(self) -> bytes:
        producer_id = self._random.randrange(5)
        builder = self._builder(producer_id=producer_id, producer_epoch=self._epochs[producer_id], is_control=True)
        builder.append(self._time(), pack(">hh", 0, self._random.choice((0, 1))), pack(">hi", 0, 3))
        self._offset = builder.next_offset
        return builder.build().raw

    def _batch(self, has_producer: bool) -> bytes:
        times = [self._time() for _ in range(self._random.choice((1, 1, 1, 3)))]
        if not has_producer:
            is_by_broker = self._random.random() < 0.2
            builder = RecordsBuilder(
                self._offset,
                timestamp_type=TimestampType.LOG_APPEND_TIME if is_by_broker else None,
                log_append_time=self._time() if is_by_broker else -1,
                partition_leader_epoch=self._epoch,
            )
            return self._built(builder, times)
        producer_id = self._random.randrange(5)
        self._epochs[producer_id] += self._random.random() < 0.05
        key = producer_id, self._epochs[producer_id]
        sequence = self._sequences.get(key, 0)
        self._sequences[key] = sequence + len(times)
        builder = self._builder(
            producer_id=producer_id,
            producer_epoch=key[1],
            base_sequence=sequence,
            is_transactional=producer_id > 1 and self._random.random() < 0.9,
        )
        return self._built(builder, times)

    def _builder(self, *, is_control: bool = False, is_transactional: bool = True, **named: int) -> RecordsBuilder:
        return RecordsBuilder(
            self._offset,
            is_control=is_control,
            is_transactional=is_transactional,
            partition_leader_epoch=self._epoch,
            **named,
        )

    def _built(self, builder: RecordsBuilder, times: list[int]) -> bytes:
        for time in times:
            builder.append(time, b"key", b"value" * self._random.randrange(9))
        self._offset = builder.next_offset
        return builder.build().raw

    def _time(self) -> int:
        return 1_700_000_000_000 + self._random.randrange(1_000_000)


@pytest.fixture(params=[*SEEDS, *(-seed - 1 for seed in SEEDS)], ids=lambda seed: f"odd{seed}")
def partition(request: pytest.FixtureRequest, tmp_path: Path) -> PartitionLog:
    """A partition with such a log; damaged, if its number is negative."""
    directory = tmp_path / "odd-0"
    directory.mkdir()
    seed = request.param
    (directory / f"{0:020}.log").write_bytes(OddLog(abs(seed), is_damaged=seed < 0).content())
    return PartitionLog(directory)


def headers(segment: SegmentFiles) -> list[BatchHeader]:
    """All headers, each by itself."""
    with segment.open_log() as log_file:
        return [item for item in walk_headers(log_file) if isinstance(item, BatchHeader)]


def test_tails_and_times(partition: PartitionLog) -> None:
    (segment,) = partition.segments
    expected = headers(segment)
    tail = read_tail(segment)
    assert tail.last == expected[-1]
    assert tail.max_timestamp == largest_timestamp(segment, []) == max(each.max_timestamp for each in expected)


def test_listings(partition: PartitionLog) -> None:
    (segment,) = partition.segments
    expected, states = headers(segment), ProducerStates()
    with segment.open_log() as log_file:
        for each in expected:
            states.add(each, read_end_marker(log_file, each) if each.is_control else None)
    (row,) = list_partition(partition, ListingSettings(RetentionSettings(0), deep=True)).segments
    assert row.batches == len(expected)
    assert row.codecs == tuple(sorted({each.codec for each in expected}))
    assert row.magics == (0, 1, 2)
    assert row.producer_ids == tuple(sorted({each.producer_id for each in expected if each.producer_id >= 0}))
    assert row.open_transactions == len(states.open_transactions)
    assert row.largest_timestamp == max(each.max_timestamp for each in expected)
    with open_segment(segment.path) as opened:
        if not any(isinstance(item, Damage) or not item.is_valid for item in opened.scan()):
            assert row.records == sum(1 for _ in opened.records(control=None))


def test_indexes(partition: PartitionLog) -> None:
    (segment,) = partition.segments
    builder = IndexBuilder(0, INTERVAL)
    with segment.open_log() as log_file:
        for item in checked_headers(log_file):
            if isinstance(item, Damage) or not item.is_valid:
                break
            builder.add(item, read_end_marker(log_file, item) if item.is_control else None)
    builder.finish()
    states = ProducerStates()
    with segment.open_log() as log_file:
        rebuilt = rebuild(log_file, interval=INTERVAL, states=states)
    assert rebuilt.offset_index == builder.entries.offset_index
    assert rebuilt.time_index == builder.entries.time_index
    assert rebuilt.transaction_index == builder.transaction_index
    assert rebuilt.valid_size == builder.size
    assert dict(states.producers) == dict(builder.states.producers)
    assert states.open_transactions == builder.states.open_transactions


@for_each("share", [0, 3, 10])
def test_leader_epochs_and_producers_at_an_offset(partition: PartitionLog, share: int) -> None:
    (segment,) = partition.segments
    expected = headers(segment)
    offset = expected[-1].last_offset * share // 10
    epochs, states = [(-1, 0)], ProducerStates()
    with segment.open_log() as log_file:
        for each in expected:
            if each.partition_leader_epoch > epochs[-1][0]:
                epochs.append((each.partition_leader_epoch, each.first_offset))
            if each.last_offset < offset:
                states.add(each, read_end_marker(log_file, each) if each.is_control else None)
    assert list(leader_epochs(partition)) == epochs[1:]
    found = states_at(partition, offset)
    assert dict(found.producers) == dict(states.producers)
    assert found.open_transactions == states.open_transactions


def test_transactions(partition: PartitionLog) -> None:
    (segment,) = partition.segments
    expected: list[tuple[int, int | None, int | None, int, int]] = []
    opened: dict[int, list[BatchHeader]] = {}
    with segment.open_log() as log_file:
        for each in headers(segment):
            if each.is_transactional and not each.is_control:
                opened.setdefault(each.producer_id, []).append(each)
            elif each.is_transactional and read_end_marker(log_file, each) is not None:
                expected.append(_sum_up(each.producer_id, opened.pop(each.producer_id, [])))
    found = PartitionTransactions(partition)
    ended = [each for each in found.transactions() if not each.is_open]
    assert [
        (each.producer_id, each.first_offset, each.last_offset, each.batches, each.records) for each in ended
    ] == expected
    for transaction in found.open_transactions:
        batches = opened[transaction.producer_id]
        assert transaction.batches == len(batches)
        assert transaction.last_timestamp == batches[-1].max_timestamp
        assert transaction.producer_epoch == batches[-1].producer_epoch


def _sum_up(producer_id: int, batches: list[BatchHeader]) -> tuple[int, int | None, int | None, int, int]:
    if not batches:
        return producer_id, None, None, 0, 0
    records = sum(each.records_count or 0 for each in batches)
    return producer_id, batches[0].base_offset, batches[-1].last_offset, len(batches), records


def test_lookups(partition: PartitionLog) -> None:
    (segment,) = partition.segments
    followed = headers(segment)
    with segment.open_log() as log_file:
        intact = [each for each in checked_headers(log_file) if isinstance(each, BatchHeader) and each.is_valid]
        for offset in range(0, intact[-1].last_offset, 37):
            step = SegmentStep(segment)
            match = first_match(log_file, step, SearchTarget(offset))
            assert match is not None
            above = [each for each in intact if each.last_offset >= offset]
            assert match.batch.position == above[0].position
            if followed == [each._replace(is_valid=None) for each in intact]:
                passed = [each for each in followed if each.position < above[0].position]
                assert step.passed_count == len(passed)
                assert list(step.passed) == passed[-SHOWN_BATCHES:]
        for timestamp in range(1_700_000_000_000, 1_700_001_000_000, 90_001):
            match = first_match(log_file, SegmentStep(segment), SearchTarget(0, timestamp))
            after = [each for each in intact if each.max_timestamp >= timestamp]
            assert (match.batch.position if match else None) == (after[0].position if after else None)
