"""Results of the kernels for batches and entries: equal to the grammars', with a problem where those fail."""

import struct
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import pytest
from construct import ConstructError
from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.formats.batch import RECORD_BATCH
from kseg.kernel.contract import GapRule, Headers, Problem, RecordProblem
from tests.kernel.made import (
    BATCH_HEADERS,
    DAMAGES,
    INT16,
    MARKER_KEY,
    MARKER_VALUE,
    RECORDS,
    BatchHeader,
    Damage,
    Message,
    Record,
    batch,
)
from tests.kernel.runs import Options, Rendered, program_of, render, rows_by_lengths
from tests.loops import for_each

if TYPE_CHECKING:
    from kseg.kernel.entry_points import Kernel

POSITION = 1000  # position of the content for render()
RECORD_LINE = "{offset} {timestamp} {keySize} {valueSize} {headers:json}|"
# The fixture only chooses a module, so examples may share it.
BY_HYPOTHESIS = settings(max_examples=100)


class Read(NamedTuple):
    """A record in a decoder's arguments."""

    key: bytes | None
    value: bytes | None
    offset: int


def read(kernel: "Kernel", content: bytes) -> tuple[list[Read], Rendered]:
    records: list[Read] = []

    def decode(key: bytes | None, value: bytes | None, offset: int, headers: Headers) -> tuple[None, None]:
        records.append(Read(key, value, offset))
        return None, None

    rows = rows_by_lengths(content)
    return records, render(kernel, program_of(None, RECORD_LINE), content, rows, None, Options(decode))


def as_int64(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


@BY_HYPOTHESIS
@given(header=BATCH_HEADERS, records=st.lists(RECORDS, max_size=4), damages=DAMAGES, attributes=INT16)
def test_records_are_read_as_the_grammar_does_or_are_a_problem(
    kernel: "Kernel", header: BatchHeader, records: list[Record], damages: list[Damage], attributes: int
) -> None:
    body = b"".join(record.encode() for record in records)
    for damage in damages:
        body = damage.of(body)
    count = len(records) if header.count is None else header.count
    uncompressed = BatchHeader(
        base_offset=header.base_offset,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        attributes=attributes & ~0x07,
        count=count,
    )
    content = batch(uncompressed, body=body)
    shown, result = read(kernel, content)
    try:
        parsed = RECORD_BATCH.parse(content)
    except ConstructError:
        assert [problem.position for problem in result.problems] == [POSITION]
        assert result.problems[0].records_read == len(shown) == result.records
        return
    assert not result.problems
    assert shown == [
        Read(record.key, record.value, as_int64(header.base_offset + record.offset_delta)) for record in parsed.records
    ]


USUAL = Record(b"k", b"v", [(b"h", b"1")])
GOOD = USUAL.encode()
TOO_LONG = b"\x80" * 5 + b"\0"


@for_each(
    "body, count, problem, records_read, stopped_at",
    [
        (GOOD, -1, Problem.BAD_COUNT, 0, 0),
        (GOOD, 2, Problem.BAD_COUNT, 1, len(GOOD)),
        (GOOD, 2**31 - 1, Problem.BAD_COUNT, 1, len(GOOD)),
        (GOOD + GOOD, 1, Problem.BAD_COUNT, 1, len(GOOD)),
        (b"", 1, Problem.BAD_COUNT, 0, 0),
        (GOOD + TOO_LONG, 2, Problem.BAD_RECORD, 1, len(GOOD) + 5),
        (GOOD + b"\x80\x80", 2, Problem.BAD_RECORD, 1, len(GOOD) + 2),
        (GOOD + Record(b"k", b"v").encode()[:-1], 2, Problem.BAD_RECORD, 1, len(GOOD) + 1),
        (GOOD + GOOD[:-1], 2, Problem.BAD_RECORD, 1, len(GOOD) + 1),
        (GOOD + b"\x01" + GOOD, 3, Problem.BAD_RECORD, 1, len(GOOD) + 1),
        (GOOD + b"\0" + GOOD, 3, Problem.BAD_RECORD, 1, len(GOOD) + 1),
        (GOOD + b"\x0c" + bytes(6) + GOOD, 3, None, 3, 0),
        (GOOD + b"\x0e" + bytes(7) + GOOD, 3, Problem.BAD_RECORD, 1, len(GOOD) + 8),
        (GOOD + b"\x0c\0\0\0\0\0\1" + GOOD, 3, Problem.BAD_RECORD, 1, len(GOOD) + 7),  # -1 headers
        (GOOD + b"\x10\0\0\0\0\0\2\1\0" + GOOD, 3, Problem.BAD_RECORD, 1, len(GOOD) + 9),  # a header's key is null
    ],
)
def test_a_problem_tells_what_was_read_and_where_it_stopped(
    kernel: "Kernel", body: bytes, count: int, problem: Problem | None, records_read: int, stopped_at: int
) -> None:
    content = batch(BatchHeader(count=count), body=body)
    shown, result = read(kernel, content)
    assert len(shown) == result.records == records_read
    assert result.problems == ([] if problem is None else [RecordProblem(POSITION, problem, records_read, stopped_at)])


def test_numbers_wrap_as_javas_do(kernel: "Kernel") -> None:
    header = BatchHeader(base_offset=2**63 - 1, base_timestamp=-(2**63), base_sequence=2**31 - 1)
    records = [Record(), Record(offset_delta=1, timestamp_delta=-1), Record(offset_delta=-(2**31))]
    content = batch(header, records)
    text = render(
        kernel, program_of(None, "{offset} {timestamp} {sequence}|"), content, rows_by_lengths(content)
    ).text.split(b"|")
    assert text[:2] == [
        b"%d %d %d" % (2**63 - 1, -(2**63), 2**31 - 1),
        b"%d %d 0" % (-(2**63), 2**63 - 1),
    ]
    assert text[2].endswith(b" -1")


def test_many_small_records_come_in_order(kernel: "Kernel") -> None:
    records = [Record(b"%d" % index, None, offset_delta=index) for index in range(2000)]
    shown, result = read(kernel, batch(BatchHeader(), records))
    assert [record.offset for record in shown] == list(range(2000))
    assert result.records == 2000


def test_the_append_time_is_that_of_all_records(kernel: "Kernel") -> None:
    content = batch(
        BatchHeader(attributes=8, base_timestamp=5, max_timestamp=99), [USUAL, Record(timestamp_delta=2**40)]
    )
    result = render(kernel, program_of(None, "{timestamp}|"), content, rows_by_lengths(content))
    assert result.text == b"99|99|"


@for_each("delta, attributes", list(product([0, -5000, 8000, 2**40], [0, 1, 127, -128])))
def test_a_record_tells_what_it_stores(kernel: "Kernel", delta: int, attributes: int) -> None:
    content = batch(
        BatchHeader(attributes=8, max_timestamp=99), [Record(timestamp_delta=delta, attributes=attributes), USUAL]
    )
    result = render(kernel, program_of(None, "{timestampDelta} {recordAttributes}|"), content, rows_by_lengths(content))
    assert result.text == b"%d %d|0 0|" % (delta, attributes)


def wrapper(
    *messages: Message, magic: int = 1, offset: int = 0, attributes: int = 1
) -> tuple[bytes, list[bytes | None]]:
    """Return an entry, and its decompressed body."""
    entry = Message(None, b"compressed", offset, magic, attributes, timestamp=77).encode()
    return entry, [b"".join(message.encode() for message in messages)]


@pytest.mark.parametrize(("offset", "shown"), [(12, b"10 11 12 "), (0, b"0 1 2 ")])
def test_offsets_in_a_v1_wrapper_are_relative_unless_its_own_is_0(kernel: "Kernel", offset: int, shown: bytes) -> None:
    content, bodies = wrapper(*(Message(b"k", b"v", index) for index in range(3)), offset=offset)
    result = render(
        kernel,
        program_of("{baseOffset}-{lastOffset} {count}: ", "{offset} "),
        content,
        rows_by_lengths(content),
        bodies,
    )
    assert result.text == b"%d-%d 3: " % (int(shown.split()[0]), offset) + shown


def test_offsets_in_a_v0_wrapper_are_absolute(kernel: "Kernel") -> None:
    content, bodies = wrapper(Message(offset=8, magic=0), Message(offset=9, magic=0), magic=0, offset=9)
    assert render(kernel, program_of(None, "{offset} "), content, rows_by_lengths(content), bodies).text == b"8 9 "


def test_a_wrapper_with_append_time_gives_it_to_its_messages(kernel: "Kernel") -> None:
    content, bodies = wrapper(Message(timestamp=1), Message(offset=1, timestamp=2), offset=1, attributes=9)
    assert render(kernel, program_of(None, "{timestamp} "), content, rows_by_lengths(content), bodies).text == b"77 77 "


INNER = Message(b"k", b"v").encode()


@pytest.mark.parametrize(
    ("body", "records", "problems"),
    [
        (b"", 0, 1),
        (INNER + INNER[:-1], 1, 0),  # a short last entry ends them silently
        (INNER + b"\0" * 11, 1, 0),
        (INNER + bytes(12), 1, 1),
        (INNER + Message(magic=0).encode(), 1, 1),
        (INNER + Message(attributes=1).encode(), 1, 1),
        (INNER + struct.pack(">qi", 0, 22) + bytes(4) + b"\1" + bytes(13) + b"\0\0\0\1", 1, 1),
    ],
)
def test_a_wrapper_that_cant_be_read_whole(kernel: "Kernel", body: bytes, records: int, problems: int) -> None:
    content, _ = wrapper()
    result = render(kernel, program_of(None, "x"), content, rows_by_lengths(content), [body])
    assert (result.records, len(result.problems)) == (records, problems)


def test_a_compressed_batch_without_a_body_shows_its_own_line_only(kernel: "Kernel") -> None:
    content = batch(BatchHeader(attributes=2), body=b"snappy?") + wrapper()[0]
    result = render(kernel, program_of("B", "r"), content, rows_by_lengths(content), [None, None])
    assert result == Rendered(b"BB", 0, [], [])


def test_shallow_lines_count_what_headers_count(kernel: "Kernel") -> None:
    content = batch(BatchHeader(count=7)) + batch(BatchHeader(count=-7)) + wrapper()[0] + INNER
    assert render(kernel, program_of("B", None), content, rows_by_lengths(content)) == Rendered(b"BBBB", 9, [], [])


def test_rendering_goes_through_the_first_batch_with_a_problem(kernel: "Kernel") -> None:
    bad = batch(BatchHeader(count=2), [USUAL])
    content = batch(BatchHeader(), [USUAL]) + bad + batch(BatchHeader(), [USUAL])
    output = kernel.Output(lambda _: None, 1)
    renderer = kernel.Renderer(program_of("B", "r"), output)
    rows = rows_by_lengths(content)
    assert renderer.render(memoryview(content), rows, 0, 3, 0, None) == 2
    assert len(renderer.problems) == 1
    assert renderer.render(memoryview(content), rows, 2, 3, 0, None) == 3
    assert renderer.records == 3


# --- gaps ------------------------------------------------------------------------------------------------------------

OFFSETS = (4, 5, 7, 7)
ENTRIES = b"".join(Message(offset=offset).encode() for offset in OFFSETS)


@pytest.mark.parametrize(
    ("rule", "last_offset", "gaps"),
    [
        (GapRule.NONE, None, []),
        (GapRule.ALL_RECORDS, None, [(5, 7), (7, 7)]),
        (GapRule.ALL_RECORDS, -1, [(-1, 4), (5, 7), (7, 7)]),
        (GapRule.ALL_RECORDS, 3, [(5, 7), (7, 7)]),
        (GapRule.FALLS, None, [(7, 7)]),
        (GapRule.FALLS, 9, [(9, 4), (7, 7)]),
        (GapRule.PLAIN_MESSAGES, None, [(5, 7), (7, 7)]),
    ],
)
def test_offsets_that_dont_follow_are_noted(
    kernel: "Kernel", rule: GapRule, last_offset: int | None, gaps: list[tuple[int, int]]
) -> None:
    options = Options(gap_rule=rule, last_offset=last_offset)
    assert render(kernel, program_of(None, "r"), ENTRIES, rows_by_lengths(ENTRIES), None, options).gaps == gaps


def test_offsets_of_v2_records_are_noted_by_the_first_rule_only(kernel: "Kernel") -> None:
    content = batch(BatchHeader(base_offset=2**63 - 1), [Record(), Record(offset_delta=1), Record(offset_delta=3)])
    rows = rows_by_lengths(content)
    gaps = [render(kernel, program_of(None, "r"), content, rows, None, Options(gap_rule=rule)).gaps for rule in GapRule]
    falls = [(2**63 - 1, -(2**63))]
    # The largest offset is followed by the smallest, as in Java.
    assert gaps == [[], [(-(2**63), -(2**63) + 2)], [], falls]


def test_shallow_lines_of_messages_note_gaps_by_the_second_rule(kernel: "Kernel") -> None:
    wrapped, _ = wrapper(offset=9)
    content = ENTRIES + wrapped + Message(offset=10).encode() + Message(offset=12).encode()
    rows = rows_by_lengths(content)
    gaps = [render(kernel, program_of("B", None), content, rows, None, Options(gap_rule=rule)).gaps for rule in GapRule]
    assert gaps == [[], [], [(5, 7), (7, 7), (10, 12)], []]


# --- decoders and control records ------------------------------------------------------------------------------------


def test_a_decoders_texts_are_shown_and_sizes_stay(kernel: "Kernel") -> None:
    def decode(
        key: bytes | None, value: bytes | None, offset: int, headers: Headers
    ) -> tuple[bytes | None, bytes | None]:
        return value, None if key is None else b"%b at %d" % (key, offset)

    content = batch(BatchHeader(), [Record(b"key", None, offset_delta=1), Record(None, b"v", offset_delta=2)])
    program = program_of(None, "{keySize} {key?k={key}} {value?v={value}}|")
    text = render(kernel, program, content, rows_by_lengths(content), None, Options(decode)).text
    assert text == b"3  v=key at 1|-1 k=v |"


CONTROLS = {
    b"\0\0\0\0": "type 0",
    b"\0\0\0\1": "type 1",
    b"\0\5\0\3": "type 3",
    b"\0\0\0\6": "type 6",
    b"\0\0\0\7": "unknown",
    b"\0\0\xff\xff": "unknown",
    b"\xff\xff\0\3": "malformed",
    b"\0\0\0": "malformed",
}


def control_program() -> tuple[str, ...]:
    return (*(f"type {kind}" for kind in range(7)), "unknown", "malformed")


@pytest.mark.parametrize("key", CONTROLS, ids=bytes.hex)
def test_control_records_have_the_line_of_their_type(kernel: "Kernel", key: bytes) -> None:
    lines = tuple(program_of(None, line).record[0] for line in control_program())
    program = program_of(None, "record")._replace(control=lines)
    content = batch(BatchHeader(attributes=0x20), [Record(key, MARKER_VALUE)])
    result = render(kernel, program, content, rows_by_lengths(content))
    is_malformed = CONTROLS[key] == "malformed"
    assert result.text.decode() == CONTROLS[key]
    assert result.problems == [RecordProblem(POSITION, Problem.BAD_CONTROL, 0, 0)] * is_malformed


@pytest.mark.parametrize("value", [None, b"", b"\0\0\0\0\0", b"\xff\xff\0\0\0\1"])
def test_a_marker_without_its_value_is_malformed(kernel: "Kernel", value: bytes | None) -> None:
    content = batch(BatchHeader(attributes=0x20), [Record(MARKER_KEY, MARKER_VALUE), Record(MARKER_KEY, value)])
    result = render(kernel, program_of(None, "", "c"), content, rows_by_lengths(content))
    assert result == Rendered(b"cc", 2, [RecordProblem(POSITION, Problem.BAD_CONTROL, 1, 0)], [])


def test_control_records_that_are_no_markers_are_decoded(kernel: "Kernel") -> None:
    def decode_control(key: bytes, value: bytes | None) -> bytes | None:
        return None if value is None else key[2:] + value

    records = [
        Record(MARKER_KEY, MARKER_VALUE),
        Record(b"\0\0\0\2", b"voters"),
        Record(b"\0\0\0\3"),
        Record(b"\0\0\0\7", b"?"),
    ]
    content = batch(BatchHeader(attributes=0x20), records)
    program = program_of(None, "", "{controlType} {decoded?{decoded}}{decoded!-}|")
    options = Options(decode_control=decode_control)
    text = render(kernel, program, content, rows_by_lengths(content), None, options).text
    assert text == b"1 -|2 \0\2voters|3 -|7 -|"
