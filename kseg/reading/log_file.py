"""A log file on disk: runs of batches and damages in file order, whose sizes add up to the file's size.

Files are read by `pread` into a buffer, never mapped: a log that is truncated underneath would kill the process.
"""

import os
import re
from array import array
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kseg import kernel
from kseg.errors import KsegError, OpenError
from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    ENTRY_MINIMUM_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MINIMUM_SIZE_FIELD,
    Codec,
    DamageKind,
)
from kseg.formats.names import FileKind, parse_file_name
from kseg.formats.positions import (
    FLAGS_POSITION,
    KEY_LENGTH_POSITION,
    LEGACY_FLAGS_POSITION,
    SIZE_POSITION,
    checksum_of,
    claimed_size,
    signed_magic,
    size_field,
    stored_offset,
)
from kseg.kernel.contract import ROW, SIZE, START, Rows, Stop, new_rows
from kseg.reading.block_reader import BlockReader, UnreadableRange
from kseg.reading.claimed_length import message_fills, records_fill
from kseg.system.file_holes import data_end, next_data, stored_size, stored_stretches
from kseg.system.regular_file import open_regular

if TYPE_CHECKING:
    from kseg.kernel.contract import Kernel
    from kseg.system.gentle import PageCache

BUFFER_SIZE = 1 << 20
"""Bytes read at once: what stays in the processor's cache is read fastest."""
TRUSTED_SIZE = 8 << 20
"""Up to this size a length is believed before the batch's CRC has been looked at."""
FIRST_SIZE = 1 << 14
"""Bytes read first where reading doesn't begin at the file's start: often a batch or two are all that is wanted."""
RING_SIZE = 8
"""Buffers that take turns, so that runs can be worked on while later ones are read: more than bodies.MOST_UNDER_WAY."""
ROWS_CAPACITY = 1 << 14
SMALL_PIECE = 1 << 12
SEARCH_COST_LIMIT = 32
"""Bytes of work that the searches for the next batch may cost together, for each byte that the file takes on disk."""
SEARCH_COST_FREE = 1 << 30
"""What they may cost in any file: a second's work."""
HEADER_WINDOW = ENTRY_MINIMUM_SIZE
"""Bytes that a look at a header needs: the smallest entry."""


class Damage(NamedTuple):
    """Bytes of a log that can't be read as Kafka means them.

    `position` and `size` are bytes of the file; a damage inside a batch (its body, its records) has the batch's
    position and size 0, since the batch stands for the bytes. `next_offset` is the first offset known to follow.
    """

    kind: DamageKind
    position: int
    size: int
    detail: str
    next_offset: int | None = None


class Run(NamedTuple):
    """Batches that lie one after another in a buffer.

    `position` is the buffer's place in the file; row i of `rows` is a batch (kernel.contract.ROW values); `codecs` has
    bit n set if a batch uses codec n.
    """

    buffer: memoryview
    position: int
    rows: Rows
    row_count: int
    codecs: int


T = TypeVar("T")
_CONTENT = re.compile(rb"[^\0]")
_ReadOn = Callable[[int, memoryview, Stop], tuple[Run | Damage, int]]


class LogFile:
    """One log file, open for reading; a segment's, or a metadata snapshot.

    base_offset: of the file's name; None if the name has none. size: bytes at opening, a `limit` reduces it.
    stored_size: those of them that are on disk: holes aren't.
    """

    def __init__(self, path: str | os.PathLike[str], limit: int | None = None, *, keep_cache: bool = True) -> None:
        """Opens the file.

        Args:
            path: the log file, whatever its name.
            limit: read only batches that lie wholly in the first `limit` bytes.
            keep_cache: leave what is read in the page cache; else the cache is left as it was.

        Raises:
            OpenError: if the file can't be opened.
        """
        self._take(Path(path), *open_regular(path), limit, keep_cache=keep_cache)

    @classmethod
    def of_directory(
        cls, path: str | os.PathLike[str], size: int, limit: int | None = None, *, keep_cache: bool = True
    ) -> "LogFile":
        """Opens a log that a directory listed with so many bytes; one that can't be opened is unreadable as a whole.

        Raises OpenError if it has gone, or isn't a regular file.
        """
        try:
            return cls(path, limit, keep_cache=keep_cache)
        except OpenError as error:
            cause = error.__cause__
            if not isinstance(cause, OSError) or isinstance(cause, FileNotFoundError):
                raise
            unreadable = cls.__new__(cls)
            unreadable._take(Path(path), -1, size, limit, keep_cache=True, failure=error.message)
            return unreadable

    def _take(
        self,
        path: Path,
        descriptor: int,
        size: int,
        limit: int | None,
        *,
        keep_cache: bool,
        failure: str | None = None,
    ) -> None:
        self.path = path
        self._descriptor, self.file_size = descriptor, size
        self._is_closed = False
        self._blocks = BlockReader(descriptor, size) if failure is None else BlockReader.without_file(size, failure)
        self.limit = limit
        self.size = self.file_size if limit is None else min(self.file_size, limit)
        self.stored_size = min(stored_size(descriptor), self.size) if failure is None else 0
        name = parse_file_name(path)
        self.base_offset = name.base_offset if name.kind is FileKind.LOG else None
        self._held = (0, memoryview(b""))
        self._budget = self._full_budget = max(SEARCH_COST_LIMIT * self.stored_size, SEARCH_COST_FREE)
        self._largest = TRUSTED_SIZE
        self._cache = None if keep_cache else self._page_cache()

    def close(self) -> None:
        """Closes the file; reading ends."""
        if self._descriptor >= 0:
            if self._cache is not None:
                self._cache.drop()
            os.close(self._descriptor)
            self._descriptor = -1
            self._is_closed = True

    def __enter__(self) -> "LogFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _page_cache(self) -> "PageCache":
        from kseg.system.gentle import PageCache

        return PageCache(self._descriptor, self.file_size)

    @cached_property
    def _kernel(self) -> "Kernel":
        return kernel.load()

    @property
    def has_given_up(self) -> bool:
        """Whether the search for batches after damage has stopped, since it took too long already."""
        return self._budget < 0

    def next_stretch(self, position: int) -> tuple[int, int]:
        """Where the next bytes stand that aren't in a hole, and where the next hole begins: all before is zeros."""
        start = next_data(self._descriptor, position, self.size)
        return start, data_end(self._descriptor, start, self.size)

    def read(self, position: int, size: int) -> bytes:
        """Bytes of the file, fewer where it ends; those that the disk can't give are 0xFF, see `is_readable`."""
        held_position, held = self._held
        if held_position <= position and position + size <= held_position + len(held):
            return bytes(held[position - held_position : position - held_position + size])
        return self._blocks.read(position, size)

    def copy_to(self, target: int, position: int, size: int) -> None:
        """Appends bytes of the file to another open one, inside the kernel where the platform can.

        Raises UnreadableError if the disk can't give them, WriteError if the file was cut, OSError from writing.
        """
        from kseg.system.new_directory import copy_range

        try:
            copy_range(self._descriptor, target, position, size)
        except KsegError as error:
            error.path = str(self.path)
            raise

    def is_readable(self, position: int, size: int) -> bool:
        """Whether the disk gave all of some bytes that were read."""
        return not self._blocks.unreadable or next(self._blocks.unreadable_in(position, position + size), None) is None

    def runs(self, start: int = 0) -> Iterator[Run | Damage]:
        """Runs of batches and damages, in file order, from a batch's position on.

        A run's bytes and rows stay as they are until seven more items were taken. A batch whose CRC is wrong
        comes in a run of its own, with VALID 0, if something plausible follows it; where the reading can't go on, a
        damage tells what lies there, up to the next intact batch.
        """
        return self._walk(start, self._read_on)

    def runs_as_kafka(self, start: int = 0) -> Iterator[Run | Damage]:
        """The same as Kafka's reader goes: it takes every length that lies within the file, whatever the CRC and magic.

        Where it would fail, reading goes on as in `runs`. Source: FileLogInputStream.
        """
        return self._walk(start, self._read_on_as_kafka)

    def _walk(self, start: int, read_on: "_ReadOn") -> Iterator[Run | Damage]:
        if self._is_closed:
            raise OpenError("is closed", self.path)
        if start == 0:
            self._budget = self._full_budget
        if self._descriptor < 0 and self.size == 0:
            yield Damage(DamageKind.UNREADABLE, 0, 0, _unreadable_detail(self._blocks.unreadable, 0))
        spaces, tables = self._spaces(), self._tables()
        position, at, buffer = start, 0, memoryview(b"")
        if start:
            rows = new_rows(FIRST_SIZE // HEADER_WINDOW + 1)
            size = max(min(FIRST_SIZE, self.size - start), 0)
            buffer = self._fill(start, size, iter((bytearray(size),)))
        else:
            rows = next(tables)
        while position + at < self.size:
            if at >= len(buffer):
                position, at = position + at, 0
                buffer = self._fill(position, min(BUFFER_SIZE, self.size - position), spaces)
                if len(buffer) == 0:
                    yield self._cut(position)
                    return
            count, end, stop, codecs = self._kernel.scan(buffer, at, len(buffer), rows, 0)
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
                self._budget -= wanted
                self._largest = max(self._largest, wanted)
                position, at = position + at, 0
                buffer = self._fill(position, wanted, spaces)
                if len(buffer) < wanted:
                    yield self._cut(position)
                    return
                continue
            item, size = read_on(position + at, here, Stop(stop))
            yield item
            at += size

    def _readable_rows(self, rows: Rows, count: int, end: int, stop: int, position: int) -> tuple[int, int, int]:
        """A scan's result up to the first batch with an unreadable block: its CRC may hold by accident."""
        for row in range(count):
            start = rows[row * ROW + START]
            if not self.is_readable(position + start, rows[row * ROW + SIZE]):
                return row, start, Stop.BAD_CRC
        return count, end, stop

    def _size_to_fill(self, position: int, here: memoryview, stop: Stop, *, is_whole: bool) -> int:
        """Bytes to read from where a scan stopped before it can be judged what stands there; 0 if it can be already."""
        left = self.size - position
        if stop != Stop.END or len(here) >= left:
            return 0
        if not is_whole:
            return min(BUFFER_SIZE, left)
        claimed = claimed_size(here)
        if claimed is None or not len(here) < claimed <= left:
            return 0
        return claimed if claimed <= TRUSTED_SIZE or self._is_batch(position, claimed) else 0

    def _read_on(self, position: int, here: memoryview, stop: Stop) -> tuple[Run | Damage, int]:
        """What stands where a scan stopped, and its size: a batch with a wrong CRC that ends well, or a damage."""
        claimed = claimed_size(here)
        if stop == Stop.END and claimed is not None and claimed <= self.size - position:
            stop = Stop.BAD_CRC  # too large to be believed before its CRC was looked at
        if stop == Stop.BAD_CRC and claimed is not None:
            self._budget -= claimed
            if not self.is_readable(position, claimed):
                damage = self._damage(position, here, stop)
                return damage, damage.size
            if self._ends_well(position + claimed) and self._is_likely(position, claimed):
                return self._invalid_batch(position, here, claimed)
        damage = self._damage(position, here, stop)
        return damage, damage.size

    def _read_on_as_kafka(self, position: int, here: memoryview, stop: Stop) -> tuple[Run | Damage, int]:
        if len(here) > MAGIC_POSITION:
            claimed = size_field(here) + LOG_OVERHEAD
            if HEADER_WINDOW <= claimed <= self.size - position:
                if self.is_readable(position, claimed) and self._is_filled(position, claimed):
                    return self._invalid_batch(position, here, claimed)
                self._budget -= claimed
                stop = Stop.BAD_CRC
        damage = self._damage(position, here, stop)
        return damage, damage.size

    def _is_likely(self, position: int, claimed: int) -> bool:
        """Whether a batch whose CRC is wrong may well be as long as it claims."""
        return self._is_filled(position, claimed) and not self._holds_batches(position, claimed)

    def _is_filled(self, position: int, claimed: int) -> bool:
        """Whether a length is believed in spite of the CRC: beyond what was met, only if the records fill it."""
        if claimed <= self._largest:
            return True
        header = self.read(position, BATCH_HEADER_SIZE)
        if len(header) < BATCH_HEADER_SIZE:
            return False
        magic = header[MAGIC_POSITION]
        if magic == 2 and header[FLAGS_POSITION] & CODEC_MASK == Codec.NONE:
            return records_fill(self.read, position + BATCH_HEADER_SIZE, position + claimed)
        return magic < 2 and message_fills(self.read, position + KEY_LENGTH_POSITION[magic], position + claimed)

    def _invalid_batch(self, position: int, here: memoryview, claimed: int) -> tuple[Run | Damage, int]:
        """A run of the one batch, whatever its CRC; a damage if the file was cut while it was read."""
        if len(here) < claimed:
            here = self._fill(position, claimed)
        if len(here) < claimed:
            cut = self._cut(position)
            return cut, cut.size
        is_batch = 2 <= here[MAGIC_POSITION] < 128 and len(here) > FLAGS_POSITION
        codec = here[FLAGS_POSITION if is_batch else LEGACY_FLAGS_POSITION] & CODEC_MASK
        return Run(here, position, array("q", (0, claimed, 0)), 1, 1 << codec), claimed

    def _cut(self, position: int) -> Damage:
        return Damage(DamageKind.TORN_TAIL, position, self.size - position, "the file was cut while it was read")

    def _spaces(self) -> Iterator[bytearray]:
        return _in_turn(lambda: bytearray(min(BUFFER_SIZE, self.size)))

    def _tables(self) -> Iterator[Rows]:
        return _in_turn(lambda: new_rows(min(ROWS_CAPACITY, self.size // HEADER_WINDOW + 1)))

    def _fill(self, position: int, size: int, spaces: Iterator[bytearray] | None = None) -> memoryview:
        """Bytes of the file, in the next space of the ring if they fit into one: a space isn't taken for nothing."""
        try:
            buffer = bytearray(size) if spaces is None or size > BUFFER_SIZE else next(spaces)
        except MemoryError as error:
            raise OpenError(f"there's no memory for {size} bytes", self.path, position) from error
        filled = self._blocks.read_into(position, memoryview(buffer)[:size])
        if self._cache is not None:
            self._cache.was_read(position, filled)
        filled_buffer = memoryview(buffer)[:filled]
        if spaces is not None:
            self._held = position, filled_buffer
        return filled_buffer

    def _ends_well(self, position: int) -> bool:
        """Whether the file ends here, or a plausible header stands here."""
        if position == self.size:
            return True
        header = memoryview(self.read(position, BATCH_HEADER_SIZE))
        return self._find_header(header, 0, HEADER_WINDOW, self.size - position) == 0

    def _find_header(self, buffer: memoryview, start: int, end: int, room: int) -> int:
        return self._kernel.find_header(buffer, start, min(end, len(buffer)), self.base_offset or 0, room)

    def may_be_batch(self, position: int, size: int) -> bool:
        """Whether a header that is plausible is worth the CRC of many bytes: a message's key and value must fill it."""
        if size <= SMALL_PIECE:
            return True
        magic = self.read(position, HEADER_WINDOW)[MAGIC_POSITION]
        return magic >= 2 or message_fills(self.read, position + KEY_LENGTH_POSITION[magic], position + size)

    def _is_batch(self, position: int, size: int) -> bool:
        """Whether the CRC of the batch there holds; reads it piece by piece."""
        header = self.read(position, HEADER_WINDOW)
        if len(header) < HEADER_WINDOW:
            return False
        magic = header[MAGIC_POSITION]
        return self._compute_crc(position, size, magic) == checksum_of(magic).stored(header)

    def _compute_crc(self, position: int, size: int, magic: int) -> int:
        """The checksum of a batch of this magic, whose bytes are read piece by piece."""
        add, covers_from, crc = _checksum(magic), checksum_of(magic).covers_from, 0
        for piece in self._pieces(position + covers_from, size - covers_from):
            crc = add(piece, crc)
        return crc

    def _pieces(self, position: int, size: int) -> Iterator[bytes]:
        """Small ones first: often the first few bytes tell."""
        end = position + size
        piece_size = SMALL_PIECE
        while position < end:
            piece = self.read(position, min(piece_size, end - position))
            if not piece:
                return
            yield piece
            position += len(piece)
            piece_size = min(4 * piece_size, BUFFER_SIZE)

    # --- damage ------------------------------------------------------------------------------------------------------

    def _damage(self, position: int, buffer: memoryview, stop: Stop) -> Damage:
        """What lies at a position where no batch can be read: how far it goes, and what follows it."""
        content = self._first_content(position)
        if content == self.size:
            return Damage(DamageKind.ZERO_TAIL, position, self.size - position, "only zeros up to the end")
        found = self._next_batch(max(position + 1, content - MAGIC_POSITION))
        claimed = claimed_size(buffer)
        left = self.size - position
        end = self.size if found is None else found
        unreadable = list(self._blocks.unreadable_in(position, end))
        if found is None and not unreadable and (left <= MAGIC_POSITION or (claimed is not None and claimed > left)):
            asked = f"a batch of {claimed} bytes begins" if claimed is not None else "a header begins"
            return Damage(DamageKind.TORN_TAIL, position, left, f"{asked}, {left} bytes are left")
        if unreadable:
            kind, detail = DamageKind.UNREADABLE, _unreadable_detail(unreadable, self.file_size)
        else:
            kind, detail = self._what_stopped(position, buffer, stop)
        if self._budget < 0:
            detail += "; the search for what follows was given up, since it took too long"
        next_offset = None if found is None else stored_offset(self.read(found, SIZE_POSITION))
        return Damage(kind, position, end - position, detail, next_offset)

    def _what_stopped(self, position: int, buffer: memoryview, stop: Stop) -> tuple[DamageKind, str]:
        if len(buffer) <= MAGIC_POSITION:
            return DamageKind.BAD_LENGTH, "too few bytes for a header"
        size = size_field(buffer)
        left = self.size - position - LOG_OVERHEAD
        if stop == Stop.BAD_MAGIC or (
            buffer[MAGIC_POSITION] not in MINIMUM_SIZE_FIELD and MINIMUM_SIZE_FIELD[0] <= size <= left
        ):
            return DamageKind.BAD_MAGIC, f"magic is {signed_magic(buffer)}"
        if stop == Stop.BAD_CRC:
            return (
                DamageKind.BAD_CRC,
                f"{self._crc_detail(position, buffer)}, and {self._why_untrusted(position, buffer)}",
            )
        return DamageKind.BAD_LENGTH, f"length field is {size}, {left} bytes are left"

    def _why_untrusted(self, position: int, buffer: memoryview) -> str:
        """Why a length isn't trusted, besides the wrong CRC."""
        claimed = claimed_size(buffer) or 0
        if self._ends_well(position + claimed) and not self._is_filled(position, claimed):
            return f"nothing else tells that it has {claimed} bytes"
        return "no header where it should end"

    def _crc_detail(self, position: int, buffer: memoryview) -> str:
        magic = buffer[MAGIC_POSITION]
        computed = self._compute_crc(position, claimed_size(buffer) or 0, magic)
        return f"crc is {checksum_of(magic).stored(buffer):#010x}, computed {computed:#010x}"

    def crc_damage(self, position: int, size: int) -> Damage:
        """The damage of a batch that a run holds with VALID 0; its bytes are the batch's."""
        buffer = memoryview(self.read(position, HEADER_WINDOW))
        if claimed_size(buffer) is None:  # a batch to Kafka's reader alone
            kind, detail = self._what_stopped(position, buffer, Stop.END)
            return Damage(kind, position, 0, detail)
        next_header = self.read(position + size, SIZE_POSITION)
        next_offset = stored_offset(next_header) if len(next_header) == SIZE_POSITION else None
        return Damage(DamageKind.BAD_CRC, position, 0, self._crc_detail(position, buffer), next_offset)

    def _first_content(self, position: int) -> int:
        """Where the first byte that isn't zero stands, or the end."""
        for start, end in stored_stretches(self._descriptor, position, self.size):
            at = start
            for piece in self._pieces(start, end - start):
                if content := _CONTENT.search(piece):
                    return at + content.start()
                at += len(piece)
        return self.size

    def _holds_batches(self, position: int, claimed: int) -> bool:
        """Whether intact batches end exactly where a batch with a wrong CRC claims to end: then its length is wrong."""
        end = position + claimed
        inner = self._next_batch(position + 1, end)
        while inner is not None and inner < end:
            size = size_field(self.read(inner, LOG_OVERHEAD)) + LOG_OVERHEAD
            if size < HEADER_WINDOW:  # none of a batch: it would lead nowhere, or back
                return False
            inner += size
        return inner == end

    def _next_batch(self, position: int, end: int | None = None) -> int | None:
        """Where the next intact batch begins that ends before `end`: a plausible header whose CRC holds.

        On bytes made to be slow the work of all searches together ends at SEARCH_COST_LIMIT times the file's size.
        """
        end = self.size if end is None else end
        while position + HEADER_WINDOW <= end and self._budget >= 0:
            stored, hole = self.next_stretch(position)
            position = max(position, stored - MAGIC_POSITION)
            if position + HEADER_WINDOW > end:
                return None
            window = self._window(position, min(end, hole + HEADER_WINDOW))
            if not self.is_readable(position, 1):  # as far as is known now that it was read
                position = max(next(self._blocks.unreadable_in(position, end)).end, position + 1)
                continue
            at = 0
            while (found := self._find_header(window, at, len(window), end - position)) >= 0:
                size = size_field(window, found) + LOG_OVERHEAD
                self._budget -= found - at
                at = found + 1
                if not self.may_be_batch(position + found, size):
                    continue
                self._budget -= size
                if self._budget < 0:
                    return None
                if self._is_batch(position + found, size) and self.is_readable(position + found, size):
                    return position + found
            self._budget -= len(window) - at
            if len(window) < HEADER_WINDOW:
                return None  # the file was cut while it was read
            position += len(window) - HEADER_WINDOW + 1
        return None

    def _window(self, position: int, end: int) -> memoryview:
        """Bytes from a position on: what was read last, if it lies there, else new ones."""
        held_position, held = self._held
        if held_position <= position and position + 2 * HEADER_WINDOW <= held_position + len(held):
            return held[position - held_position : end - held_position]
        return self._fill(position, min(BUFFER_SIZE, end - position))


def _unreadable_detail(found: list[UnreadableRange], file_size: int) -> str:
    """Which bytes of a file can't be read, and why."""
    first = found[0]
    if first.start == 0 and first.end >= file_size:
        return f"the file {first.reason}"
    text = f"bytes {first.start} to {first.end - 1}"
    if len(found) > 1:
        size = sum(each.end - each.start for each in found)
        text += f" and {len(found) - 1} more stretches, {size} bytes in all,"
    return f"{text} {first.reason}"


def _checksum(magic: int) -> Callable[[bytes, int], int]:
    """What computes the checksum of a batch of this magic: takes bytes, and what those before gave."""
    if magic == 2:
        from crc32c import crc32c

        return crc32c
    from zlib import crc32

    return crc32


def _in_turn(make: Callable[[], T]) -> Iterator[T]:
    """RING_SIZE things, made when they are first wanted, one after another and over again."""
    made: list[T] = []
    while len(made) < RING_SIZE:
        made.append(make())
        yield made[-1]
    while True:
        yield from made
