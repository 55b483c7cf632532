"""Records with their keys and values decoded."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kseg.api.asked import DecodingOptions, path_of
from kseg.kernel.record import Record

if TYPE_CHECKING:
    from kseg.decode.decoded import Decoded, Json, ValueDecoder


@dataclass(frozen=True, slots=True)
class DecodedRecord:
    """A record with its key and value decoded.

    Null is None. What has no decoder stays bytes; so does what doesn't decode, and then `key_error` or `value_error`
    says why.
    """

    record: Record
    key: "Json | bytes"
    value: "Json | bytes"
    key_error: str | None = None
    value_error: str | None = None

    @property
    def offset(self) -> int:
        """The record's offset."""
        return self.record.offset

    @property
    def timestamp(self) -> int:
        """The record's time: milliseconds since 1970, -1 for none."""
        return self.record.timestamp


def decoded_records(records: Iterable[Record], options: DecodingOptions) -> Iterator[DecodedRecord]:
    """The records, decoded. Raises UsageError, OpenError: as `value_decoder` does."""
    from kseg.decode.topic import SchemasTopic
    from kseg.decode.values import DecoderOptions, value_decoder

    registry = path_of(options.get("schema_registry"))
    topic = None if registry is None else SchemasTopic(registry)
    needed = DecoderOptions(path_of(options.get("schema")), options.get("message"), topic)
    key, value = options.get("key_decoder"), options.get("value_decoder")
    of_key = None if key is None else value_decoder(key, needed, "key")
    of_value = None if value is None else value_decoder(value, needed, "value")
    return map(partial(_decoded, of_key, of_value), records)


def _decoded(of_key: "ValueDecoder | None", of_value: "ValueDecoder | None", record: Record) -> DecodedRecord:
    key, value = _part(of_key, record.key, record), _part(of_value, record.value, record)
    return DecodedRecord(record, key.value, value.value, key.reason, value.reason)


def _part(decode: "ValueDecoder | None", data: bytes | None, record: Record) -> "Decoded":
    from kseg.decode.decoded import Decoded

    return Decoded(data) if decode is None or data is None else decode(data, record.headers)
