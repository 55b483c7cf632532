"""Minimized cases: files, batches and bytes are removed or zeroed while the same property fails."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.fuzz.cases import Case
from tests.fuzz.pieces import cut, right

Breaks = Callable[[Case], bool]
"""A test of whether a case still fails the same property."""
Mend = Callable[[bytes], bytes]
LONGEST = 60
"""The most seconds for minimizing a case."""


def minimize(case: Case, breaks: Breaks, attempts: int) -> Case:
    """Return the smallest failing case found in `attempts` attempts."""
    tries = Tries(breaks, attempts)
    while tries.are_left:
        before = case
        case = _without_files(case, tries)
        for path in sorted(case.files):
            case = _smaller_file(case, path, tries)
        if case == before:
            break
    return case


class Tries:
    """A limit of attempts and time, after which nothing counts as failing."""

    def __init__(self, breaks: Breaks, left: int) -> None:
        self._breaks = breaks
        self._left = left
        self._end = time.monotonic() + LONGEST

    @property
    def are_left(self) -> bool:
        """True if attempts are left."""
        return self._left > 0 and time.monotonic() < self._end

    def __call__(self, case: Case) -> bool:
        if not self.are_left:
            return False
        self._left -= 1
        return self._breaks(case)


def _without_files(case: Case, tries: Tries) -> Case:
    for path in sorted(case.files):
        smaller = replace(case, files={name: content for name, content in case.files.items() if name != path})
        if smaller.files and tries(smaller):
            case = smaller
    return case


def _smaller_file(case: Case, path: str, tries: Tries) -> Case:
    """Return the case with fewer pieces in a file, and smaller ones."""

    def with_pieces(pieces: Sequence[bytes]) -> Case:
        return replace(case, files={**case.files, path: b"".join(pieces)})

    is_log = path.endswith((".log", ".checkpoint"))
    mends: tuple[Mend, ...] = (right, bytes) if is_log else (bytes,)
    pieces = cut(case.files[path]) if is_log else [case.files[path]]
    pieces = shrunk(pieces, lambda fewer: tries(with_pieces(fewer)))
    for number, piece in enumerate(pieces):

        def breaks(smaller: bytes, number: int = number) -> bytes | None:
            for mended in dict.fromkeys(mend(smaller) for mend in mends):
                if tries(with_pieces([*pieces[:number], mended, *pieces[number + 1 :]])):
                    return mended
            return None

        pieces[number] = _smaller_piece(piece, breaks)
    return with_pieces(pieces)


def shrunk(items: list[bytes], breaks: Callable[[list[bytes]], bool]) -> list[bytes]:
    """Return fewer items that still fail: halves are omitted, then quarters, then single ones."""
    size = len(items) // 2
    while size:
        at = 0
        while at < len(items):
            fewer = items[:at] + items[at + size :]
            if breaks(fewer):
                items = fewer
            else:
                at += size
        size //= 2
    return items


def _smaller_piece(piece: bytes, breaks: Callable[[bytes], bytes | None]) -> bytes:
    """Return a piece with stretches omitted or zeroed; a large one not by single bytes."""
    size = len(piece) // 2
    while size and size * 200 > len(piece):
        at = 0
        while at < len(piece):
            kept, zeros = piece[at + size :], bytes(len(piece[at : at + size]))
            forms = [form for form in (piece[:at] + kept, piece[:at] + zeros + kept) if form != piece]
            smaller = next(filter(None, map(breaks, forms)), None)
            if smaller is None or smaller == piece:
                at += size
            else:
                piece = smaller
        size //= 2
    return piece
