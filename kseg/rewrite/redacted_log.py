"""A redacted log: batches with other contents in the same places, and noise where the bytes can't be read.

A batch without a codec keeps its size. A compressed one may get another, so what points into the log needs the places
where batches were and where they are.
"""

import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import shake_256
from pathlib import Path
from typing import NamedTuple

from kseg import kernel
from kseg.codecs.bodies import compress
from kseg.errors import RecordError
from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    LENGTH,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    SIZE_POSITION,
    Codec,
    DamageKind,
    checksum_of,
    claimed_size,
    crc_function,
    size_field,
    wrapper_value,
)
from kseg.formats.header_fields import (
    ENTRY_V0_ATTRIBUTES,
    ENTRY_V0_CRC,
    ENTRY_V0_KEY_LENGTH,
    ENTRY_V1_KEY_LENGTH,
    ENTRY_V1_TIMESTAMP,
)
from kseg.formats.varint_bytes import LONGEST_VARINT, read_uvarint
from kseg.reading.batch import Batch, batch_of
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile, Run
from kseg.rewrite.redacted_records import Redacted
from kseg.system.new_directory import write_whole

_KEY_LENGTHS = {0: ENTRY_V0_KEY_LENGTH, 1: ENTRY_V1_KEY_LENGTH}
_UINT32 = 0xFFFFFFFF
_TRIES = 64
"""Noises that are tried for one that gives the same damage."""
_PIECE = 1 << 20
_MAGICS = 4
"""Bytes of a compressed body by which its codec knows it."""
LATEST_MS = 1 << 43
"""The year 2248: what claims to be a later time may be anything."""
_LIKENESS = 5
"""Bytes of a foreign content by which it is known: less than anybody could read something from."""


class Noise:
    """Bytes that only the key's owner can make again: the same place of the same file always gets the same."""

    def __init__(self, key: bytes, name: str) -> None:
        self._seed = key + b"noise" + name.encode(errors="surrogateescape")

    def bytes_at(self, position: int, size: int, attempt: int = 0) -> bytes:
        """Noise for bytes of the file."""
        seed = b"%b/%d/%d" % (self._seed, position, attempt)
        return shake_256(seed).digest(size)

    def pieces(self, position: int, size: int) -> Iterator[bytes]:
        """The same for many bytes, piece by piece."""
        for start in range(position, position + size, _PIECE):
            yield self.bytes_at(start, min(_PIECE, position + size - start))


class Places(NamedTuple):
    """Old and new positions of the batches of a log and damages, in order."""

    old: list[int]
    new: list[int]

    def new_position(self, position: int) -> int:
        """Return the new position of a byte."""
        slot = bisect_right(self.old, position) - 1
        return position if slot < 0 else position - self.old[slot] + self.new[slot]


class LogTally(NamedTuple):
    """Counts of a redacted log: replaced batches and records, and bytes that became noise."""

    batches: int
    records: int
    noise: Mapping[DamageKind, int]


def redact_log(log: LogFile, target: Path, records: Redacted, noise: Noise) -> tuple[Places, LogTally]:
    """Write a redacted log to a path where there is no file.

    Raises OSError if the system can't read or write.
    """
    rewriter = _Rewriter(records, noise)
    places = Places([], [])
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        end = 0
        for item in log.runs():
            for position, piece in rewriter.damage(log, item) if isinstance(item, Damage) else rewriter.run(item):
                places.old.append(position)
                places.new.append(end)
                if isinstance(piece, int):
                    end += piece
                    os.ftruncate(descriptor, end)
                    os.lseek(descriptor, 0, os.SEEK_END)
                else:
                    write_whole(descriptor, piece)
                    end += len(piece)
        places.old.append(log.size)
        places.new.append(end)
    finally:
        os.close(descriptor)
    return places, LogTally(rewriter.batches, rewriter.records, dict(rewriter.noise))


Piece = tuple[int, bytes | int]
"""The position of bytes in a log, and their replacement; a number stands for that many zeros."""


class _Rewriter:
    """Makes the new bytes of batches and damages."""

    def __init__(self, records: Redacted, noise: Noise) -> None:
        self._records, self._noise = records, noise
        self._replace = kernel.load().replace_contents
        self.batches, self.records = 0, 0
        self.noise: Counter[DamageKind] = Counter()

    def run(self, run: Run) -> Iterator[Piece]:
        """The batches of a run."""
        for row in range(run.row_count):
            batch = batch_of(run, row)
            yield batch.position, self.batch(batch)

    def damage(self, log: LogFile, damage: Damage) -> Iterator[Piece]:
        """Bytes that aren't a batch: zeros stay zeros, a batch with a wrong checksum stays one, all else is noise."""
        if damage.size == 0:
            return
        position, size = damage.position, damage.size
        if damage.kind is DamageKind.ZERO_TAIL:
            yield position, size
            return
        start = 0
        if damage.kind is DamageKind.BAD_CRC:
            head = log.read(position, BATCH_HEADER_SIZE)
            start = claimed_size(head) or 0
            if LOG_OVERHEAD < start <= size:
                yield position, self.batch(Batch.parse(log.read(position, start), position, is_valid=False))
            else:
                start = 0
        if start < size:
            yield position + start, self._noise_for(log, damage, start)

    def _noise_for(self, log: LogFile, damage: Damage, start: int) -> bytes:
        """Noise, with the few bytes that the kind of damage is told from."""
        position, size = damage.position + start, damage.size - start
        self.noise[damage.kind] += size
        replaced = bytearray(b"".join(self._noise.pieces(position, size)))
        head = log.read(position, min(size, BATCH_HEADER_SIZE))
        for first, last in _kept(damage.kind, head) if start == 0 else ():
            replaced[first:last] = head[first:last]
        return bytes(replaced)

    def batch(self, batch: Batch) -> bytes:
        """The batch with other contents. A wrong checksum differs from the right one by the same bits as before."""
        self.batches += 1
        replaced = bytearray(self._legacy(batch) if batch.is_legacy else self._v2(batch))
        if not batch.is_valid:
            field = checksum_of(batch.magic).field
            field.write(replaced, field.read(replaced) ^ (batch.crc ^ batch.compute_crc()) & _UINT32)
        return bytes(replaced)

    def _v2(self, batch: Batch) -> bytes:
        body = batch.raw[BATCH_HEADER_SIZE:]
        problem = batch.problem()
        if batch.codec != Codec.NONE and body:
            opened = batch.body
            if opened.failure is not None:
                return self._as_bad(batch, bytearray(batch.raw), BATCH_HEADER_SIZE)
            changed = self._contents(batch, opened.data, is_whole=problem is None)
            body = compress(batch.codec, changed, magic=batch.magic)
        else:
            body = self._contents(batch, body, is_whole=problem is None)
        return _seal(bytearray(batch.raw[:BATCH_HEADER_SIZE]) + body, batch.magic)

    def _contents(self, batch: Batch, body: bytes, *, is_whole: bool) -> bytes:
        """The records of a body with other contents; what follows those that can be read is noise."""
        changed = bytearray(body)
        count = max(batch.header.records_count or 0, 0)
        self.records += count
        record = self._records.control if batch.is_control else self._records.record
        self._replace(changed, 0, len(changed), count, record, self._records.header)
        if is_whole:
            return bytes(changed)
        end = _end_of_records(body, sum(1 for _ in batch.records(on_damage="skip")))
        known = batch.problem()
        for attempt in range(_TRIES):
            changed[end:] = self._noise.bytes_at(batch.position + end, len(body) - end, attempt)
            rest = bytearray(batch.raw[:BATCH_HEADER_SIZE]) + changed
            if batch.codec != Codec.NONE or Batch.parse(bytes(rest), batch.position, is_valid=True).problem() == known:
                break
        self.noise[DamageKind.BAD_RECORD] += len(body) - end
        return bytes(changed)

    def _as_bad(self, batch: Batch, raw: bytearray, start: int) -> bytes:
        """A batch whose body nobody can decompress: noise that gives the same reason, if one is found."""
        first = min(start + _MAGICS, len(raw))
        known = batch.problem()
        self.noise[DamageKind.BAD_BODY] += len(raw) - first
        for attempt in range(_TRIES):
            raw[first:] = self._noise.bytes_at(batch.position + start, len(raw) - first, attempt)
            if Batch.parse(bytes(raw), batch.position, is_valid=True).problem() == known:
                break
        return _seal(raw, batch.magic)

    def _legacy(self, batch: Batch) -> bytes:
        raw = bytearray(batch.raw)
        if batch.codec == Codec.NONE:
            self._entry(raw, 0, len(raw))
            return _seal(raw, batch.magic)
        value = wrapper_value(memoryview(batch.raw))
        key, at = _read_sized(batch.raw, _KEY_LENGTHS[min(batch.magic, 1)].position)
        if key:
            raw[at - len(key) : at] = self._records.record(key, None)[0] or b""
        start = at + LENGTH.size if value is None else len(raw) - len(value)
        opened = batch.body
        if value is None or opened.failure is not None or not batch.raw.endswith(bytes(value)):
            return self._as_bad(batch, raw, start)
        entries, at = bytearray(opened.data), 0
        while (
            len(entries) - at > LOG_OVERHEAD
            and 0 < (size := LOG_OVERHEAD + size_field(entries, at)) <= len(entries) - at
        ):
            self._entry(entries, at, at + size)
            at += size
        torn = min(at + ENTRY_V0_ATTRIBUTES.end, len(entries))  # the numbers of an entry that is cut short
        entries[torn:] = self._noise.bytes_at(batch.position, len(entries) - torn)
        try:
            packed = compress(batch.codec, bytes(entries), magic=batch.magic)
        except RecordError:
            return self._as_bad(batch, raw, start)
        raw[start - LENGTH.size :] = LENGTH.pack(len(packed)) + packed
        raw[SIZE_POSITION : SIZE_POSITION + LENGTH.size] = LENGTH.pack(len(raw) - LOG_OVERHEAD)
        return _seal(raw, batch.magic)

    def _entry(self, entries: bytearray, start: int, end: int) -> None:
        """Replace key and value of a log entry where they stand; a wrong checksum stays wrong by the same bits."""
        self.records += 1
        raw = bytes(entries[start:end])
        magic = 1 if raw[MAGIC_POSITION] == 1 else 0
        wrong = (ENTRY_V0_CRC.read(raw) ^ checksum(raw, 0)) & _UINT32
        key, at = _read_sized(raw, _KEY_LENGTHS[magic].position)
        value, value_end = _read_sized(raw, at)
        replaced = bytearray(raw)
        if value_end < len(raw) and not _is_likely(raw, magic, has_key=key is not None):
            key, value, at, value_end = None, None, 0, ENTRY_V0_ATTRIBUTES.end
        new_key, new_value = self._records.record(key, value)
        if new_key and key:
            replaced[at - len(key) : at] = new_key
        if new_value and value:
            replaced[value_end - len(value) : value_end] = new_value
        replaced[value_end:] = self._noise.bytes_at(start, len(raw) - value_end)
        ENTRY_V0_CRC.write(replaced, checksum(replaced, 0) ^ wrong)
        entries[start:end] = replaced


_LEAST_LENGTH = -256
"""The least length of a key that is taken for a wrong number, not for four bytes of somebody's content."""


def _is_likely(raw: bytes, magic: int, *, has_key: bool) -> bool:
    """Return True if an unreadable entry has the fields of its magic; otherwise its bytes are pieces of content."""
    length = _KEY_LENGTHS[magic]
    is_null = not has_key and length.end <= len(raw) and _LEAST_LENGTH <= length.read(raw) < 0
    return (has_key or is_null) and (magic == 0 or 0 <= ENTRY_V1_TIMESTAMP.read(raw) < LATEST_MS)


def _kept(kind: DamageKind, head: bytes) -> Iterator[tuple[int, int]]:
    """Yield ranges of a damage's first bytes that stay: numbers of a header."""
    if kind in (DamageKind.TORN_TAIL, DamageKind.BAD_CRC):
        if len(head) <= MAGIC_POSITION:
            return  # too few bytes for a header, whatever they are
        magic = head[MAGIC_POSITION]
        yield 0, {1: ENTRY_V1_TIMESTAMP.end, 2: BATCH_HEADER_SIZE}.get(magic, ENTRY_V0_ATTRIBUTES.end)
    elif kind in (DamageKind.BAD_LENGTH, DamageKind.BAD_MAGIC):
        yield SIZE_POSITION, SIZE_POSITION + LENGTH.size
        yield MAGIC_POSITION, MAGIC_POSITION + 1
    elif kind is DamageKind.FOREIGN_CONTENT:
        yield 0, _LIKENESS


def _read_sized(raw: bytes, at: int) -> tuple[bytes | None, int]:
    """A key or value after its length, and where it ends, or None for null, and for one that doesn't fit."""
    if at + LENGTH.size > len(raw):
        return None, at
    size = LENGTH.read(raw, at)
    at += LENGTH.size
    return (None, at) if not 0 <= size <= len(raw) - at else (raw[at : at + size], at + size)


def _end_of_records(body: bytes, count: int) -> int:
    """Return the end of the first records of a v2 body."""
    at = 0
    for _ in range(count):
        number, at = read_uvarint(body, at, LONGEST_VARINT)
        at += number >> 1
    return at


def checksum(raw: bytes | bytearray, magic: int) -> int:
    """Compute the checksum of a batch or entry, as a number without sign."""
    found = crc_function(2 if magic == 2 else 0)(memoryview(raw)[checksum_of(magic).covers_from :], 0)
    return found & _UINT32


def _seal(raw: bytearray, magic: int) -> bytes:
    """The bytes of a batch with the length and the checksum that they have."""
    raw[SIZE_POSITION : SIZE_POSITION + LENGTH.size] = LENGTH.pack(len(raw) - LOG_OVERHEAD)
    checksum_of(magic).field.write(raw, checksum(raw, magic))
    return bytes(raw)
