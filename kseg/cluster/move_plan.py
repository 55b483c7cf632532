"""Plans that move partitions between a broker's log directories until these are equally full."""

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import META_PROPERTIES, LogDir, Refuse, limit_to_contents
from kseg.cluster.metadata_copy import read_cluster_metadata
from kseg.cluster.model import ClusterMetadata, ClusterPartition
from kseg.cluster.replicas import Copy, CopyStatus
from kseg.errors import OpenError, UsageError, plural
from kseg.log.partition import METADATA_TOPIC, PartitionLog
from kseg.log.selection import EVERY_PARTITION, PartitionChoice

_STALE = "of a topic that was deleted, or created again since"
LEAST_GAIN = 0.1
"""The least gain of a move per byte: a large move that levels little isn't worth the disks' work."""


class Load(NamedTuple):
    """A movable load of a directory: its size first, so that loads are sorted by it."""

    size: int
    name: tuple[str, int]


@dataclass(slots=True)
class Shelf:
    """A directory while moves are planned.

    size: its bytes, including immovable loads. weight: its share of the level: 1, or its disk's capacity. room:
    remaining bytes, None if unknown. is_target: it may receive loads. movable: sorted.
    """

    size: int
    weight: int = 1
    room: int | None = None
    is_target: bool = True
    movable: list[Load] = field(default_factory=list)

    @property
    def fill(self) -> float:
        """The fill level relative to the weight."""
        return self.size / self.weight


class Step(NamedTuple):
    """A move from one shelf to another, given by their indexes in the list."""

    load: Load
    source: int
    target: int


def level(shelves: list[Shelf], within: float) -> Iterator[Step]:
    """Move loads until no shelf exceeds the target level by more than the tolerance, or no move is worthwhile.

    Yield the moves.

    Each load is moved at most once, from the fullest shelf that has one to the emptiest with room for it. Changes the
    shelves.
    """
    bound = sum(shelf.size for shelf in shelves) / max(sum(shelf.weight for shelf in shelves), 1) * (1 + within)
    while step := _next_step(shelves, bound):
        source, target = shelves[step.source], shelves[step.target]
        source.movable.remove(step.load)
        source.size -= step.load.size
        target.size += step.load.size
        if target.room is not None:
            target.room -= step.load.size
        yield step


def _next_step(shelves: list[Shelf], bound: float) -> Step | None:
    by_fill = sorted(range(len(shelves)), key=lambda number: shelves[number].fill)
    targets = [number for number in by_fill if shelves[number].is_target]
    for source in reversed(by_fill):
        if shelves[source].fill <= bound:
            return None
        for target in targets:
            load = _best_load(shelves[source], shelves[target])
            if load is not None:
                return Step(load, source, target)
    return None


def _best_load(source: Shelf, target: Shelf) -> Load | None:
    """Return the most worthwhile load to move, or None if there is none."""
    gap = source.fill - target.fill
    room = gap * target.weight if target.room is None else min(gap * target.weight, target.room + 1)
    ideal = min(gap * source.weight * target.weight / (source.weight + target.weight), room)
    near = bisect_left(source.movable, (ideal,))
    sizes = {load.size for load in source.movable[max(near - 1, 0) : near + 1] if 0 < load.size < room}
    worth = {size: _gain(source, target, size) - LEAST_GAIN * size for size in sizes}
    best = max(sorted(worth), key=lambda size: worth[size], default=None)
    return None if best is None or worth[best] <= 0 else source.movable[bisect_left(source.movable, (best,))]


def _gain(source: Shelf, target: Shelf, size: int) -> float:
    """Return the bytes by which the fuller of two shelves becomes less full, relative to the source's weight."""
    fuller = max((source.size - size) / source.weight, (target.size + size) / target.weight)
    return (source.fill - fuller) * source.weight


Key = tuple[str, int]
"""Topic and number."""


class Move(NamedTuple):
    """A move of a replica to another log directory of the same broker. `size` is in bytes."""

    partition: ClusterPartition
    size: int
    source: Path
    target: Path


class Fill(NamedTuple):
    """A log directory before and after the moves, in bytes of logs; `available`: of its file system, if known."""

    path: Path
    before: int
    after: int
    partitions: int
    available: int | None


@dataclass(frozen=True, slots=True)
class MovePlan:
    """The partitions to move, the expected result, and notes about immovable partitions."""

    broker_id: int
    moves: tuple[Move, ...]
    fills: tuple[Fill, ...]
    notes: tuple[str, ...]

    def reassignment(self) -> dict[str, object]:
        """Return the object that `kafka-reassign-partitions.sh --reassignment-json-file` takes."""
        return {"version": 1, "partitions": [self._reassign(move) for move in self.moves]}

    def _reassign(self, move: Move) -> dict[str, object]:
        replicas = move.partition.replicas
        places = [str(move.target) if replica == self.broker_id else "any" for replica in replicas]
        own = {"topic": move.partition.topic, "partition": move.partition.partition}
        return {**own, "replicas": list(replicas), "log_dirs": places}


class MoveSettings(NamedTuple):
    """Settings of a plan: `within` a share of the level, only some partitions, by the disks' capacities or by bytes."""

    within: float = 0.1
    choice: PartitionChoice = EVERY_PARTITION
    by_capacity: bool = False


def plan_moves(
    paths: Sequence[Path],
    settings: MoveSettings | None = None,
    cluster_metadata: Path | None = None,
    refuse: Refuse | None = None,
) -> MovePlan:
    """Plan how to balance the log directories of a broker.

    Args:
        paths: log directories, or parents of them.
        settings: the plan's settings.
        cluster_metadata: the place of the cluster's metadata; None: in one of the log directories.
        refuse: takes the errors of partitions that can't be listed; they stay in place.

    Raises:
        OpenError: a path can't be opened, or there are no metadata.
        UsageError: the directories aren't all of one broker, or there is only one, or the cluster hasn't the topic.
    """
    options = settings or MoveSettings()
    cluster = Cluster(paths, None if refuse is None else limit_to_contents(refuse))
    broker_id = _only_broker(cluster)
    found = cluster.own_metadata if cluster_metadata is None else read_cluster_metadata(cluster_metadata)
    if found is None:
        raise OpenError(f"has no readable {METADATA_TOPIC}; specify its place with --cluster-metadata", paths[0])
    options.choice.require_topics([topic.name for topic in found.topics])
    contents = _contents_of(cluster, found)
    reasons = _Reasons(found, broker_id, options.choice, contents)
    shelves = [_shelf(each, reasons, by_capacity=options.by_capacity) for each in contents]
    before = [shelf.size for shelf in shelves]
    steps = [*level(shelves, options.within)]
    moves = (
        Move(reasons.known[step.load.name], step.load.size, contents[step.source].path, contents[step.target].path)
        for step in steps
    )
    fills = (
        Fill(each.path, size, shelf.size, len(each.sizes), each.available)
        for each, size, shelf in zip(contents, before, shelves, strict=True)
    )
    notes = (*reasons.notes(), *_about_to_be_freed(contents), *_same_disk(contents))
    return MovePlan(
        broker_id, tuple(sorted(moves, key=lambda move: (move.source, move.partition))), tuple(fills), notes
    )


def _only_broker(cluster: Cluster) -> int:
    """Return the only broker of all log directories, of which there must be at least two."""
    for found in cluster.contents:
        if found.is_partition:
            raise UsageError(
                "isn't a broker's log directory; specify all log directories of the broker, at least two", found.path
            )
    ids = {log_dir.identity.broker for log_dir in cluster.log_dirs}
    if None in ids:
        path = next(each.path for each in cluster.log_dirs if each.identity.broker is None)
        raise UsageError(f"{META_PROPERTIES} has no broker id", path)
    if len(ids) > 1:
        raise UsageError(
            f"these log directories belong to brokers"
            f" {', '.join(map(str, sorted(filter(None, ids))))}; specify the log directories of one broker"
        )
    if len(cluster.log_dirs) < 2:
        raise UsageError(
            "is only one log directory; specify all log directories of the broker, at least two",
            cluster.log_dirs[0].path,
        )
    (broker_id,) = ids
    assert broker_id is not None
    return broker_id


class _Contents:
    """A log directory: the sizes of its partitions in use, of moves in progress, and of everything else that stays.

    twice: partitions that its broker has in another directory too. stale: partitions of a deleted topic.
    deleted_sizes: of directories that the broker is about to delete.
    """

    def __init__(self, log_dir: LogDir) -> None:
        self.path = Path(os.path.abspath(log_dir.path))  # noqa: PTH100  like the broker: links stay
        self.directory_id = log_dir.identity.directory_id
        self.sizes: dict[Key, int] = {}
        self.coming: dict[Key, int] = {}
        self.twice: set[Key] = set()
        self.stale: set[Key] = set()
        self.other_size = 0
        self.deleted_sizes: list[int] = []
        self.device, self.capacity, self.available = _file_system(self.path)

    def add(self, key: Key, copy: Copy[PartitionLog]) -> None:
        """Add a directory by its role in its partition; one that is about to be deleted takes no room."""
        is_own = copy.place.name is not None and key[0] != METADATA_TOPIC
        match copy.status:
            case CopyStatus.DELETED:
                self.deleted_sizes.append(copy.place.size)
                return
            case CopyStatus.CURRENT if is_own:
                self.sizes[key] = copy.place.size
                return
            case CopyStatus.FUTURE if is_own:
                self.coming[key] = copy.place.size
                return
            case CopyStatus.DUPLICATE:
                self.twice.add(key)
            case CopyStatus.STALE:
                self.stale.add(key)
        self.other_size += copy.place.size


def _contents_of(cluster: Cluster, metadata: ClusterMetadata) -> list[_Contents]:
    by_path = {log_dir.path.absolute(): _Contents(log_dir) for log_dir in cluster.log_dirs}
    for each in cluster.partitions(metadata=lambda _: metadata):
        for copy in (*each.copies, *each.set_aside):
            by_path[copy.place.log_dir].add((each.topic, each.partition or 0), copy)
    return [*by_path.values()]


def _file_system(path: Path) -> tuple[int | None, int | None, int | None]:
    """Return the number of a file system, its total bytes, and its available bytes, or None if unknown."""
    try:
        device, status = path.stat().st_dev, os.statvfs(path)
    except (OSError, AttributeError):
        return None, None, None
    return device, status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize


class _Reasons:
    """The reasons why partitions or directories can't be included in the plan."""

    def __init__(
        self, found: ClusterMetadata, broker_id: int, choice: PartitionChoice, contents: Iterable[_Contents]
    ) -> None:
        own = [each for each in found.partitions if broker_id in each.replicas]
        self.known = {(each.topic, each.partition): each for each in own}
        self._choice = choice
        self._moving = {key for each in contents for key in each.coming}
        self._twice = {key for each in contents for key in each.twice}
        self._counts = Counter(_STALE for each in contents for key in each.stale if choice.takes(*key))
        brokers = [each for each in found.brokers if each.broker_id == broker_id]
        self._registered_ids = {log_dir for each in brokers for log_dir in each.log_dirs}
        self._cordoned_ids = {log_dir for each in brokers for log_dir in each.cordoned_log_dirs}
        self._closed_notes: list[str] = []

    def is_movable(self, key: Key) -> bool:
        """Return True if a partition can be moved. If not, the reason is recorded."""
        partition = self.known.get(key)
        if not self._choice.takes(*key):
            return False
        reason = (
            "in two log directories"
            if key in self._twice
            else "moving already"
            if key in self._moving
            else "not this broker's, by the metadata"
            if partition is None
            else "being reassigned"
            if partition.adding_replicas or partition.removing_replicas
            else None
        )
        if reason is not None:
            self._counts[reason] += 1
        return reason is None

    def is_target(self, contents: _Contents) -> bool:
        """Return True if partitions may be moved into a directory; note the reason if not."""
        if contents.directory_id in self._cordoned_ids:
            self._closed_notes.append(f"{contents.path} is cordoned, so no partition is moved into it")
        elif self._registered_ids and contents.directory_id not in self._registered_ids:
            self._closed_notes.append(
                f"{contents.path} isn't one of the broker's log.dirs, so no partition is moved into it"
            )
        else:
            return True
        return False

    def is_leaving(self, key: Key, contents: _Contents) -> bool:
        """Return True if a move removes a partition from a directory soon."""
        return key in self._moving and key not in contents.coming

    def notes(self) -> Iterator[str]:
        yield from self._closed_notes
        for reason, count in sorted(self._counts.items()):
            yield f"partitions not moved, since they are {reason}: {count}"


def _shelf(contents: _Contents, reasons: _Reasons, *, by_capacity: bool) -> Shelf:
    staying = {key: size for key, size in contents.sizes.items() if not reasons.is_leaving(key, contents)}
    movable = sorted(Load(size, key) for key, size in contents.sizes.items() if reasons.is_movable(key))
    size = sum(staying.values()) + sum(contents.coming.values()) + contents.other_size
    weight = contents.capacity if by_capacity and contents.capacity else 1
    return Shelf(size, weight, contents.available, reasons.is_target(contents), movable)


def _about_to_be_freed(contents: Sequence[_Contents]) -> Iterator[str]:
    sizes = [size for each in contents for size in each.deleted_sizes]
    if sizes:
        those = f"{plural(len(sizes), 'directory', 'directories')} of {plural(sum(sizes), 'byte')}"
        yield f"not counted, since the broker is about to delete them (-delete): {those}"


def _same_disk(contents: Sequence[_Contents]) -> Iterator[str]:
    devices = Counter(each.device for each in contents if each.device is not None)
    for device, count in devices.items():
        if count > 1:
            shared = ", ".join(str(each.path) for each in contents if each.device == device)
            yield f"moves between these free no space, since they are on one file system: {shared}"
