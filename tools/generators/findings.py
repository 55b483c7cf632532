"""docs/findings.md: what `kseg verify` finds, from its table."""

from kseg.log.verify.finding_kinds import FINDINGS, Severity

INTRODUCTION = """# What `kseg verify` finds

Errors and warnings make the exit status 1. Notes don't: they are counted, and `-v` lists them. An entry of this page is
printed by `kseg verify --explain ID`.

Each next step was tried on damaged disks of a 4.3.1 broker, after a clean stop and after a kill
(`tests/log/test_advice_kafka.py`): the broker starts, and `kseg verify` then finds nothing but holes that no replica
fills.

`python tools/generate.py` writes this page from the table in `kseg/log/verify/finding_kinds.py`: edit that.
"""


def page() -> str:
    """All findings, by severity."""
    return "\n".join([INTRODUCTION, *(section(severity) for severity in Severity)])


def section(severity: Severity) -> str:
    """The findings of a severity, a row each."""
    rows = [
        f"| `{name}` | {kind.meaning} | {kind.risk} | {kind.next_step} |\n"
        for name, kind in FINDINGS.items()
        if kind.severity is severity
    ]
    return f"## {severity.capitalize()}s\n\n| id | meaning | risk | next step |\n|---|---|---|---|\n{''.join(rows)}"
