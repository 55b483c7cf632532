"""Changes of logs by programs that took them for text, and the original bytes.

A batch confirms a change: its CRC is right once the change is undone.
"""

import codecs
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from kseg.reading.changed_batches import HEAD, LARGEST_BATCH, PIECE, ChangedBatches, Trials

Step = Callable[[bytes, bool], bytes]
"""A function that undoes a change in the next bytes of a file, True for the last ones; it keeps undecided bytes."""
ReadAt = Callable[[int, int], bytes]
"""(position, size) → bytes, fewer at the file's end."""

_ENOUGH = 4 << 20
"""Bytes of intact batches that confirm a change."""
_MISSES = 8
"""The most batches with other damage, after which a change is given up."""
_TRIED_FIRST = 64 << 20
"""The bytes of all trials in the search for a change."""


class TextChange(NamedTuple):
    """A change: its description, the steps that undo it except for line ends, and whether these were changed.

    looks_like: a test of the first bytes; if they fail it, no trial is needed. written: the new form of some bytes, of
    which single ones may be unchanged.
    """

    what: str
    looks_like: Callable[[bytes], bool]
    steps: tuple[Callable[[], Step], ...] = ()
    has_crs: bool = False
    written: Callable[[bytes], bytes] | None = None

    def undo(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the bytes before the change, but for line ends; impossible ones are replaced by as many others."""
        steps = [step() for step in self.steps]
        for piece in pieces:
            yield _apply_steps(steps, piece, is_last=False)
        yield _apply_steps(steps, b"", is_last=True)


def _apply_steps(steps: Iterable[Step], piece: bytes, *, is_last: bool) -> bytes:
    for step in steps:
        piece = step(piece, is_last)
    return piece


class _Digits:
    """A decoder of base64 or hex digits across pieces; white space is skipped, other characters count as digits."""

    def __init__(self, digits: bytes, group: int, decode: Callable[[bytes], bytes]) -> None:
        self._table = bytes(each if each in digits else min(digits) for each in range(256))
        self._group, self._decode = group, decode
        self._rest = b""

    def __call__(self, piece: bytes, is_last: bool) -> bytes:
        digits = self._rest + piece.translate(self._table, b" \t\r\n")
        whole = len(digits) // self._group * self._group
        self._rest = digits[whole:]
        return self._decode(digits[:whole])


_HEX_DIGITS = b"0123456789abcdefABCDEF"
_BASE64_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="


def _of_hex(digits: bytes) -> bytes:
    return bytes.fromhex(digits.decode())


def _of_base64(digits: bytes) -> bytes:
    """Return the bytes of complete groups; several base64 texts may follow each other, each with its own padding."""
    if b"=" not in digits.rstrip(b"="):
        return b64decode(digits)
    return b"".join(b64decode(group) for group in re.findall(rb"[^=]+={0,2}|=+", digits) if len(group) % 4 == 0)


def _raw(error: UnicodeError) -> tuple[bytes, int]:
    """Return the byte that replaces a character that doesn't exist in a code page."""
    assert isinstance(error, UnicodeEncodeError)
    characters = error.object[error.start : error.end]
    try:
        return characters.encode("latin-1", "surrogateescape"), error.end
    except UnicodeEncodeError:
        return b"?" * len(characters), error.end


codecs.register_error("kseg-raw", _raw)


class _Characters:
    """A converter of text in an encoding to the bytes of its characters in a code page."""

    def __init__(self, encoding: str, page: str) -> None:
        errors = "surrogateescape" if encoding == "utf-8" else "replace"
        self._decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)(errors)
        self._page = page

    def __call__(self, piece: bytes, is_last: bool) -> bytes:
        return self._decoder.decode(piece, is_last).encode(self._page, "kseg-raw")


_BASE64 = re.compile(rb"[A-Za-z0-9+/\s]+=*\s*")
_HEX = re.compile(rb"[0-9a-fA-F\s]+")
_PAGES = {"latin-1": "Latin-1", "cp1252": "Windows-1252", "cp437": "code page 437", "cp850": "code page 850"}


def _is_base64(first: bytes) -> bool:
    return _BASE64.fullmatch(first) is not None


def _is_hex(first: bytes) -> bool:
    return _HEX.fullmatch(first) is not None


def _is_utf8(first: bytes) -> bool:
    """Return True if bytes are UTF-8 with characters beyond ASCII; the last one may be cut."""
    try:
        return not codecs.getincrementaldecoder("utf-8")().decode(first).isascii()
    except ValueError:
        return False


def _is_utf16(first: bytes) -> bool:
    return first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def _has_crs(first: bytes) -> bool:
    """Return True if LFs have CRs before them."""
    return b"\r\n" in first


def _accept_any(first: bytes) -> bool:
    return True


def _write_as_text(page: str, times: int, content: bytes) -> bytes:
    """Return bytes taken for text in a code page and written as UTF-8, `times` times."""
    for _ in range(times):
        characters = content.decode(page, "kseg-number")
        content = characters.encode("utf-8", "surrogatepass")
    return content


def _number(error: UnicodeError) -> tuple[str, int]:
    """Return the characters with the numbers of bytes that a code page doesn't have."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("kseg-number", _number)


def _as_text(encoding: str, looks_like: Callable[[bytes], bool]) -> Iterator[TextChange]:
    """Yield the changes of a log taken for text in each code page and written in an encoding, with both line ends."""
    for page, name in _PAGES.items():
        what = f"its bytes were read as {name} and written as {encoding.upper()}"
        written = partial(_write_as_text, page, 1) if encoding == "utf-8" else None
        change = TextChange(what, looks_like, (partial(_Characters, encoding, page),), written=written)
        yield change
        yield change._replace(what=f"{what}, LF as CRLF", has_crs=True)


def _as_text_twice() -> Iterator[TextChange]:
    for page, name in _PAGES.items():
        what = f"its bytes were read as {name} and written as UTF-8, twice"
        steps = 2 * (partial(_Characters, "utf-8", page),)
        yield TextChange(what, _is_utf8, steps, written=partial(_write_as_text, page, 2))


CHANGES = (
    TextChange("LF became CRLF", _accept_any, has_crs=True),
    TextChange("its bytes were written in base64", _is_base64, (partial(_Digits, _BASE64_DIGITS, 4, _of_base64),)),
    TextChange(
        "its bytes were written in base64, in UTF-16",
        _is_utf16,
        (partial(_Characters, "utf-16", "latin-1"), partial(_Digits, _BASE64_DIGITS, 4, _of_base64)),
    ),
    TextChange("its bytes were written as hex digits", _is_hex, (partial(_Digits, _HEX_DIGITS, 2, _of_hex),)),
    *_as_text("utf-8", _is_utf8),
    *_as_text_twice(),
    *_as_text("utf-16", _is_utf16),
)
"""Changes that can be undone, the most frequent ones first."""

_REPLACED = "�".encode()


def is_replaced(first: bytes) -> bool:
    """Return True if invalid UTF-8 was replaced by U+FFFD, which can't be undone."""
    return _REPLACED in first and _is_utf8(first)


# --- recognition of changes
# -------------------------------------------------------------------------------------------


def find_change(read: ReadAt, position: int, known: TextChange | None = None) -> TextChange | None:
    """Return the change that, undone, gives the most intact batches from a position on, or None if none does.

    known: a change found before in the same file, which is preferred if it gives any.
    """
    first = read(position, HEAD)
    trials = Trials(_TRIED_FIRST)
    if known is not None and known.looks_like(first) and _intact_bytes(known, read, position, 1, trials)[0]:
        return known
    found, most = None, 0
    for change in CHANGES:
        if change.looks_like(first):
            size, is_all = _intact_bytes(change, read, position, _ENOUGH, trials)
            if size > most:
                found, most = change, size
            if is_all:
                break
    return found


def _intact_bytes(change: TextChange, read: ReadAt, position: int, enough: int, trials: Trials) -> tuple[int, bool]:
    """Return the bytes of intact batches from a position on after undoing a change, and whether all are intact."""
    pieces = change.undo(pieces_of(read, position)) if change.steps else pieces_of(read, position)
    batches = ChangedBatches(pieces, trials, has_crs=change.has_crs)
    size = misses = 0
    while size < enough and batches.peek(1):
        batch = batches.take()
        if batch is None:
            misses += 1
            if misses > _MISSES or batches.skip(2 * LARGEST_BATCH) is None:
                break
            continue
        size += len(batch)
    return size, size > 0 and not misses


def pieces_of(read: ReadAt, position: int, end: int | None = None) -> Iterator[bytes]:
    """Yield the file's bytes from a position on, small pieces first, as a few are often enough; up to many zeros."""
    size = 1 << 12
    while end is None or position < end:
        piece = read(position, size if end is None else min(size, end - position))
        if not piece or (len(piece) == PIECE and piece.count(0) == PIECE):
            return
        yield piece
        position += len(piece)
        size = min(4 * size, PIECE)
