"""`__consumer_offsets` as 0.9.0.1 to 3.7 printed it: `offset::group:topic:partition`, `offset_commit::…`, group JSON.

Source: OffsetsMessageParser of DumpLogSegments up to 2.4.0, GroupMetadataManager.formatRecordKeyAndValue from 2.4.1 on.
"""

from typing import NamedTuple

from kseg.decode.coordinator import CONSUMER_PROTOCOL_TYPE
from kseg.decode.history import message_as_of
from kseg.decode.parts import DecodeError, Decoder, Parts, key_version, parts
from kseg.formats.messages import Fields, MessageError, json_text, parse_message
from kseg.formats.positions import VERSION
from kseg.formats.schemas import MessageSchema, message_schema, version_range
from kseg.releases import Release, Since, value_in


class GroupTexts(NamedTuple):
    """The texts of a line of releases; the fields of the message fill the holes."""

    offset_key: str
    offset: str
    offset_with_metadata: str
    group_key: str
    is_group_json: bool
    """Whether a group's value is JSON; in earlier releases, colons separate its parts."""
    escapes_json: bool
    shows_tombstones: bool
    """`<DELETE>`; earlier releases print neither part of a record without value."""


_OLDEST = GroupTexts(
    offset_key="offset::{group}:{topic}:{partition}",
    offset="{offset}",
    offset_with_metadata="{offset}:{metadata}",
    group_key="metadata::{group}",
    is_group_json=False,
    escapes_json=False,
    shows_tombstones=False,
)
_NEWEST = GroupTexts(
    offset_key="offset_commit::group={group},partition={topic}-{partition}",
    offset="offset={offset}",
    offset_with_metadata="offset={offset},metadata={metadata}",
    group_key="group_metadata::group={group}",
    is_group_json=True,
    escapes_json=True,
    shows_tombstones=True,
)
TEXTS: Since[GroupTexts] = (
    ((0, 9), _OLDEST),
    ((1, 0), _OLDEST._replace(group_key='{{"metadata":"{group}"}}', is_group_json=True)),
    ((1, 1), _OLDEST._replace(group_key='{{"metadata":{json}}}', is_group_json=True, escapes_json=True)),
    ((2, 4, 1), _NEWEST),
)
CAN_PRINT_HEX: Since[bool] = (((0, 9), False), ((0, 10, 1), True))
"""0.9.0.1 and 0.10.0 die at bytes that they should print in hex: their format doesn't accept the number."""
NAMES_UNKNOWN_KEYS: Since[bool] = (((0, 9), False), ((3, 4, 1), True))


def group_text_decoder(release: Release) -> Decoder:
    """The decoder of a release before 3.8."""
    texts = value_in(release, TEXTS)

    def decode(key: bytes | None, value: bytes | None, offset: int) -> Parts:
        if value is None and not texts.shows_tombstones:
            return Parts(None, None)
        version = key_version(key)
        if version in (0, 1):
            return offset_parts(texts, release, key or b"", value)
        if version == 2:
            return group_parts(texts, release, key or b"", value)
        if value_in(release, NAMES_UNKNOWN_KEYS):
            return parts(f"unknown::version={version}", None)
        raise DecodeError(f"offset {offset}: unknown key version {version}: the real tool stops here")

    return decode


def offset_parts(texts: GroupTexts, release: Release, key: bytes, value: bytes | None) -> Parts:
    """The printed parts of an offset commit."""
    fields = read(message_schema("OffsetCommitKey"), release, key)
    key_text = texts.offset_key.format_map(fields)
    if value is None:
        return parts(key_text, "<DELETE>")
    commit = read(message_schema("OffsetCommitValue"), release, value)
    template = texts.offset_with_metadata if commit["metadata"] else texts.offset
    return parts(key_text, template.format_map(commit))


def group_parts(texts: GroupTexts, release: Release, key: bytes, value: bytes | None) -> Parts:
    """The printed parts of a group's metadata."""
    group = read(message_schema("GroupMetadataKey"), release, key)["group"]
    key_text = texts.group_key.format(group=group, json=json_text(group))
    if value is None:
        return parts(key_text, "<DELETE>")
    fields = read(message_schema("GroupMetadataValue"), release, value)
    shown = {
        "protocolType": fields["protocolType"],
        "protocol": fields["protocol"],
        "generationId": fields["generation"],
        "assignment": "{" + ",".join(member_text(release, fields, member) for member in fields["members"]) + "}",
    }
    return parts(key_text, group_text(texts, shown))


def group_text(texts: GroupTexts, shown: Fields) -> str:
    """The text of a group's value."""
    if texts.escapes_json:
        return json_text(shown)
    if texts.is_group_json:
        return "{" + ",".join(f'"{name}":{unescaped_json(value)}' for name, value in shown.items()) + "}"
    return ":".join("null" if value is None else str(value) for value in shown.values())


def unescaped_json(value: str | int | None) -> str:
    """JSON as 1.0 wrote it, without any escapes."""
    return "null" if value is None else f'"{value}"' if isinstance(value, str) else str(value)


def member_text(release: Release, group: Fields, member: Fields) -> str:
    """A member with its assigned partitions, or with its assignment in hex."""
    name, data = member["memberId"], member["assignment"]
    if group["protocolType"] != CONSUMER_PROTOCOL_TYPE:
        return f"{name}={hex_text(release, data)}"
    assignment = read(message_schema("ConsumerProtocolAssignment"), release, data, any_version=True)
    partitions = ", ".join(
        f"{topic['topic']}-{partition}"
        for topic in assignment["assignedPartitions"]
        for partition in topic["partitions"]
    )
    if assignment["userData"] is None and not value_in(release, TEXTS).shows_tombstones:
        raise DecodeError(f"member {name} has null user data: the real tool stops here")
    user_data = hex_text(release, assignment["userData"] or b"")
    return f"{name}=[{partitions}]:{user_data}" if user_data else f"{name}=[{partitions}]"


def hex_text(release: Release, data: bytes) -> str:
    """Bytes as one number in capital hex digits: leading zero bytes vanish."""
    if data and not value_in(release, CAN_PRINT_HEX):
        raise DecodeError("bytes that it should print in hex: the real tool stops here")
    return f"{int.from_bytes(data, 'big'):X}" if data else ""


def read(message: MessageSchema, release: Release, data: bytes, any_version: bool = False) -> Fields:
    """A message after its version, as a release knew it.

    Raises DecodeError for bytes that can't be read, and for versions that the release didn't know.
    """
    known = message_as_of(message, release)
    version = VERSION.read(data)
    is_key = message.kind == "coordinator-key"
    if not any_version and not is_key and version not in version_range(known.versions):
        raise DecodeError(f"unknown version {version} of {message.name}: the real tool stops here")
    try:
        return parse_message(known, version, data, 2).value
    except MessageError as error:
        raise DecodeError(f"{message.name} can't be read ({error.message}): the real tool stops here") from error
