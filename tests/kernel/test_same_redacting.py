"""Both kernels replace the same contents of records, and only those of printed records."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kseg.kernel import fast, twin
from tests.kernel.made import RECORDS, Record, damage_contents, varint

CONTENTS = damage_contents(st.lists(RECORDS.map(Record.encode), max_size=5).map(b"".join))
Pair = tuple[bytes | None, bytes | None]


def turn(content: bytes | None) -> bytes | None:
    return None if content is None else bytes(255 - byte for byte in content)


def replace_contents(
    kernel: object, content: bytes, start: int, end: int, count: int, *, has_records: bool = True
) -> tuple[bytes, list[Pair], list[Pair]]:
    """Return the replaced contents, and the pairs of records and of headers that were replaced."""
    changed, records, headers = bytearray(content), list[Pair](), list[Pair]()

    def replace_record(key: bytes | None, value: bytes | None) -> Pair:
        records.append((key, value))
        return turn(key), turn(value)

    def replace_header(key: bytes | None, value: bytes | None) -> Pair:
        headers.append((key, value))
        return key, turn(value)

    wanted = replace_record if has_records else None
    kernel.replace_contents(changed, start, end, count, wanted, replace_header)  # type: ignore[attr-defined]
    return bytes(changed), records, headers


@given(CONTENTS, st.integers(0, 3), st.integers(-1, 6), st.booleans())
def test_twin_replaces_what_the_compiled_kernel_does(
    content: bytes, before: int, count: int, has_records: bool
) -> None:
    start = min(before, len(content))
    expected = replace_contents(fast, content, start, len(content), count, has_records=has_records)
    assert replace_contents(twin, content, start, len(content), count, has_records=has_records) == expected


@given(st.lists(RECORDS.map(lambda record: replace(record, extra=0)), max_size=5), st.booleans())
def test_contents_alone_are_replaced(records: list[Record], has_records: bool) -> None:
    content = b"".join(record.encode() for record in records)
    changed, pairs, headers = replace_contents(fast, content, 0, len(content), len(records), has_records=has_records)
    assert pairs == ([(record.key, record.value) for record in records] if has_records else [])
    assert headers == [header for record in records for header in record.headers]
    back, _, _ = replace_contents(fast, changed, 0, len(content), len(records), has_records=has_records)
    assert back == content


def test_record_that_is_not_shown_is_left_as_it_is() -> None:
    short = b"\0\0\0\x01\x01" + varint(2) + b"\x02a\x02b"  # the second of two headers is missing
    content = Record(headers=[(b"h", b"v")]).encode() + varint(len(short)) + short
    for kernel in (fast, twin):
        assert replace_contents(kernel, content, 0, len(content), 2)[2] == [(b"h", b"v")]
