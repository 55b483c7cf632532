"""Likely origins of bytes that can't be read as a log: a log changed as text, or another type of file."""

from typing import NamedTuple

from kseg.formats.codes import MAGIC_POSITION, DamageKind
from kseg.formats.foreign import LARGEST_MARK, is_text, what_begins_so
from kseg.reading.text_changes import ReadAt, TextChange, find_change, is_replaced

_LEAST_SEVEN_BITS = 256
"""The least number of bytes that aren't below 0x80 by chance."""


class Likeness(NamedTuple):
    """The likely origin of the given bytes, in words.

    kind: the kind of damage, None if uncertain. change: the change, if it can be undone.
    """

    kind: DamageKind | None
    text: str
    change: TextChange | None = None


def likeness(read: ReadAt, position: int, end: int | None, known: TextChange | None = None) -> Likeness | None:
    """Return the likely origin of the bytes at a position without readable batch, or None if unknown.

    end: the start of the next intact batch; None if there is none. known: a change found before in the same log.
    """
    first = read(position, LARGEST_MARK if end is None else min(LARGEST_MARK, end - position))
    change = find_change(read, position, known)
    if change is not None:
        text = f"copied as text: {change.what}; run `kseg salvage` to undo that in logs"
        return Likeness(DamageKind.CHANGED_AS_TEXT, text, change)
    if is_replaced(first):
        lost = "copied as text: bytes that aren't UTF-8 became U+FFFD; that can't be undone"
        return Likeness(DamageKind.CHANGED_AS_TEXT, lost)
    marked = what_begins_so(first)
    if marked is not None:
        is_foreign = position == 0 and (marked.is_known or (end is None and is_text(first)))
        return Likeness(DamageKind.FOREIGN_CONTENT if is_foreign else None, f"it looks like {marked.text}")
    if position == 0 and has_seven_bits(first):
        return Likeness(DamageKind.CHANGED_AS_TEXT, SEVEN_BITS)
    return None


SEVEN_BITS = "copied as text: bytes above 0x7f were replaced, or cut to 7 bits; that can't be undone"


def has_seven_bits(first: bytes) -> bool:
    """Return True if bytes that should be a v2 batch have none above 0x7f: nearly every such batch has some."""
    return len(first) >= _LEAST_SEVEN_BITS and first[MAGIC_POSITION] == 2 and first.isascii()
