"""The options that `kseg export` and `kseg spark-export` share."""

import click

from kseg.commands.options import Command
from kseg.commands.parameters import DecoderName, Folders, Size, long_number
from kseg.commands.selection_options import selection_options

_FILE = click.Path(exists=True, resolve_path=True)
_OPTIONS = (
    click.argument("paths", nargs=-1, metavar="SOURCE… DEST"),
    click.option("--topic", "topics", multiple=True, metavar="GLOB", help="Only topics that match; may be repeated."),
    click.option("--starting-offset", type=long_number(), help="In each partition from this offset on."),
    click.option("--ending-offset", type=long_number(), help="In each partition to before this offset."),
    click.option("--starting-time", metavar="TIME", help="From the first record of this time or later on."),
    click.option("--ending-time", metavar="TIME", help="To before the first record of this time or later."),
    selection_options("is_control", "isolation", "limit", "tail", "is_followed"),
    click.option(
        "--isolation",
        type=click.Choice(["read_uncommitted", "read_committed"]),
        default="read_uncommitted",
        show_default=True,
        help="read_committed leaves out aborted transactions, and what follows an open one.",
    ),
    click.option("--latest-per-key", is_flag=True, help="Only the latest record of each key, as compaction leaves it."),
    click.option(
        "--tombstones",
        type=click.Choice(["drop", "keep"]),
        default="drop",
        show_default=True,
        help="With --latest-per-key: keys whose latest value is null.",
    ),
    click.option(
        "--headers/--no-headers", "has_headers", default=True, show_default=True, help="A column with the headers."
    ),
    click.option("--batch-columns", is_flag=True, help="Columns with the facts of each record's batch."),
    click.option("--control", is_flag=True, help="Control records too."),
    click.option(
        "--decode",
        "decoders",
        type=DecoderName(),
        multiple=True,
        metavar="PART=NAME",
        help="value=json, key=avro, …: a column decodedValue or decodedKey too, with JSON; decoders are those of dump.",
    ),
    click.option("--schema", type=_FILE, help="Avro schema, map of ids to schemas, or Protobuf descriptor set."),
    click.option("--message", metavar="NAME", help="Full name of the Protobuf message."),
    click.option("--schema-registry", type=_FILE, help="Directory of the _schemas partition."),
    click.option(
        "--mode",
        type=click.Choice(["permissive", "failfast"]),
        default="permissive",
        show_default=True,
        help="At damage: count what is lost and go on, or end.",
    ),
    click.option(
        "--partition-by", type=Folders(), default="topic", show_default=True, help="Folders: topic,partition,date."
    ),
    click.option("--target-file-size", type=Size(), default="256MB", show_default=True, help="About so large files."),
    click.option(
        "--compression",
        type=click.Choice(["zstd", "snappy", "gzip", "lz4", "none"]),
        default="zstd",
        show_default=True,
        help="Of the Parquet files.",
    ),
    click.option(
        "--format",
        "table_format",
        type=click.Choice(["parquet", "delta"]),
        default="parquet",
        show_default=True,
        help="delta: the same files, and the log of a Delta table that names them.",
    ),
    click.option("--overwrite", is_flag=True, help="In the place of an export that is in DEST."),
    click.option("--dry-run", is_flag=True, help="Print the plan, and write nothing."),
    click.option(
        "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Of the report."
    ),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing but the report."),
    click.option("--progress/--no-progress", default=None, help="A bar on stderr; by itself only on a terminal."),
)


def export_options(command: Command) -> Command:
    """Sources and destination, and all options that say what is exported and how."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
