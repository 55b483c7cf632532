"""The copies that answer for a partition: those of its topic id, the one on the lineage of the cluster first."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from kseg.errors import FileError, UsageError
from kseg.formats.codes import NO_TIMESTAMP, TAIL_KINDS
from kseg.formats.file_names import DirectoryState
from kseg.log.lineage import EpochStarts, Lineage, agreed_end, latest_epoch, noted_epochs, read_lineage
from kseg.log.partition import METADATA_TOPIC, PartitionLog, read_topic_id, tell_of_cleaning
from kseg.system.placed_path import StrPath, as_given

if TYPE_CHECKING:
    from kseg.cluster.model import ClusterMetadata, ClusterPartition

Place = TypeVar("Place")
GiveMetadata = Callable[[str | None], "ClusterMetadata | None"]
"""Returns a cluster's metadata by its id, None for an unknown one; None if they aren't here."""
NOWHERE = -1
"""The end of an unreadable log: every other one is better."""


class CopyStatus(StrEnum):
    """The role of a directory for the partition that it is named after."""

    CURRENT = "current"
    """One of its replicas."""
    DUPLICATE = "duplicate"
    """A second one of the same broker, which has a better one: the broker would not start."""
    FUTURE = "future"
    """Being moved to another disk of its broker, which uses the old directory until then."""
    STALE = "stale"
    """Belongs to a deleted topic, whose name may be in use again."""
    STRAY = "stray"
    """Set aside by its broker, which no longer has this replica by the metadata."""
    DELETED = "deleted"
    """About to be deleted by its broker."""


STATUS_OF_STATE = {
    DirectoryState.DELETE: CopyStatus.DELETED,
    DirectoryState.STRAY: CopyStatus.STRAY,
    DirectoryState.FUTURE: CopyStatus.FUTURE,
}
_ANSWERS = (CopyStatus.CURRENT, CopyStatus.DUPLICATE, CopyStatus.FUTURE)
"""The order of reading: each one's lost batches are read from the next."""


class History(NamedTuple):
    """A copy's past: its lineage, its latest leader epoch, and the time of its last batch.

    is_damaged: damage at its end that isn't a broker's normal tail. written_ms: the largest timestamp of the last
    batch, milliseconds since 1970. last_segment: base offset and bytes of it if the log's end wasn't read; the lineage
    is ENDLESS then. has_logs: the directory has a `.log`, if only an empty one.
    """

    lineage: Lineage
    latest_epoch: int = -1
    written_ms: int = NO_TIMESTAMP
    is_damaged: bool = False
    last_segment: tuple[int, int] | None = None
    has_logs: bool = True

    @property
    def log_end(self) -> int | None:
        """The log end offset, or None if it wasn't read."""
        return self.lineage.log_end if self.last_segment is None else None

    @property
    def least_end(self) -> tuple[int, int]:
        """An offset that the log reaches at least, and the bytes after it."""
        return self.last_segment or (self.lineage.log_end, 0)


UNREAD = History(Lineage(EpochStarts(), 0, NOWHERE, None), is_damaged=True)
"""The history of a copy that can't be opened."""


@dataclass(frozen=True, slots=True)
class Candidate(Generic[Place]):
    """A directory that may be a copy of a partition.

    partition: None if the directory isn't named after one. broker, cluster_id: by its log directory; None if unknown.
    is_given: it was given by its own path. read_history: by the checkpoint if that is enough, or by the headers of all
    batches; raises KsegError.
    """

    place: Place
    path: StrPath
    topic: str
    partition: int | None
    topic_id: str | None
    state: DirectoryState | None
    read_history: Callable[[bool], History]
    broker: int | None = None
    cluster_id: str | None = None
    is_given: bool = False


@dataclass(frozen=True, slots=True)
class Copy(Generic[Place]):
    """A directory, and its role for the partition.

    agreed_end: the offset below which it has the partition's records; None: all of its records are the partition's.
    leader_epoch: the latest, -1 if unknown; log_end: None if unknown or not needed.
    """

    place: Place
    path: StrPath
    broker: int | None
    topic_id: str | None
    status: CopyStatus
    agreed_end: int | None = None
    leader_epoch: int = -1
    log_end: int | None = None


class LeftOut(NamedTuple):
    """A directory that isn't a partition's, or a partition's last offsets of a lineage that the cluster abandoned.

    offsets: None for the whole directory; their end isn't included, and None if unknown. leader_epoch: the latest of
    the directory, -1 if unknown.
    """

    topic: str
    partition: int | None
    path: StrPath
    broker: int | None
    status: CopyStatus
    offsets: tuple[int, int | None] | None = None
    leader_epoch: int = -1

    def text(self) -> str:
        """Return the omission in a line."""
        owner = self.path if self.broker is None else f"{self.path} of broker {self.broker}"
        if self.offsets is None:
            return f"{owner}: {_WHY_LEFT_OUT[self.status]}"
        first, end = self.offsets
        offsets = f"offsets from {first} on, if it has any" if end is None else f"offsets {first} to {end - 1}"
        return f"{owner}: {offsets}, leader epoch {self.leader_epoch}: the cluster continued without them (`kseg diff`)"

    def to_json(self) -> dict[str, object]:
        """Return the omission for programs."""
        first, end = (None, None) if self.offsets is None else self.offsets
        members: dict[str, object] = {
            "topic": self.topic,
            "partition": self.partition,
            "path": str(self.path),
            "broker": self.broker,
            "status": "abandoned" if self.offsets else str(self.status),
        }
        if self.offsets is None:
            return members
        last = None if end is None else end - 1
        return {**members, "firstOffset": first, "lastOffset": last, "leaderEpoch": self.leader_epoch}


_WHY_LEFT_OUT = {
    CopyStatus.STALE: "of a topic that was deleted, or created again since",
    CopyStatus.STRAY: "put aside by its broker (-stray)",
    CopyStatus.DELETED: "about to be deleted by its broker (-delete)",
    CopyStatus.FUTURE: "being moved here by its broker (-future)",
}


@dataclass(frozen=True, slots=True)
class PartitionReplicas(Generic[Place]):
    """A partition, and its copies found here.

    copies: the answering ones, the best one first; each is read only for the possible losses of the one before
    it. set_aside: directories of its name that aren't or are no longer its own. topic_id: None if unknown. cluster_id:
    by the log directories. metadata_offset: of the metadata's last record, if they decided about its copies.
    """

    topic: str
    partition: int | None
    topic_id: str | None
    copies: tuple[Copy[Place], ...]
    set_aside: tuple[Copy[Place], ...] = ()
    cluster_id: str | None = None
    metadata_offset: int | None = None

    @property
    def name(self) -> str:
        """The name of its directories on a broker; else their own name."""
        return self.topic if self.partition is None else f"{self.topic}-{self.partition}"

    @property
    def best(self) -> Place:
        """The copy that answers."""
        return self.copies[0].place

    @property
    def places(self) -> list[Place]:
        """All copies that answer."""
        return [copy.place for copy in self.copies]

    @property
    def left_out(self) -> Iterator[LeftOut]:
        """Yield everything under its name that isn't part of the answer."""
        own = self.topic, self.partition
        for copy in self.copies:
            if copy.agreed_end is not None:
                offsets = copy.agreed_end, copy.log_end
                yield LeftOut(*own, copy.path, copy.broker, copy.status, offsets, copy.leader_epoch)
        yield from (LeftOut(*own, copy.path, copy.broker, copy.status) for copy in self.set_aside)


def alone(partition: PartitionLog) -> PartitionReplicas[PartitionLog]:
    """Return a partition of a single directory, whose topic id isn't read."""
    copy = Copy(partition, as_given(partition.path), None, None, CopyStatus.CURRENT)
    return PartitionReplicas(partition.topic or partition.directory_name, partition.partition, None, (copy,))


def answering_topic_id(replicas: Sequence[PartitionReplicas[Place]]) -> str | None:
    """Return the id of a topic by the files of the copies that answer, else by the id found for all of them.

    Another topic's id answers only if all of the copies are another topic's: stale ones, given by their paths.
    """
    own = [each.copies[0].topic_id or each.topic_id for each in replicas]
    known = replicas[0].topic_id
    return known if known in own else next((each for each in own if each is not None), None)


def left_out_of(replicas: Iterable[PartitionReplicas[Place]]) -> tuple[LeftOut, ...]:
    """Return the omissions from the answers for the given partitions."""
    return tuple(left_out for each in replicas for left_out in each.left_out)


def join_replicas(
    candidates: Sequence[Candidate[Place]], cluster_id: str | None, metadata: "ClusterMetadata | None" = None
) -> list[PartitionReplicas[Place]]:
    """Return the answering copies of each partition, in the order of the candidates.

    Args:
        candidates: all directories of a cluster, requested or not.
        cluster_id: the cluster's id, if it is known.
        metadata: the cluster's, if they are here.
    """
    by_topic: dict[str, list[Candidate[Place]]] = defaultdict(list)
    for candidate in candidates:
        by_topic[candidate.topic].append(candidate)
    found: list[PartitionReplicas[Place]] = []
    for topic, own in by_topic.items():
        known = None if topic == METADATA_TOPIC else metadata
        joined = _of_topic(own, _topic_facts(known, topic))
        if known is not None or cluster_id is not None:
            offset = None if known is None else known.offset
            joined = [replace(each, cluster_id=cluster_id, metadata_offset=offset) for each in joined]
        found += joined
    return found


def find_set_aside(
    topic: str, candidates: Sequence[Candidate[Place]], known: "ClusterMetadata | None" = None
) -> Iterator[LeftOut]:
    """Yield the directories that `join_replicas` sets aside for a topic, without ranking the others.

    candidates: all of the topic in one cluster. known: the cluster's metadata, if they are here.
    """
    histories = _Histories[Place]()
    _, parts = _by_partition(candidates, _topic_facts(known, topic), histories)
    for partition, _, set_aside in parts:
        yield from (LeftOut(topic, partition, copy.path, copy.broker, copy.status) for copy in set_aside)


def find_topic_id(
    topic: str, candidates: Sequence[Candidate[Place]], known: "ClusterMetadata | None" = None
) -> str | None:
    """Return the id that `join_replicas` has for a topic; arguments are as for `find_set_aside`."""
    return _topic_id(candidates, _topic_facts(known, topic), _Histories[Place]())[0]


def _topic_facts(known: "ClusterMetadata | None", topic: str) -> "_TopicFacts | None":
    """Return the metadata's facts about a topic, or None for their own topic."""
    return None if known is None or topic == METADATA_TOPIC else _TopicFacts(known, topic)


class _TopicFacts:
    """A topic in the metadata, with its partitions by number; the id is None if the metadata lacks it."""

    def __init__(self, metadata: "ClusterMetadata", topic: str) -> None:
        found = metadata.topic(topic)
        self.topic_id = None if found is None else found.topic_id
        self.partitions: Mapping[int | None, ClusterPartition] = (
            {} if found is None else {each.partition: each for each in found.partitions}
        )
        # A broker with partitions was registered before.
        self.is_complete = bool(metadata.brokers) and metadata.missing_before is None and not metadata.unreadable


def only_cluster(named: Iterable[tuple[object, str | None]]) -> str | None:
    """Return the cluster id in the given directories, or None if none of them has one.

    named: paths, each with its id. Raises UsageError if there are several ids.
    """
    known: dict[str, object] = {}
    for path, cluster_id in named:
        if cluster_id is not None:
            known.setdefault(cluster_id, path)
    if len(known) > 1:
        (one, first), (other, second), *_ = known.items()
        raise UsageError(
            f"{first} and {second} belong to different clusters, {one} and {other}; specify the directories of one"
            " cluster"
        )
    return next(iter(known), None)


def _of_topic(candidates: Sequence[Candidate[Place]], facts: _TopicFacts | None) -> list[PartitionReplicas[Place]]:
    histories = _Histories[Place]()
    topic_id, partitions = _by_partition(candidates, facts, histories)
    found = []
    for partition, in_place, set_aside in partitions:
        known = None if facts is None else facts.partitions.get(partition)
        copies = _rank_copies(in_place, known, histories)
        topic = candidates[0].topic
        found.append(PartitionReplicas(topic, partition, topic_id, copies, tuple(sorted(set_aside, key=_path_of))))
    return found


_PartitionGroup: TypeAlias = tuple[int | None, list[tuple[Candidate[Place], CopyStatus]], list[Copy[Place]]]
"""A partition's number, its own directories, and the others."""


def _by_partition(
    candidates: Sequence[Candidate[Place]], facts: _TopicFacts | None, histories: "_Histories[Place]"
) -> tuple[str | None, list[_PartitionGroup[Place]]]:
    """Return the topic id, and its partitions."""
    topic_id, is_gone = _topic_id(candidates, facts, histories)
    by_partition: dict[int | None, list[Candidate[Place]]] = defaultdict(list)
    for candidate in candidates:
        by_partition[candidate.partition].append(candidate)
    meant = None if is_gone else topic_id
    return topic_id, [
        (partition, *_split_candidates(own, meant, is_gone=is_gone)) for partition, own in by_partition.items()
    ]


def _topic_id(
    candidates: Sequence[Candidate[Place]], facts: _TopicFacts | None, histories: "_Histories[Place]"
) -> tuple[str | None, bool]:
    """Return the topic id, and whether the cluster no longer has such a topic.

    Without metadata, the topic with the newest records was created last.
    """
    ids = list(dict.fromkeys(each.topic_id for each in candidates if each.topic_id is not None))
    if facts is not None and facts.topic_id is not None:
        return facts.topic_id, False
    if facts is not None and facts.is_complete and not any(each.is_given for each in candidates):
        return None, True
    if len(ids) < 2:
        return next(iter(ids), None), False

    def newest(topic_id: str) -> tuple[int, int, str]:
        own = [histories.of(each) for each in candidates if each.topic_id == topic_id]
        return max(each.written_ms for each in own), max(each.latest_epoch for each in own), topic_id

    in_use = [each.topic_id for each in candidates if each.state is None and each.topic_id is not None]
    return max(in_use or ids, key=newest), False


def _split_candidates(
    candidates: Sequence[Candidate[Place]], topic_id: str | None, *, is_gone: bool
) -> tuple[list[tuple[Candidate[Place], CopyStatus]], list[Copy[Place]]]:
    """Divide directories into those of the partition and others."""
    own: list[tuple[Candidate[Place], CopyStatus]] = []
    others: list[Copy[Place]] = []
    are_all_given = all(each.is_given for each in candidates)
    for each in candidates:
        status = _status(each, topic_id, is_gone=is_gone)
        if status in _ANSWERS or (are_all_given and len(candidates) == 1):
            own.append((each, CopyStatus.CURRENT if status is not CopyStatus.FUTURE else status))
        else:
            others.append(Copy(each.place, each.path, each.broker, each.topic_id, status))
    return own, others


_path_of = attrgetter("path")


def _status(candidate: Candidate[Place], topic_id: str | None, *, is_gone: bool) -> CopyStatus:
    of_state = CopyStatus.CURRENT if candidate.state is None else STATUS_OF_STATE[candidate.state]
    if of_state in (CopyStatus.DELETED, CopyStatus.STRAY):
        return of_state
    if is_gone or (topic_id is not None and candidate.topic_id not in (None, topic_id)):
        return CopyStatus.STALE
    return of_state


class _Histories(Generic[Place]):
    """Histories of directories, each read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[StrPath, bool], History] = {}

    def of(self, candidate: Candidate[Place], *, is_exact: bool = False) -> History:
        """Return a directory's history; with `is_exact` by all headers, if the checkpoint isn't reliable."""
        key = candidate.path, is_exact
        if key not in self._known:
            try:
                self._known[key] = candidate.read_history(is_exact)
            except FileError:
                self._known[key] = UNREAD
        return self._known[key]


def _rank_copies(
    own: Sequence[tuple[Candidate[Place], CopyStatus]],
    known: "ClusterPartition | None",
    histories: _Histories[Place],
) -> tuple[Copy[Place], ...]:
    """Return the copies, best first, each with the offset up to which it agrees with that one."""
    if len(own) < 2:
        return tuple(Copy(each.place, each.path, each.broker, each.topic_id, status) for each, status in own)
    in_sync = in_sync_replicas(known, (histories.of(each).latest_epoch for each, _ in own))

    def rank(item: tuple[Candidate[Place], CopyStatus]) -> tuple[object, ...]:
        candidate, status = item
        history = histories.of(candidate)
        least_end, size_after = history.least_end
        return (
            not history.has_logs,
            _ANSWERS.index(status),
            candidate.broker not in in_sync,
            -history.latest_epoch,
            -least_end,
            -size_after,
            history.is_damaged,
            candidate.broker is None,
            candidate.broker or 0,
            candidate.path,
        )

    ranked = sorted(_with_duplicates(sorted(own, key=rank)), key=rank)
    chosen = ranked[0][0]
    is_exact = any(_find_agreed_end(each, chosen, histories, is_exact=False) is not None for each, _ in ranked[1:])
    copies: list[Copy[Place]] = []
    for each, status in ranked:
        agreed = None if each is chosen else _find_agreed_end(each, chosen, histories, is_exact=is_exact)
        history = histories.of(each, is_exact=is_exact)
        copies.append(
            Copy(
                each.place,
                each.path,
                each.broker,
                each.topic_id,
                status,
                agreed,
                history.latest_epoch,
                history.log_end,
            )
        )
    return tuple(copies)


def _with_duplicates(
    ranked: Iterable[tuple[Candidate[Place], CopyStatus]],
) -> Iterator[tuple[Candidate[Place], CopyStatus]]:
    """Yield the directories, and mark a second copy on the same broker as a duplicate."""
    brokers: set[int | None] = set()
    for each, status in ranked:
        is_current = status is CopyStatus.CURRENT and each.broker is not None
        yield each, CopyStatus.DUPLICATE if is_current and each.broker in brokers else status
        brokers |= {each.broker} if is_current else set()


def _find_agreed_end(
    candidate: Candidate[Place], chosen: Candidate[Place], histories: _Histories[Place], *, is_exact: bool
) -> int | None:
    own = histories.of(candidate, is_exact=is_exact).lineage
    end = agreed_end(own, histories.of(chosen, is_exact=is_exact).lineage)
    return end if end < own.log_end else None


def in_sync_replicas(known: "ClusterPartition | None", leader_epochs: Iterable[int]) -> tuple[int, ...]:
    """Return the brokers that have all acknowledged records.

    The last broker to stop is out of the ISR, but eligible. Without either, the replicas that were eligible before an
    unclean shutdown count: the controller elects the last known leader. Source: KIP-966.

    Args:
        known: the partition in the metadata.
        leader_epochs: the latest leader epoch of each copy that answers for it.
    """
    if known is None or any(epoch > known.leader_epoch for epoch in leader_epochs):
        return ()
    return tuple(dict.fromkeys((*known.isr, *known.elr))) or known.last_known_elr


def history_at(directory: Path, is_exact: bool) -> History:
    """Return the history of the log in a directory, like `history_of`."""
    return history_of(PartitionLog(directory), is_exact)


def history_of(partition: PartitionLog, is_exact: bool) -> History:
    """Return the history of a directory of this machine. Raises OpenError if a log can't be opened.

    If the checkpoint is missing or older than the log, and not all headers are read, the complete log counts as the
    last batch's epoch. If copies then differ, the caller asks again.
    """
    end = partition.read_end()
    epoch = latest_epoch(partition, end)
    written = NO_TIMESTAMP if end.last is None else end.last.max_timestamp
    lineage = read_lineage(partition, end.offset) if is_exact else _noted_lineage(partition, end.offset, epoch)
    has_logs = bool(partition.segments)
    is_damaged = end.damage is not None and end.damage.kind not in TAIL_KINDS
    return History(lineage, epoch, written, is_damaged, has_logs=has_logs)


def _noted_lineage(partition: PartitionLog, end: int, epoch: int) -> Lineage:
    """Return the lineage by the checkpoint; if that is older, the complete log has the last batch's epoch."""
    start, epochs = partition.log_start_offset(), noted_epochs(partition, end)
    if epoch > epochs.latest:
        epochs = EpochStarts(((epoch, start),))
    return Lineage(epochs, start, end, partition.checkpoints().high_watermark)


def are_gapless(copies: Iterable[Copy[PartitionLog]]) -> bool:
    """Return True if the missing offsets of a copy were lost rather than removed by the cleaner."""
    places = [copy.place for copy in copies]
    are_known = tell_of_cleaning([place.path for place in places])
    return all(place.is_gapless(is_told=is_told) for place, is_told in zip(places, are_known, strict=True))


def topic_id_of(partition: PartitionLog) -> str | None:
    """Return the topic id in `partition.metadata`, or None if it can't be read."""
    return topic_id_at(partition.path)


def topic_id_at(directory: Path) -> str | None:
    """Return the topic id of a directory that wasn't listed."""
    try:
        return read_topic_id(directory)
    except FileError:
        return None
