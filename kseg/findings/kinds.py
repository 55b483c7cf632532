"""All kinds of findings by their ids, their exit statuses, and their explanations."""

from collections.abc import Mapping

from kseg.errors import UsageError
from kseg.findings.disk_kinds import CLUSTER_FINDINGS, DISK_FINDINGS
from kseg.findings.finding_kind import FindingKind, Severity
from kseg.findings.index_kinds import INDEX_FINDINGS
from kseg.findings.log_kinds import LOG_FINDINGS
from kseg.findings.tier_kinds import TIER_FINDINGS
from kseg.formats.codes import TAIL_KINDS, DamageKind

FINDINGS: dict[str, FindingKind] = LOG_FINDINGS | INDEX_FINDINGS | DISK_FINDINGS
"""Kinds by id: problems of a partition or a log directory."""

ALL_FINDINGS: dict[str, FindingKind] = FINDINGS | TIER_FINDINGS | CLUSTER_FINDINGS
"""All kinds by id."""


def status_of(finding_id: str) -> int:
    """Return the exit status for a finding, or a damage of that kind: 0 for a note, 1 for all others."""
    return int(FINDINGS[finding_id].severity is not Severity.NOTE)


def id_of_damage(kind: DamageKind, *, is_last: bool) -> str:
    """Return the finding for a damage: a tail where no broker can have been writing is a cut segment."""
    return str(kind) if is_last or kind not in TAIL_KINDS else "cut-segment"


def explanation(name: str, kinds: Mapping[str, FindingKind]) -> str:
    """Return the `--explain` text of one of some kinds, or of `all`: meaning, risk, next step, and a broker's words.

    Raises UsageError if there is no such kind.
    """
    if name != "all" and name not in kinds:
        raise UsageError(f"--explain: unknown finding {name!r}; use one of {', '.join(kinds)}")
    from kseg.findings.broker_log import lines_about

    return "\n".join(
        f"{each} ({kind.severity})\n{kind.meaning}\nRisk: {kind.risk}\nNext step: {kind.next_step}\n"
        + "".join(f"In the broker's log: {line}\n" for line in lines_about(each))
        for each, kind in kinds.items()
        if name in ("all", each)
    )
