"""Redacted records: contents of users' topics, and the names in records of Kafka's own topics.

A schema tells which parts of such a record are numbers, and stay. Every text and all bytes become others of the same
length, but for those that `KEPT` names: what a newer Kafka adds is replaced until somebody says that it may stay.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from kseg import kernel
from kseg.decode.internal_records import (
    CONSUMER_PROTOCOL_TYPE,
    EARLY_METADATA_RECORDS,
    EARLY_SHARE_GROUP_KEYS,
    EARLY_SHARE_GROUP_VALUES,
    EARLY_SHARE_STATE_VALUES,
    FRAME_VERSION,
    header_number,
)
from kseg.formats.codes import VERSION, ControlType
from kseg.formats.header_fields import CONTROL_KEY_TYPE
from kseg.formats.messages import UNKNOWN_TAGGED_FIELDS, Fields, MessageError, build_message, parse_message
from kseg.formats.schemas import (
    METADATA_RECORDS,
    OFFSETS_KEYS,
    OFFSETS_VALUES,
    OFFSETS_VALUES_TO_4_0,
    PREVIEW_METADATA_RECORDS,
    REMOTE_LOG_RECORDS,
    SHARE_STATE_KEYS,
    SHARE_STATE_VALUES,
    TRANSACTION_KEYS,
    TRANSACTION_VALUES,
    Field,
    MessageSchema,
    message_schema,
)
from kseg.kernel.contract import ReplaceContents
from kseg.log.partition import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kseg.redaction import Redactor
from kseg.rewrite.redacted_names import NameKind, Names

Pair = tuple[bytes | None, bytes | None]
_Tables = tuple[Mapping[int, MessageSchema], ...]

KINDS: Mapping[str, NameKind] = MappingProxyType(
    {
        "topic": NameKind.TOPIC,
        "topicName": NameKind.TOPIC,
        "topics": NameKind.TOPIC,
        "subscribedTopicNames": NameKind.TOPIC,
        "sourceTopics": NameKind.TOPIC,
        "repartitionSinkTopics": NameKind.TOPIC,
        "group": NameKind.GROUP,
        "groupId": NameKind.GROUP,
        "transactionalId": NameKind.TRANSACTIONAL_ID,
        "memberId": NameKind.MEMBER,
        "leader": NameKind.MEMBER,
        "groupInstanceId": NameKind.MEMBER,
        "instanceId": NameKind.MEMBER,
        "clientId": NameKind.CLIENT,
        "clientHost": NameKind.HOST,
        "host": NameKind.HOST,
        "rack": NameKind.HOST,
        "rackId": NameKind.HOST,
        "racks": NameKind.HOST,
        "principal": NameKind.PRINCIPAL,
        "owner": NameKind.PRINCIPAL,
        "requester": NameKind.PRINCIPAL,
        "renewers": NameKind.PRINCIPAL,
        "TopicRecord.name": NameKind.TOPIC,
        "topicIdPartition.name": NameKind.TOPIC,
        "stateChangelogTopics.name": NameKind.TOPIC,
        "repartitionSourceTopics.name": NameKind.TOPIC,
        "UserScramCredentialRecord.name": NameKind.PRINCIPAL,
        "RemoveUserScramCredentialRecord.name": NameKind.PRINCIPAL,
    }
)
"""Kinds of names by field, or by message or structure and field; what isn't here is OTHER."""
KEPT = frozenset(
    (
        "entityType",
        "protocolType",
        "features.name",
        "FeatureLevelRecord.name",
        "RemoveFeatureLevelRecord.name",
        "ConfigRecord.name",
        "ClientQuotaRecord.key",
        "QuotaRecord.key",
        "topicConfigs.key",
        "lastAssignmentConfigs.key",
    )
)
"""Texts that Kafka defines."""
WORDS = frozenset(
    (
        *(
            "range",
            "roundrobin",
            "sticky",
            "cooperative-sticky",
            "uniform",
            "stream",
            "sessioned",
            "connect",
            "consumer",
        ),
        *("compatible", "eager", "compact", "delete", "compact,delete", "delete,compact", "true", "false"),
        *("uncompressed", "producer", "none", "gzip", "snappy", "lz4", "zstd", "CreateTime", "LogAppendTime"),
        *("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "CONTROLLER", "BROKER", "EXTERNAL", "INTERNAL"),
        *("kafka-cluster", "classic", "streams", "share", "earliest", "latest", "read_committed", "read_uncommitted"),
    )
)
"""Words of Kafka and its documentation: settings, assignors, listeners. They stay where a text has no kind."""
_NUMBERS = re.compile(r"[-+]?[0-9][0-9.,:]{0,19}")
"""Numbers of settings, and lists of partitions and replicas."""
_RESOURCES = MappingProxyType(
    {
        "ConfigRecord": {2: NameKind.TOPIC, 16: NameKind.CLIENT, 32: NameKind.GROUP},
        "AccessControlEntryRecord": {2: NameKind.TOPIC, 3: NameKind.GROUP, 5: NameKind.TRANSACTIONAL_ID},
        "AccessControlRecord": {2: NameKind.TOPIC, 3: NameKind.GROUP, 5: NameKind.TRANSACTIONAL_ID},
    }
)
"""Kinds of a resource's name by the type next to it. Sources: ConfigResource.Type, ResourceType."""
_ENTITIES = MappingProxyType({"user": NameKind.PRINCIPAL, "client-id": NameKind.CLIENT, "ip": NameKind.HOST})
_EMBEDDED = MappingProxyType(
    {
        "subscription": "ConsumerProtocolSubscription",
        "metadata": "ConsumerProtocolSubscription",
        "assignment": "ConsumerProtocolAssignment",
    }
)
"""Bytes of groups that hold a message of the consumer's protocol."""
_COORDINATORS: Mapping[str, tuple[_Tables, _Tables]] = MappingProxyType(
    {
        OFFSETS_TOPIC: (
            (OFFSETS_KEYS, EARLY_SHARE_GROUP_KEYS),
            (OFFSETS_VALUES, OFFSETS_VALUES_TO_4_0, EARLY_SHARE_GROUP_VALUES),
        ),
        TRANSACTIONS_TOPIC: ((TRANSACTION_KEYS,), (TRANSACTION_VALUES,)),
        "__share_group_state": ((SHARE_STATE_KEYS,), (SHARE_STATE_VALUES, EARLY_SHARE_STATE_VALUES)),
    }
)
_FRAMED: Mapping[str, _Tables] = MappingProxyType(
    {
        METADATA_TOPIC: (METADATA_RECORDS, EARLY_METADATA_RECORDS, PREVIEW_METADATA_RECORDS),
        "__remote_log_metadata": (REMOTE_LOG_RECORDS,),
    }
)


def is_readable(text: str) -> bool:
    """Return True if the text of a setting may be kept, because it is a number or a Kafka keyword."""
    return text in WORDS or _NUMBERS.fullmatch(text) is not None


class Redacted(NamedTuple):
    """Replacements for the records of a topic: keys with values, keys of headers with values, and control records."""

    record: ReplaceContents
    header: ReplaceContents
    control: ReplaceContents


def redacted_records(topic: str | None, redactor: Redactor, names: Names) -> Redacted:
    """Return what replaces the contents of the records of a topic; None: of a log whose topic isn't known."""
    own, replacer = _InternalRecords(redactor, names), kernel.load().Replacer
    record: ReplaceContents = replacer(redactor)
    header = replacer(redactor, keeps_keys=names.is_kept(NameKind.HEADER_KEY))
    if topic is not None and topic in _COORDINATORS:
        keys, values = _COORDINATORS[topic]

        def record(key: bytes | None, value: bytes | None) -> Pair:
            return own.coordinators(keys, values, key, value)

    elif topic is not None and topic in _FRAMED:
        tables = _FRAMED[topic]

        def record(key: bytes | None, value: bytes | None) -> Pair:
            return redactor.replace(key), own.redact_framed(tables, value)

    return Redacted(record, header, own.control)


class _InternalRecords:
    """Replaces the names in records of Kafka's own topics."""

    def __init__(self, redactor: Redactor, names: Names) -> None:
        self._redactor, self._names = redactor, names

    def coordinators(self, keys: _Tables, values: _Tables, key: bytes | None, value: bytes | None) -> Pair:
        """Replace a coordinator's record; the version that its key begins with says what both are."""
        if key is None or len(key) < VERSION.size:
            return self._opaque(key), self._opaque(value)
        number = VERSION.read(key)
        version = -1 if value is None or len(value) < VERSION.size else VERSION.read(value)
        new_key = self._message(keys, number, number, key, VERSION.size)
        new_value = None if value is None else self._message(values, number, version, value, VERSION.size)
        return new_key, new_value

    def redact_framed(self, tables: _Tables, value: bytes | None) -> bytes | None:
        """Replace a record after frame version, type and version."""
        if value is None:
            return None
        at, numbers = 0, []
        try:
            for index in range(3):
                number, at = header_number(value, index, at)
                numbers.append(number)
        except MessageError:
            return self._opaque(value)
        frame, number, version = numbers
        return self._message(tables if frame <= FRAME_VERSION else (), number, version, value, at)

    def control(self, key: bytes | None, value: bytes | None) -> Pair:
        """Replace a control record: only the voters of a quorum have names."""
        if (
            key
            and len(key) >= CONTROL_KEY_TYPE.end
            and value
            and CONTROL_KEY_TYPE.read(key) == ControlType.KRAFT_VOTERS
        ):
            return key, self._redact_message(message_schema("VotersRecord"), 0, value, 0) or self._opaque(value)
        return key, value

    def _message(self, tables: _Tables, number: int, version: int, data: bytes, start: int) -> bytes:
        """The bytes of a message that begins at a position; what no schema can read becomes noise."""
        for table in tables:
            if number in table and (built := self._redact_message(table[number], version, data, start)) is not None:
                return built
        return data[:start] + (self._opaque(data[start:]) or b"")

    def _redact_message(self, message: MessageSchema, version: int, data: bytes, start: int) -> bytes | None:
        try:
            fields, end = parse_message(message, version, data, start)
            if build_message(message, version, fields) != data[start:end]:
                return None  # a text that isn't UTF-8, or a number that is longer than it has to be
            changed = self._fields(message.fields, message.name, fields)
            built = build_message(message, version, changed)
        except MessageError:
            return None
        return b"".join((data[:start], built, self._opaque(data[end:]) or b""))

    def _fields(self, fields: tuple[Field, ...], place: str, values: Fields) -> Fields:
        declared = {field.name: field for field in fields}
        changed: Fields = {}
        for name, value in values.items():
            if name == UNKNOWN_TAGGED_FIELDS:
                changed[name] = {tag: self._opaque(content) for tag, content in value.items()}
            else:
                changed[name] = self._value(declared[name], place, value, values)
        return changed

    def _value(self, field: Field, place: str, value: Any, beside: Fields) -> Any:
        if isinstance(value, list):
            return [self._value(field, place, each, beside) for each in value]
        if isinstance(value, dict):
            return self._fields(field.fields, field.name, value)
        kind = field.type.removeprefix("[]")
        if isinstance(value, bytes):
            return self._bytes(field.name, value, beside)
        return self._text(field.name, place, value, beside) if kind == "string" and value else value

    def _bytes(self, name: str, value: bytes, beside: Fields) -> bytes | None:
        embedded = _EMBEDDED.get(name)
        is_consumers = beside.get("protocolType", CONSUMER_PROTOCOL_TYPE) == CONSUMER_PROTOCOL_TYPE
        if embedded is None or not is_consumers or len(value) < VERSION.size:
            return self._opaque(value)
        schema = message_schema(embedded)
        return self._redact_message(schema, VERSION.read(value), value, VERSION.size) or self._opaque(value)

    def _text(self, name: str, place: str, value: str, beside: Fields) -> str:
        qualified = f"{place}.{name}"
        if name in KEPT or qualified in KEPT:
            return value
        kind = KINDS.get(qualified) or KINDS.get(name, NameKind.OTHER)
        if name == "resourceName":
            kind = _RESOURCES.get(place, {}).get(beside.get("resourceType", -1), NameKind.OTHER)
        elif name == "entityName":
            kind = _ENTITIES.get(beside.get("entityType", ""), NameKind.OTHER)
        if kind is NameKind.TOPIC:
            return self._names.topic(value)
        if kind is NameKind.PRINCIPAL:
            return self._names.principal(value)
        if kind is NameKind.OTHER and is_readable(value):
            return value
        return self._names.name(kind, value)

    def _opaque(self, content: bytes | None) -> bytes | None:
        return self._redactor.replace(content)
