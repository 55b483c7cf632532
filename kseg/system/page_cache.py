"""The page cache: cached parts of files, and reading that leaves the cache unchanged."""

import ctypes
import mmap
import os
import platform
import re
import sys
from array import array
from bisect import bisect_right
from functools import cache
from pathlib import Path

from kseg.errors import OpenError
from kseg.system.files import open_ranged, stored_stretches

DROPPED_AT_ONCE = 8 << 20
"""Bytes read between two removals of pages."""
_MAPPED_AT_ONCE = 1 << 28
"""Bytes of a file that are mapped at once to query their pages."""
_SMALL = 1 << 16
"""The file size below which holes don't matter."""
_RESIDENT = re.compile(rb"\x01+")
_SHARED_MAPPING, _READABLE = 1, 1
_FAILED = ctypes.c_void_p(-1).value

# The number of the system call by machine. Source: the kernel's tables of system calls.
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30, "riscv64": 30, "ppc64le": 273, "s390x": 282}
_WHO_PROCESS = 1
_IDLE_CLASS = 3 << 13
_LOWEST_PRIORITY = 19


class PageCache:
    """The pages of an open file that were in memory at first, to drop the others after reading."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self._size = size
        self._resident = resident_pages(descriptor, size)
        self._dropped_to = 0
        self._read_to = 0

    def was_read(self, position: int, size: int) -> None:
        """Record that bytes were read; drop pages that are far enough before them."""
        if position < self._dropped_to:
            self._dropped_to = position
        self._read_to = max(self._read_to, position + size)
        if position + size - self._dropped_to > DROPPED_AT_ONCE:
            self._drop(self._dropped_to, position)
            self._dropped_to = position

    def drop(self) -> None:
        """Drop all pages that weren't in memory at first, including pages that were read ahead."""
        self._drop(0, self._size)

    def _drop(self, start: int, end: int) -> None:
        """Drop complete pages of a range that weren't there, neighbours with one call.

        Holes are cheap to read again.
        """
        if self._resident is None:
            return
        at, last = start // mmap.PAGESIZE, -(-end // mmap.PAGESIZE)
        place = bisect_right(self._resident, at)
        while at < last:
            following = min(self._resident[place], last) if place < len(self._resident) else last
            is_absent = place % 2 == 0
            if is_absent and at < following:
                size = (following - at) * mmap.PAGESIZE
                os.posix_fadvise(self._descriptor, at * mmap.PAGESIZE, size, os.POSIX_FADV_DONTNEED)
            at, place = following, place + 1


def resident_pages(descriptor: int, size: int) -> "array[int] | None":
    """Return where runs of a file's pages in memory start and end, alternately, without holes.

    None if the system can't tell. Maps the file for that, but touches no page, so it does no harm if the file is cut
    meanwhile. For files that the user neither owns nor may write, Linux reports all pages as in memory. Source:
    mincore(2).
    """
    if size == 0 or not hasattr(os, "posix_fadvise"):
        return None
    bounds = array("q")
    for start, end in stored_stretches(descriptor, 0, size) if size > _SMALL else ((0, size),):
        for position in range(start - start % mmap.PAGESIZE, end, _MAPPED_AT_ONCE):
            pages = _pages_of(descriptor, position, min(_MAPPED_AT_ONCE, end - position))
            if pages is None:
                return None
            first = position // mmap.PAGESIZE
            for run in _RESIDENT.finditer(pages):
                bounds.extend((first + run.start(), first + run.end()))
    return bounds


def _pages_of(descriptor: int, position: int, size: int) -> bytes | None:
    """Return a byte per page, 1 if it is in memory, or None if the system can't tell."""
    library = _io_priority_library()
    address = library.mmap(None, size, _READABLE, _SHARED_MAPPING, descriptor, position)
    if address in (None, _FAILED):
        return None
    pages = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
    failed = library.mincore(address, size, pages)
    library.munmap(address, size)
    return None if failed else pages.raw.translate(_LOWEST_BITS)


_LOWEST_BITS = bytes(value & 1 for value in range(256))


@cache
def _io_priority_library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    return library


def give_way() -> None:
    """Lower this process's priorities: to the lowest for the processor, and to idle for the disk if possible."""
    if hasattr(os, "nice"):
        os.nice(_LOWEST_PRIORITY)
    number = _IOPRIO_SET.get(platform.machine()) if sys.platform == "linux" else None
    if number is not None:
        _io_priority_library().syscall(number, _WHO_PROCESS, 0, _IDLE_CLASS)


_CACHESTAT = 451
"""The number of the system call on all machines that Python runs on but alpha. Source: the kernel's tables."""


def tells_cache() -> bool:
    """Return True if the system reports the page cache's contents: only Linux does."""
    return sys.platform == "linux"


def cached_size(path: Path) -> int | None:
    """Return the bytes of a file in memory, in complete pages, or None if the system can't tell, or the file is gone.

    Reads nothing. Returns None for files that the user neither owns nor may write.
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
    """Return the pages of an open file in memory; None if the kernel doesn't have or allow the call. cachestat(2)."""
    if not tells_cache():
        return None
    whole_file = (ctypes.c_uint64 * 2)(0, 0)
    counts = (ctypes.c_uint64 * 5)()  # cached, dirty, written back, evicted, recently evicted
    failed = _library().syscall(_CACHESTAT, descriptor, whole_file, counts, 0)
    return None if failed else int(counts[0])


def pages_by_mincore(descriptor: int, size: int) -> int | None:
    """Return the same by mincore(2); None for files that the user neither owns nor may write, whose result is wrong."""
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
