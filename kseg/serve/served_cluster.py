"""The cluster that clients see: one broker, with the topics and partitions of some directories."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from uuid import NAMESPACE_URL, uuid5

from kseg.errors import KsegError, OpenError
from kseg.formats.messages import ZERO_UUID
from kseg.formats.names import DirectoryState
from kseg.kafka_defaults import INTERNAL_TOPICS
from kseg.log.partition.log_dir import LogDir
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.replicas import one_of_each, require_one_topic
from kseg.serve.fetch_sessions import FetchSessions
from kseg.serve.groups.commits import Commits
from kseg.serve.groups.group_coordinator import GroupCoordinator
from kseg.serve.groups.stored_groups import StoredGroups
from kseg.serve.known_plans import KnownPlans
from kseg.serve.known_settings import KnownSettings
from kseg.serve.known_transactions import KnownTransactions
from kseg.serve.served_partition import ServedPartition, ServeSettings
from kseg.views.home_partition import OFFSETS_TOPIC
from kseg.views.transactions import TOPIC as TRANSACTIONS_TOPIC

DEFAULT_NODE_ID = 0
"""Of a broker whose `meta.properties` isn't here."""
LARGEST_PARTITION = 99_999
"""The largest number that is served. The partitions below it are served too, as empty ones if they aren't here."""
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class ServedTopic:
    """A topic and its partitions by number, from 0 on without a gap. topic_id: zeros if the disks don't have it."""

    name: str
    topic_id: str
    partitions: Mapping[int, ServedPartition]

    @property
    def is_internal(self) -> bool:
        """Whether it is one of Kafka's own."""
        return self.name in INTERNAL_TOPICS


class ServedCluster:
    """Topics by name, and by id; the ids of the cluster and of its one broker; its log directories, and settings.

    groups: those of its clients. transactions: what coordinators knew last. fetch_sessions: what clients have asked
    for.
    """

    def __init__(
        self,
        topics: Mapping[str, ServedTopic],
        cluster_id: str,
        node_id: int,
        groups: GroupCoordinator,
        log_dirs: Iterable[Path] = (),
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Takes the topics by name, who they belong to, who reads them together, and where they lie.

        `say` is called with what can't be read there.
        """
        self.topics, self.groups = topics, groups
        self._by_id = {topic.topic_id: topic for topic in self.topics.values() if topic.topic_id != ZERO_UUID}
        self.cluster_id, self.node_id = cluster_id, node_id
        self.log_dirs = tuple(log_dirs)
        self.settings = KnownSettings(self.log_dirs, node_id, say)
        self.fetch_sessions = FetchSessions()
        coordinators = self.topics.get(TRANSACTIONS_TOPIC)
        self.transactions = KnownTransactions({} if coordinators is None else coordinators.partitions, say)

    def topic_of(self, name: str | None, topic_id: str) -> ServedTopic | None:
        """A topic by its name or, without one, by its id."""
        return self._by_id.get(topic_id) if name is None else self.topics.get(name)

    def partition_of(self, topic: str, number: int) -> ServedPartition | None:
        """A partition by its topic's name and its number."""
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(number)

    @property
    def partitions(self) -> list[ServedPartition]:
        """All partitions that are here."""
        served = (partition for topic in self.topics.values() for partition in topic.partitions.values())
        return [partition for partition in served if partition.listed is not None]

    @property
    def has_missed(self) -> bool:
        """Whether anything was passed over since it is damaged."""
        return any(partition.has_missed for partition in self.partitions)


def serve_partitions(
    found: Iterable[PartitionLog],
    settings: ServeSettings,
    say: Callable[[str], None],
    commits: Iterable[PartitionLog] = (),
    clock: Callable[[], float] = monotonic,
) -> ServedCluster:
    """The cluster that some partitions' directories make up; of several replicas the one that ends last is served.

    Args:
        found: the directories.
        settings: how they are served.
        say: is called with what isn't served as it lies there.
        commits: directories of `__consumer_offsets` that are only read for groups' offsets, besides those in `found`.
        clock: seconds, for groups' sessions.

    Raises:
        UsageError: directories of one name belong to different topics.
        OpenError: one of several replicas can't be opened.
    """
    by_topic: dict[str, dict[int, list[PartitionLog]]] = defaultdict(lambda: defaultdict(list))
    places = list(found)
    for place in places:
        topic, number = _name(place)
        if not settings.has_internal and topic in INTERNAL_TOPICS:
            continue
        if (reason := _why_not_served(place)) is not None:
            say(f"{place.path}: not served: {reason}")
            continue
        by_topic[topic][number].append(place)
    plans = KnownPlans()
    topics = {name: _served_topic(name, by_topic[name], settings, say, plans) for name in sorted(by_topic)}
    counts = {name: len(topic.partitions) for name, topic in topics.items() if topic.topic_id != ZERO_UUID}
    offsets = {each.path: each for each in (*places, *commits) if each.topic == OFFSETS_TOPIC and each.state is None}
    stored = StoredGroups(one_of_each(offsets.values()), say, clock)
    groups = GroupCoordinator(Commits(stored), counts, say, clock)
    log_dirs = {place.log_dir: place for place in places}
    cluster_id, node_id = _identity(log_dirs, say)
    return ServedCluster(topics, cluster_id, node_id, groups, log_dirs, say)


_ABOUT = {DirectoryState.DELETE: "delete", DirectoryState.STRAY: "delete", DirectoryState.FUTURE: "complete"}


def _name(place: PartitionLog) -> tuple[str, int]:
    return (place.directory_name, 0) if place.name is None else (place.name.topic, place.name.partition)


def _why_not_served(place: PartitionLog) -> str | None:
    """What keeps clients from a directory; None if nothing does."""
    topic, number = _name(place)
    if place.state is not None:
        return f"the broker was about to {_ABOUT[place.state]} it"
    if number > LARGEST_PARTITION:
        return f"clients count partitions from 0 on, and no topic has more than {LARGEST_PARTITION + 1}"
    try:
        topic.encode()
    except UnicodeEncodeError:
        return "its name isn't UTF-8; clients couldn't ask for it"
    return None


def _served_topic(
    name: str,
    replicas: Mapping[int, list[PartitionLog]],
    settings: ServeSettings,
    say: Callable[[str], None],
    plans: KnownPlans,
) -> ServedTopic:
    require_one_topic(place for places in replicas.values() for place in places)
    chosen = {number: _chosen(name, number, places, say) for number, places in replicas.items()}
    missing = [number for number in range(max(chosen)) if number not in chosen]
    if missing:
        shown = ", ".join(map(str, missing[:_MOST_NAMED])) + (", …" if len(missing) > _MOST_NAMED else "")
        are = "partition {} isn't here, and is served as an empty one"
        if len(missing) > 1:
            are = "partitions {} aren't here, and are served as empty ones"
        say(f"{name}: {are.format(shown)}")
    served = {
        number: ServedPartition(
            name,
            number,
            chosen.get(number),
            say,
            settings,
            plans,
        )
        for number in range(max(chosen) + 1)
    }
    return ServedTopic(name, _topic_id(chosen.values()), served)


def _chosen(topic: str, number: int, places: list[PartitionLog], say: Callable[[str], None]) -> PartitionLog:
    if len(places) == 1 or places[0].name is None:
        return places[0]
    (best,) = one_of_each(places)
    say(f"{topic}-{number}: {len(places)} replicas: {best.path} is served, it ends last")
    return best


def _topic_id(places: Iterable[PartitionLog]) -> str:
    for place in places:
        try:
            topic_id = place.read_topic_id()
        except KsegError:
            continue
        if topic_id is not None:
            return topic_id
    return ZERO_UUID


def _identity(places: Mapping[Path, PartitionLog], say: Callable[[str], None]) -> tuple[str, int]:
    """Cluster id and node id, by the first `meta.properties` that has them."""
    cluster_id, node_id = None, None
    for place in places.values():
        try:
            log_dir = LogDir(place.log_dir)
            cluster_id = cluster_id or log_dir.read_properties().get("cluster.id")
            node_id = log_dir.broker_id() if node_id is None else node_id
        except OpenError:
            continue
        except KsegError as error:
            say(f"{place.log_dir}: {error}")
    made_up = uuid5(NAMESPACE_URL, "kseg serve").hex[:22]
    return cluster_id or made_up, DEFAULT_NODE_ID if node_id is None else node_id
