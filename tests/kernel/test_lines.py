"""Contents of the holes of a line."""

import json
from base64 import b64decode
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kseg.kernel.contract import Op, Program, Slot, Template, new_rows
from kseg.system.terminal_text import control_characters
from tests.kernel.made import MARKER_KEY, MARKER_VALUE, BatchHeader, Message, Record, batch
from tests.kernel.runs import program_of, render, rows_by_lengths, scan_rows
from tests.loops import TAKES_ALL

if TYPE_CHECKING:
    from kseg.kernel.entry_points import Kernel

HEADER = BatchHeader(
    base_offset=1000,
    leader_epoch=11,
    attributes=0x0078,  # LogAppendTime, transactional, control, delete horizon
    last_offset_delta=9,
    base_timestamp=1_600_000_000_000,
    max_timestamp=1_600_000_000_999,
    producer_id=77,
    producer_epoch=3,
    base_sequence=2**31 - 4,
)
V2 = batch(
    HEADER,
    [Record(MARKER_KEY, MARKER_VALUE, [(b"h", None), (b"i", b"")], offset_delta=5, timestamp_delta=-9, attributes=-2)],
)
CRC_V2 = int.from_bytes(V2[17:21], "big")
V1 = Message(b"key", b"value", offset=50, attributes=8, timestamp=123).encode()
CRC_V1 = int.from_bytes(V1[12:16], "big")

NONE = -1
OF_V2_BATCH = {
    Slot.BASE_OFFSET: 1000,
    Slot.LAST_OFFSET: 1009,
    Slot.COUNT: 1,
    Slot.BASE_SEQUENCE: 2**31 - 4,
    Slot.LAST_SEQUENCE: 5,
    Slot.PRODUCER_ID: 77,
    Slot.PRODUCER_EPOCH: 3,
    Slot.PARTITION_LEADER_EPOCH: 11,
    Slot.IS_TRANSACTIONAL: 1,
    Slot.IS_CONTROL: 1,
    Slot.HAS_DELETE_HORIZON: 1,
    Slot.BASE_TIMESTAMP: 1_600_000_000_000,
    Slot.MAX_TIMESTAMP: 1_600_000_000_999,
    Slot.TIMESTAMP_TYPE: 1,
    Slot.POSITION: 1000,
    Slot.SIZE: len(V2),
    Slot.MAGIC: 2,
    Slot.CODEC: 0,
    Slot.CRC: CRC_V2,
    Slot.IS_VALID: 1,
    Slot.ATTRIBUTES: 0x78,
    Slot.OFFSET: 1009,
    Slot.TIMESTAMP: 1_600_000_000_999,
    Slot.SEQUENCE: NONE,
    Slot.KEY_SIZE: NONE,
    Slot.VALUE_SIZE: len(V2) - 61,
    Slot.HEADER_COUNT: 0,
    Slot.RECORD_CRC: CRC_V2,
    Slot.RECORD_IS_VALID: 1,
    Slot.RECORD_CODEC: 0,
    Slot.RECORD_MAGIC: 2,
    Slot.CONTROL_TYPE: NONE,
    Slot.CONTROL_VERSION: NONE,
    Slot.COORDINATOR_EPOCH: NONE,
    Slot.TIMESTAMP_DELTA: NONE,
    Slot.RECORD_ATTRIBUTES: NONE,
}
OF_V2_RECORD = OF_V2_BATCH | {
    Slot.OFFSET: 1005,
    Slot.SEQUENCE: 1,
    Slot.KEY_SIZE: 4,
    Slot.VALUE_SIZE: 6,
    Slot.HEADER_COUNT: 2,
    Slot.CONTROL_TYPE: 1,
    Slot.CONTROL_VERSION: 0,
    Slot.COORDINATOR_EPOCH: 7,
    Slot.TIMESTAMP_DELTA: -9,
    Slot.RECORD_ATTRIBUTES: -2,
}
OF_V1 = dict.fromkeys(OF_V2_BATCH, NONE) | {
    Slot.BASE_OFFSET: 50,
    Slot.LAST_OFFSET: 50,
    Slot.COUNT: 1,
    Slot.IS_TRANSACTIONAL: 0,
    Slot.IS_CONTROL: 0,
    Slot.HAS_DELETE_HORIZON: 0,
    Slot.BASE_TIMESTAMP: 123,
    Slot.MAX_TIMESTAMP: 123,
    Slot.TIMESTAMP_TYPE: 1,
    Slot.POSITION: 1000,
    Slot.SIZE: len(V1),
    Slot.MAGIC: 1,
    Slot.CODEC: 0,
    Slot.CRC: CRC_V1,
    Slot.IS_VALID: 1,
    Slot.ATTRIBUTES: 8,
    Slot.OFFSET: 50,
    Slot.TIMESTAMP: 123,
    Slot.KEY_SIZE: 3,
    Slot.VALUE_SIZE: 5,
    Slot.HEADER_COUNT: 0,
    Slot.RECORD_CRC: CRC_V1,
    Slot.RECORD_IS_VALID: 1,
    Slot.RECORD_CODEC: 0,
    Slot.RECORD_MAGIC: 1,
}
SLOTS_LINE = Template(tuple(code for slot in OF_V2_BATCH for code in (Op.INTEGER, slot, 0, Op.LITERAL, 0, 1)), b" ", ())


def slots_of(text: bytes) -> dict[int, int]:
    return dict(zip(OF_V2_BATCH, map(int, text.split()), strict=True))


def test_each_slot_of_a_batch_line_has_its_number(kernel: "Kernel") -> None:
    program = Program((None, None, SLOTS_LINE), (None,) * 3, None)
    assert slots_of(render(kernel, program, V2, scan_rows(kernel, V2)).text) == OF_V2_BATCH


def test_each_slot_of_a_record_line_has_its_number(kernel: "Kernel") -> None:
    program = Program((None,) * 3, (None, None, SLOTS_LINE), (SLOTS_LINE,) * 9)
    assert slots_of(render(kernel, program, V2, scan_rows(kernel, V2)).text) == OF_V2_RECORD


def test_each_slot_of_a_message_has_its_number_in_both_lines(kernel: "Kernel") -> None:
    for program in (
        Program((SLOTS_LINE,) * 3, (None,) * 3, None),
        Program((None,) * 3, (SLOTS_LINE,) * 3, None),
    ):
        assert slots_of(render(kernel, program, V1, scan_rows(kernel, V1)).text) == OF_V1


def test_a_batch_line_shows_nothing_of_records_before(kernel: "Kernel") -> None:
    program = program_of("{sequence} {headerCount} [{headerKeys}] {headers:json} {controlType}|", "", "")
    assert render(kernel, program, V2 + V2, rows_by_lengths(V2 + V2)).text == b"-1 0 [] [] -1|" * 2


def test_a_control_record_shows_nothing_of_the_one_before(kernel: "Kernel") -> None:
    records = [Record(MARKER_KEY, MARKER_VALUE), Record(b"\0\0\0\2", b""), Record(b"\0\1\0\0", b"")]
    content = batch(BatchHeader(attributes=0x20), records)
    program = program_of(None, "", "{controlType} {controlVersion} {coordinatorEpoch}|")
    assert render(kernel, program, content, rows_by_lengths(content)).text == b"1 0 7|2 0 -1|-1 -1 -1|"


@pytest.mark.parametrize(
    "changes",
    [
        {"producer_id": 5},
        {"producer_epoch": 5},
        {"leader_epoch": 5},
        {"attributes": 0x10},
        {"attributes": 0x08},
        {"attributes": 0x03},
        {"base_sequence": 5},
    ],
    ids=str,
)
def test_a_line_shows_a_number_that_is_not_the_one_before(kernel: "Kernel", changes: dict[str, int]) -> None:
    headers = [BatchHeader(), BatchHeader(), BatchHeader(**changes), BatchHeader(**changes), BatchHeader()]
    contents = [batch(header) for header in headers]
    program = Program((None, None, SLOTS_LINE), (None,) * 3, None)
    alone = [render(kernel, program, content, rows_by_lengths(content)).text for content in contents]
    together = render(kernel, program, b"".join(contents), rows_by_lengths(b"".join(contents))).text
    for shown, before in zip(split_slots(together), alone, strict=True):
        assert shown | {Slot.POSITION: 0} == slots_of(before) | {Slot.POSITION: 0}


def split_slots(text: bytes) -> list[dict[int, int]]:
    """Return the lines of SLOTS_LINE, which has no line feed."""
    numbers = text.split()
    return [slots_of(b" ".join(numbers[at : at + len(OF_V2_BATCH)])) for at in range(0, len(numbers), len(OF_V2_BATCH))]


def record_line(kernel: "Kernel", template: str, *records: Record, header: BatchHeader | None = None) -> bytes:
    content = batch(header or BatchHeader(), records)
    return render(kernel, program_of(None, template), content, rows_by_lengths(content)).text


def test_words_stand_for_numbers_and_the_last_one_for_unknown_ones(kernel: "Kernel") -> None:
    program = program_of("{timestampType} {compression} {compression:capital} {isTransactional}|", None)
    content = batch(HEADER) + batch(BatchHeader(attributes=7)) + Message(magic=0).encode()
    lines = b"LogAppendTime none NONE true|CreateTime unknown UNKNOWN false|NoTimestampType none NONE false|"
    assert render(kernel, program, content, rows_by_lengths(content)).text == lines


@pytest.mark.parametrize("key", [None, b"", b"k"])
@pytest.mark.parametrize("value", [None, b"", b"v"])
def test_null_is_reported_from_empty(kernel: "Kernel", key: bytes | None, value: bytes | None) -> None:
    template = "{key?K{key}}{key!null} {value?V{value}}{value!null} {keySize?{keySize}} {valueSize}"
    shown_key = "null" if key is None else "K" + key.decode()
    shown_value = "null" if value is None else "V" + value.decode()
    sizes = ["" if key is None else str(len(key)), str(-1 if value is None else len(value))]
    line = " ".join([shown_key, shown_value, *sizes]).encode()
    assert record_line(kernel, template, Record(key, value)) == line


def test_a_percent_sign_is_one(kernel: "Kernel") -> None:
    line = record_line(kernel, "100%d {position}% {offset}%%s {key}", Record(b"50%"))
    assert line == b"100%d 1000% 0%%s 50%"


def test_conditions_may_lie_in_one_another(kernel: "Kernel") -> None:
    template = "{key?k{value?v{value}}{value!n}}{key!-}{headerCount?h{headerKeys}}|"
    records = [Record(b"", b"1"), Record(b""), Record(None, b"2"), Record(None, None, [(b"a", None), (b"b", b"")])]
    assert record_line(kernel, template, *records) == b"kv1|kn|-|-ha,b|"


def test_a_text_longer_than_the_output_comes_whole(kernel: "Kernel") -> None:
    long = bytes(range(32, 127)) * 5000
    assert record_line(kernel, "<{key}>", Record(long), Record(b"short")) == b"<" + long + b"><short>"


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, '"1970-01-01T00:00:00.000Z"'),
        (1_709_164_799_999, '"2024-02-28T23:59:59.999Z"'),
        (1_709_164_800_000, '"2024-02-29T00:00:00.000Z"'),
        (4_107_542_400_001, '"2100-03-01T00:00:00.001Z"'),
        (253_402_300_799_999, '"9999-12-31T23:59:59.999Z"'),
        (253_402_300_800_000, "null"),
        (-1, "null"),
    ],
)
def test_times_are_iso_8601(kernel: "Kernel", ms: int, text: str) -> None:
    assert record_line(kernel, "{timestamp:iso}", Record(timestamp_delta=ms)).decode() == text


def test_times_in_a_row_are_each_their_own(kernel: "Kernel") -> None:
    times = [0, 1, 999, 1000, 1999, 999, 1_709_164_799_999, 1_709_164_800_000, 1_709_164_800_001, -1, 0]
    content = batch(BatchHeader(), [Record(timestamp_delta=ms) for ms in times])
    lines = render(kernel, program_of(None, "{timestamp:iso} "), content, rows_by_lengths(content)).text.split()
    expected: list[str | None] = [
        f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M:%S}.{ms % 1000:03}Z" for ms in times
    ]
    expected[times.index(-1)] = None
    assert [json.loads(line) for line in lines] == expected


JSON_LINE = r'\{"key{key:json},"value{value:json},"headers":{headers:json}\}'
EVERY_BYTE = bytes(range(128)).decode()


@pytest.mark.parametrize(
    "text", [b"", EVERY_BYTE.encode(), "ä€😀".encode(), b"\xff\0", b"\xed\xa0\x80", b"\xc3", b"a" * 20000 + b"\xff"]
)
def test_json_gives_texts_and_bytes_back(kernel: "Kernel", text: bytes) -> None:
    shown = json.loads(record_line(kernel, JSON_LINE, Record(text, None, [(text, None), (b"h", text)])))
    values = [shown, shown["headers"][0], shown["headers"][1]]
    names = ["key", "key", "value"]
    for value, name in zip(values, names, strict=True):
        plain = value[name].encode() if name in value else b64decode(value[f"{name}Base64"])
        assert plain == text
    assert shown["value"] is None
    assert shown["headers"][0]["value"] is None


def test_output_keeps_the_order_of_what_is_written_between(kernel: "Kernel") -> None:
    pieces: list[bytes] = []
    output = kernel.Output(lambda piece: pieces.append(bytes(piece)), 100)
    renderer = kernel.Renderer(program_of("B", None), output)
    rows = rows_by_lengths(V2)
    output.write(b"first ")
    renderer.render(memoryview(V2), rows, 0, 1, 0, None)
    output.write(b" " * 400_000)
    renderer.render(memoryview(V2), rows, 0, 1, 0, None)
    output.flush()
    assert b"".join(pieces) == b"first B" + b" " * 400_000 + b"B"


def test_rows_outside_the_buffer_are_refused(kernel: "Kernel") -> None:
    output = kernel.Output(lambda _: None, 100)
    renderer = kernel.Renderer(program_of("B", None), output)
    rows = new_rows(1)
    rows[0], rows[1] = 0, len(V2) + 1
    with pytest.raises(IndexError):
        renderer.render(memoryview(V2), rows, 0, 1, 0, None)
    with pytest.raises(IndexError):
        renderer.render(memoryview(V2), rows, 0, 2, 0, None)
    with pytest.raises(IndexError):
        renderer.render(memoryview(V2), rows_by_lengths(V2), 0, 1, 0, [])


@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_json_escapes_what_controls_a_terminal_and_nothing_else_beyond_ascii(kernel: "Kernel", start: int) -> None:
    whole = 1 if TAKES_ALL else 5  # some of 64 characters in a row suffice, which only differ in the last byte
    codes = range(0x80, 0x110000, whole if start == 0 else 17)  # a sample suffices for the other places
    others = (chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF)
    harmful = set(control_characters())
    text = "x" * start + "".join([*(each for each in others if each not in harmful), *harmful])
    line = record_line(kernel, JSON_LINE, Record(text.encode(), None, [(b"h", text.encode())])).decode()
    assert not set(line) & harmful - {"\n"}
    assert len(set(line) - set(map(chr, range(0x80)))) == len(set(text) - harmful) - (1 if start else 0)
    shown = json.loads(line)
    assert (shown["key"], shown["headers"][0]["value"]) == (text, text)


def test_json_escapes_each_set_of_quotes_among_eight_bytes(kernel: "Kernel") -> None:
    sets = ["".join(character if number >> i & 1 else "abcdefgh"[i] for i in range(8))
            for number in range(256) for character in '"\\\n\x1b\x7f']  # fmt: skip
    text = "".join(sets) + "end"
    assert json.loads(record_line(kernel, JSON_LINE, Record(text.encode(), None)))["key"] == text
    for each in sets:
        assert json.loads(record_line(kernel, JSON_LINE, Record(each.encode(), None)))["key"] == each


@pytest.mark.parametrize("character", ['"', "\\", "\n", "\x7f", "ä", "\x9b", "\N{ZERO WIDTH NO-BREAK SPACE}"])
def test_json_escapes_a_character_at_any_place(kernel: "Kernel", character: str) -> None:
    texts = ["x" * start + character + "y" * after for start in range(70) for after in (0, 1, 40)]
    headers = [(text.encode(), text.encode()) for text in texts]
    shown = json.loads(record_line(kernel, JSON_LINE, Record(None, None, headers)))["headers"]
    assert shown == [{"key": text, "value": text} for text in texts]


def test_json_escapes_across_the_pieces_of_a_long_text(kernel: "Kernel") -> None:
    for character in ("\x9b", "\u202e", "\U000e0041"):
        for before in range(16380, 16390):
            text = "a" * before + character + "ä" * 20000
            line = record_line(kernel, JSON_LINE, Record(text.encode(), None))
            assert character.encode() not in line
            assert json.loads(line)["key"] == text
