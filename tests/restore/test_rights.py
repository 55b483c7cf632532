"""Rights in the target: refused operations are found by requests that change nothing, and named with a command."""

import random
from pathlib import Path

import pytest

from kseg.client import connection as apis
from kseg.formats.messages import Fields
from kseg.protocol.error_codes import ErrorCode
from tests import run
from tests.restore.fake_broker import FakeBroker
from tests.restore.test_sender import write_partition


class StrictBroker(FakeBroker):
    """A broker that refuses some operations. refused: the keys of their APIs."""

    def __init__(self, refused: set[int]) -> None:
        super().__init__()
        self.refused = refused

    def _answer(self, key: int, body: Fields) -> Fields | None:
        topic = ErrorCode.TOPIC_AUTHORIZATION_FAILED if key in self.refused else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if key == apis.HEARTBEAT.key:
            is_refused = key in self.refused
            return {"errorCode": ErrorCode.GROUP_AUTHORIZATION_FAILED if is_refused else ErrorCode.UNKNOWN_MEMBER_ID}
        if key == apis.CREATE_TOPICS.key and body["validateOnly"]:
            return {"topics": [{"name": each["name"], "errorCode": topic} for each in body["topics"]]}
        if key == apis.INCREMENTAL_ALTER_CONFIGS.key and body["validateOnly"]:
            names = [each["resourceName"] for each in body["resources"]]
            answer = {"errorMessage": None, "resourceType": 2}
            return {"responses": [{**answer, "errorCode": topic, "resourceName": name} for name in names]}
        if key == apis.PRODUCE.key and not body["topicData"][0]["partitionData"][0]["records"]:
            parts = [{"index": 0, "errorCode": topic, "baseOffset": -1}]
            return {"responses": [{"name": each["name"], "partitionResponses": parts} for each in body["topicData"]]}
        if key == apis.FETCH.key and body["maxBytes"] == 1:
            parts = [{"partitionIndex": 0, "errorCode": topic, "highWatermark": -1, "records": None}]
            return {"responses": [{"topic": each["topic"], "partitions": parts} for each in body["topics"]]}
        if key == apis.INIT_PRODUCER_ID.key and key in self.refused:
            return {"errorCode": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "producerId": -1, "producerEpoch": -1}
        return super()._answer(key, body)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_partition(tmp_path / "t-0", 3, random.Random(1))
    return tmp_path


CASES = [
    (apis.CREATE_TOPICS, "topic t: the target refuses Create", "--operation Create --topic t"),
    (apis.PRODUCE, "topic t: the target refuses Write", "--operation Write --topic t"),
    (apis.FETCH, "topic t: the target refuses Read", "--operation Read --topic t"),
    (apis.INCREMENTAL_ALTER_CONFIGS, "topic t: the target refuses AlterConfigs", "--operation AlterConfigs --topic t"),
    (apis.INIT_PRODUCER_ID, "cluster: the target refuses IdempotentWrite", "--operation IdempotentWrite --cluster"),
    (apis.HEARTBEAT, "group kseg-restore-j: the target refuses Read", "--operation Read --group kseg-restore-j"),
]


@pytest.mark.parametrize(("api", "problem", "arguments"), CASES)
def test_a_missing_right_is_named_and_nothing_is_written(
    source: Path, api: apis.Api, problem: str, arguments: str
) -> None:
    with StrictBroker({api.key}).running() as broker:
        bootstrap = "{}:{}".format(*broker.address)
        ran = run.kseg(["restore", "t-0", "--bootstrap", bootstrap, "--job", "j", "--yes"], source)
        command = f"kafka-acls.sh --bootstrap-server {bootstrap} --add --allow-principal User:NAME {arguments}"
        line = f"kseg: {problem}; run `{command}`"
        assert (ran.status, line in ran.stderr.decode().splitlines()) == (3, True), ran.stderr
        assert (broker.logs, broker.groups) == ({}, {})


def test_a_restore_begins_if_nothing_is_refused(source: Path) -> None:
    with StrictBroker(set()).running() as broker:
        bootstrap = "{}:{}".format(*broker.address)
        ran = run.kseg(["restore", "t-0", "--bootstrap", bootstrap, "--job", "j", "--yes", "-q"], source)
        assert (ran.status, ran.stderr) == (0, b"")
        assert broker.logs["t"][0].end > 0
