"""Tables of the formats, made from the grammars, for `kseg explain --grammar` and docs/reference/formats.md."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from construct import Array, FixedSized, FocusedSeq, Prefixed, SizeofError, Struct, Switch

from kseg.explain.walk import bit_fields, is_bits, kind_of, unwrapped
from kseg.formats.catalogue import FORMATS


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
    """The fields of a format in order."""
    rows = list(_rows(FORMATS[name].grammar, ""))
    position: int | None = 0
    placed = []
    for row in rows:
        placed.append(row._replace(position=position) if not row.bits else row)
        if not row.bits:
            position = None if position is None or row.size is None else position + row.size
    return placed


def _rows(grammar: Any, path: str) -> Iterator[Row]:
    """Rows without their positions."""
    for subcon in grammar.subcons:
        inner, name, meaning = unwrapped(subcon)
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
    """Tables of formats in Markdown."""
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
    """All tables, as `kseg explain --grammar all` prints them."""
    return f"# Formats\n\n{HOW_TO_READ}\n{format_page()}"
