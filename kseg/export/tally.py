"""The accounts of an order: each offset is a record, a gap that compaction left, or lost to damage."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from kseg.export.settings import OffsetRange
from kseg.findings.finding_kinds import status_of
from kseg.log.select.withheld import Withheld


@dataclass(slots=True)
class LostOffsets:
    """Damage, and the offsets that are lost to it: from `first` to below `end`; `end` None if that can't be known."""

    segment: str
    position: int
    size: int
    kind: str
    detail: str
    first: int | None
    end: int | None = None

    @property
    def count(self) -> int | None:
        """Offsets lost; None if that can't be known."""
        return None if self.first is None or self.end is None else max(self.end - self.first, 0)

    @property
    def is_harmless(self) -> bool:
        """Whether it is the unwritten end of a preallocated file."""
        return not status_of(self.kind)


MOST_EPOCHS = 1000
"""Leader epochs that are noted of an order."""


@dataclass(slots=True)
class Tally:
    """Counts of records and offsets.

    read: intact records, of whatever kind, each with an offset of its own; of these written, and left out: control,
    aborted, superseded (not the latest of their key), unselected (not asked for). passed_over: intact records besides,
    whose offset another one has. gaps: offsets that no record has, as compaction leaves them; holes: others without a
    record, in a log whose offsets don't rise. lost: offsets known to be damage's. missed: offsets, the first ones, that
    the log no longer had when it was read. disordered: records whose offset isn't above all before. undecoded: keys and
    values written whose text couldn't be had. without_time: records written whose time a table can't hold.
    first_offset, next_offset: what was looked at, the second not included; None if nothing was. open_from: where the
    oldest open transaction begins, if reading ended there; withheld: what it holds back. notes: which file of the
    partition wasn't believed about its transactions, and what isn't committed yet. epochs: leader epochs of the batches
    that were met, each with the offset from which on; empty if there were many, or if they don't rise.
    """

    read: int = 0
    written: int = 0
    control: int = 0
    aborted: int = 0
    superseded: int = 0
    unselected: int = 0
    passed_over: int = 0
    gaps: int = 0
    lost: int = 0
    missed: int = 0
    disordered: int = 0
    undecoded: int = 0
    without_time: int = 0
    first_offset: int | None = None
    next_offset: int | None = None
    open_from: int | None = None
    withheld: Withheld | None = None
    losses: list[LostOffsets] = field(default_factory=list)
    holes: list[OffsetRange] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)

    def unexplained(self) -> int:
        """Offsets and records that the counts don't account for; 0 if all is well."""
        span = 0 if self.next_offset is None or self.first_offset is None else self.next_offset - self.first_offset
        holes = sum((hole.end or 0) - (hole.first or 0) for hole in self.holes)
        offsets = span - self.read - self.gaps - holes - self.lost - self.missed
        left_out = self.control + self.aborted + self.superseded + self.unselected
        records = self.read - self.written - left_out
        return abs(offsets) + abs(records)

    def note_epoch(self, epoch: int, offset: int) -> None:
        """Takes the leader epoch of the next batch, and its first offset."""
        if not self.epochs or self.epochs[-1][0] != epoch:
            self.epochs.append((epoch, offset))

    def check_epochs(self) -> None:
        """Forgets leader epochs that tell nothing: too many, or not as those of one log that was only appended to."""
        if len(self.epochs) > MOST_EPOCHS or any(later <= earlier for earlier, later in pairwise(self.epochs)):
            self.epochs.clear()

    def pass_to(self, offset: int, *, is_lost: bool = False) -> None:
        """Accounts for the offsets before `offset` that no record had."""
        if self.next_offset is None:
            self.first_offset = self.next_offset = offset
        elif offset > self.next_offset:
            if is_lost:
                self.lost += offset - self.next_offset
            else:
                self.gaps += offset - self.next_offset
            self.next_offset = offset

    def to_json(self) -> dict[str, Any]:
        """The counts as JSON's values."""
        members = asdict(self)
        members["epochs"] = list(map(list, self.epochs))
        members["holes"] = [[hole.first, hole.end] for hole in self.holes]
        if self.withheld is not None:
            members["withheld"] = self.withheld._asdict()
        return members

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "Tally":
        """The counts of `to_json`."""
        withheld = members.get("withheld")
        values = {
            "losses": [LostOffsets(**loss) for loss in members["losses"]],
            "holes": [OffsetRange(*hole) for hole in members.get("holes", ())],
            "epochs": [(epoch, first) for epoch, first in members.get("epochs", ())],
            "withheld": None if withheld is None else Withheld(**withheld),
        }
        return cls(**{**members, **values})
