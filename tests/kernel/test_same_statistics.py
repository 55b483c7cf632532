"""The twin adds up like the compiled kernel: histograms, codecs, times, producers, keys."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.kernel import fast, statistics_contract, twin
from kseg.kernel.contract import ROW, VALID, new_rows
from kseg.kernel.statistics_contract import BUCKETS, Measure, bucket_bounds, bucket_of
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile
from tests import golden
from tests.kernel.made import INT64, BatchHeader, Message, Record, batch, damage_contents
from tests.loops import examples, for_each, some

KERNELS = (fast, twin)
NUMBERS = [name for name, kind in statistics_contract.Statistics.__annotations__.items() if kind is int]
TEXTS = ("codecs", "times", "week", "producers", "largest", "hashes")
SMALL = st.integers(0, 300_000_000)
KEYS = st.one_of(st.sampled_from([b"a", b"b", b"12345678", b"", None]), st.binary(max_size=20))
RECORDS = st.builds(
    Record,
    key=KEYS,
    value=st.one_of(st.none(), st.binary(max_size=100)),
    headers=st.lists(st.tuples(st.binary(max_size=3), st.one_of(st.none(), st.binary(max_size=70))), max_size=2),
    offset_delta=st.integers(0, 4),
    timestamp_delta=st.integers(-5, 400),
)
HEADERS = st.builds(
    BatchHeader,
    base_offset=st.one_of(st.integers(0, 12), INT64),
    attributes=st.sampled_from([0, 0, 0, 0, 8, 16, 32, 1, 4]),
    last_offset_delta=st.integers(0, 4),
    base_timestamp=st.one_of(SMALL, SMALL, st.integers(0, 60), INT64),
    max_timestamp=st.one_of(SMALL, SMALL, INT64),
    producer_id=st.integers(-1, 2),
    producer_epoch=st.integers(-1, 1),
    count=st.one_of(st.none(), st.none(), st.none(), st.integers(-1, 4)),
)
MESSAGES = st.builds(Message, key=KEYS, value=st.sampled_from([b"v", None]), offset=INT64, magic=st.integers(0, 1))
ENTRIES = st.one_of(st.builds(batch, HEADERS, st.lists(RECORDS, max_size=4)), MESSAGES.map(Message.encode))
CONTENTS = damage_contents(st.lists(ENTRIES, max_size=12).map(b"".join))


@settings(max_examples=examples(300), deadline=None)
@given(CONTENTS, st.integers(1, 6), st.data())
def test_batches_add_up_equally(content: bytes, most_keys: int, data: st.DataObject) -> None:
    rows = new_rows(len(content) // 17 + 1)
    count, _, _ = fast.walk(content, 0, rows, len(content))
    for row in range(count):
        rows[row * ROW + VALID] = data.draw(st.sampled_from([1, 1, 1, 0]))
    results = []
    for kernel in KERNELS:
        whole, headers = (kernel.Statistics(0, 2**62, most_keys) for _ in range(2))
        whole.take(memoryview(content), rows, 0, count, kernel.Bodies(count), 0)
        headers.take_headers(content, rows, 0, count)
        results.append((visible_results(whole), visible_results(headers)))
    assert results[0] == results[1]


@for_each("path", some([*golden.files(".log"), *golden.damaged_files(".log")], 3), ids=str)
def test_golden_logs_add_up_equally(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for kernel in KERNELS:
        monkeypatch.setenv("KSEG_KERNEL", kernel.NAME)
        statistics = kernel.Statistics(0, 2**62, 50)
        with LogFile(path) as log_file:
            for piece in with_bodies(log_file.runs(), log_file.stored_size):
                if isinstance(piece, Slice):
                    run = piece.run
                    statistics.take(run.buffer, run.rows, piece.first, piece.last, piece.bodies, piece.first)
        results.append(visible_results(statistics))
    assert results[0] == results[1]


def visible_results(statistics: Any) -> dict[str, Any]:
    """Return all visible results of some statistics."""
    seen = {name: getattr(statistics, name) for name in NUMBERS}
    seen |= {name: getattr(statistics, name)() for name in TEXTS}
    seen |= {f"keys from {least}": statistics.top_keys(least) for least in (1, 2)}
    return (
        seen
        | {measure.name: statistics.histogram(measure) for measure in Measure}
        | {"dropped": statistics.take_hashes()}
    )


@given(st.one_of(st.integers(0, 200), st.integers(0, 2**63 - 1)))
def test_a_bucket_holds_its_numbers(number: int) -> None:
    bucket = bucket_of(number)
    least, most = bucket_bounds(bucket)
    assert 0 <= bucket < BUCKETS
    assert least <= number <= most <= least + least // 32


@pytest.mark.parametrize("kernel", KERNELS)
def test_many_times_are_joined_to_longer_stretches(kernel: Any) -> None:
    times = [number * 60_000 for number in range(5000)]
    content = b"".join(batch(BatchHeader(max_timestamp=time), [Record()]) for time in times)
    rows = new_rows(len(times))
    count, _, _ = kernel.walk(content, 0, rows, len(content))
    statistics = kernel.Statistics(0, 2**62, 10)
    statistics.take_headers(content, rows, 0, count)
    table = memoryview(statistics.times()).cast("q")
    assert statistics.time_step == 300_000
    assert table[0::4].tolist() == list(range(1000))
    assert set(table[1::4]) == {5}
