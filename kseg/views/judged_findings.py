"""What `verify` finds of open transactions, judged by their coordinators as `txns` judges them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from kseg.errors import OpenError
from kseg.findings.findings import Finding, Findings, shown_findings
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.verify.verification_plan import VerificationPlan
from kseg.log.verify.verify import Verified, verify_paths
from kseg.selection import Selection
from kseg.system.shared_work import OnRead
from kseg.tiered.placed_tiers import placed_at
from kseg.views.coordinators import Coordinators, Judge, Verdict
from kseg.views.remote_segments import Owner, RecordedSegment, check_recorded, recorded_segments
from kseg.views.transactions import PartitionTransactions

OPEN, LONG, HANGING = "open-transaction", "long-transaction", "hanging-transaction"
TO_BE_JUDGED = (OPEN, LONG)


class FindingsJudge:
    """Takes the findings of partitions; adds to those about open transactions whether they hang, and why."""

    def __init__(self, plan: VerificationPlan) -> None:
        """Takes what is verified: the coordinators are those in the log directories that it touches."""
        log_dirs = [each.path for each in plan.log_dirs] + [each.path.absolute().parent for each in plan.orders]
        self._judge = Judge(Coordinators(log_dirs), None)
        self._log_dirs = dict.fromkeys(log_dirs)

    def judged(self, verified: Verified) -> Verified:
        """The same, with the verdicts, and of many alike those that are shown.

        What can't be read again stays as it was found. A remote tier's segments are compared with what was recorded.
        """
        verified = self._with_recorded(verified)
        if not any(finding.id in TO_BE_JUDGED for finding in verified.findings):
            return verified
        try:
            verdicts = self._verdicts(verified.path)
        except OpenError:
            verdicts = {}
        judged = tuple(_judged(verified.findings, verdicts))
        return replace(verified, findings=tuple(shown_findings(judged)))

    @cached_property
    def _recorded(self) -> dict[tuple[Owner, str], RecordedSegment]:
        return recorded_segments(self._log_dirs)

    def _with_recorded(self, verified: Verified) -> Verified:
        placed = placed_at(verified.path)
        if placed is None:
            return verified
        findings = Findings()
        check_recorded(placed, self._recorded, findings)
        return replace(verified, findings=(*verified.findings, *findings.all(is_compacted=False)))

    def _verdicts(self, path: Path) -> dict[int | None, Verdict]:
        found = PartitionTransactions(PartitionLog(path))
        for _ in found.transactions():
            pass
        verdicts = self._judge.verdicts(found.partition, found.open_transactions)
        return {opened.first_offset: verdict for opened, verdict in verdicts.items()}


def judged_findings(
    plan: VerificationPlan,
    selection: Selection,
    *,
    keep_cache: bool = False,
    processes: int | None = None,
    on_read: OnRead | None = None,
) -> Iterator[Verified]:
    """What is found in each partition and log directory, with verdicts; arguments are as for `verify_paths`."""
    read = verify_paths(plan, selection, keep_cache=keep_cache, processes=processes, on_read=on_read)
    return map(FindingsJudge(plan).judged, read)


def _judged(findings: Iterable[Finding], verdicts: dict[int | None, Verdict]) -> Iterable[Finding]:
    for finding in findings:
        verdict = verdicts.get(finding.first_offset) if finding.id in TO_BE_JUDGED else None
        if verdict is None:
            yield finding
            continue
        is_said = finding.sentence.endswith(verdict.reason)
        sentence = finding.sentence if is_said else f"{finding.sentence}; {verdict.reason}"
        yield replace(finding, id=_id_of(finding, verdict), sentence=sentence)


def _id_of(finding: Finding, verdict: Verdict) -> str:
    """Where the coordinators don't tell, the age alone counts."""
    if verdict.is_hanging is None or not verdict.is_certain:
        return finding.id
    return HANGING if verdict.is_hanging else OPEN
