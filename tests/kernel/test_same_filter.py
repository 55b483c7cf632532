"""The twin selects batches and records like the compiled kernel."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.kernel import fast, twin
from kseg.kernel.contract import BatchFilter, Headers, Problem, RecordFilter, RecordProblem
from tests.kernel.made import BATCHES, ENTRIES, INT64, MESSAGES, RECORDS, Message, Record, damage_contents
from tests.kernel.runs import Options, program_of, render, rows_by_lengths, table
from tests.loops import examples

LINE = "{baseOffset}+{offset} {timestamp} {key:csv} {value:csv} {headers:csv} {time}\n"
DECODED_LINE = LINE + "{keyDecoded:csv}{valueDecoded}{keyError?!{keyError}}{valueError!fine}{key:json}\n"
PROGRAMS = {
    "records": program_of(None, LINE),
    "batches and records": program_of("batch {position} {lastOffset}\n", LINE, "control {controlType} {offset}\n"),
    "only batches": program_of("batch {position} {keyDecoded}{keyError!-}\n", ""),
    "decoded": program_of(None, DECODED_LINE, "{controlType}{keyDecoded}{offset}\n"),
}
CONTENTS = damage_contents(st.lists(st.one_of(BATCHES, ENTRIES), max_size=4).map(b"".join))
BODIES = st.one_of(
    st.none(),
    damage_contents(st.lists(RECORDS.map(Record.encode), max_size=4).map(b"".join)),
    damage_contents(st.lists(MESSAGES.map(Message.encode), max_size=4).map(b"".join)),
)
SHORT = st.one_of(st.none(), st.none(), st.binary(max_size=2))


def bounds(number: st.SearchStrategy[int]) -> st.SearchStrategy[int]:
    return st.one_of(st.just(-(2**63)), number)


def above(number: st.SearchStrategy[int]) -> st.SearchStrategy[int]:
    return st.one_of(st.just(2**63 - 1), number)


def holds_a_vowel(key: bytes | None, value: bytes | None) -> bool:
    return any(letter in (key or b"") + (value or b"") for letter in b"aeiou")


RECORD_FILTERS = st.builds(
    RecordFilter,
    bounds(INT64),
    above(INT64),
    bounds(INT64),
    above(INT64),
    SHORT,
    SHORT,
    SHORT,
    st.one_of(st.just(()), st.lists(st.tuples(st.binary(max_size=1), SHORT), max_size=2).map(tuple)),
    st.one_of(st.none(), st.none(), st.integers(0, 2**64 - 1)),
    st.sampled_from([None, None, holds_a_vowel]),
    st.integers(0, 2),
    st.one_of(st.none(), st.integers(0, 4)),
)
BATCH_FILTERS = st.builds(
    BatchFilter,
    bounds(INT64),
    above(INT64),
    bounds(INT64),
    above(INT64),
    st.one_of(st.none(), st.sampled_from([-1, 0, 1])),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, True, False]),
)


def decode(key: bytes | None, value: bytes | None, offset: int, headers: Headers) -> Sequence[bytes | None]:
    names = b"".join(name for name, _ in headers)
    return value, key, b"%d" % offset, None if value is None else names, None, key if offset % 2 else None


@settings(max_examples=examples(300), deadline=None)
@given(
    CONTENTS,
    st.one_of(st.none(), st.lists(BODIES, min_size=12, max_size=12)),
    st.sampled_from(sorted(PROGRAMS)),
    st.one_of(st.none(), RECORD_FILTERS),
    st.booleans(),
    st.integers(0, 2),
)
def test_filtered_renderings_are_equal(
    content: bytes,
    bodies: list[bytes | None] | None,
    program: str,
    record_filter: RecordFilter | None,
    decodes: bool,
    rule: int,
) -> None:
    rows = rows_by_lengths(content)[: 3 * 12]
    options = Options(decode if decodes else None, None, rule, None, record_filter)
    by_fast, by_twin = (render(kernel, PROGRAMS[program], content, rows, bodies, options) for kernel in (fast, twin))
    assert by_fast.text == by_twin.text
    assert by_fast == by_twin


@settings(max_examples=examples(300), deadline=None)
@given(CONTENTS.filter(bool), st.one_of(st.none(), st.lists(BODIES, min_size=12, max_size=12)), RECORD_FILTERS)
def test_filtered_columns_are_equal_and_hold_what_is_printed(
    content: bytes, bodies: list[bytes | None] | None, record_filter: RecordFilter
) -> None:
    rows = rows_by_lengths(content)[: 3 * 12]
    by_fast, by_twin = (table(kernel, content, rows, bodies, record_filter) for kernel in (fast, twin))
    assert by_fast == by_twin
    offsets = memoryview(by_fast["offsets"]).cast("q")  # type: ignore[arg-type]
    printed = render(fast, program_of(None, "{offset} "), content, rows, bodies, Options(record_filter=record_filter))
    assert [*offsets] == [*map(int, printed.text.split())]
    every = memoryview(table(fast, content, rows, bodies)["offsets"]).cast("q")  # type: ignore[arg-type]
    places = memoryview(by_fast["places"]).cast("i")  # type: ignore[arg-type]
    assert [every[place] for place in places] == [*offsets]


def test_a_row_that_is_shorter_than_its_header_gives_no_columns_but_a_problem() -> None:
    content = bytes([*(0 for _ in range(11)), 14, *(0 for _ in range(4)), 2, *(0 for _ in range(80))])
    for kernel in (fast, twin):
        found = table(kernel, content, rows_by_lengths(content)[:3])
        assert (found["count"], found["problems"]) == (0, [RecordProblem(1000, Problem.BAD_RECORD, 0, 0)])


@settings(max_examples=examples(200), deadline=None)
@given(CONTENTS.filter(bool), BATCH_FILTERS)
def test_batches_are_chosen_equally(content: bytes, wanted: BatchFilter) -> None:
    results = []
    for kernel in (fast, twin):
        rows = rows_by_lengths(content)
        answer = kernel.select(memoryview(content), rows, len(rows) // 3, wanted)
        results.append((answer, rows[: 3 * answer[0]].tolist()))
    assert results[0] == results[1]
