"""Limits of decompression: whatever a body claims, no more comes out of it than this."""

from collections.abc import Iterator

DEFAULT_LIMIT = 1 << 30
"""Bytes that one body may become at most (`--max-decompressed`)."""
LARGEST_RATIO = 1000
"""A body may become this many times as large, and LARGEST_RATIO_FREE bytes more."""
LARGEST_RATIO_FREE = 1 << 20

_JOINED_AT_ONCE = 1 << 12


class BodyError(Exception):
    """A body that isn't what its codec writes, or that would become too large.

    readable: what it gave before, if that is known already.
    """

    def __init__(self, message: str, readable: bytes | None = None) -> None:
        super().__init__(message)
        self.readable = readable


def limit_for(size: int, limit: int = DEFAULT_LIMIT, free: int = LARGEST_RATIO_FREE) -> int:
    """Bytes that a body of `size` compressed bytes may become."""
    return min(limit, LARGEST_RATIO * size + free)


def joined(pieces: Iterator[bytes], most: int, errors: tuple[type[Exception], ...]) -> bytes:
    """All pieces; where they fail or become too many, what was had stands in the BodyError that is raised.

    Small ones are joined by and by: as Python's objects they would take many times their size.
    """
    found: list[bytes] = []
    small: list[bytes] = []
    size = 0
    try:
        for piece in pieces:
            small.append(piece[: most - size])
            size += len(piece)
            if size > most:
                raise too_large(most)
            if len(small) == _JOINED_AT_ONCE:
                found.append(b"".join(small))
                small.clear()
    except errors as error:
        raise BodyError(str(error), b"".join(found + small)) from error
    return b"".join(found + small)


def too_large(most: int, readable: bytes | None = None) -> BodyError:
    """The error of a body that becomes larger than `most` bytes."""
    return BodyError(f"more than {most} bytes come out; --max-decompressed sets the limit", readable)
