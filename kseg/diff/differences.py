"""Differences between copies of a partition as values, and the compared sides."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import limit_to_contents, report_once
from kseg.cluster.metadata_copy import AdjacentMetadata, TopicIds
from kseg.cluster.remote_tier import find_tier
from kseg.cluster.replicas import left_out_of
from kseg.diff.cursor import FoundDamage
from kseg.errors import KsegError, OpenError, UsageError
from kseg.log.lineage import Rule
from kseg.log.partition import PartitionLog, RemoteTier
from kseg.log.selection import EVERY_PARTITION, PartitionChoice
from kseg.reading.batch import BatchHeader
from kseg.reading.other_files import refusal_of

MOST_RANGES = 10_000
"""The most ranges of offsets kept per epoch; later ones are counted."""


class DiffVerdict(StrEnum):
    """The relation of a partition's copies; if several apply, the last one."""

    IDENTICAL = "identical"
    """All have the same records at the same offsets, of the same leader epochs as far as they have any."""
    ONLY_HERE = "onlyHere"
    """A side that should have the partition lacks it; the existing copies have the same records."""
    MISSING = "missing"
    """The cluster has it, and no side does."""
    AHEAD = "ahead"
    """One continues after another's end, all else is the same."""
    HOLES = "holes"
    """One lacks records in its middle that another has, or has unreadable bytes."""
    DIVERGED = "diverged"
    """At an offset they have different records, or the same one of different leader epochs."""


@dataclass(slots=True)
class EpochRecords:
    """Records of a leader epoch, -1 for none: their number without control records, and their offsets.

    ranges: first and last offsets; at most MOST_RANGES. ranges_left_out: the number of further ranges.
    """

    leader_epoch: int
    records: int = 0
    control_records: int = 0
    ranges: list[tuple[int, int]] = field(default_factory=list)
    ranges_left_out: int = 0
    last_offset: int = -1

    def add(self, first: int, last: int, count: int, *, is_control: bool) -> None:
        """Add records from one offset to another; later calls have later offsets."""
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
        """Add records from one offset to another; later calls have later offsets."""
        if leader_epoch not in self._epochs:
            self._epochs[leader_epoch] = EpochRecords(leader_epoch)
        self._epochs[leader_epoch].add(first, last, count, is_control=is_control)

    @property
    def records(self) -> int:
        """The number of records without control records."""
        return sum(each.records for each in self._epochs.values())

    def by_epoch(self) -> tuple[EpochRecords, ...]:
        """Return the records of each epoch, the earliest first."""
        return tuple(each for _, each in sorted(self._epochs.items()))


class BatchAt(NamedTuple):
    """The batch of a copy, and its log."""

    path: Path
    log: Path
    header: BatchHeader


class Divergence(NamedTuple):
    """The first divergence of the copies: the offset, the largest leader epoch there, and the batches."""

    offset: int
    leader_epoch: int
    batches: tuple[BatchAt, ...]


class Truncation(NamedTuple):
    """A follower's truncation under a leader.

    to_offset: the resulting log end offset; None if unknown. rule: the broker's rule. lost: its records from there on
    that the leader doesn't have. kept: its earlier records that the leader doesn't have.
    """

    path: Path
    to_offset: int | None
    rule: Rule
    lost: tuple[EpochRecords, ...]
    kept: tuple[EpochRecords, ...]

    @property
    def lost_records(self) -> int:
        """The number of lost records, without control records."""
        return sum(each.records for each in self.lost)

    @property
    def kept_records(self) -> int:
        """The number of kept records that the leader doesn't have, without control records."""
        return sum(each.records for each in self.kept)


@dataclass(frozen=True, slots=True)
class ComparedCopy:
    """One copy, and its comparison's result.

    high_watermark: None if its log directory doesn't have it. last_epoch: the latest leader epoch, -1 if there is
    none. tier: the remote tier, whose records aren't compared; None if it has none. only_here: records that no other
    copy has. missing: the number of records that another copy has and this one lacks; superseded: further ones that
    compaction removes. unjudged: further ones of unknown status, since there are too many keys. damages: the first
    parts that weren't compared; damage_count: of all.
    """

    path: Path
    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None
    last_epoch: int
    tier: RemoteTier | None = None
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
    """The relation of a partition's copies, with their differences.

    name: of its directory. compared_from: the latest of the local start offsets; earlier offsets aren't compared.
    absent_from: sides that don't have it. first_difference: the first offset where not all have the same; None if all
    have. epochs_differ_from: the first offset where they have the same record, written in other leader epochs.
    lost_records: records that the leader lacks and followers truncate; each once, if several have it. lacks_leader:
    the leading side has no copy.
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


Refuse = Callable[[KsegError], None]


class Copies(NamedTuple):
    """A partition's copies: of each side at most one.

    name: of its directory. leader: the number of the leading copy, None without one. absent_from: sides without a
    copy. lacks_leader: the leading side is one of these. tiers: the remote tier of each copy, None if it has none.
    """

    name: str
    topic_id: str | None
    partitions: tuple[PartitionLog, ...]
    leader: int | None
    absent_from: tuple[Path, ...]
    lacks_leader: bool = False
    tiers: tuple[RemoteTier | None, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all logs."""
        return sum(partition.size for partition in self.partitions)


class _Copy(NamedTuple):
    side: int
    partition: PartitionLog
    topic_id: str | None
    tier: RemoteTier | None


class Sides:
    """The compared directories, each listed once.

    clusters: the contents of each; None if it can't be listed. whole: all of them together. beside: their metadata.
    """

    def __init__(self, paths: Iterable[Path], refuse: Refuse) -> None:
        """List the directories; `refuse` takes the errors of unlistable ones.

        Raises UsageError if there are fewer than two, or one is a file.
        """
        self.paths = tuple(paths)
        if len(self.paths) < 2:
            raise UsageError("specify at least two directories or archives to compare")
        self.clusters = [_list_side(path, refuse) for path in self.paths]
        self.whole = Cluster.join(each for each in self.clusters if each is not None)
        self.beside = AdjacentMetadata(cluster=self.whole)

    @property
    def are_single(self) -> bool:
        """Return True if all paths are partition directories."""
        return all(each is not None and bool(each.given_partitions) for each in self.clusters)


def _list_side(path: Path, refuse: Refuse) -> Cluster | None:
    if path.is_file():
        raise UsageError(refusal_of(path), path)
    cluster = Cluster([path], report_once(limit_to_contents(refuse)))
    try:
        return cluster if cluster.contents else None
    except OpenError as error:
        refuse(error)
        return None


def find_copies(
    sides: Sides,
    note: Callable[[str], None],
    choice: PartitionChoice = EVERY_PARTITION,
    *,
    leader: Path | None = None,
) -> list[Copies]:
    """Return the copies of all partitions of some sides, in the order of the first side.

    If a side has a partition twice, the answering copy counts, by the metadata of all sides; `note` takes the
    omissions. Directories of single partitions are compared whatever their names and topic ids are; otherwise `note`
    takes copies with two topic ids, which aren't compared.

    Raises:
        UsageError: the leader isn't one of the sides.
        NoSuchPartitionError: no chosen partition exists.
    """
    leading = None if leader is None else _leading_side(sides.paths, leader)
    found: dict[str, list[_Copy]] = {}
    for number, side in enumerate(sides.clusters):
        if side is None:
            continue
        topic_ids = TopicIds(side)  # a side may be another cluster's, or of another time
        for partition in _of_side(side, choice, sides.whole, note):
            name = partition.directory_name if partition.topic is None else f"{partition.topic}-{partition.partition}"
            key = next(iter(found), name) if sides.are_single else name
            copy = _Copy(number, partition, topic_ids.of(partition), find_tier(partition, sides.beside))
            found.setdefault(key, []).append(copy)
    if not found:
        sides.whole.require(choice)
    _tell_same(sides.paths, note)
    if sides.are_single:
        return [_copies(name, copies, sides.paths, leading) for name, copies in found.items()]
    return [each for name, copies in found.items() for each in _by_topic_id(name, copies, sides.paths, leading, note)]


def _of_side(side: Cluster, choice: PartitionChoice, whole: Cluster, note: Callable[[str], None]) -> list[PartitionLog]:
    """Return the partitions of a side, each once; note its other copies. whole: all sides, for its metadata."""
    of_any_side = choice._replace(allow_missing=True)
    if side.given_partitions:
        return list(side.directories(of_any_side))
    replicas = side.partitions(of_any_side, whole.metadata)
    for left_out in left_out_of(replicas):
        note(f"omitted: {left_out.text()}")
    return [each.best for each in replicas if each.copies]


def _tell_same(sides: Sequence[Path], note: Callable[[str], None]) -> None:
    """Report sides that are the same directory: a comparison with itself is hardly intended."""
    known: dict[Path, Path] = {}
    for side in sides:
        first = known.setdefault(side.resolve(), side)
        if first is not side:
            note(f"{first} and {side} are the same directory")


def _leading_side(sides: Sequence[Path], leader: Path) -> int:
    """Return the number of the side that the leader's directory is, or is in, or holds."""
    wanted = leader.absolute()
    places = [side.absolute() for side in sides]
    inside = [place for place in places if place in wanted.parents or wanted in place.parents]
    found = [wanted] if wanted in places else sorted(inside, key=lambda place: len(place.parts))
    if not found:
        raise UsageError("--leader isn't one of the compared directories", leader)
    return places.index(found[-1])


def _by_topic_id(
    name: str, copies: list[_Copy], sides: Sequence[Path], leading: int | None, note: Callable[[str], None]
) -> list[Copies]:
    """Return copies that can be of one topic: their ids are the same, or unknown."""
    ids = list(dict.fromkeys(copy.topic_id for copy in copies if copy.topic_id is not None))
    if len(ids) > 1:
        places = ", ".join(f"{copy.partition.path} {copy.topic_id or 'unknown'}" for copy in copies)
        note(f"{name}: kseg doesn't compare topics with different ids: {places}")
        groups = [
            [copy for copy in copies if copy.topic_id == each] for each in dict.fromkeys(c.topic_id for c in copies)
        ]
    else:
        groups = [copies]
    return [_copies(name, group, sides, leading) for group in groups]


def _copies(name: str, group: list[_Copy], sides: Sequence[Path], leading: int | None) -> Copies:
    existing_sides = {copy.side for copy in group}
    return Copies(
        name,
        next((copy.topic_id for copy in group if copy.topic_id is not None), None),
        tuple(copy.partition for copy in group),
        next((number for number, copy in enumerate(group) if copy.side == leading), None),
        tuple(side for number, side in enumerate(sides) if number not in existing_sides),
        leading is not None and leading not in existing_sides,
        tuple(copy.tier for copy in group),
    )
