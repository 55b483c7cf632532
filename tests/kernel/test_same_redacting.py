"""Both kernels replace the same header values, and none but those of records that are shown."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kseg.kernel import fast, twin
from tests.kernel.made import RECORDS, Record, damaged, varint

CONTENTS = damaged(st.lists(RECORDS.map(Record.encoded), max_size=5).map(b"".join))


def replaced(kernel: object, content: bytes, start: int, end: int, count: int) -> tuple[bytes, list[bytes]]:
    records, seen = bytearray(content), list[bytes]()

    def turned(value: bytes) -> bytes:
        seen.append(value)
        return bytes(255 - byte for byte in value)

    kernel.replace_header_values(records, start, end, count, turned)  # type: ignore[attr-defined]
    return bytes(records), seen


@given(CONTENTS, st.integers(0, 3), st.integers(-1, 6))
def test_twin_replaces_what_the_compiled_kernel_does(content: bytes, before: int, count: int) -> None:
    start = min(before, len(content))
    expected = replaced(fast, content, start, len(content), count)
    assert replaced(twin, content, start, len(content), count) == expected


@given(st.lists(RECORDS.map(lambda record: replace(record, extra=0)), max_size=5))
def test_header_values_alone_are_replaced(records: list[Record]) -> None:
    content = b"".join(record.encoded() for record in records)
    changed, seen = replaced(fast, content, 0, len(content), len(records))
    assert seen == [value for record in records for _, value in record.headers if value]
    back, _ = replaced(fast, changed, 0, len(content), len(records))
    assert back == content


def test_record_that_is_not_shown_is_left_as_it_is() -> None:
    short = b"\0\0\0\x01\x01" + varint(2) + b"\x02a\x02b"  # the second of two headers is missing
    content = Record(headers=[(b"h", b"v")]).encoded() + varint(len(short)) + short
    for kernel in (fast, twin):
        assert replaced(kernel, content, 0, len(content), 2)[1] == [b"v"]
