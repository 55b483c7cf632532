"""Walks over the fields of a structure, and tables of formats."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from construct import (
    Adapter,
    Array,
    ConstructError,
    Container,
    Default,
    FixedSized,
    Flag,
    FocusedSeq,
    FormatField,
    IfThenElse,
    Prefixed,
    RangeError,
    Rebuild,
    Renamed,
    SizeofError,
    StreamError,
    StringEncoded,
    Struct,
    Switch,
    Transformed,
    evaluate,
)

from kseg.errors import plural
from kseg.explain.field import Bits, Content, ExplainedField
from kseg.formats.batch import FORMATS
from kseg.formats.grammar import UVARINT, VARINT, VARLONG

UNREADABLE = "unreadable"
MOST_FIELDS = 50_000
"""The most fields that are read from one piece of a file: nobody looks at more, and they take much more memory."""
_INTEGERS = {
    ">b": "int8",
    ">B": "uint8",
    ">h": "int16",
    ">H": "uint16",
    ">i": "int32",
    ">I": "uint32",
    ">l": "int32",
    ">L": "uint32",
    ">q": "int64",
    ">Q": "uint64",
}
_VARINTS = ((UVARINT, "uvarint"), (VARINT, "varint"), (VARLONG, "varlong"))


LARGE = 1 << 12
"""The size above which a field's contents aren't copied."""


def part_of(raw: Content, start: int, end: int) -> Content:
    """Return some of the bytes, copied only if there are few."""
    part = memoryview(raw)[start:end]
    return part if len(part) > LARGE else bytes(part)


def walk(grammar: Any, raw: Content, position: int = 0, path: str = "") -> list[ExplainedField]:
    """Return the fields of the given bytes, in order, from the first to the last byte.

    Args:
        grammar: the construct that describes them.
        raw: the bytes.
        position: the first byte's position in the file.
        path: the beginning of each field's path.
    """
    work = _Walk(raw, position)
    fields: list[ExplainedField] = []
    problem, is_whole = None, True
    try:
        work.visit(grammar, path, "", Container(_params=Container(), _parsing=True, _building=False), fields)
    except _TooManyError:
        is_whole = False
    except ConstructError as error:
        problem = _reason(error)
    if len(fields) == 1 and fields[0].children and not path:
        fields = fields[0].children
    read = max((field.position - position + field.size for field in fields), default=0)
    if not is_whole:
        meaning = f"more than {MOST_FIELDS} fields; kseg skips these"
        fields.append(
            ExplainedField(
                "more", position + read, len(raw) - read, "bytes", None, meaning, part_of(raw, read, len(raw))
            )
        )
    elif problem is not None or read < len(raw):
        fields.append(
            _unreadable(
                part_of(raw, read, len(raw)), position + read, problem or "the format has no field for these bytes"
            )
        )
    return fields


def _unreadable(raw: Content, position: int, problem: str) -> ExplainedField:
    return ExplainedField(UNREADABLE, position, len(raw), "bytes", raw, "", raw, problem=problem)


def _reason(error: ConstructError) -> str:
    return str(error).strip().splitlines()[-1]


def unwrap(grammar: Any) -> tuple[Any, str, str]:
    """Return a grammar's content, its name and its meaning."""
    name, meaning = "", ""
    while isinstance(grammar, Renamed | Rebuild | Default):
        if isinstance(grammar, Renamed):
            name, meaning = name or grammar.name or "", meaning or str(grammar.docs or "")
        grammar = grammar.subcon
    return grammar, name, meaning


def kind_of(grammar: Any) -> str:
    """Return the name of a leaf's type: int32, varint, bytes, ...."""
    for varint, name in _VARINTS:
        if grammar is varint:
            return name
    if isinstance(grammar, FormatField):
        return _INTEGERS.get(grammar.fmtstr, "number")
    if isinstance(grammar, IfThenElse):
        return "bytes or null"
    if isinstance(grammar, StringEncoded):
        return "string"
    return kind_of(grammar.subcon) if isinstance(grammar, Adapter) else "bytes"


def is_bits(grammar: Any) -> bool:
    """Return True if a grammar is a structure of bits."""
    return isinstance(grammar, Transformed) and isinstance(grammar.subcon, Struct)


def bit_fields(grammar: Any) -> list[tuple[str, int, int, str, bool]]:
    """Return the bits of a structure, highest first: name, lowest bit, count, meaning, and whether boolean."""
    found = []
    left = 8 * grammar.sizeof()
    for subcon in grammar.subcon.subcons:
        inner, name, meaning = unwrap(subcon)
        is_flag = inner is Flag
        count = 1 if is_flag else inner.length
        left -= count
        found.append((name, left, count, meaning, is_flag))
    return found


class _TooManyError(ConstructError):  # type: ignore[misc]  # construct has no types
    """There are more fields than MOST_FIELDS."""


class _Stream:
    """A stream for construct, with an end that moves with the structure that is read."""

    def __init__(self, raw: Content) -> None:
        self._raw = raw
        self._at = 0
        self.end = len(raw)

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def seek(self, position: int, whence: int = 0) -> int:
        """Go to a position, from the start (0), from here (1), or from the end (2)."""
        self._at = position + (0, self._at, self.end)[whence]
        return self._at

    def read(self, size: int = -1) -> Content:
        """Return the next bytes, all that are left for -1."""
        end = self.end if size < 0 else min(self._at + size, self.end)
        found = part_of(self._raw, self._at, end)
        self._at += len(found)
        return found


class _Walk:
    """A walk over bytes up to a position."""

    def __init__(self, raw: Content, position: int) -> None:
        self.raw = raw
        self.position = position
        self.stream = _Stream(raw)
        self.count = 0

    def visit(self, grammar: Any, path: str, meaning: str, context: Any, out: list[ExplainedField]) -> Any:
        """Read a field, add it to `out` even if it is incomplete, and return its value."""
        grammar, _, own_meaning = unwrap(grammar)
        meaning = meaning or own_meaning
        match grammar:
            case Struct():
                return self._structure(grammar, path, meaning, context, out)
            case Array():
                return self._list(grammar, path, meaning, context, out)
            case FocusedSeq():
                return self._visit_counted(grammar, path, meaning, context, out)
            case Switch():
                chosen = grammar.cases.get(evaluate(grammar.keyfunc, context), grammar.default)
                return self.visit(chosen, path, meaning, context, out)
            case IfThenElse():
                return self._choice(grammar, path, meaning, context, out)
            case FixedSized():
                return self._visit_bounded(
                    evaluate(grammar.length, context), grammar.subcon, path, meaning, context, out
                )
            case Prefixed():
                size = self.visit(grammar.lengthfield, f"{path}.length", "bytes that follow", context, out)
                return self._visit_bounded(size, grammar.subcon, path, meaning, context, out)
            case StringEncoded():
                return self._text(grammar, path, meaning, context, out)
        if is_bits(grammar):
            return self._bits(grammar, path, meaning, out)
        return self._leaf(grammar, path, meaning, context, out)

    def _structure(self, grammar: Any, path: str, meaning: str, context: Any, out: list[ExplainedField]) -> Any:
        inner = _inner_context(context, self.stream)
        start, children = self.stream.tell(), list[ExplainedField]()
        try:
            for subcon in grammar.subcons:
                _, name, _ = unwrap(subcon)
                value = self.visit(subcon, _join_path(path, name), "", inner, children)
                if name:
                    inner[name] = value
        finally:
            self._add_whole(out, path, start, "structure", meaning, children)
        return inner

    def _list(self, grammar: Any, path: str, meaning: str, context: Any, out: list[ExplainedField]) -> Any:
        count = evaluate(grammar.count, context)
        if count < 0:
            raise RangeError(f"the count is {count}")
        start, children, values = self.stream.tell(), list[ExplainedField](), []
        try:
            for number in range(count):
                value = self.visit(grammar.subcon, f"{path}[{number}]", "", context, children)
                values.append(value)
        finally:
            self._add_whole(out, path, start, "list", meaning, children)
        return values

    def _visit_counted(self, grammar: Any, path: str, meaning: str, context: Any, out: list[ExplainedField]) -> Any:
        """Return a list with its count before it."""
        inner = _inner_context(context, self.stream)
        start, children = self.stream.tell(), list[ExplainedField]()
        try:
            for subcon in grammar.subcons:
                _, name, _ = unwrap(subcon)
                is_focus = name == grammar.parsebuildfrom
                own_path = path if is_focus else f"{path}.{name}"
                inner[name] = self.visit(subcon, own_path, "" if is_focus else "elements that follow", inner, children)
        finally:
            self._add_whole(out, path, start, "list", meaning, children)
        return inner[grammar.parsebuildfrom]

    def _choice(self, grammar: Any, path: str, meaning: str, context: Any, out: list[ExplainedField]) -> Any:
        chosen = grammar.thensubcon if evaluate(grammar.condfunc, context) else grammar.elsesubcon
        return self.visit(chosen, path, meaning, context, out)

    def _visit_bounded(
        self, size: int, subcon: Any, path: str, meaning: str, context: Any, out: list[ExplainedField]
    ) -> Any:
        """Read a grammar from the next bytes; bytes left over become a field of their own."""
        start, outer_end = self.stream.tell(), self.stream.end
        end = start + max(size, 0)
        self.stream.end = min(end, len(self.raw))
        try:
            value = self.visit(subcon, path, meaning, context, out)
            if size < 0 or end > len(self.raw):
                raise StreamError(f"the size is {size}, {plural(len(self.raw) - start, 'byte is', 'bytes are')} left")
            if self.stream.tell() < end:
                rest = self.stream.tell()
                out.append(
                    _unreadable(
                        part_of(self.raw, rest, end), self.position + rest, f"{plural(end - rest, 'byte')} too many"
                    )
                )
        finally:
            self.stream.end = outer_end
        self.stream.seek(end)
        return value

    def _text(self, grammar: Any, path: str, meaning: str, context: Any, out: list[ExplainedField]) -> Any:
        content = self.visit(grammar.subcon, path, meaning, context, out)
        out[-1].kind = "string"
        try:
            out[-1].value = str(content, grammar.encoding)
        except UnicodeDecodeError:
            out[-1].problem = "not UTF-8"
        return content

    def _bits(self, grammar: Any, path: str, meaning: str, out: list[ExplainedField]) -> Any:
        start, size = self.stream.tell(), grammar.sizeof()
        raw = bytes(self._read(size))
        number = int.from_bytes(raw, "big")
        bits = []
        values = Container()
        for name, first, count, what, is_flag in bit_fields(grammar):
            value = number >> first & (1 << count) - 1
            values[name] = bool(value) if is_flag else value
            bits.append(Bits(name, first, count, values[name], what))
        out.append(
            ExplainedField(path, self.position + start, size, f"{8 * size} bits", number, meaning, raw, tuple(bits))
        )
        return values

    def _leaf(self, grammar: Any, path: str, meaning: str, context: Any, out: list[ExplainedField]) -> Any:
        self.count += 1
        if self.count > MOST_FIELDS:
            raise _TooManyError
        start = self.stream.tell()
        try:
            value = grammar._parsereport(self.stream, context, path)
        except ConstructError:
            self.stream.seek(start)
            raise
        end = self.stream.tell()
        if end > start:
            raw = part_of(self.raw, start, end)
            out.append(ExplainedField(path, self.position + start, end - start, kind_of(grammar), value, meaning, raw))
        return value

    def _read(self, size: int) -> Content:
        start = self.stream.tell()
        raw = self.stream.read(size)
        if len(raw) < size:
            self.stream.seek(start)
            raise StreamError(f"{plural(size, 'byte is', 'bytes are')} needed, {len(raw)} left")
        return raw

    def _add_whole(
        self, out: list[ExplainedField], path: str, start: int, kind: str, meaning: str, children: list[ExplainedField]
    ) -> None:
        if children:
            size = children[-1].position + children[-1].size - self.position - start
            position = self.position + start
            out.append(ExplainedField(path, position, size, kind, None, meaning, b"", children=children))


def _inner_context(context: Any, stream: _Stream) -> Any:
    inner = Container(_=context, _params=context._params, _parsing=True, _building=False, _sizing=False, _io=stream)
    inner._root = context.get("_root", context)
    return inner


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


class Row(NamedTuple):
    """A field of a format, or bits of it.

    position: None after a field of variable size. size: in bytes, None if it varies. bits: `3`, `0-2`.
    """

    position: int | None
    name: str
    kind: str
    size: int | None
    bits: str
    meaning: str


def format_rows(name: str) -> list[Row]:
    """Return the fields of a format in order."""
    rows = list(_rows(FORMATS[name].grammar, ""))
    position: int | None = 0
    placed = []
    for row in rows:
        placed.append(row._replace(position=position) if not row.bits else row)
        if not row.bits:
            position = None if position is None or row.size is None else position + row.size
    return placed


def _rows(grammar: Any, path: str) -> Iterator[Row]:
    """Yield rows without their positions."""
    for subcon in grammar.subcons:
        inner, name, meaning = unwrap(subcon)
        if not name or name.startswith("_"):
            continue
        own = f"{path}{name}"
        if isinstance(inner, Struct):
            yield from _rows(inner, f"{own}.")
        elif is_bits(inner):
            size = inner.sizeof()
            yield Row(None, own, f"{8 * size} bits", size, "", meaning)
            for bit_name, first, count, what, _ in bit_fields(inner):
                bits = str(first) if count == 1 else f"{first}-{first + count - 1}"
                yield Row(None, f"{own}.{bit_name}", "bits", None, bits, what)
        else:
            yield Row(None, own, _kind(inner), _size(inner), "", meaning)


def _kind(grammar: Any) -> str:
    if isinstance(grammar, Array | FocusedSeq):
        return "list"
    if isinstance(grammar, FixedSized | Switch):
        return "structure"
    return "bytes" if isinstance(grammar, Prefixed) else kind_of(grammar)


def _size(grammar: Any) -> int | None:
    try:
        size: int = grammar.sizeof()
    except (SizeofError, KeyError, AttributeError):
        return None
    return size


def format_page(names: tuple[str, ...] = tuple(FORMATS)) -> str:
    """Return tables of formats in Markdown."""
    return "\n".join(section for name in names for section in _section(name))


def _section(name: str) -> Iterator[str]:
    shown = FORMATS[name]
    yield f"## {shown.title} (`{name}`)\n\n{shown.about}\n"
    yield "| at | field | type | bytes | meaning |\n|---|---|---|---|---|"
    for row in format_rows(name):
        at = (
            f"{'bits' if '-' in row.bits else 'bit'} {row.bits}"
            if row.bits
            else ""
            if row.position is None
            else str(row.position)
        )
        size = "" if row.size is None else str(row.size)
        yield f"| {at} | {row.name} | {row.kind} | {size} | {row.meaning} |"
    yield ""


HOW_TO_READ = """Integers are big-endian. The first column is the position of a field; it is empty after a field of
variable size.
"""


def whole_page() -> str:
    """Return all tables, as `kseg explain --grammar all` prints them."""
    return f"# Formats\n\n{HOW_TO_READ}\n{format_page()}"
