"""Fetch sessions: what clients asked for is remembered, so that they name only what is new, and get only that.

A client gets a session with its first full fetch, and asks incrementally from then on. Source: KIP-227, FetchManager.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import SystemRandom
from threading import Lock
from time import monotonic
from typing import NamedTuple

from kseg.formats.messages import Fields
from kseg.serve.values import ErrorCode

MOST_SESSIONS = 1000
"""`max.incremental.fetch.session.cache.slots`."""
MOST_PARTITIONS = 1 << 15
"""Of all sessions together."""
EVICTION_SECONDS = 120.0
"""A session that wasn't used for so long makes room for another one: `min.incremental.fetch.session.eviction.ms`."""
NO_SESSION = 0
_FIRST_EPOCH, _NO_EPOCH = 0, -1
_LARGEST = (1 << 31) - 1
BY_ID = 13
"""Of Fetch: from this version on topics go by their ids."""

Key = tuple[str, int]
"""Topic by name or id, and partition."""


class AskedPartition(NamedTuple):
    """A partition of a fetch: its topic as the client names it, what is wanted, and what the client was told last."""

    topic: Fields
    fields: Fields
    high_watermark: int = -1
    log_start: int = -1

    @property
    def key(self) -> Key:
        """What it is remembered by."""
        return (*self.topic.values(), self.fields["partition"])

    def told(self, part: Fields) -> "AskedPartition":
        """The same after an answer; one with an error is told again, whatever comes after it."""
        is_error = part["errorCode"] != ErrorCode.NONE
        return self._replace(
            high_watermark=-1 if is_error else part["highWatermark"], log_start=part.get("logStartOffset", -1)
        )

    def is_news(self, part: Fields) -> bool:
        """Whether an answer has something that the client doesn't know."""
        return bool(
            len(part["records"])
            or part["errorCode"] != ErrorCode.NONE
            or part["highWatermark"] != self.high_watermark
            or part["logStartOffset"] != self.log_start
        )


class _Session(NamedTuple):
    """The partitions of a client, in the order in which it gets their records, and the epoch of its next fetch."""

    epoch: int
    is_by_id: bool
    partitions: dict[Key, AskedPartition]
    used: float


class FetchView(NamedTuple):
    """What a fetch asks for, with its session: that of an incremental one, or NO_SESSION.

    is_new: a session is to be begun. epoch: that of the request.
    """

    asked: Sequence[AskedPartition]
    session_id: int = NO_SESSION
    epoch: int = _NO_EPOCH
    is_new: bool = False
    is_by_id: bool = False


class Answer(NamedTuple):
    """The session that a client has now, and what it is told, with the partitions as it knows them."""

    session_id: int
    parts: Sequence[tuple[AskedPartition, Fields]]


class FetchSessions:
    """The sessions of all clients; may be used by several threads."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """There are none yet; `clock` tells seconds."""
        self._clock = clock
        self._lock = Lock()
        self._sessions: OrderedDict[int, _Session] = OrderedDict()
        self._random = SystemRandom()

    def __len__(self) -> int:
        return len(self._sessions)

    def view(self, body: Fields, version: int) -> FetchView | ErrorCode:
        """What a request asks for, with what its session remembers; the session stays as it is until `answered`."""
        session_id, epoch = body.get("sessionId", NO_SESSION), body.get("sessionEpoch", _NO_EPOCH)
        # Of a partition that is named twice the last one holds.
        named, is_by_id = {each.key: each for each in named_partitions(body)}, version >= BY_ID
        with self._lock:
            if epoch in (_FIRST_EPOCH, _NO_EPOCH):
                self._sessions.pop(session_id, None)
                return FetchView(list(named.values()), is_new=epoch == _FIRST_EPOCH, is_by_id=is_by_id)
            session = self._sessions.get(session_id)
            error = _refusal(session, epoch, is_by_id=is_by_id)
            if session is None or error is not None:
                return error or ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            asked = _merged(session.partitions, named, _forgotten(body))
        return FetchView(list(asked.values()), session_id, epoch, is_by_id=is_by_id)

    def answered(self, view: FetchView, parts: Sequence[Fields]) -> Answer | ErrorCode:
        """Remembers an answer, a part for each partition of the view; leaves out what is no news to the client."""
        pairs = list(zip(view.asked, parts, strict=True))
        told = [asked.told(part) for asked, part in pairs]
        with self._lock:
            if view.session_id == NO_SESSION:
                return Answer(self._begin(told, is_by_id=view.is_by_id) if view.is_new else NO_SESSION, pairs)
            session = self._sessions.get(view.session_id)
            error = _refusal(session, view.epoch, is_by_id=view.is_by_id)
            if error is not None:
                return error
            del self._sessions[view.session_id]
            if not told:
                return Answer(NO_SESSION, ())
            self._put(view.session_id, _next_epoch(view.epoch), _reordered(told, parts), is_by_id=view.is_by_id)
        return Answer(view.session_id, [(asked, part) for asked, part in pairs if asked.is_news(part)])

    def _begin(self, told: Sequence[AskedPartition], *, is_by_id: bool) -> int:
        """A new session's id; NO_SESSION if there is nothing to remember, or no room."""
        if not told or not self._has_room(len(told)):
            return NO_SESSION
        session_id = self._random.randint(1, _LARGEST)
        while session_id in self._sessions:
            session_id = self._random.randint(1, _LARGEST)
        self._put(session_id, 1, told, is_by_id=is_by_id)
        return session_id

    def _put(self, session_id: int, epoch: int, told: Iterable[AskedPartition], *, is_by_id: bool) -> None:
        self._sessions[session_id] = _Session(epoch, is_by_id, {each.key: each for each in told}, self._clock())

    def _has_room(self, count: int) -> bool:
        """Whether a session of so many partitions may begin; ends those that weren't used for long, if need be."""
        left = sum(len(session.partitions) for session in self._sessions.values())
        while self._sessions and (len(self._sessions) >= MOST_SESSIONS or left + count > MOST_PARTITIONS):
            oldest_id, oldest = next(iter(self._sessions.items()))
            if self._clock() - oldest.used < EVICTION_SECONDS:
                return False
            left -= len(oldest.partitions)
            del self._sessions[oldest_id]
        return left + count <= MOST_PARTITIONS


def _refusal(session: _Session | None, epoch: int, *, is_by_id: bool) -> ErrorCode | None:
    if session is None:
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if session.epoch != epoch:
        return ErrorCode.INVALID_FETCH_SESSION_EPOCH
    return None if session.is_by_id == is_by_id else ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def named_partitions(body: Fields) -> Iterator[AskedPartition]:
    """The partitions that a request names."""
    for topic in body["topics"]:
        name = {key: topic[key] for key in ("topic", "topicId") if key in topic}
        for fields in topic["partitions"]:
            yield AskedPartition(name, fields)


def _forgotten(body: Fields) -> set[Key]:
    return {
        (topic["topicId"] if "topicId" in topic else topic["topic"], number)
        for topic in body.get("forgottenTopicsData") or ()
        for number in topic["partitions"]
    }


def _merged(
    known: dict[Key, AskedPartition], named: dict[Key, AskedPartition], forgotten: set[Key]
) -> dict[Key, AskedPartition]:
    """The partitions of a session as a request leaves them: those that are named again keep their place."""
    merged = dict(known)
    for key, each in named.items():
        before = known.get(key)
        merged[key] = each if before is None else before._replace(fields=each.fields)
    return {key: each for key, each in merged.items() if key not in forgotten}


def _reordered(told: Sequence[AskedPartition], parts: Sequence[Fields]) -> list[AskedPartition]:
    """Those whose records were sent go to the end, so that the others have their turn."""
    sent = [bool(len(part["records"])) for part in parts]
    waiting = [each for each, is_sent in zip(told, sent, strict=True) if not is_sent]
    return waiting + [each for each, is_sent in zip(told, sent, strict=True) if is_sent]


def _next_epoch(epoch: int) -> int:
    return 1 if epoch >= _LARGEST else epoch + 1
