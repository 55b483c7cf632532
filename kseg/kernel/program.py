"""Programs that print: the numbers and bytes that a template can show, and the operations that it is made of."""

from enum import IntEnum, auto
from typing import NamedTuple, TypeAlias


class Slot(IntEnum):
    """Numbers that a template can show: of the batch, then of the record."""

    BASE_OFFSET = 0
    LAST_OFFSET = auto()
    COUNT = auto()
    BASE_SEQUENCE = auto()
    LAST_SEQUENCE = auto()
    PRODUCER_ID = auto()
    PRODUCER_EPOCH = auto()
    PARTITION_LEADER_EPOCH = auto()
    IS_TRANSACTIONAL = auto()
    IS_CONTROL = auto()
    HAS_DELETE_HORIZON = auto()
    BASE_TIMESTAMP = auto()
    MAX_TIMESTAMP = auto()
    TIMESTAMP_TYPE = auto()
    POSITION = auto()
    SIZE = auto()
    MAGIC = auto()
    CODEC = auto()
    CRC = auto()
    IS_VALID = auto()
    ATTRIBUTES = auto()
    # of the record; in a batch's own line, of the v0 or v1 message that the batch is
    OFFSET = auto()
    TIMESTAMP = auto()
    SEQUENCE = auto()
    KEY_SIZE = auto()
    VALUE_SIZE = auto()
    HEADER_COUNT = auto()
    RECORD_CRC = auto()
    RECORD_IS_VALID = auto()
    RECORD_CODEC = auto()
    RECORD_MAGIC = auto()
    CONTROL_TYPE = auto()
    CONTROL_VERSION = auto()
    COORDINATOR_EPOCH = auto()
    TIMESTAMP_DELTA = auto()
    "As a v2 record stores it; with LogAppendTime its timestamp doesn't tell it."
    RECORD_ATTRIBUTES = auto()
    "Of a v2 record; Kafka writes 0."


STEADY = (
    *(Slot.PRODUCER_ID, Slot.PRODUCER_EPOCH, Slot.PARTITION_LEADER_EPOCH, Slot.IS_TRANSACTIONAL, Slot.IS_CONTROL),
    *(Slot.HAS_DELETE_HORIZON, Slot.TIMESTAMP_TYPE, Slot.MAGIC, Slot.CODEC, Slot.IS_VALID, Slot.ATTRIBUTES),
    *(Slot.RECORD_IS_VALID, Slot.RECORD_CODEC, Slot.RECORD_MAGIC, Slot.HEADER_COUNT),
)
"""Numbers that are the same in most lines."""
OFTEN_STEADY = (Slot.COUNT, Slot.BASE_SEQUENCE, Slot.LAST_SEQUENCE, Slot.SEQUENCE)
"""Numbers that are the same in most lines if no producer numbers its batches."""


class Text(IntEnum):
    """Bytes that a template can show."""

    KEY = 0
    VALUE = 1
    DECODED = 2
    "What `decode_control` made of a control record; null for all others."
    KEY_DECODED = 3
    "What `decode` gave of a record besides, as the next ones; null if it didn't, and for control records."
    VALUE_DECODED = 4
    KEY_ERROR = 5
    VALUE_ERROR = 6


class Op(IntEnum):
    """Operations of a compiled template: code, a, b."""

    LITERAL = 0
    "The program's literals from a, b bytes."
    INTEGER = 1
    "Slot a in decimal."
    WORD = 2
    "The word of table b for slot a; the table's last word for numbers that it doesn't know."
    TEXT = 3
    "Text a as Java decodes UTF-8."
    HEADER_KEYS = 4
    "Keys of the headers, joined by commas."
    SKIP_IF_NULL = 5
    "If text a is null, passes over the next b operations."
    SKIP_IF_ZERO = 6
    "If slot a is 0, passes over the next b operations."
    JSON_TEXT = 7
    """Ends a JSON name and gives text a: `":"text"`, `Base64":"…"` if it is not UTF-8, or `":null`.

    Characters of kseg.control_characters are escaped, as in the next one.
    """
    JSON_HEADERS = 8
    "A JSON list of the headers."
    JSON_TIME = 9
    "Slot a, milliseconds since 1970, as a JSON string in ISO 8601; null if it is negative or beyond the year 9999."
    SKIP_UNLESS_NULL = 10
    SKIP_UNLESS_ZERO = 11
    SKIP_IF_NEGATIVE = 12
    "If slot a is negative (the size of a null), passes over the next b operations."
    CSV_TEXT = 13
    """Text a as a field in quotes, nothing for null.

    What isn't UTF-8, or begins with `base64:` itself, is Base64 after `base64:`.
    """
    CSV_HEADERS = 14
    "The same of the headers' JSON list."
    TIME = 15
    "Slot a as JSON_TIME shows it, without quotes; nothing for null."
    CSV_SAFE_TEXT = 16
    "As CSV_TEXT, after an apostrophe if a spreadsheet would evaluate the text as a formula, by its beginning."
    JSON_VALUE = 17
    "Text a as a JSON string, escaped as JSON_TEXT, what isn't UTF-8 in Base64 as CSV_TEXT has it; null for null."


Zone: TypeAlias = tuple[tuple[int, int], ...]
"""A zone's offsets: from a time on (milliseconds, rising) so many seconds east of UTC; the first holds before it too.

Empty for UTC, which is shown as `Z`. From ZONE_CYCLE_START on they come again with each ZONE_CYCLE, as dates do.
"""
ZONE_CYCLE_START, ZONE_CYCLE = 4102444800000, 146097 * 86_400_000
"""The year 2100, and 400 years: a whole number of weeks."""


class Template(NamedTuple):
    """A compiled line: flat (code, a, b, …), literal bytes, word tables (each from number `first` on).

    is_raw: TEXT and HEADER_KEYS give bytes as they are, not what Java makes of them. zone: of JSON_TIME and TIME.
    """

    ops: tuple[int, ...]
    literals: bytes
    words: tuple["Words", ...]
    is_raw: bool = False
    zone: Zone = ()


class Words(NamedTuple):
    """Texts of consecutive numbers from `first` on; the last one stands for every other number."""

    first: int
    texts: tuple[bytes, ...]


FORMULA_STARTS = (b"=", b"+", b"-", b"@", b"\t", b"\r", b"\n", *map(str.encode, "\uff1d\uff0b\uff0d\uff20"))
"""What a cell begins with that spreadsheets take for a formula, full-width signs too. Source: OWASP, CSV injection."""

CONTROL_TEMPLATES = 9
"""Control records' templates: one for each type 0 … 6, one for unknown types, one for what can't be read as one."""
UNKNOWN_CONTROL, MALFORMED_CONTROL = 7, 8


class Program(NamedTuple):
    """A layout for the kernel. An absent template prints nothing; without record templates nothing is decompressed."""

    batch: tuple[Template | None, Template | None, Template | None]
    "By magic 0, 1, 2."
    record: tuple[Template | None, Template | None, Template | None]
    control: tuple[Template, ...] | None
    "CONTROL_TEMPLATES of them."
