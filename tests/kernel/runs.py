"""Runs a kernel's entry points, and returns the visible results of each."""

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from kseg.formats.codes import TimestampType
from kseg.kernel.contract import (
    Buffer,
    Decode,
    DecodeControl,
    GapRule,
    Program,
    RecordFilter,
    RecordProblem,
    Rows,
    new_rows,
)
from kseg.kernel.entry_points import Columns
from kseg.kernel.record import Header, Record
from kseg.layouts.template import compile_template

if TYPE_CHECKING:
    from kseg.kernel.entry_points import Kernel

Bodies = Sequence[bytes | None]


class Rendered(NamedTuple):
    """The result of rendering: the text, and the renderer's attributes."""

    text: bytes
    records: int
    problems: list[RecordProblem]
    gaps: list[tuple[int, int]]


class Options(NamedTuple):
    """The settings of a renderer."""

    decode: Decode | None = None
    decode_control: DecodeControl | None = None
    gap_rule: GapRule = GapRule.NONE
    last_offset: int | None = None
    record_filter: RecordFilter | None = None


NO_OPTIONS = Options()


def rows_by_lengths(content: bytes) -> Rows:
    """Return rows by the stored lengths, as far as these are plausible; none is known to be valid."""
    rows, at = new_rows(0), 0
    while len(content) - at >= 26:
        size = struct.unpack_from(">i", content, at + 8)[0] + 12
        if not 26 <= size <= len(content) - at:
            break
        rows.extend((at, size, 0))
        at += size
    return rows


def scan_rows(kernel: "Kernel", content: bytes) -> Rows:
    """Return the rows of the intact batches that content begins with."""
    rows = new_rows(len(content) // 26 + 1)
    count, *_ = kernel.scan(memoryview(content), 0, len(content), rows, 0)
    return rows[: 3 * count]


def render(
    kernel: "Kernel",
    program: Program,
    content: bytes,
    rows: Rows,
    bodies: Bodies | None = None,
    options: Options = NO_OPTIONS,
) -> Rendered:
    """Render rows of some content at position 1000 of its file."""
    pieces: list[bytes] = []
    output = kernel.Output(lambda piece: pieces.append(bytes(piece)), 1 << 16)
    renderer = kernel.Renderer(program, output, *options)
    row, last = 0, len(rows) // 3
    while row < last and not renderer.is_full:
        row = renderer.render(memoryview(content), rows, row, last, 1000, bodies, 0)
    output.flush()
    return Rendered(b"".join(pieces), renderer.records, renderer.problems, renderer.gaps)


def program_of(batch: str | None, record: str | None, control: str | None = None) -> Program:
    """Return a program whose lines are the same for every magic, and for control records of every type."""
    batch_line = None if batch is None else compile_template(batch)
    record_line = None if record is None else compile_template(record)
    control_lines = None if control is None else (compile_template(control),) * 9
    return Program((batch_line,) * 3, (record_line,) * 3, control_lines)


def table(
    kernel: "Kernel",
    content: bytes,
    rows: Rows,
    bodies: Bodies | None = None,
    record_filter: RecordFilter | None = None,
) -> dict[str, object]:
    """Return columns by name: counts, problems, and bytes."""
    columns = kernel.columns(memoryview(content), rows, 0, len(rows) // 3, 1000, bodies, record_filter)
    names = Columns.__annotations__
    values = {name: getattr(columns, name) for name in names}
    return {
        name: value if isinstance(value, int | list) else bytes(memoryview(value)) for name, value in values.items()
    }


def values(
    kernel: "Kernel", content: bytes, rows: Rows, bodies: Bodies | None = None
) -> tuple[list[Record], list[RecordProblem], list[int]]:
    """Return records as values, the problems met, and the number of records before each."""
    records: list[Record] = []
    problems: list[RecordProblem] = []
    places = []
    for part in kernel.records(memoryview(content), rows, 0, len(rows) // 3, 1000, bodies):
        if isinstance(part, list):
            records += part
        else:
            problems.append(part)
            places.append(len(records))
    return records, problems, places


def records_in(columns: Columns, positions: Sequence[int]) -> list[Record]:
    """Return the records in columns; `positions` are those of the rows' batches."""
    headers = list(
        map(
            Header,
            [name.decode("utf-8", "replace") for name in cut(columns.header_key_offsets, columns.header_key_data)],
            nullable(columns.header_value_offsets, columns.header_value_validity, columns.header_value_data),
        )
    )
    first = numbers(columns.header_offsets, "i")
    return [
        Record(*fields)
        for fields in zip(
            numbers(columns.offsets, "q"),
            numbers(columns.timestamps, "q"),
            map(TimestampType, numbers(columns.timestamp_types, "i")),
            nullable(columns.key_offsets, columns.key_validity, columns.key_data),
            nullable(columns.value_offsets, columns.value_validity, columns.value_data),
            [tuple(headers[start:end]) for start, end in pairwise(first)],
            numbers(columns.sequences, "i"),
            [positions[row] for row in numbers(columns.rows, "i")],
            numbers(columns.checksums, "q"),
            map(bool, bytes(memoryview(columns.valid))),
            strict=True,
        )
    ]


def numbers(column: Buffer, form: str) -> list[int]:
    return memoryview(column).cast("B").cast(form).tolist()  # type: ignore[call-overload, no-any-return]


def cut(offsets: Buffer, data: Buffer) -> list[bytes]:
    return [bytes(memoryview(data)[start:end]) for start, end in pairwise(numbers(offsets, "i"))]


def nullable(offsets: Buffer, validity: Buffer, data: Buffer) -> list[bytes | None]:
    bits = bytes(memoryview(validity))
    return [text if bits[at >> 3] >> (at & 7) & 1 else None for at, text in enumerate(cut(offsets, data))]
