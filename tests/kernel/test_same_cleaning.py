"""The twin compacts like the compiled kernel: the table of offsets, and the batches that stay or are removed."""

from collections.abc import Callable
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.codecs.bodies import decompress
from kseg.formats.codes import Codec, compressed_body
from kseg.kernel import fast, twin
from kseg.kernel.contract import ROW, SIZE, START, VALID, Rows, new_rows
from kseg.kernel.statistics_contract import ENTRY_SIZE
from kseg.log.compaction_plan import OffsetMap
from kseg.reading.log_file import LogFile, Run
from tests import golden
from tests.kernel.made import INT64, BatchHeader, Message, Record, batch, damage_contents
from tests.loops import examples, some

KERNELS = (fast, twin)
KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"", None])
VALUES = st.sampled_from([b"v", b"v", b"v", None])
OFFSETS = st.one_of(st.integers(0, 12), INT64)
RECORDS = st.builds(Record, key=KEYS, value=VALUES, offset_delta=st.integers(0, 4))
HEADERS = st.builds(
    BatchHeader,
    base_offset=OFFSETS,
    last_offset_delta=st.integers(0, 4),
    producer_id=st.integers(-1, 2),
    count=st.one_of(st.none(), st.none(), st.none(), st.integers(-1, 4)),
)
MESSAGES = st.builds(Message, key=KEYS, value=VALUES, offset=OFFSETS, magic=st.integers(0, 1))
ENTRIES = st.one_of(
    st.builds(batch, HEADERS, st.lists(RECORDS, max_size=4)),
    MESSAGES.map(Message.encode),
)
CONTENTS = damage_contents(st.lists(ENTRIES, max_size=12).map(b"".join))


def digest(key: bytes) -> bytes:
    return md5(key, usedforsecurity=False).digest()


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=3), st.integers(0, 2**63 - 1)), max_size=40), st.integers(0, 12))
def test_tables_are_equal_to_a_dictionary(pairs: list[tuple[bytes, int]], most: int) -> None:
    for kernel in KERNELS:
        table = kernel.OffsetTable(bytearray((most + 1) * ENTRY_SIZE), most, digest)
        known: dict[bytes, int] = {}
        for key, offset in pairs:
            if key not in known and table.is_full:
                continue
            table.put(key, offset)
            known[key] = offset
            assert table.latest_offset == offset
        assert [table.get(key) for key, _ in pairs] == [known.get(key, -1) for key, _ in pairs]
        assert table.is_full == (len(known) >= most)


@settings(max_examples=examples(300), deadline=None)
@given(CONTENTS, st.integers(0, 8), st.integers(0, 12), INT64, st.data())
def test_batches_are_cleaned_equally(
    content: bytes, most: int, first_offset: int, end_offset: int, data: st.DataObject
) -> None:
    rows = new_rows(len(content) // 17 + 1)
    count, _, _ = fast.walk(content, 0, rows, len(content))
    for row in range(count):
        rows[row * ROW + VALID] = data.draw(st.sampled_from([1, 1, 1, 0]))
    run = Run(memoryview(content), 0, rows, count, 0)
    last_offsets = data.draw(st.lists(st.integers(-1, 14), max_size=3))
    histories = []
    for kernel in KERNELS:
        table = kernel.OffsetTable(bytearray((most + 1) * ENTRY_SIZE), most, digest)
        table.end_offset = end_offset
        for producer_id, last_offset in enumerate(last_offsets):
            table.producers.put((producer_id, 0, 0, last_offset, 0, 0, -1, -1))
        histories.append(_history(table, run, kernel.Bodies(count), first_offset))
    assert histories[0] == histories[1]


def _history(table: Any, run: Run, bodies: Any, first_offset: int) -> list[Any]:
    """Return where a table stops when it takes the keys of a run and then cleans it, and its results by then."""
    history: list[Any] = []
    row = 0
    while row < run.row_count:
        row = table.add(run.buffer, run.rows, row, run.row_count, bodies, 0, first_offset) + 1
        history.append((row, table.is_full, table.latest_offset))
    history.append([table.get(key) for key in (b"a", b"b", b"c", b"d", b"")])
    row = 0
    while row < run.row_count:
        copies, copied = bytearray(len(run.buffer)), new_rows(run.row_count)
        row, count = table.keep(run.buffer, run.rows, row, run.row_count, bodies, 0, copies, copied)
        rest = table.rest(run.buffer, run.rows, row, bodies, 0) if row < run.row_count else None
        counted = table.kept, table.superseded, table.without_key
        history.append((row, count, bytes(copies), copied, rest, counted))
        row += 1
    return history


@pytest.mark.parametrize("files", [golden.files, golden.damaged_files], ids=["healthy", "damaged"])
def test_golden_logs_are_cleaned_equally(files: Callable[[str], list[Path]]) -> None:
    for path in some(files(".log"), 3):
        histories = []
        for kernel in KERNELS:
            table = kernel.OffsetTable(bytearray(2000 * ENTRY_SIZE), 1000, digest)
            with LogFile(path) as log_file:
                runs = [item for item in log_file.runs() if isinstance(item, Run)][:7]
                history = [_history(table, run, _bodies(kernel, run), 0) for run in runs if _fits(run)]
            histories.append(history)
        assert histories[0] == histories[1], path


def _fits(run: Run) -> bool:
    """Return True if all of its batches are readable: one with a wrong CRC may be too short."""
    return all(run.rows[row * ROW + VALID] for row in range(run.row_count))


def _bodies(kernel: Any, run: Run) -> Any:
    """Return the bodies of the rows of a run, with any codec."""
    bodies = kernel.Bodies(run.row_count)
    for row in range(run.row_count):
        start, size = run.rows[row * ROW + START], run.rows[row * ROW + SIZE]
        codec, magic, begin, end = compressed_body(run.buffer, start, start + size)
        if codec != Codec.NONE and begin >= 0:
            bodies[row] = decompress(codec, magic, run.buffer[begin:end]).data
    return bodies


@pytest.mark.usefixtures("kernel")
def test_keys_have_the_same_md5_whoever_computes_it() -> None:
    offset_map = OffsetMap(1000 * ENTRY_SIZE)
    keys = [b"k" * size for size in (*range(70), 1000, 100_000)]
    for offset, key in enumerate(keys):
        offset_map.table.put(key, offset)
    for kernel in KERNELS:
        by_hashlib = kernel.OffsetTable(bytearray(1000 * ENTRY_SIZE), 900, digest)
        for offset, key in enumerate(keys):
            by_hashlib.put(key, offset)
        assert [by_hashlib.get(key) for key in keys] == [offset_map.table.get(key) for key in keys]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.NAME)
def test_rows_that_arent_there_are_refused(kernel: Any) -> None:
    content = batch(BatchHeader(), [Record(b"k", b"v")])
    rows: Rows = new_rows(1)
    rows[:] = type(rows)("q", (0, len(content), 1))
    table = kernel.OffsetTable(bytearray(9 * ENTRY_SIZE), 8, digest)
    with pytest.raises(IndexError):
        table.add(memoryview(content), rows, 0, 2, None, 0, 0)
    with pytest.raises(IndexError):
        table.add(memoryview(content)[:-1], rows, 0, 1, None, 0, 0)
    with pytest.raises(IndexError):
        table.add(memoryview(content), rows, 0, 1, kernel.Bodies(0), 0, 0)
    with pytest.raises(IndexError):
        table.keep(memoryview(content), rows, 0, 1, None, 0, bytearray(len(content) - 1), new_rows(1))
    with pytest.raises(IndexError):
        table.keep(memoryview(content), rows, 0, 1, None, 0, bytearray(len(content)), new_rows(0))
    with pytest.raises(IndexError):
        kernel.OffsetTable(bytearray(ENTRY_SIZE), 1, digest)
