"""Kafka's small text files: checkpoints, partition.metadata, meta.properties, quorum-state."""

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from kseg.errors import FileError, plural, quote
from kseg.formats.file_names import FileKind

CHECKPOINT_VERSION = 0
_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_LINE_END = re.compile(r"\r\n|\n|\r")
_WHITE_SPACE = re.compile(r"[ \t\n\x0b\f\r]+")
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")
# The form in which brokers write these files. A disk has thousands of them; other forms are parsed line by line.
_PLAIN_EPOCHS = re.compile(rb"0\n[0-9]{1,9}\n(?:[0-9]{1,10} [0-9]{1,18}\n)*")
_PLAIN_METADATA = re.compile(rb"version: ([0-9]{1,9})\ntopic_id: ([A-Za-z0-9_-]{22})\n?")
_ENTRY = rb"([A-Za-z0-9._-]{1,249}) ([0-9]{1,10}) ([0-9]{1,19})\n"
OFFSET_CHECKPOINT_ENTRY = re.compile(_ENTRY)
"""A line `topic partition offset` as brokers write it, in bytes that may be anything."""
OFFSET_CHECKPOINT_START = re.compile(rb"0\n([1-9][0-9]{0,6})\n(?=" + _ENTRY + rb")")
"""The beginning of an offset checkpoint with entries: version and number of entries."""


class PartitionOffset(NamedTuple):
    """Entry of an offset checkpoint."""

    topic: str
    partition: int
    offset: int


class EpochStart(NamedTuple):
    """An entry in a leader-epoch-checkpoint file: a leader epoch and its start offset."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class OffsetCheckpoint:
    """One of the `*-offset-checkpoint` files, entries in file order; `version` is None if the file is empty."""

    version: int | None
    entries: tuple[PartitionOffset, ...]


@dataclass(frozen=True, slots=True)
class LeaderEpochCheckpoint:
    """A `leader-epoch-checkpoint`, entries in file order; `version` is None if the file is empty."""

    version: int | None
    entries: tuple[EpochStart, ...]


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """A `partition.metadata`: the topic's uuid as 22 characters of base64url."""

    version: int
    topic_id: str


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """A `meta.properties`: comment lines with their mark, and properties, both in file order."""

    comments: tuple[str, ...]
    properties: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str | None:
        """Return the value of a property like `cluster.id`, or None if it is missing.

        The last one counts, as in Java.
        """
        return dict(self.properties).get(name)


@dataclass(frozen=True, slots=True)
class QuorumState:
    """A `quorum-state`. Fields that a data version doesn't have are None.

    Version 0 has `cluster_id`, `applied_offset` and `current_voters` (node ids, None for null), version 1
    `voted_directory_id`. Source: QuorumStateData.
    """

    data_version: int
    leader_id: int
    leader_epoch: int
    voted_id: int
    voted_directory_id: str | None = None
    cluster_id: str | None = None
    applied_offset: int | None = None
    current_voters: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class CleanShutdown:
    """A `.kafka_cleanshutdown`: both are None up to 3.6, which wrote an empty file."""

    version: int | None = None
    broker_epoch: int | None = None


def parse_offset_checkpoint(content: bytes) -> OffsetCheckpoint:
    """Parse the entries `topic partition offset`. Source: OffsetCheckpointFile."""
    version, rows = _parse_checkpoint(content, "topic partition offset")
    return OffsetCheckpoint(
        version,
        tuple(
            PartitionOffset(topic, _integer(partition, _INT32, line), _integer(offset, _INT64, line))
            for line, (topic, partition, offset) in rows
        ),
    )


def build_offset_checkpoint(checkpoint: OffsetCheckpoint) -> bytes:
    """Return the bytes of the file."""
    return _build_checkpoint(checkpoint.version, checkpoint.entries)


def parse_leader_epoch_checkpoint(content: bytes) -> LeaderEpochCheckpoint:
    """Parse the entries `epoch startOffset`. Source: LeaderEpochCheckpointFile."""
    if _PLAIN_EPOCHS.fullmatch(content):
        _, count, *numbers = map(int, content.split())
        if len(numbers) == 2 * count and max(numbers[::2], default=0) <= _INT32[1]:
            return LeaderEpochCheckpoint(0, tuple(map(EpochStart, numbers[::2], numbers[1::2])))
    version, rows = _parse_checkpoint(content, "epoch startOffset")
    return LeaderEpochCheckpoint(
        version,
        tuple(
            EpochStart(_integer(epoch, _INT32, line), _integer(start_offset, _INT64, line))
            for line, (epoch, start_offset) in rows
        ),
    )


def build_leader_epoch_checkpoint(checkpoint: LeaderEpochCheckpoint) -> bytes:
    """Return the bytes of the file."""
    return _build_checkpoint(checkpoint.version, checkpoint.entries)


def _parse_checkpoint(content: bytes, names: str) -> tuple[int | None, Iterator[tuple[int, list[str]]]]:
    """Return the version, and each entry's line number and fields, as many as `names` has. Source: CheckpointFile."""
    lines = _lines(content)
    if not lines:
        return None, iter(())
    version = _integer(lines[0], _INT32, 1)
    if version != CHECKPOINT_VERSION:
        raise FileError(f"line 1: version is {version}, expected {CHECKPOINT_VERSION}")
    if len(lines) == 1:
        return version, iter(())
    count = _integer(lines[1], _INT32, 2)
    rows = ((number, _fields(line, names, number)) for number, line in enumerate(islice(lines, 2, None), 3))
    if count != len(lines) - 2:
        deque(rows, maxlen=0)  # a malformed line is reported first
        raise FileError(f"line 2: the number of entries is {count}, but {len(lines) - 2} follow")
    return version, rows


def _fields(line: str, names: str, number: int) -> list[str]:
    # White space at the end is ignored; at the beginning it makes an empty field, as in Java's split.
    fields = _WHITE_SPACE.split(line.rstrip(" \t\x0b\f"))
    if len(fields) != len(names.split()) or not fields[0]:
        raise FileError(f"line {number}: {quote(line)} isn't `{names}`")
    return fields


def _build_checkpoint(version: int | None, entries: tuple[PartitionOffset | EpochStart, ...]) -> bytes:
    if version is None:
        return b""
    rows = (" ".join(map(str, entry)) for entry in entries)
    return "".join(f"{line}\n" for line in (version, len(entries), *rows)).encode()


def parse_partition_metadata(content: bytes) -> PartitionMetadata:
    """Parse the topic id. Source: PartitionMetadataFile."""
    if plain := _PLAIN_METADATA.fullmatch(content):
        return PartitionMetadata(int(plain[1]), plain[2].decode())
    lines = _lines(content)
    if len(lines) != 2:
        raise FileError(f"line {min(len(lines) + 1, 3)}: the file has {plural(len(lines), 'line')}, expected 2")
    version = _named_value(lines[0], "version", 1)
    topic_id = _named_value(lines[1], "topic_id", 2)
    if not _TOPIC_ID.fullmatch(topic_id):
        raise FileError(f"line 2: {quote(topic_id)} isn't a topic id of 22 base64url characters")
    return PartitionMetadata(_integer(version, _INT32, 1), topic_id)


def _named_value(line: str, name: str, number: int) -> str:
    match = re.fullmatch(rf"{name}:[ \t]+(\S+)", line)
    if match is None:
        raise FileError(f"line {number}: {quote(line)} isn't `{name}: …`")
    return match[1]


def build_partition_metadata(metadata: PartitionMetadata) -> bytes:
    """Return the bytes of the file; the second line has no line end."""
    return f"version: {metadata.version}\ntopic_id: {metadata.topic_id}".encode()


def parse_quorum_state(content: bytes) -> QuorumState:
    """Parse the quorum's state as last written by a KRaft node. Unknown members are ignored, as in Kafka."""
    fields = _json_object(content)
    version = _member(fields, "data_version", int)
    if version not in _QUORUM_STATE_MEMBERS:
        raise FileError(f"line 1: data_version is {version}, expected {' or '.join(map(str, _QUORUM_STATE_MEMBERS))}")
    values = {field: _member(fields, name, kind) for name, field, kind in _QUORUM_STATE_MEMBERS[version]}
    if values.get("current_voters") is not None:
        values["current_voters"] = tuple(_voter_id(voter) for voter in values["current_voters"])
    return QuorumState(**values)


def build_quorum_state(state: QuorumState) -> bytes:
    """Return the bytes of the file: one line of JSON without line end."""
    return _build_json(quorum_state_members(state))


def quorum_state_members(state: QuorumState) -> dict[str, object]:
    """Return the members of the file's JSON, in Kafka's order."""
    members: dict[str, object] = {
        name: getattr(state, field) for name, field, _kind in _QUORUM_STATE_MEMBERS[state.data_version]
    }
    if members.get("currentVoters") is not None:
        members["currentVoters"] = [{"voterId": voter} for voter in state.current_voters or ()]
    return members


_VOTERS = (list, type(None))
_LEADER_MEMBERS = (("leaderId", "leader_id", int), ("leaderEpoch", "leader_epoch", int), ("votedId", "voted_id", int))
_QUORUM_STATE_MEMBERS: dict[int, tuple[tuple[str, str, type | tuple[type, ...]], ...]] = {
    0: (
        ("clusterId", "cluster_id", str),
        *_LEADER_MEMBERS,
        ("appliedOffset", "applied_offset", int),
        ("currentVoters", "current_voters", _VOTERS),
        ("data_version", "data_version", int),
    ),
    1: (
        *_LEADER_MEMBERS,
        ("votedDirectoryId", "voted_directory_id", str),
        ("data_version", "data_version", int),
    ),
}
"""Data version to its members, in Kafka's order: name in the file, field of QuorumState, JSON type."""


def _voter_id(voter: object) -> int:
    if not isinstance(voter, dict):
        raise FileError(f"line 1: {quote(voter)} in currentVoters isn't an object")
    voter_id: int = _member(voter, "voterId", int)
    return voter_id


def parse_clean_shutdown(content: bytes) -> CleanShutdown:
    """Parse the broker's epoch at a clean stop, if the file has one (3.7 on). Source: CleanShutdownFileHandler."""
    if not content:
        return CleanShutdown()
    fields = _json_object(content)
    return CleanShutdown(_member(fields, "version", int), _member(fields, "brokerEpoch", int))


def build_clean_shutdown(marker: CleanShutdown) -> bytes:
    """Return the bytes of the file: nothing, or one line of JSON without line end."""
    members = clean_shutdown_members(marker)
    return _build_json(members) if members else b""


def clean_shutdown_members(marker: CleanShutdown) -> dict[str, object]:
    """Return the members of the file's JSON; none if the file is empty."""
    return {} if marker.version is None else {"version": marker.version, "brokerEpoch": marker.broker_epoch}


def _json_object(content: bytes) -> dict[str, Any]:
    try:
        value, _ = json.JSONDecoder().raw_decode(_text(content).lstrip())  # up to the value's end, as Jackson does
    except json.JSONDecodeError as error:
        raise FileError(f"line {error.lineno}: not JSON: {error.msg} at column {error.colno}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or deeply nested arrays
        raise FileError("line 1: the JSON has a number that is too long, or too many levels") from error
    if not isinstance(value, dict):
        raise FileError(f"line 1: the JSON is a {type(value).__name__}, expected an object")
    return value


def _member(fields: dict[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    if name not in fields:
        raise FileError(f"line 1: {name} is missing")
    value = fields[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise FileError(f"line 1: {name} is {quote(value)}")
    return _joined_surrogates(value) if isinstance(value, str) else value


def _build_json(members: dict[str, object]) -> bytes:
    return json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode()


def parse_meta_properties(content: bytes) -> MetaProperties:
    """Parse the comments and properties, and unescape them. Source: java.util.Properties."""
    comments: list[str] = []
    properties: list[tuple[str, str]] = []
    for number, line in _logical_lines(_LINE_END.split(content.decode("latin-1"))):
        if line.startswith(("#", "!")):
            comments.append(line)
        else:
            properties.append(_property(line, number))
    return MetaProperties(tuple(comments), tuple(properties))


def build_meta_properties(properties: MetaProperties) -> bytes:
    """Return the bytes of the file: the comments first, then a line per property."""
    rows = (f"{_escape(name, spaces=True)}={_escape(value)}" for name, value in properties.properties)
    return "".join(f"{line}\n" for line in (*properties.comments, *rows)).encode("latin-1")


def _logical_lines(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield lines with content, and their numbers; one that ends in an odd number of backslashes continues."""
    numbered = enumerate((line.lstrip(" \t\f") for line in lines), 1)
    for number, line in numbered:
        if not line:
            continue
        if line.startswith(("#", "!")):
            yield number, line
            continue
        parts = [line]
        while (len(parts[-1]) - len(parts[-1].rstrip("\\"))) % 2:
            parts[-1] = parts[-1][:-1]
            parts.append(next(numbered, (0, ""))[1])
        yield number, "".join(parts)


_PROPERTY = re.compile(r"((?:\\.|[^\\=: \t\f])*)(?:[ \t\f]*[=:][ \t\f]*|[ \t\f]+|$)(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPECIAL = {char: "\\" + letter for letter, char in _ESCAPED.items()} | {char: "\\" + char for char in "\\=:#!"}


def _property(line: str, number: int) -> tuple[str, str]:
    match = _PROPERTY.fullmatch(line)
    if match is None:
        raise FileError(f"line {number}: {quote(line)} isn't a property")
    return _unescape(match[1], number), _unescape(match[2], number)


def _unescape(text: str, number: int) -> str:
    def character(match: re.Match[str]) -> str:
        escaped = match[1]
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        if escaped == "u":
            raise FileError(f"line {number}: \\u isn't followed by four hex digits")
        return _ESCAPED.get(escaped, escaped)

    return _joined_surrogates(_ESCAPE.sub(character, text))


def _joined_surrogates(text: str) -> str:
    """Join surrogate pairs: Java's and JSON's escapes are UTF-16. A single half becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _escape(text: str, *, spaces: bool = False) -> str:
    """Escape as Properties.store does: all spaces in names, but in values only a space at the start."""
    escaped = []
    for index, char in enumerate(text):
        if char == " ":
            escaped.append("\\ " if spaces or index == 0 else " ")
        elif char in _SPECIAL:
            escaped.append(_SPECIAL[char])
        elif " " <= char <= "~":
            escaped.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass").hex().upper()
            escaped.extend(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))
    return "".join(escaped)


def _lines(content: bytes) -> list[str]:
    lines = _LINE_END.split(_text(content))
    return lines if lines[-1] else lines[:-1]


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FileError(f"line {line}: not UTF-8", position=error.start) from error


def _integer(text: str, bounds: tuple[int, int], line: int) -> int:
    """Parse the number as Java's parseInt or parseLong does."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    if number is None or not bounds[0] <= number <= bounds[1]:
        raise FileError(f"line {line}: {quote(text)} isn't an integer from {bounds[0]} to {bounds[1]}")
    return number


Members = Mapping[str, object]
"""The fields of an entry: Kafka's name and the value."""


class TextFile(NamedTuple):
    """A kind of text file.

    entries: parses a file's bytes; raises KsegError with the line and its problem, before the first entry.
    first_lines, other_lines: the types of the first lines, and of all others.
    """

    entries: Callable[[bytes], Iterator[Members]]
    first_lines: tuple[str, ...] = ()
    other_lines: str = ""


def _offset_checkpoint(content: bytes) -> Iterator[Members]:
    for entry in parse_offset_checkpoint(content).entries:
        yield {"topic": entry.topic, "partition": entry.partition, "offset": entry.offset}


def _leader_epoch_checkpoint(content: bytes) -> Iterator[Members]:
    for entry in parse_leader_epoch_checkpoint(content).entries:
        yield {"epoch": entry.epoch, "startOffset": entry.start_offset}


def _partition_metadata(content: bytes) -> Iterator[Members]:
    metadata = parse_partition_metadata(content)
    yield {"version": metadata.version, "topicId": metadata.topic_id}


def _meta_properties(content: bytes) -> Iterator[Members]:
    yield {"properties": dict(parse_meta_properties(content).properties)}


def _quorum_state(content: bytes) -> Iterator[Members]:
    yield quorum_state_members(parse_quorum_state(content))


def _clean_shutdown(content: bytes) -> Iterator[Members]:
    yield clean_shutdown_members(parse_clean_shutdown(content))


_CHECKPOINT = ("version of the file: 0", "number of entries")
TEXT_FILES: dict[FileKind, TextFile] = {
    FileKind.OFFSET_CHECKPOINT: TextFile(_offset_checkpoint, _CHECKPOINT, "topic partition offset"),
    FileKind.LEADER_EPOCH_CHECKPOINT: TextFile(_leader_epoch_checkpoint, _CHECKPOINT, "epoch startOffset"),
    FileKind.PARTITION_METADATA: TextFile(_partition_metadata, ("version of the file", "id of the topic")),
    FileKind.META_PROPERTIES: TextFile(_meta_properties, (), "a comment, or a property and its value"),
    FileKind.QUORUM_STATE: TextFile(_quorum_state, ("the node's last knowledge of the leader and its votes",)),
    FileKind.CLEAN_SHUTDOWN: TextFile(_clean_shutdown, ("the broker's epoch when it was stopped cleanly",)),
}
