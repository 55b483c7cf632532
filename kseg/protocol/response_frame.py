"""Responses to bytes, by the schemas that read them too. Records may stay where they are stored, as own pieces."""

from collections.abc import Sized
from typing import Generic, TypeVar

from kseg.formats.messages import Fields, write_message
from kseg.formats.schemas import RESPONSES, message_schema
from kseg.protocol.api_message import response_header_version

Stored = TypeVar("Stored", bound=Sized)
"""Bytes that are somewhere else; their length is known."""
SIZE_BYTES = 4
"""Of the size that comes before each request and response."""


class _Pieces(Generic[Stored]):
    """What grammars write to: bytes are joined, stored bytes stay as they are."""

    def __init__(self) -> None:
        self.size = 0
        self.done: list[bytes | Stored] = []
        self._bytes = bytearray()

    def write(self, piece: "bytes | Stored") -> int:
        """Takes a piece; gives its length, as files do."""
        if isinstance(piece, bytes):
            self._bytes += piece
        else:
            self.end_bytes()
            self.done.append(piece)
        self.size += len(piece)
        return len(piece)

    def end_bytes(self) -> None:
        """Puts what is joined so far among the pieces."""
        if self._bytes:
            self.done.append(bytes(self._bytes))
            self._bytes.clear()


def build_response(
    api_key: int, api_version: int, correlation_id: int, body: Fields, stored: type[Stored] | None = None
) -> list[bytes | Stored]:
    """A response after its size, in pieces whose lengths add up to what the size says.

    A field of type records may be something of type `stored`, which has a length: it is a piece of its own.

    Raises:
        MessageError: the body isn't a response of this api and version.
    """
    pieces: _Pieces[Stored] = _Pieces()
    header_version = response_header_version(api_key, api_version) or 0
    write_message(message_schema("ResponseHeader"), header_version, {"correlationId": correlation_id}, pieces)
    write_message(RESPONSES[api_key], api_version, body, pieces)
    pieces.end_bytes()
    size = pieces.size.to_bytes(SIZE_BYTES, "big")
    first = pieces.done[0]
    return [size + first, *pieces.done[1:]] if isinstance(first, bytes) else [size, *pieces.done]
