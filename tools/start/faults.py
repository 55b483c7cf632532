"""Faults of files, as recipes from a disk to a disk: they need no broker, and the same disk gives the same bytes."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

NOT_A_BROKERS = 0
"""User and group that own an unreadable file: root, who runs no broker here."""
ZEROS = bytes(1200)
"""Whole entries of any index, as preallocation leaves them."""
BATCH_HEADER = 61
# Bytes that are left of the first structure of a file: less than its header or its first entry.
HEADERS = {".log": 30, ".checkpoint": 30, ".index": 4, ".timeindex": 6, ".txnindex": 10, ".snapshot": 3}
HEADER_OF_TEXT = 1


class Place(NamedTuple):
    """A file of a disk, and a file of the same kind that belongs elsewhere."""

    disk: Path
    path: Path
    donor: Path | None = None


Recipe = Callable[[Place], None]


class NotApplicable(Exception):
    """A fault that a file can't have: it isn't there, or nothing in it would change."""


def apply(recipe: Recipe, place: Place) -> None:
    """Put a fault into a file of a disk; raises NotApplicable if that leaves everything as it is."""
    if not place.path.exists():
        raise NotApplicable(place.path)
    before = place.path.read_bytes()
    recipe(place)
    is_plain = place.path.exists() and not place.path.is_symlink() and place.path.stat().st_mode & 0o777
    if is_plain and place.path.read_bytes() == before:
        raise NotApplicable(place.path)


def changed(change: Callable[[bytes], bytes]) -> Recipe:
    """A recipe that changes the content of a file."""

    def recipe(place: Place) -> None:
        place.path.write_bytes(change(place.path.read_bytes()))

    return recipe


def remove(place: Place) -> None:
    """Delete the file."""
    place.path.unlink()


def cut_in_header(place: Place) -> None:
    """Leave less than the first structure."""
    size = HEADERS.get(place.path.suffix, HEADER_OF_TEXT)
    os.truncate(place.path, min(size, place.path.stat().st_size))


def cut_in_body(place: Place) -> None:
    """Leave two thirds, an odd number of bytes: no entry ends there."""
    os.truncate(place.path, place.path.stat().st_size * 2 // 3 | 1 if place.path.stat().st_size > 1 else 0)


def take_from_donor(place: Place) -> None:
    """Put the donor's content under the file's name."""
    if place.donor is None or not place.donor.exists():
        raise NotApplicable(place.path)
    place.path.write_bytes(place.donor.read_bytes())


def flip_in_middle(content: bytes) -> bytes:
    """Change a bit in the middle: of a log, in the records of the batch in the middle."""
    return _flipped(content, len(content) // 2) if content else content


def flip_in_records(content: bytes) -> bytes:
    """Change a bit in the records of the batch in the middle."""
    start, end = _middle_batch(content)
    return _flipped(content, (start + BATCH_HEADER + end) // 2)


def flip_in_base_offset(content: bytes) -> bytes:
    """Change a bit in the base offset of the batch in the middle, which its CRC doesn't cover."""
    start, _ = _middle_batch(content)
    return _flipped(content, start + 7)


def _flipped(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 0x10]) + content[position + 1 :]


def _middle_batch(content: bytes) -> tuple[int, int]:
    batches = list(_batches(content))
    if not batches:
        raise NotApplicable
    return batches[len(batches) // 2]


def _batches(content: bytes) -> Iterator[tuple[int, int]]:
    """Start and end of each batch."""
    start = 0
    while start + BATCH_HEADER <= len(content):
        end = start + 12 + int.from_bytes(content[start + 8 : start + 12])
        yield start, end
        start = end


def make_unreadable(place: Place) -> None:
    """Give the file to another user, and let nobody else read it."""
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


COMMON: dict[str, Recipe] = {
    "absent": remove,
    "empty": changed(lambda content: b""),
    "cut in header": cut_in_header,
    "cut in body": cut_in_body,
    "padded with zeros": changed(lambda content: content + ZEROS),
    "another's": take_from_donor,
    "one bit changed": changed(flip_in_middle),
    "text-mangled": changed(lambda content: content.replace(b"\n", b"\r\n")),
    "unreadable": make_unreadable,
    "a symbolic link": link,
}
"""Faults that every file can have."""


def with_property(name: str, value: str) -> Recipe:
    """A recipe that changes one line of a properties file."""

    def change(content: bytes) -> bytes:
        lines = content.decode().splitlines(keepends=True)
        return "".join(f"{name}={value}\n" if line.startswith(f"{name}=") else line for line in lines).encode()

    return changed(change)


def with_field(name: str, value: object) -> Recipe:
    """A recipe that changes one field of a JSON file."""
    return changed(lambda content: json.dumps({**json.loads(content), name: value}, separators=(",", ":")).encode())


def of_other_topics(content: bytes) -> bytes:
    """Change the names of all topics in a checkpoint."""
    version, count, *entries = content.decode().splitlines()
    return "".join(f"{line}\n" for line in (version, count, *(f"other-{entry}" for entry in entries))).encode()


def with_offsets(offset: int) -> Recipe:
    """A recipe that gives all entries of a checkpoint this offset."""

    def change(content: bytes) -> bytes:
        version, count, *entries = content.decode().splitlines()
        changed_entries = (f"{entry.rpartition(' ')[0]} {offset}" for entry in entries)
        return "".join(f"{line}\n" for line in (version, count, *changed_entries)).encode()

    return changed(change)
