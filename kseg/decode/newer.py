"""Finds what in an internal topic's record is newer than kseg knows; the rest is still shown."""

from collections.abc import Iterator

from kseg.decode.framed import parse_framed
from kseg.formats.messages import UNKNOWN_TAGGED_FIELDS, Fields, MessageError, parse_message
from kseg.formats.positions import VERSION
from kseg.formats.schemas import (
    METADATA_RECORDS,
    OFFSETS_VALUES,
    REMOTE_LOG_RECORDS,
    SHARE_STATE_VALUES,
    TRANSACTION_VALUES,
    MessageSchema,
    version_range,
)
from kseg.releases import NEWEST

NEWER = f"newer than kseg knows, which is Kafka {NEWEST}"
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
    """What in a record's value is newer, by the option of its topic's decoder; None if nothing is, as far as known."""
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
    """The version of a message, or its tagged fields, if the schema doesn't have them; None if it does."""
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
