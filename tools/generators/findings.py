"""docs/reference/findings.md: the findings of `kseg verify` and `kseg doctor`, from their tables."""

from collections.abc import Mapping

from kseg.doctor.kinds import OWN
from kseg.findings.broker_log import KNOWN_LINES
from kseg.findings.disk_kinds import CLUSTER_FINDINGS
from kseg.findings.finding_kind import FindingKind, Severity
from kseg.findings.kinds import FINDINGS
from kseg.findings.tier_kinds import TIER_FINDINGS

INTRODUCTION = """# Findings

Errors and warnings make the exit status 1. Notes don't: kseg counts them, and `-v` lists them. To print an entry of
this page, run `kseg verify --explain ID` or `kseg doctor --explain ID`.

`kseg doctor` reports the same findings, and some of its own, at the end of this page. It groups findings by kind, most
urgent first, and prints the next command for each kind. These commands are safe: they change no files.

A test tries the next steps of `verify` on damaged disks of a 4.3.1 broker, after a clean stop and after a kill
(`tests/log/test_advice_kafka.py`). The broker then starts, and `kseg verify` finds only holes that no replica fills.
The test also lists the few findings whose next step only people can decide.

`python tools/generate.py` writes this page from the tables in `kseg/findings/*_kinds.py` and
`kseg/doctor/kinds.py`. Edit the tables, not this page.
"""
_TIERS = """## In remote tiers

In remote tiers, `verify` reports the findings above, and problems of the tier's objects
([Read topics straight out of buckets](../how-to/buckets.md)). None of them stops a broker from starting.
"""
_OF_CLUSTERS = """## Findings of `kseg verify --cluster`

`kseg verify --cluster` compares all disks of a cluster's brokers with the cluster's metadata on one of them. In-sync
replicas are the ISR and, from 4.0 on, the eligible leader replicas, which left the ISR last.
"""
_OWN = """## Findings of `kseg doctor` alone

On a broker's own disk, "now" is the clock's time, or a later modification time of a file. On a copy, "now" is the
latest time that a broker wrote ([why](../how-to/retention.md#the-time-to-judge-by)). To use another time, give `--now`.
A timestamp counts as seconds, microseconds or nanoseconds if it is between 2001 and now in that unit.
"""
_LOG_LINES = """## Lines of a broker's log

A broker that refuses to start, or repairs something, logs lines like these. `…` and names in capitals mark variable
parts. `kseg doctor --broker-log server.log` searches for these lines
([Read the broker's log](../how-to/will-not-load.md#read-the-brokers-log)). Each row lists the possible
findings, most likely first.
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
