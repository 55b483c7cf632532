"""Locations that a user names, and the interface of object stores."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from typing import Protocol

from kseg.errors import OpenError, UsageError, plural, quote, without_secrets
from kseg.formats.file_names import FileKind, parse_file_name
from kseg.named_tuple import NamedTuple

STANDARD_INPUT = "-"
ASIDE = ".tmp"
"""Suffix of files that are still being written; they are renamed or linked to their names when complete."""
ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst", ".zip")
"""Suffixes of archives, which are used like directories: `bundle.tar.gz/orders-0` is a partition."""
COMPRESSED = (".gz", ".zst")
"""Suffixes of Kafka's files that are compressed one by one: `00000000000000000000.log.gz`."""
MAX_UNPACKED = 16 << 30
"""The most bytes unpacked from archives and standard input by default."""
SHARE_OF_FREE = 0.25
"""The largest share of the temporary directory's free space that is unpacked by default."""


def leads_inside(path: str) -> bool:
    """Return True if the name of a path is `-`, a compressed file, or may lead into an archive; opens nothing."""
    if path == STANDARD_INPUT or is_compressed_file(path):
        return True
    return any(part.lower().endswith(ENDINGS) for part in path.split("/"))


def is_compressed_file(path: str) -> bool:
    """Return True if a path names one of Kafka's files, compressed."""
    name, ending = os.path.splitext(path)  # noqa: PTH122
    return ending in COMPRESSED and parse_file_name(name).kind is not FileKind.UNKNOWN


def split_path(path: str) -> tuple[str | None, str]:
    """Return the archive that a path leads into and the path in it; None and the path itself without an archive."""
    parts = path.split("/")
    for count, part in enumerate(parts, 1):
        prefix = "/".join(parts[:count])
        if part.lower().endswith(ENDINGS) and os.path.isfile(prefix):  # noqa: PTH113
            return prefix, "/".join(inner for inner in parts[count:] if inner not in ("", "."))
    return None, path


def is_pattern(path: str) -> bool:
    """Return True if a path has characters that are special in a shell's globs; a URL never has."""
    return "://" not in path and not set(path).isdisjoint("*?[")


def matching_paths(path: str) -> list[str]:
    """Return the sorted paths that match a glob. `**` matches nested directories.

    The result is the path itself if it isn't a glob, exists literally, or matches nothing.
    """
    if not is_pattern(path) or os.path.lexists(path):
        return [path]
    return matches(path) or [path]


def matches(pattern: str, folder: str = "") -> list[str]:
    """Return the sorted paths that match a glob.

    `**` follows no links, as in bash: they may form circles.
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
    """Yield a folder and all folders below it, each with its slash; skip hidden ones, which globs don't match."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        yield folder
        with suppress(OSError), os.scandir(folder or ".") as entries:
            below = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
            waiting += [f"{folder}{name}/" for name in below if not name.startswith(".")]


class StoreKind(StrEnum):
    """The kind of a store: the protocol of a URL's scheme."""

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
"""Names of the first part of a URL, for kinds without buckets."""
_NAMES = {
    StoreKind.S3: r"[\w.-]*[\w-][\w.-]*",
    StoreKind.GCS: r"[\w.:-]*[\w-][\w.:-]*",
    StoreKind.AZURE: r"[\w$.-]*[\w-](@[\w.-]+)?",
}
"""Patterns of valid bucket, container and host names by kind."""
_HOST = r"(?:[!-?A-~]*@)?([\w.-]+|\[[\da-f:.]+\])(?::(\d{0,5}))?"
_NUMBER = r"(?:.*\.)?(?:\d+|0x[\da-f]*)\.?"
"""Pattern of hosts whose last label is a number: they can only be IP addresses."""
_LARGEST_PORT = 65535
_IN_NO_KEY = r"[\x00-\x1f\x7f\ud800-\udfff]|(?:^|/)\.\.?(?:/|$)"
"""Pattern of characters and parts that obstore rejects in a key."""
_IN_AZURE = (".blob.core.windows.net", ".dfs.core.windows.net")


class StoreUrl(NamedTuple):
    """A URL of a store, parsed.

    root: the URL of all its files. bucket: the bucket of S3 and GCS, Azure's container, the host of other kinds.
    account: Azure's, if the URL names it. key: of a file, or of a folder without its final slash.
    """

    kind: StoreKind
    root: str
    bucket: str
    key: str = ""
    account: str | None = None

    @property
    def has_buckets(self) -> bool:
        """True for object stores, which have buckets; False for stores with directories."""
        return self.kind in (StoreKind.S3, StoreKind.GCS, StoreKind.AZURE)


def parse_url(url: str) -> StoreUrl:
    """Parse a URL. Raises UsageError if kseg knows no such store, or if the URL has a password or a key."""
    if without_secrets(url) != url:
        raise UsageError(
            "contains a password; remove it, and specify credentials by environment variables or a profile", url
        )
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    authority, _, path = rest.partition("/")
    kind = _KINDS.get(scheme)
    if kind is None:
        raise UsageError(f"kseg doesn't support stores of the scheme {scheme!r}", url)
    if not authority:
        what = _NAMED.get(kind, "bucket")
        raise UsageError(f"has no {what}; specify {scheme}://{what.upper()}/PREFIX", url)
    from urllib.parse import urlsplit

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
    """Raise UsageError for impossible names: obstore's Rust code panics at some of them, and prints the panic."""
    pattern = _NAMES.get(kind)
    if not (is_host(authority) if pattern is None else re.fullmatch(pattern, authority, re.ASCII)):
        raise UsageError(f"{quote(authority)} isn't a valid name of a {_NAMED.get(kind, 'bucket')}; correct it", url)
    if kind is not StoreKind.HDFS and re.search(_IN_NO_KEY, key):
        raise UsageError("has a control character, . or .. in its path, which kseg doesn't read; correct it", url)


def is_host(text: str) -> bool:
    """Return True if a text can precede a URL path: a host, perhaps with a user and a port."""
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
    """Return True if a path is a URL."""
    return "://" in path


def without_file_scheme(path: str) -> str:
    """Return the path of a file:// URL; other paths unchanged."""
    if path[:7].lower() != "file://":
        return path
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(path).path)


def checked_path(path: str) -> str:
    """Return a path unchanged, or a URL with its scheme in lower case. Raises UsageError for an invalid URL."""
    scheme, is_url, rest = path.partition("://")
    if not is_url or not scheme.isalnum() or os.path.lexists(path):
        return path
    if scheme.lower() != "file":
        parse_url(path)
    return f"{scheme.lower()}://{rest}"


class StoredObject(NamedTuple):
    """An object as listed: key below the store's root, size in bytes, last change in milliseconds since 1970."""

    key: str
    size: int
    modified_ms: int


class StoredBytes(Protocol):
    """The bytes of an object."""

    def read(self, start: int, end: int) -> bytes:
        """Return bytes of the object, fewer at its end.

        Raises OSError if the object can't be read, or has changed since its first read; ClusterError if the store
        fails.
        """


class ObjectStore(Protocol):
    """Objects below one root.

    name: the root as the user gave it. address: the complete URL or path, which precedes the objects' keys. is_near:
    whether a read costs so little that many small reads may replace a large one.
    """

    name: str
    address: str
    is_near: bool

    def objects(self) -> Iterator[StoredObject]:
        """Return all objects. Raises OpenError or ClusterError if they can't be listed."""

    def read(self, key: str, start: int, end: int) -> bytes:
        """Return bytes of an object that is read once. Raises the same errors as StoredBytes."""

    def open(self, key: str, size: int | None = None) -> StoredBytes:
        """Return an object for repeated reads, without a request yet.

        size: bytes of the object as listed. An object of another size is refused if the store reports its size.
        """


class ReadByKey:
    """An object of a store, read without a cache."""

    def __init__(self, store: ObjectStore, key: str) -> None:
        self._store, self._key = store, key

    def read(self, start: int, end: int) -> bytes:
        """See StoredBytes."""
        return self._store.read(self._key, start, end)


def place_of(store: ObjectStore, key: str) -> str:
    """Return the location of an object, for messages."""
    return f"{store.name.rstrip('/')}/{key}" if key else store.name


class DirectoryStore:
    """Files below a directory as objects; symbolic links to directories aren't followed."""

    is_near = True

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.name = str(root)
        self.address = self._root = os.path.abspath(root)  # noqa: PTH100  links aren't followed

    def objects(self) -> Iterator[StoredObject]:
        """See ObjectStore."""
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(os.path.join(self._root, folder)) as entries:  # noqa: PTH118  called for many files
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


def content_error(reason: str) -> OSError:
    """Return the error for bytes that exist but have the wrong content."""
    return OSError(errno.EIO, reason)


def require_all(found: bytes, size: int) -> None:
    """Raise OSError if a store returned fewer or more bytes than requested: they may not belong to the file."""
    if len(found) != size:
        raise OSError(
            f"{plural(len(found), 'byte')} arrived, expected {size}, since the connection broke or the"
            f" file changed; run the command again"
        )
