"""One pass over an image: its batches as rows, and its SHA-256, which a thread of its own computes."""

import hashlib
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, Protocol

from kseg import kernel
from kseg.carve.images import Image, Images
from kseg.formats.header_fields import HEADER_NAMES
from kseg.kernel.carve_contract import CRC_STEP, HEADER_VALUES, LARGEST_BATCH
from kseg.reading.batch import Batch, BatchHeader
from kseg.system.shared_work import OnRead


class Readable(Protocol):
    """Bytes in which batches are found: an image, or a file whose pieces are in images. base: the first position."""

    base: int
    size: int

    def read_into(self, position: int, buffer: memoryview, /) -> int:
        """Fill a buffer from a position on; return the number of bytes, fewer at the end."""


Look = Callable[[int, memoryview], None]
_PIECE = 2 << 20
"""Bytes of one read."""
_SMALL_WINDOW, _LARGE_WINDOW = 4 * _PIECE, (LARGEST_BATCH // _PIECE + 2) * _PIECE
"""Bytes in memory: processors keep the small window in their caches; a header may claim the largest batch."""
_ROWS = 4096
"""Rows that a table has at first."""
_COLUMN = {name: place for place, name in enumerate(HEADER_NAMES)}


class FoundBatches:
    """The intact batches of all images, as rows in the order of their positions in the common space."""

    VALUES = HEADER_VALUES
    """Values of a row."""

    def __init__(self, rows: "array[int] | None" = None, count: int = 0) -> None:
        """Take the first `count` rows of a table that may grow; by default begin with none."""
        self.rows = rows or array("q", bytes(8 * HEADER_VALUES * _ROWS))
        self.count = count

    def __len__(self) -> int:
        return self.count

    def header(self, row: int) -> BatchHeader:
        """Return the header of a batch; its position is in the common space."""
        return BatchHeader._make(self.rows[row * HEADER_VALUES : (row + 1) * HEADER_VALUES])

    def headers(self, first: int, last: int) -> Iterator[BatchHeader]:
        """Yield the headers of rows first … last - 1."""
        return map(self.header, range(first, last))

    def column(self, name: str, first: int, last: int) -> "array[int]":
        """Return a value of rows first … last - 1, by its name in HEADER_NAMES."""
        return self.rows[first * HEADER_VALUES + _COLUMN[name] : last * HEADER_VALUES : HEADER_VALUES]

    def set_wrapper(self, row: int, base_offset: int, count: int) -> None:
        """Set the values of a wrapper that its header doesn't have."""
        self.rows[row * HEADER_VALUES + _COLUMN["base_offset"]] = base_offset
        self.rows[row * HEADER_VALUES + _COLUMN["records_count"]] = count

    def grow(self) -> None:
        """Add a quarter to the room for rows, at least the first room."""
        self.rows.frombytes(bytes(8 * HEADER_VALUES * max(len(self.rows) // HEADER_VALUES // 4, _ROWS)))

    @property
    def is_full(self) -> bool:
        """True if no row can be added."""
        return self.count * HEADER_VALUES == len(self.rows)


class ScannedImage(NamedTuple):
    """An image after the scan. sha256: of the slice, unreadable bytes as 0xFF; None if it wasn't wanted."""

    image: Image
    sha256: str | None


class Scan(NamedTuple):
    """The result of the scan of all images."""

    batches: FoundBatches
    images: tuple[ScannedImage, ...]


def scan_images(images: Images, *, is_hashed: bool, is_legacy: bool, on_read: OnRead, look: Look) -> Scan:
    """Find the intact batches of all images.

    is_legacy: also messages of formats 0 and 1. look: called with each piece that is read, and its position.

    Memory is bounded by two pieces more than the largest batch, and 8 bytes for each value of a row.
    """
    batches = FoundBatches()
    found = tuple(
        ScannedImage(
            image,
            find_batches(image, batches, is_hashed=is_hashed, is_legacy=is_legacy, on_read=on_read, look=look),
        )
        for image in images
    )
    return Scan(batches, found)


def find_batches(
    image: Readable,
    batches: FoundBatches,
    *,
    is_hashed: bool = False,
    is_legacy: bool = False,
    on_read: OnRead,
    look: Look | None = None,
) -> str | None:
    """Add the intact batches of an image to a table; return its SHA-256 if wanted."""
    digest = hashlib.sha256() if is_hashed else None
    with ThreadPoolExecutor(1) as hashing:
        window = _Window(image, batches, is_legacy=is_legacy)
        hashed: list[Future[None]] = []
        looked_at = 0
        older: list[Future[None]] = []
        while True:
            if window.is_full:  # the next bytes replace those before these: none of them may be in use
                for each in older:
                    each.result()
                older, hashed = hashed, []
                window.make_room()
            piece = window.read()
            if digest is not None and piece:
                hashed.append(hashing.submit(digest.update, piece))
            window.find()
            if look is not None:
                look(image.base + looked_at, piece)
            looked_at += len(piece)
            on_read(len(piece))
            if window.is_last:
                break
        for each in (*older, *hashed):
            each.result()
    return None if digest is None else digest.hexdigest()


class _Window:
    """A part of an image in memory, in which batches are found."""

    def __init__(self, image: Readable, batches: FoundBatches, *, is_legacy: bool) -> None:
        self._is_legacy = is_legacy
        self._image, self._batches, self._kernel = image, batches, kernel.load()
        self._buffer = memoryview(bytearray(min(_SMALL_WINDOW, (image.size // _PIECE + 1) * _PIECE)))
        self._last = memoryview(b"")  # of the bytes before these, which may still be in use
        self._spare: dict[int, list[memoryview]] = {}
        self._crcs = array("I", bytes(4 * (_LARGE_WINDOW // CRC_STEP + 1)))
        self._origin = 0  # position of the window in the image
        self._filled = self._at = 0
        self.is_last = False

    @property
    def is_full(self) -> bool:
        """True if nothing more can be read before `make_room`."""
        return len(self._buffer) - self._filled < _PIECE

    def make_room(self) -> None:
        """Drop the bytes before the next batch; the others move, so that dropped ones can be used a while longer."""
        gone = self._at // CRC_STEP * CRC_STEP
        kept, crcs = self._buffer[gone : self._filled], self._crcs[gone // CRC_STEP : self._filled // CRC_STEP + 1]
        size = _SMALL_WINDOW if len(kept) <= _SMALL_WINDOW - _PIECE else _LARGE_WINDOW
        self._spare.setdefault(len(self._last), []).append(self._last)
        self._last, spare = self._buffer, self._spare.get(size)
        self._buffer = spare.pop() if spare else memoryview(bytearray(size))
        self._buffer[: len(kept)] = kept
        self._crcs[: len(crcs)] = crcs
        self._origin += gone
        self._filled -= gone
        self._at -= gone

    def read(self) -> memoryview:
        """Read the next piece."""
        start = self._filled
        count = self._image.read_into(self._origin + start, self._buffer[start : start + _PIECE])
        self._filled += count
        self.is_last = count < _PIECE
        self._kernel.step_crcs(self._buffer, start // CRC_STEP, self._filled // CRC_STEP, self._crcs)
        return self._buffer[start : self._filled]

    def find(self) -> None:
        """Add the batches that the read pieces have to the table."""
        batches, position = self._batches, self._image.base + self._origin
        while True:
            first = batches.count
            batches.count, self._at = self._kernel.find_batches(
                self._buffer,
                self._at,
                self._filled,
                position,
                self._crcs,
                batches.rows,
                first,
                self.is_last,
                self._is_legacy,
            )
            if self._is_legacy:
                self._unpack_wrappers(first, position)
            if not batches.is_full:
                return
            batches.grow()

    def _unpack_wrappers(self, first: int, position: int) -> None:
        """Set the base offset and the number of records of wrappers, which only their contents have."""
        for row in range(first, self._batches.count):
            header = self._batches.header(row)
            if header.is_legacy and header.codec:
                start = header.position - position
                wrapper = Batch.parse(self._buffer[start : start + header.size].tobytes(), start, is_valid=True)
                self._batches.set_wrapper(row, min(wrapper.base_offset, header.last_offset), wrapper.count)
