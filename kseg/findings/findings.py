"""What `verify` has found in a partition: findings, of many alike the first ones and their count."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kseg.findings.finding_kind import FindingKind, Severity
from kseg.findings.kinds import ALL_FINDINGS

SHOWN_ALIKE = 20
"""The number of findings of one id in one file that are kept; the last one says how many more there are."""
MARKER_MAY_BE_LOST = "the log is damaged after it: its marker may have been there"
"""Of an open transaction, if it may have ended."""


def open_since(first_offset: int | None) -> str:
    """Of an open transaction, where it begins."""
    return f"open since offset {first_offset}"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a check found.

    `file` and `position` (bytes in it) say where, `first_offset` and `last_offset` which offsets; None if there is no
    such place or offset. `producer_id`: of an open transaction, whose. `sentence` says what is wrong, with both values.
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
        """How bad it is."""
        return ALL_FINDINGS[self.id].severity

    @property
    def counts(self) -> bool:
        """Whether it means that something is wrong with the data."""
        return self.severity is not Severity.NOTE


class Findings:
    """Collects the findings of one partition; a log full of the same error doesn't fill the memory.

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
        """Adds a finding; `unless_compacted`: it doesn't count in a log that was compacted."""
        alike = self._counts.get((finding_id, file), 0) + 1
        self._counts[finding_id, file] = alike
        if alike <= SHOWN_ALIKE:
            first_offset, last_offset = offsets
            finding = Finding(finding_id, file, sentence, position, first_offset, last_offset)
            self._found.append((finding, unless_compacted))

    def add_to_judge(self, finding: Finding) -> None:
        """Adds a finding whose meaning only other partitions can tell: all of these are kept."""
        self._found.append((finding, False))

    def all(self, *, is_compacted: bool) -> Iterator[Finding]:
        """All findings, in the order in which they were added."""
        shown: dict[tuple[str, Path], int] = {}
        for finding, unless_compacted in self._found:
            if unless_compacted and is_compacted:
                continue
            key = (finding.id, finding.file)
            shown[key] = shown.get(key, 0) + 1
            more = self._counts.get(key, 0) - SHOWN_ALIKE
            yield _with_more(finding, more) if shown[key] == SHOWN_ALIKE and more > 0 else finding


def shown_findings(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings that are shown: of many with one id in a file, the last one says how many more there are."""
    counts = Counter((finding.id, finding.file) for finding in findings)
    shown: Counter[tuple[str, Path]] = Counter()
    for finding in findings:
        key = (finding.id, finding.file)
        shown[key] += 1
        more = counts[key] - SHOWN_ALIKE
        if shown[key] <= SHOWN_ALIKE:
            yield _with_more(finding, more) if shown[key] == SHOWN_ALIKE and more > 0 else finding


def _with_more(finding: Finding, more: int) -> Finding:
    return replace(finding, sentence=f"{finding.sentence}; {more} more like this in the file")
