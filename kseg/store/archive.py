"""Unpacking of archives and standard input, as far as a user's paths need it.

No member of an archive decides where its content is written. A limit bounds the unpacked bytes.
"""

import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import takewhile
from pathlib import PurePosixPath
from typing import IO, BinaryIO, cast

from kseg.errors import OpenError, UsageError, plural
from kseg.formats.codes import MAGIC_POSITION, stored_offset
from kseg.formats.file_names import (
    KIND_OF_NAME,
    KINDS_WITH_OFFSET,
    FileKind,
    parse_file_name,
    parse_partition_directory,
)
from kseg.formats.foreign import ARCHIVES
from kseg.store.archive_members import (
    MOST_READ,
    TAR_MAGIC_END,
    CutError,
    Member,
    compressed_start,
    is_archive,
    is_zip,
    opened_compressed,
    opened_member,
    read_members,
    read_piece,
)
from kseg.store.location import (
    MAX_UNPACKED,
    SHARE_OF_FREE,
    STANDARD_INPUT,
    is_compressed_file,
    is_pattern,
    matches,
    split_path,
)
from kseg.system.files import open_regular
from kseg.system.new_directory import scratch_directory, temporary_place
from kseg.system.placed_path import PlacedPath, Placement, StrPath

MOST_MEMBERS = 1 << 20
MOST_DIRECTORIES = 1 << 17
"""The most directories made for one archive: a few bytes can name many more."""
MOST_LEVELS = 64
"""The most directories above a member."""
_BLOCK = 1 << 12
"""Size of a block in bytes; a block of zeros becomes a hole."""


class ArchiveError(OpenError):
    """The error of an archive that can't be read or must not be unpacked."""


class Inputs:
    """A context manager that turns a user's paths into readable ones, and removes everything it unpacked at its end.

    problems: errors of paths that couldn't be unpacked while others could.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        max_unpacked: int | None = None,
        standard_input: BinaryIO | None = None,
        input_name: str = "log",
        beside: str = "",
    ) -> None:
        """Prepare the inputs without unpacking anything.

        Args:
            say: is called with each problem.
            max_unpacked: the most bytes unpacked from all archives. None means MAX_UNPACKED or, if less, SHARE_OF_FREE
                of the temporary directory's free space when the first archive is unpacked.
            standard_input: the stream for `-`.
            input_name: the content of standard input, unless it is an archive: a FileKind, or a complete name of a
                Kafka file.
            beside: a partition that is unpacked too if it is next to one that is read.
        """
        self._say = say
        self._max_unpacked = max_unpacked
        self._left = self._limit = 0
        self._standard_input = standard_input
        self._input_name = input_name
        self._beside = beside
        self._stack = ExitStack()
        self._scratch: Placement | None = None
        self._unpacked: dict[tuple[str, str], str] = {}
        self._directories: dict[str, str] = {}
        self._count = 0
        self._made = 0
        self.problems = 0

    def __enter__(self) -> "Inputs":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def is_used(self) -> bool:
        """True if anything was unpacked."""
        return self._scratch is not None

    def local(self, path: StrPath) -> StrPath:
        """Return the path to read, unpacking it if it leads into an archive, is a compressed file, or is `-`.

        Raises:
            ArchiveError: it isn't an archive, leads out of the archive, or is larger than the limit.
            OpenError: it can't be opened, or the archive doesn't have the file.
            UsageError: `input_name` isn't valid.
        """
        name = os.fspath(path)
        if name == STANDARD_INPUT:
            return self._placed_path(self._from_standard_input())
        archive, inner = split_path(name)
        if archive is None:
            is_file = is_compressed_file(name) and os.path.isfile(name)  # noqa: PTH113
            return self._placed_path(self._of_compressed_file(name)) if is_file else path
        directory = self._directory_of(archive, _needed_directory(inner))
        local = f"{directory}/{inner}" if inner else _innermost(directory)
        if not os.path.lexists(local):
            raise OpenError("isn't in the archive, or isn't a Kafka file", path)
        return self._placed_path(local)

    def all_local(self, path: StrPath) -> list[StrPath]:
        """Return the paths to read, as `local` does; the path may be a glob inside an archive.

        Also raises OpenError if nothing matches.
        """
        archive, inner = split_path(os.fspath(path))
        if archive is None or not is_pattern(inner):
            return [self.local(path)]
        fixed = "/".join(takewhile(lambda part: not is_pattern(part), inner.split("/")))
        directory = self._directory_of(archive, fixed)
        if os.path.lexists(f"{directory}/{inner}"):
            return [self._placed_path(f"{directory}/{inner}")]
        found = matches(inner, f"{directory}/")
        if not found:
            raise OpenError("no member of the archive matches", path)
        return [*map(self._placed_path, found)]

    def refuse(self, error: OpenError) -> None:
        """Report a path that can't be read while others can."""
        self._problem(str(error))

    def _directory_of(self, archive: str, needed: str) -> str:
        """Unpack an archive as far as needed and return the directory."""
        if (archive, needed) not in self._unpacked:
            descriptor, _ = open_regular(archive)
            with os.fdopen(descriptor, "rb") as file:
                self._unpacked[archive, needed] = self._unpack(file, archive, needed)
        return self._unpacked[archive, needed]

    def _of_compressed_file(self, path: str) -> str:
        """Decompress a file into a directory with its parent's name, next to others from there, and return its path."""
        if (path, "") not in self._unpacked:
            target = self._target_of(path)
            descriptor, _ = open_regular(path)
            with os.fdopen(descriptor, "rb") as file:
                self._decompress(file, target, path)
                _set_time(target, os.fstat(file.fileno()).st_mtime)
            self._unpacked[path, ""] = target
        return self._unpacked[path, ""]

    def _target_of(self, path: str) -> str:
        parent = os.path.dirname(path) or "."  # noqa: PTH120
        name = os.path.splitext(os.path.basename(path))[0]  # noqa: PTH119, PTH122
        directory = self._directories.get(parent)
        if directory is None or os.path.lexists(f"{directory}/{name}"):
            own = os.path.basename(os.path.realpath(parent)) or "root"  # noqa: PTH119
            directory = self._directories[parent] = f"{self._new_directory(parent)}/{own}"
            os.mkdir(directory)  # noqa: PTH102
            Placement(directory, parent, self._scratch)
        Placement(f"{directory}/{name}", path, self._scratch)
        return f"{directory}/{name}"

    def _decompress(self, file: BinaryIO, target: str, path: str) -> None:
        try:
            content = opened_compressed(file)
            with _new_file(target) as unpacked:
                self._copy(content, unpacked, path)
        except CutError as error:
            if not os.path.exists(target) or not os.path.getsize(target):  # noqa: PTH110, PTH202
                raise ArchiveError(f"can't be decompressed: {error}", path) from error
            self._problem(f"{path}: can't be read to its end ({error}); kseg reads the part before that")
        except OSError as error:
            raise ArchiveError(f"can't be unpacked into {temporary_place()}: {error.strerror}", path) from error

    def _placed_path(self, path: str) -> PlacedPath:
        assert self._scratch is not None
        return self._scratch.path / path

    def _new_directory(self, name: str) -> str:
        """Return a new, empty directory that messages show under the given name."""
        if self._scratch is None:
            root = str(self._stack.enter_context(scratch_directory()).resolve())
            self._scratch = Placement(root, "")
            self._left = self._limit = self._max_unpacked or _default_limit(root)
        self._count += 1
        directory = f"{self._scratch.root}/{self._count}"
        os.mkdir(directory)  # noqa: PTH102
        Placement(directory, name, self._scratch)
        return directory

    def _unpack(self, file: BinaryIO, name: str, needed: str) -> str:
        directory = self._new_directory(name)
        try:
            members = read_members(file, lambda size: self._spend(size, name))
            self._unpack_members(members, directory, name, needed)
        except CutError as error:
            if not os.listdir(directory):  # noqa: PTH208
                raise ArchiveError(f"can't be read as an archive: {error}", name) from error
            self._problem(f"{name}: can't be read to its end ({error}); kseg reads the part before that")
        except OSError as error:
            raise ArchiveError(f"can't be unpacked into {temporary_place()}: {error.strerror}", name) from error
        return directory

    def _unpack_members(self, members: Iterator[Member], directory: str, name: str, needed: str) -> None:
        self._made = 0
        for number, member in enumerate(members):
            if number >= MOST_MEMBERS:
                raise ArchiveError(
                    f"has more than {MOST_MEMBERS} members; specify a part of the archive, such as ARCHIVE/orders-0",
                    name,
                )
            inner = _inner_path(member.name, name)
            if inner is not None and member.is_file and inner.lower().endswith(ARCHIVES) and inner.startswith(needed):
                self._problem(f"{name}/{inner}: is an archive within an archive; unpack {name} first")
                continue
            if inner is None or not _is_needed(inner, needed, self._beside, is_directory=member.is_directory):
                continue
            target = f"{directory}/{inner}"
            if member.is_directory:
                self._make_directories(directory, inner, name)
            elif member.is_file:
                self._make_directories(directory, inner.rpartition("/")[0], name)
                try:
                    self._write(member, target, name)
                except CutError as error:
                    self._problem(f"{name}/{inner}: can't be read to its end: {error}")
            else:
                self._problem(f"{name}/{inner}: is a link or a device, so kseg doesn't unpack it")

    def _make_directories(self, directory: str, inner: str, name: str) -> None:
        """Make the missing directories down to a path in the archive."""
        missing: list[str] = []
        while inner and not os.path.isdir(f"{directory}/{inner}"):  # noqa: PTH112
            missing.append(f"{directory}/{inner}")
            inner = inner.rpartition("/")[0]
        if len(missing) > MOST_LEVELS:
            raise ArchiveError(f"is more than {MOST_LEVELS} directories deep, so kseg doesn't read this archive", name)
        self._made += len(missing)
        if self._made > MOST_DIRECTORIES:
            raise ArchiveError(
                f"has more than {MOST_DIRECTORIES} directories; specify a part of the archive, such as"
                " ARCHIVE/orders-0",
                name,
            )
        for path in reversed(missing):
            os.mkdir(path)  # noqa: PTH102

    def _write(self, member: Member, target: str, name: str) -> None:
        if member.size > self._left:
            raise self._too_large(name)
        with opened_member(member) as source, _new_file(target) as file:
            self._copy(source, file, name)
        _set_time(target, member.modified)

    def _copy(self, source: IO[bytes], target: BinaryIO, name: str) -> None:
        """Copy everything; blocks of zeros, as in preallocated indexes, become holes."""
        position = 0
        try:
            while piece := read_piece(source):
                self._spend(len(piece), name)
                if piece.count(0) < len(piece):
                    _write_content(piece, target, position)
                position += len(piece)
        finally:
            target.truncate(position)

    def _spend(self, size: int, name: str) -> None:
        """Count unpacked bytes, including those of skipped members."""
        self._left -= size
        if self._left < 0:
            raise self._too_large(name)

    def _too_large(self, name: str) -> ArchiveError:
        return ArchiveError(
            f"unpacks to more than {plural(self._limit, 'byte')}; raise --max-unpacked to read it", name
        )

    def _problem(self, text: str) -> None:
        self.problems += 1
        self._say(f"kseg: {text}")

    def _from_standard_input(self) -> str:
        key = (STANDARD_INPUT, "")
        if key not in self._unpacked:
            if self._standard_input is None:
                raise UsageError("standard input is closed; specify a file, or use a pipe")
            stream = io.BufferedReader(cast(io.RawIOBase, _PeekedStream(self._standard_input)), MOST_READ)
            try:
                first = stream.peek(TAR_MAGIC_END)
            except OSError as error:
                raise OpenError(f"can't be read: {error.strerror}", STANDARD_INPUT) from error
            content = compressed_start(first)
            if content is not None:
                name = _file_name(self._input_name, content)
                self._unpacked[key] = self._store(opened_compressed(cast(BinaryIO, stream)), name)
            elif is_zip(first):
                with open(self._store(stream, "stdin.zip"), "rb") as file:  # noqa: PTH123
                    self._unpacked[key] = _innermost(self._unpack(file, STANDARD_INPUT, ""))
            elif is_archive(first):
                self._unpacked[key] = _innermost(self._unpack(cast(BinaryIO, stream), STANDARD_INPUT, ""))
            else:
                self._unpacked[key] = self._store(stream, _file_name(self._input_name, first))
        return self._unpacked[key]

    def _store(self, stream: IO[bytes], file_name: str) -> str:
        # The directory is named like a partition's, so that commands on partitions accept it too.
        directory = self._new_directory(STANDARD_INPUT)
        path = f"{directory}/stdin-0/{file_name}"
        os.mkdir(os.path.dirname(path))  # noqa: PTH102, PTH120
        try:
            with _new_file(path) as file:
                self._copy(stream, file, STANDARD_INPUT)
        except CutError as error:
            self._problem(f"{STANDARD_INPUT}: can't be read to its end ({error}); kseg reads the part before that")
        except OSError as error:
            raise ArchiveError(f"can't be kept in {temporary_place()}: {error.strerror}", STANDARD_INPUT) from error
        Placement(path, STANDARD_INPUT, self._scratch)
        return path


class _PeekedStream:
    """A stream for io.BufferedReader that returns all requested bytes unless it ends."""

    closed = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer with the available bytes."""
        filled = 0
        while filled < len(buffer) and (piece := self._stream.read(len(buffer) - filled)):
            buffer[filled : filled + len(piece)] = piece
            filled += len(piece)
        return filled

    def flush(self) -> None:
        """Do nothing: the stream is read only."""

    def close(self) -> None:
        """Do nothing: standard input stays open."""


def _write_content(piece: bytes, target: BinaryIO, position: int) -> None:
    for at in range(0, len(piece), _BLOCK):
        block = piece[at : at + _BLOCK]
        if block.count(0) < len(block):
            target.seek(position + at)
            target.write(block)


def _innermost(directory: str) -> str:
    """Return the first directory with more than one entry.

    Archives often have everything in a folder of their own name, which may be like a partition's: `case-123`.
    """
    while len(names := os.listdir(directory)) == 1:  # noqa: PTH208
        inner = f"{directory}/{names[0]}"
        if not os.path.isdir(inner) or (parse_partition_directory(inner) is not None and not _has_directory(inner)):  # noqa: PTH112
            break
        directory = inner
    return directory


def _has_directory(path: str) -> bool:
    """Return True if a directory has another one in it, as no partition's has."""
    with os.scandir(path) as entries:
        return any(entry.is_dir(follow_symlinks=False) for entry in entries)


def _default_limit(directory: str) -> int:
    """Return the default limit of unpacked bytes, which leaves most of the file system free."""
    return min(MAX_UNPACKED, int(shutil.disk_usage(directory).free * SHARE_OF_FREE))


def _needed_directory(inner: str) -> str:
    """Return the directory that is needed to read a path: a file's parent, for the indexes next to the file."""
    path = PurePosixPath(inner)
    is_file = parse_file_name(path).kind is not FileKind.UNKNOWN
    return "" if not inner or (is_file and str(path.parent) == ".") else str(path.parent if is_file else path)


def _is_needed(inner: str, needed: str, beside: str, *, is_directory: bool) -> bool:
    """Return True if a member is one of Kafka's files, or next to them, below a needed directory.

    The checkpoints of the disk and the partition `beside` are needed too.
    """
    parent, _, name = inner.rpartition("/")
    if needed:
        disk = needed.rpartition("/")[0]
        if parent == disk and name in KIND_OF_NAME:
            return not is_directory
        wanted = (needed, f"{disk}/{beside}".lstrip("/") if beside else needed)
        if not any(inner == each or inner.startswith(f"{each}/") for each in wanted):
            return False
    if is_directory:
        return True  # an empty one may keep a broker from its start
    return parse_partition_directory(parent) is not None or parse_file_name(name).kind is not FileKind.UNKNOWN


def _inner_path(member: str, archive: str) -> str | None:
    """Return a member's path without `.`, or None for the archive's own directory.

    Raises ArchiveError if the path leads out of the archive.
    """
    parts = [part for part in member.split("/") if part not in ("", ".")]
    if member.startswith("/") or ".." in parts or "\0" in member:
        raise ArchiveError(
            f"its member {member!r} would be unpacked outside of it, so kseg doesn't read this archive", archive
        )
    return "/".join(parts) or None


@contextmanager
def _new_file(path: str) -> Iterator[BinaryIO]:
    """Yield a file to write; it replaces one of the same name that was unpacked before, as with `tar x`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        yield file


def _set_time(path: str, modified: float) -> None:
    if modified > 0:
        try:
            os.utime(path, (modified, modified))
        except (OSError, OverflowError):
            return  # the file system can't store it; the content is the same


def _file_name(wanted: str, first: bytes) -> str:
    """Return a file name for standard input. Raises UsageError if Kafka has no such file."""
    name = parse_file_name(wanted)
    if name.kind is not FileKind.UNKNOWN and "/" not in wanted:
        return wanted
    if wanted == FileKind.LOG:
        return f"{_base_offset(first):020}.log"
    if wanted in KINDS_WITH_OFFSET:
        return f"{0:020}.{wanted}"
    if wanted == FileKind.METADATA_SNAPSHOT:
        return f"{0:020}-{0:010}.checkpoint"
    if wanted == FileKind.OFFSET_CHECKPOINT:
        return "replication-offset-checkpoint"
    raise UsageError(
        f"--input-kind {wanted}: no such kind of file; specify {', '.join(KINDS_WITH_OFFSET)}, checkpoint, or"
        f" a complete file name"
    )


def _base_offset(first: bytes) -> int:
    """Return the first offset of a log, from its first header; 0 if that is impossible."""
    offset = stored_offset(first)
    return offset if len(first) > MAGIC_POSITION and offset >= 0 and first[MAGIC_POSITION] == 2 else 0
