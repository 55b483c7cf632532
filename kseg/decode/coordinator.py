"""Coordinators' records as JSON: `__consumer_offsets` (3.8 on), `__transaction_state` (4.1 on), `__share_group_state`.

Source: CoordinatorRecordSerde and DumpLogSegments' parsers that use it.
"""

from contextlib import suppress
from typing import NamedTuple

from kseg.decode.history import Messages
from kseg.decode.parts import Decoder, Parts, key_version, parts
from kseg.formats.messages import Fields, MessageError, json_text, json_value, parse_message
from kseg.formats.positions import VERSION
from kseg.formats.schemas import MessageSchema, message_schema, version_range
from kseg.releases import Release

CONSUMER_PROTOCOL_TYPE = "consumer"


class Rules(NamedTuple):
    """How a release prints a coordinator's records."""

    messages: Messages
    version_word: str
    """The name of the value's version in the JSON."""
    checks_versions: bool
    """Whether a value version that the release doesn't know is an error; before 4.1 it is read as the newest."""


def coordinator_decoder(messages: Messages, release: Release, version_word: str = "version") -> Decoder:
    """A decoder of records with these messages; it fails only at a missing key."""
    rules = Rules(messages, version_word, checks_versions=release.numbers >= (4, 1))

    def decode(key: bytes | None, value: bytes | None, offset: int) -> Parts:
        if key is not None and len(key) < 2:
            return parts(f"Error at offset {offset}, skipping. Could not read version from key's buffer.", None)
        record_type = key_version(key)
        if record_type not in rules.messages:
            return parts(f"Unknown record type {record_type} at offset {offset}, skipping.", None)
        try:
            return parts(key_text(rules, record_type, key or b""), value_text(rules, record_type, value))
        except MessageError as error:
            return parts(f"Error at offset {offset}, skipping. {error.kafka_text}", None)

    return decode


def key_text(rules: Rules, record_type: int, key: bytes) -> str:
    """The JSON of a key."""
    message = rules.messages[record_type][0]
    fields = read(message, record_type, key, "key")
    return json_text({"type": str(record_type), "data": json_value(message, record_type, fields)})


def value_text(rules: Rules, record_type: int, value: bytes | None) -> str:
    """The JSON of a value, or `<DELETE>`."""
    if value is None:
        return "<DELETE>"
    if len(value) < 2:
        raise MessageError("Could not read version from value's buffer.")
    message = rules.messages[record_type][1]
    version = VERSION.read(value)
    if rules.checks_versions and version not in version_range(message.versions):
        raise MessageError(f"Found an unknown record version {version} for {record_type} type")
    fields = read(message, version, value, "value")
    shown = json_value(message, version, fields)
    if message.name == "GroupMetadataValue" and fields["protocolType"] == CONSUMER_PROTOCOL_TYPE:
        for member, bare in zip(shown["members"], fields["members"], strict=True):
            show_embedded(member, "subscription", message_schema("ConsumerProtocolSubscription"), bare["subscription"])
            show_embedded(member, "assignment", message_schema("ConsumerProtocolAssignment"), bare["assignment"])
    return json_text({rules.version_word: str(version), "data": shown})


def read(message: MessageSchema, version: int, data: bytes, name: str) -> Fields:
    """A message that follows an int16."""
    try:
        return parse_message(message, version, data, 2).value
    except MessageError as error:
        raise MessageError(
            f"Could not read record with version {version} from {name}'s buffer due to: {error.kafka_text}."
        ) from error


def show_embedded(member: Fields, name: str, message: MessageSchema, data: bytes) -> None:
    """Replaces the bytes of a consumer protocol's message by its JSON, if it can be read."""
    if len(data) < 2:
        return
    version = VERSION.read(data)
    # What can't be read stays base64, as in Kafka's tool.
    with suppress(MessageError):
        member[name] = json_value(message, version, parse_message(message, version, data, 2).value)
