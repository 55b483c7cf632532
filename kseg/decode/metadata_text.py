"""`__cluster_metadata` and `__remote_log_metadata` as DumpLogSegments prints them: no key, JSON or Java's text."""

import re
from collections.abc import Callable

from kseg.decode.framed import Framed, parse_framed, parse_preview
from kseg.decode.history import message_as_of, metadata_records
from kseg.decode.parts import Decoder, Parts, parts
from kseg.formats.messages import Fields, MessageError, json_text, json_value
from kseg.formats.schemas import PREVIEW_METADATA_RECORDS, REMOTE_LOG_RECORDS
from kseg.releases import Release

SEGMENT_STATES = ("COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED")
PARTITION_DELETE_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")


def cluster_metadata_decoder(release: Release) -> Decoder:
    """The decoder of a release from 2.8 on; 2.8 was a preview with its own frame and fields."""
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
    """The JSON of a record."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", record.message.name).upper()
    data = json_value(record.message, record.version, record.fields)
    return json_text({"type": name, "version": record.version, "data": data})


def remote_log_metadata_decoder(release: Release) -> Decoder:
    """The decoder of a release from 3.9 on."""
    records = {number: message_as_of(message, release) for number, message in REMOTE_LOG_RECORDS.items()}

    def decode(key: bytes | None, value: bytes | None, offset: int) -> Parts:
        try:
            record = parse_framed(records, value)
            return parts(None, REMOTE_TEXTS[record.message.name](record.fields))
        except MessageError as error:
            return parts(None, f"Error at offset {offset}, skipping. {error.kafka_text}")

    return decode


def java_object(name: str, fields: dict[str, object]) -> str:
    """An object as Java's generated `toString` shows it."""
    return f"{name}{{{', '.join(f'{field}={value}' for field, value in fields.items())}}}"


def topic_partition(entry: Fields) -> str:
    """Topic id, topic and partition."""
    return f"{entry['id']}:{entry['name']}-{entry['partition']}"


def segment_id(entry: Fields) -> str:
    """The id of a remote segment."""
    shown = {"topicIdPartition": topic_partition(entry["topicIdPartition"]), "id": entry["id"]}
    return java_object("RemoteLogSegmentId", shown)


def custom_metadata(data: bytes | None) -> str:
    """A storage plug-in's own bytes; only their number is shown."""
    return "Optional.empty" if data is None else f"Optional[CustomMetadata{{{len(data)} bytes}}]"


def state(names: tuple[str, ...], number: int, refusal: str = "state can not be null") -> str:
    """The name of a state; `refusal` is Kafka's text if there is none."""
    if not 0 <= number < len(names):
        raise MessageError(refusal)
    return names[number]


def leader_epochs(fields: Fields) -> str:
    """Leader epochs with their start offsets, as a sorted map."""
    epochs = {entry["leaderEpoch"]: entry["offset"] for entry in fields["segmentLeaderEpochs"]}
    if not epochs:
        raise MessageError("segmentLeaderEpochs can not be null or empty")
    return "{" + ", ".join(f"{epoch}={offset}" for epoch, offset in sorted(epochs.items())) + "}"


def emptiness(fields: Fields) -> dict[str, object]:
    """Whether the transaction index is empty; 3.9 didn't know."""
    return {"txnIdxEmpty": str(fields["txnIndexEmpty"]).lower()} if "txnIndexEmpty" in fields else {}


def check_offsets(start: int, end: int) -> None:
    """Kafka's checks of a segment's offsets."""
    if start < 0:
        raise MessageError(f"Unexpected start offset = {start}. StartOffset for a remote segment cannot be negative")
    if end < start:
        raise MessageError(
            f"Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than startOffset = {start}"
        )


def segment_text(fields: Fields) -> str:
    """A remote segment."""
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
    """A change of a remote segment's state."""
    shown = {
        "remoteLogSegmentId": segment_id(fields["remoteLogSegmentId"]),
        "customMetadata": custom_metadata(fields["customMetadata"]),
        "state": state(SEGMENT_STATES, fields["remoteLogSegmentState"]),
        "eventTimestampMs": fields["eventTimestampMs"],
        "brokerId": fields["brokerId"],
    }
    return java_object("RemoteLogSegmentMetadataUpdate", shown)


def partition_delete_text(fields: Fields) -> str:
    """The deletion of a partition's remote segments. Kafka has no message of its own for a missing state."""
    shown = {
        "topicPartition": topic_partition(fields["topicIdPartition"]),
        "state": state(PARTITION_DELETE_STATES, fields["remotePartitionDeleteState"], "null"),
        "eventTimestampMs": fields["eventTimestampMs"],
        "brokerId": fields["brokerId"],
    }
    return java_object("RemotePartitionDeleteMetadata", shown)


def segment_snapshot_text(fields: Fields) -> str:
    """A remote segment in a snapshot. Its state is checked before its epochs, unlike a segment's."""
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
