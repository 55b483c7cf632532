"""Blocks of a file whose disk may fail, damages, and the search for the next batch after damage."""

import errno
import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from kseg import kernel
from kseg.errors import plural
from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    ENTRY_MINIMUM_SIZE,
    FLAGS_POSITION,
    KEY_LENGTH_POSITION,
    LEGACY_FLAGS_POSITION,
    LENGTH,
    LIKENESSES,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MINIMUM_SIZE_FIELD,
    SIZE_POSITION,
    Codec,
    DamageKind,
    checksum_of,
    claimed_size,
    crc_function,
    signed_magic,
    size_field,
    stored_offset,
)
from kseg.kernel.contract import Stop
from kseg.named_tuple import NamedTuple
from kseg.system.placed_path import RangedBytes

if TYPE_CHECKING:
    from kseg.kernel.entry_points import Kernel
    from kseg.reading.text_changes import TextChange


SMALLEST_BLOCK = 512
"""The smallest block of a disk: a failed read is repeated in pieces down to this size."""
PATIENCE = 30.0
"""The seconds of failing reads in one file after which pieces aren't divided any more."""
_PIECES = (64 << 10, 4 << 10, SMALLEST_BLOCK)
_FILL = b"\xff"
"""The replacement of unreadable bytes: no header of any format begins with it, and no file's zero tail."""
_OWN_FAULTS = (errno.EBADF, errno.EINVAL, errno.EFAULT)
"""The system's errors for a wrong call; all other errors are the disk's."""


class UnreadableRange(NamedTuple):
    """Bytes `start` to before `end` of a file, and the system's error for them."""

    start: int
    end: int
    reason: str


class BlockReader:
    """An open file of which some blocks may be unreadable; these read as 0xFF.

    size: bytes of the file. unreadable: the unreadable ranges found so far, by position; adjacent ones differ in their
    reasons.
    """

    def __init__(self, descriptor: int, size: int, source: RangedBytes | None = None) -> None:
        """Take an open file, and its source if its bytes are in another place."""
        self._descriptor = descriptor
        self._source = source
        self._size = size
        self._waited_seconds = 0.0
        self._skip = _PIECES[0]
        self.unreadable: list[UnreadableRange] = []

    @classmethod
    def without_file(cls, size: int, reason: str) -> "BlockReader":
        """Return a completely unreadable file, for one that can't be opened."""
        reader = cls(-1, size)
        reader.unreadable.append(UnreadableRange(0, size, reason))
        return reader

    def read(self, position: int, size: int) -> bytes:
        """Return bytes of the file, fewer at its end."""
        if not self.unreadable:
            try:
                found = self._bytes_at(position, size)
            except OSError as error:
                if error.errno in _OWN_FAULTS:
                    raise
            else:
                if self._source is None or len(found) == min(size, self._size - position):
                    return found
        buffer = bytearray(max(min(size, self._size - position), 0))
        return bytes(memoryview(buffer)[: self.read_into(position, memoryview(buffer))])

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill a buffer; return the number of available bytes."""
        filled = 0
        while filled < len(buffer):
            at = position + filled
            known = next(self.unreadable_in(at, position + len(buffer)), None)
            if known is not None and known.start <= at:
                count = min(known.end, position + len(buffer)) - at
                buffer[filled : filled + count] = _FILL * count
            else:
                end = len(buffer) if known is None else known.start - position
                count = self._read(at, buffer[filled:end])
            if count == 0:
                break
            filled += count
        return filled

    def unreadable_in(self, start: int, end: int) -> Iterator[UnreadableRange]:
        """Yield the unreadable ranges found so far that overlap `start` to before `end`."""
        slot = max(bisect_right(self.unreadable, start, key=_start_of) - 1, 0)
        for found in self.unreadable[slot:]:
            if found.start >= end:
                return
            if found.end > start:
                yield found

    def _read(self, position: int, buffer: memoryview) -> int:
        """Read once; on failure in smaller pieces, as long as patience lasts."""
        began = time.monotonic()
        try:
            return self._fill(position, buffer)
        except OSError as error:
            if error.errno in _OWN_FAULTS:
                raise
            reason = f"can't be read: {error.strerror}"
        self._waited_seconds += time.monotonic() - began
        if self._source is not None:
            return self._read_by_stretches(position, buffer, self._source, reason)
        piece = next((size for size in _PIECES if size < len(buffer)), None)
        if piece is None or self._waited_seconds > PATIENCE:
            return self._give_up(position, buffer, reason)
        filled = 0
        while filled < len(buffer):
            end = min((position + filled) // piece * piece + piece - position, len(buffer))
            count = self._read(position + filled, buffer[filled:end])
            if count == 0:
                break
            filled += count
        return filled

    def _read_by_stretches(self, position: int, buffer: memoryview, source: RangedBytes, reason: str) -> int:
        """Read chunk by chunk; an unreadable chunk is given up as a whole."""
        end = min(source.stretch_end(position), self._size)
        if end - position < len(buffer):
            return self._read(position, buffer[: end - position])
        self._remember(position, end, reason)
        buffer[:] = _FILL * len(buffer)
        return len(buffer)

    def _bytes_at(self, position: int, size: int) -> bytes:
        if self._source is None:
            return os.pread(self._descriptor, size, position)
        return self._source.read(position, size)

    def _fill(self, position: int, buffer: memoryview) -> int:
        if self._source is None:
            return os.preadv(self._descriptor, [buffer], position)
        found = self._source.read(position, len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def _give_up(self, position: int, buffer: memoryview, reason: str) -> int:
        """Record the blocks of some bytes as unreadable; without patience, also ever larger stretches after them."""
        end = position + len(buffer)
        if self._waited_seconds > PATIENCE:
            end, self._skip = max(end, position + self._skip), 2 * self._skip
        start = position // SMALLEST_BLOCK * SMALLEST_BLOCK
        self._remember(start, min(-(-end // SMALLEST_BLOCK) * SMALLEST_BLOCK, self._size), reason)
        buffer[:] = _FILL * len(buffer)
        return len(buffer)

    def _remember(self, start: int, end: int, reason: str) -> None:
        known = self.unreadable
        first = last = bisect_right(known, start, key=_start_of)
        if first and known[first - 1].end >= start and known[first - 1].reason == reason:
            first -= 1
        while last < len(known) and known[last].start <= end and known[last].reason == reason:
            last += 1
        joined = known[first:last]
        start, end = min([start, *(each.start for each in joined)]), max([end, *(each.end for each in joined)])
        known[first:last] = [UnreadableRange(start, end, reason)]


def _start_of(found: UnreadableRange) -> int:
    return found.start


RECORDS_LOOKED_AT = 1 << 12
"""The most records whose lengths are checked for a large batch with a wrong CRC."""
SMALLEST_RECORD = 6
"""The least bytes of a record after its length: attributes, two deltas, two sizes, the number of headers."""

Read = Callable[[int, int], bytes]
"""(position, size) → bytes of the file."""


def records_fill(read: Read, position: int, end: int) -> bool:
    """Return True if the lengths of the records of a batch, or of a sufficient number, lead to its end."""
    from kseg.formats.varint_bytes import LONGEST_VARINT, from_zigzag, read_uvarint

    for _ in range(RECORDS_LOOKED_AT):
        if position == end:
            return True
        try:
            number, size = read_uvarint(read(position, LONGEST_VARINT), 0, LONGEST_VARINT)
        except EOFError:
            return False
        length = from_zigzag(number)
        if length < SMALLEST_RECORD:
            return False
        position += size + length
        if position > end:
            return False
    return True


def message_fills(read: Read, position: int, end: int) -> bool:
    """Return True if a message's key and value, of which the key is at a position, lead to its end."""
    for _ in range(2):
        position += LENGTH.size + max(LENGTH.read(read(position, LENGTH.size)), 0)
    return position == end


class Damage(NamedTuple):
    """Bytes of a log that can't be read as Kafka means them.

    `position` and `size` are bytes of the file; a damage inside a batch (its body, its records) has the batch's
    position and size 0, since the batch covers the bytes. `next_offset` is the first offset known to follow.
    """

    kind: DamageKind
    position: int
    size: int
    detail: str
    next_offset: int | None = None

    @property
    def brief(self) -> str:
        """Its kind and place, and the bytes' likely origin if known."""
        like = f": {self.detail}" if self.kind in LIKENESSES else ""
        return f"{self.kind} at position {self.position}{like}"


TRUSTED_SIZE = 8 << 20
"""The largest length that is trusted before the batch's CRC is checked."""
SMALL_PIECE = 1 << 12
SEARCH_COST_LIMIT = 32
"""The work, in bytes, of all searches for the next batch, per byte that the file takes on disk."""
SEARCH_COST_FREE = 1 << 30
"""The work allowed in any file: about a second."""
MOST_LOOKS = 8
"""The most damages of a file that are compared with known origins in vain."""
HEADER_WINDOW = ENTRY_MINIMUM_SIZE
"""The bytes needed to check a header: the smallest entry."""


class LogBytes(Protocol):
    """A log with random access to its bytes. size: the examined bytes, file_size: all of them."""

    size: int
    file_size: int

    @property
    def stored_size(self) -> int:
        """The bytes on disk, without holes."""
        ...

    @property
    def base_offset(self) -> int | None:
        """The offset in its name."""
        ...

    def read(self, position: int, size: int) -> bytes:
        """Return bytes, fewer at the end of the log; unreadable ones are 0xFF."""
        ...

    def pieces(self, position: int, size: int) -> Iterator[bytes]:
        """Yield bytes piece by piece."""
        ...

    def window(self, position: int, end: int) -> memoryview:
        """Return bytes from a position on, as many as are cached or read at once."""
        ...

    def first_content(self, position: int) -> int:
        """Return the position of the next nonzero byte; the end if there is none."""
        ...

    def next_stretch(self, position: int) -> tuple[int, int]:
        """Return the position of the next bytes outside of holes, and of the hole after them."""
        ...

    def is_readable(self, position: int, size: int) -> bool:
        """Return True if the disk could read all of the given bytes."""
        ...

    def unreadable_in(self, start: int, end: int) -> Iterator[UnreadableRange]:
        """Yield ranges of bytes that the disk couldn't read."""
        ...


class Resync:
    """A judge of the bytes after the last readable batch. Its searches share a budget of work.

    For bytes made to be slow the budget is SEARCH_COST_LIMIT times the log's size on disk, at least SEARCH_COST_FREE.
    """

    def __init__(self, log: LogBytes) -> None:
        self._log = log
        self._full_budget = max(SEARCH_COST_LIMIT * log.stored_size, SEARCH_COST_FREE)
        self._budget = self._full_budget
        self._looks = MOST_LOOKS
        self._change: TextChange | None = None
        self._largest = TRUSTED_SIZE

    @cached_property
    def _kernel(self) -> "Kernel":
        return kernel.load()

    @property
    def has_given_up(self) -> bool:
        """True if the search has stopped because it took too long."""
        return self._budget < 0

    def begin(self) -> None:
        """Restore the complete budget: the log is read from its start."""
        self._budget = self._full_budget
        self._looks = MOST_LOOKS

    def spend(self, size: int) -> None:
        """Count bytes that were read to judge them."""
        self._budget -= size

    def trust(self, size: int) -> None:
        """Note the size of an intact batch: lengths up to it are trusted in spite of a wrong CRC."""
        self._largest = max(self._largest, size)

    def is_likely(self, position: int, claimed: int) -> bool:
        """Return True if a batch with a wrong CRC may have its claimed length."""
        return self.is_filled(position, claimed) and not self._holds_batches(position, claimed)

    def is_filled(self, position: int, claimed: int) -> bool:
        """Return True if a length is trusted in spite of the CRC; beyond known sizes only if the records fill it."""
        if claimed <= self._largest:
            return True
        header = self._log.read(position, BATCH_HEADER_SIZE)
        if len(header) < BATCH_HEADER_SIZE:
            return False
        magic = header[MAGIC_POSITION]
        if magic == 2 and header[FLAGS_POSITION] & CODEC_MASK == Codec.NONE:
            return records_fill(self._log.read, position + BATCH_HEADER_SIZE, position + claimed)
        return magic < 2 and message_fills(self._log.read, position + KEY_LENGTH_POSITION[magic], position + claimed)

    def ends_well(self, position: int) -> bool:
        """Return True if the file ends here, or a plausible header is here."""
        if position == self._log.size:
            return True
        header = memoryview(self._log.read(position, BATCH_HEADER_SIZE))
        return self._find_header(header, 0, HEADER_WINDOW, self._log.size - position) == 0

    def _find_header(self, buffer: memoryview, start: int, end: int, room: int) -> int:
        return self._kernel.find_header(buffer, start, min(end, len(buffer)), self._log.base_offset or 0, room)

    def may_be_batch(self, position: int, size: int) -> bool:
        """Return True if a plausible header is worth the CRC of many bytes: a message's key and value must fill it."""
        if size <= SMALL_PIECE:
            return True
        magic = self._log.read(position, HEADER_WINDOW)[MAGIC_POSITION]
        return magic >= 2 or message_fills(self._log.read, position + KEY_LENGTH_POSITION[magic], position + size)

    def is_batch(self, position: int, size: int) -> bool:
        """Return True if the CRC of the batch there is right; reads it piece by piece."""
        header = self._log.read(position, HEADER_WINDOW)
        if len(header) < HEADER_WINDOW:
            return False
        magic = header[MAGIC_POSITION]
        return self._compute_crc(position, size, magic) == checksum_of(magic).read_stored(header)

    def _compute_crc(self, position: int, size: int, magic: int) -> int:
        """Compute the checksum of a batch of this magic, whose bytes are read piece by piece."""
        add, covers_from, crc = crc_function(magic), checksum_of(magic).covers_from, 0
        for piece in self._log.pieces(position + covers_from, size - covers_from):
            crc = add(piece, crc)
        return crc

    def damage(self, position: int, buffer: memoryview, stop: Stop) -> Damage:
        """Return the damage at a position without readable batch, with its size and the following offset."""
        content = self._log.first_content(position)
        if content == self._log.size:
            return Damage(DamageKind.ZERO_TAIL, position, self._log.size - position, "only zeros up to the end")
        found = self.next_batch(max(position + 1, content - MAGIC_POSITION))
        claimed = claimed_size(buffer)
        left = self._log.size - position
        end = self._log.size if found is None else found
        unreadable = list(self._log.unreadable_in(position, end))
        if found is None and not unreadable and (left <= MAGIC_POSITION or (claimed is not None and claimed > left)):
            asked = f"a batch of {plural(claimed, 'byte')} begins" if claimed is not None else "a header begins"
            kind, detail = self._with_likeness(
                position, found, DamageKind.TORN_TAIL, f"{asked}, but only {plural(left, 'byte is', 'bytes are')} left"
            )
            return Damage(kind, position, left, detail)
        if unreadable:
            kind, detail = DamageKind.UNREADABLE, unreadable_detail(unreadable, self._log.file_size)
        else:
            kind, detail = self._with_likeness(position, found, *self._what_stopped(position, buffer, stop))
        if self._budget < 0:
            detail += "; kseg stopped the search for the next batch, since it took too long"
        return Damage(kind, position, end - position, detail, None if found is None else self._first_offset(found))

    def _first_offset(self, position: int) -> int | None:
        """Return the first offset of the batch at a position; a wrapper's own is in its messages.

        If these can't be read, or the budget is spent, return the offset that its header has; None at the log's end.
        """
        header = self._log.read(position, HEADER_WINDOW)
        if len(header) < SIZE_POSITION:
            return None
        size = claimed_size(header)
        if size is None or header[MAGIC_POSITION] >= 2 or not header[LEGACY_FLAGS_POSITION] & CODEC_MASK:
            return stored_offset(header)
        self._budget -= size
        entry = self._log.read(position, size) if self._budget >= 0 else b""
        if len(entry) < size:
            return stored_offset(header)
        from kseg.reading.wrapper import read_wrapper  # healthy logs don't need it

        records, body_size = read_wrapper(entry)
        self._budget -= body_size
        return records[0].offset if records else stored_offset(header)

    def _with_likeness(self, position: int, end: int | None, kind: DamageKind, detail: str) -> tuple[DamageKind, str]:
        """Return a damage's kind and detail, refined by the bytes' appearance until MOST_LOOKS looks failed."""
        if self._looks == 0:
            return kind, detail
        from kseg.reading.likeness import likeness  # healthy logs don't need it

        like = likeness(self._log.read, position, end, self._change)
        if like is None:
            self._looks -= 1
            return kind, detail
        self._change = like.change or self._change
        return (kind, f"{detail}; {like.text}") if like.kind is None else (like.kind, like.text)

    def _what_stopped(self, position: int, buffer: memoryview, stop: Stop) -> tuple[DamageKind, str]:
        if len(buffer) <= MAGIC_POSITION:
            return DamageKind.BAD_LENGTH, "too few bytes for a header"
        size = size_field(buffer)
        left = self._log.size - position - LOG_OVERHEAD
        if stop == Stop.BAD_MAGIC or (
            buffer[MAGIC_POSITION] not in MINIMUM_SIZE_FIELD and MINIMUM_SIZE_FIELD[0] <= size <= left
        ):
            return DamageKind.BAD_MAGIC, f"magic is {signed_magic(buffer)}, expected 0, 1 or 2"
        if stop == Stop.BAD_CRC:
            reasons = f"{self._crc_detail(position, buffer)}, and {self._distrust_reason(position, buffer)}"
            return DamageKind.BAD_CRC, reasons
        return DamageKind.BAD_LENGTH, f"length field is {size}, and {plural(left, 'byte is', 'bytes are')} left"

    def _distrust_reason(self, position: int, buffer: memoryview) -> str:
        """Return the reasons besides the CRC for not trusting a length."""
        claimed = claimed_size(buffer) or 0
        if self.ends_well(position + claimed) and not self.is_filled(position, claimed):
            return f"nothing else confirms its size of {plural(claimed, 'byte')}"
        return "there is no header at its end"

    def _crc_detail(self, position: int, buffer: memoryview) -> str:
        magic = buffer[MAGIC_POSITION]
        computed = self._compute_crc(position, claimed_size(buffer) or 0, magic)
        return f"CRC is {checksum_of(magic).read_stored(buffer):#010x}, expected {computed:#010x}"

    def crc_damage(self, position: int, size: int) -> Damage:
        """Return the damage of a batch that a run holds with VALID 0; its bytes are the batch's."""
        buffer = memoryview(self._log.read(position, HEADER_WINDOW))
        if claimed_size(buffer) is None:  # a batch to Kafka's reader alone
            kind, detail = self._what_stopped(position, buffer, Stop.END)
            return Damage(kind, position, 0, detail)
        detail = f"{self._crc_detail(position, buffer)}{self._bits_detail(position)}"
        return Damage(DamageKind.BAD_CRC, position, 0, detail, self._first_offset(position + size))

    def _bits_detail(self, position: int) -> str:
        """Return the evidence from the bits of a log whose first batch has a wrong CRC."""
        if self._looks == 0 or position:
            return ""
        from kseg.reading.likeness import SEVEN_BITS, has_seven_bits

        if has_seven_bits(self._log.read(position, SMALL_PIECE)):
            return f"; {SEVEN_BITS}"
        self._looks -= 1
        return ""

    def _holds_batches(self, position: int, claimed: int) -> bool:
        """Return True if intact batches end exactly at the claimed end of a batch, so that its length is wrong."""
        end = position + claimed
        inner = self.next_batch(position + 1, end)
        while inner is not None and inner < end:
            size = size_field(self._log.read(inner, LOG_OVERHEAD)) + LOG_OVERHEAD
            if size < HEADER_WINDOW:  # not a batch: it would lead nowhere, or back
                return False
            inner += size
        return inner == end

    def next_batch(self, position: int, end: int | None = None) -> int | None:
        """Return the position of the next intact batch that ends before `end`: a plausible header with a right CRC.

        For bytes made to be slow the searches stop when their common budget `_full_budget` is spent.
        """
        end = self._log.size if end is None else end
        while position + HEADER_WINDOW <= end and self._budget >= 0:
            stored, hole = self._log.next_stretch(position)
            position = max(position, stored - MAGIC_POSITION)
            if position + HEADER_WINDOW > end:
                return None
            window = self._log.window(position, min(end, hole + HEADER_WINDOW))
            if not self._log.is_readable(position, 1):  # as far as known after reading it
                position = max(next(self._log.unreadable_in(position, end)).end, position + 1)
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
                if self.is_batch(position + found, size) and self._log.is_readable(position + found, size):
                    return position + found
            self._budget -= len(window) - at
            if len(window) < HEADER_WINDOW:
                return None  # the file was truncated while kseg was reading it; run the command again
            position += len(window) - HEADER_WINDOW + 1
        return None


def unreadable_detail(found: list[UnreadableRange], file_size: int) -> str:
    """Return a text about the unreadable bytes of a file, with the reasons."""
    first = found[0]
    if first.start == 0 and first.end >= file_size:
        return f"the file {first.reason}"
    text = f"bytes {first.start} to {first.end - 1}"
    if len(found) > 1:
        size = sum(each.end - each.start for each in found)
        text += f" and {plural(len(found) - 1, 'more stretch', 'more stretches')}, {plural(size, 'byte')} in all,"
    return f"{text} {first.reason}"
