"""Findings as lines of text, and as objects of `-o json`."""

import os
import sys
from collections import Counter
from collections.abc import Iterable

from kseg.log.verify.findings import Finding, Severity
from kseg.log.verify.plan import PassedOver
from kseg.output.printable import printable
from kseg.output.stdout import write_line, write_styled

SHOWN = 5
"""The most names of skipped files that are shown per directory."""


_STYLES = {Severity.ERROR: "1;31", Severity.WARNING: "33", Severity.NOTE: "2"}
"""Parameters of a terminal's SGR sequence: bold red, yellow, faint."""


def write_findings(findings: Iterable[Finding], *, color: bool | None) -> None:
    """Writes lines to standard output, the worst first. `color`: None lets the terminal and NO_COLOR decide."""
    is_colored = sys.stdout.isatty() and not os.environ.get("NO_COLOR") if color is None else color
    for finding in sorted(findings, key=lambda finding: _ORDER[finding.severity]):
        if is_colored:
            write_styled(_styled_line(finding).encode() + b"\n")
        else:
            write_line(finding_line(finding))


_ORDER = {severity: place for place, severity in enumerate(Severity)}


def finding_line(finding: Finding) -> str:
    """Where, how bad, what."""
    return "{} {} {}".format(*_parts(finding))


def _styled_line(finding: Finding) -> str:
    place, what, sentence = map(printable, _parts(finding))
    return f"{place} \x1b[{_STYLES[finding.severity]}m{what}\x1b[0m {sentence}"


def _parts(finding: Finding) -> tuple[str, str, str]:
    place = "" if finding.position is None else f" at position {finding.position}:"
    return f"{finding.file}:{place}", f"{finding.severity} {finding.id}:", finding.sentence


def finding_object(finding: Finding) -> dict[str, object]:
    """A finding for JSON."""
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
    """What wasn't read in a directory, with the first names."""
    names = passed_over.names
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{passed_over.directory}: skipped: {', '.join(names[:SHOWN])}{more}"


def counts_text(counts: Counter[Severity], partition_count: int) -> str:
    """How many findings of each severity there were."""
    told = [f"{counts[severity]} {severity}{'s' * (counts[severity] != 1)}" for severity in Severity]
    return f"{', '.join(told)} in {partition_count} partition{'s' * (partition_count != 1)}"


def summary_object(
    counts: Counter[Severity], partition_count: int, size: int, *, is_complete: bool
) -> dict[str, object]:
    """The last object: whether all is well, and the counts. `is_complete`: whether everything requested was read."""
    is_well = not counts[Severity.ERROR] and not counts[Severity.WARNING]
    return {
        "type": "summary",
        "result": ("ok" if is_complete else "incomplete") if is_well else "findings",
        "partitions": partition_count,
        "bytes": size,
        **{f"{severity}s": counts[severity] for severity in Severity},
    }
