"""Runs a kernel's entry points, and gives what can be seen of each."""

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kseg.kernel.contract import (
    Columns,
    Decode,
    DecodeControl,
    GapRule,
    RecordFilter,
    RecordProblem,
    Rows,
    new_rows,
)
from kseg.kernel.program import Program
from kseg.layouts.compiler import compile_template

if TYPE_CHECKING:
    from kseg.kernel.contract import Kernel

Bodies = Sequence[bytes | None]


class Rendered(NamedTuple):
    """What rendering gave: the text, and what the renderer remembers."""

    text: bytes
    records: int
    problems: list[RecordProblem]
    gaps: list[tuple[int, int]]


class Options(NamedTuple):
    """How a renderer is to work."""

    decode: Decode | None = None
    decode_control: DecodeControl | None = None
    gap_rule: GapRule = GapRule.NONE
    last_offset: int | None = None
    record_filter: RecordFilter | None = None


NO_OPTIONS = Options()


def rows_by_lengths(content: bytes) -> Rows:
    """Rows as the lengths say, as far as they can be followed, whatever else is wrong; none is known to be valid."""
    rows, at = new_rows(0), 0
    while len(content) - at >= 26:
        size = struct.unpack_from(">i", content, at + 8)[0] + 12
        if not 26 <= size <= len(content) - at:
            break
        rows.extend((at, size, 0))
        at += size
    return rows


def scanned(kernel: "Kernel", content: bytes) -> Rows:
    """The rows of the intact batches that content begins with."""
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
    """Renders rows of some content, which lies at position 1000 of its file."""
    pieces: list[bytes] = []
    output = kernel.Output(lambda piece: pieces.append(bytes(piece)), 1 << 16)
    renderer = kernel.Renderer(program, output, *options)
    row, last = 0, len(rows) // 3
    while row < last and not renderer.is_full:
        row = renderer.render(memoryview(content), rows, row, last, 1000, bodies, 0)
    output.flush()
    return Rendered(b"".join(pieces), renderer.records, renderer.problems, renderer.gaps)


def program_of(batch: str | None, record: str | None, control: str | None = None) -> Program:
    """A program whose lines are the same for every magic, and for control records of every type."""
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
    """Columns by name: counts, problems, and bytes."""
    columns = kernel.columns(memoryview(content), rows, 0, len(rows) // 3, 1000, bodies, record_filter)
    names = Columns.__annotations__
    values = {name: getattr(columns, name) for name in names}
    return {
        name: value if isinstance(value, int | list) else bytes(memoryview(value)) for name, value in values.items()
    }
