"""Settings of an export: columns, decoding, isolation, ranges."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kseg.arrow import ArrowOptions, schema_of
from kseg.codecs.limits import DEFAULT_LIMIT
from kseg.errors import UsageError
from kseg.export.columns.column_types import StructType, arrow_type, unlike
from kseg.export.columns.flat_columns import flat_fields
from kseg.export.columns.header_maps import HEADER_MAP
from kseg.export.columns.typed_cells import TypedColumn
from kseg.export.columns.unwrapped import Unwrapping
from kseg.export.commit.formats import FORMATS, PARQUET, TableFormat
from kseg.export.partition_fields import PartitionField, parse_field
from kseg.export.undecoded import DecodedPart
from kseg.log.selection import EVERY_PARTITION, EVERYTHING, PartitionChoice, Selection
from kseg.redaction import Redaction

if TYPE_CHECKING:
    from kseg.decode.decoded import Decoded, Json, Part, ValueDecoder
    from kseg.decode.values import DecoderOptions
    from kseg.kernel.record import Header


COLUMNS: dict["Part", str] = {"key": "keyDecoded", "value": "valueDecoded"}
"""The decoded column of each part."""


class DecodedAs(StrEnum):
    """The content of decoded columns: the columns of a schema if one is known, or always text."""

    TYPED = "typed"
    TEXT = "text"


class OnMismatch(StrEnum):
    """The treatment of values whose schema doesn't fit into the column: the run ends, or they stay raw."""

    ERROR = "error"
    RAW = "raw"


class KeptRaw(StrEnum):
    """The bytes of keys and values that are kept next to decoded columns: all, or only undecoded ones."""

    ALL = "all"
    UNDECODED = "undecoded"


@dataclass(frozen=True, slots=True)
class ColumnDecoding:
    """Decoders of keys and of values, by their names in `kseg dump`; None decodes nothing.

    A column has JSON, unless the decoder returns only text: then it has that text, without JSON's quotes. schema,
    message, registry: arguments of these decoders, paths as text. columns: by part, as JSON, the planned typed columns,
    which don't affect whether a run can be resumed. is_flat: whether the fields of a decoded record are columns of
    their own. drops_raw: whether the bytes of decoded keys and values aren't in the table. field_ids: the ids that an
    Iceberg table has given to the export's columns, in the order of kseg.export.write.parquet, unless they are 1, 2 and
    so on.
    """

    key: str | None = None
    value: str | None = None
    schema: str | None = None
    message: str | None = None
    registry: str | None = None
    decoded_as: DecodedAs = DecodedAs.TEXT
    on_mismatch: OnMismatch = OnMismatch.ERROR
    keep_raw: KeptRaw = KeptRaw.ALL
    is_flat: bool = False
    drops_raw: bool = False
    columns: Mapping[str, Any] = field(default_factory=dict, compare=False)
    field_ids: Sequence[int] = field(default=(), compare=False)

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "ColumnDecoding":
        """Return the decoding from JSON made of dataclasses.asdict. Raises KsegError for an invalid column."""
        found = cls(
            **{
                **members,
                "decoded_as": DecodedAs(members.get("decoded_as", DecodedAs.TEXT)),
                "on_mismatch": OnMismatch(members.get("on_mismatch", OnMismatch.ERROR)),
                "keep_raw": KeptRaw(members.get("keep_raw", KeptRaw.ALL)),
                "field_ids": tuple(members.get("field_ids", ())),
            }
        )
        found.typed_columns()
        return found

    def fields(self) -> list[pa.Field]:
        """Return the columns that it adds."""
        found: list[pa.Field] = []
        for part, whole in self.decoded_fields().items():
            found += flat_fields(part, whole.type) if part in self.flat_parts() else [whole]
        return found

    def decoded_fields(self) -> dict["Part", pa.Field]:
        """Return one column per part, before records are split into fields."""
        typed = self.typed_columns()
        return {
            part: pa.field(COLUMNS[part], arrow_type(typed[part].type) if part in typed else pa.string())
            for part, _ in self._decoder_names()
        }

    def flat_parts(self) -> frozenset["Part"]:
        """Return the parts whose fields have columns of their own."""
        typed = self.typed_columns() if self.is_flat else {}
        return frozenset(part for part, column in typed.items() if isinstance(column.type, StructType))

    def raw_columns_left_out(self) -> frozenset[str]:
        """Return the columns of bytes that aren't in the table."""
        return frozenset(part for part, _ in self._decoder_names()) if self.drops_raw else frozenset()

    def typed_columns(self) -> dict["Part", TypedColumn]:
        """Return the planned typed columns, by part."""
        return {
            part: TypedColumn.from_json(self.columns[part]) for part, _ in self._decoder_names() if part in self.columns
        }

    def typed_parts(self) -> dict["Part", str]:
        """Return the parts whose columns become typed if a schema is found, with their decoders."""
        from kseg.decode.values import known_name, takes_schema

        if self.decoded_as is DecodedAs.TEXT or (self.schema is None and self.registry is None):
            return {}
        return {part: known_name(name) for part, name in self._decoder_names() if takes_schema(name)}

    def check(self) -> None:
        """Raise the errors of `decoders` for text columns; typed columns are checked when they are planned."""
        typed = self.typed_parts()
        if self.is_flat and not typed:
            raise UsageError(
                "--flatten needs a decoder and its schema: specify --value-decoder avro, protobuf or json, and"
                " --schema or --schema-registry"
            )
        if self.drops_raw and (self.keep_raw is KeptRaw.UNDECODED or not self._decoder_names()):
            raise UsageError("--drop raw needs a decoder, and excludes --keep-raw undecoded")
        key, value = (None if part in typed else name for part, name in (("key", self.key), ("value", self.value)))
        replace(self, key=key, value=value).decoders()

    def decoders(self) -> dict["Part", "ValueDecoder"]:
        """Return the decoders of text columns, by part. Raises UsageError, OpenError, like `value_decoder`."""
        from kseg.decode.values import value_decoder

        needed = self._decoder_options()
        return {
            part: value_decoder(name, needed, part) for part, name in self._decoder_names() if part not in self.columns
        }

    def text_parts(self) -> frozenset["Part"]:
        """Return the parts whose columns have text instead of JSON."""
        from kseg.decode.values import gives_text

        return frozenset(part for part, name in self._decoder_names() if gives_text(name))

    def _decoder_names(self) -> list[tuple["Part", str]]:
        names: tuple[tuple[Part, str | None], ...] = (("key", self.key), ("value", self.value))
        return [(part, name) for part, name in names if name is not None]

    def _decoder_options(self) -> "DecoderOptions":
        from kseg.cluster.schemas_topic import SchemasTopic
        from kseg.decode.values import DecoderOptions

        schema = None if self.schema is None else Path(self.schema)
        registry = None if self.registry is None else SchemasTopic(Path(self.registry))
        return DecoderOptions(schema, self.message, registry)


def has_room(wanted: ColumnDecoding, written: ColumnDecoding) -> bool:
    """Return True if typed columns are readable as one table with those planned earlier."""
    wide, own = wanted.typed_columns(), written.typed_columns()
    return wide.keys() == own.keys() and all(unlike(own[part].type, wide[part].type) is None for part in own)


NOTHING = ColumnDecoding()
"""The decoding that leaves keys and values as bytes."""


SIDE, REASON = pa.field("side", pa.string()), pa.field("reason", pa.string())
"""Columns of records that don't decode: key, value or both, and the reason."""
BOTH = "both"


class DecodedColumns:
    """An extension of record batches by decoded columns.

    parts: the counts of keys and values so far; undecoded ones are null. failures: the rows of the last batch that
    don't decode, with reasons. failed_records: the number of records so far with an undecoded key or value. notes: the
    schemas of these values.
    """

    def __init__(self, decoding: ColumnDecoding) -> None:
        from kseg.export.columns.typed_cells import TypedCells

        self.parts: dict[Part, DecodedPart] = {}
        self.failures: dict[Part, dict[int, str]] = {}
        self.failed_records = 0
        self._typed: dict[Part, TypedCells] = {
            part: TypedCells(column, part) for part, column in decoding.typed_columns().items()
        }
        self._decoders = decoding.decoders()
        self._text_parts = decoding.text_parts()
        self._fields = decoding.decoded_fields()
        self._flat_parts = decoding.flat_parts()
        self._drops_decoded = decoding.keep_raw is KeptRaw.UNDECODED

    @property
    def failure_count(self) -> int:
        """The number of undecodable keys and values so far."""
        return sum(counts.undecoded for counts in self.parts.values())

    @property
    def notes(self) -> list[str]:
        """Reasons why all values of a schema are null."""
        return [note for cells in self._typed.values() for note in cells.notes]

    def add_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with its decoded columns, and without bytes that aren't to be kept."""
        whole = batch
        for part, added in self._fields.items():
            cells = self._typed_cells(whole, part) if part in self._typed else self._text_cells(whole, part)
            self._count(whole, part)
            columns = [(added, cells)]
            if part in self._flat_parts:
                columns = [*zip(flat_fields(part, added.type), cells.flatten(), strict=True)]
            for column, own in columns:
                batch = batch.append_column(column, own)
            if self._drops_decoded:
                place = batch.schema.get_field_index(part)
                kept = pc.if_else(cells.is_null(), batch.column(place), pa.scalar(None, pa.binary()))
                batch = batch.set_column(place, batch.schema.field(place), kept)
        self.failed_records += len(self._failed_rows())
        return batch

    def select_undecoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records that don't decode, with side and reason instead of decoded columns."""
        self.add_columns(batch)
        rows = sorted(self._failed_rows())
        sides: list[str] = []
        reasons: list[str] = []
        for row in rows:
            own = {part: failures[row] for part, failures in self.failures.items() if row in failures}
            sides.append(BOTH if len(own) > 1 else next(iter(own)))
            reasons.append("; ".join(f"{part}: {reason}" if len(own) > 1 else reason for part, reason in own.items()))
        found = batch.take(pa.array(rows, pa.int64()))
        for column, texts in ((SIDE, sides), (REASON, reasons)):
            found = found.append_column(column, pa.array(texts, column.type))
        return found

    def _failed_rows(self) -> set[int]:
        return set().union(*self.failures.values())

    def _typed_cells(self, batch: pa.RecordBatch, part: "Part") -> pa.Array:
        headers = batch.column("headers") if "headers" in batch.schema.names else None
        cells = self._typed[part].array(batch.column(part), headers)
        self.failures[part] = self._typed[part].failures
        return cells

    def _text_cells(self, batch: pa.RecordBatch, part: "Part") -> pa.Array:
        decode = self._decoders[part]
        shown = _plain_text if part in self._text_parts else _json_text
        cells = zip(batch.column(part).to_pylist(), _headers(batch), strict=True)
        failures = self.failures[part] = {}
        texts: list[str | None] = []
        for row, (data, own) in enumerate(cells):
            text, reason = (None, None) if data is None else _text_or_reason(decode(data, own), shown)
            texts.append(text)
            if reason is not None:
                failures[row] = reason
        return pa.array(texts, pa.string())

    def _count(self, batch: pa.RecordBatch, part: "Part") -> None:
        failures, column = self.failures[part], batch.column(part)
        counts = DecodedPart(part, len(column) - column.null_count)
        if failures:
            offsets = batch.column("offset").take(pa.array(failures, pa.int64())).to_pylist()
            first, reason = min(zip(offsets, failures.values(), strict=True))
            counts = DecodedPart(part, counts.total, len(failures), first, max(offsets), reason)
        self.parts[part] = self.parts[part] + counts if part in self.parts else counts


def _text_or_reason(decoded: "Decoded", shown: "Callable[[Json | bytes], str]") -> tuple[str, None] | tuple[None, str]:
    from kseg.decode.decoded import NotDecodable

    if decoded.reason is not None:
        return None, decoded.reason
    try:
        return shown(decoded.value), None
    except NotDecodable as error:
        return None, error.message
    except UnicodeEncodeError:
        return None, "the text has half of a surrogate pair"


def _plain_text(value: "Json | bytes") -> str:
    return str(value)


def _json_text(value: "Json | bytes") -> str:
    from kseg.decode.decoded import json_able, json_bytes

    return json_bytes(json_able(value)).decode()


def _headers(batch: pa.RecordBatch) -> list[list["Header"]]:
    """Return each record headers; none if they weren't requested."""
    from kseg.kernel.record import Header

    if "headers" not in batch.schema.names:
        return [[]] * batch.num_rows
    return [[Header(pair["key"], pair["value"]) for pair in pairs] for pairs in batch.column("headers").to_pylist()]


MIB = 1 << 20
TOPIC_ID = pa.field("topicId", pa.string())
"""One of the batch columns: it distinguishes a recreated topic from the deleted one of the same name."""


class Isolation(StrEnum):
    """Wanted records of transactions. Kafka's `isolation.level`; the first is the default."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class Mode(StrEnum):
    """The effect of damage: it is counted and skipped, or it ends the reading."""

    PERMISSIVE = "permissive"
    FAILFAST = "failfast"


class Tombstones(StrEnum):
    """The treatment, in a view of each key's latest record, of keys whose latest value is null."""

    DROP = "drop"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets from `first` to below `end`; None leaves a side open."""

    first: int | None = None
    end: int | None = None

    @property
    def count(self) -> int:
        """The number of offsets in a range that has an end."""
        return max((self.end or 0) - (self.first or 0), 0)

    def common(self, other: "OffsetRange") -> "OffsetRange":
        """Return the offsets that are in both ranges."""
        firsts = [first for first in (self.first, other.first) if first is not None]
        ends = [end for end in (self.end, other.end) if end is not None]
        return OffsetRange(max(firsts, default=None), min(ends, default=None))


@dataclass(frozen=True, slots=True)
class LogSelection:
    """A selection of records.

    partitions: the wanted ones. offsets: for all partitions; offsets_of: for single ones by (topic, partition), which
    replaces `offsets` and excludes all other partitions. times: milliseconds, as in Kafka's consumers: from the first
    record at or after the first time, to before the first record at or after the second.
    """

    partitions: PartitionChoice = EVERY_PARTITION
    offsets: OffsetRange = OffsetRange()
    offsets_of: Mapping[tuple[str, int | None], OffsetRange] = field(default_factory=dict)
    first_time: int | None = None
    end_time: int | None = None

    def range_of(self, topic: str, partition: int | None) -> OffsetRange | None:
        """Return the wanted offsets of a partition, or None if it isn't wanted."""
        if not self.partitions.takes(topic, partition):
            return None
        if self.offsets_of:
            return self.offsets_of.get((topic, partition))
        return self.offsets


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of reading records, independent of their destination.

    headers, batch_columns: as in ArrowOptions. has_header_maps: whether headers are a map, not a list. control: whether
    control records are included. max_bytes: the size of a record batch that a reader yields. selected: a choice by
    contents, times, producers and transactions, or of only control records (which needs `control`); its other fields
    aren't used. redaction: the replacement of contents on writing. decode: adds columns of decoded keys or values.
    has_milliseconds: adds Kafka's own timestamps; an existing table decides this itself. undecoded_only: selects
    records whose key or value doesn't decode, with side and reason instead of decoded columns. unwrap: the table
    has the rows of changes, instead of records.
    """

    headers: bool = True
    batch_columns: bool = False
    control: bool = False
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    mode: Mode = Mode.PERMISSIVE
    latest_per_key: Tombstones | None = None
    max_bytes: int = 16 * MIB
    max_decompressed: int = DEFAULT_LIMIT
    selected: Selection = EVERYTHING
    redaction: Redaction | None = None
    decode: ColumnDecoding = NOTHING
    has_milliseconds: bool = field(default=False, compare=False)
    has_header_maps: bool = False
    undecoded_only: bool = False
    unwrap: Unwrapping | None = None

    def for_staging(self) -> "ReadOptions":
        """Return the options for reading records whose changes become rows."""
        decode = replace(self.decode, keep_raw=KeptRaw.UNDECODED)
        has_headers = bool(decode.fields())  # which may have ids of schemas
        return replace(self, unwrap=None, decode=decode, headers=has_headers, has_milliseconds=True)

    def schema(self) -> pa.Schema:
        """Return the schema of the table."""
        if self.unwrap is not None:
            return self.unwrap.schema()
        of_topic, dropped = [TOPIC_ID] if self.batch_columns else [], self.decode.raw_columns_left_out()
        kept = [
            each.with_type(HEADER_MAP) if each.name == "headers" and self.has_header_maps else each
            for each in schema_of(self.arrow())
            if each.name not in dropped
        ]
        decoded = [SIDE, REASON] if self.undecoded_only else self.decode.fields()
        return pa.schema([*kept, *of_topic, *decoded])

    @property
    def takes_all_contents(self) -> bool:
        """True if a record's contents don't matter: all records are wanted but those of Kafka and of transactions."""
        has_choice = self.control or self.latest_per_key is not None or not self.selected.is_everything
        return not (has_choice or self.redaction is not None or self.decode.fields())

    def arrow(self) -> ArrowOptions:
        """Return the column options of kseg.arrow."""
        return ArrowOptions(self.headers, self.batch_columns, self.max_bytes, self.has_milliseconds)

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON's values; of a redaction everything but its key."""
        shown = None
        if self.redaction is not None:
            shown = {"parts": list(self.redaction.parts), "fingerprint": self.redaction.fingerprint}
        return {**asdict(replace(self, redaction=None)), "selected": self.selected.to_json(), "redaction": shown}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "ReadOptions":
        """Return the options of `to_json`, which equal the original even though a redaction's key is unknown."""
        redaction = members.get("redaction")
        latest = members["latest_per_key"]
        enums = {
            "isolation": Isolation(members["isolation"]),
            "mode": Mode(members["mode"]),
            "latest_per_key": None if latest is None else Tombstones(latest),
            "selected": Selection.from_json(members.get("selected", {})),
            "redaction": redaction and Redaction(tuple(redaction["parts"]), redaction["fingerprint"], b""),
            "decode": ColumnDecoding.from_json(members.get("decode", {})),
            "unwrap": None if members.get("unwrap") is None else Unwrapping.from_json(members["unwrap"]),
        }
        return cls(**{**members, **enums})


@dataclass(frozen=True, slots=True)
class FileOptions:
    """Options of output files.

    partition_by: the spellings of the fields that divide files into folders; their columns are in the folders' names
    and not in the files. target_size: bytes of a file. row_group_size: bytes of records in memory.
    compression: a codec of pyarrow's Parquet writer, perhaps with a level: `zstd:9`. bloom_filter: a column that gets a
    filter in each row group. table_format: one of FORMATS. sort_by: the columns by which rows of a
    row group rise; none for the order of the log.
    """

    partition_by: tuple[str, ...] = ("topic",)
    target_size: int = 256 * MIB
    row_group_size: int = 64 * MIB
    compression: str = "zstd"
    bloom_filter: str | None = None
    table_format: str = PARQUET
    sort_by: tuple[str, ...] = ()

    @property
    def format(self) -> TableFormat:
        """The format's row in FORMATS."""
        return FORMATS[self.table_format]

    def for_staging(self) -> "FileOptions":
        """Return the options of files with records whose changes become rows."""
        return replace(self, table_format=PARQUET, compression="zstd:1", target_size=256 * MIB)

    @property
    def codec(self) -> dict[str, Any]:
        """The arguments of pyarrow's Parquet writer for the compression."""
        name, _, level = self.compression.partition(":")
        return {"compression": name, "compression_level": int(level) if level else None}

    @property
    def partitions(self) -> tuple[PartitionField, ...]:
        """The fields that divide files into folders."""
        return tuple(map(parse_field, self.partition_by))

    @property
    def folder_columns(self) -> tuple[str, ...]:
        """The columns of the folders' names."""
        return tuple(field.column for field in self.partitions)

    @property
    def columns_of_folders(self) -> tuple[str, ...]:
        """The columns that only the folders' names have."""
        return () if self.format.has_field_ids else self.folder_columns

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON's values."""
        return {**asdict(self), "partition_by": list(self.partition_by), "sort_by": list(self.sort_by)}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "FileOptions":
        """Return the options of `to_json`."""
        table_format = FORMATS[members.get("table_format", PARQUET)].name
        lists = {name: tuple(members.get(name, ())) for name in ("partition_by", "sort_by")}
        if not all(isinstance(each, str) for names in lists.values() for each in names):
            raise TypeError("the names of fields aren't text")
        return cls(**{**members, **lists, "table_format": table_format})
