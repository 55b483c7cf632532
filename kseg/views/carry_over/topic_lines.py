"""`kafka-topics.sh` lines that create topics with their settings."""

from collections.abc import Iterable, Iterator

from kseg.kafka_defaults import INTERNAL_TOPICS
from kseg.views.carry_over.tool_line import LeaveOut, Settings, Target, is_plain
from kseg.views.cluster import ClusterPartition, Config, Topic


def topic_lines(
    topics: Iterable[Topic], configs: Iterable[Config], target: Target, *, keeps_brokers: bool, leave_out: LeaveOut
) -> Iterator[str]:
    """The lines for some topics.

    Args:
        topics: in their order.
        configs: the settings of all of them, without secrets.
        target: the cluster that the lines are for.
        keeps_brokers: name the brokers of each replica, which must be there then, instead of how many replicas.
        leave_out: takes topics that can't be created so.
    """
    values: dict[str, list[tuple[str, str]]] = {}
    for config in configs:
        values.setdefault(config.resource, []).append((config.name, config.value))
    for topic in topics:
        if not is_plain(topic.name) or not topic.partitions:
            leave_out(
                f"topic {topic.name}: " + ("it has no partitions" if is_plain(topic.name) else "no name of a topic")
            )
            continue
        own = values.get(topic.name, [])
        at_once = [each for each in own if _is_simple(*each)]
        words = [word for name, value in at_once for word in ("--config", f"{name}={value}")]
        there = ("--if-not-exists",) if topic.name in INTERNAL_TOPICS else ()
        places = _assignment(topic) if keeps_brokers else _counts(topic, leave_out)
        yield target.line("topics", "--create", *there, "--topic", topic.name, *places, *words)
        later = Settings.of(each for each in own if each not in at_once)
        yield from later.lines(target, "--entity-type", "topics", "--entity-name", topic.name)


def _is_simple(name: str, value: str) -> bool:
    """Whether --config takes a setting. Source: TopicCommand.parseTopicConfigsToBeAdded."""
    return is_plain(name) and is_plain(value) and "=" not in name + value


def _replicas(partition: ClusterPartition) -> tuple[int, ...]:
    """Where the replicas are to be in the end: a move is taken as done."""
    return tuple(each for each in partition.replicas if each not in partition.removing_replicas) or partition.replicas


def _counts(topic: Topic, leave_out: LeaveOut) -> tuple[str, ...]:
    factors = {len(_replicas(partition)) for partition in topic.partitions}
    if len(factors) > 1:
        leave_out(
            f"topic {topic.name}: its partitions have {min(factors)} to {max(factors)} replicas, all get the most"
        )
    return "--partitions", str(len(topic.partitions)), "--replication-factor", str(max(factors))


def _assignment(topic: Topic) -> tuple[str, ...]:
    return "--replica-assignment", ",".join(":".join(map(str, _replicas(each))) for each in topic.partitions)
