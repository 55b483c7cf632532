"""Who may open files: by their owners and modes, not by who runs kseg."""

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

_READ = 0o4


class _Owned(NamedTuple):
    path: Path
    user: int
    group: int
    mode: int


def closed_to_owner(
    directory: Path, is_read: Callable[[str], bool], is_written: Callable[[str], bool]
) -> Iterator[tuple[Path, str]]:
    """What the user and group that own most of a directory can't open, down to its directories' files, and why.

    Nothing where files have no owners.

    Args:
        directory: where to look.
        is_read: tells by the name of what is in the directory itself whether it counts.
        is_written: tells by a file's name whether it must be open to be written, too, as directories must. Files of
            their own need only be read, since a copy may have been made read-only.
    """
    owned = list(_owned(directory))
    if not owned:
        return
    user = Counter(each.user for each in owned).most_common(1)[0][0]
    group = Counter(each.group for each in owned).most_common(1)[0][0]
    for each in owned:
        if each.path.parent == directory and not is_read(each.path.name):
            continue
        is_directory = stat.S_ISDIR(each.mode)
        wanted = 0o7 if is_directory else 0o6 if is_written(each.path.name) else 0o4
        mode = stat.filemode(each.mode)
        if each.user == user:
            if not each.mode >> 6 & _READ:
                yield each.path, f"its mode, {mode}, doesn't let its own user read it"
        elif (each.mode >> 3 if each.group == group else each.mode) & wanted != wanted:
            yield each.path, f"it belongs to user {each.user} ({mode}), most of the log directory to user {user}"


def _owned(directory: Path) -> Iterator[_Owned]:
    try:
        status = directory.stat()
        if not hasattr(status, "st_uid") or os.name != "posix":
            return
        yield _Owned(directory, status.st_uid, status.st_gid, status.st_mode)
        with os.scandir(directory) as entries:
            found = list(entries)
    except OSError:
        return
    for entry in found:
        try:
            yield _of(directory, entry)
            if entry.is_dir():
                yield from _in_directory(directory / entry.name)
        except OSError:
            continue  # it has gone, or nobody can look at it


def _in_directory(directory: Path) -> Iterator[_Owned]:
    with os.scandir(directory) as entries:
        for entry in entries:
            yield _of(directory, entry)


def _of(directory: Path, entry: os.DirEntry[str]) -> _Owned:
    status = entry.stat()
    return _Owned(directory / entry.name, status.st_uid, status.st_gid, status.st_mode)
