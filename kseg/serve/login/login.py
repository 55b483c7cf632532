"""A connection's way to be let in: SaslHandshake, then tokens, in SaslAuthenticate or bare. Nothing else is answered.

Source: SaslServerAuthenticator.
"""

from typing import NamedTuple

from kseg.errors import KsegError, quoted
from kseg.formats.messages import Fields
from kseg.protocol.api_message import API_VERSIONS, MessageHeader, read_request_header
from kseg.protocol.response_frame import SIZE_BYTES, build_response
from kseg.serve.apis.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE
from kseg.serve.error_code import ErrorCode
from kseg.serve.login.exchange import Exchange, LoginError
from kseg.serve.login.mechanisms import Logins
from kseg.serve.request_answer import RefusedError, is_known, read_body

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
            body = read_body(header, frame)
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
