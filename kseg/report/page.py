"""The page of a report with its style and script, and the same as JSON objects."""

import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import tzinfo
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from kseg.cluster.now import NowSource
from kseg.errors import UsageError
from kseg.output.rows import json_line
from kseg.output.streams import write_stdout
from kseg.report.block import (
    About,
    Block,
    Cell,
    CellColumn,
    CellKind,
    DiskReport,
    Figure,
    Sentence,
    SummaryPart,
    Table,
    Weight,
)
from kseg.report.charts import COLORS, escape_text, number
from kseg.report.sums import age_text, count_text, moment_text, ratio_text, share_text
from kseg.sizes import human_size
from kseg.store.target import NewFile
from kseg.system.terminal_text import escaped_text
from kseg.text.retention import now_fields
from kseg.times import iso_time

NUMBERS = frozenset(
    (
        CellKind.COUNT,
        CellKind.SIZE,
        CellKind.TIME,
        CellKind.DURATION,
        CellKind.SHARE,
        CellKind.RATIO,
        CellKind.MONEY,
        CellKind.BAR,
    )
)
"""Kinds whose cells are aligned right."""
_TEXTS: dict[CellKind, Callable[[float], str]] = {
    CellKind.COUNT: lambda value: count_text(round(value)),
    CellKind.SIZE: lambda value: human_size(round(value)),
    CellKind.DURATION: lambda value: age_text(round(value)),
    CellKind.SHARE: share_text,
    CellKind.BAR: share_text,
    CellKind.RATIO: lambda value: ratio_text(value)[:-1],
    CellKind.MONEY: lambda value: f"{value:,.2f}",
}


def cell_text(kind: CellKind, value: Cell, zone: tzinfo) -> str:
    """Return a cell for people; a dash for an unknown value."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, str):
        return value
    if kind is CellKind.TIME:
        return moment_text(round(value), zone)
    return _TEXTS[kind](value) if kind in _TEXTS else str(value)


def cell_value(kind: CellKind, value: Cell, zone: tzinfo) -> Cell:
    """Return a cell for programs: times as ISO 8601, shares and ratios with limited digits."""
    if kind is CellKind.TIME and isinstance(value, int):
        return iso_time(value, zone) or value
    return round(value, 6) if isinstance(value, float) else value


MOST_OBJECT_ROWS = 250
"""Most rows of a table in the page's own JSON; `-o json` has all."""


def report_objects(report: DiskReport, zone: tzinfo) -> Iterator[dict[str, Any]]:
    """Yield the subject of the report; its verdicts, most important first; rows of its tables; its notes."""
    yield {"type": "report", **_about_object(report.about, zone)}
    for part, sentence in _summary_rows(report):
        yield {"type": "summary", "part": part.id, **_sentence_object(sentence)}
    for block, verdict in report.verdicts:
        yield {"type": "verdict", "block": block.id, **_sentence_object(verdict)}
    for block in report.blocks:
        for table in block.tables:
            for row in _rows(table, zone):
                cells = {column.name: value for column, value in zip(table.columns, row, strict=True)}
                yield {"type": "row", "block": block.id, "table": table.id, **cells}
    for block in report.blocks:
        for note in block.notes:
            yield {"type": "note", "block": block.id, "text": note}


def report_json(report: DiskReport, zone: tzinfo) -> str:
    """Return the same as one JSON text that isn't mistaken for markup in a page; tables by columns and rows."""
    found = {
        **_about_object(report.about, zone),
        "summary": [{"part": part.id, **_sentence_object(each)} for part, each in _summary_rows(report)],
        "verdicts": [{"block": block.id, **_sentence_object(each)} for block, each in report.verdicts],
        "tables": {
            table.id: {
                "block": block.id,
                "columns": [column.name for column in table.columns],
                "rows": _rows(table, zone)[:MOST_OBJECT_ROWS],
                "left": max(len(table.rows) - MOST_OBJECT_ROWS, 0),
            }
            for block in report.blocks
            for table in block.tables
        },
    }
    text = json_line(found).decode().rstrip("\n")
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _summary_rows(report: DiskReport) -> Iterator[tuple[SummaryPart, Sentence]]:
    return ((part, sentence) for part in report.summary for sentence in part.sentences)


def _sentence_object(each: Sentence) -> dict[str, Any]:
    return {"weight": str(each.weight), "sentence": each.sentence, "command": each.command}


def _about_object(about: About, zone: tzinfo) -> dict[str, Any]:
    return {
        "title": about.title,
        "kseg": about.version,
        "command": about.command,
        "time": about.time_text,
        **now_fields(about.now, zone),
        "read": about.read,
        "partitions": about.partitions,
        "bytes": about.size,
        "directories": [
            {"path": source.path, "clusterId": source.cluster_id, "nodeId": source.node_id} for source in about.sources
        ],
    }


def _rows(table: Table, zone: tzinfo) -> list[list[Any]]:
    kinds = [column.kind for column in table.columns]
    return [[cell_value(kind, value, zone) for kind, value in zip(kinds, row, strict=True)] for row in table.rows]


_FOLDER = Path(__file__).parent
_STYLE = (_FOLDER / "page.css").read_text(encoding="utf-8")
_SCRIPT = (_FOLDER / "page.js").read_text(encoding="utf-8")
MOST_ROWS = 100
"""Most rows of a table on the page; its JSON has more, `-o json` all."""
PRINTED_ROWS = 15
"""Most rows of a table on paper; the style hides the others."""
_FEW_ROWS = 14
_FIRST_VERDICTS = 12
_MARKS = {Weight.BAD: "Act", Weight.WATCH: "Look", Weight.PLAIN: "Know"}
_BAR_WIDTH, _PROSE = 60, 40


def html_page(report: DiskReport, zone: tzinfo) -> Iterator[str]:
    """Yield the page, in pieces."""
    yield _head(report)
    yield '<body><a class="skip" href="#summary">To the summary</a><header>\n'
    yield from _about(report)
    yield f"</header><main>\n{_opening('summary', 'Summary')}"
    for part in report.summary:
        yield f"<h3>{part.title}</h3>\n"
        yield from _verdict_list([(sentence, None) for sentence in part.sentences])
    yield f"</section>\n{_opening('verdicts', 'Verdicts')}"
    found = report.verdicts
    yield from _verdict_list([(verdict, block) for block, verdict in found[:_FIRST_VERDICTS]])
    if len(found) > _FIRST_VERDICTS:
        yield f"<p>The sections below have {len(found) - _FIRST_VERDICTS} more.</p>\n"
    yield "</section>\n"
    yield from _contents(report)
    for block in report.blocks:
        yield from _section(block, zone)
    yield from _glossary(report)
    yield f'</main>\n<script type="application/json" id="kseg">{report_json(report, zone)}</script>\n'
    yield f"<script>{_SCRIPT}</script>\n</body></html>\n"


def _head(report: DiskReport) -> str:
    own = f"style-src {_source(_STYLE)}; script-src {_source(_SCRIPT)}"
    policy = f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape_text(report.about.title)}</title>\n<style>{_STYLE}</style></head>\n"
    )


def _source(text: str) -> str:
    """Return the name of an inline text in a content security policy."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _about(report: DiskReport) -> Iterator[str]:
    about = report.about
    yield f"<h1>{escape_text(about.title)}</h1>\n<dl class=about>"
    origin = {
        NowSource.DISK: (", the latest time that a broker wrote"),
        NowSource.FILES: ", the latest modification time of a log file",
    }
    entries = [
        ("Read", about.read),
        ("State at", f"{about.time_text}{origin.get(about.now.source, '')}"),
        ("Made by", about.version),
    ]
    for source in about.sources[:6]:
        names = [
            f"cluster {source.cluster_id}" if source.cluster_id else "",
            "" if source.node_id is None else f"node {source.node_id}",
        ]
        words = ", ".join(filter(None, names))
        entries.append(("Directory", f"{source.path}{f' ({words})' if words else ''}"))
    if len(about.sources) > 6:
        entries.append(("Directory", f"and {len(about.sources) - 6} more"))
    for name, text in entries:
        yield f"<div><dt>{name}</dt><dd>{escape_text(text)}</dd></div>"
    yield f"<div><dt>Command</dt><dd><code>{escape_text(about.command)}</code></dd></div></dl>\n"


def _verdict_list(verdicts: list[tuple[Sentence, Block | None]]) -> Iterator[str]:
    yield '<ul class="verdicts">\n'
    for verdict, block in verdicts:
        where = "" if block is None else f' <a href="#{block.id}">{escape_text(block.title)}</a>'
        command = "" if verdict.command is None else f" <code>{escape_text(verdict.command)}</code>"
        mark = f'<b class="mark {verdict.weight}">{_MARKS[verdict.weight]}</b>'
        yield f"<li>{mark} <span>{escape_text(verdict.sentence)}{where}{command}</span></li>\n"
    yield "</ul>\n"


def _contents(report: DiskReport) -> Iterator[str]:
    yield '<nav aria-label="Sections"><ul>'
    for block in report.blocks:
        yield f'<li><a href="#{block.id}">{escape_text(block.title)}</a></li>'
    yield '<li><a href="#glossary">Glossary</a></li></ul></nav>\n'


def _opening(name: str, title: str) -> str:
    """Return the beginning of a section."""
    return f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{escape_text(title)}</h2>\n'


def _section(block: Block, zone: tzinfo) -> Iterator[str]:
    yield _opening(block.id, block.title)
    if block.verdicts:
        yield from _verdict_list([(verdict, None) for verdict in block.verdicts])
    yield '<div class="parts">\n'
    yield from map(_figure, block.figures)
    for table in block.tables:
        yield from _table(block, table, zone)
    yield "</div>\n"
    for note in block.notes:
        yield f'<p class="note">{escape_text(note)}</p>\n'
    yield "</section>\n"


def _figure(figure: Figure) -> str:
    return f"<figure><figcaption>{escape_text(figure.title)}</figcaption>{figure.svg}</figure>\n"


def _table(block: Block, table: Table, zone: tzinfo) -> Iterator[str]:
    if not table.rows:
        return
    is_long = len(table.rows) > _FEW_ROWS
    title = f"{escape_text(table.title)} <small>{len(table.rows):,}</small>" if is_long else escape_text(table.title)
    yield f'<div class="part"><h3 id="t-{table.id}">{title}</h3>\n'
    titles = f"{block.id}-title t-{table.id}"
    yield f'<div class="table{" long" if is_long else ""}" tabindex="0" role="region" aria-labelledby="{titles}">'
    yield f'<table aria-labelledby="t-{table.id}" cellpadding=3><thead><tr>'
    shown_columns = [
        place for place, _ in enumerate(table.columns) if any(row[place] is not None for row in table.rows)
    ]
    for column in (table.columns[place] for place in shown_columns):
        yield f'<th scope="col"{_alignment(column)}>{escape_text(column.title)}</th>'
    yield "</tr></thead><tbody>\n"
    for row in table.rows[:MOST_ROWS]:
        cells = (_cell(place, table.columns[place], row[place], zone) for place in shown_columns)
        yield f"<tr>{''.join(cells)}</tr>\n"
    yield "</tbody></table></div>\n"
    if len(table.rows) > MOST_ROWS:
        more = len(table.rows) - MOST_ROWS
        yield f'<p class="note">And {more:,} more rows; <code>kseg report -o json</code> prints all.</p>\n'
    if len(table.rows) > PRINTED_ROWS:
        yield f'<p class="note printed">And {len(table.rows) - PRINTED_ROWS:,} more rows on the page.</p>\n'
    yield "</div>\n"


def _alignment(column: CellColumn) -> str:
    return " align=right" if column.kind in NUMBERS else ""


def _cell(place: int, column: CellColumn, value: str | int | float | None, zone: tzinfo) -> str:
    text = escape_text(cell_text(column.kind, value, zone))
    if place == 0:
        return f"<th scope=row align=left>{text}</th>"
    if column.kind is CellKind.COMMAND and value is not None:
        return f'<td class="prose"><code>{text}</code></td>'
    if column.kind not in NUMBERS:
        return f'<td class="prose">{text}</td>' if len(text) > _PROSE else f"<td>{text}</td>"
    is_plain = column.kind is CellKind.COUNT or not isinstance(value, int | float)
    data = "" if is_plain else f" data-v={value if isinstance(value, int) else round(float(value or 0), 6)}"
    bar = _bar(value) if column.kind is CellKind.BAR and isinstance(value, float) else ""
    words = f"<span>{text}</span>" if bar else text
    return f"<td align=right{data}>{bar}{words}</td>"


def _bar(share: float) -> str:
    """Render a percentage as a bar next to the number."""
    width = number(_BAR_WIDTH * min(max(share, 0.0), 1.0))
    size = f'width="{_BAR_WIDTH}" height="8" viewBox="0 0 {_BAR_WIDTH} 8"'
    return f'<svg {size} aria-hidden="true"><rect class="c0" width="{width}" height="8" fill="{COLORS[0]}"/></svg> '


def _glossary(report: DiskReport) -> Iterator[str]:
    yield _opening("glossary", "Glossary")
    yield '<dl class="terms">'
    for term in report.glossary:
        yield f"<div><dt>{escape_text(term.word)}</dt><dd>{escape_text(term.meaning)}</dd></div>\n"
    yield "</dl></section>\n"


_LINE_MARKS = {Weight.BAD: "!!", Weight.WATCH: " !", Weight.PLAIN: "  "}


def check_place(output: str, file: Path | None) -> None:
    """Raise UsageError if a page would be written to a terminal."""
    if output == "html" and file is None and sys.stdout.isatty():
        raise UsageError("a terminal can't show an HTML page; specify --to report.html, or -o text")


def write_report(report: DiskReport, output: str, file: NewFile | None, zone: tzinfo) -> int:
    """Write a report in a form; return the number of its bytes.

    Raises UsageError if the file exists already, WriteError if it can't be written.
    """
    content = "".join(_FORMS[output](report, zone)).encode("utf-8", "replace")
    if file is None:
        write_stdout(content)
    else:
        file.write(content)
    return len(content)


def _json_lines(report: DiskReport, zone: tzinfo) -> Iterator[str]:
    for found in report_objects(report, zone):
        yield json_line(found).decode()


def _text_lines(report: DiskReport, _: tzinfo) -> Iterator[str]:
    """Yield the summary, followed by the remaining verdicts in order of importance."""
    yield f"{escaped_text(report.about.title)}\nread: {report.about.read}\n"
    for part in report.summary:
        yield f"\n{part.title}\n"
        yield from chain.from_iterable(map(_sentence_lines, part.sentences))
    said = {sentence for _, sentence in _summary_rows(report)}
    others = [verdict for _, verdict in report.verdicts if verdict not in said]
    yield "\nMore\n" if others else ""
    yield from chain.from_iterable(map(_sentence_lines, others))


def _sentence_lines(each: Sentence) -> Iterator[str]:
    yield f"{_LINE_MARKS[each.weight]} {escaped_text(each.sentence)}\n"
    if each.command is not None:
        yield f"   {escaped_text(each.command)}\n"


_FORMS = {"html": html_page, "json": _json_lines, "text": _text_lines}
