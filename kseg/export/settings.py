"""Settings of an export: columns, decoding, isolation, ranges."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kseg.arrow import ArrowOptions, schema_of
from kseg.codecs.bodies import DEFAULT_LIMIT
from kseg.export.columns.column_types import arrow_type, unlike
from kseg.export.columns.typed_cells import TypedColumn
from kseg.export.commit.formats import FORMATS, PARQUET, TableFormat
from kseg.log.selection import EVERY_PARTITION, EVERYTHING, PartitionChoice, Selection
from kseg.redaction import Redaction

if TYPE_CHECKING:
    from kseg.decode.decoded import Decoded, Json, Part, ValueDecoder
    from kseg.decode.values import DecoderOptions
    from kseg.kernel.record import Header


COLUMNS: dict["Part", str] = {"key": "keyDecoded", "value": "valueDecoded"}
"""The column of each part that is decoded."""


class DecodedAs(StrEnum):
    """What decoded columns have: those of the schema where one is known, or text in any case."""

    TYPED = "typed"
    TEXT = "text"


class OnMismatch(StrEnum):
    """What becomes of values whose schema doesn't fit into the column: the run ends, or they stay raw."""

    ERROR = "error"
    RAW = "raw"


class KeptRaw(StrEnum):
    """Which bytes of keys and values stay beside the decoded ones: all, or only those that have no decoded value."""

    ALL = "all"
    UNDECODED = "undecoded"


@dataclass(frozen=True, slots=True)
class ColumnDecoding:
    """Names of decoders, as `kseg dump` knows them, of keys and of values; None decodes nothing.

    A column has JSON, unless the decoder makes nothing but text: then it has that text, without JSON's quotes.
    schema, message, registry: what these decoders need, paths as text.
    columns: by part, as JSON, the typed columns that the plan found; a run goes on whatever they were.
    field_ids: those that an Iceberg table has given to the columns of the export, in the order of
    kseg.export.write.parquet, where these aren't 1, 2 and so on.
    """

    key: str | None = None
    value: str | None = None
    schema: str | None = None
    message: str | None = None
    registry: str | None = None
    decoded_as: DecodedAs = DecodedAs.TEXT
    on_mismatch: OnMismatch = OnMismatch.ERROR
    keep_raw: KeptRaw = KeptRaw.ALL
    columns: Mapping[str, Any] = field(default_factory=dict, compare=False)
    field_ids: Sequence[int] = field(default=(), compare=False)

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "ColumnDecoding":
        """The decoding of dataclasses.asdict, from JSON. Raises KsegError for a column that is none."""
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
        """The columns that it adds."""
        typed = self.typed_columns()
        return [
            pa.field(COLUMNS[part], arrow_type(typed[part].type) if part in typed else pa.string())
            for part, _ in self._named()
        ]

    def typed_columns(self) -> dict["Part", TypedColumn]:
        """The typed columns that the plan found, by part."""
        return {part: TypedColumn.from_json(self.columns[part]) for part, _ in self._named() if part in self.columns}

    def typed_parts(self) -> dict["Part", str]:
        """The parts whose columns are to be typed if a schema turns up, with the decoder of each."""
        from kseg.decode.values import known_name, takes_schema

        if self.decoded_as is DecodedAs.TEXT or (self.schema is None and self.registry is None):
            return {}
        return {part: known_name(name) for part, name in self._named() if takes_schema(name)}

    def check(self) -> None:
        """Raises what `decoders` does for columns of text; what typed ones need is looked at when they are planned."""
        typed = self.typed_parts()
        key, value = (None if part in typed else name for part, name in (("key", self.key), ("value", self.value)))
        replace(self, key=key, value=value).decoders()

    def decoders(self) -> dict["Part", "ValueDecoder"]:
        """The decoders of columns of text, by part. Raises UsageError, OpenError: as `value_decoder` does."""
        from kseg.decode.values import value_decoder

        needed = self._needed()
        return {part: value_decoder(name, needed, part) for part, name in self._named() if part not in self.columns}

    def text_parts(self) -> frozenset["Part"]:
        """The parts whose columns have text, not JSON."""
        from kseg.decode.values import gives_text

        return frozenset(part for part, name in self._named() if gives_text(name))

    def _named(self) -> list[tuple["Part", str]]:
        names: tuple[tuple[Part, str | None], ...] = (("key", self.key), ("value", self.value))
        return [(part, name) for part, name in names if name is not None]

    def _needed(self) -> "DecoderOptions":
        from kseg.cluster.schemas_topic import SchemasTopic
        from kseg.decode.values import DecoderOptions

        schema = None if self.schema is None else Path(self.schema)
        registry = None if self.registry is None else SchemasTopic(Path(self.registry))
        return DecoderOptions(schema, self.message, registry)


def has_room(wanted: ColumnDecoding, written: ColumnDecoding) -> bool:
    """Whether typed columns are readable as one table with those that were planned earlier."""
    wide, own = wanted.typed_columns(), written.typed_columns()
    return wide.keys() == own.keys() and all(unlike(own[part].type, wide[part].type) is None for part in own)


NOTHING = ColumnDecoding()
"""Keys and values stay bytes."""


class DecodedColumns:
    """Adds decoded columns to record batches.

    undecoded: keys and values so far that don't decode; they are null. notes: which schemas' values these are.
    """

    def __init__(self, decoding: ColumnDecoding) -> None:
        from kseg.export.columns.typed_cells import TypedCells

        self._failed = 0
        self._typed: dict[Part, TypedCells] = {
            part: TypedCells(column, part) for part, column in decoding.typed_columns().items()
        }
        self._decoders = decoding.decoders()
        self._text_parts = decoding.text_parts()
        self._fields = decoding.fields()
        self._drops_decoded = decoding.keep_raw is KeptRaw.UNDECODED

    @property
    def undecoded(self) -> int:
        """Keys and values so far that don't decode."""
        return self._failed + sum(cells.undecoded for cells in self._typed.values())

    @property
    def notes(self) -> list[str]:
        """Why values of whole schemas are null."""
        return [note for cells in self._typed.values() for note in cells.notes]

    def added(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with its decoded columns; without the bytes that aren't to stay beside them."""
        whole = batch
        for added in self._fields:
            part: Part = "key" if added.name == COLUMNS["key"] else "value"
            cells = self._typed_cells(whole, part) if part in self._typed else self._text_cells(whole, part)
            batch = batch.append_column(added, cells)
            if self._drops_decoded:
                place = batch.schema.get_field_index(part)
                kept = pc.if_else(cells.is_null(), batch.column(place), pa.scalar(None, pa.binary()))
                batch = batch.set_column(place, batch.schema.field(place), kept)
        return batch

    def _typed_cells(self, batch: pa.RecordBatch, part: "Part") -> pa.Array:
        headers = batch.column("headers") if "headers" in batch.schema.names else None
        return self._typed[part].array(batch.column(part), headers)

    def _text_cells(self, batch: pa.RecordBatch, part: "Part") -> pa.Array:
        decode = self._decoders[part]
        shown = _plain_text if part in self._text_parts else _json_text
        cells = zip(batch.column(part).to_pylist(), _headers(batch), strict=True)
        texts = [None if data is None else self._text(decode(data, own), shown) for data, own in cells]
        return pa.array(texts, pa.string())

    def _text(self, decoded: "Decoded", shown: "Callable[[Json | bytes], str]") -> str | None:
        from kseg.decode.decoded import NotDecodable

        if decoded.reason is None:
            try:
                return shown(decoded.value)
            except (NotDecodable, UnicodeEncodeError):
                pass  # text that isn't Unicode, for one: no form in JSON
        self._failed += 1
        return None


def _plain_text(value: "Json | bytes") -> str:
    return str(value)


def _json_text(value: "Json | bytes") -> str:
    from kseg.decode.decoded import json_able, json_bytes

    return json_bytes(json_able(value)).decode()


def _headers(batch: pa.RecordBatch) -> list[list["Header"]]:
    """Each record's headers; none where they weren't asked for."""
    from kseg.kernel.record import Header

    if "headers" not in batch.schema.names:
        return [[]] * batch.num_rows
    return [[Header(pair["key"], pair["value"]) for pair in pairs] for pairs in batch.column("headers").to_pylist()]


MIB = 1 << 20
TOPIC_ID = pa.field("topicId", pa.string())
"""One of the batch columns: it tells topics of one name apart, of which one was deleted before the other was made."""


class Isolation(StrEnum):
    """Which records of transactions are wanted. Kafka's `isolation.level`, whose default is the first."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class Mode(StrEnum):
    """What damage does: it is counted and passed over, or it ends the reading."""

    PERMISSIVE = "permissive"
    FAILFAST = "failfast"


class Tombstones(StrEnum):
    """Of a view with the latest record per key: whether keys whose latest value is null are in it."""

    DROP = "drop"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets from `first` to below `end`; None leaves a side open."""

    first: int | None = None
    end: int | None = None

    @property
    def count(self) -> int:
        """Offsets of a range that has an end."""
        return max((self.end or 0) - (self.first or 0), 0)

    def common(self, other: "OffsetRange") -> "OffsetRange":
        """The offsets that are in both ranges."""
        firsts = [first for first in (self.first, other.first) if first is not None]
        ends = [end for end in (self.end, other.end) if end is not None]
        return OffsetRange(max(firsts, default=None), min(ends, default=None))


@dataclass(frozen=True, slots=True)
class LogSelection:
    """Which records are wanted.

    partitions: which ones. offsets: for all partitions; offsets_of: for single ones by (topic, partition), in its
    place, and then no other partition is read. times: milliseconds; as Kafka's consumers take them: from the first
    record of the first time or later, to before the first of the second.
    """

    partitions: PartitionChoice = EVERY_PARTITION
    offsets: OffsetRange = OffsetRange()
    offsets_of: Mapping[tuple[str, int | None], OffsetRange] = field(default_factory=dict)
    first_time: int | None = None
    end_time: int | None = None

    def range_of(self, topic: str, partition: int | None) -> OffsetRange | None:
        """The offsets wanted of a partition; None if it isn't wanted."""
        if not self.partitions.takes(topic, partition):
            return None
        if self.offsets_of:
            return self.offsets_of.get((topic, partition))
        return self.offsets


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How records are read, whatever becomes of them.

    headers, batch_columns: as in ArrowOptions. control: control records too. max_bytes: bytes of a record batch that a
    reader yields.
    selected: which records by what is in them, their times, producers and transactions, and whether only control
    records (which `control` must let through); nothing else is asked in it.
    redaction: what is replaced when they are written.
    decode: adds columns of keys or values decoded.
    has_milliseconds: adds the timestamps as Kafka has them. A table that is there decides, whatever is asked for.
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

    def schema(self) -> pa.Schema:
        """The columns of the records that are given."""
        of_topic = [TOPIC_ID] if self.batch_columns else []
        return pa.schema([*schema_of(self.arrow()), *of_topic, *self.decode.fields()])

    def arrow(self) -> ArrowOptions:
        """The columns for kseg.arrow."""
        return ArrowOptions(self.headers, self.batch_columns, self.max_bytes, self.has_milliseconds)

    def to_json(self) -> dict[str, Any]:
        """The options as JSON's values; of a redaction all but its key."""
        shown = None
        if self.redaction is not None:
            shown = {"parts": list(self.redaction.parts), "fingerprint": self.redaction.fingerprint}
        return {**asdict(replace(self, redaction=None)), "selected": self.selected.to_json(), "redaction": shown}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "ReadOptions":
        """The options of `to_json`: equal to what they were, though a redaction's key is unknown."""
        redaction = members.get("redaction")
        latest = members["latest_per_key"]
        enums = {
            "isolation": Isolation(members["isolation"]),
            "mode": Mode(members["mode"]),
            "latest_per_key": None if latest is None else Tombstones(latest),
            "selected": Selection.from_json(members.get("selected", {})),
            "redaction": redaction and Redaction(tuple(redaction["parts"]), redaction["fingerprint"], b""),
            "decode": ColumnDecoding.from_json(members.get("decode", {})),
        }
        return cls(**{**members, **enums})


@dataclass(frozen=True, slots=True)
class FileOptions:
    """How output files are to be.

    partition_by: folders, of `topic`, `partition`, `date` (of the timestamp, in UTC); their columns are in the folders'
    names and not in the files. target_size: bytes of log that a file is made of, and of a file. row_group_size: bytes
    of records in memory. compression: a codec that pyarrow's Parquet writer knows. bloom_filter: a column that gets one
    in each row group. table_format: one of FORMATS.
    """

    partition_by: tuple[str, ...] = ("topic",)
    target_size: int = 256 * MIB
    row_group_size: int = 64 * MIB
    compression: str = "zstd"
    bloom_filter: str | None = None
    table_format: str = PARQUET

    @property
    def format(self) -> TableFormat:
        """The row of the format."""
        return FORMATS[self.table_format]

    @property
    def columns_of_folders(self) -> tuple[str, ...]:
        """The columns that are in the folders' names only."""
        return () if self.format.has_field_ids else self.partition_by

    def to_json(self) -> dict[str, Any]:
        """The options as JSON's values."""
        return {**asdict(self), "partition_by": list(self.partition_by)}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "FileOptions":
        """The options of `to_json`."""
        table_format = FORMATS[members.get("table_format", PARQUET)].name
        return cls(**{**members, "partition_by": tuple(members["partition_by"]), "table_format": table_format})
