"""docs/reference/findings.md: the findings of `kseg verify` and `kseg doctor`, from their tables."""

from collections.abc import Mapping

from kseg.doctor.kinds import OWN
from kseg.findings.broker_log import KNOWN_LINES
from kseg.findings.disk_kinds import CLUSTER_FINDINGS
from kseg.findings.finding_kind import FindingKind, Severity
from kseg.findings.kinds import FINDINGS
from kseg.findings.tier_kinds import TIER_FINDINGS

INTRODUCTION = """# Findings

These are the findings of `kseg verify` and `kseg doctor`. Errors and warnings make the exit status 1. Notes don't:
kseg counts them, and `-v` lists them. `kseg verify --explain ID` or `kseg doctor --explain ID` prints an entry of this
page.

`kseg doctor` reports the same findings, and some more at the end of this page. It groups them by kind, most urgent
first, and prints the next command for each. These commands change nothing.

The next steps of `verify` were tried on damaged disks of a 4.3.1 broker, after a clean stop and after a kill
(`tests/log/test_advice_kafka.py`). The broker starts, and `kseg verify` then finds only holes that no replica fills.
The test also lists the few findings whose next step only people can decide.

`python tools/generate.py` writes this page from the tables in `kseg/findings/*_kinds.py` and
`kseg/doctor/kinds.py`: edit these.
"""
_TIERS = """## In remote tiers

`verify` reports the same findings for tiers, and problems of their objects
([Read topics straight out of buckets](../how-to/buckets.md)). None of these stops
a broker from starting.
"""
_OF_CLUSTERS = """## Findings of `kseg verify --cluster`

kseg compares the disks of a cluster's brokers with the cluster's metadata on one of them. In-sync replicas are the ISR
and, from 4.0 on, the eligible leader replicas: replicas that stopped when no other was left.
"""
_OWN = """## Findings of `kseg doctor` alone

The clock's time counts as now, or the time of a file that was written later. On a copy, the newest time that a
broker wrote counts ([the reason](../how-to/retention.md#the-time-to-judge-by)). `--now` sets another time. If a
timestamp is between 2001 and now in seconds, microseconds or nanoseconds, kseg assumes that unit.
"""
_LOG_LINES = """## Lines of a broker's log

A broker that refuses to start, or repairs something, logs lines like these. `…` and names in capitals stand for
variable parts. `kseg doctor --broker-log server.log` looks for the lines
([Read the broker's log](../how-to/will-not-load.md#read-the-brokers-log)). The possible findings for a line are in
order, most likely first.
"""


def page() -> str:
    """Return all findings, by severity; then those of clusters, of the doctor only, and of a broker's log."""
    sections = [f"## {severity.capitalize()}s\n\n{_table(_of(severity))}" for severity in Severity]
    tiers = [_TIERS, _table(TIER_FINDINGS, with_severity=True)]
    clusters = [_OF_CLUSTERS, _table(CLUSTER_FINDINGS, with_severity=True)]
    own = [_OWN, _table(OWN, with_severity=True)]
    return "\n".join([INTRODUCTION, *sections, *tiers, *clusters, *own, _LOG_LINES, _log_lines()])


def _log_lines() -> str:
    """Return a row for each line of a broker's log; words with backticks need two around them."""
    said: dict[str, tuple[str, ...]] = {}
    for known in KNOWN_LINES:
        said[known.readable] = tuple(dict.fromkeys((*said.get(known.readable, ()), *known.ids)))
    rows = [
        f"| {f'`` {words} ``' if '`' in words else f'`{words}`'} | {', '.join(f'`{each}`' for each in ids)} |\n"
        for words, ids in said.items()
    ]
    return "".join(["| line | findings |\n", "|---|---|\n", *rows])


def _of(severity: Severity) -> dict[str, FindingKind]:
    return {name: kind for name, kind in FINDINGS.items() if kind.severity is severity}


def _table(kinds: Mapping[str, FindingKind], *, with_severity: bool = False) -> str:
    """Return a row for each kind."""
    titles = ["id", *(["severity"] if with_severity else []), "meaning", "risk", "next step"]
    rows = [titles, ["---"] * len(titles)]
    for name, kind in kinds.items():
        rows.append([f"`{name}`", *([str(kind.severity)] if with_severity else []), *kind[1:]])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows).replace("| --- ", "|---").replace("|--- |", "|---|")
