"""The options that `kseg export` and `kseg spark-export` share."""

from typing import NamedTuple

import click

from kseg.commands.options import Command, option_values, quiet_option
from kseg.commands.parameters import Folders, Size
from kseg.commands.partition_options import partition_options
from kseg.commands.selection_options import GivenSelection, selection_options
from kseg.log.partition.partition_choice import PartitionChoice

_FILE = click.Path(exists=True, resolve_path=True)
_DECODING = (
    click.option(
        "--key-decoder", metavar="NAME", help="Add a column decodedKey, typed or of text; decoders as in `kseg dump`."
    ),
    click.option("--value-decoder", metavar="NAME", help="Add a column decodedValue."),
    click.option(
        "--schema", type=_FILE, help="Avro or JSON Schema, map of ids to schemas, or Protobuf descriptor set."
    ),
    click.option("--message", metavar="NAME", help="Full name of the Protobuf message."),
    click.option("--schema-registry", type=_FILE, help="Directory of the _schemas partition."),
    click.option(
        "--decoded",
        "decoded_as",
        type=click.Choice(["typed", "text"]),
        default="typed",
        show_default=True,
        help="Decoded columns: structs, lists, … of the schema where one is known, or JSON text.",
    ),
    click.option(
        "--on-mismatch",
        type=click.Choice(["error", "raw"]),
        default="error",
        show_default=True,
        help="Values whose schema doesn't fit into the column: write nothing, or leave them bytes.",
    ),
    click.option(
        "--keep-raw",
        type=click.Choice(["all", "undecoded"]),
        default="all",
        show_default=True,
        help="Beside a decoded column: the bytes of all records, or only of those that don't decode.",
    ),
)


class ColumnOptions(NamedTuple):
    """Which columns of decoded keys and values there are."""

    key_decoder: str | None
    value_decoder: str | None
    schema: str | None
    message: str | None
    schema_registry: str | None
    decoded_as: str
    on_mismatch: str
    keep_raw: str


class RecordOptions(NamedTuple):
    """Which records an export has and what of them; by default as queries read them, which say the rest in SQL."""

    has_headers: bool = True
    batch_columns: bool = False
    mode: str = "permissive"
    latest_per_key: bool = False
    tombstones: str = "drop"


class ExportOptions(NamedTuple):
    """What is exported, how, and where to."""

    paths: tuple[str, ...]
    destination: str | None
    choice: PartitionChoice
    selected: GivenSelection
    records: RecordOptions
    columns: ColumnOptions
    partition_by: tuple[str, ...]
    target_file_size: int
    compression: str
    bloom_filter: str | None
    table_format: str
    merge_files: bool
    catalog: str | None
    table: str | None
    overwrite: bool
    dry_run: bool
    output: str
    quiet: bool
    progress: bool | None

    @property
    def has_bar(self) -> bool | None:
        """Whether there is a bar; None lets the terminals decide."""
        return False if self.quiet else self.progress


def decoding_options(command: Command) -> Command:
    """`--key-decoder` … `--keep-raw`; the command gets them as ColumnOptions, `columns`."""
    command = option_values(columns=ColumnOptions)(command)
    for option in reversed(_DECODING):
        command = option(command)
    return command


def export_options(command: Command) -> Command:
    """Sources and destination, and all options for what is exported and how, for `export_values`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def export_values(command: Command) -> Command:
    """Gives a command the same as ExportOptions, `options`; the last decorator before `def`."""
    return option_values(records=RecordOptions)(option_values(options=ExportOptions)(command))


_OPTIONS = (
    click.argument("paths", nargs=-1, metavar="SOURCE… DEST"),
    click.option("--to", "destination", metavar="DEST", help="DEST; all paths are SOURCEs then."),
    partition_options,
    selection_options("limit", "tail", "is_followed"),
    click.option("--latest-per-key", is_flag=True, help="Only the latest record of each key, as after compaction."),
    click.option(
        "--tombstones",
        type=click.Choice(["drop", "keep"]),
        default="drop",
        show_default=True,
        help="With --latest-per-key: keep or drop keys whose latest value is null.",
    ),
    click.option(
        "--headers/--no-headers", "has_headers", default=True, show_default=True, help="Add a column with the headers."
    ),
    click.option("--batch-columns", is_flag=True, help="Add columns about each record's batch."),
    decoding_options,
    click.option(
        "--mode",
        type=click.Choice(["permissive", "failfast"]),
        default="permissive",
        show_default=True,
        help="At damage: count what is lost and continue, or stop.",
    ),
    click.option(
        "--partition-by",
        type=Folders(),
        default="topic",
        show_default=True,
        help="Folders: topic,partition,date; or none.",
    ),
    click.option(
        "--target-file-size", type=Size(), default="256MB", show_default=True, help="Approximate size of a file."
    ),
    click.option(
        "--compression",
        type=click.Choice(["zstd", "snappy", "gzip", "lz4", "none"]),
        default="zstd",
        show_default=True,
        help="Compression of the Parquet files.",
    ),
    click.option(
        "--bloom-filter",
        type=click.Choice(["key"]),
        help="Write bloom filters, so that queries by this column read less.",
    ),
    click.option(
        "--format",
        "table_format",
        type=click.Choice(["parquet", "delta", "iceberg"]),
        default="parquet",
        show_default=True,
        help="Parquet files with a manifest beside them, or a table with a log of its own.",
    ),
    click.option("--merge-files", is_flag=True, help="Join small files, those of earlier runs too."),
    click.option(
        "--catalog",
        metavar="NAME",
        help="With iceberg: a catalog of pyiceberg's configuration. Without: an SQLite file in DEST.",
    ),
    click.option("--table", metavar="NAME", help="With iceberg: the table in the catalog.  [default: kafka.records]"),
    click.option("--overwrite", is_flag=True, help="Replace an export that is in DEST."),
    click.option("--dry-run", is_flag=True, help="Print the plan, and write nothing."),
    click.option(
        "-o",
        "--output",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Form of the report.",
    ),
    quiet_option,
    click.option("--progress/--no-progress", default=None, help="Show a bar on stderr; by default only on a terminal."),
)
