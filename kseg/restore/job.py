"""The record of a restore in its target: who writes, and what. Several runs of one restore share it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import NamedTuple

from kseg.client.brokers import BrokerError, Brokers, attempts, error_codes
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
    """A restore: its producer, the digests of its sources and options, and whether it has ended."""

    producer: Producer
    source: str
    options: str
    is_done: bool = False

    def text(self) -> str:
        """Return the record's text."""
        values = {
            "version": VERSION,
            "producerId": self.producer.id,
            "producerEpoch": self.producer.epoch,
            "source": self.source,
            "options": self.options,
            "done": self.is_done,
        }
        return json.dumps(values, separators=(",", ":"))


def parse_job(text: str) -> Job | None:
    """Parse a record's text; None if it isn't one of this version."""
    try:
        values = json.loads(text)
    except ValueError:
        return None
    if not isinstance(values, dict) or values.get("version") != VERSION:
        return None
    producer = Producer(int(values["producerId"]), int(values["producerEpoch"]))
    return Job(producer, str(values["source"]), str(values["options"]), bool(values["done"]))


def digest(values: object) -> str:
    """Return a short digest of plain values."""
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


class JobRecord:
    """The record of a restore, kept as the commit of a group that nobody else uses."""

    def __init__(self, brokers: Brokers, name: str) -> None:
        """Take the cluster, and the restore's name."""
        self._brokers = brokers
        self.group = GROUP_PREFIX + name

    def read(self) -> Job | None:
        """Return the stored record; None without one. Raises ClusterError, also for a record that isn't kseg's."""
        texts = [text for text in self._commits().values() if text]
        if not texts:
            return None
        job = parse_job(texts[0])
        if job is None:
            raise ClusterError(f"group {self.group} isn't a record of this version of kseg; specify another --job")
        return job

    def _commits(self) -> Mapping[tuple[str, int], str]:
        answer = self._brokers.ask_coordinator(self.group, OFFSET_FETCH, {"groupId": self.group, "topics": None})
        if answer.get("errorCode"):
            raise BrokerError(f"group {self.group}", answer["errorCode"])
        return {
            (topic["name"], each["partitionIndex"]): each["metadata"] or ""
            for topic in answer["topics"]
            for each in topic["partitions"]
            if each["committedOffset"] >= 0
        }

    def claim(self, topic: str, source: str, options: str) -> Job:
        """Return the record, or write it with a new producer; of several runs at once only one writes it.

        topic: any topic of the target. A run writes as the only member of the group, so that no other run can have
        written since it read. Raises ClusterError.
        """
        for _ in attempts():
            member = self._join()
            try:
                found = self.read()
                if found is not None:
                    return found
                if member.is_leader:
                    job = Job(self._new_producer(), source, options)
                    self._commit(topic, job, member)
                    return job
            except BrokerError as error:
                if error.code not in OVERTAKEN:
                    raise
            finally:
                self._leave(member)
        raise ClusterError(f"other runs keep group {self.group}; end them, then run the command again")

    def write(self, topic: str, job: Job) -> None:
        """Write the record again, since offsets expire, once no other run is a member. Raises ClusterError."""
        problem: BrokerError | None = None
        for _ in attempts():
            try:
                self._commit(topic, job, NOBODY)
                return
            except BrokerError as error:
                if error.code not in OVERTAKEN:
                    raise
                problem = error
        assert problem is not None
        raise problem

    def finish(self, topic: str, job: Job) -> Job:
        """Mark the restore as done, and return the record."""
        done = replace(job, is_done=True)
        self.write(topic, done)
        return done

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

    def _commit(self, topic: str, job: Job, member: "_Member") -> None:
        part = {"partitionIndex": 0, "committedOffset": 0, "committedLeaderEpoch": -1, "committedMetadata": job.text()}
        body = {
            "groupId": self.group,
            "generationIdOrMemberEpoch": member.generation,
            "memberId": member.id,
            "topics": [{"name": topic, "partitions": [part]}],
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
        for _ in attempts():
            answer = self._brokers.ask(INIT_PRODUCER_ID, body)
            code = answer["errorCode"]
            if not code:
                return Producer(answer["producerId"], answer["producerEpoch"])
            if code not in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                break
        raise BrokerError("a new producer", code)


class _Member(NamedTuple):
    """A member of a group, in a generation. Of several that join at once, one is the leader."""

    id: str
    generation: int
    is_leader: bool = False


NOBODY = _Member("", -1)
"""Stands for a commit without membership."""
