"""JSON lines to build from: what is accepted, and messages about wrong lines."""

import json

import pytest

from kseg.dump.log_steps import LogSummary
from kseg.dump.record_forms import damage_object, summary_object
from kseg.formats.codes import ControlType, DamageKind
from kseg.layouts.record_columns import BATCH_COLUMNS, DECODED_COLUMNS, PLACE_COLUMNS, RECORD_COLUMNS, STORED_COLUMNS
from kseg.reading.blocks import Damage
from kseg.writer.json_source import FIELDS, read_json_lines
from kseg.writer.text_source import (
    Note,
    SegmentStart,
    SourceBatch,
    SourceError,
    SourceItem,
    SourceRecord,
    TransactionEnd,
)
from tests.loops import for_each

BATCH = {"type": "batch", "magic": 2, "baseOffset": 5, "lastOffset": 5, "count": 1}


def read(*lines: object) -> list[SourceItem]:
    return list(read_json_lines(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))


def test_all_members_of_a_record_may_be_missing() -> None:
    assert read({}) == [SourceRecord(1, None, None, None, None)]


def test_null_is_not_empty() -> None:
    first, second = read({"key": "", "value": None}, {"keyBase64": "", "value": ""})
    assert isinstance(first, SourceRecord)
    assert isinstance(second, SourceRecord)
    assert (first.key, first.value, second.key, second.value) == (b"", None, b"", b"")


def test_bytes_stand_as_base64() -> None:
    (record,) = read({"keyBase64": "/w==", "valueBase64": "AAE=", "headers": [{"key": "h", "valueBase64": "/w=="}]})
    assert record == SourceRecord(1, None, None, b"\xff", b"\0\1", ((b"h", b"\xff"),))


@pytest.mark.parametrize(
    ("content", "written"),
    [
        ({"b": [1, 2.5, None], "a": "é"}, '{"b":[1,2.5,null],"a":"é"}'),
        ([], "[]"),
        (5, "5"),
        (True, "true"),
        (False, "false"),
    ],
)
def test_other_json_is_its_compact_text(content: object, written: str) -> None:
    (record,) = read({"key": content, "value": content, "headers": {"h": content}})
    assert isinstance(record, SourceRecord)
    assert (record.key, record.value, record.headers) == (*[written.encode()] * 2, ((b"h", written.encode()),))


def test_headers_may_be_an_object() -> None:
    (record,) = read({"headers": {"a": "1", "b": None}})
    assert isinstance(record, SourceRecord)
    assert record.headers == ((b"a", b"1"), (b"b", None))


def test_records_belong_to_the_batch_before_them() -> None:
    (batch,) = read(BATCH, {"offset": 5, "value": "v"})
    assert isinstance(batch, SourceBatch)
    assert (batch.line, batch.header.base_offset, [record.line for record in batch.records]) == (1, 5, [2])


def test_a_new_file_begins_a_segment() -> None:
    items = read(
        {"type": "summary", "file": "t-0/00000000000000000007.log"},
        {"type": "summary", "file": "t-0/00000000000000000009.log"},
        {"type": "summary", "file": "t-0/00000000000000000009.log"},
    )
    assert items == [SegmentStart(1, 7), SegmentStart(2, 9)]


def test_what_dump_says_of_other_files_is_passed_over() -> None:
    others = [{"type": kind, "file": "t-0/x"} for kind in ("index", "timeindex", "snapshot", "finding")]
    assert read(*others) == []
    assert read(BATCH, {"offset": 5}, *others) == read(BATCH, {"offset": 5})


def test_empty_lines_are_passed_over_and_counted() -> None:
    assert read(b"\n", {"type": "abort"}, b"  ", {"type": "commit"}) == [
        TransactionEnd(2, ControlType.ABORT),
        TransactionEnd(4, ControlType.COMMIT),
    ]


@for_each(
    "line, message",
    [
        (b'{"key":', "line 2: not JSON: Expecting value at column 8"),
        (b"\xff", "line 2: not UTF-8 at byte 0"),
        (b"[" * 100_000, "line 2: the JSON has a number that is too long, or too many levels"),
        (b"5", "line 2: 5 isn't a JSON object"),
        ({"value": [float("nan")]}, "line 2: value is [nan], which isn't valid JSON"),
        ({"headers": [{"key": 5}]}, "line 2: a header's key is 5, expected text"),
        ({"valueBase64": "?"}, "line 2: valueBase64 is '?', not base64"),
        ({"valueBase64": 7}, "line 2: valueBase64 is 7, expected text or null"),
        (b'{"key":"\\ud800"}', "line 2: key has half a surrogate pair at character 0"),
        ({"timestamp": "now"}, "line 2: timestamp is 'now', not an integer"),
        ({"timestamp": True}, "line 2: timestamp is True, not an integer"),
        ({"timestamp": 2**63}, f"line 2: timestamp is {2**63}, expected {-(2**63)} to {2**63 - 1}"),
        ({"headers": "h"}, "line 2: headers is 'h', expected a list or an object"),
        ({"headers": [5]}, "line 2: a header is 5, expected an object with key and value"),
        ({"headers": [{"value": "v"}]}, "line 2: a header has no key"),
        ({"type": ["x"]}, "line 2: type is ['x'], expected text"),
        ({"type": "summary", "file": 5}, "line 2: file is 5, expected text"),
        ({"key": "a", "keyBase64": "YQ=="}, "line 2: both key and keyBase64 are given; omit one"),
        ({"type": "x"}, "line 2: type is 'x'; specify one of batch, record, damage, summary, commit, abort"),
        ({**BATCH, "magic": 3}, "line 2: magic is 3, expected 0 to 2"),
        ({**BATCH, "producerEpoch": 2**15}, "line 2: producerEpoch is 32768, expected -32768 to 32767"),
        (
            BATCH,
            "line 2: the batch counts 1 record, but 0 follow: the input was truncated,"
            " or a selection was printed with -q, so that its summary is missing",
        ),
        (
            {"valeu": "v"},
            "line 2: 'valeu' isn't a field of a record; the fields are offset, timestamp, key, keyBase64, value, "
            "valueBase64, headers, timestampDelta, recordAttributes",
        ),
        ({**BATCH, "cont": 1}, f"line 2: 'cont' isn't a field of a batch; the fields are {', '.join(FIELDS['batch'])}"),
        ({"type": "commit", "epoch": 5}, "line 2: 'epoch' isn't a field of a commit; the fields are type"),
        (
            {"headers": [{"key": "h", "val": "v"}]},
            "line 2: 'val' isn't a field of a header; the fields are key, keyBase64, value, valueBase64",
        ),
        (
            {"time": "2026-11-01"},
            "line 2: the record has a time, but no timestamp; specify its timestamp in milliseconds since 1970",
        ),
        (
            {"control": {"type": "COMMIT"}},
            "line 2: a control record comes without its batch; let `kseg dump` print batches, too",
        ),
    ],
)
def test_a_line_that_cant_be_taken_is_reported_with_its_number(line: object, message: str) -> None:
    with pytest.raises(SourceError) as raised:
        read({}, line)
    assert str(raised.value) == message


def test_all_fields_that_dump_prints_are_known() -> None:
    printed = {
        "batch": {column.name for column in BATCH_COLUMNS},
        "record": {column.name for column in (*RECORD_COLUMNS, *STORED_COLUMNS, *DECODED_COLUMNS)}
        | {*PLACE_COLUMNS, "keyBase64", "valueBase64", "control"},
        "damage": {*damage_object(Damage(DamageKind.BAD_CRC, 0, 0, ""))},
        "summary": {*summary_object("", LogSummary(0, 0, 0, [], []))},
    }
    for kind, names in printed.items():
        assert {*FIELDS[kind]} == {"type", "file", *names}, kind


def test_a_batch_is_cut_to_the_records_that_follow() -> None:
    header = {**BATCH, "lastOffset": 9, "count": 5, "baseSequence": 2**31 - 1, "producerId": 1, "maxTimestamp": 50}
    lines = [{"offset": 6, "timestamp": 20}, {"offset": 8, "timestamp": 30}]
    batch, note = read({**header, "baseTimestamp": 10}, *lines, {"type": "summary"})
    assert isinstance(batch, SourceBatch)
    assert (batch.header.base_offset, batch.header.last_offset, batch.header.base_sequence) == (6, 8, 0)
    assert (batch.header.base_timestamp, batch.header.max_timestamp, len(batch.records)) == (10, 30, 2)
    assert isinstance(note, Note)
    assert note.line == 1


def test_a_segment_is_named_by_what_was_selected_of_it() -> None:
    file = "t-0/00000000000000000003.log"
    at_start = {**BATCH, "file": file, "position": 0}
    assert read(at_start, {"offset": 5})[0] == SegmentStart(1, 3)
    assert read({**at_start, "position": 61}, {"offset": 5})[0] == SegmentStart(1, 5)
    cut = {**at_start, "baseOffset": 4, "count": 2}
    assert read(cut, {"offset": 5}, {"type": "summary", "file": file, "bytes": 99})[0] == SegmentStart(1, 5)
    nothing = {"type": "summary", "file": file, "bytes": 99}
    other = {**BATCH, "file": "t-0/00000000000000000005.log", "position": 0}
    assert read(nothing, other, {"offset": 5})[0] == SegmentStart(2, 5)


def test_a_batch_takes_no_more_records_than_it_counts() -> None:
    with pytest.raises(SourceError, match="line 3: the batch of line 1 counts only 1 record"):
        read(BATCH, {"offset": 5}, {"offset": 6})
    with pytest.raises(SourceError, match="line 2: a record of a batch has no offset"):
        read(BATCH, {"value": "v"})


def test_the_lines_of_two_partitions_are_not_put_together() -> None:
    with pytest.raises(SourceError, match=r"line 2: 'b-0/1\.log' belongs to another partition than 'a-0/1\.log'"):
        read({"type": "summary", "file": "a-0/1.log"}, {"type": "summary", "file": "b-0/1.log"})
