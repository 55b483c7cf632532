"""What a kind of findings is: how bad it is, what it means, what may happen, and what to do."""

from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """How bad a finding is; notes don't change the exit status."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """What to sort by, the worst first."""
        return list(Severity).index(self)


class FindingKind(NamedTuple):
    """One kind of finding: what it means, what may happen, and what to do."""

    severity: Severity
    meaning: str
    risk: str
    next_step: str
