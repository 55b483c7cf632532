"""The contract of both kernels: their functions and classes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntFlag
from typing import TYPE_CHECKING, Protocol, TypeAlias

from kseg.kernel.contract import (
    BatchFilter,
    Buffer,
    Decode,
    DecodeControl,
    GapRule,
    Program,
    RecordFilter,
    RecordProblem,
    ReplaceContents,
    Rows,
)
from kseg.named_tuple import NamedTuple

if TYPE_CHECKING:
    from kseg.kernel.record import Record
    from kseg.redaction import Redactor


class Bodies(Protocol):
    """Bodies of consecutive rows, None for missing ones; `render` and `columns` take a list of these as well."""

    def __init__(self, count: int) -> None: ...

    def __len__(self) -> int: ...

    def __setitem__(self, index: int, body: bytes) -> None: ...

    def __getitem__(self, index: int) -> bytes | None: ...

    def decompress(
        self, buffer: memoryview, rows: Rows, first: int, functions: "LibraryFunctions", limit: int, enough: int
    ) -> tuple[int, list[tuple[int, int, int, int, int]]]:
        """Decompress bodies by the libraries' own functions, without Python in between.

        One body may have at most `limit` bytes; after `enough` bytes in all, no further row is begun. Returns the row
        where it ended, and preceding rows that are left to the libraries' Python interfaces: the row, and the result of
        formats.codes.compressed_body.
        """


class LibraryFunctions(NamedTuple):
    """Addresses of C functions in the codecs' packages; all of a codec's are 0 if they aren't available."""

    lz4_decompress_safe: int = 0
    zstd_create_context: int = 0
    zstd_free_context: int = 0
    zstd_decompress: int = 0
    zstd_decompress_bound: int = 0


class _Replacer(Protocol):
    """Replaces keys and values as a Redactor does; with `keeps_keys` values alone.

    It serves as ReplaceContents, and the compiled kernel then calls nothing for each record.
    """

    def __init__(self, redactor: "Redactor", *, keeps_keys: bool = False) -> None: ...

    def __call__(self, key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]: ...


class Contents(IntFlag):
    """The contents of records that columns hold; others are null, or an empty list, and aren't copied."""

    KEYS = 1
    VALUES = 2
    HEADERS = 4


ALL_CONTENTS = Contents.KEYS | Contents.VALUES | Contents.HEADERS
Appended = tuple[int, "bytes | None", "bytes | None", Sequence[tuple["str | bytes", "bytes | None"]]]
"""Timestamp, key, value and headers of a record to be written."""


class Encoded(Protocol):
    """Records of a v2 batch, or v0 and v1 entries, as bytes, in order; their number is the length.

    size: bytes in total. max_timestamp: the largest, -1 without any. next_delta: offset after the last, minus the base
    offset.
    """

    size: int
    max_timestamp: int
    next_delta: int

    def __init__(self) -> None: ...

    def __len__(self) -> int: ...

    def add(self, record: bytes, offset_delta: int, timestamp: int) -> None:
        """Add an encoded record."""

    def start(self, base_timestamp: int) -> None:
        """Set the time to which timestamps of usual records are relative; before, no record is usual."""

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str | bytes, bytes | None]],
    ) -> bool:
        """Encode a record at the next offset if it is usual; otherwise return False.

        A usual record is small, has no headers, and has a timestamp of 0 or more. The kernel decides;
        `writer.record.encode_record` encodes the others.
        """

    def extend(self, records: Iterable[Appended]) -> Appended | None:
        """Encode records at the next offsets; return the first unusual record, after which none was taken."""

    def body(self) -> bytes:
        """Return all records."""


class Output(Protocol):
    """Collects bytes and passes them to `write` in large pieces."""

    def __init__(self, write: Callable[[memoryview], object], capacity: int) -> None: ...

    def write(self, text: bytes) -> None:
        """Add bytes after the rendered ones."""

    def flush(self) -> None:
        """Pass on the collected bytes."""


class Renderer(Protocol):
    """Renders batches of one file, and records counts and problems.

    records: number of printed records, including those that lines of batches count. is_full: the filter's limit is
    reached. problems: of batches whose records couldn't all be read; the reader of the list empties it. gaps: pairs of
    offsets that follow one another in the file, and should not. compared_offset: the one with which the rule for gaps
    compares the next offset, None if it compares none.
    """

    is_full: bool
    compared_offset: int | None
    records: int
    problems: list[RecordProblem]
    gaps: list[tuple[int, int]]

    def __init__(
        self,
        program: Program,
        output: Output,
        decode: Decode | None = None,
        decode_control: DecodeControl | None = None,
        gap_rule: GapRule = GapRule.NONE,
        last_offset: int | None = None,
        record_filter: RecordFilter | None = None,
    ) -> None:
        """Prepare to render a file.

        decode returns the texts of a record, decode_control the text DECODED of a control record that isn't a
        transaction marker. last_offset is the offset before the first; None if the first one is never a gap.
        record_filter: only its records are printed, and only lines of batches that have such a record. It is ignored if
        records aren't read.
        """

    def render(
        self,
        buffer: memoryview,
        rows: Rows,
        first: int,
        last: int,
        position: int,
        bodies: "Bodies | Sequence[bytes | None] | None",
        first_body: int = -1,
    ) -> int:
        """Print rows from `first` on, up to `last` or through the first batch with a problem.

        Returns the row where to continue. Once the filter's limit is reached, nothing is printed and no problem is
        noted.
        """


class Columns(Protocol):
    """Records of a run of batches, column by column, in buffers that Arrow can use unchanged.

    Numbers are in the machine's byte order. A `*_offsets` buffer has one number more than there are items; bit i of a
    `*_validity` buffer, lowest first, is 0 if item i is null.
    """

    count: int
    "Number of records."
    header_count: int
    "Number of headers of all records."
    rows: Buffer
    "int32: the row of the record's batch."
    places: Buffer
    "int32: with a filter, the record's index among all read records, counted from 0; otherwise empty."
    offsets: Buffer
    "int64"
    timestamps: Buffer
    "int64: milliseconds since 1970, -1 none."
    sequences: Buffer
    "int32: -1 none."
    checksums: Buffer
    "int64: stored CRC of a v0 or v1 message, of its batch for a v2 record."
    valid: Buffer
    "int8: 1 if that CRC holds."
    timestamp_types: Buffer
    "int32: -1 none, 0 CreateTime, 1 LogAppendTime."
    control: Buffer
    "int8: 1 for a control record."
    key_offsets: Buffer
    key_validity: Buffer
    key_data: Buffer
    value_offsets: Buffer
    value_validity: Buffer
    value_data: Buffer
    header_offsets: Buffer
    "int32: start of a record's headers among all headers."
    header_key_offsets: Buffer
    header_key_data: Buffer
    header_value_offsets: Buffer
    header_value_validity: Buffer
    header_value_data: Buffer
    problems: list[RecordProblem]


_Output: TypeAlias = Output
_Renderer: TypeAlias = Renderer
_Bodies: TypeAlias = Bodies
_Encoded: TypeAlias = Encoded


class Kernel(Protocol):
    """Scanning, choosing, decompressing, rendering, columns and records of runs of batches; and encoding of records."""

    NAME: str
    Output: type[_Output]
    Renderer: type[_Renderer]
    Bodies: type[_Bodies]
    Replacer: type[_Replacer]
    Encoded: type[_Encoded]

    def scan(self, buffer: memoryview, start: int, end: int, rows: Rows, count: int) -> tuple[int, int, int, int]:
        """Fill `rows` from row `count` on with the intact batches from `start`.

        Returns the count of rows, the start of the next batch, the reason for stopping (Stop), and the codecs met (bit
        n for codec n).
        """

    def find_header(self, buffer: memoryview, start: int, end: int, base_offset: int, room: int) -> int:
        """Return the position of the next plausible header of a batch, or -1.

        Plausible: magic known, reserved bits zero, offset from `base_offset` to 2³¹ above it, length at least the
        magic's least and at most `room` bytes from the buffer's start on. The CRC isn't checked.
        """

    def select(self, buffer: memoryview, rows: Rows, count: int, wanted: BatchFilter) -> tuple[int, int, int, bool]:
        """Keep the wanted rows of the first `count` rows, at the beginning of the table.

        Returns the number of kept rows; the codecs of their batches, as from `scan`; the least timestamp in the headers
        of all rows (-1 if a header has none); and whether any batch begins after the last wanted offset.
        """

    def columns(
        self,
        buffer: memoryview,
        rows: Rows,
        first: int,
        last: int,
        position: int,
        bodies: "_Bodies | Sequence[bytes | None] | None",
        record_filter: RecordFilter | None = None,
        first_body: int = -1,
        contents: Contents = ALL_CONTENTS,
    ) -> Columns:
        """Return the records of rows first … last - 1, including control records.

        With a filter, only its records; `skip` and `limit` apply to this call, which ends when the limit is reached.
        contents: the needed keys, values and headers.
        """

    def records(
        self,
        buffer: memoryview,
        rows: Rows,
        first: int,
        last: int,
        position: int,
        bodies: "_Bodies | Sequence[bytes | None] | None",
        first_body: int = -1,
    ) -> "Iterator[list[Record] | RecordProblem]":
        """Return the records of rows first … last - 1 as values, including control records.

        They come in lists of limited length, so that few are in memory at once. A batch's problem follows its readable
        records. Buffer, rows and bodies must not change until the end.
        """

    def replace_contents(
        self,
        records: bytearray,
        start: int,
        end: int,
        count: int,
        replace_record: "ReplaceContents | None",
        replace_header: "ReplaceContents | None",
    ) -> None:
        """Replace keys, values and headers of v2 records where they stand, by others of the same size.

        Of the first `count` records that lie from `start` to `end`, as far as they can be read: those that `render`
        shows. None leaves keys and values, or headers, as they are.
        """

    def crc32c(self, data: memoryview) -> int:
        """Return CRC-32C of the given bytes."""
