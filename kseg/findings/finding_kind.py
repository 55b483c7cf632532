"""Kinds of findings: severity, meaning, risk, and advice."""

from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """The severity of a finding. Notes don't affect the exit status."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """The sort key, most severe first."""
        return list(Severity).index(self)


class FindingKind(NamedTuple):
    """One kind of finding: its meaning, risk, and advice."""

    severity: Severity
    meaning: str
    risk: str
    next_step: str
