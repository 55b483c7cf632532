"""The contract of both kernels: the values that they take and return, such as programs that print, and filters."""

from array import array
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, TypeAlias

from kseg.named_tuple import NamedTuple

# The members of Slot, Text and Op are plain numbers, since a template's operations are a tuple of these. Enums with so
# many members would cost each start some 5 M instructions.


class Slot:
    """Numbers that a template can show: first those of the batch, then those of the record."""

    BASE_OFFSET = 0
    LAST_OFFSET = 1
    COUNT = 2
    BASE_SEQUENCE = 3
    LAST_SEQUENCE = 4
    PRODUCER_ID = 5
    PRODUCER_EPOCH = 6
    PARTITION_LEADER_EPOCH = 7
    IS_TRANSACTIONAL = 8
    IS_CONTROL = 9
    HAS_DELETE_HORIZON = 10
    BASE_TIMESTAMP = 11
    MAX_TIMESTAMP = 12
    TIMESTAMP_TYPE = 13
    POSITION = 14
    SIZE = 15
    MAGIC = 16
    CODEC = 17
    CRC = 18
    IS_VALID = 19
    ATTRIBUTES = 20
    # of the record; in the line of a v0 or v1 batch, of the message that is the batch
    OFFSET = 21
    TIMESTAMP = 22
    SEQUENCE = 23
    KEY_SIZE = 24
    VALUE_SIZE = 25
    HEADER_COUNT = 26
    RECORD_CRC = 27
    RECORD_IS_VALID = 28
    RECORD_CODEC = 29
    RECORD_MAGIC = 30
    CONTROL_TYPE = 31
    CONTROL_VERSION = 32
    COORDINATOR_EPOCH = 33
    TIMESTAMP_DELTA = 34
    "Stored in a v2 record; with LogAppendTime it doesn't follow from the timestamp."
    RECORD_ATTRIBUTES = 35
    "Attributes of a v2 record; Kafka writes 0."


class Text:
    """Bytes that a template can show."""

    KEY = 0
    VALUE = 1
    DECODED = 2
    "Text of `decode_control` for a control record; null for all others."
    KEY_DECODED = 3
    "Further text of `decode` for a record, like the following members; null without one, and for control records."
    VALUE_DECODED = 4
    KEY_ERROR = 5
    VALUE_ERROR = 6


class Op:
    """Operations of a compiled template: code, a, b."""

    LITERAL = 0
    "The program's literals from a, b bytes."
    INTEGER = 1
    "Slot a in decimal."
    WORD = 2
    "The word of table b for slot a; the table's last word for unknown numbers."
    TEXT = 3
    "Text a as Java decodes UTF-8."
    HEADER_KEYS = 4
    "Keys of the headers, joined by commas."
    SKIP_IF_NULL = 5
    "If text a is null, skips the next b operations."
    SKIP_IF_ZERO = 6
    "If slot a is 0, skips the next b operations."
    JSON_TEXT = 7
    """Ends a JSON name and adds text a: `":"text"`, `Base64":"…"` if it is not UTF-8, or `":null`.

    Characters of kseg.system.terminal_text are escaped, as in JSON_HEADERS.
    """
    JSON_HEADERS = 8
    "A JSON list of the headers."
    JSON_TIME = 9
    "Slot a, milliseconds since 1970, as a JSON string in ISO 8601; null if it is negative or beyond the year 9999."
    SKIP_UNLESS_NULL = 10
    SKIP_UNLESS_ZERO = 11
    SKIP_IF_NEGATIVE = 12
    "If slot a is negative (the size of a null), skips the next b operations."
    CSV_TEXT = 13
    """Text a as a field in quotes, nothing for null.

    Text that isn't UTF-8, or begins with `base64:` itself, is Base64 after `base64:`.
    """
    CSV_HEADERS = 14
    "The headers' JSON list, as CSV_TEXT."
    TIME = 15
    "Slot a as JSON_TIME shows it, without quotes; nothing for null."
    CSV_SAFE_TEXT = 16
    """Like CSV_TEXT, after an apostrophe if a spreadsheet would take the beginning for a formula.
    """
    JSON_VALUE = 17
    "Text a as a JSON string, escaped as JSON_TEXT, non-UTF-8 text in Base64 as in CSV_TEXT; null for null."


Zone: TypeAlias = tuple[tuple[int, int], ...]
"""A zone's offsets: pairs of a time (milliseconds, ascending) and the seconds east of UTC from then on.

The first offset also applies before its time. Empty for UTC, which is shown as `Z`. From ZONE_CYCLE_START on, the
offsets repeat with each ZONE_CYCLE, as dates do.
"""
ZONE_CYCLE_START, ZONE_CYCLE = 4102444800000, 146097 * 86_400_000
"""The year 2100, and 400 years: a whole number of weeks."""


class Template(NamedTuple):
    """A compiled line: flat (code, a, b, …), literal bytes, word tables (each from number `first` on).

    is_raw: TEXT and HEADER_KEYS give the stored bytes, not Java's decoding of them. zone: of JSON_TIME and TIME.
    """

    ops: tuple[int, ...]
    literals: bytes
    words: tuple["Words", ...]
    is_raw: bool = False
    zone: Zone = ()


class Words(NamedTuple):
    """Texts of consecutive numbers from `first` on; the last text is for every other number."""

    first: int
    texts: tuple[bytes, ...]


FORMULA_STARTS = (b"=", b"+", b"-", b"@", b"\t", b"\r", b"\n", *map(str.encode, "\uff1d\uff0b\uff0d\uff20"))
"""Beginnings of cells that spreadsheets take for formulas, including full-width signs. Source: OWASP, CSV injection."""

CONTROL_TEMPLATES = 9
"""Number of templates for control records: one for each type 0 … 6, one for unknown types, one for unreadable records.
"""
UNKNOWN_CONTROL, MALFORMED_CONTROL = 7, 8


class Program(NamedTuple):
    """A layout for the kernel. An absent template prints nothing; without record templates nothing is decompressed."""

    batch: tuple[Template | None, Template | None, Template | None]
    "By magic 0, 1, 2."
    record: tuple[Template | None, Template | None, Template | None]
    control: tuple[Template, ...] | None
    "Templates of control records: CONTROL_TEMPLATES of them."


ROW = 3
"""Values per batch in a table of rows: START (in the buffer), SIZE, VALID (1 if the CRC holds)."""
START, SIZE, VALID = range(ROW)
LEAST_RECORD = 7
"""Bytes of a record without key, value and headers. Source: DefaultRecord."""

Buffer = Any  # any object with the buffer protocol (collections.abc.Buffer from 3.12 on)
Rows: TypeAlias = "array[int]"
"""Rows of ROW int64 values, one per batch.

Entry points take the buffer that the rows describe, the first row and the end row, and the bodies of these rows. A body
is None for an uncompressed or missing one; the list may be None, too. `first_body` is the row of the first body, by
default the first row. `position` is the buffer's in the file.
"""


def new_rows(count: int) -> Rows:
    """Return a table of rows, all zero."""
    return array("q", bytes(8 * ROW * count))


Headers = Sequence[tuple[bytes, "bytes | None"]]
"""Names and values of a record's headers."""
Decode = Callable[["bytes | None", "bytes | None", int, Headers], Sequence["bytes | None"]]
"""Function from (key, value, offset, headers) of a record to its printed texts: KEY and VALUE.

It may add KEY_DECODED, VALUE_DECODED, KEY_ERROR, VALUE_ERROR: all four or none.
"""
DecodeControl = Callable[[bytes, "bytes | None"], "bytes | None"]
"""Function from (key, value) of a control record that isn't a transaction marker to its content as JSON."""


ReplaceContents = Callable[["bytes | None", "bytes | None"], tuple["bytes | None", "bytes | None"]]
"""Function from key and value of a record or header to their substitutes: null for null, else as many bytes."""


class Stop(IntEnum):
    """Reasons for a scan to stop."""

    END = 0
    "The remaining bytes can't hold a complete batch: more are needed, or the file ends inside one."
    BAD_LENGTH = 1
    BAD_MAGIC = 2
    BAD_CRC = 3
    FULL = 4
    "The table of rows is full."


class Problem(IntEnum):
    """Problems of the records of a batch."""

    BAD_RECORD = 0
    BAD_COUNT = 1
    BAD_CONTROL = 2
    BAD_MESSAGE = 3
    """The wrong CRC of a message in a wrapper whose CRC is right.

    Only the renderer reports it, for the first such message.
    """


class GapRule(IntEnum):
    """Rules for gaps: the records whose offset is noted if it isn't the preceding offset + 1."""

    NONE = 0
    ALL_RECORDS = 1
    PLAIN_MESSAGES = 2
    "v0 and v1 messages that aren't compressed themselves, including shallow ones."
    FALLS = 3
    "All records, but only offsets that aren't above the preceding one are noted: compaction never writes them."

    def is_gap(self, last_offset: int, offset: int) -> bool:
        """Return True if the rule notes an offset after the preceding one."""
        if self is GapRule.FALLS:
            return offset <= last_offset
        return self is not GapRule.NONE and (offset - last_offset) % 2**64 != 1  # as int64, which wraps around


LEAST, MOST = -(2**63), 2**63 - 1
"""Bounds that exclude nothing."""


class BatchFilter(NamedTuple):
    """Conditions on headers of batches: bounds are inclusive, None is no condition.

    A batch that may hold a record within the bounds stays. A wrapper's first offset isn't known. The wrapper stays if
    it doesn't end below the first wanted offset, or if its offset is 0, in which case the inner offsets count.
    """

    first_offset: int = LEAST
    last_offset: int = MOST
    first_timestamp: int = LEAST
    last_timestamp: int = MOST
    producer_id: int | None = None
    is_transactional: bool | None = None
    is_control: bool | None = None


class RecordFilter(NamedTuple):
    """Conditions on printed records: all must be true; bounds are inclusive, None is no condition.

    key: equal to this. key_part, value_part: contain these bytes. headers: each (name, value) must be present, with any
    value if it is None. share: a record is taken if its offset, mixed by splitmix64, is below it. predicate: is called
    last, with key and value. Of the taken records, the first `skip` are skipped, and the next `limit` printed.
    """

    first_offset: int = LEAST
    last_offset: int = MOST
    first_timestamp: int = LEAST
    last_timestamp: int = MOST
    key: bytes | None = None
    key_part: bytes | None = None
    value_part: bytes | None = None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    share: int | None = None
    predicate: "Callable[[bytes | None, bytes | None], bool] | None" = None
    skip: int = 0
    limit: int | None = None


class RecordProblem(NamedTuple):
    """A batch whose records can't all be read: its position in the file, the problem, the records read, the end."""

    position: int
    problem: Problem
    records_read: int
    body_position: int
