"""A connection to a broker: requests in the newest version that both sides know, several under way at once."""

import socket
import ssl
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from select import select
from types import MappingProxyType
from typing import NamedTuple

from kseg.client.security import PLAINTEXT, ClientSecurity, Login
from kseg.errors import ClusterError, reason
from kseg.formats.messages import Fields, MessageError, write_in_steps
from kseg.formats.schemas import REQUESTS, message_schema, version_range
from kseg.protocol.error_codes import ErrorCode
from kseg.protocol.messages import SIZE_BYTES, api_name, read_response, request_header_version
from kseg.system.addresses import Address, address_text
from kseg.system.tls import tls_reason

CLIENT_ID = "kseg"
LARGEST_RESPONSE = 1 << 30
"""The most bytes of a response, so that a wrong size allocates no memory."""
FIRST_IDS = 2
"""The number of requests after which a broker has closed the connection if it wants something else."""
TLS_ALERT = 0x150303
"""The first bytes of the answer of TLS to a request that isn't encrypted: alert, version 3.3."""
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 60.0
"""The longest waits for a connection with TLS, and for an answer."""


class Api(NamedTuple):
    """An API and the newest version that this client sends: later ones name topics by ids, or ask for many groups."""

    key: int
    newest: int


PRODUCE = Api(0, 8)  # 9 has the same fields with flexible lengths, which take half as long again to write and read
FETCH = Api(1, 12)
LIST_OFFSETS = Api(2, 7)
METADATA = Api(3, 9)
OFFSET_COMMIT = Api(8, 7)
OFFSET_FETCH = Api(9, 7)
FIND_COORDINATOR = Api(10, 3)
JOIN_GROUP = Api(11, 3)
HEARTBEAT = Api(12, 3)
LEAVE_GROUP = Api(13, 2)
SYNC_GROUP = Api(14, 3)
LIST_GROUPS = Api(16, 5)
SASL_HANDSHAKE = Api(17, 1)
API_VERSIONS = Api(18, 0)
CREATE_TOPICS = Api(19, 6)
DELETE_RECORDS = Api(21, 2)
INIT_PRODUCER_ID = Api(22, 4)
DESCRIBE_CONFIGS = Api(32, 4)
SASL_AUTHENTICATE = Api(36, 2)
DELETE_GROUPS = Api(42, 2)
INCREMENTAL_ALTER_CONFIGS = Api(44, 1)
ALTER_SHARE_GROUP_OFFSETS = Api(91, 0)

FIRST_VERSIONS: Mapping[int, range] = MappingProxyType({API_VERSIONS.key: range(1)})
"""The versions that every broker knows, before it lists its own."""


class ConnectionLostError(ClusterError):
    """An error: a connection can't be made, has ended, or gives no answer. Another attempt may succeed.

    problem: the message without the next step.
    """

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"{problem}; check the broker, then run the command again")


class _Awaited(NamedTuple):
    """A request without an answer yet."""

    correlation_id: int
    api: Api
    version: int


class Connection:
    """A connection to one broker. Answers come in the order of the requests."""

    def __init__(self, address: Address, connected: socket.socket) -> None:
        """Take a connected socket, and ask for the broker's versions. Raises ClusterError."""
        self.address = address
        self._socket = connected
        self._awaited: deque[_Awaited] = deque()
        self._next_id = 0
        self._versions = FIRST_VERSIONS
        answer = self.ask(API_VERSIONS, {})
        self._versions = {
            each["apiKey"]: range(each["minVersion"], each["maxVersion"] + 1) for each in answer["apiKeys"]
        }

    @classmethod
    def open(cls, address: Address, security: ClientSecurity = PLAINTEXT) -> "Connection":
        """Connect to an address, and log in. Raises ConnectionLostError; ClusterError if the broker refuses."""
        connected = _connect(address, security)
        try:
            connection = cls(address, connected)
            if security.login is not None:
                connection._log_in(security.login)
        except ClusterError:
            connected.close()
            raise
        return connection

    def _log_in(self, login: Login) -> None:
        """Log in by SASL. Raises ClusterError if the broker refuses."""
        answer = self.ask(SASL_HANDSHAKE, {"mechanism": login.mechanism})
        if answer["errorCode"]:
            offered = ", ".join(answer["mechanisms"])
            step = f"set sasl.mechanism to one of {offered}" if offered else "set security.protocol without SASL"
            raise ClusterError(f"broker {address_text(self.address)} has no log-in by {login.mechanism}; {step}")
        tokens, answered = login.tokens(), None
        while True:
            try:
                token = next(tokens) if answered is None else tokens.send(answered)
            except StopIteration:
                return
            answer = self.ask(SASL_AUTHENTICATE, {"authBytes": token})
            if answer["errorCode"]:
                user = f" of {login.user}" if login.user else ""
                problem = answer["errorMessage"] or ErrorCode(answer["errorCode"]).name
                raise ClusterError(f"broker {address_text(self.address)} refuses the log-in{user}: {problem}")
            answered = answer["authBytes"]

    @property
    def has_bytes(self) -> bool:
        """True if bytes of an answer were decrypted already, so that a selector doesn't know of them."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    @property
    def under_way(self) -> int:
        """The number of requests without an answer yet."""
        return len(self._awaited)

    def fileno(self) -> int:
        """Return the socket's descriptor, for a selector."""
        return self._socket.fileno()

    def close(self) -> None:
        """End the connection; requests under way get no answer."""
        self._awaited.clear()
        with suppress(OSError):
            self._socket.close()

    def version_of(self, api: Api) -> int:
        """Return the version that both sides know. Raises ClusterError if there is none."""
        theirs, ours = self._versions.get(api.key, range(0)), version_range(REQUESTS[api.key].versions)
        newest = min(api.newest, theirs.stop - 1, ours.last)
        if newest < max(theirs.start, ours.first):
            raise ClusterError(f"broker {address_text(self.address)} has no {api_name(api.key)} that kseg can send")
        return newest

    def knows(self, api: Api) -> bool:
        """Return whether the broker offers an API."""
        return api.key in self._versions

    def ask(self, api: Api, body: Fields) -> Fields:
        """Return the answer to a request, after those under way were taken. Raises ClusterError."""
        assert not self._awaited
        self.send(api, body)
        return self.receive()

    def send(self, api: Api, body: Fields, *, is_answered: bool = True) -> None:
        """Send a request. Raises ConnectionLostError; ClusterError if the request can't be built."""
        version = self.version_of(api)
        self._next_id += 1
        header = {
            "requestApiKey": api.key,
            "requestApiVersion": version,
            "correlationId": self._next_id,
            "clientId": CLIENT_ID,
        }
        frame = BytesIO(bytes(SIZE_BYTES))
        frame.seek(SIZE_BYTES)
        header_version = request_header_version(api.key, version) or 0
        try:
            for _ in write_in_steps(message_schema("RequestHeader"), header_version, header, frame):
                pass
            for _ in write_in_steps(REQUESTS[api.key], version, body, frame):
                pass
        except MessageError as error:
            raise ClusterError(f"a request can't be built: {error}") from error
        content = frame.getbuffer()
        content[:SIZE_BYTES] = (len(content) - SIZE_BYTES).to_bytes(SIZE_BYTES, "big")
        try:
            self._socket.sendall(content)
        except OSError as error:
            raise _failure(self.address, error) from error
        if is_answered:
            self._awaited.append(_Awaited(self._next_id, api, version))

    def receive(self) -> Fields:
        """Return the answer to the oldest request under way. Raises ConnectionLostError; ClusterError for nonsense."""
        awaited = self._awaited.popleft()
        size = int.from_bytes(self._read(SIZE_BYTES), "big", signed=True)
        if size >> 8 == TLS_ALERT:
            raise ClusterError(
                f"broker {address_text(self.address)} wants TLS; set security.protocol in --command-config"
            )
        if not SIZE_BYTES <= size <= LARGEST_RESPONSE:
            problem = f"{address_text(self.address)} isn't a Kafka broker: it sent the size {size}"
            raise ClusterError(f"{problem}; specify the address of a broker's listener by --bootstrap")
        answer = read_response(self._read(size), awaited.api.key, awaited.version)
        if answer.correlation_id != awaited.correlation_id or answer.body is None:
            raise ClusterError(
                f"{address_text(self.address)} gave no valid answer: {answer.problem or 'another number'}"
            )
        return answer.body

    def _read(self, size: int) -> bytes:
        """Read some bytes and no more, so that a selector knows of the rest."""
        content = bytearray(size)
        left = memoryview(content)
        while left:
            try:
                count = self._socket.recv_into(left)
            except OSError as error:
                raise _failure(self.address, error) from error
            if not count:
                is_first = self._next_id <= FIRST_IDS
                hint = "; if its listener needs TLS or a log-in, specify --command-config" if is_first else ""
                raise ConnectionLostError(f"broker {address_text(self.address)} has closed the connection{hint}")
            left = left[count:]
        return bytes(content)


def _connect(address: Address, security: ClientSecurity) -> socket.socket:
    """Return a socket, after the start of TLS if it has it. Raises as `_failure` says."""
    connected = None
    try:
        connected = socket.create_connection(address, CONNECT_SECONDS)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if security.tls is not None:
            connected = security.tls.wrap_socket(connected, server_hostname=address[0])
        connected.settimeout(ANSWER_SECONDS)
        return connected
    except OSError as error:
        if connected is not None:
            connected.close()
        raise _failure(address, error) from error


def _failure(address: Address, error: OSError) -> ClusterError:
    """Return the error of a connection; only one of the network may pass."""
    if isinstance(error, ssl.SSLCertVerificationError):
        problem = f"its certificate isn't accepted: {error.verify_message}; check ssl.truststore.location"
        return ClusterError(f"broker {address_text(address)}: {problem}")
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return ClusterError(f"broker {address_text(address)}: TLS fails: {tls_reason(error)}; check --command-config")
    return ConnectionLostError(f"broker {address_text(address)} can't be reached: {error.strerror or reason(error)}")


def await_answers(connections: Sequence[Connection], seconds: float) -> Sequence[Connection]:
    """Return the connections that have bytes of an answer, after a wait for the first ones."""
    ready = [each for each in connections if each.has_bytes]
    return ready or (select(connections, [], [], seconds)[0] if connections else [])
