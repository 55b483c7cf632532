"""What `verify` has found in a partition: findings, of many alike the first ones and their count."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kseg.log.verify.finding_kinds import FINDINGS, FindingKind, Severity

SHOWN_ALIKE = 20
"""Findings of one id in one file that are kept; of the others the last one kept tells the count."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a check found.

    `file` is where, `position` bytes in it; `first_offset` and `last_offset` the offsets concerned; None where there
    are none. `sentence` says what is wrong, with both values.
    """

    id: str
    file: Path
    sentence: str
    position: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None

    @property
    def kind(self) -> FindingKind:
        """What its id means."""
        return FINDINGS[self.id]

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return FINDINGS[self.id].severity

    @property
    def counts(self) -> bool:
        """Whether the data is not well because of it."""
        return self.severity is not Severity.NOTE


class Findings:
    """Takes the findings of one partition, so that a log full of one wrong doesn't fill the memory.

    Those that compaction explains are kept apart until it is known whether the log was compacted.
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
        is_judged_later: bool = False,
    ) -> None:
        """Takes a finding; `unless_compacted` if it is none in a log that compaction has been over.

        `is_judged_later`: what it is can only be told with other partitions, so all are kept.
        """
        if is_judged_later:
            self._found.append((Finding(finding_id, file, sentence, position, *offsets), unless_compacted))
            return
        alike = self._counts.get((finding_id, file), 0) + 1
        self._counts[finding_id, file] = alike
        if alike <= SHOWN_ALIKE:
            self._found.append((Finding(finding_id, file, sentence, position, *offsets), unless_compacted))

    def all(self, *, is_compacted: bool) -> Iterator[Finding]:
        """What was found, in the order in which it was."""
        shown: dict[tuple[str, Path], int] = {}
        for finding, unless_compacted in self._found:
            if unless_compacted and is_compacted:
                continue
            key = (finding.id, finding.file)
            shown[key] = shown.get(key, 0) + 1
            more = self._counts.get(key, 0) - SHOWN_ALIKE
            yield _with_more(finding, more) if shown[key] == SHOWN_ALIKE and more > 0 else finding


def shown_findings(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Those of a partition's findings that are shown: of many of one id in a file, the last one tells the count."""
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
