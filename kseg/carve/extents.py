"""Extents of files in images, from the lists that file systems have left in inodes, blocks and journals."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kseg.carve.images import Images
from kseg.carve.marks import Marks
from kseg.formats.extent_lists import (
    LARGEST_SUPERBLOCK,
    SIZE_OF_INODE,
    Extent,
    FileSystem,
    Structure,
    parse_extents,
    parse_file_system,
)

_DEFAULT_BLOCK = 4096
_MOST_RANGES = 1_000_000
"""Most ranges that are kept: a large disk has some hundred thousand, a hostile image as many as it has room for."""


class FileRange(NamedTuple):
    """Adjacent bytes of an image that are adjacent in a file: start and end of each."""

    start: int
    end: int


class FileExtents(NamedTuple):
    """Bytes of an image that follow each other in a file without a gap. position: of the first one in the file."""

    position: int
    ranges: tuple[FileRange, ...]

    @property
    def end(self) -> int:
        """The position in the file after the last byte."""
        return self.position + sum(end - start for start, end in self.ranges)


def file_extents(images: Images, marks: Marks) -> list[FileExtents]:
    """Return the different lists of extents that the marks of an image lead to, at least two ranges each.

    A list may be older than the contents of its blocks.
    """
    file_systems = list(_file_systems(images, marks))
    found: dict[FileExtents, None] = {}
    count = 0
    for structure, position in marks.structures():
        if count >= _MOST_RANGES:
            break
        if not structure.is_superblock:
            for extents in _lists_at(images, file_systems, structure, position):
                found[extents] = None
                count += len(extents.ranges)
    return list(found)


def _file_systems(images: Images, marks: Marks) -> Iterator[FileSystem]:
    """Yield the file systems, one inside another left out: it is a copy of the first block in a journal.

    If the superblocks of an image are lost, ext4 may begin where the image does.
    """
    candidates = {
        parse_file_system(structure, images.read(position, position + LARGEST_SUPERBLOCK), position)
        for structure, position in marks.structures()
        if structure.is_superblock
    }
    end = {True: 0, False: 0}
    for each in sorted(filter(None, candidates), key=lambda each: (each.start, -each.size)):
        if each.start >= end[each.is_xfs]:
            end[each.is_xfs] = each.start + each.size
            yield each
    if not end[False]:
        for image in images:
            yield FileSystem(False, image.base, image.size, _DEFAULT_BLOCK)


def _lists_at(
    images: Images, file_systems: Iterable[FileSystem], structure: Structure, position: int
) -> Iterator[FileExtents]:
    for each in file_systems:
        if each.is_xfs == structure.is_xfs and each.start <= position < each.start + each.size:
            size = SIZE_OF_INODE if structure.is_inode else each.block
            yield from _contiguous(each, parse_extents(structure, images.read(position, position + size)))


def _contiguous(file_system: FileSystem, extents: list[Extent]) -> Iterator[FileExtents]:
    """Yield the ranges of extents, cut where the file has a hole; adjacent ranges become one."""
    held: list[FileRange] = []
    first_block, next_block = 0, -1
    for extent in extents:
        start = file_system.position(extent.block)
        end = start + extent.size * file_system.block
        if not file_system.start <= start < end <= file_system.start + file_system.size:
            return
        if extent.file_block != next_block:
            if len(held) > 1:
                yield FileExtents(first_block * file_system.block, tuple(held))
            held, first_block = [], extent.file_block
        if held and held[-1].end == start:
            held[-1] = FileRange(held[-1].start, end)
        else:
            held.append(FileRange(start, end))
        next_block = extent.file_block + extent.size
    if len(held) > 1:
        yield FileExtents(first_block * file_system.block, tuple(held))
