"""Archives read member by member (.tar, .tar.gz, .tar.zst, .zip), and single files compressed by gzip or zstd."""

import io
import tarfile
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, BinaryIO, NamedTuple, cast

from kseg.errors import KsegError

MOST_READ = 1 << 20
"""The most bytes of a member in one read."""
TAR_MAGIC_END = 262
"""Number of bytes that `is_archive` needs to recognise a tar."""
_LARGEST_HEADER = 1 << 20
"""The most bytes for the names and attributes of one member of a tar."""
_TAR_READ = 1 << 16
"""Bytes of a tar in one read."""
_TAIL = 2 * _TAR_READ
_ZSTD_FED = 1 << 10
"""Bytes of zstd that are decompressed at once: no four bytes give more than a block of 128 KiB."""
_GZIP, _ZSTD, _TAR, _TAR_AT = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"ustar", 257
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_TYPE, _FILES = 0o170000, (0, 0o100000)
"""Bits of a member's mode in a zip: its type, and the type of a regular file."""
_NOT_READABLE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)
"""Errors that the libraries raise for truncated bytes and for other formats."""


class CutError(Exception):
    """The error of an archive that is truncated or corrupt."""


class Member(NamedTuple):
    """A member of an archive: a directory, a file or, if neither, a link or a device."""

    name: str
    size: int
    modified: float
    is_directory: bool
    is_file: bool
    open: Callable[[], IO[bytes]]


def is_archive(first: bytes) -> bool:
    """Return True if some bytes begin an archive; Kafka's logs begin differently."""
    return first.startswith((_GZIP, _ZSTD, *_ZIP)) or first[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR


def is_zip(first: bytes) -> bool:
    """Return True if some bytes begin a .zip, whose list of members is at its end."""
    return first.startswith(_ZIP)


def read_members(file: BinaryIO, spend: Callable[[int], None]) -> Iterator[Member]:
    """Yield the members of an archive in order; read each one before you request the next.

    `spend` is called with the number of bytes that were decompressed only to be skipped. Raises CutError where the rest
    of the archive can't be read.
    """
    try:
        yield from _members(file, spend)
    except KsegError:
        raise
    except _NOT_READABLE as error:
        raise CutError(_reason(error)) from error


def _members(file: BinaryIO, spend: Callable[[int], None]) -> Iterator[Member]:
    first = file.peek(_TAR_AT)[:4] if isinstance(file, io.BufferedReader) else b""
    if is_zip(first):
        yield from _zip_members(file)
    elif first.startswith(_GZIP):
        import gzip

        with gzip.GzipFile(fileobj=file) as stream:
            yield from _tar_members(cast(BinaryIO, stream), spend)
            while piece := stream.read(MOST_READ):  # the last read checks the checksum
                spend(len(piece))
    elif first.startswith(_ZSTD):
        yield from _tar_members(cast(BinaryIO, _ZstdStream(file)), spend)
    else:
        yield from _tar_members(file, spend)


def opened_compressed(file: BinaryIO) -> IO[bytes]:
    """Return the content of a compressed file, by its first bytes. Raises CutError for other formats."""
    try:
        first = file.peek(len(_ZSTD)) if isinstance(file, io.BufferedReader) else b""
    except OSError as error:
        raise CutError(_reason(error)) from error
    if first.startswith(_ZSTD):
        return cast(IO[bytes], _ZstdStream(file))
    if first.startswith(_GZIP):
        return cast(IO[bytes], _GzipStream(file))
    raise CutError("it doesn't begin like gzip or zstd")


def compressed_start(first: bytes) -> bytes | None:
    """Return the first decompressed bytes, or None if the input isn't gzip or zstd, or if it contains a tar."""
    if not first.startswith((_GZIP, _ZSTD)):
        return None
    try:
        start = read_piece(opened_compressed(cast(BinaryIO, io.BufferedReader(io.BytesIO(first), TAR_MAGIC_END))))
    except CutError:
        return None
    return None if is_archive(start) else start


class _GzipStream:
    """A decompressed stream of gzip members. If the file is truncated, all bytes before that point can be read."""

    def __init__(self, file: BinaryIO) -> None:
        import gzip

        self._file = gzip.GzipFile(fileobj=file)

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; none at the end."""
        return self._file.read1(size)


class _ZstdStream:
    """A decompressed stream of zstd frames; all bytes before a cut can be read."""

    def __init__(self, file: BinaryIO) -> None:
        import zstandard

        self._error = zstandard.ZstdError
        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._file = file
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._input = b""
        self._output = memoryview(b"")
        self._problem: ValueError | None = None

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer at the end. Raises ValueError if the stream is cut or isn't zstd."""
        pieces: list[memoryview] = []
        while size > 0 and (self._output or self._decompress()):
            pieces.append(self._output[:size])
            self._output = self._output[size:]
            size -= len(pieces[-1])
        if size > 0 and not pieces and self._problem is not None:
            raise self._problem
        return b"".join(pieces)

    def _decompress(self) -> bool:
        """Decompress until there is output; return False at the end and after an error."""
        while not self._output and self._problem is None:
            fed = self._input or self._file.read(_ZSTD_FED)
            if not fed:
                self._problem = ValueError("its last frame is truncated") if self._frame is not None else None
                return False
            frame = self._frame or self._new_frame()
            try:
                self._output = memoryview(frame.decompress(fed))
            except self._error as error:
                self._problem = ValueError(str(error))
                return False
            self._frame, self._input = (None, frame.unused_data) if frame.eof else (frame, b"")
        return self._problem is None


class _MeteredStream:
    """A stream that limits how many bytes the headers of a tar can read at once, whatever sizes they claim."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.allowed: int | None = None
        self._total = 0
        self._tail: deque[bytes] = deque()
        self._tail_size = 0

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer at the end."""
        if self.allowed is not None:
            self.allowed -= size
            if self.allowed < 0:
                raise ValueError(f"the header of a member is larger than {_LARGEST_HEADER} bytes")
        piece = self._stream.read(size)
        self._total += len(piece)
        self._tail.append(piece)
        self._tail_size += len(piece)
        while self._tail_size - len(self._tail[0]) >= _TAIL:
            self._tail_size -= len(self._tail.popleft())
        return piece

    def is_end(self, position: int) -> bool:
        """Return True if the block of zeros that ends a tar is at a position."""
        tail = b"".join(self._tail)
        at = position - self._total + len(tail)
        block = tail[at : at + tarfile.BLOCKSIZE] if at >= 0 else b""
        return len(block) == tarfile.BLOCKSIZE and not any(block)


def _tar_members(stream: BinaryIO, spend: Callable[[int], None]) -> Iterator[Member]:
    metered = _MeteredStream(stream)
    metered.allowed = _LARGEST_HEADER
    with tarfile.open(fileobj=cast(IO[bytes], metered), mode="r|", bufsize=_TAR_READ) as tar:
        info = _next_member(tar, metered)
        while info is not None:
            yield Member(
                info.name,
                info.size,
                info.mtime,
                info.isdir(),
                info.isreg(),
                partial(_content, tar, info),
            )
            metered.allowed = None
            _pass_over(tar, spend)
            info = _next_member(tar, metered)
        if not metered.is_end(tar.offset):
            # The library treats bytes that aren't a header as the end.
            raise ValueError(f"there is no header at position {tar.offset}")


def _content(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(info)
    if content is None:
        raise ValueError("it has no content")
    return content


def _pass_over(tar: tarfile.TarFile, spend: Callable[[int], None]) -> None:
    """Skip the rest of a member's content in small reads: it may be long."""
    stream = tar.fileobj
    assert stream is not None
    while (left := tar.offset - stream.tell()) > 0 and (piece := stream.read(min(left, MOST_READ))):
        spend(len(piece))


def _next_member(tar: tarfile.TarFile, metered: _MeteredStream) -> tarfile.TarInfo | None:
    metered.allowed = _LARGEST_HEADER
    try:
        found = tar.next()
    finally:
        metered.allowed = None
    tar.members.clear()  # type: ignore[attr-defined]
    return found


def _zip_members(file: BinaryIO) -> Iterator[Member]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            mode = info.external_attr >> 16
            is_link = mode & _TYPE not in _FILES
            yield Member(
                info.filename,
                info.file_size,
                0,
                info.is_dir(),
                not info.is_dir() and not is_link,
                partial(_zip_content, archive, info),
            )


def _zip_content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # For other formats the library would decompress everything that it reads at once.
        raise ValueError(
            f"is compressed by method {info.compress_type}, which kseg doesn't read; unpack it"
            f" with the program that packed it"
        )
    return archive.open(info)


@contextmanager
def opened_member(member: Member) -> Iterator[IO[bytes]]:
    """Yield a member's content. Raises CutError if it can't be opened."""
    try:
        source = member.open()
    except _NOT_READABLE as error:
        raise CutError(_reason(error)) from error
    with source:
        yield source


def read_piece(source: IO[bytes]) -> bytes:
    """Return the next bytes of a member's content, none at its end. Raises CutError if they can't be read."""
    try:
        return source.read(MOST_READ)
    except _NOT_READABLE as error:
        raise CutError(_reason(error)) from error


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
