r"""Compiles templates to the kernel's operations.

A template is text with holes: `{field}` shows a field; `{field?…}` shows its inside if the field is there (not null,
not 0), `{field!…}` if it isn't; `\{` and `\}` are braces.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from kseg.errors import UsageError
from kseg.kernel.program import Op, Program, Slot, Template, Text, Words, Zone
from kseg.layouts.fields import FIELDS, OWN_FIELDS, LineField

_LITERAL = int(Op.LITERAL)
PATH = "\0path\0"
"""Stands for a file's path in templates that are the same for all files."""
_PIECE = re.compile(r"\\[{}]|\{([A-Za-z:]+)([}?!])|[{}]|[^{}\\]+|\\")


@lru_cache(maxsize=256)
def compile_template(text: str) -> Template:
    """Compiles one line, with its line end if it has one; texts are decoded from UTF-8 as in Java.

    Raises UsageError for an unknown field or unpaired braces.
    """
    return _compiled(text, FIELDS)


@lru_cache(maxsize=256)
def compile_raw(text: str) -> Template:
    """The same for a line of OWN_FIELDS that shows texts unchanged."""
    return _compiled(text, OWN_FIELDS)._replace(is_raw=True)


def raw_program(program: Program) -> Program:
    """The program, changed to show texts unchanged."""
    return mapped_program(program, lambda template: template._replace(is_raw=True))


def zoned_program(program: Program, zone: Zone) -> Program:
    """The program, changed to show times in a zone."""
    return mapped_program(program, lambda template: template._replace(zone=zone)) if zone else program


def _compiled(text: str, fields: Mapping[str, LineField]) -> Template:
    compiler = _Compiler(fields)
    pieces = list(_PIECE.finditer(text))
    end = compiler.take(pieces, 0, text)
    if end != len(pieces):
        raise UsageError(f"template {text!r}: a closing brace without an opening one; write \\}} for a brace")
    return Template(tuple(compiler.ops), bytes(compiler.literals), tuple(compiler.words))


def fill(template: Template, marker: str, text: str) -> Template:
    """The template with a marker in its literal parts replaced by a text that differs from file to file.

    Bytes that aren't UTF-8, as in file names, become \\udcNN.
    """
    old, new = marker.encode(), text.encode("utf-8", "backslashreplace")
    if old not in template.literals:
        return template
    ops, literals = list(template.ops), template.literals
    for at, code in enumerate(ops[::3]):
        start, size = ops[3 * at + 1], ops[3 * at + 2]
        if code == _LITERAL and template.literals.find(old, start, start + size) >= 0:
            literal = template.literals[start : start + size].replace(old, new)
            ops[3 * at + 1 : 3 * at + 3] = len(literals), len(literal)
            literals += literal
    return template._replace(ops=tuple(ops), literals=literals)


def fill_program(program: Program, marker: str, text: str) -> Program:
    """The program with its templates filled."""
    return mapped_program(program, lambda template: fill(template, marker, text))


def mapped_program(program: Program, change: Callable[[Template], Template]) -> Program:
    """The program with each of its templates changed."""
    batch, record = ([each and change(each) for each in templates] for templates in (program.batch, program.record))
    control = None if program.control is None else tuple(map(change, program.control))
    return Program((batch[0], batch[1], batch[2]), (record[0], record[1], record[2]), control)


_SKIPS = (Op.SKIP_IF_NULL, Op.SKIP_IF_ZERO, Op.SKIP_UNLESS_NULL, Op.SKIP_UNLESS_ZERO, Op.SKIP_IF_NEGATIVE)
_ESCAPES = {"\\{": "{", "\\}": "}"}


class _Compiler:
    def __init__(self, fields: Mapping[str, LineField]) -> None:
        self._fields = fields
        self.ops: list[int] = []
        self.literals = bytearray()
        self.words: list[Words] = []

    def take(self, pieces: list[re.Match[str]], start: int, text: str) -> int:
        """Compiles pieces up to the brace that closes this level, or to the end; returns the index of that."""
        i = start
        while i < len(pieces):
            piece = pieces[i]
            if piece.group() == "}":
                return i
            if piece.group() == "{":
                raise UsageError(f"template {text!r}: {text[piece.start() :]!r} isn't a field; write \\{{ for a brace")
            if piece.group(1) is None:
                self._literal(_ESCAPES.get(piece.group(), piece.group()).encode("utf-8", "surrogateescape"))
            elif piece.group(2) == "}":
                self._hole(piece.group(1), text)
            else:
                i = self._group(pieces, i, text)
            i += 1
        return i

    def _group(self, pieces: list[re.Match[str]], start: int, text: str) -> int:
        field = self._field(pieces[start].group(1), text)
        at = len(self.ops)
        self.ops += [_skip(field, shown_if_there=pieces[start].group(2) == "?", text=text), int(field.source or 0), 0]
        end = self.take(pieces, start + 1, text)
        if end == len(pieces):
            raise UsageError(f"template {text!r}: {{{pieces[start].group(1)}… isn't closed")
        self.ops[at + 2] = (len(self.ops) - at) // 3 - 1
        return end

    def _literal(self, literal: bytes) -> None:
        last = len(self.ops) - 3
        if last >= 0 and self.ops[last] == Op.LITERAL and not self._is_jump_target(last // 3 + 1):
            self.ops[last + 2] += len(literal)  # it ends with the literals
            self.literals += literal
            return
        self.ops += [Op.LITERAL, len(self.literals), len(literal)]
        self.literals += literal

    def _is_jump_target(self, index: int) -> bool:
        return any(
            self.ops[at] in _SKIPS and at // 3 + 1 + self.ops[at + 2] == index for at in range(0, len(self.ops), 3)
        )

    def _hole(self, name: str, text: str) -> None:
        field = self._field(name, text)
        if field.words is not None and field.words not in self.words:
            self.words.append(field.words)
        table = 0 if field.words is None else self.words.index(field.words)
        self.ops += [field.op, int(field.source or 0), table]

    def _field(self, name: str, text: str) -> LineField:
        if name not in self._fields:
            raise UsageError(f"template {text!r}: no field {name}; there are {', '.join(self._fields)}")
        return self._fields[name]


def _skip(field: LineField, *, shown_if_there: bool, text: str) -> Op:
    if isinstance(field.source, Text):
        return Op.SKIP_IF_NULL if shown_if_there else Op.SKIP_UNLESS_NULL
    if field.source in (Slot.KEY_SIZE, Slot.VALUE_SIZE) and shown_if_there:
        return Op.SKIP_IF_NEGATIVE
    if isinstance(field.source, Slot):
        return Op.SKIP_IF_ZERO if shown_if_there else Op.SKIP_UNLESS_ZERO
    raise UsageError(f"template {text!r}: that field is always there")
