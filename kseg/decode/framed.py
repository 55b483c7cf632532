"""Framed records: frame version, type and version before a message. `__cluster_metadata`, `__remote_log_metadata`.

Source: AbstractApiMessageSerde; MetadataRecordSerde of the 2.8 preview.
"""

from collections.abc import Mapping
from typing import NamedTuple

from construct import ConstructError, Sequence

from kseg.formats.messages import NO_TEXT, Fields, MessageError, parse_message
from kseg.formats.schemas import MessageSchema, version_range
from kseg.formats.varint import UVARINT
from kseg.formats.varint_bytes import LONGEST_VARINT, read_uvarint

FRAME_VERSION = 1
PREVIEW_FRAME_VERSION = 0
PREVIEW_TEXT = (
    "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release of KRaft "
    "in 2.8 to newer versions are not supported."
)
MAXIMUM_INT16 = 0x7FFF
_UINT32 = 0xFFFFFFFF
HEADER_WORDS = ("frame version", "type", "version")


class Framed(NamedTuple):
    """A framed record's message."""

    message: MessageSchema
    version: int
    fields: Fields


def parse_framed(records: Mapping[int, MessageSchema], value: bytes | None) -> Framed:
    """The message of a record. Raises MessageError with Kafka's text if it can't be read."""
    data = value or b""
    frame_version, position = header_number(data, 0, 0)
    if frame_version == PREVIEW_FRAME_VERSION:
        raise MessageError(PREVIEW_TEXT)
    check_frame_version(frame_version, FRAME_VERSION)
    number, position = header_number(data, 1, position)
    version, position = header_number(data, 2, position)
    if number not in records:
        kind = "org.apache.kafka.common.errors.UnsupportedVersionException"
        raise MessageError(f"{kind}: Unknown metadata id {number}")
    try:
        fields, end = parse_message(records[number], version, data, position)
    except MessageError as error:
        raise MessageError(f"Failed to deserialize record with type {number}") from error
    if end < len(data):
        raise MessageError(f"Found {len(data) - end} byte(s) of garbage after {number}")
    return Framed(records[number], version, fields)


def is_newer(records: Mapping[int, MessageSchema], value: bytes | None) -> bool:
    """Whether a record has a newer frame version, type or version than the known ones."""
    data = value or b""
    try:
        frame_version, position = header_number(data, 0, 0)
        number, position = header_number(data, 1, position)
        version, _ = header_number(data, 2, position)
    except MessageError:
        return False
    if frame_version > FRAME_VERSION or number > max(records):
        return True
    return number in records and version > version_range(records[number].versions).last


def parse_preview(records: Mapping[int, MessageSchema], value: bytes | None) -> Framed:
    """The message of a record as the 2.8 preview reads it: frame version 0, and no complaint about extra bytes."""
    data = value or b""
    try:
        frame_version, number, version = Sequence(UVARINT, UVARINT, UVARINT).parse(data)
    except ConstructError as error:
        raise MessageError("the record's bytes end too early", NO_TEXT) from error
    check_frame_version(frame_version, PREVIEW_FRAME_VERSION)
    if number not in records:
        raise MessageError(f"Unknown metadata id {number}")
    position = len(Sequence(UVARINT, UVARINT, UVARINT).build([frame_version, number, version]))
    return Framed(records[number], version, parse_message(records[number], version, data, position).value)


def check_frame_version(frame_version: int, known: int) -> None:
    """Raises MessageError if the frame version isn't the release's."""
    if frame_version != known:
        raise MessageError(
            f"Could not deserialize metadata record due to unknown frame version {frame_version}"
            f"(only frame version {known} is supported)"
        )


def header_number(data: bytes, index: int, position: int) -> tuple[int, int]:
    """The header's number at a position, and the position of the next one."""
    word = HEADER_WORDS[index]
    try:
        number, end = read_uvarint(data, position, LONGEST_VARINT)
    except EOFError as error:
        raise MessageError(f"Error while reading {word}") from error
    if number & _UINT32 > MAXIMUM_INT16:
        raise MessageError(f"Value for {word} was too large.")
    return number & _UINT32, end
