"""The twin reads headers like the compiled kernel: walks, tables of headers, folds."""

from array import array
from collections.abc import Callable
from functools import reduce
from operator import or_
from pathlib import Path
from struct import pack
from tempfile import TemporaryFile
from typing import Any
from zlib import crc32

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kseg import Batch, open_segment
from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.formats.header_fields import HEADER_NAMES
from kseg.kernel import fast, twin
from kseg.kernel.contract import ROW, START, VALID, new_rows
from kseg.kernel.fold_contract import RECENT, Event
from kseg.reading.batch import parse_header
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile
from tests import golden
from tests.kernel.made import BATCHES, ENTRIES, INT64, BatchHeader, batch, damage_contents, varint
from tests.loops import examples

KERNELS = (fast, twin)
CONTENTS = damage_contents(st.lists(st.one_of(BATCHES, ENTRIES), max_size=6).map(b"".join))
WATCHED = st.sets(st.sampled_from(list(Event))).map(lambda events: reduce(or_, events, 0))
STATE = [
    *("next_offset", "last_offset", "leader_epoch", "max_timestamp", "offset_of_max_timestamp", "append_time"),
    *("largest_size", "end", "batches", "records", "gaps", "missing", "codecs", "ends_keyed"),
]
INT32 = st.integers(-(2**31), 2**31 - 1)


@settings(max_examples=examples(150), deadline=None)
@given(CONTENTS, st.integers(0, 30), st.integers(0, 30), st.integers(1, 4))
def test_walks_are_equal(content: bytes, start: int, behind: int, capacity: int) -> None:
    results = []
    for kernel in KERNELS:
        rows = new_rows(capacity)
        results.append((kernel.walk(content[: max(len(content) - behind, 0)], start, rows, len(content)), rows))
    assert results[0] == results[1]


@settings(max_examples=examples(150), deadline=None)
@given(CONTENTS, st.integers(0, 30), st.integers(1, 4), st.integers(0, 300), st.integers(0, 100))
def test_walks_through_the_headers_of_a_file_are_equal(
    content: bytes, start: int, capacity: int, large: int, behind: int
) -> None:
    results = []
    with TemporaryFile() as file:
        file.write(content[: max(len(content) - behind, 0)])
        file.flush()
        for kernel in KERNELS:
            rows, buffer = new_rows(capacity), bytearray(len(content))
            count, end = kernel.walk_file(
                file.fileno(), start, memoryview(buffer), rows, max(len(content) - start, 0), large
            )
            headers = [bytes(buffer[at : at + BATCH_HEADER_SIZE]) for at in rows[START : count * ROW : ROW]]
            results.append((count, end, rows, headers))
    assert results[0] == results[1]


@settings(max_examples=examples(150), deadline=None)
@given(CONTENTS, INT64.map(lambda number: abs(number) // 2))
def test_tables_of_headers_are_equal(content: bytes, position: int) -> None:
    rows = new_rows(len(content) // 17 + 1)
    count, _, _ = fast.walk(content, 0, rows, len(content))
    tables = [kernel.header_columns(content, rows, 0, count, position) for kernel in KERNELS]
    for name in HEADER_NAMES:
        assert bytes(tables[0].column(name)) == bytes(tables[1].column(name)), name
    assert tables[0].has_wrappers == tables[1].has_wrappers


def with_sizes(sizes: list[int], headers: int) -> bytes:
    """Return a record whose key, value, and keys and values of headers have these sizes.

    `headers`: the stored count.
    """
    parts = [varint(size) + b"k" * max(size, 0) for size in sizes]
    body = b"".join([b"\0\0\0", *parts[:2], varint(headers), *parts[2:]])
    return varint(len(body)) + body


def message_with_sizes(magic: int, codec: int, offset: int, sizes: tuple[int, int]) -> bytes:
    """Return a v0 or v1 entry whose key and value have these sizes."""
    checked = pack(">bB", magic, codec) + bytes(8 if magic == 1 else 0)
    checked += b"".join(pack(">i", size) + b"k" * max(size, 0) for size in sizes)
    return pack(">qiI", offset, 4 + len(checked), crc32(checked)) + checked


ODD_SIZES = st.sampled_from([0, 2, -1, -2, -(2**31)])
MAGICS, CODECS = st.integers(0, 1), st.integers(0, 1)
ODD_RECORDS = st.builds(with_sizes, st.lists(ODD_SIZES, max_size=6), st.integers(-1, 2))
ODD_MESSAGES = st.builds(message_with_sizes, MAGICS, CODECS, st.integers(0, 3), st.tuples(ODD_SIZES, ODD_SIZES))
RESTS = st.sampled_from([b"", b"k", bytes(14), bytes(40)])


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(ODD_RECORDS, max_size=3), st.integers(-1, 3), CODECS, RESTS)
def test_negative_sizes_in_batches_are_found_equally(records: list[bytes], count: int, codec: int, rest: bytes) -> None:
    body = b"".join(records) + rest
    header = BatchHeader(last_offset_delta=2, count=count, attributes=codec)
    assert_folds_are_equal(batch(header, body=body), body if codec else None)


@settings(max_examples=examples(200), deadline=None)
@given(ODD_MESSAGES, st.one_of(st.none(), st.lists(ODD_MESSAGES, max_size=3)), st.booleans(), RESTS)
def test_negative_sizes_in_messages_are_found_equally(
    message: bytes, inner: list[bytes] | None, is_cut: bool, rest: bytes
) -> None:
    content = message if not is_cut else message[:8] + pack(">i", len(message) - 13) + message[12:-1]
    assume(len(content) >= 26)
    assert_folds_are_equal(content, None if inner is None else b"".join(inner) + rest)


def assert_folds_are_equal(content: bytes, body: bytes | None) -> None:
    """Assert that both find the same in one batch or entry with a given body."""
    for watched in (Event.ODD_NULL, Event.RECORDS):
        found = []
        for kernel in KERNELS:
            bodies = kernel.Bodies(1)
            if body is not None:
                bodies[0] = body
            rows = array("q", (0, len(content), 1))
            found.append(kernel.HeaderFold(watched).fold(content, rows, 0, 1, 0, bodies))
        assert found[0] == found[1]


@settings(max_examples=examples(300), deadline=None)
@given(CONTENTS, WATCHED, st.data())
def test_folds_are_equal(content: bytes, watched: int, data: st.DataObject) -> None:
    rows = new_rows(len(content) // 17 + 1)
    count, end, _ = fast.walk(content, 0, rows, len(content))
    for row in data.draw(st.sets(st.integers(0, max(count - 1, 0)))):
        rows[row * ROW + VALID] = 0
    numbers = data.draw(st.lists(st.tuples(INT32, INT32, INT64), max_size=3))
    floors = st.sampled_from([-(2**63), 0, 2**40])
    bounds = data.draw(st.tuples(INT64, INT64, st.integers(0, end + 1), floors))
    passes_legacy = data.draw(st.booleans())
    results = []
    for kernel in KERNELS:
        fold = kernel.HeaderFold(watched)
        fold.offset_bound, fold.timestamp_bound, fold.position_bound, fold.offset_floor = bounds
        fold.passes_legacy = passes_legacy
        fold.next_offset = int.from_bytes(content[:8], "big", signed=True)
        entries = b"".join(pack(">ii", *each[:2]) for each in numbers)
        fold.offset_entries = kernel.OffsetEntries(memoryview(entries), 0, len(numbers), 100)
        entries = b"".join(pack(">qi", *each[1:][::-1]) for each in numbers)
        fold.time_entries = kernel.TimeEntries(memoryview(entries), 0, len(numbers))
        results.append(_history(fold, content, rows, count))
    assert results[0] == results[1]


def _history(fold: Any, content: bytes, rows: Any, count: int) -> list[Any]:
    """Return the events of a fold over rows, and its state at each."""
    history: list[Any] = []
    row = 0
    while True:
        row, events = fold.fold(content, rows, row, count, 7)
        history.append((row, int(events), _state(fold)))
        if row == count:
            return [*history, fold.take_continued(), fold.take_continued()]
        header = parse_header(content, rows[row * ROW + START], 7 + rows[row * ROW + START])
        if header.producer_id >= 0:
            of_batch = header.last_sequence, header.last_offset, 0, header.max_timestamp
            first_offset = header.first_offset if header.is_transactional else -1
            fold.producers.put((header.producer_id, header.producer_epoch, *of_batch, -1, first_offset))
        fold.take(header)
        row += 1


def _state(fold: Any) -> list[Any]:
    offsets, times = fold.offset_entries, fold.time_entries
    state = [getattr(fold, name) for name in STATE]
    if offsets is not None and times is not None:
        state += [offsets.next, offsets.passed_offset, offsets.last_position]
        state += [times.next, times.last_timestamp, times.largest, times.largest_of_records, times.has_all_times]
    return [
        *state,
        fold.recent(),
        [(fold.producers.get(each), fold.producers.count_passed(each)) for each in fold.producers.ids()],
    ]


@settings(max_examples=examples(100), deadline=None)
@given(CONTENTS)
def test_markers_are_equal(content: bytes) -> None:
    rows = new_rows(len(content) // 17 + 1)
    count, _, _ = fast.walk(content, 0, rows, len(content))
    for row in range(count):
        raw = content[rows[row * ROW] : rows[row * ROW] + rows[row * ROW + 1]]
        assert fast.end_marker(raw) == twin.end_marker(raw)


@pytest.mark.parametrize("kernel", KERNELS, ids=["fast", "twin"])
def test_markers_of_golden_logs_are_read(kernel: Any) -> None:
    found = set()
    for path in [*golden.files(".log"), *golden.damaged_files(".log")]:
        with open_segment(path) as segment:
            for batch in (item for item in segment.scan() if isinstance(item, Batch)):
                usual = kernel.end_marker(batch.raw)
                record = next(batch.records(on_damage="skip"), None) if batch.is_control else None
                if usual is not None and record is not None:
                    assert record.key is not None
                    assert record.value is not None
                    assert usual == (record.key[3], int.from_bytes(record.value[2:6], "big"), record.timestamp)
                    found.add(usual[0])
    assert found == {0, 1}


@pytest.mark.parametrize("files", [golden.files, golden.damaged_files], ids=["healthy", "damaged"])
def test_folds_over_golden_logs_are_equal(files: Callable[[str], list[Path]]) -> None:
    watched = Event.RECORDS | Event.PRODUCER | Event.SEQUENCE | Event.OFFSET | Event.EPOCH
    for path in files(".log"):
        histories = []
        for kernel in KERNELS:
            fold = kernel.HeaderFold(watched)
            history = []
            with LogFile(path) as log_file:
                for item in with_bodies(log_file.runs(), log_file.stored_size):
                    if isinstance(item, Slice):
                        history += _stops(fold, item._replace(bodies=_own_bodies(kernel, item)))
            histories.append([*history, *_state(fold)])
        assert histories[0] == histories[1], path


def _own_bodies(kernel: Any, item: Slice) -> Any:
    """Return the bodies of a slice as the kernel keeps them."""
    if item.bodies is None:
        return None
    bodies = kernel.Bodies(len(item.bodies))
    for number in range(len(item.bodies)):
        body = item.bodies[number]
        if body is not None:
            bodies[number] = bytes(body)
    return bodies


def _stops(fold: Any, item: Slice) -> list[Any]:
    run, row, stops = item.run, item.first, []
    while True:
        row, events = fold.fold(run.buffer, run.rows, row, item.last, run.position, item.bodies, item.first)
        stops.append((run.position, row, int(events)))
        if row == item.last:
            return stops
        start = run.rows[row * ROW + START]
        fold.take(parse_header(run.buffer, start, run.position + start))
        row += 1


@pytest.mark.parametrize("kernel", KERNELS, ids=["fast", "twin"])
def test_entries_are_passed_as_they_are_taken(kernel: Any) -> None:
    for path in golden.files(".log"):
        content = path.read_bytes()
        rows = new_rows(len(content) // 17 + 1)
        count, _, _ = kernel.walk(content, 0, rows, len(content))
        passed, taken = kernel.HeaderFold(0), kernel.HeaderFold(0)
        passed.passes_legacy = True
        assert not any(events & Event.LEGACY for _, events, _ in _history(passed, content, rows, count)[:-2]), path
        passed.gaps = passed.missing = 0  # only passed batches count there
        for row in range(count):
            taken.take(parse_header(content, rows[row * ROW + START], 7 + rows[row * ROW + START]))
        assert _state(passed) == _state(taken), path


@pytest.mark.parametrize("kernel", KERNELS, ids=["fast", "twin"])
def test_rows_outside_of_the_buffer_are_refused(kernel: Any) -> None:
    rows = new_rows(1)
    rows[1] = 100
    with pytest.raises(IndexError):
        kernel.HeaderFold(0).fold(bytes(30), rows, 0, 2, 0)
    rows[2] = 1
    for start in (-1, 10, 2**62):
        rows[0] = start
        with pytest.raises(IndexError):
            kernel.HeaderFold(0).fold(bytes(30), rows, 0, 1, 0)
        with pytest.raises(IndexError):
            kernel.header_columns(bytes(30), rows, 0, 1, 0)
    rows[0] = 0
    with pytest.raises(IndexError):
        kernel.HeaderFold(Event.RECORDS).fold(bytes(30), rows, 0, 1, 0)
    with pytest.raises(IndexError):
        kernel.OffsetEntries(memoryview(bytes(8)), 0, 2, 0)
    with pytest.raises(IndexError):
        kernel.walk(bytes(30), -1, rows, 30)


@pytest.mark.parametrize("kernel", KERNELS, ids=["fast", "twin"])
def test_many_producers_are_known_in_their_order(kernel: Any) -> None:
    producers = kernel.ProducerTable()
    for number in range(3000):
        producers.put((number * 7919 % 3001, number, 1, 2, 3, 4, 5, 6))
    producers.put((0, 9, 1, 2, 3, 4, 5, 6))
    assert len(producers) == 3000
    assert producers.ids() == [number * 7919 % 3001 for number in range(3000)]
    assert producers.get(0) == (0, 9, 1, 2, 3, 4, 5, 6)
    assert producers.get(3002) is None


@pytest.mark.parametrize("kernel", KERNELS, ids=["fast", "twin"])
def test_a_fold_remembers_the_last_batches(kernel: Any) -> None:
    fold = kernel.HeaderFold(0)
    header = parse_header(bytes(16) + b"\2" + bytes(60), 0, 0)
    for number in range(RECENT + 10):
        fold.take(header._replace(base_offset=number, last_offset=number, crc=number))
    assert fold.recent() == [(number, number, number) for number in range(10, RECENT + 10)]
    assert (fold.next_offset, fold.batches) == (RECENT + 10, RECENT + 10)


def test_a_gap_over_all_offsets_is_counted_alike() -> None:
    content = batch(BatchHeader(base_offset=2**63 - 2), [])
    missing = set()
    for kernel in KERNELS:
        rows = new_rows(1)
        count, _, _ = fast.walk(content, 0, rows, len(content))
        fold = kernel.HeaderFold(0)
        fold.next_offset = -(2**63)
        fold.fold(content, rows, 0, count, 0)
        missing.add((count, fold.gaps, fold.missing))
    assert missing == {(1, 1, -2)}
