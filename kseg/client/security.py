"""Security of a client's connections: TLS, and log-in by SASL. Secrets appear in no representation."""

import ssl
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from hmac import compare_digest, digest
from secrets import token_urlsafe

from kseg.errors import ClusterError
from kseg.protocol.scram import HASHES, exclusive_or, scram_keys

NONCE_BYTES = 24
LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 1 << 20
"""Bounds of a server's number of iterations: fewer protect no password, more stop kseg."""
SEPARATOR = "\1"
"""Between the parts of a message of OAUTHBEARER; alone it answers a refusal, which the broker then explains."""
Tokens = Generator[bytes, bytes, None]
"""The messages of a client's log-in; takes the broker's answer to each."""


@dataclass(frozen=True, slots=True)
class Login:
    """A log-in: the mechanism, the user, and the password, or the token of OAUTHBEARER."""

    mechanism: str
    user: str
    secret: str = field(repr=False)

    def tokens(self) -> Tokens:
        """Return the messages of a new log-in."""
        return EXCHANGES[self.mechanism](self)


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """Security of connections; by default neither TLS nor a log-in."""

    tls: ssl.SSLContext | None = None
    login: Login | None = None


PLAINTEXT = ClientSecurity()


def _plain(login: Login) -> Tokens:
    yield f"\0{login.user}\0{login.secret}".encode()


def _bearer(login: Login) -> Tokens:
    """Yield the messages of RFC 7628."""
    if (yield f"n,,{SEPARATOR}auth=Bearer {login.secret}{SEPARATOR}{SEPARATOR}".encode()):
        yield SEPARATOR.encode()


def _scram(login: Login) -> Tokens:
    """Yield the messages of RFC 5802. Raises ClusterError if the broker doesn't know the password itself."""
    nonce = token_urlsafe(NONCE_BYTES)
    first = f"n={login.user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    challenge = (yield f"n,,{first}".encode()).decode()
    parts = _attributes(challenge)
    iterations = int(parts.get("i", "0")) if parts.get("i", "").isdecimal() else 0
    if not parts.get("r", "").startswith(nonce) or not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise ClusterError(f"the broker sent no valid {login.mechanism} message")
    unproven = f"c={b64encode(b'n,,').decode()},r={parts['r']}"
    signed = f"{first},{challenge},{unproven}".encode()
    keys, name = scram_keys(login.mechanism, login.secret, b64decode(parts["s"]), iterations), HASHES[login.mechanism]
    proof = exclusive_or(keys.client_key, digest(keys.stored_key, signed, name))
    answer = _attributes((yield f"{unproven},p={b64encode(proof).decode()}".encode()).decode())
    if not compare_digest(answer.get("v", ""), b64encode(digest(keys.server_key, signed, name)).decode()):
        raise ClusterError(
            "the broker doesn't know the password itself, so it may be another server; check --bootstrap"
        )


def _attributes(message: str) -> dict[str, str]:
    """Return the attributes of a SCRAM message by their letters."""
    return {name: value for name, _, value in (part.partition("=") for part in message.split(","))}


EXCHANGES: dict[str, Callable[[Login], Tokens]] = {
    "PLAIN": _plain,
    **dict.fromkeys(HASHES, _scram),
    "OAUTHBEARER": _bearer,
}
"""The mechanisms, and the messages of each."""
