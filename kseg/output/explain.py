"""Fields of bytes as text, JSON, HTML and SVG."""

import io
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kseg.errors import UsageError
from kseg.explain.field import ExplainedField
from kseg.explain.tables import format_page, format_rows, whole_page
from kseg.explain.walk import LARGE
from kseg.explain.words import hex_pieces, json_value, notes_of, shown_value, value_pieces
from kseg.formats.catalogue import FORMATS
from kseg.output.explain_page import html_page
from kseg.output.json_lines import write_json, write_json_by_pieces
from kseg.output.printable import printable
from kseg.output.stdout import flush_stdout, write_stdout, write_styled

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from kseg.explain.items import Item

_STYLES = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green")
"""Neighbouring fields have different ones; a field's name has its bytes'."""
_BYTES_SHOWN = 12
_VALUE_SHOWN = 60
_PAGE_WIDTH = 160
_WEB_FONT = re.compile(r"\s*@font-face \{[^}]*\}")


def item_objects(item: "Item", number: int, file: str) -> Iterator[dict[str, object]]:
    """An object for the piece, and one per field of it, in order; fields of a decompressed body after the body's."""
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
    """`within`: the path of the compressed field in whose content the position is; null for the file itself.

    Large members are iterators of their JSON.
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
    """Writes pieces of a file to standard output, with colours on a terminal."""
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
    """Takes what is only recorded."""

    def write(self, text: str, /) -> int:
        """Forgets it."""
        return len(text)


def svg_picture(items: "Iterable[Item]", title: str) -> str:
    """The same as one picture."""
    from rich.cells import cell_len

    console = _page_console()
    for item in items:
        _print_item(item, console)
    lines = console.export_text(clear=False).split("\n")
    console.width = max(_PAGE_WIDTH, *map(cell_len, lines))  # what is longer would be cut
    return _WEB_FONT.sub("", console.export_svg(title=title))


def _print_item(item: "Item", console: "Console") -> None:
    from rich.text import Text

    console.print(
        Text(f"{printable(item.title)}: position {item.position}, {item.size} bytes", style="bold"), soft_wrap=True
    )
    if item.problem is not None:
        console.print(Text(f"  {printable(item.problem)}", style="bold red"), soft_wrap=True)
    for line in _lines(item.fields, 1, [0]):
        console.print(line, soft_wrap=True)


def _lines(fields: Iterable[ExplainedField], depth: int, place: list[int]) -> Iterator["Text"]:
    """`place` counts fields, so that neighbours differ in colour."""
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
            yield _note(f"decompressed, {sum(inner.size for inner in field.body)} bytes:", depth + 1, "bold")
            yield from _lines(field.body, depth + 2, place)


def _heading(field: ExplainedField, depth: int) -> "Text":
    return _note(field.name, depth, "bold")


def _field_line(field: ExplainedField, depth: int, style: str) -> "Text":
    from rich.text import Text

    hex_text = field.raw[:_BYTES_SHOWN].hex(" ") + (" …" if field.size > _BYTES_SHOWN else "")
    value = printable(shown_value(field))
    if len(value) > _VALUE_SHOWN:
        value = f"{value[:_VALUE_SHOWN]}… ({field.size} bytes)"
    line = Text(f"{field.position:>10}  ")
    line.append(f"{hex_text:<38}", style)
    line.append(f"{'  ' * depth}{printable(field.name):<{32 - 2 * depth}} ", style)
    line.append(f"{field.kind:<14} ", "dim")
    line.append(value)
    if field.meaning:
        line.append(f"  {printable(field.meaning)}", "dim")
    line.rstrip()
    return line


def _details(field: ExplainedField, depth: int) -> Iterator["Text"]:
    for note in notes_of(field):
        yield _note(note.text, depth + 1, "bold red" if note.is_bad else "dim")


def _note(text: str, depth: int, style: str) -> "Text":
    from rich.text import Text

    return Text(f"{' ' * 50}{'  ' * depth}{printable(text)}", style=style)


def write_file(path: Path, items: Iterable[tuple[int, "Item"]], form: str, color: bool | None) -> None:
    """Writes a file's items, with their numbers, to standard output: as text, JSON, a page of HTML or a picture."""
    if form == "text":
        write_items((item for _, item in items), color=color)
    elif form == "json":
        for number, item in items:
            for members in item_objects(item, number, str(path)):
                write_json_by_pieces(members)
    elif form == "html":
        for piece in html_page((item for _, item in items), str(path)):
            write_stdout(piece.encode())
    else:
        write_stdout(svg_picture((item for _, item in items), path.name).encode())
    flush_stdout()


def write_format(name: str, form: str) -> None:
    """Writes the table of a format, or of `all`. Raises UsageError for a form that tables don't have."""
    if form == "json":
        for each in FORMATS if name == "all" else (name,):
            for row in format_rows(each):
                write_json({"format": each, **row._asdict()})
    elif form == "text":
        page = whole_page() if name == "all" else format_page((name,))
        write_stdout(page.encode())
    else:
        raise UsageError("--grammar goes with -o text or json")
    flush_stdout()
