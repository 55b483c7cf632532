"""Text of internal topics' records, in the form of each release's DumpLogSegments, and its decoder."""

import re
from collections.abc import Callable
from typing import NamedTuple

from kseg.decode.decoded import DecodeError, Decoder, Parts, key_version, parts
from kseg.decode.internal_records import (
    CONSUMER_PROTOCOL_TYPE,
    Framed,
    coordinator_decoder,
    message_as_of,
    metadata_records,
    offsets_messages,
    parse_framed,
    parse_preview,
    share_state_messages,
    transaction_messages,
)
from kseg.errors import UsageError
from kseg.formats.codes import VERSION
from kseg.formats.message_json import json_text, json_value
from kseg.formats.messages import Fields, MessageError, parse_message
from kseg.formats.schemas import (
    PREVIEW_METADATA_RECORDS,
    REMOTE_LOG_RECORDS,
    MessageSchema,
    message_schema,
    version_range,
)
from kseg.releases import Release, Since, value_in


class GroupTexts(NamedTuple):
    """The texts of a series of releases, with placeholders for the message's fields."""

    offset_key: str
    offset: str
    offset_with_metadata: str
    group_key: str
    is_group_json: bool
    """True if a group's value is JSON; in earlier releases, colons separate its parts."""
    escapes_json: bool
    shows_tombstones: bool
    """True if a record without value is `<DELETE>`; earlier releases print neither part."""


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
GROUP_TEXTS: Since[GroupTexts] = (
    ((0, 9), _OLDEST),
    ((1, 0), _OLDEST._replace(group_key='{{"metadata":"{group}"}}', is_group_json=True)),
    ((1, 1), _OLDEST._replace(group_key='{{"metadata":{json}}}', is_group_json=True, escapes_json=True)),
    ((2, 4, 1), _NEWEST),
)
CAN_PRINT_HEX: Since[bool] = (((0, 9), False), ((0, 10, 1), True))
"""True if hexadecimal output works: 0.9.0.1 and 0.10.0 fail, since their format doesn't accept the number."""
NAMES_UNKNOWN_KEYS: Since[bool] = (((0, 9), False), ((3, 4, 1), True))


def group_text_decoder(release: Release) -> Decoder:
    """Return the decoder of a release before 3.8."""
    texts = value_in(release, GROUP_TEXTS)

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
        raise DecodeError(f"offset {offset}: unknown key version {version}; Kafka's tool stops here")

    return decode


def offset_parts(texts: GroupTexts, release: Release, key: bytes, value: bytes | None) -> Parts:
    """Return the parts of an offset commit that are printed."""
    fields = read(message_schema("OffsetCommitKey"), release, key)
    key_text = texts.offset_key.format_map(fields)
    if value is None:
        return parts(key_text, "<DELETE>")
    commit = read(message_schema("OffsetCommitValue"), release, value)
    template = texts.offset_with_metadata if commit["metadata"] else texts.offset
    return parts(key_text, template.format_map(commit))


def group_parts(texts: GroupTexts, release: Release, key: bytes, value: bytes | None) -> Parts:
    """Return the printed parts of a group's metadata."""
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
    """Return the text of a group's value."""
    if texts.escapes_json:
        return json_text(shown)
    if texts.is_group_json:
        return "{" + ",".join(f'"{name}":{unescaped_json(value)}' for name, value in shown.items()) + "}"
    return ":".join("null" if value is None else str(value) for value in shown.values())


def unescaped_json(value: str | int | None) -> str:
    """Return JSON as 1.0 wrote it, without any escapes."""
    return "null" if value is None else f'"{value}"' if isinstance(value, str) else str(value)


def member_text(release: Release, group: Fields, member: Fields) -> str:
    """Return a member with its assigned partitions, or with its assignment in hex."""
    name, data = member["memberId"], member["assignment"]
    if group["protocolType"] != CONSUMER_PROTOCOL_TYPE:
        return f"{name}={hex_text(release, data)}"
    assignment = read(message_schema("ConsumerProtocolAssignment"), release, data, any_version=True)
    partitions = ", ".join(
        f"{topic['topic']}-{partition}"
        for topic in assignment["assignedPartitions"]
        for partition in topic["partitions"]
    )
    if assignment["userData"] is None and not value_in(release, GROUP_TEXTS).shows_tombstones:
        raise DecodeError(f"member {name} has null user data; Kafka's tool stops here")
    user_data = hex_text(release, assignment["userData"] or b"")
    return f"{name}=[{partitions}]:{user_data}" if user_data else f"{name}=[{partitions}]"


def hex_text(release: Release, data: bytes) -> str:
    """Return bytes as one number in upper-case hex digits, without leading zero bytes."""
    if data and not value_in(release, CAN_PRINT_HEX):
        raise DecodeError("bytes that it should print in hex; Kafka's tool stops here")
    return f"{int.from_bytes(data, 'big'):X}" if data else ""


def read(message: MessageSchema, release: Release, data: bytes, any_version: bool = False) -> Fields:
    """Return a message after its version, as a release knew it.

    Raises DecodeError for unreadable bytes, and for versions that the release didn't know.
    """
    known = message_as_of(message, release)
    version = VERSION.read(data)
    is_key = message.kind == "coordinator-key"
    if not any_version and not is_key and version not in version_range(known.versions):
        raise DecodeError(f"unknown version {version} of {message.name}; Kafka's tool stops here")
    try:
        return parse_message(known, version, data, 2).value
    except MessageError as error:
        raise DecodeError(f"{message.name} can't be read ({error.message}); Kafka's tool stops here") from error


SEGMENT_STATES = ("COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED")
PARTITION_DELETE_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")


def cluster_metadata_decoder(release: Release) -> Decoder:
    """Return the decoder of a release from 2.8 on; 2.8 was a preview with its own frame and fields."""
    is_preview = release.numbers < (3, 0)
    records = PREVIEW_METADATA_RECORDS if is_preview else metadata_records(release)
    parse = parse_preview if is_preview else parse_framed

    def decode(key: bytes | None, value: bytes | None, offset: int) -> Parts:
        try:
            return parts(None, cluster_metadata_text(parse(records, value)))
        except MessageError as error:
            return parts(None, f"Error at {offset}, skipping. {error.kafka_text}")

    return decode


def cluster_metadata_text(record: Framed) -> str:
    """Return the JSON of a record."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", record.message.name).upper()
    data = json_value(record.message, record.version, record.fields)
    return json_text({"type": name, "version": record.version, "data": data})


def remote_log_metadata_decoder(release: Release) -> Decoder:
    """Return the decoder of a release from 3.9 on."""
    records = {number: message_as_of(message, release) for number, message in REMOTE_LOG_RECORDS.items()}

    def decode(key: bytes | None, value: bytes | None, offset: int) -> Parts:
        try:
            record = parse_framed(records, value)
            return parts(None, REMOTE_TEXTS[record.message.name](record.fields))
        except MessageError as error:
            return parts(None, f"Error at offset {offset}, skipping. {error.kafka_text}")

    return decode


def java_object(name: str, fields: dict[str, object]) -> str:
    """Return an object in the form of Java's generated `toString`."""
    return f"{name}{{{', '.join(f'{field}={value}' for field, value in fields.items())}}}"


def topic_partition(entry: Fields) -> str:
    """Return topic id, topic and partition."""
    return f"{entry['id']}:{entry['name']}-{entry['partition']}"


def segment_id(entry: Fields) -> str:
    """Return the id of a remote segment."""
    shown = {"topicIdPartition": topic_partition(entry["topicIdPartition"]), "id": entry["id"]}
    return java_object("RemoteLogSegmentId", shown)


def custom_metadata(data: bytes | None) -> str:
    """Return the text for a storage plug-in's own bytes, which shows only their number."""
    return "Optional.empty" if data is None else f"Optional[CustomMetadata{{{len(data)} bytes}}]"


def state(names: tuple[str, ...], number: int, refusal: str = "state can not be null") -> str:
    """Return the name of a state; `refusal`: Kafka's text for an unknown one."""
    if not 0 <= number < len(names):
        raise MessageError(refusal)
    return names[number]


def leader_epochs(fields: Fields) -> str:
    """Return leader epochs with their start offsets, as a sorted map."""
    epochs = {entry["leaderEpoch"]: entry["offset"] for entry in fields["segmentLeaderEpochs"]}
    if not epochs:
        raise MessageError("segmentLeaderEpochs can not be null or empty")
    return "{" + ", ".join(f"{epoch}={offset}" for epoch, offset in sorted(epochs.items())) + "}"


def emptiness(fields: Fields) -> dict[str, object]:
    """Return True if the transaction index is empty. Kafka 3.9 doesn't have this field."""
    return {"txnIdxEmpty": str(fields["txnIndexEmpty"]).lower()} if "txnIndexEmpty" in fields else {}


def check_offsets(start: int, end: int) -> None:
    """Check a segment's offsets as Kafka does."""
    if start < 0:
        raise MessageError(f"Unexpected start offset = {start}. StartOffset for a remote segment cannot be negative")
    if end < start:
        raise MessageError(
            f"Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than startOffset = {start}"
        )


def segment_text(fields: Fields) -> str:
    """Return a remote segment."""
    check_offsets(fields["startOffset"], fields["endOffset"])
    shown = {
        "remoteLogSegmentId": segment_id(fields["remoteLogSegmentId"]),
        "startOffset": fields["startOffset"],
        "endOffset": fields["endOffset"],
        "brokerId": fields["brokerId"],
        "maxTimestampMs": fields["maxTimestampMs"],
        "eventTimestampMs": fields["eventTimestampMs"],
        "segmentLeaderEpochs": leader_epochs(fields),
        "segmentSizeInBytes": fields["segmentSizeInBytes"],
        "customMetadata": custom_metadata(fields["customMetadata"]),
        "state": state(SEGMENT_STATES, fields["remoteLogSegmentState"]),
    }
    return java_object("RemoteLogSegmentMetadata", shown | emptiness(fields))


def segment_update_text(fields: Fields) -> str:
    """Return a change of a remote segment's state."""
    shown = {
        "remoteLogSegmentId": segment_id(fields["remoteLogSegmentId"]),
        "customMetadata": custom_metadata(fields["customMetadata"]),
        "state": state(SEGMENT_STATES, fields["remoteLogSegmentState"]),
        "eventTimestampMs": fields["eventTimestampMs"],
        "brokerId": fields["brokerId"],
    }
    return java_object("RemoteLogSegmentMetadataUpdate", shown)


def partition_delete_text(fields: Fields) -> str:
    """Return the deletion of a partition's remote segments. Kafka has no separate message for a missing state."""
    shown = {
        "topicPartition": topic_partition(fields["topicIdPartition"]),
        "state": state(PARTITION_DELETE_STATES, fields["remotePartitionDeleteState"], "null"),
        "eventTimestampMs": fields["eventTimestampMs"],
        "brokerId": fields["brokerId"],
    }
    return java_object("RemotePartitionDeleteMetadata", shown)


def segment_snapshot_text(fields: Fields) -> str:
    """Return a remote segment in a snapshot, whose state is checked before its epochs, unlike a segment's."""
    state_name = state(SEGMENT_STATES, fields["remoteLogSegmentState"])
    shown = {
        "segmentId": fields["segmentId"],
        "startOffset": fields["startOffset"],
        "endOffset": fields["endOffset"],
        "maxTimestampMs": fields["maxTimestampMs"],
        "segmentLeaderEpochs": leader_epochs(fields),
        "segmentSizeInBytes": fields["segmentSizeInBytes"],
        "customMetadata": custom_metadata(fields["customMetadata"]),
        "state": state_name,
    }
    return java_object("RemoteLogSegmentMetadataSnapshot", shown | emptiness(fields))


REMOTE_TEXTS: dict[str, Callable[[Fields], str]] = {
    "RemoteLogSegmentMetadataRecord": segment_text,
    "RemoteLogSegmentMetadataUpdateRecord": segment_update_text,
    "RemotePartitionDeleteMetadataRecord": partition_delete_text,
    "RemoteLogSegmentMetadataSnapshotRecord": segment_snapshot_text,
}


STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""Names of a transaction's states, by number. Source: TransactionState."""

JSON_NAMES: Since[dict[str, tuple[str, ...]]] = (((4, 1), {}), ((4, 4), {"transactionStatus": STATES}))
"""Fields of a transaction's JSON that show names for numbers."""


class TransactionTexts(NamedTuple):
    """The texts of a series of releases."""

    key: str
    partitions: str
    shows_tombstones: bool
    """True if a record without value is `<DELETE>`; earlier releases exit at it."""
    names_unknown_keys: bool


TRANSACTION_TEXTS: Since[TransactionTexts] = (
    ((0, 11), TransactionTexts("transactionalId={}", "Set({})", False, False)),
    ((2, 4, 1), TransactionTexts("transaction_metadata::transactionalId={}", "Set({})", True, False)),
    ((2, 5), TransactionTexts("transaction_metadata::transactionalId={}", "[{}]", True, False)),
    ((3, 4, 1), TransactionTexts("transaction_metadata::transactionalId={}", "[{}]", True, True)),
)


def transaction_text_decoder(release: Release) -> Decoder:
    """Return the decoder of a release before 4.1."""
    texts = value_in(release, TRANSACTION_TEXTS)

    def decode(key: bytes | None, value: bytes | None, offset: int) -> Parts:
        version = key_version(key)
        if version != 0 and texts.names_unknown_keys:
            return parts(f"unknown::version={version}", None)
        if version != 0:
            raise DecodeError(f"offset {offset}: unknown key version {version}; Kafka's tool stops here")
        key_text = texts.key.format(read(message_schema("TransactionLogKey"), release, key or b"")["transactionalId"])
        if value is not None:
            return parts(key_text, transaction_text(texts, read(message_schema("TransactionLogValue"), release, value)))
        if texts.shows_tombstones:
            return parts(key_text, "<DELETE>")
        raise DecodeError(f"offset {offset}: the record has no value; Kafka's tool stops here")

    return decode


def transaction_text(texts: TransactionTexts, fields: Fields) -> str:
    """Return the printed text of a transaction's state."""
    status = fields["transactionStatus"]
    if not 0 <= status < len(STATES):
        raise DecodeError(f"unknown transaction status {status}; Kafka's tool stops here")
    return (
        f"producerId:{fields['producerId']},producerEpoch:{fields['producerEpoch']},state={STATES[status]},"
        f"partitions={partitions_text(texts, fields)},"
        f"txnLastUpdateTimestamp={fields['transactionLastUpdateTimestampMs']},"
        f"txnTimeoutMs={fields['transactionTimeoutMs']}"
    )


def partitions_text(texts: TransactionTexts, fields: Fields) -> str:
    """Return a transaction's partitions, each once and in the file's order; the real tool has a hash table's order.

    An empty transaction has none, whatever the record contains. A set's text separates them with `, `, a list's with
    `,`.
    """
    topics = fields["transactionPartitions"]
    if fields["transactionStatus"] == 0:
        topics = []
    if topics is None:
        raise DecodeError("the transaction's partitions are null; Kafka's tool stops here")
    names = dict.fromkeys(f"{topic['topic']}-{partition}" for topic in topics for partition in topic["partitionIds"])
    return texts.partitions.format((", " if texts.partitions.startswith("Set") else ",").join(names))


def offsets_json_decoder(release: Release) -> Decoder:
    """Return the decoder of `__consumer_offsets` from 3.8 on."""
    return coordinator_decoder(offsets_messages(release), release)


def transaction_json_decoder(release: Release) -> Decoder:
    """Return the decoder of `__transaction_state` from 4.1 on."""
    return coordinator_decoder(transaction_messages(release), release, names=value_in(release, JSON_NAMES))


def share_state_decoder(release: Release) -> Decoder:
    """Return the decoder of `__share_group_state`; 4.0 called a value's version its type."""
    return coordinator_decoder(
        share_state_messages(release), release, "version" if release.numbers >= (4, 1) else "type"
    )


DECODERS: dict[str, Since[Callable[[Release], Decoder]]] = {
    "offsets-decoder": (((0, 9), group_text_decoder), ((3, 8), offsets_json_decoder)),
    "transaction-log-decoder": (((0, 11), transaction_text_decoder), ((4, 1), transaction_json_decoder)),
    "cluster-metadata-decoder": (((2, 8), cluster_metadata_decoder),),
    "remote-log-metadata-decoder": (((3, 9), remote_log_metadata_decoder),),
    "share-group-state-decoder": (((4, 0), share_state_decoder),),
}
"""Functions that make decoders, by option without dashes and by release; the first of several options wins."""


def decoder_for(option: str, release: tuple[int, ...]) -> Decoder:
    """Return the decoder that an option (`offsets-decoder`, …) meant in a release.

    A release before the option's first one is treated like that first one.

    Raises:
        UsageError: there is no such option.
    """
    if option not in DECODERS:
        raise UsageError(f"{option} isn't a decoder of an internal topic; specify one of {', '.join(DECODERS)}")
    first = DECODERS[option][0][0]
    since = Release(max(tuple(release), first))
    return value_in(since, DECODERS[option])(since)
