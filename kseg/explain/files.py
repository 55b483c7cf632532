"""Any of Kafka's files, piece by piece: batches, entries, lines, each with its fields."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kseg import kernel
from kseg.batch import Batch
from kseg.errors import KsegError
from kseg.explain.field import Check, Field
from kseg.explain.log import DAMAGE_WALKED, batch_fields, damage_fields
from kseg.explain.walk import walk
from kseg.formats import checkpoint
from kseg.formats.fixed import PRODUCER_SNAPSHOT_CRC_COVERS_FROM
from kseg.formats.index import ABORTED_TRANSACTION, OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY
from kseg.formats.names import LOG_KINDS, FileKind, parse_file_name
from kseg.formats.snapshot import PRODUCER_SNAPSHOT
from kseg.log_file import Damage
from kseg.regular_file import read_regular
from kseg.segment import Segment


@dataclass(frozen=True)
class Item:
    """A piece of a file: a batch, an entry, a damage, a line, or the whole file where it has no such pieces.

    first_offset, last_offset: of a batch; None for others, and the first also for wrappers. Fields are read when they
    are asked for.
    """

    title: str
    position: int
    size: int
    read: Callable[[], list[Field]]
    find_problem: Callable[[], str | None] = lambda: None
    first_offset: int | None = None
    last_offset: int | None = None

    @cached_property
    def fields(self) -> list[Field]:
        """The fields, from the first to the last byte."""
        return self.read()

    @cached_property
    def problem(self) -> str | None:
        """What is wrong with it as a whole; None if nothing is."""
        return self.find_problem()


def explain_file(path: Path) -> Iterator[Item]:
    """The pieces of a file in order, from its first to its last byte.

    Raises OpenError if it can't be read, KsegError if its name is that of no kind of file that is known.
    """
    kind = parse_file_name(path).kind
    if kind in LOG_KINDS:
        yield from _log_items(path)
    elif kind in _ENTRIES:
        yield from _entry_items(path, *_ENTRIES[kind])
    elif kind is FileKind.PRODUCER_SNAPSHOT:
        yield from _snapshot_items(read_regular(path))
    elif kind in _LINES:
        yield from _line_items(read_regular(path), kind)
    else:
        raise KsegError("nothing is known of files with such a name", path)


def _log_items(path: Path) -> Iterator[Item]:
    with Segment(path) as segment:
        number = 0
        for found in segment.scan():
            if isinstance(found, Batch):
                yield _batch_item(found, number)
                number += 1
            else:
                raw = segment.file.read(found.position, min(found.size, DAMAGE_WALKED))
                if found.size:
                    yield _damage_item(found, raw)


def _batch_item(batch: Batch, number: int) -> Item:
    def find_problem() -> str | None:
        problem = batch.problem()
        return None if problem is None else problem.detail

    what = "batch" if batch.magic >= 2 else "entry"
    title = f"{what} {number}, format {batch.magic}, last offset {batch.last_offset}"
    offsets = (batch.header_base_offset, batch.last_offset)
    return Item(title, batch.position, batch.size, lambda: batch_fields(batch), find_problem, *offsets)


def _damage_item(damage: Damage, raw: bytes) -> Item:
    title = f"damage: {damage.kind}"
    return Item(title, damage.position, damage.size, lambda: damage_fields(damage, raw), lambda: damage.detail)


_ENTRIES: dict[FileKind, tuple[Any, str]] = {
    FileKind.OFFSET_INDEX: (OFFSET_INDEX_ENTRY, "relative_offset"),
    FileKind.TIME_INDEX: (TIME_INDEX_ENTRY, "relative_offset"),
    FileKind.TRANSACTION_INDEX: (ABORTED_TRANSACTION, ""),
}
"""Files of entries: their grammar, and the field that is relative to the base offset in the file's name."""


def _entry_items(path: Path, grammar: Any, relative: str) -> Iterator[Item]:
    base = parse_file_name(path).base_offset
    content = read_regular(path)
    written = len(content.rstrip(b"\0"))
    size = grammar.sizeof()
    for number, at in enumerate(range(0, len(content), size)):
        if number and at >= written and relative:
            yield _zero_tail(content, at)
            return
        raw = content[at : at + size]
        fields = walk(grammar, raw, at)
        if relative and len(raw) == size and base is not None:
            field = next(field for field in fields if field.path == relative)
            field.meaning += f": offset {base + int.from_bytes(field.raw, 'big', signed=True)}"
        problem = None if len(raw) == size else f"{len(raw)} bytes, an entry has {size}"
        yield _read_item(f"entry {number}", at, len(raw), fields, problem)


def _zero_tail(content: bytes, at: int) -> Item:
    size = len(content) - at
    meaning = "the unwritten rest of a preallocated file"
    field = Field("zero tail", at, size, "bytes", None, meaning, content[at : at + 64])
    return _read_item("zero tail", at, size, [field])


def _read_item(title: str, position: int, size: int, fields: list[Field], problem: str | None = None) -> Item:
    return Item(title, position, size, lambda: fields, lambda: problem)


def _snapshot_items(content: bytes) -> Iterator[Item]:
    fields = walk(PRODUCER_SNAPSHOT, content)
    for field in fields:
        if field.path == "crc":
            computed = kernel.load().crc32c(memoryview(content)[PRODUCER_SNAPSHOT_CRC_COVERS_FROM:])
            stored = int.from_bytes(field.raw, "big")
            field.check = Check(stored, computed, PRODUCER_SNAPSHOT_CRC_COVERS_FROM, len(content))
            if not field.check.holds:
                field.problem = f"crc is 0x{stored:08x}, computed 0x{computed:08x}"
    yield _read_item("producer snapshot", 0, len(content), fields)


_CHECKPOINT = ("version of the file: 0", "number of entries")
_LINES: dict[FileKind, tuple[tuple[str, ...], str, Callable[[bytes], object]]] = {
    FileKind.OFFSET_CHECKPOINT: (_CHECKPOINT, "topic partition offset", checkpoint.parse_offset_checkpoint),
    FileKind.LEADER_EPOCH_CHECKPOINT: (_CHECKPOINT, "epoch startOffset", checkpoint.parse_leader_epoch_checkpoint),
    FileKind.PARTITION_METADATA: (("version of the file", "id of the topic"), "", checkpoint.parse_partition_metadata),
    FileKind.META_PROPERTIES: ((), "a comment, or a property and its value", checkpoint.parse_meta_properties),
    FileKind.QUORUM_STATE: (("what the node last knew of leader and votes",), "", checkpoint.parse_quorum_state),
    FileKind.CLEAN_SHUTDOWN: (("the broker's epoch at its orderly stop",), "", checkpoint.parse_clean_shutdown),
}
"""Text files: what their first lines are, what all others are, and what reads them."""


def _line_items(content: bytes, kind: FileKind) -> Iterator[Item]:
    first, others, parse = _LINES[kind]
    problem = None
    try:
        parse(content)
    except KsegError as error:
        problem = error.message
    at = 0
    for number, raw in enumerate(content.splitlines(keepends=True)):
        meaning = first[number] if number < len(first) else others
        text = raw.rstrip(b"\r\n").decode("utf-8", "replace")
        field = Field(f"line {number + 1}", at, len(raw), "text", text, meaning, raw)
        wrong = problem if problem is not None and problem.startswith(f"line {number + 1}:") else None
        yield _read_item(f"line {number + 1}", at, len(raw), [field], wrong)
        at += len(raw)
