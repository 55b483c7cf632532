"""How much of a file is in Linux's page cache: by `cachestat` if the kernel has it (6.5 on), otherwise `mincore`."""

import ctypes
import mmap
import os
import sys
from pathlib import Path

from kseg.errors import OpenError
from kseg.system.gentle import resident_pages
from kseg.system.regular_file import open_ranged

_CACHESTAT = 451
"""Number of the system call on all machines that Python runs on but alpha. Source: the kernel's tables."""


def tells_cache() -> bool:
    """Whether the system says what is in the page cache: only Linux does."""
    return sys.platform == "linux"


def cached_size(path: Path) -> int | None:
    """Bytes of a file that are in memory, in whole pages; None if the system doesn't say, or the file is gone.

    Reads nothing. The system doesn't say it for files that the user neither owns nor may write.
    """
    try:
        descriptor, size, source = open_ranged(path)
    except OpenError:
        return None
    try:
        if source is not None:
            return None
        pages = pages_by_cachestat(descriptor)
        if pages is None:
            pages = pages_by_mincore(descriptor, size)
    finally:
        os.close(descriptor)
    return None if pages is None else min(pages * mmap.PAGESIZE, size)


def pages_by_cachestat(descriptor: int) -> int | None:
    """Pages of an open file in memory; None if the kernel doesn't have the call, or doesn't allow it. cachestat(2)."""
    if not tells_cache():
        return None
    whole_file = (ctypes.c_uint64 * 2)(0, 0)
    counts = (ctypes.c_uint64 * 5)()  # cached, dirty, written back, evicted, recently evicted
    failed = _library().syscall(_CACHESTAT, descriptor, whole_file, counts, 0)
    return None if failed else int(counts[0])


def pages_by_mincore(descriptor: int, size: int) -> int | None:
    """The same by mincore(2); None for files that the user neither owns nor may write: it says that all is there."""
    if not tells_cache() or not _may_know(descriptor):
        return None
    if size == 0:
        return 0
    bounds = resident_pages(descriptor, size)
    return None if bounds is None else sum(bounds[1::2]) - sum(bounds[::2])


def _may_know(descriptor: int) -> bool:
    status = os.fstat(descriptor)
    is_own = os.geteuid() in (0, status.st_uid)
    return is_own or os.access(f"/proc/self/fd/{descriptor}", os.W_OK)


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint]
    library.syscall.restype = ctypes.c_long
    return library
