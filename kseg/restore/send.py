"""The sender of a restore: each batch's sequence is its offset in the target, so that a broker takes it only once."""

import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kseg.client.brokers import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    PASSING,
    PATIENCE,
    QUIET_SECONDS,
    BrokerError,
    Brokers,
    Place,
)
from kseg.client.connection import ANSWER_SECONDS, PRODUCE, Connection, ConnectionLostError, await_answers
from kseg.errors import ClusterError, RecordError
from kseg.formats.messages import Fields
from kseg.protocol.error_codes import ErrorCode
from kseg.restore.batches import Producer, TargetBatch, TargetBatches
from kseg.restore.filler import filler_batches
from kseg.restore.source import SourcePartition, Survey
from kseg.restore.target_log import fetch_last_batch

MOST_UNDER_WAY = 5
"""The most requests under way at a broker: it knows a producer's last five batches of each partition."""
MOST_PARTITIONS = 8
"""The most partitions that are sent at once, each with an open log."""
REQUEST_SIZE = 4 << 20
"""Bytes of batches at which a request is sent, if several partitions share it."""
ACKNOWLEDGE_MS = 30_000
"""The time after which a broker gives up waiting for its followers."""
ALL_IN_SYNC = -1
OUT_OF_ORDER = {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
}
"""Errors of a batch that doesn't follow the producer's last one."""
Problem = BrokerError | ConnectionLostError
BEGIN_AGAIN = PASSING | OUT_OF_ORDER
"""Errors after which the end of the target's log is read again."""


class OnSent(Protocol):
    """Takes the numbers of records and bytes that a broker has acknowledged."""

    def __call__(self, records: int, size: int) -> object:
        """Count them."""


@dataclass(frozen=True)
class Prepared:
    """A partition to send: its place in the target, its source, and what is in there.

    largest: bytes of a batch. base: the target's offset of its first record. begin: the end of the target's log before.
    is_appended: the topic had records before.
    """

    place: Place
    source: SourcePartition
    survey: Survey
    largest: int
    base: int = 0
    begin: int = 0
    is_appended: bool = False

    @property
    def name(self) -> str:
        """The name of the target's partition."""
        return f"{self.place[0]}-{self.place[1]}"

    @property
    def end(self) -> int:
        """The target's offset after its last record."""
        return self.base + self.survey.records

    @property
    def remedy(self) -> str:
        """The next step of a user if the target has other records than expected."""
        if self.is_appended:
            return "restore the partition to a new topic, with --topic-map and another --job"
        return "delete the topic and run the command again"


@dataclass
class _Sending:
    """A partition that is being sent.

    under_way: its batches without an answer. is_in_order: the broker refuses its batches out of order. problem: why it
    begins again.
    """

    prepared: Prepared
    batches: Iterator[TargetBatch]
    node: int
    ahead: TargetBatch | None = None
    under_way: int = 0
    is_in_order: bool = False
    is_exhausted: bool = False
    problem: Problem | None = None


@dataclass
class _Request:
    """A request under way: its batches by place."""

    batches: dict[Place, TargetBatch] = field(default_factory=dict)
    size: int = 0

    def add(self, place: Place, batch: TargetBatch) -> None:
        """Add a partition's next batch."""
        self.batches[place] = batch
        self.size += len(batch.content)


@dataclass(frozen=True)
class _Pause:
    """The next pause of a partition that began again, since its log ended at an offset; -1 if unknown.

    refusals: the last answers, if all of them refused a batch out of order.
    """

    end: int = -1
    seconds: float = FIRST_PAUSE
    since: float = field(default_factory=lambda: time.monotonic())
    refusals: int = 0


class Sender:
    """Sends partitions to their leaders, a few at a time, from the ends of the target's logs on."""

    def __init__(self, brokers: Brokers, producer: Producer, on_sent: OnSent, rate: int | None = None) -> None:
        """Take the cluster, the producer of the job, and the most bytes per second."""
        self._brokers, self._producer, self._on_sent, self._rate = brokers, producer, on_sent, rate
        self._waiting: deque[Prepared] = deque()
        self._sending: dict[Place, _Sending] = {}
        self._requests: dict[int, deque[_Request]] = {}
        self._connections: dict[int, Connection] = {}
        self._pauses: dict[Place, _Pause] = {}
        self._started, self._sent_size = time.monotonic(), 0
        self._is_told = False
        """True if users know the present problem."""
        self._throttle_seconds = 0.0
        """The longest wait for a quota that a broker has announced."""

    def send(self, partitions: Mapping[Place, Prepared]) -> None:
        """Send partitions until the target has all of their records.

        Raises:
            ClusterError: brokers don't answer, refuse a batch, or another program writes to a partition.
            RecordError: a record doesn't fit into the target.
            OpenError: a source's log can't be read.
        """
        self._waiting.extend(partitions.values())
        try:
            self._send_all()
        finally:
            for each in self._connections.values():
                each.close()

    def _send_all(self) -> None:
        while self._waiting or self._sending:
            if len(self._sending) < MOST_PARTITIONS and self._waiting:
                self._begin([self._waiting.popleft() for _ in range(self._room())])
            for node in {each.node for each in self._sending.values()}:
                self._fill(node)
            self._receive()

    def _room(self) -> int:
        return min(MOST_PARTITIONS - len(self._sending), len(self._waiting))

    def _begin(self, partitions: list[Prepared]) -> None:
        """Begin, or begin again, where the target's logs end."""
        ends = self._brokers.end_offsets([each.place for each in partitions])
        leaders = self._brokers.leaders([each.place for each in partitions])
        for each in partitions:
            end = ends[each.place]
            if (pause := self._pauses.get(each.place)) is not None and pause.end != end:
                self._pauses[each.place] = _Pause(end)
            if end > each.end or not self._has_sent_until(each, end):
                raise self._foreign(each, end)
            if end < each.end:
                self._sending[each.place] = _Sending(each, self._batches_from(each, end), leaders[each.place])

    def _batches_from(self, prepared: Prepared, offset: int) -> Iterator[TargetBatch]:
        """Yield the batches from an offset of the target on."""
        yield from filler_batches(offset, prepared.base, self._producer)
        first, base, largest = max(offset, prepared.base), prepared.base, prepared.largest
        yield from TargetBatches(prepared.source, prepared.survey, first, self._producer, largest, base)

    def _has_sent_until(self, prepared: Prepared, end: int) -> bool:
        """Return whether the last batch of the target's log is the restore's, and where it belongs.

        Then all are, since a broker takes them only in order. Raises ClusterError if the log ends before the first one.
        """
        if end < prepared.begin:
            raise ClusterError(
                f"{prepared.name}: the target's log ends at offset {end}, and the restore began at {prepared.begin}:"
                f" its brokers have lost records; {prepared.remedy}"
            )
        if end in (prepared.begin, prepared.end):
            return True  # complete logs are compared later
        last = fetch_last_batch(self._brokers, prepared.place, end)
        # Without one, the log has changed since, and the broker refuses the next batch.
        return last is None or self._producer.has_sent(last.header)

    def _foreign(self, prepared: Prepared, offset: int) -> ClusterError:
        return ClusterError(
            f"{prepared.name}: another program writes to it: the log has offset {offset}, and the restore ends at"
            f" {prepared.end}; stop that program, then {prepared.remedy}"
        )

    def _fill(self, node: int) -> None:
        """Send requests to a broker, as many as may be under way."""
        requests = self._requests.setdefault(node, deque())
        while len(requests) < MOST_UNDER_WAY:
            request = self._next_request(node)
            if request is None:
                return
            self._wait_for_rate(request.size)
            try:
                self._connection(node).send(PRODUCE, _body_of(request))
            except ConnectionLostError as error:
                self._lose(node, error, request)
                return
            requests.append(request)

    def _connection(self, node: int) -> Connection:
        if node not in self._connections:
            self._connections[node] = self._brokers.open(node)
        return self._connections[node]

    def _next_request(self, node: int) -> _Request | None:
        request = _Request()
        for place, sending in self._sending.items():
            if sending.node != node or sending.problem is not None or sending.is_exhausted:
                continue
            if sending.under_way and not sending.is_in_order:
                continue
            batch = self._next_batch(sending)
            if batch is None:
                sending.is_exhausted = True
                continue
            if request.batches and request.size + len(batch.content) > REQUEST_SIZE:
                sending.ahead = batch
                break
            request.add(place, batch)
            sending.under_way += 1
        return request if request.batches else None

    def _next_batch(self, sending: _Sending) -> TargetBatch | None:
        if (batch := sending.ahead) is not None:
            sending.ahead = None
            return batch
        try:
            return next(sending.batches, None)
        except RecordError as error:
            raise RecordError(error.message, sending.prepared.source.log.path) from error

    def _wait_for_rate(self, size: int) -> None:
        self._sent_size += size
        if self._rate is not None:
            time.sleep(max(self._started + self._sent_size / self._rate - time.monotonic(), 0))

    def _receive(self) -> None:
        """Take one answer from each broker that has some, and begin broken partitions again."""
        asked = [self._connections[node] for node, requests in self._requests.items() if requests]
        ready = await_answers(asked, ANSWER_SECONDS + self._throttle_seconds)
        for node, connection in [*self._connections.items()]:
            if connection in ready:
                self._take_answer(node, connection)
            elif asked and not ready:
                self._lose(node, ConnectionLostError(f"broker {node} gives no answer"))
        self._settle()

    def _take_answer(self, node: int, connection: Connection) -> None:
        try:
            answer = connection.receive()
        except ConnectionLostError as error:
            self._lose(node, error)
            return
        self._note_throttling(node, answer.get("throttleTimeMs", 0) / 1000)
        request = self._requests[node].popleft()
        for topic in answer["responses"]:
            for each in topic["partitionResponses"]:
                place = (topic["name"], each["index"])
                self._sending[place].under_way -= 1
                self._judge(self._sending[place], request.batches[place], each)

    def _note_throttling(self, node: int, seconds: float) -> None:
        """Wait longer for a broker that delays this client's requests by a quota, and tell users once."""
        if seconds and not self._throttle_seconds:
            self._brokers.tell(f"broker {node} slows the restore down to a quota; raise producer_byte_rate for speed")
        self._throttle_seconds = max(self._throttle_seconds, seconds)

    def _judge(self, sending: _Sending, batch: TargetBatch, answer: Fields) -> None:
        """Count an acknowledged batch; note why the partition must begin again."""
        if sending.problem is not None:
            return
        code = answer["errorCode"]
        if code in BEGIN_AGAIN:
            sending.problem = BrokerError(sending.prepared.name, code, answer.get("errorMessage"))
        elif code:
            detail = answer.get("errorMessage") or f"the batch at offset {batch.first} of the target"
            raise BrokerError(sending.prepared.name, code, detail)
        elif answer["baseOffset"] != batch.first:
            raise self._foreign(sending.prepared, answer["baseOffset"])
        else:
            # A log takes any sequence as a producer's first one (ProducerAppendInfo.checkSequence). So the first batch
            # goes alone: if it is refused, the second one mustn't take its place.
            sending.is_in_order = True
            self._is_told = False
            self._pauses.pop(sending.prepared.place, None)
            self._on_sent(batch.record_count, len(batch.content))

    def _lose(self, node: int, error: ConnectionLostError, unsent: _Request | None = None) -> None:
        """Let all partitions of a broker begin again, after its connection was lost."""
        self._requests.pop(node, None)
        if (connection := self._connections.pop(node, None)) is not None:
            connection.close()
        places = unsent.batches if unsent is not None else {}
        for place, sending in self._sending.items():
            if sending.node == node and (sending.under_way or place in places):
                sending.problem, sending.under_way = error, 0

    def _settle(self) -> None:
        """Remove finished partitions, and begin broken ones again once nothing of them is under way."""
        for place, sending in [*self._sending.items()]:
            if sending.under_way:
                continue
            if sending.problem is not None:
                del self._sending[place]
                self._pause(sending.prepared, sending.problem)
                self._begin([sending.prepared])
            elif sending.is_exhausted:
                del self._sending[place]

    def _pause(self, prepared: Prepared, problem: Problem) -> None:
        """Wait before another attempt. Raises the problem if it lasts."""
        last = self._pauses.get(prepared.place) or _Pause()
        passed = time.monotonic() - last.since
        is_refusal = isinstance(problem, BrokerError) and problem.code in OUT_OF_ORDER
        refusals = last.refusals + 1 if is_refusal else 0
        if passed > PATIENCE:
            if refusals > MOST_UNDER_WAY:
                reason = "since another program has written to the topic"
                raise ClusterError(f"{problem}, {reason}; {prepared.remedy}")
            raise ClusterError(f"{problem.problem}; check the brokers, then run the command again")
        if passed >= QUIET_SECONDS and not self._is_told:
            self._is_told = True
            self._brokers.tell(f"{problem.problem}; kseg tries for another {PATIENCE - passed:.0f} seconds")
        time.sleep(last.seconds)
        self._pauses[prepared.place] = _Pause(last.end, min(2 * last.seconds, LONGEST_PAUSE), last.since, refusals)


def _body_of(request: _Request) -> Fields:
    topics: dict[str, list[Fields]] = {}
    for (topic, number), batch in request.batches.items():
        topics.setdefault(topic, []).append({"index": number, "records": batch.content})
    return {
        "transactionalId": None,
        "acks": ALL_IN_SYNC,
        "timeoutMs": ACKNOWLEDGE_MS,
        "topicData": [{"name": name, "partitionData": parts} for name, parts in topics.items()],
    }
