"""docs/reference/findings.md: the findings of `kseg verify` and `kseg doctor`, from their tables."""

from collections.abc import Mapping

from kseg.doctor.kinds import OWN
from kseg.findings.broker_log import KNOWN_LINES
from kseg.findings.disk_kinds import CLUSTER_FINDINGS
from kseg.findings.finding_kind import FindingKind, Severity
from kseg.findings.kinds import FINDINGS
from kseg.findings.tier_kinds import TIER_FINDINGS

INTRODUCTION = """# What `kseg verify` and `kseg doctor` find

Errors and warnings make the exit status 1. Notes don't: they are counted, and `-v` lists them. An entry of this page is
printed by `kseg verify --explain ID`, or by `kseg doctor --explain ID`.

`kseg doctor` makes the same findings, and has some of its own, which stand last. It groups them by kind, the most
urgent first, and prints the next command for each; these commands change nothing by themselves.

The next steps of `verify` were tried on damaged disks of a 4.3.1 broker, after a clean stop and after a kill
(`tests/log/test_advice_kafka.py`): the broker starts, and `kseg verify` then finds nothing but holes that no replica
fills. That test also lists the few findings whose next step only people can decide.

`python tools/generate.py` writes this page from the tables in `kseg/findings/*_kinds.py` and
`kseg/doctor/kinds.py`: edit these.
"""
_TIERS = """## In remote tiers

Of tiers, `verify` finds the same, and what is wrong with their objects
([Read topics straight out of buckets](../how-to/buckets.md)). Nothing of this stops
a broker from starting.
"""
_OF_CLUSTERS = """## Of `kseg verify --cluster`

The disks of a cluster's brokers, taken together, against the cluster's metadata in one of them. In sync are the ISR
and, from 4.0 on, the eligible leader replicas: those that stopped when no other was left.
"""
_OWN = """## Of `kseg doctor` alone

The time that counts is the clock's, or that of a file that was written later; on a copy it is the newest time that a
broker wrote ([why](../how-to/retention.md#the-time-to-judge-by)). `--now` gives another. A time is taken for seconds,
microseconds or nanoseconds if it lies between 2001 and now in that unit.
"""
_LOG_LINES = """## Lines of a broker's log

A broker that refuses to start, or repairs something, logs lines like these. `…` and names in capitals stand for what
varies. `kseg doctor --broker-log server.log` looks for them
([what the broker's log says](../how-to/will-not-load.md#what-does-the-brokers-log-say)). The findings that a line may
tell of are in order, the likeliest first.
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
