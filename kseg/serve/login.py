"""Log-in by SASL: PLAIN and SCRAM, users, and delayed answers after failures."""

import asyncio
import hashlib
import hmac
import re
import secrets
import stat
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from kseg.errors import KsegError, UsageError, counted, quoted
from kseg.formats.messages import Fields
from kseg.protocol.messages import API_VERSIONS, SIZE_BYTES, MessageHeader, build_response, read_request_header
from kseg.serve.answer import RefusedError, is_known, read_body
from kseg.serve.apis.request import SASL_AUTHENTICATE, SASL_HANDSHAKE
from kseg.serve.turns import finished
from kseg.serve.values import ErrorCode
from kseg.system.files import read_small


class LoginError(KsegError):
    """A client isn't who it says; `client_text` is what it is told, None for the usual text."""

    def __init__(self, message: str, client_text: str | None = None) -> None:
        super().__init__(message)
        self.client_text = client_text


class Exchange(Protocol):
    """One try to log in. user: who it is, once that is sure; name: who it says it is."""

    user: str | None
    name: str

    def take(self, token: bytes) -> bytes:
        """The answer to the client's next token. Raises LoginError if it isn't let in."""


MOST_OF_A_HOST = 16
"""Failed log-ins of one host whose answers are held back; while there are so many, nobody there is let in."""


class Failures:
    """Whose failed log-ins are being held back. Used on the event loop alone."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    def bars(self, host: str) -> bool:
        """Whether a host has failed too often just now."""
        return self._held[host] >= MOST_OF_A_HOST

    @asynccontextmanager
    async def held(self, host: str, seconds: float) -> AsyncIterator[None]:
        """Begins after so many seconds; others aren't held up."""
        self._held[host] += 1
        try:
            await asyncio.sleep(seconds)
            yield
        finally:
            self._held[host] -= 1
            self._held += Counter()  # forgets hosts without any


LARGEST_FILE = 1 << 20
MOST_USERS = 1000
"""Each costs a few milliseconds at the start."""
ITERATIONS = 4096
"""Kafka's least, and its default. Source: ScramMechanism."""
SALT_BYTES = 16
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_FOR_OTHERS = stat.S_IRGRP | stat.S_IROTH


class ScramCredential(NamedTuple):
    """What a server knows of a password, by RFC 5802."""

    salt: bytes
    stored_key: bytes
    server_key: bytes


class Users:
    """Who may log in. An unknown user is checked as a known one is, so that nobody learns who is known."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        """Takes passwords by name."""
        self._secret = secrets.token_bytes(SALT_BYTES)
        self._digests = {name: self._digest(password) for name, password in passwords.items()}
        self._nobody = self._digest(secrets.token_hex(SALT_BYTES))
        self._credentials = {
            (name, mechanism): scram_credential(mechanism, password, secrets.token_bytes(SALT_BYTES))
            for mechanism in HASHES
            for name, password in passwords.items()
        }
        self._unknown = {mechanism: scram_credential(mechanism, secrets.token_hex(), b"") for mechanism in HASHES}

    def has(self, name: str, password: str) -> bool:
        """Whether a user has this password."""
        known = self._digests.get(name)
        is_right = hmac.compare_digest(self._digest(password), self._nobody if known is None else known)
        return is_right and known is not None

    def credential(self, name: str, mechanism: str) -> ScramCredential:
        """What checks a user's password; for an unknown one what no password fits to, always with the same salt."""
        known = self._credentials.get((name, mechanism))
        salt = hmac.digest(self._secret, f"{mechanism} {name}".encode(), "sha256")[:SALT_BYTES]
        return self._unknown[mechanism]._replace(salt=salt) if known is None else known

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._secret, password.encode(), "sha256")


def scram_credential(mechanism: str, password: str, salt: bytes) -> ScramCredential:
    """The credential of a password. Source: RFC 5802 section 3; names and passwords aren't prepared, as in Kafka."""
    name = HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", name)
    return ScramCredential(salt, hashlib.new(name, client_key).digest(), hmac.digest(salted, b"Server Key", name))


def read_passwords(path: Path, say: Callable[[str], None]) -> dict[str, str]:
    """Passwords by user: lines USER:PASSWORD; empty ones, and those that begin with #, are left out.

    `say` is called if others can read the file.

    Raises:
        OpenError: the file can't be opened.
        UsageError: a line is something else, or there is no user.
    """
    lines = read_small(path, LARGEST_FILE).splitlines()
    if path.stat().st_mode & _FOR_OTHERS:
        say(f"{path}: others on this machine can read the passwords; `chmod 600 {path}` prevents it")
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
            f"{path}: {counted(len(found), 'user')}; from 1 to {MOST_USERS} can log in, each in a line USER:PASSWORD"
        )
    return found


PLAIN = "PLAIN"
_PARTS = 3
WRONG = "Authentication failed: Invalid username or password"
"""Kafka's text."""


class Plain:
    """One try to log in with a password."""

    def __init__(self, users: Users) -> None:
        """Takes who may."""
        self._users = users
        self.user: str | None = None
        self.name = ""

    def take(self, token: bytes) -> bytes:
        """Checks the password: nothing more comes after it."""
        parts = token.decode(errors="replace").split("\0")
        if len(parts) != _PARTS:
            raise LoginError("no password was sent")
        authorized, self.name, password = parts
        if not self._users.has(self.name, password):
            raise LoginError("unknown user or wrong password", WRONG)
        if authorized not in ("", self.name):
            raise LoginError("asks to act as another user, which kseg doesn't do")
        self.user = self.name
        return b""


_NAME = rb"(?:[^\0=,]|=2C|=3D)+"
_NONCE = rb"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS = rb"(?:,[A-Za-z]+=[^\0,]+)*"
_FIRST = re.compile(
    rb"(?P<header>[ny],(?:a=(?P<authorized>%b))?,)(?P<bare>n=(?P<name>%b),r=(?P<nonce>%b)%b)"
    % (_NAME, _NAME, _NONCE, _EXTENSIONS)
)
"""Neither channel binding (p=) nor mandatory extensions (m=)."""
_FINAL = re.compile(
    rb"(?P<unproven>c=(?P<binding>[A-Za-z0-9/+=]+),r=(?P<nonce>%b)%b),p=(?P<proof>[A-Za-z0-9/+=]+)"
    % (_NONCE, _EXTENSIONS)
)
_NONCE_BYTES = 24


class _Begun(NamedTuple):
    """What was said in the first messages: the client's header, its nonce as it may come back, both messages."""

    header: bytes
    nonces: tuple[bytes, bytes]
    said: bytes


class Scram:
    """One try to log in: two messages of each side."""

    def __init__(self, mechanism: str, users: Users) -> None:
        """Takes the mechanism's name, and who may."""
        self._mechanism, self._hash, self._users = mechanism, HASHES[mechanism], users
        self._begun: _Begun | None = None
        self.user: str | None = None
        self.name = ""

    def take(self, token: bytes) -> bytes:
        """The server's message after the client's."""
        if self._begun is None:
            return self._take_first(token)
        return self._take_final(token, self._begun)

    def _take_first(self, token: bytes) -> bytes:
        """Gives nonce, salt and iterations, also to who isn't known."""
        first = _FIRST.fullmatch(token)
        if first is None:
            raise LoginError("no first message of SCRAM was sent")
        self.name = _plain_name(first["name"])
        if first["authorized"] is not None and _plain_name(first["authorized"]) != self.name:
            raise LoginError("asks to act as another user, which kseg doesn't do")
        own = first["nonce"]
        nonce = own + secrets.token_urlsafe(_NONCE_BYTES).encode()
        answer = b"r=%b,s=%b,i=%d" % (nonce, b64encode(self._credential().salt), ITERATIONS)
        # librdkafka before 2.6.1, as in Debian's kcat, says its own part twice, which brokers took until 3.8.1.
        self._begun = _Begun(first["header"], (nonce, own + nonce), first["bare"] + b"," + answer)
        return answer

    def _take_final(self, token: bytes, begun: _Begun) -> bytes:
        """Checks the client's proof, and gives the server's."""
        final = _FINAL.fullmatch(token)
        if final is None:
            raise LoginError("no final message of SCRAM was sent")
        signed, credential = begun.said + b"," + final["unproven"], self._credential()
        signature = hmac.digest(credential.stored_key, signed, self._hash)
        proof = _decoded(final["proof"])
        is_next = final["nonce"] in begun.nonces and _decoded(final["binding"]) == begun.header
        if len(proof) != len(signature) or not is_next:
            raise LoginError("the final message of SCRAM isn't one for the first")
        client_key = bytes(own ^ sent for own, sent in zip(signature, proof, strict=True))
        if not hmac.compare_digest(hashlib.new(self._hash, client_key).digest(), credential.stored_key):
            raise LoginError("unknown user or wrong password")
        self.user = self.name
        return b"v=" + b64encode(hmac.digest(credential.server_key, signed, self._hash))

    def _credential(self) -> ScramCredential:
        return self._users.credential(self.name, self._mechanism)


def _plain_name(name: bytes) -> str:
    return name.decode(errors="replace").replace("=2C", ",").replace("=3D", "=")


def _decoded(text: bytes) -> bytes:
    try:
        return b64decode(text, validate=True)
    except Base64Error as error:
        raise LoginError("a message of SCRAM isn't in base64") from error


MECHANISMS = (*HASHES, PLAIN)


class Logins:
    """How clients log in: who may, by which mechanisms, and who has just failed.

    The command that a server runs for has a user of its own, who lasts as long as the server.
    """

    def __init__(self, passwords: Mapping[str, str], mechanisms: Sequence[str]) -> None:
        """Takes passwords by user, and the mechanisms that are offered: at least one."""
        self._own = f"kseg-{secrets.token_hex(8)}", secrets.token_urlsafe()
        self.users = Users(dict((*passwords.items(), self._own)))
        self.mechanisms = tuple(mechanisms)
        self.failures = Failures()

    def exchange(self, mechanism: str) -> Exchange | None:
        """A new try to log in; None if the mechanism isn't offered."""
        if mechanism not in self.mechanisms:
            return None
        return Plain(self.users) if mechanism == PLAIN else Scram(mechanism, self.users)

    def client_settings(self) -> dict[str, str]:
        """Librdkafka's settings for the server's own command."""
        name, password = self._own
        return {"sasl.mechanism": self.mechanisms[0], "sasl.username": name, "sasl.password": password}


USUAL_ERROR = "Authentication failed during authentication due to invalid credentials with SASL mechanism {}"
"""Kafka's text for what it doesn't tell more of."""


class LoginStep(NamedTuple):
    """What goes back for a frame; `failure`: why the connection is closed after it."""

    answer: bytes
    failure: str | None = None


class Login:
    """Takes a connection's first frames, until `user` says who it is."""

    def __init__(self, logins: Logins, host: str) -> None:
        """Takes who may log in, and where the client comes from."""
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
        """Whether a frame is about logging in; false for ApiVersions, which everybody may ask."""
        if self._is_bare or self._exchange is not None:
            return True
        try:
            return read_request_header(frame).api_key != API_VERSIONS
        except KsegError as error:
            raise RefusedError(str(error)) from error

    def step(self, frame: bytes) -> LoginStep:
        """Takes a frame. Raises RefusedError if it gets no answer."""
        if self._exchange is not None and self._is_bare:
            token = self._token(self._exchange, frame)
            if isinstance(token, LoginError):
                return LoginStep(b"", self._failure(token))
            return LoginStep(len(token).to_bytes(SIZE_BYTES, "big") + token)
        try:
            header = read_request_header(frame)
            wanted = SASL_HANDSHAKE if self._exchange is None else SASL_AUTHENTICATE
            if header.api_key != wanted or not is_known(header):
                raise RefusedError(f"api key {header.api_key} version {header.api_version}: not logged in")
            body = finished(read_body(header, frame))
            return self._begin(header, body) if self._exchange is None else self._go_on(header, body, self._exchange)
        except RefusedError:
            raise
        except KsegError as error:
            raise RefusedError(str(error)) from error

    def _begin(self, header: MessageHeader, body: Fields) -> LoginStep:
        """Takes the mechanism."""
        self._mechanism = body["mechanism"]
        self._exchange = self._logins.exchange(self._mechanism)
        self._is_bare = header.api_version == 0
        is_offered = self._exchange is not None
        error = ErrorCode.NONE if is_offered else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        answer = _encoded(header, {"errorCode": error, "mechanisms": list(self._logins.mechanisms)})
        return LoginStep(answer, None if is_offered else f"log-in by {quoted(self._mechanism)}, which isn't offered")

    def _go_on(self, header: MessageHeader, body: Fields, exchange: Exchange) -> LoginStep:
        token = self._token(exchange, body["authBytes"])
        if not isinstance(token, LoginError):
            return LoginStep(_encoded(header, {"errorCode": ErrorCode.NONE, "errorMessage": None, "authBytes": token}))
        text = token.client_text or USUAL_ERROR.format(self._mechanism)
        answer = {"errorCode": ErrorCode.SASL_AUTHENTICATION_FAILED, "errorMessage": text, "authBytes": b""}
        return LoginStep(_encoded(header, answer), self._failure(token))

    def _token(self, exchange: Exchange, token: bytes) -> bytes | LoginError:
        """The answer to a token, or why there is none. Raises RefusedError if its host has failed too often."""
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
        return f"log-in as {quoted(name)} by {self._mechanism} failed: {error.message}"


def _encoded(header: MessageHeader, body: Fields) -> bytes:
    pieces: list[bytes] = build_response(header.api_key, header.api_version, header.correlation_id, body)
    return b"".join(pieces)
