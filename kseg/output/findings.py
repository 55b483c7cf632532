"""Findings as lines of text, and as objects of `-o json`."""

from collections import Counter

from kseg.log.findings import Finding, Severity


def finding_line(finding: Finding) -> str:
    """Where, how bad, what."""
    place = "" if finding.position is None else f" at position {finding.position}:"
    return f"{finding.file}:{place} {finding.severity} {finding.id}: {finding.sentence}"


def finding_object(finding: Finding) -> dict[str, object]:
    """A finding as JSON has it."""
    return {
        "type": "finding",
        "id": finding.id,
        "severity": str(finding.severity),
        "file": str(finding.file),
        "position": finding.position,
        "firstOffset": finding.first_offset,
        "lastOffset": finding.last_offset,
        "sentence": finding.sentence,
    }


def counts_text(counts: Counter[Severity], partition_count: int) -> str:
    """How many findings of each severity there were."""
    told = [f"{counts[severity]} {severity}{'s' * (counts[severity] != 1)}" for severity in Severity]
    return f"{', '.join(told)} in {partition_count} partition{'s' * (partition_count != 1)}"


def summary_object(counts: Counter[Severity], partition_count: int, size: int) -> dict[str, object]:
    """The last object: whether all is well, and the counts."""
    is_well = not counts[Severity.ERROR] and not counts[Severity.WARNING]
    return {
        "type": "summary",
        "result": "ok" if is_well else "findings",
        "partitions": partition_count,
        "bytes": size,
        **{f"{severity}s": counts[severity] for severity in Severity},
    }
