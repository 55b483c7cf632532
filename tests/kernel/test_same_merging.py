"""The twin merges records like the compiled kernel, and a merged batch has the records of its sources."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.codecs.bodies import decompress
from kseg.formats.codes import Codec, compressed_body
from kseg.kernel import fast, twin
from kseg.kernel.contract import MOST, ROW, SIZE, START, VALID, RecordFilter, new_rows
from kseg.reading.log_file import LogFile, Run
from tests import golden
from tests.kernel.made import BATCHES, ENTRIES, INT64, BatchHeader, Message, Record, batch, damage_contents
from tests.kernel.runs import table
from tests.loops import examples, some

KERNELS = (fast, twin)
CONTENTS = damage_contents(st.lists(st.one_of(BATCHES, BATCHES, ENTRIES), max_size=8).map(b"".join))
FILTERS = st.none() | st.tuples(INT64, INT64).map(
    lambda bounds: RecordFilter(first_offset=bounds[0], last_timestamp=bounds[1])
)


@settings(max_examples=examples(300), deadline=None)
@given(CONTENTS, FILTERS, st.integers(0, 6), st.integers(0, 400), st.booleans())
def test_records_are_merged_equally(
    content: bytes, wanted: RecordFilter | None, to_skip: int, enough: int, is_comparable: bool
) -> None:
    rows = new_rows(len(content) // 17 + 1)
    count, _, _ = fast.walk(content, 0, rows, len(content))
    run = Run(memoryview(content), 0, rows, count, 0)
    histories = []
    for kernel in KERNELS:
        merged = kernel.MergedRecords(is_comparable=is_comparable)
        merged.to_skip = to_skip
        histories.append(_history(merged, run, kernel.Bodies(count), wanted, enough))
    assert histories[0] == histories[1]


def _history(merged: Any, run: Run, bodies: Any, wanted: RecordFilter | None, enough: int) -> list[Any]:
    """Return the rows where a merge stops, and its results by then."""
    history: list[Any] = [(merged.base_timestamp, merged.max_timestamp)]
    row = 0
    while row < run.row_count:
        row = merged.add(run.buffer, run.rows, row, run.row_count, bodies, 0, wanted, merged.size + enough)
        history.append((row, len(merged), merged.size, merged.base_timestamp, merged.max_timestamp, merged.to_skip))
    return [*history, bytes(merged.records)]


@pytest.mark.parametrize("files", [golden.files, golden.damaged_files], ids=["healthy", "damaged"])
def test_records_of_golden_logs_are_merged_equally(files: Callable[[str], list[Path]]) -> None:
    for path in some(files(".log"), 3):
        with LogFile(path) as log_file:
            runs = [item for item in log_file.runs() if isinstance(item, Run) and item.rows[VALID]][:7]
            histories = [
                [_history(kernel.MergedRecords(), run, _bodies(kernel, run), None, MOST) for run in runs]
                for kernel in KERNELS
            ]
        assert histories[0] == histories[1], path


def _bodies(kernel: Any, run: Run) -> Any:
    """Return the bodies of the rows of a run, with any codec."""
    bodies = kernel.Bodies(run.row_count)
    for row in range(run.row_count):
        start, size = run.rows[row * ROW + START], run.rows[row * ROW + SIZE]
        codec, magic, begin, end = compressed_body(run.buffer, start, start + size)
        if codec != Codec.NONE and begin >= 0:
            bodies[row] = decompress(codec, magic, run.buffer[begin:end]).data
    return bodies


SOURCES = (
    batch(
        BatchHeader(base_offset=7, base_timestamp=50, last_offset_delta=3),
        [
            Record(b"k", None, [(b"\xff", None), (b"", b""), (b"\xff", b"x")], timestamp_delta=-51, attributes=-3),
            Record(None, b"", offset_delta=3, timestamp_delta=-50),
        ],
    ),
    batch(BatchHeader(attributes=0x08, base_timestamp=5, max_timestamp=77), [Record(b"", b"v" * 300)]),
    batch(BatchHeader(attributes=0x40, base_timestamp=1000), [Record(b"horizon", b"v", timestamp_delta=-900)]),
    Message(None, b"of format 1", timestamp=2**62).encode(),
    Message(b"of format 0", None, magic=0).encode(),
)
"""Batches of all kinds: odd headers, record attributes, gaps, LogAppendTime, a delete horizon, old formats."""


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.NAME)
def test_a_merged_batch_has_the_records_of_its_sources(kernel: Any) -> None:
    content = b"".join(SOURCES)
    rows = new_rows(len(SOURCES))
    kernel.scan(memoryview(content), 0, len(content), rows, 0)
    merged = kernel.MergedRecords()
    assert merged.add(memoryview(content), rows, 0, len(SOURCES), None, 0, None, MOST) == len(SOURCES)
    whole = batch(BatchHeader(base_timestamp=merged.base_timestamp, count=len(merged)), body=bytes(merged.records))
    one = new_rows(1)
    one[SIZE], one[VALID] = len(whole), 1
    theirs, ours = table(kernel, content, rows), table(kernel, whole, one)
    own = {"rows", "offsets", "sequences", "checksums", "timestamp_types"}
    assert ours.pop("offsets") == b"".join(number.to_bytes(8, "little") for number in range(6))
    assert {name: ours[name] for name in ours.keys() - own} == {name: theirs[name] for name in ours.keys() - own}
    assert (merged.base_timestamp, merged.max_timestamp) == (-1, 2**62)
    attributes, *_ = bytes(merged.records)[1:]
    assert attributes == 256 - 3


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.NAME)
def test_equal_records_are_comparable_whatever_their_batches(kernel: Any) -> None:
    records = [Record(b"k%d" % number, b"v", offset_delta=number, timestamp_delta=number) for number in range(4)]
    moved = [
        batch(BatchHeader(base_offset=40, base_timestamp=10), [Record(b"k0", b"v"), Record(b"k1", b"v", (), 1, 1)]),
        batch(
            BatchHeader(base_offset=50, base_timestamp=3),
            [Record(b"k2", b"v", (), 0, 9), Record(b"k3", b"v", (), 1, 10)],
        ),
    ]
    found = []
    for content, count in ((batch(BatchHeader(base_timestamp=10), records), 1), (b"".join(moved), 2)):
        rows = new_rows(count)
        kernel.scan(memoryview(content), 0, len(content), rows, 0)
        merged = kernel.MergedRecords(is_comparable=True)
        merged.add(memoryview(content), rows, 0, count, None, 0, None, MOST)
        found.append(bytes(merged.records))
    assert found[0] == found[1]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.NAME)
def test_rows_that_arent_there_are_refused(kernel: Any) -> None:
    content = SOURCES[0]
    rows = new_rows(1)
    rows[SIZE], rows[VALID] = len(content), 1
    merged = kernel.MergedRecords()
    with pytest.raises(IndexError):
        merged.add(memoryview(content), rows, 0, 2, None, 0, None, MOST)
    with pytest.raises(IndexError):
        merged.add(memoryview(content)[:-1], rows, 0, 1, None, 0, None, MOST)
    with pytest.raises(IndexError):
        merged.add(memoryview(content), rows, 0, 1, kernel.Bodies(0), 0, None, MOST)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.NAME)
def test_taken_records_never_change(kernel: Any) -> None:
    content = SOURCES[0]
    rows = new_rows(1)
    rows[SIZE], rows[VALID] = len(content), 1
    merged = kernel.MergedRecords()
    merged.add(memoryview(content), rows, 0, 1, None, 0, None, MOST)
    taken = merged.records
    with pytest.raises(BufferError):
        merged.add(memoryview(content), rows, 0, 1, None, 0, None, MOST)
    assert len(taken) == merged.size
