"""What one client may take of the server, and all of them together."""

from dataclasses import dataclass

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
REST = 10
"""So many times as reading transactions or metadata took they aren't read again, though their log may have grown."""
ENCRYPTED_PIECE = 1 << 18
"""Bytes of a log that are read at once where they are encrypted."""
LARGEST_FETCH = 64 << 20
"""Bytes of records in a response."""
LARGEST_PARTITION_FETCH = 16 << 20
"""Bytes of records of one partition in a response; a batch that is larger goes out whole."""
WORKERS = 4
"""Threads that read logs and encode answers."""
READ_AT_ONCE = 1 << 17
"""Bytes of a log that a worker reads at once to check them; eight such buffers take turns."""
AHEAD = 8 << 20
"""Bytes of a log that are checked at a time for a client that reads on."""
HEARD_AT_ONCE = 1 << 14
"""Bytes of requests that are taken from a connection before they are answered."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server allows each connection, in seconds, and how many connections there may be.

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
