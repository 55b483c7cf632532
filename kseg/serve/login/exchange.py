"""What a mechanism of SASL does: the client's tokens in, the server's out."""

from typing import Protocol

from kseg.errors import KsegError


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
