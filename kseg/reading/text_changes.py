"""Logs that a program changed because it took them for text: which change it was, and the bytes before it.

A batch tells the change: it is undone where the batch's CRC then holds.
"""

import codecs
import re
from binascii import Error as Base64Error
from binascii import a2b_base64, unhexlify
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations, islice
from typing import NamedTuple

from kseg.formats.codes import ENTRY_MINIMUM_SIZE, MAGIC_POSITION, checksum_of, claimed_size, crc_function

Step = Callable[[bytes, bool], bytes]
"""Undoes a change in the next bytes of a file, whose last ones True marks; what it can't judge yet it keeps."""
ReadAt = Callable[[int, int], bytes]
"""Gives so many bytes from a position on, fewer where the file ends."""

LARGEST_BATCH = 16 << 20
"""A batch that claims more isn't tried."""
_PIECE = 1 << 20
_HEAD = 256
_ENOUGH = 4 << 20
"""Bytes of intact batches that tell a change for certain."""
_TRIES = 8192
"""Ways to tell the CRs of a batch apart that are tried, at most; and the bytes that they cost together."""
_TRIED_BYTES = 64 << 20
_CRLF = re.compile(rb"\r\n")
_LF = re.compile(rb"\n")


class TextChange(NamedTuple):
    """A change: what it is, in words; what undoes all of it but line ends; whether line ends were changed too.

    looks_like: of the first bytes changed so; those of a log that isn't need no trial.
    """

    what: str
    looks_like: Callable[[bytes], bool]
    steps: tuple[Callable[[], Step], ...] = ()
    has_crs: bool = False

    def decoded(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The bytes before the change, but for line ends. Raises ValueError where it can't have been this change."""
        steps = [step() for step in self.steps]
        for piece in pieces:
            yield _through(steps, piece, is_last=False)
        yield _through(steps, b"", is_last=True)


def _through(steps: Iterable[Step], piece: bytes, *, is_last: bool) -> bytes:
    for step in steps:
        piece = step(piece, is_last)
    return piece


class _Digits:
    """Base64 or hex digits to bytes, across pieces; white space between them counts for nothing."""

    def __init__(self, group: int, decode: Callable[[bytes], bytes]) -> None:
        self._group, self._decode = group, decode
        self._kept = b""

    def __call__(self, piece: bytes, is_last: bool) -> bytes:
        digits = self._kept + piece.translate(None, b" \t\r\n")
        whole = len(digits) if is_last else len(digits) // self._group * self._group
        self._kept = digits[whole:]
        try:
            return self._decode(digits[:whole])
        except Base64Error as error:  # unhexlify raises the same
            raise ValueError(str(error)) from error


def _raw(error: UnicodeError) -> tuple[bytes, int]:
    """Characters that a code page doesn't have, and that stand for the byte of their number there."""
    assert isinstance(error, UnicodeEncodeError)
    characters = error.object[error.start : error.end]
    try:
        return characters.encode("latin-1", "surrogateescape"), error.end
    except UnicodeEncodeError:
        raise error from None


codecs.register_error("kseg-raw", _raw)


class _Characters:
    """Text in an encoding to the bytes that a code page has for its characters."""

    def __init__(self, encoding: str, page: str) -> None:
        errors = "surrogateescape" if encoding == "utf-8" else "strict"
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
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
    """Whether bytes are UTF-8, with other characters than ASCII; the last one may be cut."""
    try:
        return not codecs.getincrementaldecoder("utf-8")().decode(first).isascii()
    except ValueError:
        return False


def _is_utf16(first: bytes) -> bool:
    return first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def _has_crs(first: bytes) -> bool:
    """Whether LFs have CRs before them."""
    return b"\r\n" in first


def _anything(first: bytes) -> bool:
    return True


def _as_text(encoding: str, looks_like: Callable[[bytes], bool]) -> Iterator[TextChange]:
    """A log that was taken for text in each code page and written in an encoding; with and without other line ends."""
    for page, name in _PAGES.items():
        what = f"its bytes were taken for {name} and written as {encoding.upper()}"
        change = TextChange(what, looks_like, (partial(_Characters, encoding, page),))
        yield change
        yield change._replace(what=f"{what}, LF as CRLF", has_crs=True)


def _twice() -> Iterator[TextChange]:
    for page, name in _PAGES.items():
        what = f"its bytes were taken for {name} and written as UTF-8, twice"
        yield TextChange(what, _is_utf8, 2 * (partial(_Characters, "utf-8", page),))


CHANGES = (
    TextChange("LF became CRLF", _anything, has_crs=True),
    TextChange(
        "its bytes were written in base64", _is_base64, (partial(_Digits, 4, partial(a2b_base64, strict_mode=True)),)
    ),
    TextChange("its bytes were written as hex digits", _is_hex, (partial(_Digits, 2, unhexlify),)),
    *_as_text("utf-8", _is_utf8),
    *_twice(),
    *_as_text("utf-16", _is_utf16),
)
"""Changes that can be undone, those first that happen most."""

_REPLACED = "�".encode()


def is_replaced(first: bytes) -> bool:
    """Whether bytes that aren't UTF-8 were replaced by U+FFFD: nobody can tell what they were."""
    return _REPLACED in first and _is_utf8(first)


# --- which change -----------------------------------------------------------------------------------------------------


def find_change(read: ReadAt, position: int) -> TextChange | None:
    """The change that, undone, gives intact batches from a position on, and of several the most; None if none does."""
    first = read(position, _HEAD)
    found, most = None, 0
    for change in CHANGES:
        if change.looks_like(first):
            size, is_all = _intact_bytes(change, read, position)
            if size > most:
                found, most = change, size
            if is_all:
                break
    return found


def _intact_bytes(change: TextChange, read: ReadAt, position: int) -> tuple[int, bool]:
    """How many bytes of batches are intact from a position on once a change is undone there; whether all are."""
    if change.steps:
        head = b"".join(_some_decoded(change, (read(position, _HEAD),)))
        if not _is_plausible(head) and not (change.has_crs and _is_plausible(_without_crs(head))):
            return 0, False
    batches = _Batches(_some_decoded(change, _pieces(read, position)), has_crs=change.has_crs)
    size = 0
    while size < _ENOUGH and batches.fill(1):
        batch = batches.take()
        if batch is None:
            return size, False
        size += len(batch)
    return size, size > 0


def _some_decoded(change: TextChange, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """What can be decoded up to where it fails."""
    try:
        yield from change.decoded(pieces)
    except ValueError:
        return


def _is_plausible(head: bytes) -> bool:
    claimed = claimed_size(head)
    return claimed is not None and claimed <= LARGEST_BATCH


def _without_crs(piece: bytes) -> bytes:
    return piece.replace(b"\r\n", b"\n")


def _pieces(read: ReadAt, position: int) -> Iterator[bytes]:
    """The file's bytes from a position on, small pieces first: most changes are told by a few."""
    size = 1 << 12
    while piece := read(position, size):
        yield piece
        position += len(piece)
        size = min(4 * size, _PIECE)


# --- undoing it -------------------------------------------------------------------------------------------------------


def undone(change: TextChange, read: ReadAt) -> Iterator[bytes]:
    """All bytes of a log as they were before a change; where that can't be told, as they are without it."""
    decoded = _some_decoded(change, _pieces(read, 0))
    if not change.has_crs:
        yield from decoded
        return
    batches = _Batches(decoded, has_crs=True)
    while batches.fill(1):
        batch = batches.take()
        yield batches.pass_over() if batch is None else batch


class _Batches:
    """Batches at the beginning of a stream in which CRs may stand before LFs.

    Which of them were there before is only known by the CRC: programs leave a CRLF alone that they find.
    """

    def __init__(self, pieces: Iterator[bytes], *, has_crs: bool) -> None:
        self._pieces = pieces
        self._has_crs = has_crs
        self._held = b""

    def fill(self, size: int) -> bool:
        """Holds so many bytes, if the stream has them; gives whether it does."""
        parts = [self._held]
        count = len(self._held)
        while count < size and (piece := next(self._pieces, None)) is not None:
            parts.append(piece)
            count += len(piece)
        self._held = b"".join(parts)
        return count >= size

    def take(self) -> bytes | None:
        """Takes the batch at the beginning, as it was; None if no way to read it makes its CRC hold."""
        self.fill(2 * _HEAD)
        heads = (self._held[:_HEAD], _without_crs(self._held[:_HEAD])) if self._has_crs else (self._held[:_HEAD],)
        for size in dict.fromkeys(filter(None, map(claimed_size, heads))):
            if size > LARGEST_BATCH:
                continue
            self.fill(size)
            if _is_intact(self._held[:size], size):
                return self._taken(self._held[:size], size)
            if not self._has_crs:
                continue
            self.fill(2 * size)
            for batch, end in islice(_ways(self._held, size), max(min(_TRIES, _TRIED_BYTES // size), 1)):
                if _is_intact(batch, size):
                    return self._taken(batch, end)
        return None

    def _taken(self, batch: bytes, end: int) -> bytes:
        self._held = self._held[end:]
        return batch

    def pass_over(self) -> bytes:
        """Gives up on what stands at the beginning: goes on behind the next LF, without the CR before it."""
        self.fill(_PIECE)
        line = _LF.search(self._held)
        end = len(self._held) if line is None else line.end()
        return _without_crs(self._taken(self._held[:end], end))


def _is_intact(batch: bytes, size: int) -> bool:
    if len(batch) != size or size < ENTRY_MINIMUM_SIZE:
        return False
    magic = batch[MAGIC_POSITION]
    covered = memoryview(batch)[checksum_of(magic).covers_from :]
    return crc_function(magic)(covered, 0) == checksum_of(magic).stored(batch)


def _ways(held: bytes, size: int) -> Iterator[tuple[bytes, int]]:
    """The ways to read a batch of a size: without its CRs before LFs, then with one of them, with two, and so on.

    Each with how many bytes of the stream it takes.
    """
    crs = [match.start() for match in _CRLF.finditer(held)]
    for kept_count in range(len(crs) + 1):
        end, count = size - kept_count, 0
        while count < len(crs) and crs[count] < end:
            count, end = count + 1, end + 1
        if not kept_count < count or held.count(b"\n", 0, min(end, len(held))) > count:
            return  # as it stands, or with an LF that no program would have left alone
        if end > len(held):
            continue
        for kept in combinations(range(count), kept_count):
            yield _cut_out(held[:end], [crs[number] for number in range(count) if number not in kept]), end


def _cut_out(batch: bytes, positions: list[int]) -> bytes:
    """Bytes without those at some positions."""
    starts = [0, *(position + 1 for position in positions)]
    return b"".join(batch[start:end] for start, end in zip(starts, [*positions, len(batch)], strict=True))
