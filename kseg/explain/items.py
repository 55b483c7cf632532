"""The items of a file, each with its fields."""

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from kseg.errors import KsegError, OpenError, UsageError, plural
from kseg.explain.batch import DAMAGE_WALKED, batch_fields, damage_fields
from kseg.explain.field import Bits, Check, ExplainedField
from kseg.explain.internal_records import OpenRecord, internal_opener
from kseg.explain.walk import walk
from kseg.formats.batch import FORMATS
from kseg.formats.checkpoints import TEXT_FILES
from kseg.formats.file_names import LOG_KINDS, FileKind, parse_file_name
from kseg.formats.header_fields import ENTRY_FIELDS, PRODUCER_ENTRY_FIELDS, SNAPSHOT_CRC, FixedFields
from kseg.formats.indexes import PRODUCER_SNAPSHOT
from kseg.index.entries import EntryFile
from kseg.index.producers import LARGEST_READ
from kseg.reading.batch import Batch, scan_log
from kseg.reading.blocks import Damage
from kseg.reading.log_file import LogFile
from kseg.system.files import read_regular, read_text_file

_SNAPSHOT_WALKED = 1 << 20
"""The most bytes of a snapshot that are read: more than its fields need."""
_SHOWN = 64
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True)
class Item:
    """A piece of a file: a batch, an entry, a damage, a line, or the complete file if it has no such pieces.

    first_offset, last_offset: a batch's; None for others, and first_offset also for wrappers. Fields are read on first
    use.
    """

    title: str
    position: int
    size: int
    read: Callable[[], list[ExplainedField]]
    find_problem: Callable[[], str | None] = lambda: None
    first_offset: int | None = None
    last_offset: int | None = None

    @cached_property
    def fields(self) -> list[ExplainedField]:
        """The fields, from the first to the last byte."""
        return self.read()

    @cached_property
    def problem(self) -> str | None:
        """The problem of the piece as a whole, or None if it doesn't exist."""
        return self.find_problem()


def explain_file(path: Path) -> Iterator[Item]:
    """Yield the pieces of a file in order, from its first to its last byte.

    Raises OpenError if it can't be read, KsegError if its name doesn't belong to a known kind of file.
    """
    kind = parse_file_name(path).kind
    if kind in LOG_KINDS:
        yield from _log_items(path)
    elif kind in _ENTRIES:
        yield from _entry_items(path, _ENTRIES[kind])
    elif kind is FileKind.PRODUCER_SNAPSHOT:
        yield from _snapshot_items(path)
    elif kind in TEXT_FILES:
        yield from _text_items(path, kind)
    elif not path.exists():
        raise OpenError("no such file or directory", path)
    else:
        from kseg.reading.other_files import refusal_of

        raise KsegError(refusal_of(path, _unknown_step(kind)), path)


def _unknown_step(kind: FileKind) -> str:
    if kind is FileKind.LOCK:
        return "a lock file is empty"
    return "if it is a Kafka file, specify its kind: `kseg explain - --input-kind log < {path}`"


def _log_items(path: Path) -> Iterator[Item]:
    open_record = internal_opener(path)
    with LogFile(path) as log_file:
        number = 0
        for found in scan_log(log_file):
            if isinstance(found, Batch):
                yield _batch_item(found, number, open_record)
                number += 1
            else:
                raw = log_file.read(found.position, min(found.size, DAMAGE_WALKED))
                if found.size:
                    yield _damage_item(found, raw)


def _batch_item(batch: Batch, number: int, open_record: OpenRecord | None) -> Item:
    def find_problem() -> str | None:
        problem = batch.problem()
        return None if problem is None else problem.detail

    what = "batch" if batch.magic >= 2 else "entry"
    title = f"{what} {number}, format {batch.magic}, last offset {batch.last_offset}"
    return Item(
        title,
        batch.position,
        batch.size,
        lambda: batch_fields(batch, open_record),
        find_problem,
        batch.header.base_offset,
        batch.last_offset,
    )


def _damage_item(damage: Damage, raw: bytes) -> Item:
    title = f"damage: {damage.kind}"
    return Item(title, damage.position, damage.size, lambda: damage_fields(damage, raw), lambda: damage.detail)


class _Entries(NamedTuple):
    """A kind of file of entries: its grammar, and its fields."""

    grammar: Any
    fields: FixedFields

    @property
    def is_relative(self) -> bool:
        """True if offsets are relative to the one in the file name; such a file is preallocated, too."""
        return _RELATIVE in self.fields.names


_RELATIVE = "relative_offset"
_ENTRIES = {
    shown.kind: _Entries(shown.grammar, ENTRY_FIELDS[shown.kind])
    for shown in FORMATS.values()
    if shown.kind is not None
}


ENTRY_KINDS = frozenset(_ENTRIES)
"""Kinds of files whose entries have a fixed size, so that they can be read by number."""


class EntryItems:
    """The entries of a file by number, each read on demand.

    names: of an entry's fields. count: entries, with the bytes after them as one more: a zero tail, or a cut entry.
    """

    def __init__(self, path: Path) -> None:
        """Open the file. Raises OpenError if it can't be opened."""
        name = parse_file_name(path)
        self._kind = _ENTRIES[name.kind]
        self._base = name.base_offset if self._kind.is_relative else None
        self._file = EntryFile(path, self._kind.fields)
        self.names = self._kind.fields.names
        self.size, self.entry_size = self._file.size, self._file.entry_size
        self._written_count = self._file.count_written() if self._kind.is_relative else self._file.capacity
        self.count = self._written_count + (self.size > self._written_count * self.entry_size)

    def item(self, number: int) -> Item:
        """Return the entry of a number. Raises UnreadableError if the disk can't read it."""
        at = number * self.entry_size
        if number >= self._written_count and self._file.capacity > self._written_count:
            return _zeros("zero tail", at, self.size, "the unused end of a preallocated file")
        return _entry_item(self._kind, self._file.read(at, self.entry_size), at, self._base)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _entry_items(path: Path, kind: _Entries) -> Iterator[Item]:
    base = parse_file_name(path).base_offset if kind.is_relative else None
    size = kind.grammar.sizeof()
    with EntryFile(path, kind.fields) as file:
        is_preallocated = kind.is_relative
        content = 0
        for at, end in _places(file, size):
            if end - at > size:
                yield _zeros("hole", at, end, "entries of zeros in a hole of the sparse file")
                continue
            raw = file.read(at, size)
            if is_preallocated and at and at >= content and not any(raw):
                following = file.first_content(at, file.size)
                if following is None:
                    yield _zeros("zero tail", at, file.size, "the unused end of a preallocated file")
                    return
                content = following
            yield _entry_item(kind, raw, at, base)


def _places(file: EntryFile, size: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each entry (the last one may be cut), and of holes that span several entries."""
    expected = 0
    for slot, entries in file.stored_pieces():
        if slot > expected:
            yield expected * size, slot * size
        expected = slot + len(entries)
        yield from ((number * size, (number + 1) * size) for number in range(slot, expected))
    if expected < file.capacity:
        yield expected * size, file.capacity * size
    if file.trailing:
        yield file.capacity * size, file.size


def _entry_item(kind: _Entries, raw: bytes, at: int, base: int | None) -> Item:
    size = kind.grammar.sizeof()
    fields = walk(kind.grammar, raw, at)
    if base is not None and len(raw) == size:
        field = next(field for field in fields if field.path == _RELATIVE)
        field.meaning += f": offset {base + int.from_bytes(field.raw, 'big', signed=True)}"
    problem = None if len(raw) == size else f"{plural(len(raw), 'byte')}, an entry has {size}"
    return _read_item(f"entry {at // size}", at, len(raw), fields, problem)


def _zeros(title: str, at: int, end: int, meaning: str) -> Item:
    field = ExplainedField(title, at, end - at, "bytes", None, meaning, bytes(min(end - at, _SHOWN)))
    return _read_item(title, at, end - at, [field])


def _read_item(title: str, position: int, size: int, fields: list[ExplainedField], problem: str | None = None) -> Item:
    return Item(title, position, size, lambda: fields, lambda: problem)


def _snapshot_items(path: Path) -> Iterator[Item]:
    with EntryFile(path, PRODUCER_ENTRY_FIELDS) as file:
        fields = walk(PRODUCER_SNAPSHOT, file.read(0, _SNAPSHOT_WALKED))
        for field in fields:
            if field.path == "crc" and file.size <= LARGEST_READ:
                _check_crc(field, file)
        fields[-1].size += max(file.size - _SNAPSHOT_WALKED, 0)  # these bytes weren't read
        yield _read_item("producer snapshot", 0, file.size, fields)


def _check_crc(field: ExplainedField, file: EntryFile) -> None:
    computed = file.crc32c(SNAPSHOT_CRC.end)
    stored = int.from_bytes(field.raw, "big")
    field.check = Check(stored, computed, SNAPSHOT_CRC.end, file.size)
    if not field.check.holds:
        field.problem = f"crc is 0x{stored:08x}, computed 0x{computed:08x}"


def _text_items(path: Path, kind: FileKind) -> Iterator[Item]:
    try:
        content = read_text_file(path)
    except OpenError:
        raise
    except KsegError as error:
        size = path.stat().st_size
        field = ExplainedField("text", 0, size, "text", None, "", read_regular(path, _SHOWN), problem=error.message)
        yield _read_item("text", 0, size, [field], error.message)
    else:
        yield from _line_items(content, kind)


def _line_items(content: bytes, kind: FileKind) -> Iterator[Item]:
    text_file = TEXT_FILES[kind]
    first = text_file.first_lines
    problem = None
    try:
        deque(text_file.entries(content), maxlen=0)
    except KsegError as error:
        problem = error.message
    at = 0
    for number, raw in enumerate(line[0] for line in _LINE.finditer(content)):
        meaning = first[number] if number < len(first) else text_file.other_lines
        text = raw.rstrip(b"\r\n").decode("utf-8", "replace")
        field = ExplainedField(f"line {number + 1}", at, len(raw), "text", text, meaning, raw)
        wrong = problem if problem is not None and problem.startswith(f"line {number + 1}:") else None
        yield _read_item(f"line {number + 1}", at, len(raw), [field], wrong)
        at += len(raw)


__all__ = ["Bits", "Check", "ExplainedField", "Item", "explain_file"]


class ItemChoice(NamedTuple):
    """A choice of one item by a batch's offset, by position or by number; all None: all items."""

    offset: int | None = None
    position: int | None = None
    number: int | None = None

    @classmethod
    def of(cls, offset: int | None, position: int | None, number: int | None) -> "ItemChoice":
        """Make a choice. Raises UsageError if more than one is given."""
        if sum(choice is not None for choice in (offset, position, number)) > 1:
            raise UsageError("specify one of --offset, --position, --batch")
        return cls(offset, position, number)

    @property
    def is_narrow(self) -> bool:
        """True if not all items are chosen."""
        return self != ItemChoice()

    def choose(self, items: Iterator[Item]) -> Iterator[tuple[int, Item]]:
        """Yield the chosen items of a file with their numbers."""
        numbered = enumerate(items)
        number, position, offset = self.number, self.position, self.offset
        if number is not None:
            return islice(numbered, number, number + 1)
        if position is not None:
            return (each for each in numbered if each[1].position <= position < each[1].position + each[1].size)
        if offset is not None:
            return islice((each for each in numbered if _holds(each[1], offset)), 1)
        return numbered


class SeenItems:
    """Items on their way to the output; count: those so far; is_wrong: whether one of them has a problem."""

    def __init__(self, items: Iterator[tuple[int, Item]]) -> None:
        self._items = items
        self.count = 0
        self.is_wrong = False

    def __iter__(self) -> Iterator[tuple[int, Item]]:
        for number, item in self._items:
            self.count += 1
            self.is_wrong |= item.problem is not None or any(map(_is_wrong, item.fields))
            yield number, item


def _is_wrong(field: ExplainedField) -> bool:
    inside = (*field.children, *field.body)
    return field.problem is not None or any(map(_is_wrong, inside))


def _holds(item: Item, offset: int) -> bool:
    """Return True if a batch has the offset; one with an unknown first offset has all up to its last."""
    if item.last_offset is None or offset > item.last_offset:
        return False
    return item.first_offset is None or offset >= item.first_offset
