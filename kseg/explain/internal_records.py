"""Opens keys and values of internal topics: their messages, field by field. Kafka's tool shows them as JSON only."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path

from kseg.errors import KsegError
from kseg.explain.field import ExplainedField
from kseg.explain.message_fields import VERSION_TYPE, MessageFields
from kseg.explain.walk import MOST_FIELDS
from kseg.formats.names import FileKind, parse_file_name, parse_partition_directory
from kseg.formats.schemas import (
    METADATA_RECORDS,
    OFFSETS_KEYS,
    OFFSETS_VALUES_TO_4_0,
    PREVIEW_METADATA_RECORDS,
    REMOTE_LOG_RECORDS,
    SHARE_STATE_KEYS,
    SHARE_STATE_VALUES,
    TRANSACTION_KEYS,
    TRANSACTION_VALUES,
    MessageSchema,
    message_schema,
)

Messages = Mapping[int, MessageSchema]
OpenRecord = Callable[[ExplainedField | None, ExplainedField | None], None]
"""Gives a record's key and value, if they are there, their parts."""

CONSUMER_PROTOCOL_TYPE = "consumer"
_CONSUMERS_PARTS = {"subscription": "ConsumerProtocolSubscription", "assignment": "ConsumerProtocolAssignment"}
_PREVIEW_FRAME = 0
"""Frame version of Kafka 2.8, whose records had other fields."""
_TOO_MANY = "bytes too many"


def internal_opener(path: str | PathLike[str]) -> OpenRecord | None:
    """What opens the records of a log, as its directory is named; None if it is none of an internal topic."""
    directory = parse_partition_directory(Path(path).absolute().parent)
    if directory is not None:
        return _OPENERS.get(directory.topic)
    is_snapshot = parse_file_name(path).kind is FileKind.METADATA_SNAPSHOT
    return _OPENERS["__cluster_metadata"] if is_snapshot else None


def open_records(fields: Iterable[ExplainedField], open_record: OpenRecord) -> None:
    """Opens the keys and values among the fields of a batch or of its body, up to MOST_FIELDS of all together."""
    count = 0
    own = {field.path: field for field in fields if field.name in ("key", "value") and not field.children}
    for stem in dict.fromkeys(path.rpartition(".")[0] for path in own):
        if ".headers[" in stem:
            continue
        key, value = own.get(f"{stem}.key"), own.get(f"{stem}.value")
        there = [field for field in (key, value) if field is not None]
        if count > MOST_FIELDS:
            for field in there:
                field.meaning = f"more than {MOST_FIELDS} fields before: it isn't taken apart"
            continue
        open_record(key, value)
        count += sum(1 for field in there for _ in field.leaves())


def _coordinator_opener(keys: Messages, values: Messages) -> OpenRecord:
    """Of records with a type before the key's message, and a version before the value's."""

    def open_record(key: ExplainedField | None, value: ExplainedField | None) -> None:
        number = -1

        def read_key(parts: MessageFields) -> None:
            nonlocal number
            number = parts.number("recordType", VERSION_TYPE, "")
            message = _known(keys, number)
            parts.found[-1].meaning = message.name
            parts.message(message, number)

        def read_value(parts: MessageFields) -> None:
            message = _known(values, number)
            _read_versioned(message, parts)
            if message.name == "GroupMetadataValue":
                _open_consumers_parts(parts.found)

        _open(key, read_key)
        _open(value, read_value)

    return open_record


def _framed_opener(records: Messages, preview: Messages) -> OpenRecord:
    """Of records with frame version, type and version before the value's message; keys are null."""

    def read(parts: MessageFields) -> None:
        frame = parts.number("frameVersion", "uvarint", "")
        number = parts.number("recordType", "uvarint", "")
        message = _known(preview if frame == _PREVIEW_FRAME else records, number)
        parts.found[-1].meaning = message.name
        parts.message(message, parts.number("version", "uvarint", f"of {message.name}"))

    def open_record(_: ExplainedField | None, value: ExplainedField | None) -> None:
        _open(value, read)

    return open_record


def _open_consumers_parts(fields: list[ExplainedField]) -> None:
    """Opens what members of a group say in the consumers' protocol; other protocols' bytes stay as they are."""
    leaves = [leaf for field in fields for leaf in field.leaves()]
    if not any(leaf.name == "protocolType" and leaf.value == CONSUMER_PROTOCOL_TYPE for leaf in leaves):
        return
    for leaf in leaves:
        if leaf.name in _CONSUMERS_PARTS:
            _open(leaf, partial(_read_versioned, message_schema(_CONSUMERS_PARTS[leaf.name])))


def _read_versioned(message: MessageSchema, parts: MessageFields) -> None:
    parts.message(message, parts.number("version", VERSION_TYPE, f"of {message.name}"))


def _known(messages: Messages, number: int) -> MessageSchema:
    if number not in messages:
        raise KsegError(f"kseg doesn't know records of type {number}")
    return messages[number]


def _open(field: ExplainedField | None, read: Callable[[MessageFields], None]) -> None:
    """Gives a field its parts. Bytes that fit no message stay one part, which says why; they are no damage."""
    if field is None or not field.raw:
        return
    parts = MessageFields(field.raw, field.position, field.path)
    try:
        read(parts)
    except KsegError as error:
        field.children = parts.finish(error.message)
    else:
        field.children = parts.finish(_TOO_MANY)


_OPENERS: dict[str, OpenRecord] = {
    "__consumer_offsets": _coordinator_opener(OFFSETS_KEYS, OFFSETS_VALUES_TO_4_0),
    "__transaction_state": _coordinator_opener(TRANSACTION_KEYS, TRANSACTION_VALUES),
    "__share_group_state": _coordinator_opener(SHARE_STATE_KEYS, SHARE_STATE_VALUES),
    "__cluster_metadata": _framed_opener(METADATA_RECORDS, PREVIEW_METADATA_RECORDS),
    "__remote_log_metadata": _framed_opener(REMOTE_LOG_RECORDS, {}),
}
