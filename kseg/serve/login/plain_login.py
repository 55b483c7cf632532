"""PLAIN: the client sends its password. Source: RFC 4616, PlainSaslServer."""

from kseg.serve.login.exchange import LoginError
from kseg.serve.login.users import Users

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
