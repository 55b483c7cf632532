"""All that `verify` can find: in local files, in tiers, and of a cluster's disks taken together."""

from kseg.findings.cluster_finding_kinds import CLUSTER_FINDINGS
from kseg.findings.finding_kinds import FINDINGS, FindingKind
from kseg.findings.tier_finding_kinds import TIER_FINDINGS

ALL_FINDINGS: dict[str, FindingKind] = FINDINGS | TIER_FINDINGS | CLUSTER_FINDINGS
"""By id."""
