"""Paths that lead into archives, mean a compressed file or standard input, or match others as a shell's globs do."""

import os

from kseg.formats.names import FileKind, parse_file_name

STANDARD_INPUT = "-"
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
    from glob import glob

    return sorted(glob(path, recursive=True)) or [path]  # noqa: PTH207  the text as the user would write it
