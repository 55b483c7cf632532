"""Images to carve: disks and files opened read-only, as one space of positions, and obstacles to carving them."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from kseg.errors import OpenError, UsageError
from kseg.formats.disk_images import EXAMINED, obstacle_of
from kseg.reading.blocks import BlockReader, UnreadableRange
from kseg.system.devices import devices_below

_APART = 1 << 20
"""Images begin at multiples of this in their common space, with at least as many bytes between them."""


class Image:
    """An open image, or a slice of it.

    path: as the user names it. base: its first position in the common space. start: the first byte of the slice. size:
    bytes of the slice.
    """

    def __init__(self, path: Path, base: int, start: int, size: int | None) -> None:
        """Open an image. Raises OpenError; UsageError if the slice begins after its end."""
        self.path, self.base, self.start = path, base, start
        try:
            self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise OpenError(f"can't be opened: {error.strerror}", path) from error
        mode = os.fstat(self.descriptor).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISBLK(mode):
            os.close(self.descriptor)
            raise OpenError("is neither a file nor a block device; specify a disk or its image", path)
        whole = os.lseek(self.descriptor, 0, os.SEEK_END)
        if start > whole:
            os.close(self.descriptor)
            raise UsageError(f"has {whole} bytes; specify a smaller --from", path)
        self.size = whole - start if size is None else min(size, whole - start)
        self.reader = BlockReader(self.descriptor, start + self.size)

    @property
    def unreadable(self) -> list[UnreadableRange]:
        """The ranges that couldn't be read so far."""
        return self.reader.unreadable

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill a buffer from a position of the slice on; return the number of bytes, fewer at the end."""
        return self.reader.read_into(self.start + position, buffer)


class Images:
    """Images in a common space of positions; a context manager. A position is in at most one image."""

    def __init__(self, paths: Iterable[Path], start: int = 0, size: int | None = None) -> None:
        """Open the images. Raises OpenError, UsageError."""
        self.images: list[Image] = []
        self._files = ExitStack()
        base = 0
        with ExitStack() as files:
            for path in paths:
                image = Image(path, base, start, size)
                files.callback(os.close, image.descriptor)
                self.images.append(image)
                base += (image.size // _APART + 2) * _APART
            self._files = files.pop_all()

    def __enter__(self) -> "Images":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()

    def __iter__(self) -> Iterator[Image]:
        return iter(self.images)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to before `end` of the image that has `start`; zeros after its end."""
        image = self._image_at(start)
        found = image.reader.read(image.start + start - image.base, end - start)
        return found if len(found) == end - start else found.ljust(end - start, b"\0")

    def origin_of(self, position: int) -> tuple[int, int]:
        """Return the number of the image with a position, and what makes the position one of its own file."""
        image = self._image_at(position)
        return self.images.index(image), image.start - image.base

    def first_position(self, position: int) -> int:
        """Return the first position of the image that has a position."""
        return self._image_at(position).base

    def _image_at(self, position: int) -> Image:
        if len(self.images) == 1:
            return self.images[0]
        return next(image for image in reversed(self.images) if image.base <= max(position, 0))


def check_obstacles(images: Images) -> Iterator[str]:
    """Yield warnings about disks some of whose files can't be carved.

    Raises UsageError for an image none of whose files can.
    """
    for image in images:
        obstacle = obstacle_of(images.read(image.base, image.base + EXAMINED))
        if obstacle is not None and obstacle.is_complete:
            raise UsageError(f"{obstacle.text}, or carve it unchanged by --force", image.path)
        if obstacle is not None:
            yield f"{image.path}: {obstacle.text}"


def check_other_device(images: Images, directory: Path) -> None:
    """Raise UsageError if a new directory would be on a device that is carved: writing there destroys what is left.

    Knows partitions of a disk, LVM, RAID and encrypted devices by Linux's /sys, and loop devices by their files.
    """
    parent = next(each for each in directory.absolute().parents if each.exists())
    used = set(devices_below(parent))
    for image in images:
        status = os.fstat(image.descriptor)
        own = status.st_rdev if stat.S_ISBLK(status.st_mode) else (status.st_dev, status.st_ino)
        if own in used:
            raise UsageError(
                f"is on {image.path}, which is carved; specify a directory on another disk, or --force", directory
            )
