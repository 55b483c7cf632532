"""What is compared with what: the sides that were given, and the copies of each partition on them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from kseg.errors import KsegError, OpenError, UsageError
from kseg.log.partition.log_dir import directory_at, partitions_at, require_choice
from kseg.log.partition.partition_choice import EVERY_PARTITION, PartitionChoice
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.replicas import one_of_each, topic_id_of

Refuse = Callable[[KsegError], None]


class Copies(NamedTuple):
    """A partition's copies: of each side at most one.

    name: of its directory. leader: which of them leads, None if none does. absent_from: sides that have none.
    lacks_leader: whether the side that leads is one of these.
    """

    name: str
    topic_id: str | None
    partitions: tuple[PartitionLog, ...]
    leader: int | None
    absent_from: tuple[Path, ...]
    lacks_leader: bool = False

    @property
    def size(self) -> int:
        """Bytes of all logs."""
        return sum(partition.size for partition in self.partitions)


class _Copy(NamedTuple):
    side: int
    partition: PartitionLog
    topic_id: str | None


def find_copies(
    sides: Sequence[Path],
    refuse: Refuse,
    note: Callable[[str], None],
    choice: PartitionChoice = EVERY_PARTITION,
    *,
    leader: Path | None = None,
) -> list[Copies]:
    """The copies of all partitions of some sides, in the order of the first side.

    Of a side that has a partition twice the directory in use counts, and the longest log. Directories of single
    partitions are compared whatever their names and topic ids are; otherwise copies with two topic ids are told to
    `note`, and aren't compared.

    Raises:
        UsageError: there are fewer than two sides, one is a file, or the leader isn't one of them.
        NoSuchPartitionError: no partition that is meant is there.
    """
    if len(sides) < 2:
        raise UsageError("give at least two directories or archives to compare")
    leading = None if leader is None else _leading_side(sides, leader)
    are_single = all(_is_single(side) for side in sides)
    found: dict[str, list[_Copy]] = {}
    read = 0
    for number, side in enumerate(sides):
        try:
            partitions = _of_side(side, refuse, choice)
        except OpenError as error:
            refuse(error)
            continue
        read += 1
        for partition in partitions:
            name = partition.directory_name if partition.topic is None else f"{partition.topic}-{partition.partition}"
            key = next(iter(found), name) if are_single else name
            found.setdefault(key, []).append(_Copy(number, partition, topic_id_of(partition)))
    if not found and read:
        require_choice(sides, choice)
    _tell_same(sides, note)
    if are_single:
        return [_copies(name, copies, sides, leading) for name, copies in found.items()]
    return [each for name, copies in found.items() for each in _by_topic_id(name, copies, sides, leading, note)]


def _of_side(side: Path, refuse: Refuse, choice: PartitionChoice) -> list[PartitionLog]:
    """The partitions of a side, each once; in a log directory those that are in use."""
    if side.is_file():
        raise UsageError("is a file: whole partitions are compared, give their directories", side)
    found = list(partitions_at(side, refuse, choice))
    if _is_single(side):
        return found
    return one_of_each(partition for partition in found if partition.state is None)


def _tell_same(sides: Sequence[Path], note: Callable[[str], None]) -> None:
    """Says which sides are the same directory: whoever compares it with itself hardly means to."""
    known: dict[Path, Path] = {}
    for side in sides:
        first = known.setdefault(side.resolve(), side)
        if first is not side:
            note(f"{first} and {side} are the same directory")


def _is_single(side: Path) -> bool:
    try:
        return directory_at(side)[1]
    except OpenError:
        return False


def _leading_side(sides: Sequence[Path], leader: Path) -> int:
    """The side that the leader's directory is, or else is in, or holds."""
    wanted = leader.absolute()
    places = [side.absolute() for side in sides]
    inside = [place for place in places if place in wanted.parents or wanted in place.parents]
    found = [wanted] if wanted in places else sorted(inside, key=lambda place: len(place.parts))
    if not found:
        raise UsageError("--leader is none of the directories that are compared", leader)
    return places.index(found[-1])


def _by_topic_id(
    name: str, copies: list[_Copy], sides: Sequence[Path], leading: int | None, note: Callable[[str], None]
) -> list[Copies]:
    """Copies that can be of one topic: those whose ids are the same, or aren't known."""
    ids = list(dict.fromkeys(copy.topic_id for copy in copies if copy.topic_id is not None))
    if len(ids) > 1:
        places = ", ".join(f"{copy.partition.path} {copy.topic_id or 'unknown'}" for copy in copies)
        note(f"{name}: topics of different ids aren't compared: {places}")
        groups = [
            [copy for copy in copies if copy.topic_id == each] for each in dict.fromkeys(c.topic_id for c in copies)
        ]
    else:
        groups = [copies]
    return [_copies(name, group, sides, leading) for group in groups]


def _copies(name: str, group: list[_Copy], sides: Sequence[Path], leading: int | None) -> Copies:
    there = {copy.side for copy in group}
    return Copies(
        name,
        next((copy.topic_id for copy in group if copy.topic_id is not None), None),
        tuple(copy.partition for copy in group),
        next((number for number, copy in enumerate(group) if copy.side == leading), None),
        tuple(side for number, side in enumerate(sides) if number not in there),
        leading is not None and leading not in there,
    )
