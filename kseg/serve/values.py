"""Values of the server: limits, error codes, addresses, plans that are kept."""

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from io import FileIO
from ipaddress import ip_address
from pathlib import Path
from threading import Lock
from typing import NamedTuple, Protocol

from kseg.errors import KsegError, OpenError, counted, missing_library
from kseg.log.segments import SegmentFiles
from kseg.serve.fetch_batches import FetchBounds, FetchPlan
from kseg.system.files import open_ranged
from kseg.system.placed_path import RangedBytes

LARGEST_REQUEST = 1 << 20
"""Bytes of a request: nobody produces here, so none has reason to be larger."""
LARGEST_LOGIN_REQUEST = 1 << 16
"""Bytes of a request before its client is known."""
MOST_REQUEST_ELEMENTS = 1 << 15
"""Elements and tagged fields of a request: each takes a hundred bytes of memory or more."""
PIECE = 1 << 20
"""Bytes of a log that the system is asked to send at once."""
LONGEST_WAIT_SECONDS = 30.0
"""Of a fetch at a log's end, whatever the client asks for."""
GROWTH_SECONDS = 0.25
"""Between two looks at whether a log has grown, for all who wait for it together."""
LOOK_REST = 3
"""So many times as such a look took nobody looks again: it may be at 100,000 partitions."""
AWAITED_BYTES = 48
"""Memory that each partition takes that a client waits for."""
REST = 10
"""So many times as reading transactions or metadata took they aren't read again, though their log may have grown."""
ENCRYPTED_PIECE = 1 << 18
"""Bytes of a log that are read at once where they are encrypted."""
LARGEST_FETCH = 64 << 20
"""Bytes of records in a response."""
LARGEST_PARTITION_FETCH = 16 << 20
"""Bytes of records of one partition in a response; a batch that is larger goes out whole."""
WORKERS = 3
"""Threads that read logs and encode answers."""
FIRST_TURN_SECONDS = 0.002
"""Of a worker, for a request: most need no more."""
SHORT_SECONDS = 0.01
"""Of a worker, in several turns; a longer request is a busy client's from then on."""
MOST_SHORT = 64
"""Requests that had their first turn and aren't long yet; others are treated like long ones."""
TURN_SECONDS = 0.01
"""Of a worker, for a busy client's request, until another one has its turn."""
SWITCH_SECONDS = 0.0001
"""Until a thread lets another one have the interpreter: a fiftieth of Python's own; an answer waits for several."""
COLLECT_SECONDS = 30.0
"""Between two collections of all garbage, which stop everything for up to a tenth of a second."""
WORK_HALVES_SECONDS = 5.0
"""After so long what a client had of the workers counts half."""
NEWCOMER_SECONDS = 0.5
"""Of work that count for a client that has just come, so that many of them together don't go before others."""
BUSY_SECONDS = 1.0
"""Of work; a client that had more lately is a busy one."""
MOST_BUSY_TURNS = 1
"""Workers that busy clients have at once."""
MOST_BEGUN = 2
"""Requests of busy clients, and large ones, that are worked on by turns; others wait."""
SMALL_REQUEST = 1 << 14
"""Bytes of a request that take no room away from others."""
SMALL_ANSWER = 1 << 16
"""The same of an answer."""
RECEIVED_AT_ONCE = 1 << 15
"""Bytes that the system keeps for a connection until they are taken; it may double them."""
KEPT_BACK = 1 << 9
"""Bytes of a log, the last ones of an answer, that are sent when it is known that the log hasn't been cut meanwhile."""
READ_AT_ONCE = 1 << 17
"""Bytes of a log that a worker reads at once to check them; eight such buffers take turns."""
AHEAD = 8 << 20
"""Bytes of a log that are checked at a time for a client that reads on."""
HEARD_AT_ONCE = 1 << 14
"""Bytes of requests that are taken from a connection before they are answered."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server allows each connection, in seconds, and how many connections there may be.

    answer: bytes of a response, without records.
    request_bytes: of all requests that are larger than SMALL_REQUEST, together.
    answer_bytes: of all responses that are larger than SMALL_ANSWER, together, without records.
    held_seconds: until a client that hasn't sent such a request, or taken such a response, makes way for others.
    connections: at once; for a further one the oldest makes way that hasn't asked for anything, or else the one that
    has asked for nothing for the longest time; the further one is closed if there is none of these.
    idle_seconds: without a request, as a broker's connections.max.idle.ms.
    spared_seconds: since its last request in which a connection makes way for no other one.
    login_seconds: until a client has shown who it is, and how it encrypts.
    failed_login_seconds: until a client hears that it isn't let in.
    leaving_seconds: until a client that has been sent away is closed, if it doesn't close the connection itself.
    request_seconds: from a request's size to its last byte.
    stalled_seconds: until a client has taken the next piece of a response, which has at most PIECE bytes.
    """

    connections: int = 1000
    idle_seconds: float = 600.0
    spared_seconds: float = 10.0
    login_seconds: float = 30.0
    failed_login_seconds: float = 1.0
    leaving_seconds: float = 2.0
    request_seconds: float = 30.0
    stalled_seconds: float = 60.0
    answer: int = 16 << 20
    request_bytes: int = 32 << 20
    answer_bytes: int = 96 << 20
    held_seconds: float = 2.0


class ErrorCode(IntEnum):
    """Kafka's codes, under Kafka's names. Source: Errors."""

    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    OFFSET_METADATA_TOO_LARGE = 12
    INVALID_TOPIC_EXCEPTION = 17
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    KAFKA_STORAGE_ERROR = 56
    SASL_AUTHENTICATION_FAILED = 58
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    UNKNOWN_TOPIC_ID = 100
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129


Address = tuple[str, int]
"""Host and port."""


def address_text(address: Address) -> str:
    """HOST:PORT, an IPv6 address in brackets."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


MOST_SHOWN = 200
"""Characters of a text."""


def shown_text(text: str, most: int = MOST_SHOWN) -> str:
    """A text of a client in one line, not longer than that; what can't be printed becomes a question mark."""
    short = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(character if character.isprintable() else "?" for character in short)


LONGEST_PATTERN = 512
"""Characters."""
_MOST_MEMORY = 1 << 20
"""Bytes that an expression and its matching may take."""


class PatternError(KsegError):
    """An expression that is none, is too large, or can't be matched here."""


class ClientPattern(Protocol):
    """An expression that matches whole texts."""

    @property
    def pattern(self) -> str:
        """As the client wrote it."""

    def fullmatch(self, text: str) -> object:
        """Something true if it matches."""


def compile_pattern(text: str) -> ClientPattern:
    """The expression, as google-re2 has it. Raises PatternError."""
    try:
        import re2
    except ImportError as error:
        raise PatternError(missing_library("google-re2", "patterns")) from error
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    if len(text) > LONGEST_PATTERN:
        raise PatternError(f"an expression of {counted(len(text), 'character')}; the limit is {LONGEST_PATTERN}")
    try:
        found: ClientPattern = re2.compile(text, options)
    except (re2.error, UnicodeError) as error:
        raise PatternError(f"not an expression: {error}") from error
    return found


class StoredLog(NamedTuple):
    """A log's path, which file it led to, and that file's state; both are None if there was none.

    file: device and number. state: size, and time of the last modification in nanoseconds.
    """

    path: Path
    file: tuple[int, int] | None
    state: tuple[int, int] | None


def stored_log(path: Path) -> StoredLog:
    """The log at a path as it is now. To be taken before it is read, so that one that replaces it meanwhile differs."""
    try:
        found = os.stat(path)  # noqa: PTH116  quicker
    except OSError:
        return StoredLog(path, None, None)
    return StoredLog(path, (found.st_dev, found.st_ino), (found.st_size, found.st_mtime_ns))


@contextmanager
def open_same(log: StoredLog) -> Iterator[FileIO | RangedBytes]:
    """The log's file, or what it stands for. Raises OpenError if the path leads to nothing, or to another file."""
    descriptor, _, source = open_ranged(log.path)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        found = os.fstat(descriptor)
        if (found.st_dev, found.st_ino) != log.file:
            raise OpenError("has been replaced since it was read", log.path)
        yield file if source is None else source


MOST_GROUPS = 1000
"""Groups that have members, or that committed to this server."""
MOST_MEMBERS = 250
"""Members of a group, those included that were only given an id."""
MOST_GROUP_BYTES = 16 << 20
"""Bytes of all groups: subscriptions, assignments, commits."""
MEMBER_BYTES, COMMIT_BYTES = 1024, 400
"""What a member and a commit take besides the bytes that clients chose."""
MOST_COMMIT_METADATA = 4096
"""Characters beside an offset. Source: offset.metadata.max.bytes."""
SHORTEST_SESSION_MS, LONGEST_SESSION_MS = 6_000, 1_800_000
"""Source: group.min.session.timeout.ms, group.max.session.timeout.ms."""
CONSUMER_SESSION_SECONDS = 45.0
"""Of members that use the consumer protocol. Source: group.consumer.session.timeout.ms."""
CONSUMER_HEARTBEAT_MS = 1000
"""What these members are told. A broker says 5000; here a rebalance is to be quick."""
FIRST_JOIN_SECONDS = 0.5
"""Until a new group's first generation begins, since more members may be starting; each that comes starts it again.

A broker's group.initial.rebalance.delay.ms is 3000. Without any kafka-python 3.0 leads a group before it knows a topic.
"""
GROUP_SECONDS = 0.25
"""Between two looks at whose time is over, while clients wait for others of their group."""
COMMITS_SECONDS = 5.0
"""Between two looks at whether a broker has written to __consumer_offsets meanwhile."""


MOST_PLANS = 16_384
"""Of all partitions together: 16 GiB for clients that fetch a MiB at a time, and some 16 MiB of memory at most."""


class Planned(NamedTuple):
    """A plan for a fetch from a segment; for its log as it was then."""

    segment: SegmentFiles
    log: StoredLog
    plan: FetchPlan


class KnownPlans:
    """The plans that were made last, or asked for last; may be used by several threads."""

    def __init__(self, most: int = MOST_PLANS) -> None:
        """Knows none; keeps so many."""
        self._most = most
        self._lock = Lock()
        self._plans: OrderedDict[tuple[str, FetchBounds], Planned] = OrderedDict()

    def find(self, partition: str, bounds: FetchBounds) -> Planned | None:
        """The plan for a fetch from a partition, if its log is as it was."""
        key = partition, bounds
        with self._lock:
            planned = self._plans.get(key)
            if planned is None:
                return None
            self._plans.move_to_end(key)
        if stored_log(planned.segment.path) == planned.log:
            return planned
        with self._lock:
            self._plans.pop(key, None)
        return None

    def keep(self, partition: str, bounds: FetchBounds, planned: Planned) -> None:
        """Keeps a plan, instead of the one that was not asked for for the longest time."""
        with self._lock:
            self._plans[partition, bounds] = planned
            while len(self._plans) > self._most:
                self._plans.popitem(last=False)


class GroupError(KsegError):
    """A refusal, as one of Kafka's codes. `member_id`: the one that a client is to join with, empty for none."""

    def __init__(self, code: ErrorCode, message: str = "", member_id: str = "") -> None:
        """Takes the code, what newer versions tell clients beside it, and a member's new id."""
        super().__init__(message or code.name)
        self.code, self.member_id = code, member_id
