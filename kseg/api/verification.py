"""The findings of a verification, as one value."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kseg.api.short_table import SHOWN_ROWS, ShortTable
from kseg.errors import KsegError
from kseg.findings.findings import Finding
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.log.verify.verification_plan import PassedOver, plan_verification
from kseg.selection import Selection


@dataclass(frozen=True, slots=True, repr=False)
class Verification:
    """What was found in partitions and log directories.

    findings: in the order of partitions. problems: files that couldn't be opened; nothing is known of them. notes: in
    words, of a selection. passed_over: names that aren't Kafka's, by directory.
    """

    findings: tuple[Finding, ...]
    problems: tuple[KsegError, ...]
    notes: tuple[str, ...]
    passed_over: tuple[PassedOver, ...]

    @property
    def is_well(self) -> bool:
        """Whether all could be read, and there is nothing but notes."""
        return not self.problems and not any(finding.counts for finding in self.findings)

    def __repr__(self) -> str:
        """A short table."""
        return self._table().text()

    def _repr_html_(self) -> str:
        """The same, for notebooks."""
        return self._table().html()

    def _table(self) -> ShortTable:
        state = "ok" if self.is_well else "not ok"
        return ShortTable(
            f"Verification: {state}, {len(self.findings)} findings, {len(self.problems)} files that can't be read",
            ("severity", "id", "file", "position", "what"),
            [
                (str(each.severity), each.id, str(each.file), each.position, each.sentence)
                for each in sorted(self.findings, key=lambda each: each.severity.rank)[:SHOWN_ROWS]
            ],
            len(self.findings),
        )


def verification(
    paths: Sequence[Path], choice: PartitionChoice, selection: Selection, processes: int | None
) -> Verification:
    """Verifies what is chosen at some paths. Raises OpenError if there is nothing to verify."""
    from kseg.views.judged_findings import judged_findings

    problems: list[KsegError] = []
    plan = plan_verification(paths, problems.append, choice)
    if problems and not plan.orders:
        raise problems[0]
    findings: list[Finding] = []
    notes: list[str] = []
    for verified in judged_findings(plan, selection, processes=processes):
        findings += verified.findings
        problems += verified.problems
        notes += verified.notes
    return Verification(tuple(findings), tuple(problems), tuple(notes), plan.passed_over)
