"""Log-in by SASL: PLAIN and SCRAM, users, and delayed answers after failures."""

import asyncio
import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from kseg.errors import KsegError, UsageError, plural, quote
from kseg.formats.messages import Fields
from kseg.protocol.error_codes import ErrorCode
from kseg.protocol.messages import API_VERSIONS, SIZE_BYTES, MessageHeader, build_response, read_request_header
from kseg.protocol.scram import HASHES, ITERATIONS, exclusive_or, scram_keys
from kseg.serve.answer import RefusedError, is_known, read_body
from kseg.serve.apis.request import SASL_AUTHENTICATE, SASL_HANDSHAKE
from kseg.serve.turns import run_at_once
from kseg.system.files import read_small, secrets_risk


class LoginError(KsegError):
    """A failed log-in; `client_text` is sent to the client, None for the usual text."""

    def __init__(self, message: str, client_text: str | None = None) -> None:
        super().__init__(message)
        self.client_text = client_text


class Exchange(Protocol):
    """A log-in in progress. user: the client's name once it is verified; name: the name that it claims."""

    user: str | None
    name: str

    def take(self, token: bytes) -> bytes:
        """Return the answer to the client's next token. Raises LoginError if the log-in fails."""


MOST_OF_A_HOST = 16
"""The most failed log-ins of one host with answers held back; at this number the host can't log in."""


class Failures:
    """Hosts whose failed log-ins are being held back. Used on the event loop alone."""

    def __init__(self) -> None:
        self._held_back: Counter[str] = Counter()

    def bars(self, host: str) -> bool:
        """Return True if a host has had too many failures recently."""
        return self._held_back[host] >= MOST_OF_A_HOST

    @asynccontextmanager
    async def delay(self, host: str, seconds: float) -> AsyncIterator[None]:
        """Enter after a number of seconds, without a delay for other clients."""
        self._held_back[host] += 1
        try:
            await asyncio.sleep(seconds)
            yield
        finally:
            self._held_back[host] -= 1
            self._held_back += Counter()  # removes hosts with a count of 0


LARGEST_FILE = 1 << 20
MOST_USERS = 1000
"""The most users: each costs a few milliseconds at the start."""
SALT_BYTES = 16


class ScramCredential(NamedTuple):
    """The server's knowledge of a password, by RFC 5802."""

    salt: bytes
    stored_key: bytes
    server_key: bytes


class Users:
    """Users that may log in. Unknown users get the same checks as known ones, so that nobody learns who is known."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        """Take passwords by name."""
        self._secret = secrets.token_bytes(SALT_BYTES)
        self._digests = {name: self._digest(password) for name, password in passwords.items()}
        self._nobody = self._digest(secrets.token_hex(SALT_BYTES))
        self._credentials = {
            (name, mechanism): scram_credential(mechanism, password, secrets.token_bytes(SALT_BYTES))
            for mechanism in HASHES
            for name, password in passwords.items()
        }
        self._unknown_users = {mechanism: scram_credential(mechanism, secrets.token_hex(), b"") for mechanism in HASHES}

    def has(self, name: str, password: str) -> bool:
        """Return True if a user has this password."""
        known = self._digests.get(name)
        is_right = hmac.compare_digest(self._digest(password), self._nobody if known is None else known)
        return is_right and known is not None

    def credential(self, name: str, mechanism: str) -> ScramCredential:
        """Return a user's credential; for an unknown user one that no password fits, always with the same salt."""
        known = self._credentials.get((name, mechanism))
        salt = hmac.digest(self._secret, f"{mechanism} {name}".encode(), "sha256")[:SALT_BYTES]
        return self._unknown_users[mechanism]._replace(salt=salt) if known is None else known

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._secret, password.encode(), "sha256")


def scram_credential(mechanism: str, password: str, salt: bytes) -> ScramCredential:
    """Compute the credential of a password."""
    keys = scram_keys(mechanism, password, salt)
    return ScramCredential(salt, keys.stored_key, keys.server_key)


def read_passwords(path: Path, say: Callable[[str], None]) -> dict[str, str]:
    """Read passwords by user from lines USER:PASSWORD; empty lines and comments (#) are skipped.

    `say` is called if others can read the file.

    Raises:
        OpenError: the file can't be opened.
        UsageError: a line has another form, or the file has no user.
    """
    lines = read_small(path, LARGEST_FILE).splitlines()
    if (risk := secrets_risk(path)) is not None:
        say(risk)
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith(b"#"):
            continue
        try:
            name, colon, password = line.decode().partition(":")
        except UnicodeDecodeError as error:
            raise UsageError(f"{path}: line {number} isn't UTF-8") from error
        if not (name and colon and password) or "\0" in line.decode():
            raise UsageError(f"{path}: line {number} isn't USER:PASSWORD")
        if name in found:
            raise UsageError(f"{path}: line {number}: this user has a password already")
        found[name] = password
    if not 0 < len(found) <= MOST_USERS:
        raise UsageError(
            f"{path}: the file has {plural(len(found), 'user')}; specify 1 to {MOST_USERS}, one line USER:PASSWORD each"
        )
    return found


PLAIN = "PLAIN"
_PARTS = 3
WRONG = "Authentication failed: Invalid username or password"
"""Kafka's text."""


class Plain:
    """A log-in with a password."""

    def __init__(self, users: Users) -> None:
        """Take the users."""
        self._users = users
        self.user: str | None = None
        self.name = ""

    def take(self, token: bytes) -> bytes:
        """Check the password, which is the only token."""
        parts = token.decode(errors="replace").split("\0")
        if len(parts) != _PARTS:
            raise LoginError("the client sent no password")
        authorized, self.name, password = parts
        if not self._users.has(self.name, password):
            raise LoginError("unknown user or wrong password", WRONG)
        if authorized not in ("", self.name):
            raise LoginError("asks to act as another user, which kseg doesn't support")
        self.user = self.name
        return b""


_NAME = rb"(?:[^\0=,]|=2C|=3D)+"
_NONCE = rb"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS = rb"(?:,[A-Za-z]+=[^\0,]+)*"
_FIRST = re.compile(
    rb"(?P<header>[ny],(?:a=(?P<authorized>%b))?,)(?P<bare>n=(?P<name>%b),r=(?P<nonce>%b)%b)"
    % (_NAME, _NAME, _NONCE, _EXTENSIONS)
)
"""The pattern of a first message, without channel binding (p=) and mandatory extensions (m=)."""
_FINAL = re.compile(
    rb"(?P<unproven>c=(?P<binding>[A-Za-z0-9/+=]+),r=(?P<nonce>%b)%b),p=(?P<proof>[A-Za-z0-9/+=]+)"
    % (_NONCE, _EXTENSIONS)
)
_NONCE_BYTES = 24


class _FirstMessages(NamedTuple):
    """The contents of the first messages: the client's header, its nonce as it may come back, both messages."""

    header: bytes
    nonces: tuple[bytes, bytes]
    said: bytes


class Scram:
    """A log-in with SCRAM: two messages from each side."""

    def __init__(self, mechanism: str, users: Users) -> None:
        """Take the mechanism's name, and the users."""
        self._mechanism, self._hash, self._users = mechanism, HASHES[mechanism], users
        self._first_messages: _FirstMessages | None = None
        self.user: str | None = None
        self.name = ""

    def take(self, token: bytes) -> bytes:
        """Return the server's message after the client's."""
        if self._first_messages is None:
            return self._take_first(token)
        return self._take_final(token, self._first_messages)

    def _take_first(self, token: bytes) -> bytes:
        """Return nonce, salt and iterations, also for an unknown user."""
        first = _FIRST.fullmatch(token)
        if first is None:
            raise LoginError("the client sent no first SCRAM message")
        self.name = _plain_name(first["name"])
        if first["authorized"] is not None and _plain_name(first["authorized"]) != self.name:
            raise LoginError("asks to act as another user, which kseg doesn't support")
        own = first["nonce"]
        nonce = own + secrets.token_urlsafe(_NONCE_BYTES).encode()
        answer = b"r=%b,s=%b,i=%d" % (nonce, b64encode(self._credential().salt), ITERATIONS)
        # librdkafka before 2.6.1, as in Debian's kcat, repeats its own part, which brokers accepted until 3.8.1.
        self._first_messages = _FirstMessages(first["header"], (nonce, own + nonce), first["bare"] + b"," + answer)
        return answer

    def _take_final(self, token: bytes, begun: _FirstMessages) -> bytes:
        """Check the client's proof, and return the server's."""
        final = _FINAL.fullmatch(token)
        if final is None:
            raise LoginError("the client sent no final SCRAM message")
        signed, credential = begun.said + b"," + final["unproven"], self._credential()
        signature = hmac.digest(credential.stored_key, signed, self._hash)
        proof = _decode_base64(final["proof"])
        is_next = final["nonce"] in begun.nonces and _decode_base64(final["binding"]) == begun.header
        if len(proof) != len(signature) or not is_next:
            raise LoginError("the final SCRAM message doesn't match the first")
        client_key = exclusive_or(signature, proof)
        if not hmac.compare_digest(hashlib.new(self._hash, client_key).digest(), credential.stored_key):
            raise LoginError("unknown user or wrong password")
        self.user = self.name
        return b"v=" + b64encode(hmac.digest(credential.server_key, signed, self._hash))

    def _credential(self) -> ScramCredential:
        return self._users.credential(self.name, self._mechanism)


def _plain_name(name: bytes) -> str:
    return name.decode(errors="replace").replace("=2C", ",").replace("=3D", "=")


def _decode_base64(text: bytes) -> bytes:
    try:
        return b64decode(text, validate=True)
    except Base64Error as error:
        raise LoginError("a SCRAM message isn't valid base64") from error


MECHANISMS = (*HASHES, PLAIN)


class Logins:
    """The log-in settings: users, mechanisms, and recent failures.

    The server's child command has a user of its own, which lasts as long as the server.
    """

    def __init__(self, passwords: Mapping[str, str], mechanisms: Sequence[str]) -> None:
        """Take passwords by user, and the offered mechanisms: at least one."""
        self._own = f"kseg-{secrets.token_hex(8)}", secrets.token_urlsafe()
        self.users = Users(dict((*passwords.items(), self._own)))
        self.mechanisms = tuple(mechanisms)
        self.failures = Failures()

    def exchange(self, mechanism: str) -> Exchange | None:
        """Begin a log-in; return None if the mechanism isn't offered."""
        if mechanism not in self.mechanisms:
            return None
        return Plain(self.users) if mechanism == PLAIN else Scram(mechanism, self.users)

    def client_settings(self) -> dict[str, str]:
        """Return librdkafka's settings for the server's own command."""
        name, password = self._own
        return {"sasl.mechanism": self.mechanisms[0], "sasl.username": name, "sasl.password": password}


USUAL_ERROR = "Authentication failed during authentication due to invalid credentials with SASL mechanism {}"
"""Kafka's text for errors without details."""


class LoginStep(NamedTuple):
    """The answer to a frame; `failure`: the reason for closing the connection after it."""

    answer: bytes
    failure: str | None = None


class Login:
    """The log-in of a connection, which takes its first frames until `user` is set."""

    def __init__(self, logins: Logins, host: str) -> None:
        """Take the log-in settings and the client's host."""
        self._logins, self._host = logins, host
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._is_bare = False
        self.user: str | None = None

    @property
    def mechanism(self) -> str:
        """The mechanism's name."""
        return self._mechanism

    def takes(self, frame: bytes) -> bool:
        """Return True if a frame belongs to the log-in; false for ApiVersions, which is always allowed."""
        if self._is_bare or self._exchange is not None:
            return True
        try:
            return read_request_header(frame).api_key != API_VERSIONS
        except KsegError as error:
            raise RefusedError(str(error)) from error

    def step(self, frame: bytes) -> LoginStep:
        """Answer a frame. Raises RefusedError if it gets no answer."""
        if self._exchange is not None and self._is_bare:
            token = self._answer_token(self._exchange, frame)
            if isinstance(token, LoginError):
                return LoginStep(b"", self._failure(token))
            return LoginStep(len(token).to_bytes(SIZE_BYTES, "big") + token)
        try:
            header = read_request_header(frame)
            wanted = SASL_HANDSHAKE if self._exchange is None else SASL_AUTHENTICATE
            if header.api_key != wanted or not is_known(header):
                raise RefusedError(f"api key {header.api_key} version {header.api_version}: not logged in")
            body = run_at_once(read_body(header, frame))
            return self._begin(header, body) if self._exchange is None else self._go_on(header, body, self._exchange)
        except RefusedError:
            raise
        except KsegError as error:
            raise RefusedError(str(error)) from error

    def _begin(self, header: MessageHeader, body: Fields) -> LoginStep:
        """Take the mechanism."""
        self._mechanism = body["mechanism"]
        self._exchange = self._logins.exchange(self._mechanism)
        self._is_bare = header.api_version == 0
        is_offered = self._exchange is not None
        error = ErrorCode.NONE if is_offered else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        answer = _encode_response(header, {"errorCode": error, "mechanisms": list(self._logins.mechanisms)})
        return LoginStep(
            answer, None if is_offered else (f"log-in by {quote(self._mechanism)}, which this server doesn't offer")
        )

    def _go_on(self, header: MessageHeader, body: Fields, exchange: Exchange) -> LoginStep:
        token = self._answer_token(exchange, body["authBytes"])
        if not isinstance(token, LoginError):
            return LoginStep(
                _encode_response(header, {"errorCode": ErrorCode.NONE, "errorMessage": None, "authBytes": token})
            )
        text = token.client_text or USUAL_ERROR.format(self._mechanism)
        answer = {"errorCode": ErrorCode.SASL_AUTHENTICATION_FAILED, "errorMessage": text, "authBytes": b""}
        return LoginStep(_encode_response(header, answer), self._failure(token))

    def _answer_token(self, exchange: Exchange, token: bytes) -> bytes | LoginError:
        """Return the answer to a token, or its error. Raises RefusedError if its host has failed too often."""
        if self._logins.failures.bars(self._host):
            raise RefusedError("too many failed log-ins from this host at once")
        try:
            answer = exchange.take(token)
        except LoginError as error:
            return error
        self.user = exchange.user
        return answer

    def _failure(self, error: LoginError) -> str:
        name = "" if self._exchange is None else self._exchange.name
        return f"log-in as {quote(name)} by {self._mechanism} failed: {error.message}"


def _encode_response(header: MessageHeader, body: Fields) -> bytes:
    pieces: list[bytes] = build_response(header.api_key, header.api_version, header.correlation_id, body)
    return b"".join(pieces)
