"""Locations that a user names, and what a store of objects can do."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from kseg.errors import OpenError, UsageError, counted, quoted, without_secrets
from kseg.formats.file_names import FileKind, parse_file_name

STANDARD_INPUT = "-"
ASIDE = ".tmp"
"""Ends the names of files that are being written whole, to be renamed or linked to."""
ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst", ".zip")
"""Names of archives, which are used like directories: `bundle.tar.gz/orders-0` is a partition."""
COMPRESSED = (".gz", ".zst")
"""Names of Kafka's files that are compressed one by one: `00000000000000000000.log.gz`."""
MAX_UNPACKED = 16 << 30
"""The most bytes unpacked from archives and standard input, if no other limit is given."""
SHARE_OF_FREE = 0.25
"""And no more than this share of the free space in the temporary directory."""


def leads_inside(path: str) -> bool:
    """Whether a path is `-`, a compressed file, or may lead into an archive, by its name; opens nothing."""
    if path == STANDARD_INPUT or is_compressed_file(path):
        return True
    return any(part.lower().endswith(ENDINGS) for part in path.split("/"))


def is_compressed_file(path: str) -> bool:
    """Whether a path is one of Kafka's files, compressed, by its name."""
    name, ending = os.path.splitext(path)  # noqa: PTH122
    return ending in COMPRESSED and parse_file_name(name).kind is not FileKind.UNKNOWN


def split_path(path: str) -> tuple[str | None, str]:
    """The archive that a path leads into, and the path in it; None and the path itself if there is none."""
    parts = path.split("/")
    for count, part in enumerate(parts, 1):
        prefix = "/".join(parts[:count])
        if part.lower().endswith(ENDINGS) and os.path.isfile(prefix):  # noqa: PTH113
            return prefix, "/".join(inner for inner in parts[count:] if inner not in ("", "."))
    return None, path


def is_pattern(path: str) -> bool:
    """Whether a path has characters that mean others in a shell's globs; a URL is never one."""
    return "://" not in path and not set(path).isdisjoint("*?[")


def matching_paths(path: str) -> list[str]:
    """The paths that a glob which the shell left alone matches, sorted, `**` for directories below directories.

    The path itself if it is none, is there as it stands, or matches nothing.
    """
    if not is_pattern(path) or os.path.lexists(path):
        return [path]
    return matches(path) or [path]


def matches(pattern: str, folder: str = "") -> list[str]:
    """The paths that a glob matches, sorted; below a folder, given with its slash, if there is one.

    `**` follows no links, as in bash: these may lead in circles.
    """
    return sorted(set(_matches(pattern, folder)))


def _matches(pattern: str, folder: str) -> Iterator[str]:
    from glob import glob

    parts = pattern.split("/")
    if "**" not in parts:
        for found in glob(pattern, root_dir=folder or None):  # noqa: PTH207  the text as the user would write it
            yield folder + found
        return
    at = parts.index("**")
    above, below = "/".join([*parts[:at], ""]), "/".join(parts[at + 1 :])
    for top in _matches(above, folder) if above else [folder]:
        for each in _folders(top):
            yield from _matches(below or "*", each)


def _folders(top: str) -> Iterator[str]:
    """A folder and those below it, each with its slash; without hidden ones, which globs don't match."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        yield folder
        with suppress(OSError), os.scandir(folder or ".") as entries:
            below = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
            waiting += [f"{folder}{name}/" for name in below if not name.startswith(".")]


class StoreKind(StrEnum):
    """Whose protocol a URL's scheme means."""

    S3 = "Amazon S3"
    GCS = "Google Cloud Storage"
    AZURE = "Azure Blob Storage"
    HTTP = "HTTP"
    HDFS = "HDFS"


_KINDS = {
    **dict.fromkeys(("s3", "s3a", "s3n"), StoreKind.S3),
    **dict.fromkeys(("gs", "gcs"), StoreKind.GCS),
    **dict.fromkeys(("az", "azure", "abfs", "abfss", "wasb", "wasbs"), StoreKind.AZURE),
    **dict.fromkeys(("http", "https"), StoreKind.HTTP),
    **dict.fromkeys(("hdfs", "viewfs", "webhdfs"), StoreKind.HDFS),
}
_NAMED = {StoreKind.AZURE: "container", StoreKind.HTTP: "host", StoreKind.HDFS: "NameNode"}
"""What a URL names first, if that is no bucket."""
_NAMES = {
    StoreKind.S3: r"[\w.-]*[\w-][\w.-]*",
    StoreKind.GCS: r"[\w.:-]*[\w-][\w.:-]*",
    StoreKind.AZURE: r"[\w$.-]*[\w-](@[\w.-]+)?",
}
"""What their names are made of."""
_HOST = r"(?:[!-?A-~]*@)?([\w.-]+|\[[\da-f:.]+\])(?::(\d{0,5}))?"
_NUMBER = r"(?:.*\.)?(?:\d+|0x[\da-f]*)\.?"
"""Hosts that end so are addresses, if they are anything."""
_LARGEST_PORT = 65535
_IN_NO_KEY = r"[\x00-\x1f\x7f\ud800-\udfff]|(?:^|/)\.\.?(?:/|$)"
"""What obstore takes for no key."""
_IN_AZURE = (".blob.core.windows.net", ".dfs.core.windows.net")


class StoreUrl(NamedTuple):
    """A URL of a store, parsed.

    root: the URL of all its files. bucket: of S3 and GCS, Azure's container, the host of others. account: Azure's, if
    the URL names it. key: of a file, or of a folder without the slash after it.
    """

    kind: StoreKind
    root: str
    bucket: str
    key: str = ""
    account: str | None = None

    @property
    def has_buckets(self) -> bool:
        """Whether it is a store of objects, with buckets: none where files are listed as directories' are."""
        return self.kind in (StoreKind.S3, StoreKind.GCS, StoreKind.AZURE)


def parse_url(url: str) -> StoreUrl:
    """What a URL means. Raises UsageError if it names no store that kseg knows, or has a password or a key."""
    if without_secrets(url) != url:
        raise UsageError("has a password: take it out, and give credentials by the environment or a profile", url)
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    authority, _, path = rest.partition("/")
    kind = _KINDS.get(scheme)
    if kind is None:
        raise UsageError(f"kseg knows no store of the scheme {scheme!r}", url)
    if not authority:
        what = _NAMED.get(kind, "bucket")
        raise UsageError(f"names no {what}: {scheme}://{what.upper()}/PREFIX", url)
    root, key = f"{scheme}://{authority}", path.strip("/")
    _check_names(kind, authority, key, url)
    host = urlsplit(url).hostname or ""
    if host.endswith(_IN_AZURE) and kind in (StoreKind.AZURE, StoreKind.HTTP):
        account = host.partition(".")[0]
        container, _, key = (authority.partition("@")[0] + "/" + key if "@" in authority else key).partition("/")
        root = root if "@" in authority else f"{root}/{container}"
        return StoreUrl(StoreKind.AZURE, root, container, key, account)
    return StoreUrl(kind, root, authority, key)


def _check_names(kind: StoreKind, authority: str, key: str, url: str) -> None:
    """Raises UsageError for names that can't be: obstore's Rust panics at some of them, and prints that it does."""
    pattern = _NAMES.get(kind)
    if not (is_host(authority) if pattern is None else re.fullmatch(pattern, authority, re.ASCII)):
        raise UsageError(f"{quoted(authority)} can't be the name of a {_NAMED.get(kind, 'bucket')}: correct it", url)
    if kind is not StoreKind.HDFS and re.search(_IN_NO_KEY, key):
        raise UsageError("has a control character, . or .. in its path, as no object that kseg reads: correct it", url)


def is_host(text: str) -> bool:
    """Whether a text can stand before a URL's path: a host, perhaps with a user and a port."""
    found = re.fullmatch(_HOST, text, re.IGNORECASE)
    if found is None or int(found[2] or 0) > _LARGEST_PORT:
        return False
    if not found[1].startswith("[") and not re.fullmatch(_NUMBER, found[1], re.IGNORECASE):
        return True
    from ipaddress import ip_address

    with suppress(ValueError):
        return bool(ip_address(found[1].strip("[]")))
    return False


def is_remote(path: str) -> bool:
    """Whether a path is a URL."""
    return "://" in path


def without_file_scheme(path: str) -> str:
    """A path as it is, or the one that a file:// URL names."""
    return unquote(urlsplit(path).path) if path[:7].lower() == "file://" else path


def checked_path(path: str) -> str:
    """A path as it is; a URL with small letters in its scheme. Raises UsageError for a URL that can't be."""
    scheme, is_url, rest = path.partition("://")
    if not is_url or not scheme.isalnum() or os.path.lexists(path):
        return path
    if scheme.lower() != "file":
        parse_url(path)
    return f"{scheme.lower()}://{rest}"


class StoredObject(NamedTuple):
    """An object as it was listed: its key below the store's root, bytes, milliseconds since 1970 of its last change."""

    key: str
    size: int
    modified_ms: int


class StoredBytes(Protocol):
    """The bytes of an object."""

    def read(self, start: int, end: int) -> bytes:
        """Bytes of it, fewer where it ends.

        Raises OSError if it can't be read, or has changed since it was read first; ClusterError if the store fails.
        """


class ObjectStore(Protocol):
    """Objects below one root.

    name: the root as the user gave it; address: all of it, which objects' names go on. is_near: whether each read costs
    so little that many may be made where one would do.
    """

    name: str
    address: str
    is_near: bool

    def objects(self) -> Iterator[StoredObject]:
        """All of them. Raises OpenError or ClusterError if they can't be listed."""

    def read(self, key: str, start: int, end: int) -> bytes:
        """Bytes of an object that is read once. Raises as StoredBytes."""

    def open(self, key: str, size: int | None = None) -> StoredBytes:
        """An object to read from again and again. Asks for nothing yet.

        size: how many bytes it was listed with; one that has others by then is refused, where the store tells.
        """


class ReadByKey:
    """An object of a store that keeps nothing of it between reads."""

    def __init__(self, store: ObjectStore, key: str) -> None:
        self._store, self._key = store, key

    def read(self, start: int, end: int) -> bytes:
        """See StoredBytes."""
        return self._store.read(self._key, start, end)


def place_of(store: ObjectStore, key: str) -> str:
    """Where an object lies, for messages."""
    return f"{store.name.rstrip('/')}/{key}" if key else store.name


class DirectoryStore:
    """Objects that are files below a directory; symbolic links to directories aren't followed."""

    is_near = True

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.name = str(root)
        self.address = self._root = os.path.abspath(root)  # noqa: PTH100  without following links

    def objects(self) -> Iterator[StoredObject]:
        """See ObjectStore."""
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(os.path.join(self._root, folder)) as entries:  # noqa: PTH118  many of them
                    found = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                raise OpenError(f"can't be listed: {error.strerror}", place_of(self, folder)) from error
            for entry in found:
                key = f"{folder}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{key}/")
                elif entry.is_file():
                    status = entry.stat()
                    yield StoredObject(key, status.st_size, status.st_mtime_ns // 1_000_000)

    def open(self, key: str, size: int | None = None) -> StoredBytes:
        """See ObjectStore."""
        return ReadByKey(self, key)

    def read(self, key: str, start: int, end: int) -> bytes:
        """See ObjectStore."""
        descriptor = os.open(os.path.join(self._root, key), os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))  # noqa: PTH118
        try:
            pieces: list[bytes] = []
            while start < end and (piece := os.pread(descriptor, end - start, start)):
                pieces.append(piece)
                start += len(piece)
        finally:
            os.close(descriptor)
        return b"".join(pieces)


def broken(reason: str) -> OSError:
    """The error of bytes that are there and aren't what they should be."""
    return OSError(errno.EIO, reason)


def require_all(found: bytes, size: int) -> None:
    """Raises OSError if a store gave fewer or more bytes than were asked for: they may be no part of the file."""
    if len(found) != size:
        raise OSError(
            f"{counted(len(found), 'byte')} came instead of {size}: the connection broke, or the file has changed"
        )
