"""What an export is asked for: which records, which columns, and how the files are to be."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa

from kseg.arrow import ArrowOptions, schema_of
from kseg.codecs.bounds import DEFAULT_LIMIT
from kseg.export.decoding import NOTHING, ColumnDecoding
from kseg.log.partition.partition_choice import EVERY_PARTITION, PartitionChoice
from kseg.redaction import Redaction
from kseg.selection import EVERYTHING, Selection

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


class TableFormat(StrEnum):
    """What lists the files, and says what went into them: the manifest, or a table's own log."""

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets from `first` to below `end`; None leaves a side open."""

    first: int | None = None
    end: int | None = None


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

    def schema(self) -> pa.Schema:
        """The columns of the records that are given."""
        of_topic = [TOPIC_ID] if self.batch_columns else []
        return pa.schema([*schema_of(self.arrow()), *of_topic, *self.decode.fields()])

    def arrow(self) -> ArrowOptions:
        """The columns for kseg.arrow."""
        return ArrowOptions(self.headers, self.batch_columns, self.max_bytes)

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
    in each row group. table_format: whose files they are.
    """

    partition_by: tuple[str, ...] = ("topic",)
    target_size: int = 256 * MIB
    row_group_size: int = 64 * MIB
    compression: str = "zstd"
    bloom_filter: str | None = None
    table_format: TableFormat = TableFormat.PARQUET

    @property
    def columns_of_folders(self) -> tuple[str, ...]:
        """The columns that are in the folders' names only. Iceberg's files have all: its folders mean nothing."""
        return () if self.table_format is TableFormat.ICEBERG else self.partition_by

    def to_json(self) -> dict[str, Any]:
        """The options as JSON's values."""
        return {**asdict(self), "partition_by": list(self.partition_by)}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "FileOptions":
        """The options of `to_json`."""
        table_format = TableFormat(members.get("table_format", TableFormat.PARQUET))
        return cls(**{**members, "partition_by": tuple(members["partition_by"]), "table_format": table_format})
