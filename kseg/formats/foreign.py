"""Recognition of other programs' files by their names and first bytes."""

import re
from typing import NamedTuple

from kseg.errors import plural
from kseg.formats.file_names import FileKind, parse_file_name

ARCHIVES = (
    ".tar",
    ".tar.gz",
    ".tgz",
    ".tar.zst",
    ".tzst",
    ".tar.xz",
    ".tar.bz2",
    ".txz",
    ".tbz2",
    ".zip",
    ".7z",
    ".rar",
)
"""Suffixes of archives; kseg reads some of them."""

_ARCHIVE = "an archive; unpack it, or specify its own path"
_DELETED = "deleted while a process had it open"
_NAMES = (
    (r"lost\+found", "the place where `fsck` and `kseg salvage` put recovered files"),
    (r"\.nfs[0-9a-fA-F]{8,}", f"{_DELETED}, on NFS: it may be a log"),
    (r"\.fuse_hidden[0-9a-fA-F]+", f"{_DELETED}, on FUSE: it may be a log"),
    (r"\._.+", "macOS attributes of the file next to it"),
    (r"\.DS_Store|\.Spotlight-V100|\.fseventsd|\.Trashes", "macOS's"),
    (r"(?i)thumbs\.db|desktop\.ini|\$RECYCLE\.BIN|System\sVolume\sInformation", "Windows'"),
    (
        r"\.(?:zfs|snapshots?|glusterfs|Trash-[0-9]+)|@eaDir|#recycle|#snapshot",
        ("a file of the file server or file system"),
    ),
    (r"(\..+)\.[A-Za-z0-9]{6}", "an interrupted copy by rsync"),
    (r"(.+)\.(?:filepart|partial|crdownload|download|rsync|aria2)", "an interrupted transfer"),
    (r"(.+)(?:~|\.bak|\.orig|\.old|\.save|\.copy|\.[0-9]{8,14})", "a manual copy"),
    (r"(.+?)(?: \([0-9]+\)| - Copy)(\.[a-z]+)?", "a manual copy"),
    (r"(.+)\.(?:gz|zst|lz4|xz|bz2)", "compressed; specify its own path if it ends in .gz or .zst, else unpack it"),
    (r"[0-9]+-[0-9]+-v[0-9]+\.(?:log|base_index|compaction_index)", "a Redpanda file, which kseg doesn't read"),
)
"""Patterns of names, and descriptions of such files. A pattern's group must be a Kafka name."""

LARGEST_MARK = 512
"""Bytes that `what_begins_so` examines."""
_MARKS = (
    (0, b"\x1f\x8b", "gzip; name it *.gz, or unpack it"),
    (0, b"\x28\xb5\x2f\xfd", "zstd; name it *.zst, or unpack it"),
    (0, b"\x04\x22\x4d\x18", "an lz4 frame; unpack it"),
    (0, b"\xff\x06\x00\x00sNaPpY", "framed snappy; unpack it"),
    (0, b"\xfd7zXZ\x00", "xz; unpack it"),
    (0, b"BZh", "bzip2; unpack it"),
    (0, b"PK\x03\x04", "a zip archive; name it *.zip, or unpack it"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it"),
    (257, b"ustar", "a tar archive; name it *.tar, or unpack it"),
    (0, b"PAR1", "a Parquet file"),
    (0, b"Obj\x01", "an Avro container file"),
    (0, b"ORC", "an ORC file"),
    (0, b"SQLite format 3\x00", "a SQLite database"),
    (0, b"\x7fELF", "a program"),
)
"""Positions of bytes in a file, the bytes, and the description of such a file."""
_LFS_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/[^\n]*\n(?:.*\n)*?size ([0-9]{1,19})\r?(?:\n|$)")
_ANNEX_POINTER = re.compile(rb"/annex/objects/|(?:\.\./)*\.git/annex/objects/")
_PAGE = re.compile(rb"\s*<(?:\?xml|!doctype|html|Error>)", re.IGNORECASE)
_SAMPLE = 40
_TEXT = re.compile(rb"[\t\n\r\x20-\x7e]+")


class Marked(NamedTuple):
    """A file's type by its first bytes. is_known: whether nothing else begins with them."""

    text: str
    is_known: bool


def what_has_name(name: str) -> str | None:
    """Return the origin of other programs' files with a name, or None for Kafka's names and unknown ones."""
    if name.lower().endswith(ARCHIVES):
        return _ARCHIVE
    for pattern, what in _NAMES:
        match = re.fullmatch(pattern, name)
        inner = "" if match is None else "".join(group or "" for group in match.groups())
        if match is not None and (not inner or _is_kafkas(inner.removeprefix("."))):
            return what
    return None


def _is_kafkas(name: str) -> bool:
    return parse_file_name(name).kind is not FileKind.UNKNOWN


def what_begins_so(first: bytes) -> Marked | None:
    """Return the type of a file with these first bytes, at best LARGEST_MARK of them, or None if they are unknown."""
    if pointer := _LFS_POINTER.match(first):
        size = int(pointer[1])
        return Marked(
            f"a Git LFS pointer to {plural(size, 'byte')}, not these bytes; run `git lfs pull` to fetch them", True
        )
    if _ANNEX_POINTER.match(first):
        return Marked("a git-annex pointer, not the content; run `git annex get` to fetch it", True)
    for position, mark, what in _MARKS:
        if first.startswith(mark, position):
            return Marked(what, True)
    if is_redpandas(first):
        return Marked("a Redpanda batch, which kseg doesn't read", True)
    if _PAGE.match(first):
        return Marked(f"a page of XML or HTML: {_sample(first)}", False)
    if is_text(first):
        return Marked(f"text: {_sample(first)}", False)
    if len(first) >= _SAMPLE and any(first) and len(set(first)) == 1:
        return Marked(f"only bytes of {min(first):#04x}", False)
    return None


_BASE64 = re.compile(rb"[A-Za-z0-9+/\r\n]{8,}=*\s*")


def is_base64(first: bytes) -> bool:
    """Return True if bytes are base64 alone, and enough of it to exclude chance."""
    return _BASE64.fullmatch(first) is not None


def is_text(first: bytes) -> bool:
    """Return True if bytes are text in ASCII, and enough of it to exclude chance."""
    return len(first) >= _SAMPLE and _TEXT.fullmatch(first) is not None


def is_redpandas(first: bytes) -> bool:
    """Return True if bytes begin with a Redpanda header, by the CRC-32C of its own fields."""
    from construct import ConstructError
    from crc32c import crc32c

    from kseg.formats.redpanda import REDPANDA_HEADER

    try:
        header = REDPANDA_HEADER.parse(first)
    except ConstructError:
        return False
    if header.size_bytes < REDPANDA_HEADER.sizeof():
        return False
    rest = first[REDPANDA_HEADER.header_crc.sizeof() : REDPANDA_HEADER.sizeof()]
    return bool(crc32c(rest) == header.header_crc)


def _sample(text: bytes) -> str:
    shown = " ".join(text[: 2 * _SAMPLE].decode(errors="replace").split())
    return repr(shown[:_SAMPLE])
