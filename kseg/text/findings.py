"""Findings of `kseg verify` as text and JSON, and explanations of finding kinds."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

from kseg.errors import KsegError, plural
from kseg.findings.finding_kind import FindingKind, Severity
from kseg.findings.findings import Finding
from kseg.findings.kinds import explanation
from kseg.formats.foreign import what_has_name
from kseg.output.forms import Form
from kseg.output.streams import flush_stdout, takes_colors, write_line, write_stdout, write_styled
from kseg.system.terminal_text import escaped_text
from kseg.text.start_forecast import assumptions, forecast_fields, forecast_sentence
from kseg.verify.start_effects import StartForecast
from kseg.verify.verify import PassedOver, Verified

SHOWN = 5
"""Most skipped files that are listed per directory."""
_STYLES = {Severity.ERROR: "1;31", Severity.WARNING: "33", Severity.NOTE: "2"}
"""Parameters of a terminal's SGR sequence: bold red, yellow, faint."""


def write_findings(findings: Iterable[Finding], *, color: bool | None) -> None:
    """Write lines to standard output, most severe first.

    color: None lets the terminal and NO_COLOR decide.
    """
    is_colored = takes_colors(sys.stdout, wanted=color)
    for finding in sorted(findings, key=lambda finding: finding.severity.rank):
        if is_colored:
            write_styled(_styled_line(finding).encode() + b"\n")
        else:
            write_line(finding_line(finding))


def finding_line(finding: Finding) -> str:
    """Return the place, severity and text of a finding."""
    return " ".join(_parts(finding))


def _styled_line(finding: Finding) -> str:
    place, what, sentence = map(escaped_text, _parts(finding))
    return f"{place} \x1b[{_STYLES[finding.severity]}m{what}\x1b[0m {sentence}"


def _parts(finding: Finding) -> tuple[str, str, str]:
    place = "" if finding.position is None else f" at position {finding.position}:"
    return f"{finding.file}:{place}", f"{finding.severity} {finding.id}:", finding.sentence


def finding_object(finding: Finding) -> dict[str, object]:
    """Return a finding for JSON."""
    return {
        "type": "finding",
        "id": finding.id,
        "severity": str(finding.severity),
        "file": str(finding.file),
        "position": finding.position,
        "firstOffset": finding.first_offset,
        "lastOffset": finding.last_offset,
        "sentence": finding.sentence,
    }


def passed_over_line(passed_over: PassedOver) -> str:
    """Return a line about skipped files of a directory: the first names, and the meaning of known files."""
    names = [f"{name} ({what})" if (what := what_has_name(name.rstrip("/"))) else name for name in passed_over.names]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{passed_over.directory}: skipped: {', '.join(names[:SHOWN])}{more}"


def write_explanation(name: str, kinds: Mapping[str, FindingKind]) -> None:
    """Write the meaning of one kind, or of `all`, to standard output. Raises UsageError if the kind is unknown."""
    write_stdout(explanation(name, kinds).encode())
    flush_stdout()


class FindingsReport:
    """A context manager that writes findings to standard output: JSON at once, lines at the end, most severe first.

    The lines are written on exit, so that an interrupted run shows its findings so far.
    """

    def __init__(
        self,
        form: Form,
        partition_count: int,
        forecast: StartForecast | None,
        *,
        verbose: bool,
        color: bool | None,
    ) -> None:
        """Take the form, whether text has notes, and colours (None: the terminal decides).

        forecast: the forecast of a start, to which findings are added; None if partitions are only read in part.
        is_complete: whether everything requested was read. has_selected: whether a record was selected.
        """
        self._form = form
        self._forecast = forecast
        self._partition_count = partition_count
        self._verbose = verbose
        self._color = color
        self._counts: Counter[Severity] = Counter()
        self._found: list[Finding] = []
        self._size = 0
        self.is_complete = False
        self.has_selected = False

    def __enter__(self) -> "FindingsReport":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._forecast is not None and self._verbose and not self._form.has_objects:
            write_line(forecast_sentence(self._forecast, is_all=self.is_complete))
            write_line(f"assumed: {assumptions(self._forecast)}")
        write_findings(self._found, color=self._color)

    def take(self, verified: Verified) -> None:
        """Add the findings of a partition or a log directory."""
        if self._forecast is not None:
            self._forecast.take(verified.effects)
        for finding in verified.findings:
            if self._form.has_objects:
                self._form.write_object(finding_object(finding))
            elif self._verbose or finding.counts:
                self._found.append(finding)
        self._counts.update(finding.severity for finding in verified.findings)
        self._size += verified.size

    def take_all(
        self, results: Iterable[Verified], note: Callable[[str], None], refuse: Callable[[KsegError], None]
    ) -> None:
        """Add all findings; `note` and `refuse` take each result's notes and file errors."""
        for verified in results:
            self.take(verified)
            self.has_selected |= verified.has_selected
            for text in verified.notes:
                note(text)
            for problem in verified.problems:
                refuse(problem)

    def finish(self) -> None:
        """Write the end."""
        if self._form.has_objects:
            self._form.write_object(self._summary())
        elif self.is_well and self.is_complete:
            write_stdout(b"ok\n")

    @property
    def is_well(self) -> bool:
        """True if there are neither errors nor warnings."""
        return not self._counts[Severity.ERROR] and not self._counts[Severity.WARNING]

    @property
    def has_any(self) -> bool:
        """True if there is anything to count."""
        return self._counts.total() > 0

    def counts_line(self) -> str:
        """Return the number of findings per severity, and the option that shows more of them."""
        counts = self._counts
        severities = ", ".join(plural(counts[each], each) for each in Severity)
        places = plural(self._partition_count, "partition")
        more = "" if self.is_well else "; `kseg verify --explain ID` explains a finding"
        is_hidden = counts[Severity.NOTE] and not self._verbose and not self._form.has_objects
        return f"{severities} in {places}{more}{'; -v lists the notes' if is_hidden else ''}"

    def _summary(self) -> dict[str, object]:
        """Return the last object: whether there is no problem, the counts, and the forecast of a start."""
        start = {} if self._forecast is None else forecast_fields(self._forecast, is_all=self.is_complete)
        return {
            "type": "summary",
            "result": ("ok" if self.is_complete else "incomplete") if self.is_well else "findings",
            "partitions": self._partition_count,
            "bytes": self._size,
            **{f"{severity}s": self._counts[severity] for severity in Severity},
            **start,
        }
