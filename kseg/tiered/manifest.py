"""Manifests of Aiven's tiered storage: a segment's chunks, compression, encryption and files."""

import base64
import binascii
import json
from dataclasses import dataclass, replace
from typing import Any

from kseg.errors import FileError, plural
from kseg.formats.file_names import FileKind
from kseg.formats.indexes import most_bytes_of_sizes, parse_chunk_sizes
from kseg.tiered.segment_bytes import (
    LARGEST_FILE,
    SEAL_SIZE,
    ChunkTable,
    Seal,
    StoredPart,
    chunk_count,
    decompress,
    equal_chunks,
    unequal_chunks,
)

LARGEST_MANIFEST = 1 << 21
"""The most bytes of a manifest. Uncompressed, the sizes of a segment's largest number of chunks take 1.4 MB of it."""
_INDEXES = {
    "offset": FileKind.OFFSET_INDEX,
    "timestamp": FileKind.TIME_INDEX,
    "producerSnapshot": FileKind.PRODUCER_SNAPSHOT,
    "leaderEpoch": FileKind.LEADER_EPOCH_CHECKPOINT,
    "transaction": FileKind.TRANSACTION_INDEX,
}


@dataclass(frozen=True, slots=True)
class SegmentManifest:
    """The content of a manifest. chunks: of the log. indexes: positions and stored bytes in the object of indexes."""

    chunks: ChunkTable
    indexes: dict[FileKind, tuple[int, int]]
    is_compressed: bool
    seal: Seal | None
    topic: str
    topic_id: str
    partition: int
    segment_id: str
    base_offset: int
    end_offset: int
    max_timestamp: int
    event_timestamp: int
    broker_id: int
    epochs: tuple[tuple[int, int], ...]

    @property
    def indexes_size(self) -> int:
        """Bytes of the object of indexes."""
        return max((position + size for position, size in self.indexes.values()), default=0)

    def log(self, key: str, object_size: int) -> StoredPart:
        """Return the log in its object; object_size: bytes of the object as listed."""
        return StoredPart(key, 0, self.chunks.size, self.chunks, self.is_compressed, self.seal, object_size)

    def files_in(self, key: str, object_size: int) -> dict[FileKind, StoredPart]:
        """Return the indexes in their object. An index without bytes isn't a file, unless Kafka writes empty ones."""
        return {
            kind: replace(self._index(key, position, size), object_size=object_size)
            for kind, (position, size) in self.indexes.items()
            if size or kind in _MAY_BE_EMPTY
        }

    def _index(self, key: str, position: int, size: int) -> StoredPart:
        if self.seal is None or not size:
            return StoredPart(key, position, size)
        plain = size - SEAL_SIZE
        chunk = equal_chunks(max(plain, 1), plain, size, size)
        return StoredPart(key, position, plain, chunk, seal=self.seal)


_MAY_BE_EMPTY = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)


def parse_manifest(content: bytes) -> SegmentManifest:
    """Parse a manifest. Raises KsegError if kseg doesn't know its format."""
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FileError("isn't JSON, so the manifest was truncated or changed") from error
    if not isinstance(fields, dict):
        raise FileError("isn't a manifest, since it isn't a JSON object")
    if fields.get("version") != "1":
        raise FileError(f"has version {fields.get('version')!r}; kseg reads manifests of version 1 (Kafka segments)")
    seal = _seal(fields.get("encryption"))
    about = _object(fields, "remoteLogSegmentMetadata")
    segment = _object(about, "remoteLogSegmentId")
    place = _object(segment, "topicIdPartition")
    owner = _object(place, "topicPartition")
    return SegmentManifest(
        chunks=_chunks(_object(fields, "chunkIndex")),
        indexes=_indexes(_object(fields, "segmentIndexes"), 0 if seal is None else SEAL_SIZE),
        is_compressed=_value(fields, "compression", bool),
        seal=seal,
        topic=_value(owner, "topic", str),
        topic_id=_value(place, "topicId", str),
        partition=_value(owner, "partition", int),
        segment_id=_value(segment, "id", str),
        base_offset=_value(about, "startOffset", int),
        end_offset=_value(about, "endOffset", int),
        max_timestamp=_value(about, "maxTimestampMs", int),
        event_timestamp=_value(about, "eventTimestampMs", int),
        broker_id=_value(about, "brokerId", int),
        epochs=_epochs(_object(about, "segmentLeaderEpochs")),
    )


def _object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = _value(fields, name, dict)
    return found


def _value(fields: dict[str, Any], name: str, kind: type) -> Any:
    found = fields.get(name)
    if type(found) is not kind or (isinstance(found, int) and not -1 <= found < 1 << 63):
        raise FileError(f"its field {name} is missing, or has a value that isn't valid there")
    return found


def _base64(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FileError(f"its field {name} isn't Base64") from error


def _seal(fields: object) -> Seal | None:
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise FileError("its field encryption isn't valid")
    key_id, colon, key = _value(fields, "dataKey", str).rpartition(":")
    if not colon:
        raise FileError("its field dataKey doesn't begin with a key's id")
    return Seal(key_id, _base64(key, "dataKey"), _base64(_value(fields, "aad", str), "aad"))


def _chunks(fields: dict[str, Any]) -> ChunkTable:
    chunk_size, size = (_value(fields, name, int) for name in ("originalChunkSize", "originalFileSize"))
    kind = fields.get("type")
    if kind == "fixed":
        stored_size = _value(fields, "transformedChunkSize", int)
        return equal_chunks(chunk_size, size, stored_size, _value(fields, "finalTransformedChunkSize", int))
    if kind != "variable":
        raise FileError(f"its chunk index has the type {kind!r}, expected fixed or variable")
    packed = _base64(_value(fields, "transformedChunks", str), "transformedChunks")
    count = chunk_count(chunk_size, size)
    try:
        sizes = decompress(packed, most_bytes_of_sizes(count))
    except OSError as error:
        raise FileError(f"its field transformedChunks {error.strerror}") from error
    return unequal_chunks(chunk_size, size, parse_chunk_sizes(sizes, count))


def _indexes(fields: dict[str, Any], least: int) -> dict[FileKind, tuple[int, int]]:
    """Return the position and stored bytes of each index; a non-empty one has at least `least` bytes."""
    found = {}
    for name, kind in _INDEXES.items():
        if fields.get(name) is None:
            continue
        place = _object(fields, name)
        position, size = _value(place, "position", int), _value(place, "size", int)
        if min(position, size) < 0 or max(position, size) > LARGEST_FILE or 0 < size < least:
            raise FileError(f"its index {name} can't have {plural(size, 'byte')} at position {position}")
        found[kind] = position, size
    return found


def _epochs(fields: dict[str, Any]) -> tuple[tuple[int, int], ...]:
    try:
        return tuple(sorted((int(epoch), _value(fields, epoch, int)) for epoch in fields))
    except ValueError as error:
        raise FileError("its field segmentLeaderEpochs has an epoch that isn't a number") from error
