"""Items that `build` reads: records, whole batches, ends of transactions and starts of segments, each with its line."""

from base64 import b64decode
from collections.abc import Mapping
from typing import NamedTuple

from kseg.errors import KsegError, quoted
from kseg.formats.codes import ControlType
from kseg.reading.header import BatchHeader
from kseg.writer.record_encoding import HeaderPair

INT8, INT16, INT32, INT64 = (range(-(1 << bits - 1), 1 << bits - 1) for bits in (8, 16, 32, 64))


class SourceError(KsegError):
    """A line of the source is wrong."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


class SourceRecord(NamedTuple):
    """A record: offset and timestamp (milliseconds) are None if the source leaves them to `build`.

    timestamp_delta, attributes: as in a v2 batch, if the source has them.
    """

    line: int
    offset: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[HeaderPair, ...] = ()
    timestamp_delta: int | None = None
    attributes: int = 0


class SourceBatch(NamedTuple):
    """A whole batch, wrapper or v0 or v1 message; its header's position, size and CRC aren't known."""

    line: int
    header: BatchHeader
    records: tuple[SourceRecord, ...]


class SegmentStart(NamedTuple):
    """Another segment starts here."""

    line: int
    base_offset: int


class TransactionEnd(NamedTuple):
    """The transaction of the records before is committed or aborted here."""

    line: int
    control_type: ControlType


class Note(NamedTuple):
    """Something that the user should know about a line, but that doesn't stop the build."""

    line: int
    text: str


SourceItem = SourceRecord | SourceBatch | SegmentStart | TransactionEnd | Note


def integer(members: Mapping[str, object], name: str, limits: range, line: int) -> int:
    """A number of an object. Raises SourceError if it is missing, isn't an integer, or is out of range."""
    value = members.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise SourceError(line, f"{name} is {quoted(value)}, not an integer")
    if value not in limits:
        raise SourceError(line, f"{name} is {value}, not from {limits[0]} to {limits[-1]}")
    return value


def integer_or(members: Mapping[str, object], name: str, limits: range, line: int, absent: int | None) -> int | None:
    """A number of an object; `absent` if it is null or missing. Raises SourceError as `integer` does."""
    return absent if members.get(name) is None else integer(members, name, limits, line)


def text_as_bytes(text: str, name: str, line: int) -> bytes:
    """A text's UTF-8. Raises SourceError for half a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SourceError(line, f"{name} has half a surrogate pair at character {error.start}") from error


def decode_base64(text: str, name: str, line: int) -> bytes:
    """The bytes of a Base64 text. Raises SourceError if it isn't one, also for line ends and spaces."""
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise SourceError(line, f"{name} is {quoted(text)}, not base64") from error
