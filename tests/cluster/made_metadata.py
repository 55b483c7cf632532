"""Metadata of a small cluster: broker 1, topics, and settings."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from kseg.formats.schemas import message_schema
from tests.commands.test_plan_move import frame_record
from tests.log_files import NewBatch, write_segment

TOPIC, BROKER = 2, 4
"""Kinds of resources."""
Setting = tuple[int, str, str, str]
"""Kind and name of the resource, then name and value of the setting."""


def write_metadata(
    log_dir: Path, topics: Mapping[str, str], settings: Iterable[Setting] = (), count: int = 1, broker: int = 1
) -> None:
    """Write metadata to a log directory.

    topics: their ids by name. count: the number of partitions of each. broker: the registered one.
    """
    records = [frame_record(message_schema("RegisterBrokerRecord"), {"brokerId": broker}, 0)]
    for name, topic_id in topics.items():
        partition = {"topicId": topic_id, "replicas": [1], "isr": [1], "leader": 1, "leaderEpoch": 0}
        empty = {"partitionEpoch": 0, "removingReplicas": [], "addingReplicas": []}
        records += [
            frame_record(message_schema("TopicRecord"), {"name": name, "topicId": topic_id}),
            *(
                frame_record(message_schema("PartitionRecord"), {"partitionId": number} | partition | empty)
                for number in range(count)
            ),
        ]
    for kind, resource, name, value in settings:
        fields = {"resourceType": kind, "resourceName": resource, "name": name, "value": value}
        records.append(frame_record(message_schema("ConfigRecord"), fields))
    write_segment(log_dir / "__cluster_metadata-0", [NewBatch(records)])


def write_id(directory: Path, topic_id: str) -> None:
    """Give a partition directory a topic id."""
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n", encoding="utf-8")
