"""Objects in the form of Aiven's plugin, made for tests: any chunk size, compressed or not, encrypted or not."""

import base64
import json
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import zstandard
from Crypto.Cipher import AES, PKCS1_OAEP
from Crypto.Hash import SHA3_512
from Crypto.PublicKey import RSA

from kseg.log.partition import PartitionLog

TOPIC_ID = "AAAAAAAAEAMAAAAAAAAgAw"
_IV = 12
_INDEXES = (
    ("offset", "index"),
    ("timestamp", "timeindex"),
    ("producerSnapshot", "snapshot"),
    ("leaderEpoch", "leader-epoch-checkpoint"),
    ("transaction", "txnindex"),
)


@cache
def key_pair(number: int) -> RSA.RsaKey:
    """Return a key pair, the same for the same number."""
    return RSA.generate(2048)


def private_key_file(directory: Path, number: int = 1) -> Path:
    """Write the private key of a pair to a file."""
    path = directory / f"key{number}.pem"
    path.write_bytes(key_pair(number).export_key(pkcs=8))
    return path


@dataclass(frozen=True)
class Plugin:
    """The plugin's settings. chunk_size: `chunk.size`. key: number of the active key pair, None without encryption."""

    chunk_size: int = 1024
    is_compressing: bool = False
    has_heuristic: bool = False
    key: int | None = None
    prefix: str = "prod/"


@dataclass(frozen=True)
class Segment:
    """A segment to be stored: its files' contents by suffix, and the broker's metadata."""

    files: dict[str, bytes]
    base: int
    end: int
    epochs: dict[int, int]
    segment_id: str = "AAAAAAAAMAMAAAAAAABAAw"
    is_compressed: bool = False
    event_timestamp: int = 1_700_000_000_000

    def uploaded_again(self, number: int, **changed: object) -> "Segment":
        """Return the segment with another id."""
        segment_id = base64.urlsafe_b64encode(struct.pack(">qq", 7, number))[:22].decode()
        return replace(self, segment_id=segment_id, **changed)


def segments_of(directory: Path) -> list[Segment]:
    """Return the segments of a partition directory, as a broker passes them to the plugin."""
    partition = PartitionLog(directory)
    ends = [*partition.base_offsets[1:], partition.read_log_end_offset()]
    epochs = dict(partition.read_leader_epochs() or ((0, 0),))
    found = []
    for number, (place, next_base) in enumerate(zip(partition.segments, ends, strict=True)):
        files = {file.name.partition(".")[2]: file.path.read_bytes() for file in place.files}
        snapshot = partition.snapshots.get(next_base)
        files["snapshot"] = b"" if snapshot is None else snapshot.path.read_bytes()
        lines = [f"{epoch} {start}\n" for epoch, start in epochs.items() if start < next_base]
        files["leader-epoch-checkpoint"] = f"0\n{len(lines)}\n{''.join(lines)}".encode()
        own = {epoch: max(start, place.base_offset) for epoch, start in epochs.items() if start < next_base}
        own = {epoch: start for epoch, start in own.items() if start == max(own.values()) or start > place.base_offset}
        segment = Segment(files, place.base_offset, next_base - 1, own)
        found.append(segment.uploaded_again(number))
    return found


def store(
    bucket: Path,
    plugin: Plugin,
    topic: str,
    segments: Sequence[Segment],
    *,
    partition: int = 0,
    topic_id: str = TOPIC_ID,
) -> Path:
    """Store segments as the plugin does, and return the folder of the partition."""
    folder = Path(f"{bucket}/{plugin.prefix}{topic}-{topic_id}/{partition}")
    folder.mkdir(parents=True, exist_ok=True)
    for segment in segments:
        _store(folder, plugin, segment, (topic, topic_id, partition))
    return folder


def _store(folder: Path, plugin: Plugin, segment: Segment, owner: tuple[str, str, int]) -> None:
    stem = f"{segment.base:020}-{segment.segment_id}"
    data_key, aad = os.urandom(32), os.urandom(32)
    is_compressing = plugin.is_compressing and not (plugin.has_heuristic and segment.is_compressed)

    def sealed(content: bytes) -> bytes:
        if plugin.key is None or not content:
            return content
        iv = os.urandom(_IV)
        cipher = AES.new(data_key, AES.MODE_GCM, nonce=iv)
        cipher.update(aad)
        return iv + b"".join(cipher.encrypt_and_digest(content))

    log = segment.files["log"]
    pieces = [log[at : at + plugin.chunk_size] for at in range(0, len(log), plugin.chunk_size)]
    if is_compressing:
        pieces = [zstandard.ZstdCompressor().compress(piece) for piece in pieces]
    chunks = [sealed(piece) for piece in pieces]
    indexes = [sealed(segment.files.get(suffix, b"")) for _, suffix in _INDEXES]
    (folder / f"{stem}.log").write_bytes(b"".join(chunks))
    (folder / f"{stem}.indexes").write_bytes(b"".join(indexes))
    chunk_index: dict[str, object] = {"originalChunkSize": plugin.chunk_size, "originalFileSize": len(log)}
    if is_compressing:
        packed = base64.b64encode(zstandard.ZstdCompressor().compress(chunk_sizes([*map(len, chunks)]))).decode()
        chunk_index = {"type": "variable", **chunk_index, "transformedChunks": packed}
    else:
        overhead = 0 if plugin.key is None else 28
        sizes = {"transformedChunkSize": plugin.chunk_size + overhead, "finalTransformedChunkSize": len(chunks[-1])}
        chunk_index = {"type": "fixed", **chunk_index, **sizes}
    manifest: dict[str, object] = {"version": "1", "chunkIndex": chunk_index, "segmentIndexes": {}}
    position = 0
    places: dict[str, object] = {}
    for (name, suffix), content in zip(_INDEXES, indexes, strict=True):
        is_there = suffix != "txnindex" or suffix in segment.files
        places[name] = {"position": position, "size": len(content)} if is_there else None
        position += len(content)
    manifest |= {"segmentIndexes": places, "compression": is_compressing}
    if plugin.key is not None:
        encrypted = PKCS1_OAEP.new(key_pair(plugin.key).public_key(), hashAlgo=SHA3_512).encrypt(data_key)
        texts = [base64.b64encode(each).decode() for each in (encrypted, aad)]
        manifest["encryption"] = {"dataKey": f"key{plugin.key}:{texts[0]}", "aad": texts[1]}
    topic, topic_id, partition = owner
    manifest["remoteLogSegmentMetadata"] = {
        "remoteLogSegmentId": {
            "topicIdPartition": {"topicId": topic_id, "topicPartition": {"topic": topic, "partition": partition}},
            "id": segment.segment_id,
        },
        "startOffset": segment.base,
        "endOffset": segment.end,
        "maxTimestampMs": 1_700_000_000_000,
        "brokerId": 1,
        "eventTimestampMs": segment.event_timestamp,
        "segmentLeaderEpochs": {str(epoch): start for epoch, start in segment.epochs.items()},
    }
    (folder / f"{stem}.rsm-manifest").write_text(json.dumps(manifest, separators=(",", ":")))


def chunk_sizes(sizes: list[int]) -> bytes:
    """Return sizes of chunks in the form of ChunkSizesBinaryCodec."""
    if not sizes:
        return struct.pack(">i", 0)
    if len(sizes) == 1:
        return struct.pack(">ii", 1, sizes[0])
    base = min(sizes[:-1])
    values = [size - base for size in sizes[:-1]]
    width = max((max(values).bit_length() + 7) // 8, 1)
    packed = b"".join(value.to_bytes(width, "big") for value in values)
    return struct.pack(">iib", len(sizes), base, width) + packed + struct.pack(">i", sizes[-1])
