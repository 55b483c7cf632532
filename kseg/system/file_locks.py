"""Whether a process holds a lock of a file."""

import struct
import sys
from pathlib import Path

_FLOCK = "hhqqi4x"
"""Linux's `struct flock`: type, whence, start, length, process."""


def is_locked(path: Path) -> bool:
    """Return whether a process holds a file's lock, as the JVM takes it; ask the kernel, and take no lock.

    Only Linux is asked: others have another structure, and a lock that is tried could keep a broker from its start.
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
