"""What copies of a partition differ in: values that a comparison adds up, and its result."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from kseg.log.diff.batch_cursor import FoundDamage
from kseg.log.diff.truncation import Rule
from kseg.reading.header import BatchHeader

MOST_RANGES = 10_000
"""Ranges of offsets of an epoch that are kept; what comes after them is counted."""


class DiffVerdict(StrEnum):
    """What copies of a partition are to each other; of several that are so, the last one."""

    IDENTICAL = "identical"
    "All have the same records at the same offsets, of the same leader epochs as far as they have any."
    ONLY_HERE = "onlyHere"
    "Not every side that should have the partition has it; the copies that are there have the same records."
    MISSING = "missing"
    "The cluster has it, and no side does."
    AHEAD = "ahead"
    "One goes on where another has ended, all else is the same."
    HOLES = "holes"
    "One lacks records in its middle that another has, or has bytes that can't be read."
    DIVERGED = "diverged"
    "At an offset they have different records, or the same one of different leader epochs."


@dataclass(slots=True)
class EpochRecords:
    """Records of a leader epoch, -1 for none: how many, control records apart, and their offsets.

    ranges: first and last offsets; at most MOST_RANGES. ranges_left_out: how many more there are.
    """

    leader_epoch: int
    records: int = 0
    control_records: int = 0
    ranges: list[tuple[int, int]] = field(default_factory=list)
    ranges_left_out: int = 0
    last_offset: int = -1

    def add(self, first: int, last: int, count: int, *, is_control: bool) -> None:
        """Adds records from one offset to another; later calls have later offsets."""
        if is_control:
            self.control_records += count
        else:
            self.records += count
        follows, self.last_offset = first == self.last_offset + 1, last
        if follows and not self.ranges_left_out and self.ranges:
            self.ranges[-1] = self.ranges[-1][0], last
        elif len(self.ranges) < MOST_RANGES:
            self.ranges.append((first, last))
        elif not follows:
            self.ranges_left_out += 1


class RecordsByEpoch:
    """Records, counted by the leader epochs of their batches."""

    def __init__(self) -> None:
        self._epochs: dict[int, EpochRecords] = {}

    def add(self, leader_epoch: int, first: int, last: int, count: int, *, is_control: bool) -> None:
        """Adds records from one offset to another; later calls have later offsets."""
        if leader_epoch not in self._epochs:
            self._epochs[leader_epoch] = EpochRecords(leader_epoch)
        self._epochs[leader_epoch].add(first, last, count, is_control=is_control)

    @property
    def records(self) -> int:
        """How many there are, without control records."""
        return sum(each.records for each in self._epochs.values())

    def by_epoch(self) -> tuple[EpochRecords, ...]:
        """Those of each epoch, the earliest first."""
        return tuple(each for _, each in sorted(self._epochs.items()))


class BatchAt(NamedTuple):
    """The batch of a copy, and the log that it is in."""

    path: Path
    log: Path
    header: BatchHeader


class Divergence(NamedTuple):
    """Where the copies first diverge: the offset, the largest leader epoch there, and the batches."""

    offset: int
    leader_epoch: int
    batches: tuple[BatchAt, ...]


class Truncation(NamedTuple):
    """What a follower would cut off under a leader.

    to_offset: the log end offset that it gets; None if that can't be known. rule: by what the broker decides. lost: its
    records from there on that the leader doesn't have. kept: those before it that the leader doesn't have.
    """

    path: Path
    to_offset: int | None
    rule: Rule
    lost: tuple[EpochRecords, ...]
    kept: tuple[EpochRecords, ...]

    @property
    def lost_records(self) -> int:
        """Records that are lost, without control records."""
        return sum(each.records for each in self.lost)

    @property
    def kept_records(self) -> int:
        """Records that are kept and the leader doesn't have, without control records."""
        return sum(each.records for each in self.kept)


@dataclass(frozen=True, slots=True)
class ComparedCopy:
    """One copy, and what became of its comparison.

    high_watermark: None if its log directory doesn't say. last_epoch: the latest leader epoch, -1 if there is none.
    only_here: records that no other copy has. missing: how many records it lacks that another one has; superseded: how
    many more that compaction takes. unjudged: how many more where that isn't known, since there are too many keys.
    damages: what wasn't compared, the first ones; damage_count: of all.
    """

    path: Path
    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None
    last_epoch: int
    only_here: tuple[EpochRecords, ...] = ()
    missing: int = 0
    superseded: int = 0
    unjudged: int = 0
    damages: tuple[FoundDamage, ...] = ()
    damage_count: int = 0

    @property
    def records(self) -> int:
        """Records that no other copy has, without control records."""
        return sum(each.records for each in self.only_here)


@dataclass(frozen=True, slots=True)
class PartitionDiff:
    """What copies of a partition are to each other.

    name: of its directory. compared_from: the latest of the log start offsets; what is below isn't compared.
    absent_from: sides that don't have it. first_difference: the first offset where not all have the same; None if all
    have. epochs_differ_from: the first offset where they have the same record, written in other leader epochs.
    lost_records: records that the leader lacks and followers cut off; each once, if several have it. lacks_leader:
    whether the side that leads has no copy.
    """

    name: str
    topic: str | None
    partition: int | None
    topic_id: str | None
    verdict: DiffVerdict
    copies: tuple[ComparedCopy, ...]
    absent_from: tuple[Path, ...]
    compared_from: int
    first_difference: int | None
    divergence: Divergence | None
    epochs_differ_from: int | None
    truncations: Sequence[Truncation] = ()
    lost_records: int = 0
    leader: Path | None = None
    lacks_leader: bool = False
