"""The check for a process that holds a file's lock."""

import struct
import sys
from pathlib import Path

_FLOCK = "hhqqi4x"
"""Linux's `struct flock`: type, whence, start, length, process."""


def is_locked(path: Path) -> bool:
    """Return True if a process holds a file's lock, as the JVM takes it. Queries the kernel, and takes no lock.

    Only on Linux: other systems have another structure, and trying a lock could keep a broker from starting.
    """
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        with path.open("rb") as file:
            wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, 0, 0, 0, 0)
            found = fcntl.fcntl(file.fileno(), fcntl.F_GETLK, wanted)
    except OSError:
        return False
    return bool(struct.unpack(_FLOCK, found)[0] != fcntl.F_UNLCK)
