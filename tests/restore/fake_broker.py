"""A broker in this process, as far as a restore needs one: it takes and refuses batches as Kafka does.

Source of its rules: ProducerStateManager, ProducerAppendInfo, and answers of a broker of 4.3.1.
"""

import socket
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock, Thread

from kseg.client import connection as apis
from kseg.formats.messages import Fields
from kseg.protocol.error_codes import ErrorCode
from kseg.protocol.messages import build_response, read_request
from kseg.reading.batch import Batch
from kseg.restore.contents import contents_of_batch
from kseg.writer.batches import MemoryRecords

KEPT_BATCHES = 5
"""The last batches of a producer that a partition recognizes when they come again."""
SEQUENCES = 2**31
NODE = 7
LONGEST_METADATA = 4096
OK, LOSE_ANSWER, LOSE_REQUEST, NOT_LEADER, HOLD_BACK, TIME_OUT = range(6)
"""What happens to a Produce request. HOLD_BACK: the connection ends, and the request is handled later."""
Place = tuple[str, int]


@dataclass
class FakeLog:
    """A partition: its batches, and what it knows of each producer: epoch, and its last batches."""

    batches: list[tuple[int, Batch]] = field(default_factory=list)
    end: int = 0
    producers: dict[int, tuple[int, deque[tuple[int, int, int]]]] = field(default_factory=dict)

    def append(self, raw: bytes) -> tuple[int, int]:
        """Append a batch; return the error code and the base offset."""
        (batch,) = MemoryRecords(raw).shallow()
        if not batch.is_valid:
            return ErrorCode.CORRUPT_MESSAGE, -1
        records = list(batch.records())
        deltas = [record.offset for record in records]
        if batch.magic != 2 or batch.attributes & ~7 or deltas != list(range(batch.last_offset + 1)):
            return ErrorCode.INVALID_RECORD, -1
        first, last = batch.base_sequence, (batch.base_sequence + len(records) - 1) % SEQUENCES
        epoch, known = self.producers.setdefault(batch.producer_id, (batch.producer_epoch, deque(maxlen=KEPT_BATCHES)))
        for known_first, known_last, offset in known:
            if (known_first, known_last) == (first, last):
                return ErrorCode.NONE, offset
        if batch.producer_epoch != epoch or (known and first != (known[-1][1] + 1) % SEQUENCES):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        base, self.end = self.end, self.end + len(records)
        known.append((first, last, base))
        self.batches.append((base, batch))
        return ErrorCode.NONE, base

    def records(self) -> list[tuple[int, bytes | None, bytes | None, tuple[object, ...]]]:
        """Return the contents of all records."""
        return [
            (timestamp, key, value, tuple(headers))
            for _, batch in self.batches
            for timestamp, key, value, headers in contents_of_batch(batch)
        ]


class FakeBroker:
    """A cluster of one broker.

    produced: what happens to the next Produce requests; then all are taken. unanswered: APIs whose next request ends
    the connection. elections: the number of Metadata answers in which partitions have no leader. versions: the newest
    one of each API.
    """

    def __init__(self) -> None:
        self.logs: dict[str, list[FakeLog]] = {}
        self.settings: dict[str, dict[str, str]] = {}
        self.groups: dict[str, dict[Place, tuple[int, str]]] = {}
        self.active: set[str] = set()
        self.produced: deque[int] = deque()
        self.unanswered: set[int] = set()
        self.elections = 0
        self.versions = {each.key: each.newest for each in vars(apis).values() if isinstance(each, apis.Api)}
        self._held: list[Fields] = []
        self._next_producer = 1000
        self._lock = Lock()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._server.getsockname()[:2]
        self._clients: list[socket.socket] = []

    @contextmanager
    def running(self) -> Iterator["FakeBroker"]:
        """Answer clients until the context ends."""
        thread = Thread(target=self._accept, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown(socket.SHUT_RDWR)
            self._server.close()
            for each in self._clients:
                each.close()
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self._clients.append(client)
                Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, ValueError), client, client.makefile("rb") as stream:
            while size := stream.read(4):
                request = read_request(stream.read(int.from_bytes(size, "big")))
                assert request.body is not None
                assert request.api_key is not None
                assert request.api_version is not None
                with self._lock:
                    answer = self._answer(request.api_key, request.body)
                if answer is None:
                    return
                pieces = build_response(request.api_key, request.api_version, request.correlation_id, answer)
                client.sendall(b"".join(pieces))

    def _answer(self, key: int, body: Fields) -> Fields | None:
        """Return the answer to a request; None ends the connection."""
        if key in self.unanswered:
            self.unanswered.remove(key)
            return None
        answers = {
            apis.API_VERSIONS.key: self._api_versions,
            apis.METADATA.key: self._metadata,
            apis.CREATE_TOPICS.key: self._create_topics,
            apis.INCREMENTAL_ALTER_CONFIGS.key: self._alter_configs,
            apis.LIST_OFFSETS.key: self._list_offsets,
            apis.PRODUCE.key: self._produce,
            apis.FETCH.key: self._fetch,
            apis.INIT_PRODUCER_ID.key: self._init_producer_id,
            apis.FIND_COORDINATOR.key: self._find_coordinator,
            apis.OFFSET_FETCH.key: self._offset_fetch,
            apis.OFFSET_COMMIT.key: self._offset_commit,
            apis.JOIN_GROUP.key: self._join_group,
            apis.SYNC_GROUP.key: lambda _: {"errorCode": 0, "assignment": b""},
            apis.LEAVE_GROUP.key: lambda _: {"errorCode": 0},
            apis.LIST_GROUPS.key: self._list_groups,
            apis.DELETE_GROUPS.key: self._delete_groups,
        }
        return answers[key](body)

    def _api_versions(self, _: Fields) -> Fields:
        known = [{"apiKey": key, "minVersion": 0, "maxVersion": newest} for key, newest in self.versions.items()]
        return {"errorCode": 0, "apiKeys": known}

    def _metadata(self, body: Fields) -> Fields:
        names = list(self.logs) if body["topics"] is None else [each["name"] for each in body["topics"]]
        host, port = self.address
        leader = NODE if not self.elections else -1
        self.elections = max(self.elections - 1, 0)
        return {
            "brokers": [{"nodeId": NODE, "host": host, "port": port}],
            "clusterId": "fake",
            "topics": [
                {
                    "errorCode": 0 if name in self.logs else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    "name": name,
                    "partitions": [
                        {"partitionIndex": number, "leaderId": leader, "replicaNodes": [NODE], "isrNodes": [NODE]}
                        for number in range(len(self.logs.get(name, ())))
                    ],
                }
                for name in names
            ],
        }

    def _create_topics(self, body: Fields) -> Fields:
        (topic,) = body["topics"]
        name, code = topic["name"], ErrorCode.TOPIC_ALREADY_EXISTS
        if name not in self.logs:
            code = ErrorCode.NONE
            self.logs[name] = [FakeLog() for _ in range(topic["numPartitions"])]
            self.settings[name] = {each["name"]: each["value"] for each in topic["configs"]}
        return {"topics": [{"name": name, "errorCode": code}]}

    def _alter_configs(self, body: Fields) -> Fields:
        (resource,) = body["resources"]
        own = self.settings[resource["resourceName"]]
        for each in resource["configs"]:
            if each["configOperation"]:
                own.pop(each["name"], None)
            else:
                own[each["name"]] = each["value"]
        answer = {"errorCode": 0, "errorMessage": None, "resourceType": 2, "resourceName": resource["resourceName"]}
        return {"responses": [answer]}

    def _list_offsets(self, body: Fields) -> Fields:
        def part(topic: str, number: int) -> Fields:
            return {"partitionIndex": number, "errorCode": 0, "timestamp": -1, "offset": self.logs[topic][number].end}

        return {
            "topics": [
                {"name": topic["name"], "partitions": [part(topic["name"], each["partitionIndex"]) for each in own]}
                for topic in body["topics"]
                for own in (topic["partitions"],)
            ]
        }

    def _produce(self, body: Fields) -> Fields | None:
        event = self.produced.popleft() if self.produced else OK
        while self._held and event != HOLD_BACK:
            self._append(self._held.pop(0))
        if event == HOLD_BACK:
            self._held.append(body)
            return None
        if event == LOSE_REQUEST:
            return None
        answer = self._append(body, ErrorCode.NOT_LEADER_OR_FOLLOWER if event == NOT_LEADER else None)
        if event == TIME_OUT:
            for topic in answer["responses"]:
                for each in topic["partitionResponses"]:
                    each |= {"errorCode": ErrorCode.REQUEST_TIMED_OUT, "baseOffset": -1}
        return None if event == LOSE_ANSWER else answer

    def _append(self, body: Fields, refusal: ErrorCode | None = None) -> Fields:
        responses = []
        for topic in body["topicData"]:
            parts = []
            for each in topic["partitionData"]:
                log = self.logs[topic["name"]][each["index"]]
                code, base = (refusal, -1) if refusal else log.append(each["records"])
                parts.append({"index": each["index"], "errorCode": code, "baseOffset": base})
            responses.append({"name": topic["name"], "partitionResponses": parts})
        return {"responses": responses}

    def _fetch(self, body: Fields) -> Fields:
        (topic,) = body["topics"]
        (part,) = topic["partitions"]
        log = self.logs[topic["topic"]][part["partition"]]
        found = b""
        for base, batch in log.batches:
            if base + batch.last_offset >= part["fetchOffset"] and len(found) < 1 << 16:
                found += base.to_bytes(8, "big") + batch.raw[8:]
        answer = {"partitionIndex": part["partition"], "errorCode": 0, "highWatermark": log.end, "records": found}
        return {"responses": [{"topic": topic["topic"], "partitions": [answer]}]}

    def _init_producer_id(self, _: Fields) -> Fields:
        self._next_producer += 1
        return {"errorCode": 0, "producerId": self._next_producer, "producerEpoch": 0}

    def _find_coordinator(self, _: Fields) -> Fields:
        host, port = self.address
        return {"errorCode": 0, "nodeId": NODE, "host": host, "port": port}

    def _offset_fetch(self, body: Fields) -> Fields:
        topics: dict[str, list[Fields]] = {}
        for (topic, number), (offset, metadata) in self.groups.get(body["groupId"], {}).items():
            part = {"partitionIndex": number, "committedOffset": offset, "metadata": metadata, "errorCode": 0}
            topics.setdefault(topic, []).append(part)
        return {"topics": [{"name": name, "partitions": own} for name, own in topics.items()], "errorCode": 0}

    def _offset_commit(self, body: Fields) -> Fields:
        own = self.groups.setdefault(body["groupId"], {})
        topics = []
        for topic in body["topics"]:
            parts = []
            for each in topic["partitions"]:
                assert each["committedLeaderEpoch"] == -1
                own[topic["name"], each["partitionIndex"]] = each["committedOffset"], each["committedMetadata"]
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE if len(each["committedMetadata"]) > LONGEST_METADATA else 0
                parts.append({"partitionIndex": each["partitionIndex"], "errorCode": code})
            topics.append({"name": topic["name"], "partitions": parts})
        return {"topics": topics}

    def _join_group(self, _: Fields) -> Fields:
        return {
            "errorCode": 0,
            "generationId": 1,
            "protocolName": "kseg",
            "leader": "me",
            "memberId": "me",
            "members": [{"memberId": "me", "metadata": b""}],
        }

    def _list_groups(self, _: Fields) -> Fields:
        states = {name: "Stable" if name in self.active else "Empty" for name in self.groups}
        states |= dict.fromkeys(self.active, "Stable")
        groups = [{"groupId": name, "protocolType": "", "groupState": state} for name, state in states.items()]
        return {"errorCode": 0, "groups": groups}

    def _delete_groups(self, body: Fields) -> Fields:
        (name,) = body["groupsNames"]
        code = ErrorCode.NONE if self.groups.pop(name, None) is not None else ErrorCode.GROUP_ID_NOT_FOUND
        return {"results": [{"groupId": name, "errorCode": code}]}
