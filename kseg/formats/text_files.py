"""All text files: the entries that each kind holds, as names and values, and what its lines mean."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from kseg.formats import checkpoint
from kseg.formats.names import FileKind

Members = Mapping[str, object]
"""The fields of an entry: Kafka's name and the value."""


class TextFile(NamedTuple):
    """A kind of text file.

    entries: reads a file's bytes; raises KsegError with the line and what is wrong there, before the first entry.
    first_lines, other_lines: what the first lines are, and all after them.
    """

    entries: Callable[[bytes], Iterator[Members]]
    first_lines: tuple[str, ...] = ()
    other_lines: str = ""


def _offset_checkpoint(content: bytes) -> Iterator[Members]:
    for entry in checkpoint.parse_offset_checkpoint(content).entries:
        yield {"topic": entry.topic, "partition": entry.partition, "offset": entry.offset}


def _leader_epoch_checkpoint(content: bytes) -> Iterator[Members]:
    for entry in checkpoint.parse_leader_epoch_checkpoint(content).entries:
        yield {"epoch": entry.epoch, "startOffset": entry.start_offset}


def _partition_metadata(content: bytes) -> Iterator[Members]:
    metadata = checkpoint.parse_partition_metadata(content)
    yield {"version": metadata.version, "topicId": metadata.topic_id}


def _meta_properties(content: bytes) -> Iterator[Members]:
    yield {"properties": dict(checkpoint.parse_meta_properties(content).properties)}


def _quorum_state(content: bytes) -> Iterator[Members]:
    yield checkpoint.quorum_state_members(checkpoint.parse_quorum_state(content))


def _clean_shutdown(content: bytes) -> Iterator[Members]:
    yield checkpoint.clean_shutdown_members(checkpoint.parse_clean_shutdown(content))


_CHECKPOINT = ("version of the file: 0", "number of entries")
TEXT_FILES: dict[FileKind, TextFile] = {
    FileKind.OFFSET_CHECKPOINT: TextFile(_offset_checkpoint, _CHECKPOINT, "topic partition offset"),
    FileKind.LEADER_EPOCH_CHECKPOINT: TextFile(_leader_epoch_checkpoint, _CHECKPOINT, "epoch startOffset"),
    FileKind.PARTITION_METADATA: TextFile(_partition_metadata, ("version of the file", "id of the topic")),
    FileKind.META_PROPERTIES: TextFile(_meta_properties, (), "a comment, or a property and its value"),
    FileKind.QUORUM_STATE: TextFile(_quorum_state, ("what the node last knew about leader and votes",)),
    FileKind.CLEAN_SHUTDOWN: TextFile(_clean_shutdown, ("the broker's epoch when it was stopped cleanly",)),
}
