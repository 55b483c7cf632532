"""Paths that lead into archives, or mean standard input."""

import os

STANDARD_INPUT = "-"
ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst", ".zip")
"""Names of archives, which are used like directories: `bundle.tar.gz/orders-0` is a partition."""
MAX_UNPACKED = 16 << 30
"""The most bytes unpacked from archives and standard input, if no other limit is given."""
SHARE_OF_FREE = 0.25
"""And no more than this share of the free space in the temporary directory."""


def leads_inside(path: str) -> bool:
    """Whether a path is `-`, or may lead into an archive by its name; opens nothing."""
    return path == STANDARD_INPUT or any(part.lower().endswith(ENDINGS) for part in path.split("/"))


def split_path(path: str) -> tuple[str | None, str]:
    """The archive that a path leads into, and the path in it; None and the path itself if there is none."""
    parts = path.split("/")
    for count, part in enumerate(parts, 1):
        prefix = "/".join(parts[:count])
        if part.lower().endswith(ENDINGS) and os.path.isfile(prefix):  # noqa: PTH113
            return prefix, "/".join(inner for inner in parts[count:] if inner not in ("", "."))
    return None, path
