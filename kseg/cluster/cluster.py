"""The part of a cluster at the given paths: log directories, the metadata, and each partition's replicas."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from kseg.cluster.directories import (
    MOST_LEVELS,
    DirectoryIdentity,
    FoundAt,
    LogDir,
    NoPartitionError,
    Refuse,
    find_at,
    identity_of,
    pass_over,
)
from kseg.cluster.joined_log import whole_log
from kseg.cluster.replicas import (
    Candidate,
    GiveMetadata,
    History,
    LeftOut,
    PartitionReplicas,
    alone,
    find_set_aside,
    find_topic_id,
    history_at,
    history_of,
    join_replicas,
    left_out_of,
    only_cluster,
    topic_id_at,
)
from kseg.errors import FileError, OpenError, UsageError, plural
from kseg.formats.file_names import parse_partition_directory
from kseg.log.partition import METADATA_TOPIC, PartitionLog
from kseg.log.selection import EVERY_PARTITION, PartitionChoice, own_name
from kseg.system.placed_path import as_given, as_path, is_far

if TYPE_CHECKING:
    from kseg.cluster.model import ClusterMetadata

Place = TypeVar("Place")


class Cluster:
    """The part of a cluster that is found at the given paths. Contents are read on demand.

    A path is a partition's directory, a Kafka file in it, a log directory, or a parent of one, up to MOST_LEVELS.
    Partitions are chosen after everything was found: a choice changes no answer.
    """

    def __init__(
        self, paths: Iterable[str | os.PathLike[str]], refuse: Refuse | None = None, levels: int = MOST_LEVELS
    ) -> None:
        """List nothing yet.

        Args:
            paths: the paths to search.
            refuse: called with the errors of paths, and of directories below them, that can't be listed; None raises
                them.
            levels: the depth of the search below a path; 0 for paths that are log directories themselves.
        """
        self._levels = levels
        self.paths = [as_path(path) for path in paths]
        self._refuse = refuse
        self._metadata: dict[str | None, ClusterMetadata | None] = {}

    @property
    def is_far(self) -> bool:
        """Return True if any part of the cluster is in a store, where most of the time is spent waiting."""
        return any(map(is_far, self.paths))

    @classmethod
    def join(cls, parts: Iterable["Cluster"]) -> "Cluster":
        """Merge several parts of a cluster without listing them again."""
        return cls.of(found for each in parts for found in each.contents)

    @classmethod
    def of(cls, found: Iterable[FoundAt]) -> "Cluster":
        """Create a cluster from paths that have already been searched. Nothing is listed again."""
        found = tuple(found)
        whole = cls((each.path for each in found), pass_over)
        whole.contents = found
        return whole

    @cached_property
    def contents(self) -> tuple[FoundAt, ...]:
        """Return the contents of all paths. Raises OpenError if a path can't be listed and there is no `refuse`."""
        found = [each for each in map(self._find_contents, self.paths) if each is not None]
        if found and not any(each.has_partitions for each in found):
            self._refuse_or_raise(NoPartitionError(found[0].path))
        return tuple(found)

    def _find_contents(self, path: Path) -> FoundAt | None:
        try:
            found = find_at(path, self._refuse, self._levels)
            if not found.is_partition and not found.log_dirs:
                raise NoPartitionError(path)
        except OpenError as error:
            self._refuse_or_raise(error)
            return None
        return found

    def _refuse_or_raise(self, error: OpenError) -> None:
        if self._refuse is None:
            raise error
        self._refuse(error)

    @cached_property
    def given_partitions(self) -> tuple[Path, ...]:
        """The partition directories that were given by their own paths, each once.

        Raises the same errors as `contents`.
        """
        given: dict[str, Path] = {}
        for each in self.contents:
            if each.is_partition:
                given.setdefault(os.path.realpath(each.here), each.here)
        return tuple(given.values())

    @cached_property
    def log_dirs(self) -> tuple[LogDir, ...]:
        """The log directories, each once. Raises the same errors as `contents`."""
        log_dirs: dict[str, LogDir] = {}
        for each in self.contents:
            for log_dir in each.log_dirs:
                log_dirs.setdefault(os.path.realpath(log_dir.path), log_dir)
        return tuple(log_dirs.values())

    def metadata_dirs(self) -> Iterator[Path]:
        """Yield all places that may contain metadata, including the log directories of partitions given by path."""
        yield from (each.path for each in self.log_dirs)
        yield from (path.absolute().parent for path in self.given_partitions)

    @property
    def cluster_id(self) -> str | None:
        """Return the cluster id, or None if it is unknown. Raises UsageError if there are several ids."""
        return only_cluster([(path, cluster_id) for cluster_id, path in self.clusters.items()])

    @cached_property
    def clusters(self) -> Mapping[str, Path]:
        """The ids of the clusters found, each with its first log directory."""
        clusters: dict[str, Path] = {}
        for each in self.log_dirs:
            if each.identity.cluster_id is not None:
                clusters.setdefault(each.identity.cluster_id, each.path)
        for path in self.given_partitions:
            if (cluster_id := identity_of(path.absolute().parent).cluster_id) is not None:
                clusters.setdefault(cluster_id, path)
        return clusters

    def cluster_of(self, log_dir: Path) -> str | None:
        """Return the id of a log directory's cluster: its own, or else the only one."""
        return self._cluster_named(identity_of(log_dir).cluster_id if len(self.clusters) > 1 else None)

    def _cluster_named(self, cluster_id: str | None) -> str | None:
        return cluster_id if len(self.clusters) > 1 else next(iter(self.clusters), None)

    @property
    def own_metadata(self) -> "ClusterMetadata | None":
        """Return the metadata of the only cluster. Raises the same errors as `cluster_id`."""
        return self.metadata(self.cluster_id)

    def metadata(self, cluster_id: str | None) -> "ClusterMetadata | None":
        """Return the metadata of a cluster from the most recent copy, or None if no copy can be read."""
        if cluster_id not in self._metadata:
            self._metadata[cluster_id] = self.read_metadata(cluster_id)
        return self._metadata[cluster_id]

    def read_metadata(self, cluster_id: str | None, further: Iterable[Path] = ()) -> "ClusterMetadata | None":
        """Read the metadata of a cluster again. `further` lists additional directories that may have a copy."""
        paths = dict.fromkeys((*self.metadata_dirs(), *further))
        place = furthest_metadata(dirs_of_cluster(paths, cluster_id, identity_of))
        if place is None:
            return None
        from kseg.cluster.metadata import Until, cluster_metadata_of

        try:
            return cluster_metadata_of(place, Until())
        except FileError:
            return None

    def partitions(
        self, choice: PartitionChoice = EVERY_PARTITION, metadata: GiveMetadata | None = None
    ) -> list[PartitionReplicas[PartitionLog]]:
        """Return the chosen partitions sorted by topic and number. Partitions without a topic come last.

        Raises NoSuchPartitionError like `require`; OpenError like `log_dirs`;
        UsageError if they are of two clusters.
        """
        given, log_dirs = self.given_partitions, self.log_dirs
        if len(given) == 1 and not log_dirs:
            joined = [alone(PartitionLog(given[0]))]
        else:
            joined = joined_of([*self.candidates(choice)], self.cluster_id, metadata or self.metadata)
        found = [each for each in joined if choice.takes(each.topic, each.partition)]
        self.require(choice)
        return sorted(found, key=lambda each: (each.partition is None, each.topic, each.partition or 0))

    def partitions_of_all(self, choice: PartitionChoice = EVERY_PARTITION) -> Iterator[PartitionReplicas[PartitionLog]]:
        """Yield the chosen partitions of all clusters.

        Raises the same errors as `log_dirs`.
        """
        by_cluster: dict[str | None, list[Candidate[PartitionLog]]] = defaultdict(list)
        for each in self.candidates(choice):
            by_cluster[self._cluster_named(each.cluster_id)].append(each)
        joined = (each for key, own in by_cluster.items() for each in joined_of(own, key, self.metadata))
        return (each for each in joined if choice.takes(each.topic, each.partition))

    def only_partition(self, choice: PartitionChoice = EVERY_PARTITION) -> PartitionReplicas[PartitionLog]:
        """Return the only chosen partition. Raises UsageError if there are several or none, and like `partitions`."""
        replicas = self.partitions(choice)
        found = [each for each in replicas if each.copies]
        if len(found) > 1:
            where = self.paths[0] if len(self.paths) == 1 else None
            raise UsageError(
                f"there are {plural(len(found), 'partition')} here; choose one with --topic and --partition", where
            )
        if not found:
            left_out = next(iter(left_out_of(replicas)), None)
            why = "" if left_out is None else f": {left_out.text()}"
            raise UsageError(f"no partition can be read{why}", self.paths[0])
        return found[0]

    def directories(self, choice: PartitionChoice = EVERY_PARTITION) -> Iterator[PartitionLog]:
        """Yield all directories of the chosen partitions, whatever their state, one at a time.

        Raises NoSuchPartitionError like `require`, and like `log_dirs`.
        """
        self.require(choice)
        given, log_dirs = self.given_partitions, self.log_dirs
        chosen = (PartitionLog(path) for path in given if choice.takes_directory(path))
        listed = (each for log_dir in log_dirs for each in log_dir.partitions(self._refuse, choice))
        seen = set[str]()
        for partition in chain(chosen, listed):
            place = os.path.realpath(partition.path)
            if place not in seen:
                seen.add(place)
                yield partition

    def require(self, choice: PartitionChoice, others: Iterable[str] = ()) -> None:
        """Raise NoSuchPartitionError if partitions exist, but not all of the chosen ones; also like `contents`.

        others: names of directories of partitions that exist elsewhere.
        """
        choice.require(chain((directory for each in self.contents for directory in each.partitions()), others))

    def topic(self, name: str) -> list[PartitionReplicas[PartitionLog]]:
        """Return the partitions of a topic by number, those with a copy.

        If no directory has the topic's name, the given directories count whatever their names are. No partition is no
        error; others are raised like in `partitions`.
        """
        choice = PartitionChoice((name,))
        given, listed = list(self._given_candidates()), list(self._listed_candidates(choice))
        of_topic = [each for each in given if each.topic == name]
        candidates = (*(of_topic if of_topic or listed else given), *listed)
        found = [each for each in joined_of(candidates, self.cluster_id, self.metadata) if each.copies]
        return sorted(found, key=lambda each: each.partition or 0)

    def set_aside(self, topic: str, cluster_id: str | None, metadata: "ClusterMetadata | None") -> dict[Path, LeftOut]:
        """Return the directories of a topic name that aren't (or no longer) the topic's, by absolute paths.

        cluster_id: a cluster's, by `cluster_of`; metadata: its own, from elsewhere. Raises like `log_dirs`.
        """
        found = find_set_aside(topic, self._of_topic(topic, cluster_id), metadata)
        return {as_path(each.path).absolute(): each for each in found}

    def topic_id(self, topic: str, cluster_id: str | None) -> str | None:
        """Return a topic id according to the metadata or its directories, or None if unknown.

        Arguments as in `set_aside`.
        """
        candidates = self._of_topic(topic, cluster_id)
        return find_topic_id(topic, candidates, self.metadata(cluster_id)) if candidates else None

    def _of_topic(self, topic: str, cluster_id: str | None) -> list[Candidate[Path]]:
        """Return all directories of a topic name; each is listed when its history is requested."""
        found = (_path_candidate(*each) for each in self._directories_by_topic.get(topic, ()))
        return [each for each in found if self._cluster_named(each.cluster_id) == cluster_id]

    @cached_property
    def _directories_by_topic(self) -> Mapping[str, list["_OwnedDirectory"]]:
        found: dict[str, list[_OwnedDirectory]] = defaultdict(list)
        for each in self._owned_directories():
            name = parse_partition_directory(own_name(each[0]))
            if name is not None:
                found[name.topic].append(each)
        return found

    def _owned_directories(self) -> Iterator["_OwnedDirectory"]:
        given = {os.path.realpath(path) for path in self.given_partitions}
        yield from ((path, identity_of(path.absolute().parent), True) for path in self.given_partitions)
        for log_dir in self.log_dirs:
            for path in log_dir.directories:
                if not given or os.path.realpath(path) not in given:
                    yield path, log_dir.identity, False

    def was_given(self, partition: PartitionLog) -> bool:
        """Return True if a partition was given by its own path."""
        return partition.path in self.given_partitions

    def candidates(self, choice: PartitionChoice = EVERY_PARTITION) -> Iterator[Candidate[PartitionLog]]:
        """Yield all directories of the chosen topics, whatever their state and number.

        Raises the same errors as `log_dirs`.
        """
        given = (each for each in self._given_candidates() if choice.takes_topic(each.topic))
        return chain(given, self._listed_candidates(choice))

    def _given_candidates(self) -> Iterator[Candidate[PartitionLog]]:
        given = map(PartitionLog, self.given_partitions)
        return (_log_candidate(each, identity_of(each.log_dir), is_given=True) for each in given)

    def _listed_candidates(self, choice: PartitionChoice) -> Iterator[Candidate[PartitionLog]]:
        were_given = {os.path.realpath(path) for path in self.given_partitions}
        topics = PartitionChoice(choice.topics)
        for log_dir in self.log_dirs:
            for partition in log_dir.partitions(self._refuse, topics):
                if not were_given or os.path.realpath(partition.path) not in were_given:
                    yield _log_candidate(partition, log_dir.identity)


def joined_of(
    candidates: Sequence[Candidate[Place]], cluster_id: str | None, give_metadata: GiveMetadata
) -> list[PartitionReplicas[Place]]:
    """Combine the copies of each partition with `join_replicas`. The metadata is only read if it is needed."""
    is_told = any(each.topic != METADATA_TOPIC for each in candidates)
    return join_replicas(candidates, cluster_id, give_metadata(cluster_id) if is_told else None)


def dirs_of_cluster(
    log_dirs: Iterable[Path], cluster_id: str | None, identify: Callable[[Path], DirectoryIdentity]
) -> Iterator[Path]:
    """Yield the log directories with the cluster id. If there is no other id, also yield those without an id.

    cluster_id: None for the only one, whatever it is; of several clusters, for directories without id.
    """
    named = {each: identify(each).cluster_id for each in log_dirs}
    is_only = len({cluster_id, *named.values()} - {None}) < 2
    return (each for each, own in named.items() if is_only or own == cluster_id)


def furthest_metadata(log_dirs: Iterable[Path]) -> PartitionLog | None:
    """Return the furthest copy of the metadata log in some log directories, with its lost batches read from others.

    None if there is none. Raises UsageError if they are of two clusters.
    """
    candidates = []
    for path in log_dirs:
        directory = path / f"{METADATA_TOPIC}-0"
        if directory.is_dir():
            with suppress(OpenError):
                candidates.append(_log_candidate(PartitionLog(directory), identity_of(path)))
    cluster_id = only_cluster([(each.path, each.cluster_id) for each in candidates])
    return whole_log(join_replicas(candidates, cluster_id)[0]) if candidates else None


def _log_candidate(
    partition: PartitionLog, owner: DirectoryIdentity, *, is_given: bool = False
) -> Candidate[PartitionLog]:
    return _candidate(partition, partition.path, partial(history_of, partition), owner, is_given=is_given)


_OwnedDirectory: TypeAlias = tuple[Path, DirectoryIdentity, bool]
"""A partition's directory, the identity of its log directory, and whether it was given by its own path."""


def _path_candidate(path: Path, owner: DirectoryIdentity, is_given: bool) -> Candidate[Path]:
    return _candidate(path, path, partial(history_at, path), owner, is_given=is_given)


def _candidate(
    place: Place, path: Path, read_history: Callable[[bool], History], owner: DirectoryIdentity, *, is_given: bool
) -> Candidate[Place]:
    own = own_name(path)
    name = parse_partition_directory(own)
    return Candidate(
        place,
        as_given(path),
        own if name is None else name.topic,
        None if name is None else name.partition,
        topic_id_at(path),
        None if name is None else name.state,
        read_history,
        owner.broker,
        owner.cluster_id,
        is_given,
    )
