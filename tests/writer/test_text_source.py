"""Lines of text and CSV to build from."""

import pytest

from kseg.writer.text_source import SourceError, read_csv, read_text_lines


def test_a_line_is_a_value() -> None:
    records = list(read_text_lines([b"a\n", b"\n", b"b\r\n", b"\xff"]))
    assert [(record.line, record.key, record.value) for record in records] == [
        (1, None, b"a"),
        (2, None, b""),
        (3, None, b"b"),
        (4, None, b"\xff"),
    ]


def test_a_separator_parts_key_and_value() -> None:
    (record,) = read_text_lines([b"k=v=w\n"], "=")
    assert (record.key, record.value) == (b"k", b"v=w")
    with pytest.raises(SourceError, match="line 2: the line has no '=' between key and value"):
        list(read_text_lines([b"k=v\n", b"kv\n"], "="))


def test_csv_columns_are_named_by_the_first_line() -> None:
    lines = [b"\xef\xbb\xbfkey,timestamp,value,header.h,offset\n", b'k,5,"a\n', b'b",x,7\n', b",,,,\n"]
    first, second = read_csv(lines)
    assert first[1:6] == (7, 5, b"k", b"a\nb", (("h", b"x"),))
    assert second[1:6] == (None, None, None, None, ())
    assert (first.line, second.line) == (3, 4)


def test_csv_fields_are_as_dump_prints_what_is_no_utf_8() -> None:
    (record,) = read_csv([b"key,value,header.h,offset\n", b"base64:/w==,base64:,base64:/g==, 7 \n"])
    assert record[1:6] == (7, None, b"\xff", b"", (("h", b"\xfe"),))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [b"key,vale\n"],
            "line 1: the column 'vale' isn't known; the columns are offset, timestamp, key, value and header.NAME",
        ),
        ([b"key,key\n"], "line 1: a column is repeated"),
        ([b"key,value\n", b"k\n"], "line 2: the line has 1 fields, but the first line has 2 columns"),
        ([b"timestamp\n", b"x\n"], "line 2: timestamp is 'x', not an integer of 64 bits"),
        ([b"offset\n", b"1_000\n"], "line 2: offset is '1_000', not an integer of 64 bits"),
        ([b"offset\n", b"%d\n" % 2**63], f"line 2: offset is '{2**63}', not an integer of 64 bits"),
        ([b"offset\n", b"9" * 5000], f"line 2: offset is '{'9' * 59}…, not an integer of 64 bits"),
        ([b"key\n", b"k\n", b"base64:YQ\n"], "line 3: key is 'YQ', not base64"),
        ([b"header.h\n", b"base64:?\n"], "line 2: header.h is '?', not base64"),
        ([b"key\n", b"\xff\n"], "line 2: not UTF-8 at byte 0"),
        ([b"key\n", b'"a"b\n'], """line 2: not CSV: ',' expected after '"'"""),
    ],
)
def test_a_csv_line_that_cant_be_taken_is_reported_with_its_number(lines: list[bytes], message: str) -> None:
    with pytest.raises(SourceError) as raised:
        list(read_csv(lines))
    assert str(raised.value) == message


def test_an_empty_file_has_no_records() -> None:
    assert list(read_csv([])) == []
    assert list(read_text_lines([])) == []
