"""The twin returns the same records as the compiled kernel, equal to those in the columns of both."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.kernel import fast, twin
from kseg.kernel.contract import ROW
from kseg.kernel.entry_points import Contents
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile
from tests import golden
from tests.kernel.made import BATCHES, ENTRIES, MESSAGES, RECORDS, BatchHeader, Message, Record, batch, damage_contents
from tests.kernel.runs import records_in, rows_by_lengths, table, values
from tests.loops import examples, for_each, some

CONTENTS = damage_contents(st.lists(st.one_of(BATCHES, ENTRIES), max_size=4).map(b"".join))
BODIES = st.one_of(
    st.none(),
    damage_contents(st.lists(RECORDS.map(Record.encode), max_size=4).map(b"".join)),
    damage_contents(st.lists(MESSAGES.map(Message.encode), max_size=4).map(b"".join)),
)


@settings(max_examples=examples(300), deadline=None)
@given(CONTENTS.filter(bool), st.one_of(st.none(), st.lists(BODIES, min_size=12, max_size=12)))
def test_records_are_equal(content: bytes, bodies: list[bytes | None] | None) -> None:
    rows = rows_by_lengths(content)[: 3 * 12]
    by_fast, by_twin = (values(kernel, content, rows, bodies) for kernel in (fast, twin))
    assert by_fast == by_twin
    assert by_twin == by_fast
    assert repr(by_fast) == repr(by_twin)
    assert [*map(hash, by_fast[0])] == [*map(hash, by_twin[0])]


@for_each(
    "path",
    some([*golden.files(".log"), *golden.damaged_files(".log")], 3),
    ids=lambda path: path.relative_to(golden.ROOT),
    shards=2,
)
def test_golden_records_and_columns_are_equal(path: Path) -> None:
    with LogFile(path) as log_file:
        for part in with_bodies(log_file.runs(), path.stat().st_size):
            if isinstance(part, Slice):
                content, rows = bytes(part.run.buffer), part.run.rows[part.first * ROW : part.last * ROW]
                bodies = (
                    None if part.bodies is None else [None if body is None else bytes(body) for body in part.bodies]
                )
                assert values(fast, content, rows, bodies) == values(twin, content, rows, bodies)
                assert table(fast, content, rows, bodies) == table(twin, content, rows, bodies)


@settings(max_examples=examples(100), deadline=None)
@given(CONTENTS.filter(bool), st.one_of(st.none(), st.lists(BODIES, min_size=12, max_size=12)))
def test_records_are_those_of_the_columns(content: bytes, bodies: list[bytes | None] | None) -> None:
    rows = rows_by_lengths(content)[: 3 * 12]
    records, problems, _ = values(twin, content, rows, bodies)
    columns = twin.columns(memoryview(content), rows, 0, len(rows) // 3, 1000, bodies)
    assert records == records_in(columns, [1000 + start for start in rows[::3]])
    assert problems == columns.problems


@settings(max_examples=examples(100), deadline=None)
@given(CONTENTS.filter(bool), st.integers(0, 7).map(Contents))
def test_contents_that_are_not_wanted_are_null(content: bytes, contents: Contents) -> None:
    rows = rows_by_lengths(content)[: 3 * 12]
    found = [
        kernel.columns(memoryview(content), rows, 0, len(rows) // 3, 1000, None, contents=contents)
        for kernel in (fast, twin)
    ]
    by_fast, by_twin = (records_in(columns, [1000 + start for start in rows[::3]]) for columns in found)
    assert by_fast == by_twin
    everything, _, _ = values(twin, content, rows, None)
    for record, whole in zip(by_twin, everything, strict=True):
        assert record.offset == whole.offset
        assert record.key == (whole.key if Contents.KEYS in contents else None)
        assert record.value == (whole.value if Contents.VALUES in contents else None)
        assert list(record.headers) == (list(whole.headers) if Contents.HEADERS in contents else [])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 700), min_size=1, max_size=4), st.data())
def test_records_of_some_rows_have_their_own_bodies(counts: list[int], data: st.DataObject) -> None:
    content = b"".join(batch(BatchHeader(attributes=1, count=count), body=b"?") for count in counts)
    rows = rows_by_lengths(content)
    bodies = [b"".join(Record(b"%d" % at, offset_delta=n).encode() for n in range(c)) for at, c in enumerate(counts)]
    first = data.draw(st.integers(0, len(counts)))
    last = data.draw(st.integers(first, len(counts)))
    wanted = [(b"%d" % at, offset) for at in range(first, last) for offset in range(counts[at])]
    for kernel in (fast, twin):
        parts = [*kernel.records(memoryview(content), rows, first, last, 0, bodies, 0)]
        assert all(isinstance(part, list) and 0 < len(part) <= 512 for part in parts)
        assert [(record.key, record.offset) for part in parts for record in part] == wanted
