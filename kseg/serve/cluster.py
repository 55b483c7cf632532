"""The served cluster: its directories, settings and transactions."""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import identity_of
from kseg.cluster.joined_log import relist, whole_log
from kseg.cluster.metadata_copy import CHEAP_METADATA, AdjacentMetadata, TopicIds, partition_count
from kseg.cluster.model import SECRET_NAME
from kseg.cluster.remote_tier import REMOTE_LOG_TOPIC, RemoteCopies, find_whole_tier
from kseg.cluster.replicas import PartitionReplicas, answering_topic_id
from kseg.cluster.settings import NO_SETTINGS, BrokerSettings, DynamicSettings
from kseg.cluster.taken import taken_of
from kseg.coordinators.home_partition import internal_count
from kseg.coordinators.stored_ids import COORDINATOR_TOPICS, stored_ids
from kseg.errors import pass_once
from kseg.formats.codes import INTERNAL_TOPICS
from kseg.formats.messages import ZERO_UUID
from kseg.log.partition import (
    METADATA_TOPIC,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    PartitionLog,
    RemoteTier,
    cleaned_topics,
)
from kseg.log.selection import EVERY_PARTITION, PartitionChoice
from kseg.log.transactions import CoordinatorTransaction, coordinator_transactions
from kseg.serve.fetch_plans import KnownPlans
from kseg.serve.fetch_sessions import FetchSessions
from kseg.serve.groups.commits import Commits, StoredGroups
from kseg.serve.groups.coordinator import GroupCoordinator
from kseg.serve.partition import ServedPartition
from kseg.serve.values import REST, ServeSettings

if TYPE_CHECKING:
    from kseg.cluster.model import ClusterMetadata

TOPIC, BROKER, GROUP, CLIENT_METRICS = "topic", "broker", "group", "client-metrics"
"""Kinds of resources, under their names in the metadata's view."""
LARGEST_METADATA = 16 * CHEAP_METADATA
"""The most bytes of metadata that are read for a client."""
_PROBABLY_SECRET = re.compile("password|passphrase|secret|token|credential|private", re.IGNORECASE)
_KAFKAS_OWN = re.compile(
    "advertised|auto|background|broker|compression|connections|controlled|controller|default|delete|fetch|group|initial|"
    "inter|leader|listener|listeners|log|max|message|metadata|min|node|num|offset|offsets|process|producer|queued|quota|"
    "quotas|replica|request|reserved|share|socket|transaction|transactional|unclean"
)
"""The first words of Kafka's own setting names, without security and plugins."""
_IDS = ("node.id", "broker.id")

Settings = Mapping[str, str]


class _KnownMetadata(NamedTuple):
    """The contents of metadata of some size, and the time at which they may be read again."""

    size: int
    settings: DynamicSettings
    topics: frozenset[str]
    stays_until: float


class KnownSettings:
    """The settings in the given log directories, read on first use; safe for several threads."""

    def __init__(
        self,
        log_dirs: Mapping[Path, int | None],
        node_id: int,
        say: Callable[[str], None],
        server_properties: Settings,
    ) -> None:
        """Read nothing yet. The directories and the broker id are settings, unless `server_properties` has them.

        Args:
            log_dirs: the directories, each with its owner's node id.
            node_id: the id that the server reports as its own.
            say: receives problems while reading.
            server_properties: the broker's static settings.
        """
        self.log_dirs, self.node_id, self._say = tuple(log_dirs), node_id, pass_once(say)
        self._owners, self._server_properties = frozenset(log_dirs.values()), server_properties
        of_dirs = {"log.dirs": ",".join(map(str, self.log_dirs))} if self.log_dirs else {}
        self._static = {**of_dirs, **dict.fromkeys(_IDS, str(node_id)), **server_properties}
        self._reading = Lock()
        self._known: _KnownMetadata | None = None

    def of(self, kind: str, name: str) -> Settings:
        """Return a resource's own settings from the metadata; a broker's name is its id, "" means all brokers."""
        return self._metadata().settings.of(kind, name)

    def of_broker(self) -> BrokerSettings:
        """Return the broker settings; the settings of all brokers if the directories belong to several."""
        settings = self._metadata().settings
        return settings.of_broker(settings.only_broker(self._owners, self._server_properties), self._static)

    def knows_topic(self, name: str) -> bool:
        """Return True if the metadata has a topic, so that settings missing there aren't set."""
        return name in self._metadata().topics

    def was_cleaned(self, topic: str) -> bool:
        """Return True if the log cleaner has cleaned a partition of a topic."""
        return any(topic in cleaned_topics(log_dir) for log_dir in self.log_dirs)

    def _metadata(self) -> _KnownMetadata:
        known = self._known
        if known is not None and not self._reading.acquire(blocking=False):
            return known  # another thread is reading the newer ones
        if known is None:
            self._reading.acquire()
        try:
            size = sum(_size_of(log_dir / f"{METADATA_TOPIC}-0") for log_dir in self.log_dirs)
            known = self._known
            if known is None or (known.size != size and monotonic() >= known.stays_until):
                known = self._known = self._read(size)
            return known
        finally:
            self._reading.release()

    def _read(self, size: int) -> _KnownMetadata:
        started = monotonic()
        beside = AdjacentMetadata(LARGEST_METADATA, lambda path, reason: self._say(f"{path}: not used: {reason}"))
        metadata = beside.of_any(self.log_dirs)
        if metadata is None:
            self._say(f"{METADATA_TOPIC} isn't here, so clients get Kafka's defaults as settings of topics")
        topics = frozenset(() if metadata is None else (topic.name for topic in metadata.topics))
        now = monotonic()
        settings = DynamicSettings(metadata)
        return _KnownMetadata(size, settings, topics, now + REST * (now - started))


def is_secret(name: str) -> bool:
    """Return True if a setting's value is hidden: Kafka hides it, or its name suggests a secret."""
    return bool(SECRET_NAME.search(name) or _PROBABLY_SECRET.search(name))


def is_secret_of_broker(name: str) -> bool:
    """Return True if a broker's setting is hidden, which includes all unknown settings, as in Kafka."""
    return is_secret(name) or _KAFKAS_OWN.fullmatch(name.partition(".")[0]) is None


def _size_of(directory: Path) -> int:
    """Return the size of the files of a directory in bytes; 0 if it doesn't exist."""
    try:
        with os.scandir(directory) as entries:
            return sum(entry.stat().st_size for entry in entries)
    except OSError:
        return 0


class KnownTransactions:
    """The transactional ids of the available coordinators; safe for several threads."""

    def __init__(self, coordinators: Iterable[PartitionReplicas[PartitionLog]], say: Callable[[str], None]) -> None:
        """Take the partitions of the coordinators' topic, and a callback for problems while reading them."""
        self._coordinators, self._say = tuple(coordinators), pass_once(say)
        self._lock = Lock()
        self._known: dict[int | None, tuple[int, Mapping[str, CoordinatorTransaction]]] = {}

    def all(self) -> dict[str, CoordinatorTransaction]:
        """Return the latest state of each transactional id. Raises KsegError if a log can't be read."""
        with self._lock:
            found = [self._of(relist(each)) for each in self._coordinators]
        return {name: each for known in found for name, each in known.items()}

    def _of(self, listed: PartitionReplicas[PartitionLog]) -> Mapping[str, CoordinatorTransaction]:
        end = listed.best.read_log_end_offset()
        known = self._known.get(listed.partition)
        if known is None or known[0] != end:
            known = self._known[listed.partition] = end, self._read(listed)
        return known[1]

    def _read(self, listed: PartitionReplicas[PartitionLog]) -> Mapping[str, CoordinatorTransaction]:
        view = coordinator_transactions(whole_log(listed))
        for each in view.unreadable:
            self._say(each.line())
        return {each.transactional_id: each for each in view.transactions}


class KnownTiers:
    """The remote tiers of partitions with their copied segments; safe for several threads."""

    def __init__(self, log_dirs: Iterable[Path]) -> None:
        """Take the log directories of the cluster; read nothing yet."""
        self._log_dirs = tuple(log_dirs)
        self._lock = Lock()
        self._known: tuple[int, AdjacentMetadata, RemoteCopies] | None = None

    def of(self, partition: PartitionLog) -> RemoteTier | None:
        """Return a partition's tier, or None if it has none.

        Raises UsageError if the directories belong to several clusters.
        """
        with self._lock:
            size = sum(_size_of(path) for each in self._log_dirs for path in each.glob(f"{REMOTE_LOG_TOPIC}-*"))
            if self._known is None or self._known[0] != size:
                beside = AdjacentMetadata(LARGEST_METADATA, log_dirs=self._log_dirs)
                self._known = size, beside, RemoteCopies(self._log_dirs)
            _, beside, copies = self._known
            return find_whole_tier(partition, beside, copies)


DEFAULT_NODE_ID = 0
"""The id of a broker whose `meta.properties` isn't here."""
_MADE_UP_ID = uuid5(NAMESPACE_URL, "kseg serve").hex[:22]
"""The id of a cluster whose id isn't known."""
LARGEST_PARTITION = 99_999
"""The largest partition number that is served. Missing partitions with lower numbers are served as empty ones."""
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class ServedTopic:
    """A topic and its partitions by number, from 0 on without a gap. topic_id: zeros if the disks don't have it."""

    name: str
    topic_id: str
    partitions: Mapping[int, ServedPartition]

    @property
    def is_internal(self) -> bool:
        """True for Kafka's own topics."""
        return self.name in INTERNAL_TOPICS


class ServedCluster:
    """Topics by name and id, the ids of the cluster and its one broker, log directories, and settings.

    groups: groups of the server's clients. transactions: the coordinators' latest states. tiers: segments copied to
    remote tiers. fetch_sessions: the clients' fetch sessions.
    """

    def __init__(
        self,
        topics: Mapping[str, ServedTopic],
        cluster_id: str,
        settings: KnownSettings,
        groups: GroupCoordinator,
        coordinators: Iterable[PartitionReplicas[PartitionLog]] = (),
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Take the topics by name, the cluster id, the settings in its directories, and the groups.

        coordinators: the copies of the partitions of `__transaction_state`. say: receives problems while reading.
        """
        self.topics, self.groups = topics, groups
        self._by_id = {topic.topic_id: topic for topic in self.topics.values() if topic.topic_id != ZERO_UUID}
        self.cluster_id, self.settings = cluster_id, settings
        self.node_id, self.log_dirs = settings.node_id, settings.log_dirs
        self.fetch_sessions = FetchSessions()
        self.transactions = KnownTransactions(coordinators, say)
        self.tiers = KnownTiers(settings.log_dirs)

    def topic_of(self, name: str | None, topic_id: str) -> ServedTopic | None:
        """Return a topic by its name or, without one, by its id."""
        return self._by_id.get(topic_id) if name is None else self.topics.get(name)

    def partition_of(self, topic: str, number: int) -> ServedPartition | None:
        """Return a partition by its topic name and its number."""
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(number)

    @property
    def partitions(self) -> list[ServedPartition]:
        """All partitions on the disks."""
        served = (partition for topic in self.topics.values() for partition in topic.partitions.values())
        return [partition for partition in served if partition.listed is not None]

    @property
    def has_missed(self) -> bool:
        """True if damaged bytes were skipped."""
        return any(partition.has_missed for partition in self.partitions)


def serve_partitions(
    cluster: Cluster,
    settings: ServeSettings,
    say: Callable[[str], None],
    choice: PartitionChoice = EVERY_PARTITION,
    clock: Callable[[], float] = monotonic,
    server_properties: Settings = NO_SETTINGS,
) -> ServedCluster:
    """Prepare the chosen partitions of a cluster for serving; of several replicas the best one.

    Args:
        cluster: its directories. Groups' offsets and transactional ids come from all of them, whatever is chosen.
        settings: the serving options.
        say: receives notes about partitions that aren't served as stored.
        choice: the partitions to serve.
        clock: seconds, for groups' sessions.
        server_properties: the broker's static settings.

    Raises:
        NoSuchPartitionError, OpenError, UsageError: as `Cluster.partitions`.
    """
    by_topic: dict[str, dict[int, PartitionLog]] = defaultdict(dict)
    answering: dict[str, list[PartitionReplicas[PartitionLog]]] = defaultdict(list)
    of_topics = cluster.partitions(choice._replace(numbers=()))
    replicas = [each for each in of_topics if choice.takes(each.topic, each.partition)]
    cluster.require(choice)
    if not settings.is_quiet:
        for line in taken_of(replicas).sentences(verbose=settings.is_verbose):
            say(line)
    for each in replicas:
        number = 0 if each.partition is None else each.partition
        if not settings.has_internal and each.topic in INTERNAL_TOPICS:
            continue
        if not each.copies:
            continue
        if (reason := _refusal_reason(each.topic, number)) is not None:
            say(f"{each.best.path}: not served: {reason}")
            continue
        by_topic[each.topic][number] = each.best
        answering[each.topic].append(each)
    plans = KnownPlans()
    topic_ids = TopicIds(cluster)
    topics = {
        name: _served_topic(
            name,
            answering_topic_id(answering[name]) or topic_ids.of(answering[name][0].best) or ZERO_UUID,
            _partitions_by_number(name, by_topic[name], of_topics, cluster, say),
            settings,
            say,
            plans,
        )
        for name in sorted(by_topic)
    }
    with_ids = {name: len(topic.partitions) for name, topic in topics.items() if topic.topic_id != ZERO_UUID}
    stored = StoredGroups(_coordinators(cluster, OFFSETS_TOPIC), say, clock)
    groups = GroupCoordinator(Commits(stored), with_ids, say, clock)
    log_dirs = tuple(dict.fromkeys(each.absolute() for each in cluster.metadata_dirs()))
    owners = [identity_of(log_dir) for log_dir in log_dirs]
    by_dir = {log_dir: owner.broker for log_dir, owner in zip(log_dirs, owners, strict=True)}
    node_id = _node_id(by_dir.values(), server_properties, lambda: cluster.own_metadata)
    known = KnownSettings(by_dir, node_id, say, server_properties)
    coordinators = _coordinators(cluster, TRANSACTIONS_TOPIC)
    return ServedCluster(topics, cluster.cluster_id or _MADE_UP_ID, known, groups, coordinators, say)


def _node_id(
    owners: Iterable[int | None], server_properties: Settings, metadata: "Callable[[], ClusterMetadata | None]"
) -> int:
    """Return the broker id for clients, the lowest of several brokers. Reads metadata only if there are several."""
    ids = {each for each in owners if each is not None}
    known = DynamicSettings(metadata() if len(ids) > 1 else None)
    return min(known.brokers_among(ids, server_properties), default=DEFAULT_NODE_ID)


def _coordinators(cluster: Cluster, topic: str) -> list[PartitionReplicas[PartitionLog]]:
    """Return all available partitions of a coordinators' topic, whatever is chosen."""
    return [each for each in cluster.partitions(PartitionChoice((topic,), allow_missing=True)) if each.copies]


def _refusal_reason(topic: str, number: int) -> str | None:
    """Return the reason why clients can't read a partition, or None if they can."""
    if number > LARGEST_PARTITION:
        return f"clients count partitions from 0, and a topic has at most {LARGEST_PARTITION + 1}"
    try:
        topic.encode()
    except UnicodeEncodeError:
        return "its name isn't UTF-8, so clients couldn't request it"
    return None


def _partitions_by_number(
    topic: str,
    chosen: Mapping[int, PartitionLog],
    found: Iterable[PartitionReplicas[PartitionLog]],
    cluster: Cluster,
    say: Callable[[str], None],
) -> dict[int, PartitionLog | None]:
    """Return all partitions of a topic, chosen or not, or None for those that are served as empty ones.

    Their number comes from the metadata, unless directories show that the metadata are older. Without metadata a
    coordinator's topic has the default number of partitions. For partitions given by their
    own paths, the highest number counts.
    """
    of_topic = [each for each in found if each.topic == topic and each.copies]
    own = {each.partition or 0 for each in of_topic if (each.partition or 0) <= LARGEST_PARTITION}
    metadata = cluster.own_metadata if cluster.log_dirs else None
    told, of = partition_count(metadata, topic, own) or 0, ""
    if not told and topic in COORDINATOR_TOPICS and cluster.log_dirs:
        places = [whole_log(each) for each in of_topic]
        count = internal_count(places, stored_ids(topic, places))
        told, of = count.number, f", of {count.text} partitions" if count.is_supposed else ""
    numbers = range(max(min(told, LARGEST_PARTITION + 1), max(own) + 1))
    missing = [number for number in numbers if number not in own]
    if missing:
        shown = ", ".join(map(str, missing[:_MOST_NAMED])) + (", …" if len(missing) > _MOST_NAMED else "")
        are = "partition {} isn't here, and is served as empty"
        if len(missing) > 1:
            are = "partitions {} aren't here, and are served as empty"
        say(f"{topic}{of}: {are.format(shown)}")
    return {number: chosen.get(number) for number in numbers}


def _served_topic(
    name: str,
    topic_id: str,
    partitions: Mapping[int, PartitionLog | None],
    settings: ServeSettings,
    say: Callable[[str], None],
    plans: KnownPlans,
) -> ServedTopic:
    served = {number: ServedPartition(name, number, log, say, settings, plans) for number, log in partitions.items()}
    return ServedTopic(name, topic_id, served)
