"""Faults of files, as recipes from a disk to a disk: they need no broker, and the same disk gives the same bytes."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

NOT_A_BROKERS = 0
"""User and group that own an unreadable file: root, which never runs a broker here."""
ZEROS = bytes(1200)
"""Zeros for complete entries of any index, as in preallocated files."""
BATCH_HEADER = 61
# Remaining bytes of the first structure of a file: less than its header or its first entry.
HEADERS = {".log": 30, ".checkpoint": 30, ".index": 4, ".timeindex": 6, ".txnindex": 10, ".snapshot": 3}
HEADER_OF_TEXT = 1


class Place(NamedTuple):
    """A file of a disk, and a file of the same kind from elsewhere."""

    disk: Path
    path: Path
    donor: Path | None = None


Recipe = Callable[[Place], None]


ABSENT = "the disk has no such file"
UNCHANGED = "the fault changes nothing in this file"
ALONE = "the disk has no other file of the kind to take"


class NotApplicable(Exception):
    """A fault that a file of a disk can't have, and the reason: one of the above."""


def apply(recipe: Recipe, place: Place) -> None:
    """Put a fault into a file of a disk. Raises NotApplicable if that changes nothing."""
    if not place.path.exists():
        raise NotApplicable(ABSENT)
    before = _state(place)
    recipe(place)
    if _state(place) == before:
        raise NotApplicable(UNCHANGED)


def _state(place: Place) -> object:
    """Return everything that a recipe may change: the bytes of a file and mode, and names in the folders around it."""
    folders = [folder for folder in (place.disk.parent, place.path.parent, place.path) if folder.is_dir()]
    names = [sorted(path.name for path in folder.iterdir()) for folder in folders]
    is_there = place.path.exists()
    mode = place.path.lstat().st_mode if is_there else None
    return names, mode, place.path.read_bytes() if place.path.is_file() else None


def changed(change: Callable[[bytes], bytes]) -> Recipe:
    """Return a recipe that changes the content of a file."""

    def recipe(place: Place) -> None:
        place.path.write_bytes(change(place.path.read_bytes()))

    return recipe


def remove(place: Place) -> None:
    """Delete the file, or the folder with all files."""
    if place.path.is_dir():
        shutil.rmtree(place.path)
    else:
        place.path.unlink()


def cut_in_header(place: Place) -> None:
    """Leave less than the first structure."""
    size = HEADERS.get(place.path.suffix, HEADER_OF_TEXT)
    os.truncate(place.path, min(size, place.path.stat().st_size))


def cut_in_body(place: Place) -> None:
    """Leave two thirds, an odd number of bytes, so that no entry ends there."""
    os.truncate(place.path, place.path.stat().st_size * 2 // 3 | 1 if place.path.stat().st_size > 1 else 0)


def take_from_donor(place: Place) -> None:
    """Put the donor's content under the file name."""
    if place.donor is None or place.donor == place.path or not place.donor.exists():
        raise NotApplicable(ALONE)
    place.path.write_bytes(place.donor.read_bytes())


def flip_in_middle(content: bytes) -> bytes:
    """Change a bit in the middle: in a log, in the records of the middle batch."""
    return _flip(content, len(content) // 2) if content else content


def flip_in_records(content: bytes) -> bytes:
    """Change a bit in the records of the middle batch."""
    start, end = _middle_batch(content)
    return _flip(content, (start + BATCH_HEADER + end) // 2)


def flip_in_base_offset(content: bytes) -> bytes:
    """Change a bit in the base offset of the middle batch, which its CRC doesn't cover."""
    start, _ = _middle_batch(content)
    return _flip(content, start + 7)


def _flip(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 0x10]) + content[position + 1 :]


def _middle_batch(content: bytes) -> tuple[int, int]:
    batches = list(_batches(content))
    if not batches:
        raise NotApplicable(UNCHANGED)
    return batches[len(batches) // 2]


def _batches(content: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of each batch."""
    start = 0
    while start + BATCH_HEADER <= len(content):
        end = start + 12 + int.from_bytes(content[start + 8 : start + 12])
        yield start, end
        start = end


def make_unreadable(place: Place) -> None:
    """Give the file to another user, unreadable for everyone else."""
    if os.geteuid() == 0:
        os.chown(place.path, NOT_A_BROKERS, NOT_A_BROKERS)
    place.path.chmod(0)


def link(place: Place) -> None:
    """Move the file out of the disk, and leave a symbolic link to it."""
    elsewhere = place.disk.parent / f"{place.disk.name}-elsewhere"
    target = elsewhere / place.path.relative_to(place.disk)
    target.parent.mkdir(parents=True, exist_ok=True)
    place.path.rename(target)
    place.path.symlink_to(target)


ANOTHERS = "another's"
COMMON: dict[str, Recipe] = {
    "absent": remove,
    "empty": changed(lambda content: b""),
    "cut in header": cut_in_header,
    "cut in body": cut_in_body,
    "padded with zeros": changed(lambda content: content + ZEROS),
    ANOTHERS: take_from_donor,
    "one bit changed": changed(flip_in_middle),
    "text-mangled": changed(lambda content: content.replace(b"\n", b"\r\n")),
    "unreadable": make_unreadable,
    "a symbolic link": link,
}
"""Faults that every file can have."""


def with_properties(values: Mapping[str, str]) -> Recipe:
    """Return a recipe that changes lines of a properties file."""

    def change(content: bytes) -> bytes:
        lines = (line.partition("=") for line in content.decode().splitlines(keepends=True))
        changed_lines = (
            f"{name}={values[name]}\n" if name in values else f"{name}{sign}{rest}" for name, sign, rest in lines
        )
        return "".join(changed_lines).encode()

    return changed(change)


def with_field(name: str, value: object) -> Recipe:
    """Return a recipe that changes one field of a JSON file, if the file has any; the marker of 2.8 is empty."""

    def change(content: bytes) -> bytes:
        return json.dumps({**json.loads(content), name: value}, separators=(",", ":")).encode() if content else content

    return changed(change)


def of_other_topics(content: bytes) -> bytes:
    """Change the names of all topics in a checkpoint."""
    version, count, *entries = content.decode().splitlines()
    return "".join(f"{line}\n" for line in (version, count, *(f"other-{entry}" for entry in entries))).encode()


def with_offsets(offset: int) -> Recipe:
    """Return a recipe that gives all entries of a checkpoint this offset."""

    def change(content: bytes) -> bytes:
        version, count, *entries = content.decode().splitlines()
        changed_entries = (f"{entry.rpartition(' ')[0]} {offset}" for entry in entries)
        return "".join(f"{line}\n" for line in (version, count, *changed_entries)).encode()

    return changed(change)
