"""Prints Kafka's small text files in the words of their fields, an entry or a property a line."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from kseg.errors import KsegError, OpenError
from kseg.formats import checkpoint
from kseg.formats.names import FileKind, parse_file_name
from kseg.system.regular_file import read_text_file

if TYPE_CHECKING:
    from kseg.dump.found import Found
    from kseg.dump.options import DumpContext


def dump_text(path: str, context: "DumpContext") -> None:
    """Prints a text file; of a malformed one only what is wrong, on stderr. Raises OpenError if it can't be opened."""
    context.output.write("".join([f"{line}\n" for line in _lines(path, context.found)]).encode())


def check_text(path: str, found: "Found") -> None:
    """Finds what is wrong with a text file. Raises OpenError if it can't be opened."""
    _lines(path, found)


def _lines(path: str, found: "Found") -> list[str]:
    """The lines that are printed of a text file; none of a malformed one, of which is noted why."""
    try:
        return list(LINES_OF_KIND[parse_file_name(path).kind](read_text_file(path)))
    except OpenError:
        raise
    except KsegError as error:
        found.add_problem(path, error.message)
        return []


def _offset_checkpoint(content: bytes) -> Iterator[str]:
    for entry in checkpoint.parse_offset_checkpoint(content).entries:
        yield f"topic: {entry.topic} partition: {entry.partition} offset: {entry.offset}"


def _leader_epoch_checkpoint(content: bytes) -> Iterator[str]:
    for entry in checkpoint.parse_leader_epoch_checkpoint(content).entries:
        yield f"epoch: {entry.epoch} startOffset: {entry.start_offset}"


def _partition_metadata(content: bytes) -> Iterator[str]:
    metadata = checkpoint.parse_partition_metadata(content)
    yield f"version: {metadata.version} topicId: {metadata.topic_id}"


def _meta_properties(content: bytes) -> Iterator[str]:
    for name, value in checkpoint.parse_meta_properties(content).properties:
        yield f"{name}: {value}"


def _quorum_state(content: bytes) -> Iterator[str]:
    yield _shown(checkpoint.quorum_state_members(checkpoint.parse_quorum_state(content)))


def _clean_shutdown(content: bytes) -> Iterator[str]:
    members = checkpoint.clean_shutdown_members(checkpoint.parse_clean_shutdown(content))
    if members:
        yield _shown(members)


def _shown(members: Mapping[str, object]) -> str:
    """A JSON object's members as `name: value`, in their order; values that aren't text as JSON."""
    return " ".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}"
        for name, value in members.items()
    )


LINES_OF_KIND: dict[FileKind, Callable[[bytes], Iterator[str]]] = {
    FileKind.OFFSET_CHECKPOINT: _offset_checkpoint,
    FileKind.LEADER_EPOCH_CHECKPOINT: _leader_epoch_checkpoint,
    FileKind.PARTITION_METADATA: _partition_metadata,
    FileKind.META_PROPERTIES: _meta_properties,
    FileKind.QUORUM_STATE: _quorum_state,
    FileKind.CLEAN_SHUTDOWN: _clean_shutdown,
}
