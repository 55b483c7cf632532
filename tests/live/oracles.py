"""The output of Kafka's own tools for a running cluster, as rows."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.live.cluster import Cluster

_TOOLS = "org.apache.kafka.tools."
GROUPS = f"{_TOOLS}consumer.group.ConsumerGroupCommand"
SHARE_GROUPS = f"{_TOOLS}consumer.group.ShareGroupCommand"
STREAMS_GROUPS = f"{_TOOLS}streams.StreamsGroupCommand"
TRANSACTIONS = f"{_TOOLS}TransactionsCommand"
TIMES = {"latest": "-1", "earliest": "-2", "max-timestamp": "-3"}

Row = dict[str, str]
"""A row of a table: values by column name."""


class TopicPartition(NamedTuple):
    """A partition as kafka-topics.sh describes it."""

    topic: str
    topic_id: str
    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Oracles:
    """Kafka's tools for a cluster; each answer is rows."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def _ask(self, tool: str, *arguments: str) -> str:
        return self._cluster.run(tool, "--bootstrap-server", self._cluster.bootstrap, *arguments)

    def group_states(self) -> list[Row]:
        """Return rows of kafka-consumer-groups.sh, kafka-share-groups.sh and kafka-streams-groups.sh, --state."""
        asked = ("--describe", "--all-groups", "--state")
        return [row for tool in (GROUPS, SHARE_GROUPS, STREAMS_GROUPS) for row in _table(self._ask(tool, *asked))]

    def group_types(self) -> list[Row]:
        """Return rows of kafka-groups.sh --list."""
        return list(_fixed_width(self._ask(f"{_TOOLS}GroupsCommand", "--list")))

    def group_members(self) -> list[Row]:
        """Return rows of the same three, --members --verbose."""
        asked = ("--describe", "--all-groups", "--members", "--verbose")
        return [row for tool in (GROUPS, SHARE_GROUPS, STREAMS_GROUPS) for row in _table(self._ask(tool, *asked))]

    def commits(self) -> list[Row]:
        """Return rows of kafka-consumer-groups.sh --describe."""
        return list(_table(self._ask(GROUPS, "--describe", "--all-groups")))

    def share_offsets(self) -> list[Row]:
        """Return rows of kafka-share-groups.sh --describe --offsets."""
        return list(_table(self._ask(SHARE_GROUPS, "--describe", "--all-groups", "--offsets")))

    def transactions(self) -> list[Row]:
        """Return rows of kafka-transactions.sh list."""
        return list(_table(self._ask(TRANSACTIONS, "list")))

    def transaction(self, transactional_id: str) -> Row:
        """Return the row of kafka-transactions.sh describe."""
        (row,) = _table(self._ask(TRANSACTIONS, "describe", "--transactional-id", transactional_id))
        return row

    def hanging(self, broker: int) -> list[Row]:
        """Return rows of kafka-transactions.sh find-hanging."""
        return list(_table(self._ask(TRANSACTIONS, "find-hanging", "--broker-id", str(broker))))

    def offsets(self, time: str) -> dict[tuple[str, int], int | None]:
        """Return kafka-get-offsets.sh's offset at a time, by topic and partition, or None if it doesn't exist."""
        lines = self._ask(f"{_TOOLS}GetOffsetShell", "--time", time).splitlines()
        split = [line.rsplit(":", 2) for line in lines]
        return {(topic, int(partition)): int(offset) if offset else None for topic, partition, offset in split}

    def sizes(self) -> dict[tuple[int, str, str], int]:
        """Return kafka-log-dirs.sh's bytes by broker, log directory, and partition directory."""
        answer = json.loads(self._ask(f"{_TOOLS}LogDirsCommand", "--describe").splitlines()[-1])
        return {
            (broker["broker"], log_dir["logDir"], partition["partition"]): partition["size"]
            for broker in answer["brokers"]
            for log_dir in broker["logDirs"]
            for partition in log_dir["partitions"]
        }

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions of kafka-topics.sh --describe."""
        found, topic_ids = [], {}
        for line in self._ask(f"{_TOOLS}TopicCommand", "--describe").splitlines():
            values = dict(re.findall(r"(\w+): ([^\t]*)", line))
            if "TopicId" in values:
                topic_ids[values["Topic"]] = values["TopicId"]
            else:
                topic = values["Topic"]
                replicas, isr = (tuple(map(int, values[name].split(","))) for name in ("Replicas", "Isr"))
                number, leader = int(values["Partition"]), int(values["Leader"])
                found.append(TopicPartition(topic, topic_ids[topic], number, leader, replicas, isr))
        return found


def _table(text: str) -> Iterator[Row]:
    """Yield rows of tables in which only the last column may have spaces; names are above each table."""
    names: list[str] = []
    for line in text.splitlines():
        # Two names have a space in them.
        words = line.replace("COORDINATOR (ID)", "COORDINATOR-(ID)").replace("  (", "(").replace(" (", "(").split()
        if not words or line.startswith(("Consumer group", "Share group", "Streams group")):
            names = names if words else []
        elif not names:
            names = words
        else:
            words = line.replace("  (", "(").replace(" (", "(").split(None, len(names) - 1)
            yield dict(zip(names, map(str.strip, words), strict=False))


def _fixed_width(text: str) -> Iterator[Row]:
    """Yield rows of a table whose values may be missing."""
    head, *lines = text.splitlines()
    starts = [match.start() for match in re.finditer(r"\S+", head)]
    ends = [*starts[1:], None]
    for line in lines:
        yield {head[a:b].strip(): line[a:b].strip() for a, b in zip(starts, ends, strict=True)}
