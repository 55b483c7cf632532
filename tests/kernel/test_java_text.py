"""Texts are decoded like Java's UTF-8: invalid bytes become U+FFFD, in Java's portions."""

import re
from itertools import product
from typing import TYPE_CHECKING

import pytest

from tests.kernel.made import BatchHeader, Record, batch
from tests.kernel.runs import program_of, render, rows_by_lengths
from tests.loops import for_each

if TYPE_CHECKING:
    from kseg.kernel.entry_points import Kernel

BOUNDARIES = bytes.fromhex("00 41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")
FEW_BOUNDARIES = bytes.fromhex("41 80 8f 90 a0 bf c2 e0 e1 ed ee f0 f1 f4")

# An independent rule to test against: the table of well-formed sequences (Unicode, 3.9), and their incomplete
# beginnings. A surrogate counts as one sequence, though it isn't well-formed.
WELL_FORMED = rb"""
    [\x00-\x7f]
    | [\xc2-\xdf][\x80-\xbf]
    | \xe0[\xa0-\xbf][\x80-\xbf] | [\xe1-\xec\xee\xef][\x80-\xbf]{2} | \xed[\x80-\x9f][\x80-\xbf]
    | \xf0[\x90-\xbf][\x80-\xbf]{2} | [\xf1-\xf3][\x80-\xbf]{3} | \xf4[\x80-\x8f][\x80-\xbf]{2}
"""
BROKEN = rb"""
    \xed[\xa0-\xbf][\x80-\xbf]?
    | \xe0[\xa0-\xbf] | [\xe1-\xec\xee\xef][\x80-\xbf] | \xed[\x80-\x9f]
    | \xf0[\x90-\xbf][\x80-\xbf]? | [\xf1-\xf3][\x80-\xbf]{1,2} | \xf4[\x80-\x8f][\x80-\xbf]?
    | .
"""
SEQUENCE = re.compile(rb"(?P<good>%b)|%b" % (WELL_FORMED, BROKEN), re.VERBOSE | re.DOTALL)


def as_java(text: bytes) -> bytes:
    return b"".join(found["good"] or "\N{REPLACEMENT CHARACTER}".encode() for found in SEQUENCE.finditer(text))


def print_text(kernel: "Kernel", template: str, *records: Record) -> bytes:
    content = batch(BatchHeader(), records)
    return render(kernel, program_of(None, template), content, rows_by_lengths(content)).text


@pytest.mark.parametrize(("bytes_of", "size"), [(BOUNDARIES, 1), (BOUNDARIES, 2), (BOUNDARIES, 3), (FEW_BOUNDARIES, 4)])
def test_sequences_of_boundary_bytes(kernel: "Kernel", bytes_of: bytes, size: int) -> None:
    texts = [bytes(text) for text in product(bytes_of, repeat=size)]
    lines = print_text(kernel, "{value}\n\n", *(Record(value=text) for text in texts)).split(b"\n\n")
    differences = [(text.hex(), line) for text, line in zip(texts, lines, strict=False) if line != as_java(text)]
    assert len(lines) == len(texts) + 1
    assert not differences


@pytest.mark.parametrize("broken", [b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0", b"\xc3"])
def test_texts_that_touch_are_decoded_each_alone(kernel: "Kernel", broken: bytes) -> None:
    record = Record(broken, b"\x80", [(broken, None), (b"\x80", None)])
    parts = [as_java(broken), as_java(b"\x80")]
    assert print_text(kernel, "{key}{value}", record) == b"".join(parts)
    assert print_text(kernel, "{key}{headerKeys}{value}", record) == parts[0] + b",".join(parts) + parts[1]
    assert print_text(kernel, "{key}", record, Record(b"\x80")) == b"".join(parts)


@for_each("sequence", ["ä".encode(), b"\xff"])
def test_a_byte_over_127_is_met_at_any_place(kernel: "Kernel", sequence: bytes) -> None:
    texts = [b"x" * start + sequence + b"y" * after for start in range(140) for after in (0, 1, 7, 70)]
    lines = print_text(kernel, "{value}|", *(Record(value=text) for text in texts)).split(b"|")
    assert lines == [*map(as_java, texts), b""]


@for_each("start, sequence", list(product(range(16380, 16387), ["😀".encode(), b"\xed\xa0\x80", b"\xf0\x9f\x98"])))
def test_long_texts_are_decoded_as_short_ones(kernel: "Kernel", start: int, sequence: bytes) -> None:
    text = b"x" * start + sequence + b"y" * 40_000
    assert print_text(kernel, "{value}|", Record(value=text)) == as_java(text) + b"|"
