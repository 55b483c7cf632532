"""Access to files by their owners and modes, independent of the user that runs kseg."""

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_READ = 0o4


class _Owned(NamedTuple):
    path: Path
    user: int
    group: int
    mode: int


def closed_to_owner(paths: Iterable[Path], is_written: Callable[[str], bool]) -> Iterator[tuple[Path, str]]:
    """Yield the files and directories closed to the user and group that own most of them, with the reasons.

    Yields nothing on systems without owners.

    Args:
        paths: the files and directories; missing and inaccessible ones don't count.
        is_written: returns, by a file's name, whether it must be writable, too, as directories must. The main user's
            own files need only be readable, since a copy may have been made read-only.
    """
    owned = list(_find_owners(paths))
    if not owned:
        return
    user = Counter(each.user for each in owned).most_common(1)[0][0]
    group = Counter(each.group for each in owned).most_common(1)[0][0]
    for each in owned:
        is_directory = stat.S_ISDIR(each.mode)
        wanted = 0o7 if is_directory else 0o6 if is_written(each.path.name) else 0o4
        mode = stat.filemode(each.mode)
        if each.user == user:
            if not each.mode >> 6 & _READ:
                yield each.path, f"its mode, {mode}, doesn't let its own user read it"
        elif (each.mode >> 3 if each.group == group else each.mode) & wanted != wanted:
            yield each.path, f"it belongs to user {each.user} ({mode}), most of the log directory to user {user}"


def _find_owners(paths: Iterable[Path]) -> Iterator[_Owned]:
    if os.name != "posix":
        return
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        yield _Owned(path, status.st_uid, status.st_gid, status.st_mode)
