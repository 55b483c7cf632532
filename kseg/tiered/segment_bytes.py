"""Bytes of remote segments: plain objects, or chunks that are compressed and encrypted."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from kseg.codecs.zstd import CODEC
from kseg.errors import FileError, OpenError, UsageError, missing_library, plural
from kseg.store.location import ObjectStore, content_error, place_of
from kseg.system.files import read_small

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

LARGEST_CHUNK = 1 << 28
"""The most bytes of a chunk, which is decrypted and decompressed at once; the plugin's README recommends 4 MiB."""
LARGEST_FILE = (1 << 31) - 1
"""The most bytes of a Kafka segment."""
MOST_CHUNKS = 1 << 18
"""The most chunks of a segment: enough for the largest segment in chunks of 8 KiB."""


@dataclass(frozen=True, slots=True)
class ChunkTable:
    """The chunks of a segment.

    chunk_size: bytes of each chunk but the last, before it was stored. size: bytes of the segment. stored_size,
    last_stored_size: of each chunk and of the last, if they are equal. ends: the end of each chunk in the object, if
    their sizes differ.
    """

    chunk_size: int
    size: int
    stored_size: int
    last_stored_size: int
    ends: Sequence[int] | None = None

    @property
    def count(self) -> int:
        """The number of chunks."""
        return -(-self.size // self.chunk_size)

    @property
    def total(self) -> int:
        """Bytes of all chunks in the object."""
        return self.stored_end(self.count - 1) if self.count else 0

    def stored_end(self, slot: int) -> int:
        """Return the end of a chunk in the object."""
        if self.ends is not None:
            return self.ends[slot]
        is_last = slot == self.count - 1
        return slot * self.stored_size + (self.last_stored_size if is_last else self.stored_size)

    def stored_start(self, slot: int) -> int:
        """Return the start of a chunk in the object."""
        return self.stored_end(slot - 1) if slot else 0

    def stored_size_of(self, slots: range) -> int:
        """Return the bytes of neighbouring chunks in the object."""
        return self.stored_end(slots[-1]) - self.stored_start(slots[0])

    def size_of(self, slot: int) -> int:
        """Return the bytes of a chunk before it was stored."""
        return min(self.chunk_size, self.size - slot * self.chunk_size)


def equal_chunks(chunk_size: int, size: int, stored_size: int, last_stored_size: int) -> ChunkTable:
    """Return the table of chunks with equal stored sizes. Raises KsegError for impossible numbers."""
    _check(chunk_size, size, (stored_size, last_stored_size))
    return ChunkTable(chunk_size, size, stored_size, last_stored_size)


def unequal_chunks(chunk_size: int, size: int, stored_sizes: Sequence[int]) -> ChunkTable:
    """Return the table of chunks with the given stored sizes. Raises KsegError for impossible numbers."""
    _check(chunk_size, size, stored_sizes)
    return ChunkTable(chunk_size, size, 0, 0, tuple(accumulate(stored_sizes)))


def chunk_count(chunk_size: int, size: int) -> int:
    """Return the number of a segment's chunks. Raises KsegError for impossible numbers."""
    _check(chunk_size, size, ())
    return -(-size // chunk_size)


def _check(chunk_size: int, size: int, stored_sizes: Sequence[int]) -> None:
    """Raise FileError for impossible sizes: with empty stored chunks, a small object would cost much time."""
    if not 0 < chunk_size <= LARGEST_FILE:
        raise FileError(f"chunks can't have {plural(chunk_size, 'byte')}")
    if not 0 <= size <= LARGEST_FILE:
        raise FileError(f"a segment can't have {plural(size, 'byte')}")
    if -(-size // chunk_size) > MOST_CHUNKS:
        raise FileError(f"the segment has {-(-size // chunk_size)} chunks; kseg reads up to {MOST_CHUNKS}")
    if size and min(stored_sizes, default=1) < 1:
        raise FileError(f"a stored chunk can't have {plural(min(stored_sizes), 'byte')}")


IV_SIZE = 12
TAG_SIZE = 16
SEAL_SIZE = IV_SIZE + TAG_SIZE
"""Bytes that encryption adds to a chunk: the IV before it and GCM's tag after it."""
LARGEST_PEM = 1 << 16
_KEY_SIZE = 32


@dataclass(frozen=True, slots=True)
class Seal:
    """The encryption of a segment: the key pair's id, the segment's encrypted key, and GCM's additional data."""

    key_id: str
    encrypted_key: bytes
    aad: bytes


class PrivateKeys:
    """Private keys by their ids, in PEM files that are read on first use."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = dict(files)
        self._read: dict[Path, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return PrivateKeys, (self._files,)

    def has(self, key_id: str) -> bool:
        """Return True if the private key of a pair was given."""
        return key_id in self._files

    def segment_key(self, seal: Seal) -> bytes:
        """Return a segment's own key.

        Raises OpenError if the private key wasn't given or doesn't fit, UsageError if its file holds none.
        """
        path = self._files.get(seal.key_id)
        if path is None:
            raise OpenError(
                f"is encrypted with the key {seal.key_id}; specify --private-key {seal.key_id}=FILE to decrypt it"
            )
        if path not in self._read:
            self._read[path] = read_private_key(path)
        key = _decrypt(self._read[path], seal.encrypted_key)
        if key is None or len(key) != _KEY_SIZE:
            raise OpenError(f"its key can't be decrypted with {path}, which isn't the private key {seal.key_id}")
        return key


def read_private_key(path: Path) -> Any:
    """Return the private key in a file as PyCryptodome's object.

    Raises UsageError if there is none, or without PyCryptodome.
    """
    try:
        from Crypto.PublicKey import RSA
    except ImportError as error:
        raise UsageError(missing_library("pycryptodome", "tiered")) from error
    try:
        key = RSA.import_key(read_small(path, LARGEST_PEM))
    except (ValueError, IndexError, TypeError) as error:
        raise UsageError("isn't an RSA key in PEM without a password", path) from error
    if not key.has_private():
        raise UsageError("is a public key; specify the private key of the pair", path)
    return key


def _decrypt(key: Any, content: bytes) -> bytes | None:
    """Decrypt RSA-OAEP with SHA3-512 for hash and MGF1; return None if another key encrypted the content."""
    from Crypto.Cipher import PKCS1_OAEP
    from Crypto.Hash import SHA3_512

    try:
        return PKCS1_OAEP.new(key, hashAlgo=SHA3_512).decrypt(content)
    except (ValueError, TypeError):
        return None


def decrypt_chunk(sealed: bytes, key: bytes, aad: bytes) -> bytes:
    """Return the content of an encrypted chunk. Raises OSError if its tag doesn't match."""
    from Crypto.Cipher import AES

    if len(sealed) < SEAL_SIZE:
        raise content_error(f"{plural(len(sealed), 'byte is', 'bytes are')} too few for AES-GCM")
    cipher = AES.new(key, AES.MODE_GCM, nonce=sealed[:IV_SIZE], mac_len=TAG_SIZE)
    cipher.update(aad)
    try:
        return cipher.decrypt_and_verify(sealed[IV_SIZE:-TAG_SIZE], sealed[-TAG_SIZE:])
    except ValueError as error:
        raise content_error(
            "the GCM tag doesn't match, so the bytes were changed, or belong to another segment"
        ) from error


READ_AHEAD = 8 << 20
"""The most bytes in one request of sequential reads."""
LEAST_FETCHED = 64 << 10
"""The fewest bytes in one request, unless that needs another chunk: smaller requests take as long."""
MOST_TOGETHER = 64 << 20
"""The most stored bytes in one request of several chunks; a larger number is fetched one chunk at a time."""
KEPT = 16 << 20
"""Bytes of an object's chunks that are kept, since a search returns to them."""
KEPT_IN_ALL = 128 << 20
"""Bytes that are kept of all objects in a command's tiers; the least recently read are released."""


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A file, or a piece of one, in an object: its start there, and its bytes before they were stored.

    chunks: None if it is stored unchanged. seal: None if it isn't encrypted. object_size: bytes of the object as
    listed; None if unknown.
    """

    key: str
    start: int
    size: int
    chunks: ChunkTable | None = None
    is_compressed: bool = False
    seal: Seal | None = None
    object_size: int | None = None

    @property
    def is_as_it_was(self) -> bool:
        """True if the stored bytes are the file's own."""
        return not self.is_compressed and self.seal is None

    def missing_before(self, end: int) -> int:
        """Return how many of the stored bytes before `end` are missing in the object."""
        return 0 if self.object_size is None else max(self.start + end - self.object_size, 0)


class _ByteKeeper(Protocol):
    """An object that keeps fetched bytes."""

    @property
    def kept_size(self) -> int:
        """Bytes that are kept."""

    def release(self) -> None:
        """Release all kept bytes."""


class LastRead:
    """The recently read objects: the others keep nothing, so that a bucket doesn't fill the memory."""

    def __init__(self) -> None:
        self._sizes: OrderedDict[_ByteKeeper, int] = OrderedDict()
        self._total = 0
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return LastRead, ()  # another process keeps its own bytes

    def note(self, read: _ByteKeeper) -> None:
        """Note that an object was read, and release the least recently read ones."""
        released = []
        with self._lock:
            self._total += read.kept_size - self._sizes.pop(read, 0)
            self._sizes[read] = read.kept_size
            while self._total > KEPT_IN_ALL and len(self._sizes) > 1:
                oldest, size = self._sizes.popitem(last=False)
                self._total -= size
                released.append(oldest)
        for each in released:
            each.release()


class FetchedObject:
    """An object's bytes up to an end, fetched by ranges, which grow while reads are sequential.

    When they have reached their largest size, the next range is fetched ahead, unless the store is near.
    """

    def __init__(self, store: ObjectStore, part: StoredPart, end: int) -> None:
        self._file, self._end = store.open(part.key, part.object_size), end
        self._start, self._held = 0, b""
        self._ahead = 0
        self._is_far = not store.is_near
        self._pool: ThreadPoolExecutor | None = None
        self._coming: tuple[int, Future[bytes]] | None = None

    def read(self, start: int, end: int, most: int = 0) -> bytes:
        """Return bytes of the object, fewer at its end. Raises OSError if they can't be read.

        most: the end of the range that is fetched if these bytes must be fetched.
        """
        held_end = self._start + len(self._held)
        if not (self._start <= start and end <= held_end):
            follows = bool(self._held) and self._start <= start <= held_end
            self._ahead = min(2 * self._ahead or len(self._held), READ_AHEAD) if follows else 0
            kept = self._held[start - self._start :] if follows else b""
            self._start, self._held = start, kept  # old bytes make room first
            first = start + len(kept)
            fetched = self._take_fetched_ahead(first)
            if first + len(fetched) < end:
                fetched += self._file.read(first + len(fetched), max(end, most, start + self._ahead))
            self._held = kept + fetched
            self._fetch_ahead(first + len(fetched))
        return self._held[start - self._start : end - self._start]

    def _take_fetched_ahead(self, start: int) -> bytes:
        """Return the bytes fetched ahead, if they begin at `start`; else none."""
        coming, self._coming = self._coming, None
        if coming is None or coming[0] != start:
            return b""
        from kseg.system.run_usage import result_of

        return result_of(coming[1])

    def _fetch_ahead(self, start: int) -> None:
        """Start fetching the bytes from `start` on, if all reads so far were sequential."""
        if self._is_far and self._ahead >= READ_AHEAD and start < self._end:
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(1)
            self._coming = start, self._pool.submit(self._file.read, start, min(start + READ_AHEAD, self._end))

    @property
    def kept_size(self) -> int:
        """Bytes that are kept."""
        return len(self._held)

    def release(self) -> None:
        """Release all kept bytes."""
        self._held, self._ahead, self._coming = b"", 0, None
        if self._pool is not None:  # a run may read thousands of logs, each with a thread
            self._pool.shutdown(wait=False)
            self._pool = None


class StoredBytes:
    """The bytes of a part that is stored unchanged. size: fewer than the part's if the object is truncated."""

    def __init__(self, store: ObjectStore, part: StoredPart, last_read: LastRead, size: int | None = None) -> None:
        self.size = part.size if size is None else size
        self._store, self._part, self._place = store, part, place_of(store, part.key)
        self._last_read = last_read
        self._object = FetchedObject(store, part, part.start + part.size)
        self._is_small = self.size <= LEAST_FETCHED and not store.is_near and not part.missing_before(self.size)
        self._lock = Lock()  # threads of a server share the object

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredBytes, (self._store, self._part, self._last_read, self.size)  # another process fetches for itself

    def check(self) -> None:
        """Do nothing: no key or codec is needed."""

    def read(self, position: int, size: int) -> bytes:
        """See RangedBytes."""
        start, end = self._part.start + position, self._part.start + min(position + size, self.size)
        if start >= end:
            return b""
        if self._part.missing_before(position + 1):
            raise content_error(f"{self._place} ends before byte {start}, so it was truncated")
        most = min(self.stretch_end(position), position + LEAST_FETCHED, self.size) + self._part.start
        with self._lock:
            if self._is_small:
                self._object.read(self._part.start, self._part.start + self.size)
            found = self._object.read(start, end, most)
        self._last_read.note(self)
        if not found:
            raise content_error(f"{self._place} ends before byte {start}, so it was truncated")
        return found

    @property
    def kept_size(self) -> int:
        """Bytes that are kept."""
        return self._object.kept_size

    def release(self) -> None:
        """Release all kept bytes."""
        with self._lock:
            self._object.release()

    def stretch_end(self, position: int) -> int:
        """See RangedBytes."""
        if self._part.chunks is None or self._part.missing_before(position + 1):
            return self.size
        return (position // self._part.chunks.chunk_size + 1) * self._part.chunks.chunk_size


class ChunkedBytes:
    """The bytes of a part in chunks, each encrypted or compressed on its own."""

    def __init__(
        self, store: ObjectStore, part: StoredPart, keys: PrivateKeys, last_read: LastRead, size: int | None = None
    ) -> None:
        assert part.chunks is not None
        self.size = part.size if size is None else size
        self._store, self._part, self._chunks, self._keys = store, part, part.chunks, keys
        self._last_read = last_read
        self._place = place_of(store, part.key)
        self._object = FetchedObject(store, part, part.start + part.chunks.total)
        self._lock = Lock()  # threads of a server share the object
        self._key: bytes | None = None
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._broken: dict[int, str] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        own = self._store, self._part, self._keys, self._last_read, self.size
        return ChunkedBytes, own  # another process fetches for itself

    def check(self) -> None:
        """See RangedBytes."""
        if self._part.seal is not None and self._key is None:
            self._key = self._keys.segment_key(self._part.seal)

    def read(self, position: int, size: int) -> bytes:
        """See RangedBytes."""
        end = min(position + size, self.size)
        if position >= end:
            return b""
        step = self._chunks.chunk_size
        slots = range(position // step, -(-end // step))
        with self._lock:
            pieces = self._contents(slots)
        self._last_read.note(self)
        first = slots.start * step
        return b"".join(pieces)[position - first : end - first]

    def stretch_end(self, position: int) -> int:
        """See RangedBytes."""
        slot = position // self._chunks.chunk_size
        if slot < self._chunks.count and self._part.missing_before(self._chunks.stored_end(slot)):
            return self.size  # the chunks after it are missing too
        return (slot + 1) * self._chunks.chunk_size

    @property
    def kept_size(self) -> int:
        """Bytes that are kept."""
        return self._object.kept_size + len(self._kept) * self._chunks.chunk_size

    def release(self) -> None:
        """Release all kept bytes."""
        with self._lock:
            self._object.release()
            self._kept.clear()

    def _contents(self, slots: range) -> list[bytes]:
        missing = [slot for slot in slots if slot not in self._kept]
        for slot in missing:
            if slot in self._broken:
                raise content_error(self._broken[slot])
        if missing:
            together = range(missing[0], missing[-1] + 1)
            if self._chunks.stored_size_of(together) <= MOST_TOGETHER:
                self._fetch_chunks(together)  # one request for all of them
        return [self._content(slot) for slot in slots]

    def _fetch_chunks(self, slots: range) -> bytes:
        start = self._part.start + self._chunks.stored_start(slots[0])
        return self._object.read(start, start + self._chunks.stored_size_of(slots))

    def _content(self, slot: int) -> bytes:
        """Return a chunk's content and keep it. Raises OSError if the stored bytes are damaged."""
        if slot in self._kept:
            self._kept.move_to_end(slot)
            return self._kept[slot]
        try:
            content = self._decode_chunk(slot)
        except OSError as error:
            self._broken[slot] = f"{self._place}: chunk {slot + 1} of {self._chunks.count}: {error.strerror}"
            raise content_error(self._broken[slot]) from error
        self._kept[slot] = content
        while len(self._kept) > max(KEPT // self._chunks.chunk_size, 2):
            self._kept.popitem(last=False)
        return content

    def _decode_chunk(self, slot: int) -> bytes:
        alone = range(slot, slot + 1)
        expected, size = self._chunks.size_of(slot), self._chunks.stored_size_of(alone)
        if max(expected, size) > LARGEST_CHUNK:
            raise content_error(
                f"it has {plural(max(expected, size), 'byte')}; kseg decodes chunks of up to {LARGEST_CHUNK}"
            )
        missing = min(self._part.missing_before(self._chunks.stored_end(slot)), size)
        content = b"" if missing else self._fetch_chunks(alone)
        missing = missing or size - len(content)
        if missing:
            raise content_error(
                f"{missing} of its {plural(size, 'byte is', 'bytes are')} missing, so the object was truncated"
            )
        self.check()
        if self._part.seal is not None and self._key is not None:
            content = decrypt_chunk(content, self._key, self._part.seal.aad)
        if self._part.is_compressed:
            content = decompress(content, expected)
        if len(content) != expected:
            raise content_error(f"it has {plural(len(content), 'byte')}, expected {expected}")
        return content


def decompress(content: bytes, most: int) -> bytes:
    """Decompress a zstd frame. Raises OSError if it is damaged, or holds more than `most` bytes."""
    try:
        return CODEC.decompress(memoryview(content), most)
    except CODEC.errors() as error:
        raise content_error(f"isn't a zstd frame of up to {plural(most, 'byte')}") from error


def bytes_of(
    store: ObjectStore, part: StoredPart, keys: PrivateKeys, last_read: LastRead, size: int | None = None
) -> StoredBytes | ChunkedBytes:
    """Return the bytes of a part of an object, or its first `size` bytes."""
    if part.is_as_it_was:
        return StoredBytes(store, part, last_read, size)
    return ChunkedBytes(store, part, keys, last_read, size)
