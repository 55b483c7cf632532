"""The directory where kseg keeps what it has made only to be faster, and what anybody may delete."""

import os
from pathlib import Path


def cache_directory() -> Path | None:
    """`kseg` in XDG_CACHE_HOME, else in `~/.cache`; None if there is no home. It need not be there.

    Source: the XDG Base Directory Specification, by which a relative path counts for nothing.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    place = Path(given if Path(given).is_absolute() else os.path.expanduser("~/.cache"))  # noqa: PTH111 (never raises)
    return place / "kseg" if place.is_absolute() else None
