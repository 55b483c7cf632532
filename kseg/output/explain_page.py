"""Explained bytes as a page for a browser: it folds, wraps, follows the browser's light or dark mode, needs no network.

All that comes out of files is escaped; a policy in the page lets nothing run or load even if it weren't.
"""

from collections.abc import Iterable, Iterator
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from kseg.explain.field import ExplainedField
from kseg.explain.words import FieldNote, notes_of, shown_value
from kseg.output.printable import printable

if TYPE_CHECKING:
    from kseg.explain.items import Item

LONG = 10
"""Lists with more elements than this are folded, and so are batches after so many."""
_FEW_FIELDS = 5
"""Pieces with no more fields than this, such as entries of an index, aren't worth folding."""
_BYTES_SHOWN = 32
_HEX_SHOWN, _TEXT_SHOWN = 64, 1 << 10


class _Colors(NamedTuple):
    """Colours by the names that they have in the style sheet."""

    back: str
    stripe: str
    line: str
    text: str
    dim: str
    bad: str
    fields: tuple[str, ...]

    def css(self) -> str:
        """The declarations of the style sheet's variables."""
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
"""Neighbouring fields have different colours; a field's name has its bytes'. All have a contrast of 4.5 at least."""
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
    """A page with pieces of a file that has a name, in pieces too."""
    yield _head(name)
    for number, item in enumerate(items):
        is_open = number < LONG or item.problem is not None or _has_few(item.fields)
        yield f'<details class="item"{" open" if is_open else ""}><summary><b>{_text(item.title)}</b>'
        yield f'<span class="dim">: position {item.position}, {item.size} bytes</span>'
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
    return escape(printable(text))


class _Rows:
    """Makes rows of fields; counts them, so that neighbours differ in colour."""

    def __init__(self) -> None:
        self._count = 0

    def rows(self, fields: Iterable[ExplainedField], deep: int, *, is_long: bool = False) -> Iterator[str]:
        """The rows of some fields, those within them included; of a long list the elements are folded."""
        for field in fields:
            if field.children:
                yield from self._part(field, deep, is_folded=is_long)
                continue
            yield self._field(field, deep)
            if field.body:
                yield from self._body(field, deep + 1)

    def _part(self, field: ExplainedField, deep: int, *, is_folded: bool) -> Iterator[str]:
        """A structure or a list, which can be folded."""
        is_long = field.kind == "list" and len(field.children) > LONG
        title = f'{_text(field.name)}<span class="dim">: {_size_text(field)}</span>'
        is_open = not (is_folded or is_long) or _has_problem(field)
        yield _opening(title, deep, is_open=is_open)
        if field.check is not None or field.problem is not None:
            yield f'<div class="field" style="--deep: {deep}">{_notes(field)}</div>\n'
        yield from self.rows(field.children, deep + 1, is_long=is_long)
        yield "</details>\n"

    def _body(self, field: ExplainedField, deep: int) -> Iterator[str]:
        """What a compressed field holds."""
        size = sum(inner.size for inner in field.body)
        yield _opening(f"decompressed, {size} bytes", deep, is_open=True)
        yield from self.rows(field.body, deep + 1)
        yield "</details>\n"

    def _field(self, field: ExplainedField, deep: int) -> str:
        color = f"field{self._count % _FIELD_COLORS}"
        self._count += 1
        hex_text = field.raw[:_BYTES_SHOWN].hex(" ") + (" …" if field.size > _BYTES_SHOWN else "")
        value = shown_value(field)
        most = _HEX_SHOWN if value.startswith("0x") else _TEXT_SHOWN
        if len(value) > most:
            value = f"{value[:most]}… ({field.size} bytes)"
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
    count = f"{len(field.children)} elements, " if field.kind == "list" else ""
    return f"{count}position {field.position}, {field.size} bytes"


def _has_problem(field: ExplainedField) -> bool:
    return field.problem is not None or any(map(_has_problem, (*field.children, *field.body)))


def _notes(field: ExplainedField) -> str:
    return "".join(map(_note, notes_of(field)))


def _note(note: FieldNote) -> str:
    return f'<span class="note{" bad" if note.is_bad else ""}">{_text(note.text)}</span>'
