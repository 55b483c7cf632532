"""A cluster's metadata, replayed from `__cluster_metadata`."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kseg.cluster.metadata import Until
from kseg.cluster.metadata_copy import read_cluster_metadata
from kseg.cluster.model import Acl, Config, DelegationToken, Feature, Quota, QuotaEntity, ScramUser
from kseg.errors import KsegError
from kseg.formats.messages import build_message
from kseg.formats.schemas import MessageSchema, message_schema
from tests import golden
from tests.coordinators.printed import cases_of, printed_records
from tests.kernel.made import BatchHeader, batch
from tests.log_files import NewBatch, NewRecord, write_segment

LOGS = golden.ROOT / "logs"
TOPIC_ID, OTHER_ID = "A" * 21 + "g", "A" * 21 + "w"


def partitions_with_checkpoints(count: int) -> list[Path]:
    found = {path.parent for path in golden.files(".checkpoint") if path.parent.name == "__cluster_metadata-0"}
    return sorted(path for path in found if len(list(path.glob("*.checkpoint"))) >= count)


@pytest.mark.parametrize("partition", partitions_with_checkpoints(2), ids=lambda path: path.parts[-2])
def test_the_older_checkpoint_and_the_log_give_what_the_newer_checkpoint_holds(partition: Path, tmp_path: Path) -> None:
    newest = max(partition.glob("*.checkpoint"))
    until = Until(offset=int(newest.name[:20]) - 1)
    copy = tmp_path / partition.name
    shutil.copytree(partition, copy)
    (copy / newest.name).unlink()
    from_checkpoint = read_cluster_metadata(partition, until)
    replayed = read_cluster_metadata(copy, until)
    assert from_checkpoint.checkpoint == newest.name
    assert replayed.checkpoint is not None
    assert replayed.checkpoint < newest.name
    assert replace(replayed, checkpoint=newest.name, timestamp=0) == replace(from_checkpoint, timestamp=0)
    assert (replayed.missing_before, replayed.unapplied, replayed.unreadable) == (None, 0, ())


def test_batches_whose_records_can_not_be_read_are_reported(tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(batch(BatchHeader(attributes=5, count=1), body=b"?"))
    (unreadable,) = read_cluster_metadata(directory).unreadable
    assert unreadable.line().startswith("__cluster_metadata-0: offset 0: bad-codec in the batch that ends there: ")


def test_there_are_clusters_with_two_checkpoints() -> None:
    assert {path.parts[-2] for path in partitions_with_checkpoints(2)} >= {"3.3.2", "3.6.2"}


def printed_topics(release: str) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """Return topics with their ids, and configs of topics, from the real tool's output of checkpoint and log."""
    topics: dict[str, str] = {}
    configs: dict[tuple[str, str], str] = {}
    folder = f"logs/{release}/__cluster_metadata-0/"
    cases = {case.files[0]: case for case in cases_of("--cluster-metadata-decoder", folder)}
    snapshot = max(path for path in cases if path.endswith(".checkpoint"))
    end = int(Path(snapshot).name[:20])
    logs = sorted(path for path in cases if path.endswith(".log"))
    for path in (snapshot, *logs):
        for record in printed_records(cases[path]):
            if path == snapshot or record.offset >= end:
                data = record.value["data"]
                match record.value["type"]:
                    case "TOPIC_RECORD":
                        topics[data["topicId"]] = data["name"]
                    case "REMOVE_TOPIC_RECORD":
                        name = topics.pop(data["topicId"])
                        configs = {key: value for key, value in configs.items() if key[0] != name}
                    case "CONFIG_RECORD" if data["resourceType"] == 2:
                        configs[data["resourceName"], data["name"]] = data["value"]
    return topics, {key: value for key, value in configs.items() if value is not None}


@pytest.mark.parametrize("release", ["3.9.1-tiered", "4.1.0", "4.3.1"])
def test_topics_and_configs_are_those_that_the_real_tool_printed(release: str) -> None:
    topics, configs = printed_topics(release)
    found = read_cluster_metadata(LOGS / release)
    assert {topic.topic_id: topic.name for topic in found.topics} == topics
    of_topics = [config for config in found.configs if config.resource_type == "topic"]
    assert {(config.resource, config.name): config.value for config in of_topics} == configs


def test_an_offset_and_the_time_of_its_record_are_the_same_moment() -> None:
    partition = LOGS / "3.9.1-tiered" / "__cluster_metadata-0"
    at_offset = read_cluster_metadata(partition, Until(offset=60))
    at_time = read_cluster_metadata(partition, Until(timestamp_ms=at_offset.timestamp))
    later = read_cluster_metadata(partition, Until(offset=at_time.offset))
    assert at_time == later
    assert at_time.offset >= 60


def test_what_neither_the_log_nor_a_checkpoint_has_is_reported() -> None:
    found = read_cluster_metadata(LOGS / "4.3.1", Until(offset=600))
    assert (found.checkpoint, found.missing_before) == (None, 510)


def frame_record(message: MessageSchema, fields: dict[str, object], version: int = 0) -> NewRecord:
    return NewRecord(None, bytes((1, message.api_key or 0, version)) + build_message(message, version, fields))


def partition_of(tmp_path: Path, *written: NewRecord) -> Path:
    directory = tmp_path / "__cluster_metadata-0"
    write_segment(directory, [NewBatch([record], offset) for offset, record in enumerate(written)])
    return directory


TOPIC = frame_record(message_schema("TopicRecord"), {"name": "orders", "topicId": TOPIC_ID})
PARTITION = frame_record(
    message_schema("PartitionRecord"),
    {
        "partitionId": 0,
        "topicId": TOPIC_ID,
        "replicas": [1, 2, 3],
        "isr": [1, 2, 3],
        "leader": 1,
        "leaderEpoch": 0,
        "partitionEpoch": 0,
    },
)


def change_partition(**fields: object) -> NewRecord:
    return frame_record(message_schema("PartitionChangeRecord"), {"partitionId": 0, "topicId": TOPIC_ID, **fields})


def test_a_change_of_isr_keeps_leader_and_epoch(tmp_path: Path) -> None:
    (found,) = read_cluster_metadata(partition_of(tmp_path, TOPIC, PARTITION, change_partition(isr=[1, 3]))).partitions
    assert (found.isr, found.leader, found.leader_epoch, found.partition_epoch) == ((1, 3), 1, 0, 1)


def test_a_change_of_leader_raises_its_epoch(tmp_path: Path) -> None:
    written = (TOPIC, PARTITION, change_partition(leader=2, isr=[2]), change_partition(leader=-1))
    (found,) = read_cluster_metadata(partition_of(tmp_path, *written)).partitions
    assert (found.isr, found.leader, found.leader_epoch, found.partition_epoch) == ((2,), -1, 2, 2)


def test_a_removed_topic_is_gone_with_its_configs(tmp_path: Path) -> None:
    config = {"resourceType": 2, "resourceName": "orders", "name": "cleanup.policy", "value": "compact"}
    removed = frame_record(message_schema("RemoveTopicRecord"), {"topicId": TOPIC_ID})
    again = frame_record(message_schema("TopicRecord"), {"name": "orders", "topicId": OTHER_ID})
    written = (TOPIC, PARTITION, frame_record(message_schema("ConfigRecord"), config), removed, again)
    found = read_cluster_metadata(partition_of(tmp_path, *written))
    assert [(topic.name, topic.topic_id, topic.partitions) for topic in found.topics] == [("orders", OTHER_ID, ())]
    assert found.configs == ()


def test_a_config_set_to_null_is_gone(tmp_path: Path) -> None:
    config = {"resourceType": 4, "resourceName": "", "name": "log.retention.ms", "value": "5"}
    other = {**config, "name": "ssl.key.password", "value": "x"}
    written = [
        frame_record(message_schema("ConfigRecord"), fields) for fields in (config, other, {**config, "value": None})
    ]
    (found,) = read_cluster_metadata(partition_of(tmp_path, *written)).configs
    assert found == Config("broker", "", "ssl.key.password", "x")
    assert found.is_secret


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("ssl.keystore.password", True),
        ("listener.name.x.scram-sha-256.sasl.jaas.config", True),
        ("sasl.jaas.config", True),
        ("password.encoder.secret", True),
        ("retention.ms", False),
    ],
)
def test_settings_with_secrets_are_known(name: str, is_secret: bool) -> None:
    assert Config("broker", "1", name, "x").is_secret is is_secret


def test_a_broker_is_fenced_unfenced_and_unregistered(tmp_path: Path) -> None:
    broker = frame_record(
        message_schema("RegisterBrokerRecord"), {"brokerId": 5, "brokerEpoch": 9, "fenced": True, "rack": "r"}, 1
    )
    steps = [
        broker,
        frame_record(message_schema("UnfenceBrokerRecord"), {"id": 5, "epoch": 9}),
        frame_record(message_schema("FenceBrokerRecord"), {"id": 5, "epoch": 9}),
        frame_record(
            message_schema("BrokerRegistrationChangeRecord"), {"brokerId": 5, "brokerEpoch": 9, "fenced": -1}, 1
        ),
        frame_record(
            message_schema("BrokerRegistrationChangeRecord"),
            {"brokerId": 5, "brokerEpoch": 9, "inControlledShutdown": 1},
            1,
        ),
        frame_record(message_schema("UnregisterBrokerRecord"), {"brokerId": 5, "brokerEpoch": 9}),
    ]
    partition = partition_of(tmp_path, *steps)
    states = [
        [(broker.is_fenced, broker.is_in_controlled_shutdown) for broker in found.brokers]
        for found in (read_cluster_metadata(partition, Until(offset=offset)) for offset in range(len(steps)))
    ]
    assert states == [[(True, False)], [(False, False)], [(True, False)], [(False, False)], [(False, True)], []]


def test_features_are_set_and_removed(tmp_path: Path) -> None:
    levels = [("metadata.version", 7), ("group.version", 1), ("metadata.version", 30), ("group.version", 0)]
    written = [
        frame_record(message_schema("FeatureLevelRecord"), {"name": name, "featureLevel": level})
        for name, level in levels
    ]
    assert read_cluster_metadata(partition_of(tmp_path, *written)).features == (Feature("metadata.version", 30),)


BEGIN, END = (
    frame_record(message_schema("BeginTransactionRecord"), {}),
    frame_record(message_schema("EndTransactionRecord"), {}),
)
ABORT = frame_record(message_schema("AbortTransactionRecord"), {})


@pytest.mark.parametrize(
    ("written", "topics", "unapplied"),
    [((BEGIN, TOPIC, END), 1, 0), ((BEGIN, TOPIC, ABORT), 0, 0), ((BEGIN, TOPIC), 0, 1)],
    ids=["ended", "aborted", "open"],
)
def test_metadata_transactions_count_once_they_ended(
    tmp_path: Path, written: tuple[NewRecord, ...], topics: int, unapplied: int
) -> None:
    found = read_cluster_metadata(partition_of(tmp_path, *written))
    assert (len(found.topics), found.unapplied) == (topics, unapplied)


def test_clearing_eligible_replicas(tmp_path: Path) -> None:
    elr = frame_record(
        message_schema("PartitionChangeRecord"),
        {"partitionId": 0, "topicId": TOPIC_ID, "eligibleLeaderReplicas": [2], "lastKnownElr": [3]},
        2,
    )
    partition = partition_of(
        tmp_path, TOPIC, PARTITION, elr, frame_record(message_schema("ClearElrRecord"), {"topicName": ""})
    )
    before, after = (read_cluster_metadata(partition, Until(offset=offset)).partitions[0] for offset in (2, 3))
    assert (before.elr, before.last_known_elr, after.elr, after.last_known_elr) == ((2,), (3,), (), ())


def test_records_that_cant_be_read_or_applied_are_reported(tmp_path: Path) -> None:
    written = (NewRecord(None, b"\x01\x63\0"), NewRecord(None, b"\0\2\0"), PARTITION, change_partition(leader=3), TOPIC)
    found = read_cluster_metadata(partition_of(tmp_path, *written))
    assert [unreadable.offset for unreadable in found.unreadable] == [0, 1]
    assert found.unapplied == 2
    assert [topic.name for topic in found.topics] == ["orders"]


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_checkpoint_that_isnt_whole_gives_way_to_an_older_one(damage: str, tmp_path: Path) -> None:
    copy = tmp_path / "__cluster_metadata-0"
    shutil.copytree(LOGS / "3.3.2" / "__cluster_metadata-0", copy)
    *_, older, newest = sorted(copy.glob("*.checkpoint"))
    content = bytearray(newest.read_bytes())
    whole = read_cluster_metadata(copy)
    match damage:
        case "cut":
            del content[len(content) // 2 :]
        case "flipped":
            content[len(content) // 2] ^= 1
        case _:
            content.clear()
    newest.write_bytes(content)
    found = read_cluster_metadata(copy)
    assert found.checkpoint == older.name
    assert [(unreadable.directory, "not used" in unreadable.reason) for unreadable in found.unreadable] == [
        (newest.name, True)
    ]
    assert replace(found, checkpoint=None, unreadable=()) == replace(whole, checkpoint=None)


def test_a_directory_without_metadata_is_refused(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    with pytest.raises(KsegError, match="__cluster_metadata"):
        read_cluster_metadata(tmp_path)


def test_acls_quotas_users_and_tokens_come_and_go(tmp_path: Path) -> None:
    acl = {"id": TOPIC_ID, "resourceType": 2, "resourceName": "t", "patternType": 3, "principal": "User:a", "host": "*"}
    entity = [{"entityType": "user", "entityName": None}]
    quota = {"entity": entity, "key": "producer_byte_rate", "value": 1.5, "remove": False}
    scram = {"name": "a", "mechanism": 2, "salt": b"s", "storedKey": b"k", "serverKey": b"k", "iterations": 4096}
    token = {"owner": "User:a", "requester": "User:b", "renewers": ["User:c"], "issueTimestamp": 1, "tokenId": "id"}
    there = [
        frame_record(message_schema("AccessControlEntryRecord"), {**acl, "operation": 3, "permissionType": 99}),
        frame_record(message_schema("ClientQuotaRecord"), quota),
        frame_record(message_schema("UserScramCredentialRecord"), scram),
        frame_record(message_schema("DelegationTokenRecord"), {**token, "expirationTimestamp": 2, "maxTimestamp": 3}),
    ]
    gone = [
        frame_record(message_schema("RemoveAccessControlEntryRecord"), {"id": TOPIC_ID}),
        frame_record(message_schema("ClientQuotaRecord"), {**quota, "remove": True}),
        frame_record(message_schema("RemoveUserScramCredentialRecord"), {"name": "a", "mechanism": 2}),
        frame_record(message_schema("RemoveDelegationTokenRecord"), {"tokenId": "id"}),
    ]
    partition = partition_of(tmp_path, *there, *gone)
    before, after = (read_cluster_metadata(partition, Until(offset=offset)) for offset in (3, 7))
    assert before.acls == (Acl("TOPIC", "t", "LITERAL", "User:a", "*", "READ", "99"),)
    assert before.quotas == (Quota((QuotaEntity("user", None),), "producer_byte_rate", 1.5),)
    assert [each._replace(digest="") for each in before.scram] == [ScramUser("a", "SCRAM-SHA-512", 4096)]
    assert before.tokens == (DelegationToken("id", "User:a", "User:b", ("User:c",), 1, 2, 3),)
    assert (after.acls, after.quotas, after.scram, after.tokens, after.unapplied) == ((), (), (), (), 0)
