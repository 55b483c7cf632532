"""Text and HTML of `kseg explain`."""

import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from html import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.errors import UsageError, plural
from kseg.explain.field import ExplainedField, FieldNote, hex_pieces, json_value, notes_of, shown_value, value_pieces
from kseg.explain.walk import LARGE, format_page, format_rows, whole_page
from kseg.formats.batch import FORMATS
from kseg.output.forms import form_named
from kseg.output.streams import flush_stdout, write_stdout, write_styled
from kseg.system.terminal_text import escaped_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from kseg.explain.items import Item


LONG = 10
"""Longest list, and most batches, that are shown unfolded."""
_FEW_FIELDS = 5
"""Most fields of a piece, such as an entry of an index, that is never folded."""
_PAGE_BYTES_SHOWN = 32
_HEX_SHOWN, _TEXT_SHOWN = 64, 1 << 10


class _Colors(NamedTuple):
    """Colours by their names in the style sheet."""

    back: str
    stripe: str
    line: str
    text: str
    dim: str
    bad: str
    fields: tuple[str, ...]

    def css(self) -> str:
        """Return the declarations of the style sheet's variables."""
        named = {name: value for name, value in self._asdict().items() if name != "fields"}
        named |= {f"field{number}": color for number, color in enumerate(self.fields)}
        return "; ".join(f"--{name}: {color}" for name, color in named.items())


_LIGHT = _Colors(
    back="#ffffff",
    stripe="#f3f5f8",
    line="#d0d7de",
    text="#1f2328",
    dim="#57606a",
    bad="#b3261e",
    fields=("#0b5cad", "#116329", "#7a4b00", "#8a1f8f", "#3a3fbf", "#00626b", "#9c2c5a"),
)
_DARK = _Colors(
    back="#0d1117",
    stripe="#171d26",
    line="#30363d",
    text="#e6edf3",
    dim="#9aa4af",
    bad="#ff8f88",
    fields=("#79c0ff", "#7ee787", "#e3b341", "#e2a5ff", "#a5b4ff", "#56d4dd", "#ff9ec7"),
)
"""Colours of neighbouring fields, which differ; a field's name has the colour of its bytes.

Contrasts are at least 4.5.
"""
_FIELD_COLORS = len(_LIGHT.fields)
_STYLE = """
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 110rem; background: var(--back); color: var(--text);
  font: 14px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
h1 { font-size: 1.15rem; margin: 0 0 1rem; overflow-wrap: anywhere; }
summary { cursor: pointer; padding: .1rem 0; overflow-wrap: anywhere; }
summary:focus-visible { outline: 2px solid var(--field0); }
details.item { border-top: 1px solid var(--line); padding: .4rem 0; }
details.item > summary, summary b { font-weight: 700; }
details.part > summary { padding-left: calc(var(--deep) * 1.5ch); }
.dim, .kind { color: var(--dim); }
.bad { color: var(--bad); font-weight: 700; }
.field { display: grid; grid-template-columns: 9ch minmax(24ch, 3fr) minmax(20ch, 3fr) 15ch minmax(24ch, 6fr);
  gap: 0 1.5ch; padding: .05rem .5ch; }
.field:nth-of-type(odd) { background: var(--stripe); }
.field > * { min-width: 0; overflow-wrap: anywhere; unicode-bidi: isolate; }
.at { text-align: right; color: var(--dim); }
.value .dim { margin-left: 1ch; }
.name { padding-left: calc(var(--deep) * 1.5ch); }
.note { grid-column: 3 / -1; padding-left: calc(var(--deep) * 1.5ch + 2ch); color: var(--dim); white-space: pre-wrap; }
.note.bad { color: var(--bad); }
@media (max-width: 60rem) {
  .field { grid-template-columns: 7ch 1fr auto; padding: .3rem .5ch; }
  .at { grid-area: 1 / 1; }
  .name { grid-area: 1 / 2; padding-left: calc(var(--deep) * .75ch); }
  .kind { grid-area: 1 / 3; }
  .bytes, .value, .note { grid-column: 2 / -1; padding-left: calc(var(--deep) * .75ch + 1ch); }
}
"""


def html_page(items: "Iterable[Item]", name: str) -> Iterator[str]:
    """Yield a page about pieces of the named file, in parts."""
    yield _head(name)
    for number, item in enumerate(items):
        is_open = number < LONG or item.problem is not None or _has_few(item.fields)
        yield f'<details class="item"{" open" if is_open else ""}><summary><b>{_text(item.title)}</b>'
        yield f'<span class="dim">: position {item.position}, {plural(item.size, "byte")}</span>'
        if item.problem is not None:
            yield f'<br><span class="bad">{_text(item.problem)}</span>'
        yield "</summary>\n"
        yield from _Rows().rows(item.fields, 0)
        yield "</details>\n"
    yield "</body></html>\n"


def _head(name: str) -> str:
    style = f":root {{ color-scheme: light dark; {_LIGHT.css()} }}\n"
    style += f"@media (prefers-color-scheme: dark) {{ :root {{ {_DARK.css()} }} }}{_STYLE}"
    style += "\n".join(f".field{number} {{ color: var(--field{number}); }}" for number in range(_FIELD_COLORS))
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(name)} explained</title>\n<style>\n{style}\n</style></head>\n<body><h1>{_text(name)}</h1>\n"
    )


def _text(text: str) -> str:
    return escape(escaped_text(text))


class _Rows:
    """Make rows of fields, and count the fields so that neighbours differ in colour."""

    def __init__(self) -> None:
        self._count = 0

    def rows(self, fields: Iterable[ExplainedField], deep: int, *, is_long: bool = False) -> Iterator[str]:
        """Yield the rows of some fields and of their inner fields; the elements of a long list are folded."""
        for field in fields:
            if field.children:
                yield from self._part(field, deep, is_folded=is_long)
                continue
            yield self._field(field, deep)
            if field.body:
                yield from self._body(field, deep + 1)

    def _part(self, field: ExplainedField, deep: int, *, is_folded: bool) -> Iterator[str]:
        """Yield a structure or a list, which can be folded."""
        is_long = field.kind == "list" and len(field.children) > LONG
        title = f'{_text(field.name)}<span class="dim">: {_size_text(field)}</span>'
        is_open = not (is_folded or is_long) or _has_problem(field)
        yield _opening(title, deep, is_open=is_open)
        if field.check is not None or field.problem is not None:
            yield f'<div class="field" style="--deep: {deep}">{_notes(field)}</div>\n'
        yield from self.rows(field.children, deep + 1, is_long=is_long)
        yield "</details>\n"

    def _body(self, field: ExplainedField, deep: int) -> Iterator[str]:
        """Yield the contents of a compressed field."""
        size = sum(inner.size for inner in field.body)
        yield _opening(f"decompressed, {plural(size, 'byte')}", deep, is_open=True)
        yield from self.rows(field.body, deep + 1)
        yield "</details>\n"

    def _field(self, field: ExplainedField, deep: int) -> str:
        color = f"field{self._count % _FIELD_COLORS}"
        self._count += 1
        hex_text = field.raw[:_PAGE_BYTES_SHOWN].hex(" ") + (" …" if field.size > _PAGE_BYTES_SHOWN else "")
        value = shown_value(field)
        most = _HEX_SHOWN if value.startswith("0x") else _TEXT_SHOWN
        if len(value) > most:
            value = f"{value[:most]}… ({plural(field.size, 'byte')})"
        meaning = f' <span class="dim">{_text(field.meaning)}</span>' if field.meaning != (field.problem or "") else ""
        return (
            f'<div class="field" style="--deep: {deep}"><span class="at">{field.position}</span>'
            f'<span class="bytes {color}">{hex_text}</span><span class="name {color}">{_text(field.name)}</span>'
            f'<span class="kind">{_text(field.kind)}</span><span class="value">{_text(value)}{meaning}</span>'
            f"{_notes(field)}</div>\n"
        )


def _has_few(fields: Iterable[ExplainedField]) -> bool:
    leaves = (leaf for field in fields for leaf in field.leaves())
    return sum(1 for _ in islice(leaves, _FEW_FIELDS + 1)) <= _FEW_FIELDS


def _opening(title: str, deep: int, *, is_open: bool) -> str:
    return f'<details class="part" style="--deep: {deep}"{" open" if is_open else ""}><summary>{title}</summary>\n'


def _size_text(field: ExplainedField) -> str:
    count = f"{plural(len(field.children), 'element')}, " if field.kind == "list" else ""
    return f"{count}position {field.position}, {plural(field.size, 'byte')}"


def _has_problem(field: ExplainedField) -> bool:
    return field.problem is not None or any(map(_has_problem, (*field.children, *field.body)))


def _notes(field: ExplainedField) -> str:
    return "".join(map(_page_note, notes_of(field)))


def _page_note(note: FieldNote) -> str:
    return f'<span class="note{" bad" if note.is_bad else ""}">{_text(note.text)}</span>'


_STYLES = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green")
"""Styles of neighbouring fields, which differ; a field's name has the style of its bytes."""
_BYTES_SHOWN = 12
_VALUE_SHOWN = 60
_PAGE_WIDTH = 160
_WEB_FONT = re.compile(r"\s*@font-face \{[^}]*\}")


def item_objects(item: "Item", number: int, file: str) -> Iterator[dict[str, object]]:
    """Yield an object for the piece, and one per field in order.

    Fields of a decompressed body follow the body's own field.
    """
    yield {
        "type": "item",
        "file": file,
        "item": number,
        "title": item.title,
        "position": item.position,
        "size": item.size,
        "problem": item.problem,
    }
    yield from _field_objects(item.fields, number, None)


def _field_objects(fields: Iterable[ExplainedField], number: int, within: str | None) -> Iterator[dict[str, object]]:
    for leaf in (leaf for field in fields for leaf in field.leaves()):
        yield _field_object(leaf, number, within)
        yield from _field_objects(leaf.body, number, leaf.path)


def _field_object(field: ExplainedField, number: int, within: str | None) -> dict[str, object]:
    """Return the object of a field.

    `within`: path of the compressed field whose content has the position; null for the file itself. Large members are
    iterators of their JSON.
    """
    is_large = len(field.raw) > LARGE
    members: dict[str, object] = {
        "type": "field",
        "item": number,
        "field": field.path,
        "within": within,
        "position": field.position,
        "size": field.size,
        "hex": hex_pieces(field.raw) if is_large else field.raw.hex(),
        "kind": field.kind,
        "value": _json_pieces(field.value) if is_large else json_value(field.value),
        "meaning": field.meaning,
    }
    if field.bits:
        members["bits"] = [bits._asdict() for bits in field.bits]
    if field.check is not None:
        members["check"] = {**field.check._asdict(), "holds": field.check.holds}
    if field.problem is not None:
        members["problem"] = field.problem
    return members


def _json_pieces(value: object) -> Iterator[bytes] | object:
    return value_pieces(value) if isinstance(value, bytes | memoryview) else json_value(value)


def write_items(items: "Iterable[Item]", *, color: bool | None) -> None:
    """Write pieces of a file to standard output, with colours on a terminal."""
    from rich.console import Console

    out = io.StringIO()
    is_terminal = (sys.stdout.isatty() or None) if color is None else color
    no_color = None if color is None else not color
    console = Console(file=out, force_terminal=is_terminal, no_color=no_color, highlight=False, width=1 << 16)
    for item in items:
        _print_item(item, console)
        write_styled(out.getvalue().encode("utf-8", "surrogateescape"))
        out.seek(0)
        out.truncate()


def _page_console() -> "Console":
    from rich.console import Console

    return Console(record=True, file=_Nowhere(), width=_PAGE_WIDTH, force_terminal=True, highlight=False)


class _Nowhere(io.StringIO):
    """A stream that discards its text, for a console that only records."""

    def write(self, text: str, /) -> int:
        """Discard the text."""
        return len(text)


def svg_picture(items: "Iterable[Item]", title: str) -> str:
    """Return the same as one picture."""
    from rich.cells import cell_len

    console = _page_console()
    for item in items:
        _print_item(item, console)
    lines = console.export_text(clear=False).split("\n")
    console.width = max(_PAGE_WIDTH, *map(cell_len, lines))  # a longer line would be cut
    return _WEB_FONT.sub("", console.export_svg(title=title))


def _print_item(item: "Item", console: "Console") -> None:
    from rich.text import Text

    console.print(
        Text(f"{escaped_text(item.title)}: position {item.position}, {plural(item.size, 'byte')}", style="bold"),
        soft_wrap=True,
    )
    if item.problem is not None:
        console.print(Text(f"  {escaped_text(item.problem)}", style="bold red"), soft_wrap=True)
    for line in _lines(item.fields, 1, [0]):
        console.print(line, soft_wrap=True)


def _lines(fields: Iterable[ExplainedField], depth: int, place: list[int]) -> Iterator["Text"]:
    """Yield the lines of fields; `place` counts fields, so that neighbours differ in colour."""
    for field in fields:
        if field.children:
            yield _heading(field, depth)
            if field.check is not None or field.problem is not None:
                yield from _details(field, depth)
            yield from _lines(field.children, depth + 1, place)
            continue
        yield _field_line(field, depth, _STYLES[place[0] % len(_STYLES)])
        place[0] += 1
        yield from _details(field, depth)
        if field.body:
            yield _note(f"decompressed, {plural(sum(inner.size for inner in field.body), 'byte')}:", depth + 1, "bold")
            yield from _lines(field.body, depth + 2, place)


def _heading(field: ExplainedField, depth: int) -> "Text":
    return _note(field.name, depth, "bold")


def _field_line(field: ExplainedField, depth: int, style: str) -> "Text":
    from rich.text import Text

    hex_text = field.raw[:_BYTES_SHOWN].hex(" ") + (" …" if field.size > _BYTES_SHOWN else "")
    value = escaped_text(shown_value(field))
    if len(value) > _VALUE_SHOWN:
        value = f"{value[:_VALUE_SHOWN]}… ({plural(field.size, 'byte')})"
    line = Text(f"{field.position:>10}  ")
    line.append(f"{hex_text:<38}", style)
    line.append(f"{'  ' * depth}{escaped_text(field.name):<{32 - 2 * depth}} ", style)
    line.append(f"{field.kind:<14} ", "dim")
    line.append(value)
    if field.meaning:
        line.append(f"  {escaped_text(field.meaning)}", "dim")
    line.rstrip()
    return line


def _details(field: ExplainedField, depth: int) -> Iterator["Text"]:
    for note in notes_of(field):
        yield _note(note.text, depth + 1, "bold red" if note.is_bad else "dim")


def _note(text: str, depth: int, style: str) -> "Text":
    from rich.text import Text

    return Text(f"{' ' * 50}{'  ' * depth}{escaped_text(text)}", style=style)


def _html(path: Path, items: Iterable[tuple[int, "Item"]]) -> Iterator[str]:
    return html_page((item for _, item in items), str(path))


def _svg(path: Path, items: Iterable[tuple[int, "Item"]]) -> Iterator[str]:
    yield svg_picture((item for _, item in items), path.name)


PAGES: dict[str, Callable[[Path, Iterable[tuple[int, "Item"]]], Iterator[str]]] = {"html": _html, "svg": _svg}
"""Forms of output that only `explain` has: an HTML page and an SVG picture."""


def write_file(path: Path, items: Iterable[tuple[int, "Item"]], name: str, color: bool | None) -> None:
    """Write a file's items, with their numbers, to standard output in the named form."""
    if name in PAGES:
        for piece in PAGES[name](path, items):
            write_stdout(piece.encode())
    elif (form := form_named(name, color)).has_objects:
        for number, item in items:
            for members in item_objects(item, number, str(path)):
                form.write_object(members)
    else:
        write_items((item for _, item in items), color=color)
    flush_stdout()


def write_format(name: str, form_name: str) -> None:
    """Write the table of a format, or of `all`. Raises UsageError for an unsupported form."""
    if form_name in PAGES:
        raise UsageError("--grammar goes with -o text or json")
    form = form_named(form_name)
    if form.has_objects:
        for each in FORMATS if name == "all" else (name,):
            for row in format_rows(each):
                form.write_object({"format": each, **row._asdict()})
    else:
        page = whole_page() if name == "all" else format_page((name,))
        write_stdout(page.encode())
    flush_stdout()
