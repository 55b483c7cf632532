"""Which directories of this process stand for partitions in remote tiers, and what is known of these."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kseg.tiered.lineage import Choice, Epochs
from kseg.tiered.object_store import ObjectStore, place_of
from kseg.tiered.private_keys import PrivateKeys
from kseg.tiered.remote_segment import RemotePartition, RemoteSegment


@dataclass(frozen=True, slots=True)
class PlacedPartition:
    """A partition in a remote tier that a directory stands for. lineage: its leader epochs, as far as known.

    local_start: where the local log begins that it was joined with; None without one.
    """

    remote: RemotePartition
    store: ObjectStore
    keys: PrivateKeys
    lineage: Epochs
    choices: tuple[Choice, ...]
    local_start: int | None = None

    @property
    def used(self) -> Sequence[Choice]:
        """The segments that are used."""
        return [choice for choice in self.choices if choice.is_used]

    def used_at(self, base_offset: int) -> Choice | None:
        """The segment that is used with a base offset; None if it is none of the tier's."""
        return next((choice for choice in self.used if choice.segment.base_offset == base_offset), None)

    def place_of(self, segment: RemoteSegment) -> str:
        """Where a segment's objects lie, without their suffixes."""
        return place_of(self.store, segment.key)


_PLACED: dict[str, PlacedPartition] = {}


def note_placed(directory: Path, partition: PlacedPartition) -> None:
    """From now on, a directory stands for a partition in a tier."""
    _PLACED[str(directory)] = partition


def forget_placed(directories: Iterable[Path]) -> None:
    """Forgets what directories stand for."""
    for directory in directories:
        _PLACED.pop(str(directory), None)


def has_placed() -> bool:
    """Whether any directory stands for a partition in a tier."""
    return bool(_PLACED)


def placed_at(directory: Path) -> PlacedPartition | None:
    """The partition in a tier that a directory stands for; None if it is an ordinary one."""
    return _PLACED.get(str(directory.absolute())) if _PLACED else None
