"""Findings of `verify` in a partition; of many similar ones, the first ones and their count."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kseg.findings.finding_kind import FindingKind, Severity
from kseg.findings.kinds import ALL_FINDINGS

SHOWN_ALIKE = 20
"""The most findings kept of one id in one file; the last one has the number of the others."""
MARKER_MAY_BE_LOST = "the log is damaged after it, so its marker may be lost"
"""The description of an open transaction that may have ended."""


def open_since(first_offset: int | None) -> str:
    """Return the start of an open transaction in words."""
    return f"open since offset {first_offset}"


@dataclass(frozen=True, slots=True)
class Finding:
    """A check's finding.

    `file` and `position` (bytes in it), `first_offset` and `last_offset`: its place; None without one. `producer_id`:
    the open transaction's. `sentence`: the problem, with both values.
    """

    id: str
    file: Path
    sentence: str
    position: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    producer_id: int | None = None

    @property
    def kind(self) -> FindingKind:
        """The meaning of its id."""
        return ALL_FINDINGS[self.id]

    @property
    def severity(self) -> Severity:
        """Its severity."""
        return ALL_FINDINGS[self.id].severity

    @property
    def counts(self) -> bool:
        """True if it is a problem of the data."""
        return self.severity is not Severity.NOTE


class Findings:
    """The findings of one partition; a log full of the same error doesn't fill the memory.

    Findings that compaction explains are marked until it is known whether the log was compacted.
    """

    def __init__(self) -> None:
        self._found: list[tuple[Finding, bool]] = []
        self._counts: dict[tuple[str, Path], int] = {}

    def add(
        self,
        finding_id: str,
        file: Path,
        sentence: str,
        *,
        position: int | None = None,
        offsets: tuple[int | None, int | None] = (None, None),
        unless_compacted: bool = False,
    ) -> None:
        """Add a finding; `unless_compacted`: it doesn't count in a log that was compacted."""
        alike = self._counts.get((finding_id, file), 0) + 1
        self._counts[finding_id, file] = alike
        if alike <= SHOWN_ALIKE:
            first_offset, last_offset = offsets
            finding = Finding(finding_id, file, sentence, position, first_offset, last_offset)
            self._found.append((finding, unless_compacted))

    def add_to_judge(self, finding: Finding) -> None:
        """Add a finding whose meaning depends on other partitions: all of these are kept."""
        self._found.append((finding, False))

    def all(self, *, is_compacted: bool) -> Iterator[Finding]:
        """Yield all findings in the order of their addition."""
        shown: dict[tuple[str, Path], int] = {}
        for finding, unless_compacted in self._found:
            if unless_compacted and is_compacted:
                continue
            key = (finding.id, finding.file)
            shown[key] = shown.get(key, 0) + 1
            more = self._counts.get(key, 0) - SHOWN_ALIKE
            yield _with_more(finding, more) if shown[key] == SHOWN_ALIKE and more > 0 else finding


def shown_findings(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings to print: of many with one id in a file, the last one has the number of the others."""
    counts = Counter((finding.id, finding.file) for finding in findings)
    shown: Counter[tuple[str, Path]] = Counter()
    for finding in findings:
        key = (finding.id, finding.file)
        shown[key] += 1
        more = counts[key] - SHOWN_ALIKE
        if shown[key] <= SHOWN_ALIKE:
            yield _with_more(finding, more) if shown[key] == SHOWN_ALIKE and more > 0 else finding


def _with_more(finding: Finding, more: int) -> Finding:
    return replace(finding, sentence=f"{finding.sentence}; and {more} more like this in the file")
