"""Takes lines that come in pieces, so that one of GiB needs little memory before it is left out."""

from collections.abc import Callable


class WholeLines:
    """Puts lines together, as the kernel writes them; the longest ones only begin."""

    def __init__(self, largest: int, on_line: Callable[[bytes], object], on_long: Callable[[bytes], object]) -> None:
        """Takes the largest size of a line, what is called with each line, and with a longer one's first piece."""
        self._largest = largest
        self._on_line = on_line
        self._on_long = on_long
        self._rest: list[bytes] = []
        self._rest_size = 0

    def take(self, piece: memoryview) -> None:
        """Takes some bytes, which may end inside a line."""
        *lines, rest = bytes(piece).split(b"\n")
        for line in lines:
            self._keep(line)
            self._end_line()
        self._keep(rest)

    def _keep(self, part: bytes) -> None:
        """Remembers a part of a line; of one that is too long only the first."""
        self._rest_size += len(part)
        if self._rest_size <= self._largest or not self._rest:
            self._rest.append(part)
        else:
            del self._rest[1:]

    def _end_line(self) -> None:
        if self._rest_size <= self._largest:
            self._on_line(b"".join(self._rest))
        else:
            self._on_long(self._rest[0])
        self._rest.clear()
        self._rest_size = 0
