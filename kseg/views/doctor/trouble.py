"""What the doctor finds: single troubles, disks, topics, and all of them together."""

from dataclasses import dataclass
from pathlib import Path

from kseg.findings.finding_kinds import FindingKind, Severity
from kseg.views.doctor.kinds import KINDS, URGENCY


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that is wrong, or worth knowing.

    `file` and `position` (bytes in it) say where, `first_offset` and `last_offset` which offsets; `sentence` says what,
    with numbers. size: bytes that it is about. held_back: offsets that read_committed consumers can't reach. variant:
    the ending of a name that is left over. command: the line to run next; None if nothing is to be done.
    """

    id: str
    file: Path
    sentence: str
    position: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    topic: str | None = None
    partition: int | None = None
    producer_id: int | None = None
    size: int | None = None
    held_back: int | None = None
    variant: str | None = None
    command: str | None = None

    @property
    def kind(self) -> FindingKind:
        """The meaning of its id."""
        return KINDS[self.id]

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return KINDS[self.id].severity


def badness(trouble: Trouble) -> tuple[int, int, int, str, int]:
    """What to sort troubles by, the worst first: severity, urgency, how much it is about; then by place."""
    amount = trouble.size or trouble.held_back or 0
    place = -1 if trouble.position is None else trouble.position
    return trouble.severity.rank, URGENCY[trouble.id], -amount, str(trouble.file), place


@dataclass(frozen=True, slots=True)
class Disk:
    """A file system with log directories: bytes, and how many of them a process of the user may still write."""

    log_dirs: tuple[Path, ...]
    size: int
    available: int


@dataclass(slots=True)
class TopicUse:
    """A topic's logs in use: bytes of them, and of those that retention would delete now."""

    topic: str
    partitions: int = 0
    segments: int = 0
    size: int = 0
    due: int = 0


@dataclass(frozen=True, slots=True)
class CheckUp:
    """All that is known, the worst and the largest first.

    size: bytes of all logs; read: of those that were read whole. is_quick: names, small files and ends of logs alone
    were read.
    """

    troubles: tuple[Trouble, ...]
    disks: tuple[Disk, ...]
    topics: tuple[TopicUse, ...]
    partitions: int
    size: int
    read: int
    is_quick: bool

    def count(self, severity: Severity) -> int:
        """How many troubles are of a severity."""
        return sum(trouble.severity is severity for trouble in self.troubles)

    @property
    def is_well(self) -> bool:
        """Whether there are neither errors nor warnings."""
        return all(trouble.severity is Severity.NOTE for trouble in self.troubles)
