"""Values of the server: settings, limits, addresses, clients' patterns, errors of groups."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal, Protocol

from kseg.errors import KsegError, missing_library, plural
from kseg.protocol.error_codes import ErrorCode

LARGEST_REQUEST = 1 << 20
"""The most bytes of a request: nobody produces here, so larger ones have no purpose."""
LARGEST_LOGIN_REQUEST = 1 << 16
"""The most bytes of a request before the log-in."""
MOST_REQUEST_ELEMENTS = 1 << 15
"""The most elements and tagged fields of a request: each takes a hundred bytes of memory or more."""
PIECE = 1 << 20
"""Bytes of a log that are sent with one system call."""
LONGEST_WAIT_SECONDS = 30.0
"""The longest wait of a fetch at a log's end, whatever the client requests."""
GROWTH_SECONDS = 0.25
"""The interval between checks for growth of logs, shared by all waiting clients."""
LOOK_REST = 3
"""The rest after such a check, as a multiple of its time: 100,000 partitions may take long."""
AWAITED_BYTES = 48
"""Memory per partition that a client waits for."""
REST = 10
"""The rest after reading transactions or metadata, as a multiple of the time it took, even if the log has grown."""
ENCRYPTED_PIECE = 1 << 18
"""Bytes of a log that are read at once for an encrypted connection."""
LARGEST_FETCH = 64 << 20
"""The most bytes of records in a response."""
LARGEST_PARTITION_FETCH = 16 << 20
"""The most bytes of records of one partition in a response; a larger batch is sent as a whole."""
WORKERS = 3
"""Threads that read logs and encode answers."""
FIRST_TURN_SECONDS = 0.002
"""The first turn of a request at a worker: most need no more."""
AT_ONCE_SECONDS = 0.0005
"""The time for which a request is answered without a worker, as long as nothing is read from a disk."""
SHORT_SECONDS = 0.01
"""The time at a worker after which a request counts as long, and its client as busy."""
MOST_SHORT = 64
"""The most requests after their first turn that count as short; further ones count as long."""
TURN_SECONDS = 0.01
"""The turn of a busy client's request at a worker."""
SWITCH_SECONDS = 0.0001
"""The interpreter's switch interval: a fiftieth of Python's default; an answer waits for several switches."""
COLLECT_SECONDS = 30.0
"""The interval between complete garbage collections, which stop everything for up to a tenth of a second."""
WORK_HALVES_SECONDS = 5.0
"""The half-life of a client's past work."""
NEWCOMER_SECONDS = 0.5
"""The work that counts for a new client, so that many new ones together don't go before others."""
BUSY_SECONDS = 1.0
"""The recent work that makes a client busy."""
MOST_BUSY_TURNS = 1
"""The most workers for busy clients at once."""
MOST_BEGUN = 2
"""The most busy clients' requests and large ones in progress; others wait."""
AT_ONCE_REQUEST = 1 << 10
"""The size up to which a request may be answered without a worker."""
SMALL_REQUEST = 1 << 14
"""The size up to which a request takes no counted room."""
SMALL_ANSWER = 1 << 16
"""The size up to which an answer takes no counted room."""
RECEIVED_AT_ONCE = 1 << 15
"""The receive buffer of a connection in bytes; the system may double it."""
KEPT_BACK = 1 << 9
"""The last bytes of an answer, which are held back until the log is known not to be cut."""
READ_AT_ONCE = 1 << 17
"""Bytes of a log that a worker reads at once to check them; there are eight such buffers."""
AHEAD = 8 << 20
"""Bytes of a log that are checked ahead for a sequential client."""
HEARD_AT_ONCE = 1 << 14
"""Bytes of requests that are read from a connection before they are answered."""


HighWatermark = Literal["log-end", "checkpoint"]


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The options for serving partitions.

    high_watermark: its source. is_strict: whether damage is an error for clients instead of being skipped.
    has_internal: whether Kafka's own topics are served too. mends_lz4: whether lz4 frames of format 0 are sent with
    corrected checksums. is_verbose: reports at the start which copy of each partition is served. is_quiet: reports
    nothing about copies at the start.
    """

    high_watermark: HighWatermark = "log-end"
    is_strict: bool = False
    has_internal: bool = True
    mends_lz4: bool = False
    is_verbose: bool = False
    is_quiet: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of each connection, in seconds, and of the number of connections.

    answer: bytes of a response, without records.
    request_bytes: all requests larger than SMALL_REQUEST together.
    answer_bytes: all responses larger than SMALL_ANSWER together, without records.
    held_seconds: the time after which a client that hasn't sent such a request, or read such a response, makes room.
    connections: the most connections. For a further one, the oldest without any request is closed, or else the one
    that has been idle the longest. If there is neither, the further one is closed.
    idle_seconds: the longest time without a request, as a broker's connections.max.idle.ms.
    spared_seconds: the time after its last request in which a connection isn't closed for another one.
    login_seconds: the time for the log-in and the TLS handshake.
    failed_login_seconds: the delay of the answer to a failed log-in.
    leaving_seconds: the time in which a rejected client may close the connection itself.
    request_seconds: the time from a request's size to its last byte.
    stalled_seconds: the time in which a client must take a piece of a response, at most PIECE bytes.
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


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


MOST_SHOWN = 200
"""The most characters of a text."""


def shown_text(text: str, most: int = MOST_SHOWN) -> str:
    """Return a client's text on one line, cut to `most` characters; unprintable ones become question marks."""
    short = text if len(text) <= most else f"{text[: most - 1]}…"
    return short if short.isprintable() else "".join(each if each.isprintable() else "?" for each in short)


LONGEST_PATTERN = 512
"""The most characters of a pattern."""
_MOST_MEMORY = 1 << 20
"""The most bytes of memory for an expression and its matching."""


class PatternError(KsegError):
    """An expression is invalid, too large, or can't be matched here."""


class ClientPattern(Protocol):
    """A regular expression that matches complete texts."""

    @property
    def pattern(self) -> str:
        """The expression as the client wrote it."""

    def fullmatch(self, text: str) -> object:
        """Return a truthy value if it matches."""


def compile_pattern(text: str) -> ClientPattern:
    """Compile an expression of google-re2. Raises PatternError."""
    try:
        import re2
    except ImportError as error:
        raise PatternError(missing_library("google-re2", "patterns")) from error
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    if len(text) > LONGEST_PATTERN:
        raise PatternError(
            f"the regular expression has {plural(len(text), 'character')}; the limit is {LONGEST_PATTERN}"
        )
    try:
        found: ClientPattern = re2.compile(text, options)
    except (re2.error, UnicodeError) as error:
        raise PatternError(f"the regular expression isn't valid: {error}") from error
    return found


MOST_GROUPS = 1000
"""The most groups with members or commits to this server."""
MOST_MEMBERS = 250
"""The most members of a group, including ids given to clients that haven't joined yet."""
MOST_GROUP_BYTES = 16 << 20
"""The most bytes of all groups: subscriptions, assignments, commits."""
MEMBER_BYTES, COMMIT_BYTES = 1024, 400
"""The sizes of a member and a commit without the bytes that clients chose."""
MOST_COMMIT_METADATA = 4096
"""The most characters of a commit's metadata. Source: offset.metadata.max.bytes."""
SHORTEST_SESSION_MS, LONGEST_SESSION_MS = 6_000, 1_800_000
"""Source: group.min.session.timeout.ms, group.max.session.timeout.ms."""
CONSUMER_SESSION_SECONDS = 45.0
"""The session of members that use the consumer protocol. Source: group.consumer.session.timeout.ms."""
CONSUMER_HEARTBEAT_MS = 1000
"""The heartbeat interval of these members. A broker has 5000; a rebalance here should be quick."""
FIRST_JOIN_SECONDS = 0.5
"""The wait before a new group's first generation, as more members may be starting; each new one restarts it.

A broker's group.initial.rebalance.delay.ms is 3000. Without any wait, kafka-python 3.0 leads a group before it knows a
topic.
"""
GROUP_SECONDS = 0.25
"""The interval between checks for expired members, while clients wait for others of their group."""
COMMITS_SECONDS = 5.0
"""The interval between checks for a broker's writes to __consumer_offsets."""


class GroupError(KsegError):
    """A refusal with a Kafka error code. `member_id`: the id for a client to join with, empty for none."""

    def __init__(self, code: ErrorCode, message: str = "", member_id: str = "") -> None:
        """Take the code, the message for clients of newer versions, and a member's new id."""
        super().__init__(message or code.name)
        self.code, self.member_id = code, member_id
