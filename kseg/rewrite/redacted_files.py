"""Redacted files beside a log: indexes that point to where batches are now, and small files with other names.

Numbers stay. What isn't an entry, or no file of Kafka's, becomes noise or zeros of the same size.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from kseg import kernel
from kseg.errors import FileError
from kseg.formats.checkpoints import (
    MetaProperties,
    OffsetCheckpoint,
    build_clean_shutdown,
    build_leader_epoch_checkpoint,
    build_meta_properties,
    build_offset_checkpoint,
    build_partition_metadata,
    build_quorum_state,
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_metadata,
    parse_quorum_state,
)
from kseg.formats.file_names import FileKind
from kseg.formats.header_fields import (
    OFFSET_INDEX_ENTRY_FIELDS,
    PRODUCER_ENTRY_FIELDS,
    PRODUCER_SNAPSHOT_HEADER_FIELDS,
    SNAPSHOT_CRC,
    TIME_INDEX_ENTRY_FIELDS,
    TRANSACTION_INDEX_ENTRY_FIELDS,
    TRANSACTION_INDEX_VERSION,
    FixedFields,
)
from kseg.rewrite.redacted_log import LATEST_MS, Noise, Places
from kseg.rewrite.redacted_names import NameKind, Names

T = TypeVar("T")
_KEPT_PROPERTIES = frozenset(("version", "cluster.id", "node.id", "broker.id", "directory.id"))
_LARGEST_POSITION = (1 << 31) - 1


class Surroundings(NamedTuple):
    """Inputs of a file's new bytes: its noise, the names, and the new positions of its log's batches."""

    noise: Noise
    names: Names
    places: Places | None


def redact_file(kind: FileKind, content: bytes, around: Surroundings) -> bytes | None:
    """Return the new bytes of a file, or None for one that isn't Kafka's or a log."""
    redact = _FILES.get(kind)
    return None if redact is None else redact(content, around)


Entry = tuple[int, ...]


def _entries(
    fields: FixedFields,
    content: bytes,
    around: Surroundings,
    is_likely: Callable[[Entry, Entry], bool],
    changed: Callable[[Entry], Entry] = lambda entry: entry,
) -> bytes:
    """Entries of numbers. If most of them can't be such after the one before, the file holds something else: noise."""
    size = fields.struct.size
    pieces = [content[start : start + size] for start in range(0, len(content), size)]
    written = [fields.struct.unpack(piece) for piece in pieces if len(piece) == size and piece.strip(b"\0")]
    likely = sum(map(is_likely, written, [(0,) * len(fields.names), *written]))
    is_index = 2 * likely >= len(written)
    for number, piece in enumerate(pieces):
        if not piece.strip(b"\0"):
            continue
        entry = fields.struct.unpack(piece) if len(piece) == size else ()
        if entry and is_index:
            pieces[number] = fields.struct.pack(*changed(entry))
        else:
            pieces[number] = around.noise.bytes_at(number * size, len(piece))
    return b"".join(pieces)


def _offset_index(content: bytes, around: Surroundings) -> bytes:
    places = around.places

    def move_entry(entry: Entry) -> Entry:
        offset, position = entry
        if places is None or position < 0:
            return entry
        return offset, min(places.new_position(position), _LARGEST_POSITION)

    def is_likely(entry: Entry, before: Entry) -> bool:
        return entry[0] >= before[0] and entry[1] >= before[1]

    return _entries(OFFSET_INDEX_ENTRY_FIELDS, content, around, is_likely, move_entry)


def _time_index(content: bytes, around: Surroundings) -> bytes:
    def is_likely(entry: Entry, before: Entry) -> bool:
        return -1 <= entry[0] < LATEST_MS and entry[1] >= before[1]

    return _entries(TIME_INDEX_ENTRY_FIELDS, content, around, is_likely)


def _transaction_index(content: bytes, around: Surroundings) -> bytes:
    def is_likely(entry: Entry, _: Entry) -> bool:
        return entry[0] == TRANSACTION_INDEX_VERSION and min(entry[1:]) >= -1

    return _entries(TRANSACTION_INDEX_ENTRY_FIELDS, content, around, is_likely)


def _producer_snapshot(content: bytes, around: Surroundings) -> bytes:
    """A snapshot as it is, which has numbers alone; of a damaged one its header, and noise."""
    head = PRODUCER_SNAPSHOT_HEADER_FIELDS
    if len(content) >= head.struct.size:
        count = head.field("entries_count").read(content)
        is_whole = len(content) == head.struct.size + count * PRODUCER_ENTRY_FIELDS.struct.size
        if is_whole and SNAPSHOT_CRC.read(content) == kernel.load().crc32c(memoryview(content)[SNAPSHOT_CRC.end :]):
            return content
    kept = min(len(content), head.field("version").end)
    return content[:kept] + around.noise.bytes_at(kept, len(content) - kept)


def _offset_checkpoint(content: bytes, around: Surroundings) -> bytes:
    found = parse_offset_checkpoint(content)
    entries = tuple(entry._replace(topic=around.names.topic(entry.topic)) for entry in found.entries)
    return build_offset_checkpoint(OffsetCheckpoint(found.version, entries))


def _meta_properties(content: bytes, around: Surroundings) -> bytes:
    """Ids stay; other properties and comments, which anybody can write there, don't."""
    found = parse_meta_properties(content)
    properties = tuple(
        (name, value) if name in _KEPT_PROPERTIES else (name, around.names.name(NameKind.OTHER, value))
        for name, value in found.properties
    )
    return build_meta_properties(MetaProperties(("#",) if found.comments else (), properties))


def _numbers(parse: Callable[[bytes], T], build: Callable[[T], bytes]) -> Callable[[bytes, Surroundings], bytes]:
    """A file of numbers and ids: it is written anew, without what Kafka passes over."""
    return lambda content, _: build(parse(content))


def _text_file(redact: Callable[[bytes, Surroundings], bytes]) -> Callable[[bytes, Surroundings], bytes]:
    """A small text file; one that can't be read becomes noise."""

    def redact_content(content: bytes, around: Surroundings) -> bytes:
        try:
            return redact(content, around)
        except FileError:
            return around.noise.bytes_at(0, len(content))

    return redact_content


_FILES: Mapping[FileKind, Callable[[bytes, Surroundings], bytes]] = MappingProxyType(
    {
        FileKind.OFFSET_INDEX: _offset_index,
        FileKind.TIME_INDEX: _time_index,
        FileKind.TRANSACTION_INDEX: _transaction_index,
        FileKind.PRODUCER_SNAPSHOT: _producer_snapshot,
        FileKind.OFFSET_CHECKPOINT: _text_file(_offset_checkpoint),
        FileKind.LEADER_EPOCH_CHECKPOINT: _text_file(
            _numbers(parse_leader_epoch_checkpoint, build_leader_epoch_checkpoint)
        ),
        FileKind.PARTITION_METADATA: _text_file(_numbers(parse_partition_metadata, build_partition_metadata)),
        FileKind.META_PROPERTIES: _text_file(_meta_properties),
        FileKind.QUORUM_STATE: _text_file(_numbers(parse_quorum_state, build_quorum_state)),
        FileKind.CLEAN_SHUTDOWN: _text_file(_numbers(parse_clean_shutdown, build_clean_shutdown)),
        FileKind.LOCK: lambda _content, _around: b"",
    }
)
