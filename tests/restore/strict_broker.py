"""A broker in this process with rights, and answers to the requests that ask for them."""

from kseg.client import connection as apis
from kseg.formats.messages import Fields
from kseg.protocol.error_codes import ErrorCode
from tests.restore.fake_broker import FakeBroker


class StrictBroker(FakeBroker):
    """A broker that refuses some operations.

    refused: the keys of their APIs. searches: the number of answers that know no coordinator yet.
    """

    def __init__(self, refused: set[int]) -> None:
        super().__init__()
        self.refused = refused
        self.searches = 0

    def _answer(self, key: int, body: Fields, node: int) -> Fields | None:
        topic = ErrorCode.TOPIC_AUTHORIZATION_FAILED if key in self.refused else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if key == apis.FIND_COORDINATOR.key and self.searches:
            self.searches -= 1
            return {"errorCode": ErrorCode.COORDINATOR_NOT_AVAILABLE, "nodeId": -1, "host": "", "port": -1}
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
        if key == apis.DELETE_RECORDS.key and body["topics"][0]["partitions"][0]["offset"] == 0:
            parts = [{"partitionIndex": 0, "lowWatermark": -1, "errorCode": topic}]
            return {"topics": [{"name": each["name"], "partitions": parts} for each in body["topics"]]}
        if key == apis.INIT_PRODUCER_ID.key and key in self.refused:
            return {"errorCode": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "producerId": -1, "producerEpoch": -1}
        return super()._answer(key, body, node)
