"""The holes of templates: each field's name, and how the kernel shows it."""

from typing import NamedTuple

from kseg.formats.codes import CODEC_NAMES
from kseg.formats.header_fields import camel_case
from kseg.kernel.program import Op, Slot, Text, Words


class LineField(NamedTuple):
    """How a hole is filled: an operation, its slot or text, and the words for its numbers if it shows words."""

    op: Op
    source: Slot | Text | None
    words: Words | None = None


BOOLEANS = Words(0, (b"false", b"true"))
TIMESTAMP_TYPES = Words(-1, (b"NoTimestampType", b"CreateTime", b"LogAppendTime"))
CODECS = Words(0, tuple(name.encode() for name in (*CODEC_NAMES, "unknown")))
CAPITAL_CODECS = Words(0, tuple(word.upper() for word in CODECS.texts))
SCALA_CODECS = Words(
    0,
    (
        b"NoCompressionCodec",
        b"GZIPCompressionCodec",
        b"SnappyCompressionCodec",
        b"LZ4CompressionCodec",
        b"UnknownCompressionCodec",
    ),
)


def _number(slot: Slot) -> LineField:
    return LineField(Op.INTEGER, slot)


def _word(slot: Slot, words: Words) -> LineField:
    return LineField(Op.WORD, slot, words)


FIELDS: dict[str, LineField] = {
    **{camel_case(slot.name.lower()): _number(slot) for slot in list(Slot)[: Slot.IS_TRANSACTIONAL]},
    "isTransactional": _word(Slot.IS_TRANSACTIONAL, BOOLEANS),
    "isControl": _word(Slot.IS_CONTROL, BOOLEANS),
    "hasDeleteHorizon": _word(Slot.HAS_DELETE_HORIZON, BOOLEANS),
    "baseTimestamp": _number(Slot.BASE_TIMESTAMP),
    "maxTimestamp": _number(Slot.MAX_TIMESTAMP),
    "timestampType": _word(Slot.TIMESTAMP_TYPE, TIMESTAMP_TYPES),
    "position": _number(Slot.POSITION),
    "size": _number(Slot.SIZE),
    "magic": _number(Slot.MAGIC),
    "compression": _word(Slot.CODEC, CODECS),
    "compression:capital": _word(Slot.CODEC, CAPITAL_CODECS),
    "compression:scala": _word(Slot.CODEC, SCALA_CODECS),
    "crc": _number(Slot.CRC),
    "isValid": _word(Slot.IS_VALID, BOOLEANS),
    "attributes": _number(Slot.ATTRIBUTES),
    "offset": _number(Slot.OFFSET),
    "timestamp": _number(Slot.TIMESTAMP),
    "timestamp:iso": LineField(Op.JSON_TIME, Slot.TIMESTAMP),
    "time": LineField(Op.TIME, Slot.TIMESTAMP),
    "sequence": _number(Slot.SEQUENCE),
    "keySize": _number(Slot.KEY_SIZE),
    "valueSize": _number(Slot.VALUE_SIZE),
    "headerCount": _number(Slot.HEADER_COUNT),
    "headerKeys": LineField(Op.HEADER_KEYS, None),
    "headers": LineField(Op.JSON_HEADERS, None),
    "headers:json": LineField(Op.JSON_HEADERS, None),
    "headers:csv": LineField(Op.CSV_HEADERS, None),
    "key": LineField(Op.TEXT, Text.KEY),
    "key:json": LineField(Op.JSON_TEXT, Text.KEY),
    "key:csv": LineField(Op.CSV_TEXT, Text.KEY),
    "key:safe": LineField(Op.CSV_SAFE_TEXT, Text.KEY),
    "value": LineField(Op.TEXT, Text.VALUE),
    "value:json": LineField(Op.JSON_TEXT, Text.VALUE),
    "value:csv": LineField(Op.CSV_TEXT, Text.VALUE),
    "value:safe": LineField(Op.CSV_SAFE_TEXT, Text.VALUE),
    "decoded": LineField(Op.TEXT, Text.DECODED),
    "keyDecoded": LineField(Op.TEXT, Text.KEY_DECODED),
    "keyDecoded:json": LineField(Op.JSON_TEXT, Text.KEY_DECODED),
    "keyDecoded:csv": LineField(Op.CSV_TEXT, Text.KEY_DECODED),
    "keyDecoded:safe": LineField(Op.CSV_SAFE_TEXT, Text.KEY_DECODED),
    "valueDecoded": LineField(Op.TEXT, Text.VALUE_DECODED),
    "valueDecoded:json": LineField(Op.JSON_TEXT, Text.VALUE_DECODED),
    "valueDecoded:csv": LineField(Op.CSV_TEXT, Text.VALUE_DECODED),
    "valueDecoded:safe": LineField(Op.CSV_SAFE_TEXT, Text.VALUE_DECODED),
    "keyError": LineField(Op.TEXT, Text.KEY_ERROR),
    "keyError:json": LineField(Op.JSON_TEXT, Text.KEY_ERROR),
    "keyError:csv": LineField(Op.CSV_TEXT, Text.KEY_ERROR),
    "keyError:safe": LineField(Op.CSV_SAFE_TEXT, Text.KEY_ERROR),
    "valueError": LineField(Op.TEXT, Text.VALUE_ERROR),
    "valueError:json": LineField(Op.JSON_TEXT, Text.VALUE_ERROR),
    "valueError:csv": LineField(Op.CSV_TEXT, Text.VALUE_ERROR),
    "valueError:safe": LineField(Op.CSV_SAFE_TEXT, Text.VALUE_ERROR),
    "recordCrc": _number(Slot.RECORD_CRC),
    "recordIsValid": _word(Slot.RECORD_IS_VALID, BOOLEANS),
    "recordMagic": _number(Slot.RECORD_MAGIC),
    "recordCompression:capital": _word(Slot.RECORD_CODEC, CAPITAL_CODECS),
    "recordCompression:scala": _word(Slot.RECORD_CODEC, SCALA_CODECS),
    "controlType": _number(Slot.CONTROL_TYPE),
    "controlVersion": _number(Slot.CONTROL_VERSION),
    "coordinatorEpoch": _number(Slot.COORDINATOR_EPOCH),
    "timestampDelta": _number(Slot.TIMESTAMP_DELTA),
    "recordAttributes": _number(Slot.RECORD_ATTRIBUTES),
}
OWN_FIELDS: dict[str, LineField] = {
    name: field._replace(op=Op.JSON_VALUE) if field.op is Op.JSON_TEXT else field for name, field in FIELDS.items()
}
"""The holes of a user's own lines: there, `{key:json}` is a whole value, not the part after a member's name."""
