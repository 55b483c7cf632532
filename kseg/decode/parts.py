"""The result of an internal topic's decoder: texts of a record's key and payload, or that the real tool dies."""

from collections.abc import Callable
from typing import NamedTuple

from kseg.errors import KsegError
from kseg.formats.positions import VERSION


class Parts(NamedTuple):
    """The texts, in UTF-8, after `key: ` and `payload: `; None if that part isn't printed."""

    key: bytes | None
    payload: bytes | None


Decoder = Callable[[bytes | None, bytes | None, int], Parts]
"""Makes the parts from key, value and offset of a record; raises DecodeError."""


class DecodeError(KsegError):
    """The release's real tool dies at this record."""


def parts(key: str | None, payload: str | None) -> Parts:
    """Parts made of texts."""
    return Parts(None if key is None else key.encode(), None if payload is None else payload.encode())


def key_version(key: bytes | None) -> int:
    """The type, or version, that a coordinator's key begins with; DecodeError if there is none."""
    if key is None:
        raise DecodeError("the record has no key: the real tool stops here")
    if len(key) < 2:
        raise DecodeError(f"the key has {len(key)} bytes, too few for its type: the real tool stops here")
    return VERSION.read(key)
