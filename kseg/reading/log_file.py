"""A log file on disk: runs of batches and damages in file order, whose sizes add up to the file size.

Files are read by `pread` into a buffer, never mapped: a log that is truncated meanwhile would kill the process.
"""

import os
import re
from array import array
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from kseg import kernel
from kseg.errors import KsegError, OpenError, UnreadableError, plural
from kseg.formats.codes import (
    CODEC_MASK,
    FLAGS_POSITION,
    LEGACY_FLAGS_POSITION,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    DamageKind,
    claimed_size,
    size_field,
)
from kseg.formats.file_names import FileKind, parse_file_name
from kseg.kernel.contract import ROW, SIZE, START, Rows, Stop, new_rows
from kseg.named_tuple import NamedTuple
from kseg.reading.blocks import (
    HEADER_WINDOW,
    SMALL_PIECE,
    TRUSTED_SIZE,
    BlockReader,
    Damage,
    Resync,
    UnreadableRange,
    unreadable_detail,
)
from kseg.system.files import OpenedFile, data_end, next_data, open_ranged, stored_size, stored_stretches
from kseg.system.placed_path import as_path

if TYPE_CHECKING:
    from kseg.kernel.fold_contract import FoldingKernel
    from kseg.system.page_cache import PageCache


BUFFER_SIZE = 1 << 19
"""Bytes read at once: reading is fastest if the ring of buffers fits into the processor's cache."""
FIRST_SIZE = 1 << 14
"""Bytes read first if reading starts within the file: often only a batch or two are wanted."""
RING_SIZE = 8
"""The number of buffers, so that runs can be processed while later ones are read: above bodies.MOST_UNDER_WAY."""
ROWS_CAPACITY = 1 << 12


class Run(NamedTuple):
    """Consecutive batches in a buffer.

    `position` is the buffer's position in the file; row i of `rows` is a batch (kernel.contract.ROW values); `codecs`
    has bit n set if a batch uses codec n.
    """

    buffer: memoryview
    position: int
    rows: Rows
    row_count: int
    codecs: int

    def rest(self, first: int) -> "Run":
        """Return the run without its first rows."""
        return self._replace(rows=self.rows[first * ROW :], row_count=self.row_count - first)


class Ring(NamedTuple):
    """Buffers and tables that one walk after another uses, of one file or of several: new memory takes time."""

    buffers: list[bytearray]
    tables: list[Rows]


T = TypeVar("T")
_ReadOn = Callable[[int, memoryview, Stop], tuple[Run | Damage, int]]


class LogFile:
    """A log file, open for reading; a segment's, or a metadata snapshot.

    size: bytes at opening, a `limit` reduces it. is_joined: runs may come from logs of other copies too, with
    positions in these.
    """

    is_joined = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        limit: int | None = None,
        *,
        keep_cache: bool = True,
        buffer_size: int = BUFFER_SIZE,
        ring: Ring | None = None,
    ) -> None:
        """Open the file.

        Args:
            path: the log file with any name.
            limit: read only batches that are completely in the first `limit` bytes.
            keep_cache: keep the read bytes in the page cache; else the cache is left unchanged.
            buffer_size: bytes that are read at once, unless a batch is larger; RING_SIZE buffers are kept.
            ring: buffers of this size for all walks, one at a time; None for new ones in each walk.

        Raises:
            OpenError: if the file can't be opened.
        """
        self._buffer_size, self._ring = buffer_size, ring
        self._take(path, open_ranged(path), limit, keep_cache=keep_cache)

    @classmethod
    def of_directory(
        cls,
        path: str | os.PathLike[str],
        size: int,
        limit: int | None = None,
        *,
        keep_cache: bool = True,
        buffer_size: int = BUFFER_SIZE,
    ) -> Self:
        """Open a log that a directory listed with this size; one that can't be opened is unreadable as a whole.

        Raises OpenError if it has gone, or isn't a regular file.
        """
        try:
            return cls(path, limit, keep_cache=keep_cache, buffer_size=buffer_size)
        except OpenError as error:
            cause = error.__cause__
            if not isinstance(cause, OSError) or isinstance(cause, FileNotFoundError):
                raise
            unreadable = cls.__new__(cls)
            unreadable._buffer_size, unreadable._ring = buffer_size, None
            unreadable._take(path, OpenedFile(-1, size), limit, keep_cache=True, failure=error.message)
            return unreadable

    def _take(
        self,
        path: str | os.PathLike[str],
        opened: OpenedFile,
        limit: int | None,
        *,
        keep_cache: bool,
        failure: str | None = None,
    ) -> None:
        self._name = path
        self._descriptor, self.file_size, self._source = opened
        self.is_closed = False
        if failure is None:
            self._blocks = BlockReader(opened.descriptor, opened.size, opened.source)
        else:
            self._blocks = BlockReader.without_file(opened.size, failure)
        self.limit = limit
        self.size = self.file_size if limit is None else min(self.file_size, limit)
        self._last_window = (0, memoryview(b""))
        self._cache = None if keep_cache or opened.source is not None else self._page_cache()

    @cached_property
    def path(self) -> Path:
        """Its path."""
        return as_path(self._name)

    @cached_property
    def stored_size(self) -> int:
        """The bytes on disk, without holes."""
        if self._source is not None:
            return self.size
        return 0 if self._descriptor < 0 else min(stored_size(self._descriptor), self.size)

    @cached_property
    def _resync(self) -> Resync:
        return Resync(self)

    @cached_property
    def base_offset(self) -> int | None:
        """The offset in its name, or None if that has none."""
        name = parse_file_name(self._name)
        return name.base_offset if name.kind is FileKind.LOG else None

    def close(self) -> None:
        """Close the file; reading ends."""
        if self._descriptor >= 0:
            if self._cache is not None:
                self._cache.drop()
            os.close(self._descriptor)
            self._descriptor = -1
            self.is_closed = True
            self._last_window = (
                0,
                memoryview(b""),
            )  # the search refers to the file, and so would keep its buffer for long

    def __enter__(self) -> "LogFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _page_cache(self) -> "PageCache":
        from kseg.system.page_cache import PageCache

        return PageCache(self._descriptor, self.file_size)

    @cached_property
    def kernel(self) -> "FoldingKernel":
        """The kernel that reads it."""
        return kernel.load()

    @property
    def has_given_up(self) -> bool:
        """True if the search for batches after damage has stopped because it took too long."""
        return self._resync.has_given_up

    def next_stretch(self, position: int) -> tuple[int, int]:
        """Return the position of the next bytes outside of holes, and of the hole after them; zeros come before."""
        if self._source is not None:
            return position, self.size
        start = next_data(self._descriptor, position, self.size)
        return start, data_end(self._descriptor, start, self.size)

    def read(self, position: int, size: int) -> bytes:
        """Return bytes of the file, fewer at its end; unreadable ones are 0xFF, see `is_readable`."""
        held_position, held = self._last_window
        if held_position <= position and position + size <= held_position + len(held):
            return bytes(held[position - held_position : position - held_position + size])
        return self._blocks.read(position, size)

    def read_headers(self, position: int, buffer: memoryview, rows: Rows, large: int) -> tuple[int, int]:
        """Read the headers of large batches from a position on, as `walk_file` of the kernel.

        Returns the count of rows, and the end of the last one's batch in the buffer; 0 rows for a file whose bytes are
        elsewhere, or that has unreadable blocks.
        """
        if self._source is not None or self._blocks.unreadable:
            return 0, 0
        return self.kernel.walk_file(self._descriptor, position, buffer, rows, self.size - position, large)

    def copy_to(self, target: int, position: int, size: int) -> None:
        """Append bytes of the file to another open one, inside the kernel if the platform can.

        Raises UnreadableError if the disk can't read them, WriteError if the file was cut, OSError from writing.
        """
        from kseg.system.new_directory import copy_range, write_whole

        try:
            if self._source is None:
                copy_range(self._descriptor, target, position, size)
            else:
                for piece in self._readable_pieces(position, size):
                    write_whole(target, piece)
        except KsegError as error:
            error.path = str(self.path)
            raise

    def _readable_pieces(self, position: int, size: int) -> Iterator[bytes]:
        """Yield bytes of the file in pieces. Raises UnreadableError if some can't be read."""
        end = position + size
        for start in range(position, end, BUFFER_SIZE):
            piece = self.read(start, min(BUFFER_SIZE, end - start))
            if len(piece) < min(BUFFER_SIZE, end - start) or not self.is_readable(start, len(piece)):
                raise UnreadableError("can't be read; run `kseg salvage` to keep the intact batches", position=start)
            yield piece

    def cheap_size(self, position: int, wanted: int, least: int) -> int:
        """Return the number of bytes to read: the wanted ones, but of remote bytes only up to a chunk's end."""
        if self._source is None:
            return wanted
        return min(wanted, max(self._source.stretch_end(position) - position, least))

    def is_readable(self, position: int, size: int) -> bool:
        """Return True if the disk could read all of the given bytes."""
        return not self._blocks.unreadable or next(self._blocks.unreadable_in(position, position + size), None) is None

    def runs(self, start: int = 0) -> Iterator[Run | Damage]:
        """Yield runs of batches and damages, in file order, from a batch's position on.

        A run's bytes and rows are valid until seven more items were taken. A batch with a wrong CRC comes in a run of
        its own, with VALID 0, if a plausible item follows it. If reading can't continue, a damage covers the bytes up
        to the next intact batch.
        """
        return self._walk(start, self._read_on)

    def runs_as_kafka(self, start: int = 0) -> Iterator[Run | Damage]:
        """Yield the same as Kafka's reader does: it trusts every length within the file, whatever the CRC and magic.

        Where it would fail, reading continues as in `runs`. Source: FileLogInputStream.
        """
        return self._walk(start, self._read_on_as_kafka)

    def _walk(self, start: int, read_on: "_ReadOn") -> Iterator[Run | Damage]:
        if self.is_closed:
            raise OpenError("is closed; read it inside its `with` block", self.path)
        if self._descriptor < 0 and self.size == 0:
            yield Damage(DamageKind.UNREADABLE, 0, 0, unreadable_detail(self._blocks.unreadable, 0))
        spaces, tables = self._spaces(), self._tables()
        rows, buffer = self._begin(start, tables)
        position, at = start, 0
        while position + at < self.size:
            if at >= len(buffer):
                position, at = position + at, 0
                buffer = self._fill(position, min(self._buffer_size, self.size - position), spaces)
                if len(buffer) == 0:
                    yield self._cut(position)
                    return
            count, end, stop, codecs = self.kernel.scan(buffer, at, len(buffer), rows, 0)
            if self._blocks.unreadable:
                count, end, stop = self._readable_rows(rows, count, end, stop, position)
            if count:
                yield Run(buffer, position, rows, count, codecs)
                rows = next(tables)
                at = end
                continue
            here = buffer[at:]
            wanted = self._size_to_fill(position + at, here, Stop(stop), is_whole=at == 0)
            if wanted:
                self._resync.spend(wanted)
                self._resync.trust(wanted)
                position, at = position + at, 0
                buffer = self._fill(position, wanted, spaces)
                if len(buffer) < wanted:
                    yield self._cut(position)
                    return
                continue
            item, size = read_on(position + at, here, Stop(stop))
            yield item
            at += size

    def _begin(self, start: int, tables: Iterator[Rows]) -> tuple[Rows, memoryview]:
        """Return a table and a buffer to begin with: a small one and the first bytes, if reading starts in the file."""
        if start == 0:
            self._resync.begin()
            return next(tables), memoryview(b"")
        size = max(min(self.cheap_size(start, FIRST_SIZE, HEADER_WINDOW), self.size - start), 0)
        return new_rows(FIRST_SIZE // HEADER_WINDOW + 1), self._fill(start, size, iter((bytearray(size),)))

    def _readable_rows(self, rows: Rows, count: int, end: int, stop: int, position: int) -> tuple[int, int, int]:
        """Return a scan's result up to the first batch with an unreadable block: its CRC may be right by accident."""
        for row in range(count):
            start = rows[row * ROW + START]
            if not self.is_readable(position + start, rows[row * ROW + SIZE]):
                return row, start, Stop.BAD_CRC
        return count, end, stop

    def _size_to_fill(self, position: int, here: memoryview, stop: Stop, *, is_whole: bool) -> int:
        """Return the bytes to read before the position where a scan stopped can be judged; 0 if there are enough."""
        left = self.size - position
        if stop != Stop.END or len(here) >= left:
            return 0
        if not is_whole:
            return min(self._buffer_size, left)
        claimed = claimed_size(here)
        if claimed is None or not len(here) < claimed <= left:
            return 0
        return claimed if claimed <= TRUSTED_SIZE or self._resync.is_batch(position, claimed) else 0

    def _read_on(self, position: int, here: memoryview, stop: Stop) -> tuple[Run | Damage, int]:
        """Return the item at which a scan stopped, and its size: a plausible batch with a wrong CRC, or a damage."""
        claimed = claimed_size(here)
        if stop == Stop.END and claimed is not None and claimed <= self.size - position:
            stop = Stop.BAD_CRC  # too large to be trusted before its CRC was checked
        if stop == Stop.BAD_CRC and claimed is not None:
            self._resync.spend(claimed)
            if not self.is_readable(position, claimed):
                damage = self._resync.damage(position, here, stop)
                return damage, damage.size
            if self._resync.ends_well(position + claimed) and self._resync.is_likely(position, claimed):
                return self._invalid_batch(position, here, claimed)
        damage = self._resync.damage(position, here, stop)
        return damage, damage.size

    def _read_on_as_kafka(self, position: int, here: memoryview, stop: Stop) -> tuple[Run | Damage, int]:
        if len(here) > MAGIC_POSITION:
            claimed = size_field(here) + LOG_OVERHEAD
            if HEADER_WINDOW <= claimed <= self.size - position:
                if self.is_readable(position, claimed) and self._resync.is_filled(position, claimed):
                    return self._invalid_batch(position, here, claimed)
                self._resync.spend(claimed)
                stop = Stop.BAD_CRC
        damage = self._resync.damage(position, here, stop)
        return damage, damage.size

    def _invalid_batch(self, position: int, here: memoryview, claimed: int) -> tuple[Run | Damage, int]:
        """Return a run of the one batch, whatever its CRC; a damage if the file was cut while it was read."""
        if len(here) < claimed:
            here = self._fill(position, claimed)
        if len(here) < claimed:
            cut = self._cut(position)
            return cut, cut.size
        is_batch = 2 <= here[MAGIC_POSITION] < 128 and len(here) > FLAGS_POSITION
        codec = here[FLAGS_POSITION if is_batch else LEGACY_FLAGS_POSITION] & CODEC_MASK
        return Run(here, position, array("q", (0, claimed, 0)), 1, 1 << codec), claimed

    def _cut(self, position: int) -> Damage:
        return Damage(
            DamageKind.TORN_TAIL,
            position,
            self.size - position,
            "the file was truncated while kseg was reading it; run the command again",
        )

    def _spaces(self) -> Iterator[bytearray]:
        if self._ring is not None:
            return _in_turn(self._ring.buffers, lambda: bytearray(self._buffer_size))
        return _in_turn([], lambda: bytearray(min(self._buffer_size, self.size)))

    def _tables(self) -> Iterator[Rows]:
        capacity = max(ROWS_CAPACITY * self._buffer_size // BUFFER_SIZE, 1)  # making large tables takes time
        if self._ring is not None:
            return _in_turn(self._ring.tables, lambda: new_rows(capacity))
        return _in_turn([], lambda: new_rows(min(capacity, self.size // HEADER_WINDOW + 1)))

    def _fill(self, position: int, size: int, spaces: Iterator[bytearray] | None = None) -> memoryview:
        """Return bytes of the file, in the next space of the ring if they fit into one, else in a new buffer."""
        try:
            buffer = bytearray(size) if spaces is None or size > self._buffer_size else next(spaces)
        except MemoryError as error:
            raise OpenError(f"there isn't enough memory for {plural(size, 'byte')}", self.path, position) from error
        filled = self._blocks.read_into(position, memoryview(buffer)[:size])
        if self._cache is not None:
            self._cache.was_read(position, filled)
        filled_buffer = memoryview(buffer)[:filled]
        if spaces is not None:
            self._last_window = position, filled_buffer
        return filled_buffer

    def crc_damage(self, position: int, size: int) -> Damage:
        """Return the damage of a batch that a run holds with VALID 0; its bytes are the batch's."""
        return self._resync.crc_damage(position, size)

    def next_batch(self, position: int, end: int) -> int | None:
        """Return the position of the next intact batch that ends before `end`; None if there is none."""
        return self._resync.next_batch(position, end)

    def may_be_batch(self, position: int, size: int) -> bool:
        """Return True if a plausible header is worth the CRC of many bytes: a message's key and value must fill it."""
        return self._resync.may_be_batch(position, size)

    def unreadable_in(self, start: int, end: int) -> Iterator[UnreadableRange]:
        """Yield ranges of bytes that the disk couldn't read, as far as they were read."""
        return self._blocks.unreadable_in(start, end)

    def pieces(self, position: int, size: int) -> Iterator[bytes]:
        """Yield the bytes of the file in growing pieces, because the first few bytes are often enough."""
        end = position + size
        piece_size = SMALL_PIECE
        while position < end:
            piece = self.read(position, min(piece_size, end - position))
            if not piece:
                return
            yield piece
            position += len(piece)
            piece_size = min(4 * piece_size, BUFFER_SIZE)

    def first_content(self, position: int) -> int:
        """Return the position of the next nonzero byte, or the end."""
        for start, end in self._stored_stretches(position):
            at = start
            for piece in self.pieces(start, end - start):
                if content := re.search(rb"[^\0]", piece):
                    return at + content.start()
                at += len(piece)
        return self.size

    def _stored_stretches(self, position: int) -> Iterator[tuple[int, int]]:
        if self._source is not None:
            return iter(((position, self.size),))
        return stored_stretches(self._descriptor, position, self.size)

    def window(self, position: int, end: int) -> memoryview:
        """Return bytes from a position on: the last read ones if they contain it, else new ones."""
        held_position, held = self._last_window
        if held_position <= position and position + 2 * HEADER_WINDOW <= held_position + len(held):
            return held[position - held_position : end - held_position]
        return self._fill(position, min(BUFFER_SIZE, end - position))


def _in_turn(made: list[T], make: Callable[[], T]) -> Iterator[T]:
    """Yield RING_SIZE objects in turn, over and over, each made on first use."""
    while True:
        for number in range(RING_SIZE):
            if number == len(made):
                made.append(make())
            yield made[number]
