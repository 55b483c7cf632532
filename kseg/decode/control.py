"""JSON of KRaft's control records, as DumpLogSegments prints it after the name of their type."""

from kseg.decode.parts import DecodeError
from kseg.formats.messages import MessageError, json_text, json_value, parse_message
from kseg.formats.schemas import MessageSchema, message_schema


def leader_change_json(value: bytes) -> str:
    """LEADER_CHANGE (2), printed from 4.1 on. Raises DecodeError where the real tool dies, like all of these."""
    return control_json(message_schema("LeaderChangeMessage"), value)


def snapshot_header_json(value: bytes) -> str:
    """SNAPSHOT_HEADER (3), printed from 3.3 on."""
    return control_json(message_schema("SnapshotHeaderRecord"), value)


def snapshot_footer_json(value: bytes) -> str:
    """SNAPSHOT_FOOTER (4), printed from 3.3 on."""
    return control_json(message_schema("SnapshotFooterRecord"), value)


def kraft_version_json(value: bytes) -> str:
    """KRAFT_VERSION (5), printed from 3.8 on."""
    return control_json(message_schema("KRaftVersionRecord"), value)


def kraft_voters_json(value: bytes) -> str:
    """KRAFT_VOTERS (6), printed from 3.8 on."""
    return control_json(message_schema("VotersRecord"), value)


def control_json(message: MessageSchema, value: bytes) -> str:
    """The JSON of a control record's value.

    Kafka reads every version as version 0, and prints it as the version that the message gives: fields that only the
    latter has show their defaults. Source: ControlRecordUtils (up to 4.3).
    """
    try:
        fields = parse_message(message, 0, value).value
    except MessageError as error:
        raise DecodeError(f"{message.name} can't be read: {error.message}") from error
    return json_text(json_value(message, fields["version"], fields))
