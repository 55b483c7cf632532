"""Records of internal topics as JSON, and fields that are newer than a release or than kseg."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from construct import ConstructError, Sequence

from kseg.decode.decoded import DecodeError, Decoder, Parts, key_version, parts
from kseg.formats.codes import VERSION
from kseg.formats.grammar import UVARINT
from kseg.formats.message_json import json_text, json_value
from kseg.formats.messages import NO_TEXT, UNKNOWN_TAGGED_FIELDS, Fields, MessageError, parse_message
from kseg.formats.schemas import (
    METADATA_RECORDS,
    OFFSETS_KEYS,
    OFFSETS_VALUES,
    OFFSETS_VALUES_TO_4_0,
    REMOTE_LOG_RECORDS,
    SHARE_STATE_KEYS,
    SHARE_STATE_VALUES,
    TRANSACTION_KEYS,
    TRANSACTION_VALUES,
    Field,
    MessageSchema,
    MessageTable,
    message_schema,
    version_range,
)
from kseg.formats.varint_bytes import LONGEST_VARINT, read_uvarint
from kseg.releases import NEWEST, Release, Since, value_in

Messages = dict[int, tuple[MessageSchema, MessageSchema]]
"""Messages of key and value by the type of a coordinator's record."""

TAGGED_FIELDS_SINCE: dict[tuple[str, str], tuple[int, int]] = {
    ("ConsumerGroupCurrentMemberAssignmentValue", "assignmentEpochs"): (4, 3),
    ("ConsumerGroupMetadataValue", "metadataHash"): (4, 1),
    ("ConsumerGroupTargetAssignmentMetadataValue", "assignmentTimestamp"): (4, 3),
    ("OffsetCommitValue", "topicId"): (4, 1),
    ("PartitionChangeRecord", "leaderRecoveryState"): (3, 2),
    ("PartitionRecord", "leaderRecoveryState"): (3, 2),
    ("RemoteLogSegmentMetadataRecord", "txnIndexEmpty"): (4, 0),
    ("RemoteLogSegmentMetadataSnapshotRecord", "txnIndexEmpty"): (4, 0),
    ("ShareGroupTargetAssignmentMetadataValue", "assignmentTimestamp"): (4, 3),
    ("ShareSnapshotValue", "deliveryCompleteCount"): (4, 2),
    ("ShareUpdateValue", "deliveryCompleteCount"): (4, 2),
    ("StreamsGroupCurrentMemberAssignmentValue", "assignmentEpochs"): (4, 2),
    ("StreamsGroupMetadataValue", "failedDescriptionTopologyEpoch"): (4, 4),
    ("StreamsGroupMetadataValue", "lastAssignmentConfigs"): (4, 2),
    ("StreamsGroupMetadataValue", "storedDescriptionTopologyEpoch"): (4, 4),
    ("StreamsGroupMetadataValue", "validatedTopologyEpoch"): (4, 2),
    ("StreamsGroupTargetAssignmentMetadataValue", "assignmentTimestamp"): (4, 3),
}
"""Tagged fields that were added to an existing version."""

NEWEST_VERSION: dict[str, Since[int]] = {
    "BrokerRegistrationChangeRecord": (((3, 0), 0), ((3, 3), 1), ((3, 7), 2), ((4, 3), 3)),
    "GroupMetadataValue": (((0, 9), 0), ((0, 10, 1), 1), ((2, 1), 2), ((2, 3), 3), ((3, 4, 1), 4)),
    "OffsetCommitValue": (((0, 9), 1), ((2, 1), 3), ((3, 4, 1), 4)),
    "PartitionChangeRecord": (((3, 0), 0), ((3, 7), 2)),
    "PartitionRecord": (((3, 0), 0), ((3, 7), 2)),
    "RegisterBrokerRecord": (((3, 0), 0), ((3, 3), 1), ((3, 4), 2), ((3, 7), 3), ((4, 3), 4)),
    "TransactionLogValue": (((0, 11), 0), ((3, 4, 1), 1)),
}
"""The newest version of a message that a release knew, if a later release added one."""

METADATA_RECORD_SINCE: dict[int, tuple[int, int]] = {
    18: (3, 2),
    19: (3, 2),
    20: (3, 3),
    21: (3, 4),
    22: (3, 5),
    23: (3, 6),
    24: (3, 6),
    25: (3, 6),
    26: (3, 6),
    27: (3, 7),
    28: (4, 0),
    29: (4, 4),
}
"""Types of `__cluster_metadata` records that were added after 3.0."""

OTHER_FIELDS_BEFORE: dict[tuple[int, int], tuple[int, ...]] = {
    (3, 2): (15,),  # ProducerIdsRecord
    (3, 3): (12, 16),  # FeatureLevelRecord, RemoveFeatureLevelRecord
    (3, 5): (11,),  # UserScramCredentialRecord
    (3, 6): (10,),  # DelegationTokenRecord
}
"""Types of `__cluster_metadata` records that only existed, or had other fields, before a release."""
EARLY_METADATA_RECORDS = MessageTable("cluster_metadata_3_1", "metadata")
"""Messages of `__cluster_metadata` in 3.0 and 3.1."""

EARLY_SHARE_GROUP_KEYS = MessageTable("share_groups_4_0", "data", {9: "ShareGroupPartitionMetadataKey"})
EARLY_SHARE_GROUP_VALUES = MessageTable(
    "share_groups_4_0",
    "data",
    {
        9: "ShareGroupPartitionMetadataValue",
        11: "ShareGroupMetadataValue",
        15: "ShareGroupStatePartitionMetadataValue",
    },
)
EARLY_SHARE_STATE_VALUES = MessageTable("share_groups_4_0", "data", {0: "ShareSnapshotValue", 1: "ShareUpdateValue"})
"""Share groups' records in 4.0, whose values have other fields than the same versions later."""

OFFSETS_NEWEST_TYPE: Since[int] = (((3, 8), 8), ((4, 0), 16), ((4, 1), 23))
"""The last type of `__consumer_offsets` records that a release knew, since schemas define them."""


@lru_cache(maxsize=512)
def message_as_of(message: MessageSchema, release: Release) -> MessageSchema:
    """Return a message as a release knew it."""
    fields = known_fields(message.name, message.fields, release)
    if message.name in NEWEST_VERSION:
        message = message._replace(versions=f"0-{value_in(release, NEWEST_VERSION[message.name])}")
    return message._replace(fields=fields)


def known_fields(message: str, fields: tuple[Field, ...], release: Release) -> tuple[Field, ...]:
    """Return the fields of a message, or of a structure in it, that a release knew."""
    return tuple(
        field._replace(fields=known_fields(message, field.fields, release))
        for field in fields
        if release.numbers >= TAGGED_FIELDS_SINCE.get((message, field.name), ())
    )


def metadata_records(release: Release) -> dict[int, MessageSchema]:
    """Return the `__cluster_metadata` records that a release (3.0 or later) knew, by type."""
    records = {
        number: message_as_of(message, release)
        for number, message in METADATA_RECORDS.items()
        if release.numbers >= METADATA_RECORD_SINCE.get(number, ())
    }
    for before, numbers in OTHER_FIELDS_BEFORE.items():
        if release.numbers < before:
            records |= {number: EARLY_METADATA_RECORDS[number] for number in numbers}
    return records


def offsets_messages(release: Release) -> Messages:
    """Return the `__consumer_offsets` messages that a release (3.8 or later) knew."""
    keys, values = dict(OFFSETS_KEYS), dict(OFFSETS_VALUES)
    if release.numbers < (4, 1):
        keys |= EARLY_SHARE_GROUP_KEYS
        values = {**OFFSETS_VALUES_TO_4_0, **EARLY_SHARE_GROUP_VALUES}
    newest = value_in(release, OFFSETS_NEWEST_TYPE)
    return {number: (key, message_as_of(values[number], release)) for number, key in keys.items() if number <= newest}


def share_state_messages(release: Release) -> Messages:
    """Return the `__share_group_state` messages that a release (4.0 or later) knew."""
    values = SHARE_STATE_VALUES if release.numbers >= (4, 1) else EARLY_SHARE_STATE_VALUES
    return {number: (key, message_as_of(values[number], release)) for number, key in SHARE_STATE_KEYS.items()}


def transaction_messages(release: Release) -> Messages:
    """Return the `__transaction_state` messages that a release (4.1 or later) knew."""
    return {
        number: (key, message_as_of(TRANSACTION_VALUES[number], release)) for number, key in TRANSACTION_KEYS.items()
    }


NEWER = f"newer than kseg supports, up to Kafka {NEWEST}"
_FRAMED = {
    "cluster-metadata-decoder": METADATA_RECORDS,
    "remote-log-metadata-decoder": REMOTE_LOG_RECORDS,
}
_COORDINATORS = {
    "offsets-decoder": OFFSETS_VALUES,
    "transaction-log-decoder": TRANSACTION_VALUES,
    "share-group-state-decoder": SHARE_STATE_VALUES,
}


def newer_in(option: str, key: bytes | None, value: bytes | None) -> str | None:
    """Return the newer part of a record's value, by the option of its topic's decoder; None without a known one."""
    if value is None:
        return None
    try:
        if option in _FRAMED:
            record = parse_framed(_FRAMED[option], value)
            return newer_part(record.message, record.version, record.fields)
        message = _COORDINATORS[option].get(VERSION.read(key or b""))
        if message is None or len(value) < 2:
            return None
        version = VERSION.read(value)
        return newer_part(message, version, parse_message(message, version, value, 2).value)
    except MessageError:
        return None


def newer_part(message: MessageSchema, version: int, fields: Fields) -> str | None:
    """Return the version of a message, or its tagged fields, that the schema lacks, or None if it has them."""
    if version > version_range(message.versions).last:
        return f"{message.name} version {version} is {NEWER}"
    tags = sorted(set(_unknown_tags(fields)))
    if not tags:
        return None
    return f"{message.name} version {version} has tagged fields {', '.join(map(str, tags))}, {NEWER}"


def _unknown_tags(value: object) -> Iterator[int]:
    if isinstance(value, dict):
        yield from value.get(UNKNOWN_TAGGED_FIELDS, {})
        for name, part in value.items():
            if name != UNKNOWN_TAGGED_FIELDS:
                yield from _unknown_tags(part)
    elif isinstance(value, list):
        for part in value:
            yield from _unknown_tags(part)


def leader_change_json(value: bytes) -> str:
    """Return a LEADER_CHANGE (2) as JSON, printed from 4.1 on.

    Like all functions here, it raises DecodeError where the real tool exits.
    """
    return control_json(message_schema("LeaderChangeMessage"), value)


def snapshot_header_json(value: bytes) -> str:
    """Return a SNAPSHOT_HEADER (3) as JSON, printed from 3.3 on."""
    return control_json(message_schema("SnapshotHeaderRecord"), value)


def snapshot_footer_json(value: bytes) -> str:
    """Return a SNAPSHOT_FOOTER (4) as JSON, printed from 3.3 on."""
    return control_json(message_schema("SnapshotFooterRecord"), value)


def kraft_version_json(value: bytes) -> str:
    """Return a KRAFT_VERSION (5) as JSON, printed from 3.8 on."""
    return control_json(message_schema("KRaftVersionRecord"), value)


def kraft_voters_json(value: bytes) -> str:
    """Return a KRAFT_VOTERS (6) as JSON, printed from 3.8 on."""
    return control_json(message_schema("VotersRecord"), value)


def control_json(message: MessageSchema, value: bytes) -> str:
    """Return the JSON of a control record value.

    Kafka reads every version as version 0, and prints it as the version in the message: fields of only the latter show
    their defaults. Source: ControlRecordUtils (up to 4.4).
    """
    try:
        fields = parse_message(message, 0, value).value
    except MessageError as error:
        raise DecodeError(f"{message.name} can't be read: {error.message}") from error
    return json_text(json_value(message, fields["version"], fields))


CONSUMER_PROTOCOL_TYPE = "consumer"


class Rules(NamedTuple):
    """The rules for printing the records of a coordinator in a release."""

    messages: Messages
    version_word: str
    """The name of the value's version in the JSON."""
    checks_versions: bool
    """True if an unknown value version is an error; before 4.1 it is read as the newest."""
    names: Mapping[str, tuple[str, ...]]
    """Names of the numbers in fields of the value; a number without a name is printed as text."""


def coordinator_decoder(
    messages: Messages, release: Release, version_word: str = "version", names: Mapping[str, tuple[str, ...]] = {}
) -> Decoder:
    """Return a decoder of records with these messages; it fails only at a missing key."""
    rules = Rules(messages, version_word, release.numbers >= (4, 1), names)

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
    """Return the JSON of a key."""
    message = rules.messages[record_type][0]
    fields = read(message, record_type, key, "key")
    return json_text({"type": str(record_type), "data": json_value(message, record_type, fields)})


def value_text(rules: Rules, record_type: int, value: bytes | None) -> str:
    """Return the JSON of a value, or `<DELETE>`."""
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
    for field, names in rules.names.items():
        number = fields[field]
        shown[field] = names[number] if 0 <= number < len(names) else str(number)
    return json_text({rules.version_word: str(version), "data": shown})


def read(message: MessageSchema, version: int, data: bytes, name: str) -> Fields:
    """Return a message that follows an int16."""
    try:
        return parse_message(message, version, data, 2).value
    except MessageError as error:
        raise MessageError(
            f"Could not read record with version {version} from {name}'s buffer due to: {error.kafka_text}."
        ) from error


def show_embedded(member: Fields, name: str, message: MessageSchema, data: bytes) -> None:
    """Replace the bytes of a consumer protocol's message by its JSON, if it is readable."""
    if len(data) < 2:
        return
    version = VERSION.read(data)
    # Unreadable bytes stay base64, as in Kafka's tool.
    with suppress(MessageError):
        member[name] = json_value(message, version, parse_message(message, version, data, 2).value)


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
    """The message of a framed record."""

    message: MessageSchema
    version: int
    fields: Fields


def parse_framed(records: Mapping[int, MessageSchema], value: bytes | None) -> Framed:
    """Return the message of a record. Raises MessageError with Kafka's text if it is unreadable."""
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
    """Return True if a record has a newer frame version, type or version than the known ones."""
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
    """Return the message of a record as the 2.8 preview reads it: frame version 0, ignoring extra bytes."""
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
    """Raise MessageError if the frame version isn't the release's."""
    if frame_version != known:
        raise MessageError(
            f"Could not deserialize metadata record due to unknown frame version {frame_version}"
            f"(only frame version {known} is supported)"
        )


def header_number(data: bytes, index: int, position: int) -> tuple[int, int]:
    """Return the header's number at a position, and the position of the next one."""
    word = HEADER_WORDS[index]
    try:
        number, end = read_uvarint(data, position, LONGEST_VARINT)
    except EOFError as error:
        raise MessageError(f"Error while reading {word}") from error
    if number & _UINT32 > MAXIMUM_INT16:
        raise MessageError(f"Value for {word} was too large.")
    return number & _UINT32, end
