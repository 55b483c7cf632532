"""The record of a restore in its target: who writes, and what. Several runs of one restore share it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple

from kseg.client.brokers import BrokerError, Brokers, Place, error_codes
from kseg.client.connection import (
    DELETE_GROUPS,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from kseg.errors import ClusterError
from kseg.formats.messages import Fields
from kseg.protocol.error_codes import ErrorCode
from kseg.restore.batches import Producer

GROUP_PREFIX = "kseg-restore-"
VERSION = 1
OVERTAKEN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID)
"""Errors of a member when another one has joined."""
SESSION_MS = 10_000
"""The time after which a run that died while it wrote the first record is no member any more."""


@dataclass(frozen=True)
class Job:
    """A restore: its producer, the digests of its sources and options, and whether it has ended.

    bases: the target's offset of each partition's first record. settings: of topics that had records before, by topic.
    """

    producer: Producer
    source: str
    options: str
    is_done: bool = False
    bases: Mapping[Place, int] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def text(self, topic: str) -> str:
        """Return the record's text at a topic."""
        values = {
            "version": VERSION,
            "producerId": self.producer.id,
            "producerEpoch": self.producer.epoch,
            "source": self.source,
            "options": self.options,
            "done": self.is_done,
            "settings": self.settings.get(topic),
        }
        return json.dumps(values, separators=(",", ":"))


def _parse_text(text: str) -> dict[str, Any] | None:
    """Parse a record's text; None if it isn't one of this version."""
    try:
        values = json.loads(text)
    except ValueError:
        return None
    return values if isinstance(values, dict) and values.get("version") == VERSION else None


def digest(values: object) -> str:
    """Return a short digest of plain values."""
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


class JobRecord:
    """The record of a restore, kept as the commits of a group that nobody else uses.

    Each partition's commit is its base. The first commit of each topic has the text, since a broker removes the commits
    of deleted topics.
    """

    def __init__(self, brokers: Brokers, name: str) -> None:
        """Take the cluster, and the restore's name."""
        self._brokers = brokers
        self.group = GROUP_PREFIX + name

    def read(self) -> Job | None:
        """Return the stored record; None without one. Raises ClusterError, also for a record that isn't kseg's."""
        commits = self._commits()
        values, settings = None, {}
        for (topic, _), (_, text) in commits.items():
            if not text:
                continue
            values = _parse_text(text)
            if values is None:
                raise ClusterError(f"group {self.group} isn't a record of this version of kseg; specify another --job")
            if (earlier := values.get("settings")) is not None:
                settings[topic] = earlier
        if values is None:
            return None
        producer = Producer(values["producerId"], values["producerEpoch"])
        bases = {place: offset for place, (offset, _) in commits.items()}
        return Job(producer, values["source"], values["options"], values["done"], bases, settings)

    def _commits(self) -> Mapping[Place, tuple[int, str]]:
        answer = self._brokers.ask_coordinator(self.group, OFFSET_FETCH, {"groupId": self.group, "topics": None})
        if answer.get("errorCode"):
            raise BrokerError(f"group {self.group}", answer["errorCode"])
        return {
            (topic["name"], each["partitionIndex"]): (each["committedOffset"], each["metadata"] or "")
            for topic in answer["topics"]
            for each in topic["partitions"]
            if each["committedOffset"] >= 0
        }

    def claim(self, new: Callable[[Producer], Job]) -> Job:
        """Return the record, or write a new one with a new producer; of several runs at once only one writes it.

        A run writes as the only member of the group, so that no other run can have written since it read. Raises
        ClusterError.
        """
        for attempt in self._brokers.attempts():
            attempt.problem = f"other runs keep group {self.group}"
            member = self._join()
            try:
                found = self.read()
                if found is not None:
                    return found
                if member.is_leader:
                    job = new(self._new_producer())
                    self._commit(job, member)
                    return job
            except BrokerError as error:
                if error.code not in OVERTAKEN:
                    raise
            finally:
                self._leave(member)
        raise ClusterError(f"{attempt.problem}; end them, then run the command again")

    def write(self, job: Job) -> None:
        """Write the record again, since offsets expire, once no other run is a member. Raises ClusterError."""
        problem: BrokerError | None = None
        for attempt in self._brokers.attempts():
            try:
                self._commit(job, NOBODY)
                return
            except BrokerError as error:
                if error.code not in OVERTAKEN:
                    raise
                problem, attempt.problem = error, error.problem
        assert problem is not None
        raise problem

    def finish(self, job: Job) -> None:
        """Mark the restore as done. Raises ClusterError."""
        self.write(replace(job, is_done=True))

    def forget(self) -> bool:
        """Remove the record; return whether there was one. Raises ClusterError."""
        answer = self._brokers.ask_coordinator(self.group, DELETE_GROUPS, {"groupsNames": [self.group]})
        code = answer["results"][0]["errorCode"]
        if code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            raise BrokerError(f"group {self.group}", code)
        return bool(code == ErrorCode.NONE)

    def _join(self) -> "_Member":
        body = {
            "groupId": self.group,
            "sessionTimeoutMs": SESSION_MS,
            "rebalanceTimeoutMs": SESSION_MS,
            "memberId": "",
            "protocolType": "kseg",
            "protocols": [{"name": "kseg", "metadata": b""}],
        }
        answer = self._check(self._brokers.ask_coordinator(self.group, JOIN_GROUP, body))
        is_leader = answer["leader"] == answer["memberId"]
        member = _Member(answer["memberId"], answer["generationId"], is_leader)
        if is_leader:
            assignments = [{"memberId": each["memberId"], "assignment": b""} for each in answer["members"]]
            self._brokers.ask_coordinator(self.group, SYNC_GROUP, {**self._of(member), "assignments": assignments})
        return member

    def _leave(self, member: "_Member") -> None:
        body = {"groupId": self.group, "memberId": member.id}
        self._brokers.ask_coordinator(self.group, LEAVE_GROUP, body)

    def _of(self, member: "_Member") -> Fields:
        return {"groupId": self.group, "generationId": member.generation, "memberId": member.id}

    def _commit(self, job: Job, member: "_Member") -> None:
        topics: dict[str, list[Fields]] = {}
        for (topic, number), base in sorted(job.bases.items()):
            text = "" if topic in topics else job.text(topic)
            part = {"partitionIndex": number, "committedOffset": base, "committedMetadata": text}
            topics.setdefault(topic, []).append({**part, "committedLeaderEpoch": -1})
        body = {
            "groupId": self.group,
            "generationIdOrMemberEpoch": member.generation,
            "memberId": member.id,
            "topics": [{"name": topic, "partitions": parts} for topic, parts in topics.items()],
        }
        self._check(self._brokers.ask_coordinator(self.group, OFFSET_COMMIT, body))

    def _check(self, answer: Fields) -> Fields:
        for code in error_codes(answer):
            if code:
                raise BrokerError(f"group {self.group}", code)
        return answer

    def _new_producer(self) -> Producer:
        """Return a new producer id; a broker that has just started may need some time for it."""
        body = {"transactionalId": None, "transactionTimeoutMs": 60_000, "producerId": -1, "producerEpoch": -1}
        code = 0
        for attempt in self._brokers.attempts():
            answer = self._brokers.ask(INIT_PRODUCER_ID, body)
            code = answer["errorCode"]
            if not code:
                return Producer(answer["producerId"], answer["producerEpoch"])
            if code not in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                break
            attempt.problem = "no broker gives a producer id"
        raise BrokerError("a new producer", code)


class _Member(NamedTuple):
    """A member of a group, in a generation. Of several that join at once, one is the leader."""

    id: str
    generation: int
    is_leader: bool = False


NOBODY = _Member("", -1)
"""Stands for a commit without membership."""
