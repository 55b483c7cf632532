"""The twin renders records, and makes columns of them, like the compiled kernel, on arbitrary bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.kernel import fast, twin
from kseg.kernel.contract import Headers, Program
from kseg.layouts.template import FIELDS, compile_raw, raw_program
from tests.kernel.made import (
    BATCHES,
    ENTRIES,
    INT64,
    MESSAGES,
    RECORDS,
    BatchHeader,
    Message,
    Record,
    batch,
    damage_contents,
)
from tests.kernel.runs import Options, program_of, render, rows_by_lengths, table
from tests.loops import examples

EVERY_FIELD = " ".join(f"{name}={{{name}}}" for name in FIELDS) + "\n"
ODD_RECORD = (
    r'{keySize?K{keySize}}{valueSize!none}{headerCount?[{headers:json}]}\{"k{key:json},"v{value:json}\} 100%'
    "{sequence?s}{sequence!z}{value!null}\n"
)
PROGRAMS = {
    "every field": program_of(EVERY_FIELD, EVERY_FIELD),
    "control records": program_of(
        EVERY_FIELD, EVERY_FIELD, "{controlType} {coordinatorEpoch} {key}{decoded?<{decoded}>} {offset}\n"
    ),
    "texts that touch": program_of("{baseOffset}{key}{value}\n", "{key}{value}{headerKeys}{decoded}{key}"),
    "conditions": program_of(None, ODD_RECORD),
    "shallow": program_of(EVERY_FIELD, None),
    "raw": Program((None,) * 3, (compile_raw(EVERY_FIELD),) * 3, (compile_raw("{key}{value}{headerKeys}\n"),) * 9),
    "raw texts that touch": raw_program(
        program_of("{baseOffset}{key}{value}\n", "{key}{value}{headerKeys}{decoded}{key}")
    ),
}

CONTENTS = damage_contents(st.lists(st.one_of(BATCHES, ENTRIES), max_size=4).map(b"".join))
BODIES = st.one_of(
    st.none(),
    damage_contents(st.lists(RECORDS.map(Record.encode), max_size=4).map(b"".join)),
    damage_contents(st.lists(MESSAGES.map(Message.encode), max_size=4).map(b"".join)),
)


def decode(key: bytes | None, value: bytes | None, offset: int, headers: Headers) -> tuple[bytes | None, bytes | None]:
    return None if value is None else value + b"%d" % offset, key


def decode_control(key: bytes, value: bytes | None) -> bytes | None:
    return None if value is None else key + value


@settings(max_examples=examples(200), deadline=None)
@given(
    CONTENTS,
    st.one_of(st.none(), st.lists(BODIES, min_size=12, max_size=12)),
    st.sampled_from(sorted(PROGRAMS)),
    st.booleans(),
    st.integers(0, 2),
    st.one_of(st.none(), INT64),
)
def test_renderings_are_equal(
    content: bytes, bodies: list[bytes | None] | None, program: str, decodes: bool, rule: int, last: int | None
) -> None:
    rows = rows_by_lengths(content)[: 3 * 12]
    decoders = (decode, decode_control) if decodes else (None, None)
    options = Options(*decoders, rule, last)
    by_fast, by_twin = (render(kernel, PROGRAMS[program], content, rows, bodies, options) for kernel in (fast, twin))
    assert by_fast.text == by_twin.text
    assert by_fast == by_twin


@pytest.mark.parametrize("program", sorted(PROGRAMS))
@pytest.mark.parametrize(
    "header",
    [
        BatchHeader(base_offset=7, last_offset_delta=19, base_timestamp=1_760_000_000_000),
        BatchHeader(attributes=0x18, max_timestamp=1_760_000_000_009, producer_id=5, producer_epoch=1, base_sequence=0),
        BatchHeader(base_sequence=2**31 - 9, producer_id=2**62, leader_epoch=-1),
    ],
    ids=["without sequences", "append time", "sequences that wrap"],
)
def test_records_of_large_batches_are_rendered_equally(header: BatchHeader, program: str) -> None:
    records = [
        Record(b"k" * (i % 3), None if i % 4 == 0 else b"v%d" % i, [(b"h", b"1")] * (i % 2), i, 1000 * i, i % 5)
        for i in range(20)
    ]
    content = batch(header, records) + batch(BatchHeader(), records[:2]) + batch(header, records)
    by_fast, by_twin = (render(kernel, PROGRAMS[program], content, rows_by_lengths(content)) for kernel in (fast, twin))
    assert by_fast == by_twin


@settings(max_examples=examples(100), deadline=None)
@given(CONTENTS.filter(bool), st.one_of(st.none(), st.lists(BODIES, min_size=12, max_size=12)))
def test_columns_are_equal(content: bytes, bodies: list[bytes | None] | None) -> None:
    rows = rows_by_lengths(content)[: 3 * 12]
    by_fast, by_twin = (table(kernel, content, rows, bodies) for kernel in (fast, twin))
    assert by_fast == by_twin
