"""Programs whose lines begin with a mark and the record's time, so that who takes them can tell records apart."""

from kseg.kernel.program import Op, Program, Slot, Template
from kseg.layouts.compiler import mapped_program

TIME_END = b";"
"""Ends the time after the mark."""


def marked_program(program: Program, mark: bytes, heading: bytes = b"") -> Program:
    """The program without lines of batches; before each record the mark, its time, TIME_END, and a heading."""
    marked = mapped_program(program, lambda template: _marked(template, mark, heading))
    return marked._replace(batch=(None, None, None))


def _marked(template: Template, mark: bytes, heading: bytes) -> Template:
    start, after = len(template.literals), TIME_END + heading
    begin = (Op.LITERAL, start, len(mark), Op.INTEGER, Slot.TIMESTAMP, 0, Op.LITERAL, start + len(mark), len(after))
    ops = (*map(int, begin), *template.ops)
    return template._replace(ops=ops, literals=template.literals + mark + after)
