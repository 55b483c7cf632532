"""A cluster in this process, as far as a restore needs one: it takes and refuses batches as Kafka does.

Source of its rules: ProducerStateManager, ProducerAppendInfo, GroupMetadataManager, and answers of a broker of 4.3.1.
"""

import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock, Thread

from kseg.client import connection as apis
from kseg.formats.messages import Fields
from kseg.protocol.error_codes import ErrorCode
from kseg.protocol.messages import build_response, read_request
from kseg.reading.batch import Batch
from kseg.writer.batches import MemoryRecords
from tests.restore.contents import Contents, contents_of

KEPT_BATCHES = 5
"""The last batches of a producer that a partition recognizes when they come again."""
SEQUENCES = 2**31
NODE = 7
LONGEST_METADATA = 4096
SESSION_SECONDS = 10.0
Place = tuple[str, int]


@dataclass
class FakeLog:
    """A partition: its leader, its start, its batches, and what it knows of each producer: epoch, and its last batches.

    lag: the number of ListOffsets answers whose high watermark is still before the last batch. refusals: the number of
    Produce answers for want of replicas.
    """

    leader: int = NODE
    start: int = 0
    batches: list[tuple[int, Batch]] = field(default_factory=list)
    end: int = 0
    lag: int = 0
    refusals: int = 0
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
        epoch, known = self.producers.get(batch.producer_id, (batch.producer_epoch, deque(maxlen=KEPT_BATCHES)))
        for known_first, known_last, offset in known:
            if (known_first, known_last) == (first, last):
                return ErrorCode.NONE, offset
        if batch.producer_epoch != epoch or (known and first != (known[-1][1] + 1) % SEQUENCES):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        self.producers[batch.producer_id] = epoch, known  # a producer's first batch may have any sequence
        base, self.end = self.end, self.end + len(records)
        known.append((first, last, base))
        self.batches.append((base, batch))
        return ErrorCode.NONE, base

    def restart(self) -> None:
        """Load the producers from their snapshot, which has the last batch of each."""
        for _, known in self.producers.values():
            while len(known) > 1:
                known.popleft()

    def lose_tail(self) -> None:
        """Forget the last batch, as a replica that wasn't in sync becomes the leader."""
        if len(self.batches) > 1:
            self.end, _ = self.batches.pop()
            base, last = self.batches[-1]
            last_sequence = (last.base_sequence + last.last_offset) % SEQUENCES
            known = deque([(last.base_sequence, last_sequence, base)], KEPT_BATCHES)
            self.producers = {last.producer_id: (last.producer_epoch, known)}

    def high_watermark(self) -> int:
        """Return the offset up to which all replicas have the log."""
        if self.lag and self.batches:
            self.lag -= 1
            return self.batches[-1][0]
        return self.end

    def records(self) -> list[Contents]:
        """Return the contents of all records that weren't deleted."""
        found = ((base + at, each) for base, batch in self.batches for at, each in enumerate(contents_of(batch)))
        return [contents for offset, contents in found if offset >= self.start]


@dataclass
class FakeGroup:
    """The members of a group, each with the time at which it expires without another request."""

    generation: int = 0
    members: dict[str, float] = field(default_factory=dict)


class FakeBroker:
    """A cluster of one broker, or of several that share their logs.

    unanswered: APIs whose next request ends the connection. elections: the number of Metadata answers in which
    partitions have no leader. versions: the newest one of each API. throttle_ms: a wait that Produce answers
    announce.
    """

    def __init__(self, addresses: dict[int, tuple[str, int]] | None = None, now: Callable[[], float] = time.monotonic):
        """Take the addresses of several brokers by their ids, and the clock."""
        self.logs: dict[str, list[FakeLog]] = {}
        self.settings: dict[str, dict[str, str]] = {}
        self.replicas: dict[str, int] = {}
        self.groups: dict[str, dict[Place, tuple[int, str]]] = {}
        self.active: set[str] = set()
        self.unanswered: set[int] = set()
        self.elections = 0
        self.throttle_ms = 0
        self.versions = {each.key: each.newest for each in vars(apis).values() if isinstance(each, apis.Api)}
        self._next_producer = 1000
        self._memberships: dict[str, FakeGroup] = {}
        self._now = now
        self._lock = Lock()
        self._addresses = addresses or {}
        self._clients: list[socket.socket] = []

    @property
    def address(self) -> tuple[str, int]:
        """The address of the first broker."""
        return next(iter(self._addresses.values()))

    @contextmanager
    def running(self) -> Iterator["FakeBroker"]:
        """Answer clients on a port of this machine until the context ends."""
        server = socket.create_server(("127.0.0.1", 0))
        self._addresses = {NODE: server.getsockname()[:2]}
        thread = Thread(target=self._accept, args=(server,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown(socket.SHUT_RDWR)
            server.close()
            for each in self._clients:
                each.close()
            thread.join()

    def _accept(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                self._clients.append(client)
                Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, ValueError), client, client.makefile("rb") as stream:
            while size := stream.read(4):
                answer = self.answer(stream.read(int.from_bytes(size, "big")), NODE)
                if answer is None:
                    return
                client.sendall(answer)

    def answer(self, frame: bytes, node: int) -> bytes | None:
        """Return a broker's answer to a request; None ends the connection."""
        request = read_request(frame)
        assert request.body is not None
        assert request.api_key is not None
        assert request.api_version is not None
        with self._lock:
            answer = self._answer(request.api_key, request.body, node)
        if answer is None:
            return None
        return b"".join(build_response(request.api_key, request.api_version, request.correlation_id, answer))

    def _answer(self, key: int, body: Fields, node: int) -> Fields | None:
        if key in self.unanswered:
            self.unanswered.remove(key)
            return None
        answers = {
            apis.API_VERSIONS.key: self._api_versions,
            apis.METADATA.key: self._metadata,
            apis.CREATE_TOPICS.key: self._create_topics,
            apis.INCREMENTAL_ALTER_CONFIGS.key: self._alter_configs,
            apis.DESCRIBE_CONFIGS.key: self._describe_configs,
            apis.DELETE_RECORDS.key: lambda body: self._delete_records(body, node),
            apis.LIST_OFFSETS.key: lambda body: self._list_offsets(body, node),
            apis.PRODUCE.key: lambda body: self._produce(body, node),
            apis.FETCH.key: lambda body: self._fetch(body, node),
            apis.INIT_PRODUCER_ID.key: self._init_producer_id,
            apis.FIND_COORDINATOR.key: self._find_coordinator,
            apis.OFFSET_FETCH.key: self._offset_fetch,
            apis.OFFSET_COMMIT.key: self._offset_commit,
            apis.JOIN_GROUP.key: self._join_group,
            apis.SYNC_GROUP.key: self._sync_group,
            apis.LEAVE_GROUP.key: self._leave_group,
            apis.LIST_GROUPS.key: self._list_groups,
            apis.DELETE_GROUPS.key: self._delete_groups,
        }
        return answers[key](body)

    def _api_versions(self, _: Fields) -> Fields:
        known = [{"apiKey": key, "minVersion": 0, "maxVersion": newest} for key, newest in self.versions.items()]
        return {"errorCode": 0, "apiKeys": known}

    def _metadata(self, body: Fields) -> Fields:
        names = list(self.logs) if body["topics"] is None else [each["name"] for each in body["topics"]]
        is_election, self.elections = self.elections > 0, max(self.elections - 1, 0)
        return {
            "brokers": [{"nodeId": node, "host": host, "port": port} for node, (host, port) in self._addresses.items()],
            "clusterId": "fake",
            "controllerId": NODE,
            "topics": [
                {
                    "errorCode": 0 if name in self.logs else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    "name": name,
                    "partitions": [
                        {
                            "partitionIndex": number,
                            "leaderId": -1 if is_election else log.leader,
                            "replicaNodes": [*self._addresses],
                            "isrNodes": [*self._addresses],
                        }
                        for number, log in enumerate(self.logs.get(name, ()))
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
            self.replicas[name] = topic["replicationFactor"]
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

    def _describe_configs(self, body: Fields) -> Fields:
        """Answer with the topics' own settings, and a default."""
        results = []
        for resource in body["resources"]:
            own = self.settings.get(resource["resourceName"], {})
            configs = [{"name": name, "value": value, "configSource": 1} for name, value in own.items()]
            default = {"name": "compression.type", "value": "producer", "configSource": 5}
            configs = [
                {**each, "readOnly": False, "isSensitive": False, "synonyms": []}
                for each in (*configs, default)
                if resource["configurationKeys"] is None or each["name"] in resource["configurationKeys"]
            ]
            answer = {"errorCode": 0, "errorMessage": None, "resourceType": 2, **resource}
            results.append({**answer, "configs": configs})
        return {"results": results}

    def _delete_records(self, body: Fields, node: int) -> Fields:
        (topic,) = body["topics"]
        (part,) = topic["partitions"]
        log = self.logs[topic["name"]][part["partitionIndex"]]
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER if log.leader != node else ErrorCode.NONE
        if not code and part["offset"] > log.high_watermark():
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        if not code:
            log.start = max(log.start, part["offset"])
        parts = [{"partitionIndex": part["partitionIndex"], "lowWatermark": log.start, "errorCode": code}]
        return {"topics": [{"name": topic["name"], "partitions": parts}]}

    def _list_offsets(self, body: Fields, node: int) -> Fields:
        def part(topic: str, number: int) -> Fields:
            log = self.logs[topic][number]
            if log.leader != node:
                return {"partitionIndex": number, "errorCode": ErrorCode.NOT_LEADER_OR_FOLLOWER, "offset": -1}
            return {"partitionIndex": number, "errorCode": 0, "timestamp": -1, "offset": log.high_watermark()}

        return {
            "topics": [
                {"name": topic["name"], "partitions": [part(topic["name"], each["partitionIndex"]) for each in own]}
                for topic in body["topics"]
                for own in (topic["partitions"],)
            ]
        }

    def _produce(self, body: Fields, node: int) -> Fields:
        responses = []
        for topic in body["topicData"]:
            parts = []
            for each in topic["partitionData"]:
                log = self.logs[topic["name"]][each["index"]]
                code, base = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
                if log.refusals:
                    code, log.refusals = ErrorCode.NOT_ENOUGH_REPLICAS, log.refusals - 1
                elif log.leader == node:
                    code, base = log.append(each["records"])
                parts.append({"index": each["index"], "errorCode": code, "baseOffset": base})
            responses.append({"name": topic["name"], "partitionResponses": parts})
        return {"responses": responses, "throttleTimeMs": self.throttle_ms}

    def _fetch(self, body: Fields, node: int) -> Fields:
        (topic,) = body["topics"]
        (part,) = topic["partitions"]
        log = self.logs[topic["topic"]][part["partition"]]
        found = b""
        for base, batch in log.batches:
            if base + batch.last_offset >= part["fetchOffset"] and len(found) < 1 << 16:
                found += base.to_bytes(8, "big") + batch.raw[8:]
        code = 0 if log.leader == node else ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not log.start <= part["fetchOffset"] <= log.end:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        answer = {"partitionIndex": part["partition"], "errorCode": code, "highWatermark": log.end, "records": found}
        return {"responses": [{"topic": topic["topic"], "partitions": [answer]}]}

    def _init_producer_id(self, _: Fields) -> Fields:
        self._next_producer += 1
        return {"errorCode": 0, "producerId": self._next_producer, "producerEpoch": 0}

    def _find_coordinator(self, _: Fields) -> Fields:
        node, (host, port) = next(iter(self._addresses.items()))
        return {"errorCode": 0, "nodeId": node, "host": host, "port": port}

    def _offset_fetch(self, body: Fields) -> Fields:
        topics: dict[str, list[Fields]] = {}
        for (topic, number), (offset, metadata) in self.groups.get(body["groupId"], {}).items():
            part = {"partitionIndex": number, "committedOffset": offset, "metadata": metadata, "errorCode": 0}
            topics.setdefault(topic, []).append(part)
        return {"topics": [{"name": name, "partitions": own} for name, own in topics.items()], "errorCode": 0}

    def _offset_commit(self, body: Fields) -> Fields:
        own = self.groups.setdefault(body["groupId"], {})
        refusal = self._refusal_of_member(body)
        topics = []
        for topic in body["topics"]:
            parts = []
            for each in topic["partitions"]:
                assert each["committedLeaderEpoch"] == -1
                code = (
                    ErrorCode.OFFSET_METADATA_TOO_LARGE
                    if len(each["committedMetadata"]) > LONGEST_METADATA
                    else refusal
                )
                if not code:
                    own[topic["name"], each["partitionIndex"]] = each["committedOffset"], each["committedMetadata"]
                parts.append({"partitionIndex": each["partitionIndex"], "errorCode": code})
            topics.append({"name": topic["name"], "partitions": parts})
        return {"topics": topics}

    def _refusal_of_member(self, body: Fields) -> int:
        """Return the error for a request of a member; the admin's generation is -1."""
        group = self._memberships.setdefault(body["groupId"], FakeGroup())
        now = self._now()
        group.members = {member: until for member, until in group.members.items() if until > now}
        member, generation = body["memberId"], body.get("generationId", body.get("generationIdOrMemberEpoch", -1))
        if not member and generation < 0 and not group.members:
            return ErrorCode.NONE
        if member not in group.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if generation == group.generation else ErrorCode.ILLEGAL_GENERATION

    def _join_group(self, body: Fields) -> Fields:
        """Let a member join; the others don't join again in time, and are removed."""
        group = self._memberships.setdefault(body["groupId"], FakeGroup())
        group.generation += 1
        member = f"member-{group.generation}"
        group.members = {member: self._now() + SESSION_SECONDS}
        return {
            "errorCode": 0,
            "generationId": group.generation,
            "protocolName": "kseg",
            "leader": member,
            "memberId": member,
            "members": [{"memberId": member, "metadata": b""}],
        }

    def _sync_group(self, body: Fields) -> Fields:
        return {"errorCode": self._refusal_of_member(body), "assignment": b""}

    def _leave_group(self, body: Fields) -> Fields:
        left = self._memberships.setdefault(body["groupId"], FakeGroup()).members.pop(body["memberId"], None)
        return {"errorCode": ErrorCode.UNKNOWN_MEMBER_ID if left is None else ErrorCode.NONE}

    def _list_groups(self, _: Fields) -> Fields:
        states = {name: "Stable" if name in self.active else "Empty" for name in self.groups}
        states |= dict.fromkeys(self.active, "Stable")
        groups = [{"groupId": name, "protocolType": "", "groupState": state} for name, state in states.items()]
        return {"errorCode": 0, "groups": groups}

    def _delete_groups(self, body: Fields) -> Fields:
        (name,) = body["groupsNames"]
        code = ErrorCode.NONE if self.groups.pop(name, None) is not None else ErrorCode.GROUP_ID_NOT_FOUND
        return {"results": [{"groupId": name, "errorCode": code}]}
