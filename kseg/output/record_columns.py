"""The columns of batches and records: declared once for JSON, CSV and tables.

Names are Kafka's. The meaning of each is with its field in the grammars.
"""

from enum import Enum
from typing import NamedTuple

from kseg.formats.header_fields import PRODUCER_NAMES, camel_case


class Kind(Enum):
    """How a column's values are written."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    WORD = "word"
    "kseg's own text, which needs no escapes."
    TIME = "time"
    BYTES = "bytes"
    HEADERS = "headers"
    JSON = "json"
    "Text that is JSON already; only there if it isn't null."


class Column(NamedTuple):
    """A column: its name, kind, and the template that shows it; `v1` and `v0` where these formats differ.

    None means that a format doesn't have it.
    """

    name: str
    kind: Kind
    v2: str | None
    v1: str | None
    v0: str | None


def _everywhere(name: str, kind: Kind, template: str | None = None) -> Column:
    template = template or f"{{{name}}}"
    return Column(name, kind, template, template, template)


def _from_v1(name: str, kind: Kind, template: str | None = None) -> Column:
    return _everywhere(name, kind, template)._replace(v0=None)


def _only_v2(name: str, kind: Kind, template: str | None = None) -> Column:
    return _from_v1(name, kind, template)._replace(v1=None)


BATCH_COLUMNS = (
    _everywhere("position", Kind.NUMBER),
    _everywhere("size", Kind.NUMBER),
    _everywhere("baseOffset", Kind.NUMBER),
    _everywhere("lastOffset", Kind.NUMBER),
    _everywhere("count", Kind.NUMBER),
    _everywhere("magic", Kind.NUMBER),
    _everywhere("compression", Kind.WORD),
    _everywhere("crc", Kind.NUMBER),
    _everywhere("isValid", Kind.BOOLEAN),
    _everywhere("attributes", Kind.NUMBER),
    _everywhere("timestampType", Kind.WORD),
    _only_v2("baseTimestamp", Kind.NUMBER),
    _from_v1("maxTimestamp", Kind.NUMBER),
    *(_only_v2(camel_case(name), Kind.NUMBER) for name in PRODUCER_NAMES),
    _only_v2("lastSequence", Kind.NUMBER),
    _only_v2("partitionLeaderEpoch", Kind.NUMBER),
    _only_v2("isTransactional", Kind.BOOLEAN),
    _only_v2("isControl", Kind.BOOLEAN),
    _only_v2("deleteHorizonMs", Kind.NUMBER, "{hasDeleteHorizon?{baseTimestamp}}{hasDeleteHorizon!null}"),
)
RECORD_COLUMNS = (
    _everywhere("offset", Kind.NUMBER),
    _from_v1("timestamp", Kind.NUMBER),
    _from_v1("time", Kind.TIME, "{timestamp:iso}"),
    _everywhere("timestampType", Kind.WORD),
    _only_v2("sequence", Kind.NUMBER),
    _everywhere("key", Kind.BYTES),
    _everywhere("value", Kind.BYTES),
    _everywhere("headers", Kind.HEADERS),
    _everywhere("position", Kind.NUMBER),
    _everywhere("isValid", Kind.BOOLEAN, "{recordIsValid}"),
    _everywhere("keySize", Kind.NUMBER),
    _everywhere("valueSize", Kind.NUMBER),
)
STORED_COLUMNS = (
    _only_v2("timestampDelta", Kind.NUMBER),
    _only_v2("recordAttributes", Kind.NUMBER),
)
"""What else a record stores: its own time if the batch has LogAppendTime, and unused bits."""
DECODED_COLUMNS = tuple(
    _everywhere(name, Kind.JSON) for name in ("keyDecoded", "valueDecoded", "keyError", "valueError")
)
"""The decoded contents of a record, and why decoding failed."""
PLACE_COLUMNS = ("file", "topic", "partition")
"""Columns that are the same in all of a log, from its path."""
