"""SCRAM: the client proves that it knows the password, and the server that it does. Source: RFC 5802."""

import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import NamedTuple

from kseg.serve.login.exchange import LoginError
from kseg.serve.login.users import HASHES, ITERATIONS, ScramCredential, Users

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
