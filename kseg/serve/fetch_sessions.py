"""Fetch sessions: the server remembers the partitions of a client, so that requests and answers carry only changes.

A client gets a session with its first full fetch, and fetches incrementally from then on. Source: KIP-227,
FetchManager.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import SystemRandom
from threading import Lock
from time import monotonic
from typing import NamedTuple

from kseg.formats.messages import Fields
from kseg.protocol.error_codes import ErrorCode

MOST_SESSIONS = 1000
"""`max.incremental.fetch.session.cache.slots`."""
MOST_PARTITIONS = 1 << 15
"""The most partitions of all sessions together."""
_FEW_PARTITIONS = 32
"""The most partitions of a session that are gone through in a moment."""
EVICTION_SECONDS = 120.0
"""The idle time after which a session makes room for another one: `min.incremental.fetch.session.eviction.ms`."""
NO_SESSION = 0
_FIRST_EPOCH, _NO_EPOCH = 0, -1
_LARGEST = (1 << 31) - 1
BY_ID = 13
"""From this version on Fetch identifies topics by their ids."""

Key = tuple[str, int]
"""Topic by name or id, and partition."""


class AskedPartition(NamedTuple):
    """A partition of a fetch: its topic as the client names it, the wanted range, and the last answer."""

    topic: Fields
    fields: Fields
    high_watermark: int = -1
    log_start: int = -1

    @property
    def key(self) -> Key:
        """The key of its session entry."""
        return (*self.topic.values(), self.fields["partition"])

    def after_answer(self, part: Fields) -> "AskedPartition":
        """Return the partition after an answer; after an error the next answer counts as news."""
        is_error = part["errorCode"] != ErrorCode.NONE
        return self._replace(
            high_watermark=-1 if is_error else part["highWatermark"], log_start=part.get("logStartOffset", -1)
        )

    def is_news(self, part: Fields) -> bool:
        """Return True if an answer has something new for the client."""
        return bool(
            len(part["records"])
            or part["errorCode"] != ErrorCode.NONE
            or part["highWatermark"] != self.high_watermark
            or part["logStartOffset"] != self.log_start
        )


class _Session(NamedTuple):
    """A client's partitions in the order of their turns, and the epoch of its next fetch."""

    epoch: int
    is_by_id: bool
    partitions: dict[Key, AskedPartition]
    used: float


class FetchView(NamedTuple):
    """The contents of a fetch request with its session, NO_SESSION unless it is incremental.

    is_new: the request begins a session. epoch: the request's epoch.
    """

    partitions: Sequence[AskedPartition]
    session_id: int = NO_SESSION
    epoch: int = _NO_EPOCH
    is_new: bool = False
    is_by_id: bool = False


class Answer(NamedTuple):
    """The client's session after a fetch, and the partitions in its answer."""

    session_id: int
    parts: Sequence[tuple[AskedPartition, Fields]]


class FetchSessions:
    """The sessions of all clients; safe for several threads."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """Begin without sessions; `clock` returns seconds."""
        self._clock = clock
        self._lock = Lock()
        self._sessions: OrderedDict[int, _Session] = OrderedDict()
        self._random = SystemRandom()

    def __len__(self) -> int:
        return len(self._sessions)

    def is_large(self, body: Fields) -> bool:
        """Return True if a request belongs to a session whose partitions take long to go through."""
        session = self._sessions.get(body.get("sessionId", NO_SESSION))
        return session is not None and len(session.partitions) > _FEW_PARTITIONS

    def view(self, body: Fields, version: int) -> FetchView | ErrorCode:
        """Return the contents of a request, completed from its session; only `remember_answer` changes that."""
        session_id, epoch = body.get("sessionId", NO_SESSION), body.get("sessionEpoch", _NO_EPOCH)
        # The last entry wins if a partition is named twice.
        named, is_by_id = {each.key: each for each in named_partitions(body)}, version >= BY_ID
        with self._lock:
            if epoch in (_FIRST_EPOCH, _NO_EPOCH):
                self._sessions.pop(session_id, None)
                return FetchView(list(named.values()), is_new=epoch == _FIRST_EPOCH, is_by_id=is_by_id)
            session = self._sessions.get(session_id)
            error = _refusal(session, epoch, is_by_id=is_by_id)
            if session is None or error is not None:
                return error or ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            asked = _merge_partitions(session.partitions, named, _forgotten_keys(body))
        return FetchView(list(asked.values()), session_id, epoch, is_by_id=is_by_id)

    def remember_answer(self, view: FetchView, parts: Sequence[Fields]) -> Answer | ErrorCode:
        """Remember an answer, a part per partition of the view; omit parts without news for the client."""
        pairs = list(zip(view.partitions, parts, strict=True))
        told = [asked.after_answer(part) for asked, part in pairs]
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
            self._put(view.session_id, _next_epoch(view.epoch), _reorder(told, parts), is_by_id=view.is_by_id)
        return Answer(view.session_id, [(asked, part) for asked, part in pairs if asked.is_news(part)])

    def _begin(self, told: Sequence[AskedPartition], *, is_by_id: bool) -> int:
        """Return a new session's id; NO_SESSION if there is nothing to remember, or no room."""
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
        """Return True if there is room for a session of `count` partitions; ends idle sessions if needed."""
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
    """Yield the partitions in a request."""
    for topic in body["topics"]:
        name = {key: topic[key] for key in ("topic", "topicId") if key in topic}
        for fields in topic["partitions"]:
            yield AskedPartition(name, fields)


def _forgotten_keys(body: Fields) -> set[Key]:
    return {
        (topic["topicId"] if "topicId" in topic else topic["topic"], number)
        for topic in body.get("forgottenTopicsData") or ()
        for number in topic["partitions"]
    }


def _merge_partitions(
    known: dict[Key, AskedPartition], named: dict[Key, AskedPartition], forgotten: set[Key]
) -> dict[Key, AskedPartition]:
    """Return the partitions of a session after a request; partitions that are named again keep their place."""
    merged = dict(known)
    for key, each in named.items():
        before = known.get(key)
        merged[key] = each if before is None else before._replace(fields=each.fields)
    return {key: each for key, each in merged.items() if key not in forgotten}


def _reorder(told: Sequence[AskedPartition], parts: Sequence[Fields]) -> list[AskedPartition]:
    """Move partitions whose records were sent to the end, so that the others have their turn."""
    sent = [bool(len(part["records"])) for part in parts]
    waiting = [each for each, is_sent in zip(told, sent, strict=True) if not is_sent]
    return waiting + [each for each, is_sent in zip(told, sent, strict=True) if is_sent]


def _next_epoch(epoch: int) -> int:
    return 1 if epoch >= _LARGEST else epoch + 1
