"""Where a report goes: a new file, or stdout; as a page, as JSON, or as lines of text."""

import json
import sys
from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path

from kseg.errors import UsageError
from kseg.output.printable import printable
from kseg.output.stdout import write_stdout
from kseg.report.block import DiskReport, Weight
from kseg.report.page.html import html_page
from kseg.report.page.report_objects import report_objects
from kseg.system.new_file import write_new_file

_MARKS = {Weight.BAD: "!!", Weight.WATCH: " !", Weight.PLAIN: "  "}


def check_place(output: str, file: Path | None) -> None:
    """Raises UsageError where a page would go to a terminal."""
    if output == "html" and file is None and sys.stdout.isatty():
        raise UsageError("a page isn't for a terminal: give --to report.html, or -o text")


def write_report(report: DiskReport, output: str, file: Path | None, zone: tzinfo) -> int:
    """Writes a report in a form; the number of its bytes.

    Raises UsageError if the file is there already, WriteError if it can't be written.
    """
    content = "".join(_FORMS[output](report, zone)).encode("utf-8", "replace")
    if file is None:
        write_stdout(content)
    else:
        write_new_file(file, content)
    return len(content)


def _json_lines(report: DiskReport, zone: tzinfo) -> Iterator[str]:
    for found in report_objects(report, zone):
        yield json.dumps(found, ensure_ascii=False) + "\n"


def _text_lines(report: DiskReport, _: tzinfo) -> Iterator[str]:
    """The verdicts, those that matter most first, each with its command."""
    yield f"{printable(report.about.title)}\nread: {report.about.read}\n"
    for _block, verdict in report.verdicts:
        yield f"\n{_MARKS[verdict.weight]} {printable(verdict.sentence)}\n"
        if verdict.command is not None:
            yield f"   {printable(verdict.command)}\n"


_FORMS = {"html": html_page, "json": _json_lines, "text": _text_lines}
