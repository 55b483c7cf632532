"""Options of `kseg export` and `kseg spark-export`, and the export that they describe."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kseg.commands.options.command import GivenSelection, is_given
from kseg.commands.options.types import Folders
from kseg.errors import UsageError, plural
from kseg.export.commit.formats import FORMATS
from kseg.log.selection import PartitionChoice
from kseg.output.progress import Talk
from kseg.system.addresses import address_text
from kseg.system.placed_path import StrPath
from kseg.times import parse_zone

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kseg.export.columns.unwrapped import Unwrapping
    from kseg.export.commit.protocol import TableName
    from kseg.export.planning import Export
    from kseg.export.report import Report
    from kseg.export.settings import ReadOptions
    from kseg.export.undecoded import UndecodedLimit
    from kseg.log.selection import Selection

FILE_CATALOG = "file:"
"""Prefix of `--catalog` for the name in the destination's SQLite file."""


class ColumnOptions(NamedTuple):
    """The columns of decoded keys and values."""

    key_decoder: str | None
    value_decoder: str | None
    schema: str | None
    message: str | None
    schema_registry: str | None
    decoded_as: str
    on_mismatch: str
    keep_raw: str
    flatten: bool = False
    drop: str | None = None


class RecordOptions(NamedTuple):
    """The records of an export, and their columns. The defaults are those of queries, where SQL selects."""

    header_form: str = "list"
    no_headers: bool = False
    batch_columns: bool = False
    fail_on_damage: bool = False
    latest_per_key: bool = False
    tombstones: str = "drop"


class UndecodedOptions(NamedTuple):
    """The treatment of keys and values that don't decode."""

    max_undecoded: "UndecodedLimit"
    dead_letter: str | None


class UnwrapOptions(NamedTuple):
    """The rows that change events describe."""

    unwrap: str | None = None
    history: bool = False


class RunOptions(NamedTuple):
    """The places that get facts about the run: a table of runs, and a collector of lineage events."""

    runs_table: str | None = None
    openlineage: str | None = None
    openlineage_kafka: tuple[str, int] | None = None

    @property
    def kafka(self) -> str | None:
        """The Kafka server by which lineage events name the read topics, as HOST:PORT."""
        if self.openlineage_kafka is None:
            return None
        return address_text(self.openlineage_kafka)


class ExportOptions(NamedTuple):
    """The data to export, the format, and the destination."""

    paths: tuple[StrPath, ...]
    destination: str | None
    choice: PartitionChoice
    selected: GivenSelection
    records: RecordOptions
    columns: ColumnOptions
    undecoded: UndecodedOptions
    partition_by: tuple[str, ...]
    sort_by: str | None
    target_file_size: int
    row_group_size: int
    compression: str
    bloom_filter: str | None
    table_format: str
    merge_files: bool
    catalog: str | None
    table: str | None
    overwrite: bool
    verify: str
    dry_run: bool
    output: str
    talk: Talk
    unwrapping: UnwrapOptions
    run: RunOptions


def export_of(options: ExportOptions, parallelism: int) -> "Export":
    """Return the export that the options describe. Raises UsageError without a destination or a source."""
    from kseg.export.planning import Export
    from kseg.export.settings import FileOptions, LogSelection, OffsetRange

    sources, destination = sources_and_destination(options)
    selected = options.selected.selection()
    is_remote = any("://" in str(source) for source in sources)
    read = read_options_of(selected, options.columns, options.records)
    unwrap = unwrapping_of(options, read)
    if options.bloom_filter in read.decode.raw_columns_left_out():
        raise UsageError(
            "--bloom-filter key needs the bytes of keys, which --drop raw leaves out: specify one of the two"
        )
    return Export(
        sources,
        destination,
        LogSelection(
            partitions=options.choice,
            offsets=OffsetRange(selected.from_offset, selected.to_offset),
            first_time=None if is_remote else selected.from_time,
        ),
        replace(read, unwrap=unwrap),
        FileOptions(
            partition_by=options.partition_by if unwrap is None else (),
            target_size=options.target_file_size,
            row_group_size=options.row_group_size,
            compression=options.compression,
            bloom_filter=options.bloom_filter,
            table_format=options.table_format,
            sort_by=() if options.sort_by is None else tuple(options.sort_by.split(",")),
        ),
        parallelism,
        options.overwrite,
        _table_of(options),
        options.merge_files,
        reads_back=options.verify == "full",
        keeps_file_size=is_given("target_file_size"),
        undecoded_limit=options.undecoded.max_undecoded,
        dead_letters=_dead_letters_of(options),
        runs_table=options.run.runs_table,
    )


def _dead_letters_of(options: ExportOptions) -> str | None:
    given = options.undecoded.dead_letter
    if given is not None and options.columns.key_decoder is None and options.columns.value_decoder is None:
        raise UsageError("--dead-letter is for exports with a decoder; specify --key-decoder or --value-decoder")
    if given is not None and options.records.latest_per_key:
        raise UsageError("--dead-letter needs all records; omit --latest-per-key")
    return given


def unwrapping_of(options: ExportOptions, read: "ReadOptions") -> "Unwrapping | None":
    """Return the unwrapping of changes, if it is wanted.

    Raises UsageError for options that mean nothing for rows of changes.
    """
    from kseg.export.columns.unwrapped import Unwrapping

    if options.unwrapping.unwrap is None:
        if options.unwrapping.history:
            raise UsageError("--history needs --unwrap")
        return None
    if not FORMATS[options.table_format].has_log:
        raise UsageError("--unwrap needs a table whose rows can change; specify --format delta or iceberg")
    records, columns = options.records, options.columns
    refused = {
        "--partition-by": is_given("partition_by") and bool(options.partition_by),
        "--latest-per-key": records.latest_per_key,
        "--batch-columns": records.batch_columns,
        "--flatten": columns.flatten,
        "--drop": columns.drop is not None,
        "--keep-raw": columns.keep_raw != "all",
        "--sort-by": bool(options.sort_by),
        "--dead-letter": options.undecoded.dead_letter is not None,
        "--bloom-filter": options.bloom_filter is not None,
        "--merge-files": options.merge_files,
        "--verify full": options.verify == "full",
        "--control": read.control,
    }
    for name in (name for name, is_refused in refused.items() if is_refused):
        raise UsageError(f"--unwrap excludes {name}: its table has rows, not records")
    decoders = {part for part, name in (("key", columns.key_decoder), ("value", columns.value_decoder)) if name}
    if decoders - set(read.decode.typed_parts()):
        raise UsageError("--unwrap reads JSON without a decoder; other decoders need --schema or --schema-registry")
    return Unwrapping(history=options.unwrapping.history)


def _table_of(options: ExportOptions) -> "TableName":
    from kseg.export.commit.protocol import TableName
    from kseg.export.topics import PLACEHOLDER, TABLE_OF_TOPIC

    for name, given in (("catalog", options.catalog), ("table", options.table)):
        if given is not None and name not in FORMATS[options.table_format].options:
            fit = " or ".join(each.name for each in FORMATS.values() if name in each.options)
            raise UsageError(f"--{name} needs --format {fit}; other formats have no catalog")
    table = TableName(options.catalog)
    if options.catalog is not None and options.catalog.startswith(FILE_CATALOG):
        name = options.catalog.removeprefix(FILE_CATALOG)
        if not name:
            raise UsageError(f"--catalog {FILE_CATALOG} has no name; specify {FILE_CATALOG}NAME")
        table = TableName(file_catalog=name)
    if options.table is not None:
        return table._replace(name=options.table)
    has_places = PLACEHOLDER in sources_and_destination(options)[1]
    return table._replace(name=TABLE_OF_TOPIC) if has_places else table


def sources_and_destination(options: ExportOptions) -> tuple[tuple[StrPath, ...], str]:
    """Return the sources and the destination; with --to, the default source is the current directory.

    Raises UsageError.
    """
    paths, destination = options.paths, options.destination
    if destination is not None:
        return paths or (".",), destination
    if len(paths) < 2:
        raise UsageError("source or destination is missing; specify SOURCE… DEST, or --to DEST")
    return paths[:-1], os.fspath(paths[-1])


def read_options_of(
    selected: "Selection",
    columns: ColumnOptions,
    records: RecordOptions = RecordOptions(),  # noqa: B008  a tuple
) -> "ReadOptions":
    """Return the options for reading records.

    Raises UsageError, and OpenError for unavailable decoders.
    """
    from kseg.export.settings import (
        NOTHING,
        ColumnDecoding,
        DecodedAs,
        Isolation,
        KeptRaw,
        Mode,
        OnMismatch,
        ReadOptions,
        Tombstones,
    )

    decode = ColumnDecoding(
        columns.key_decoder,
        columns.value_decoder,
        columns.schema,
        columns.message,
        columns.schema_registry,
        DecodedAs(columns.decoded_as),
        OnMismatch(columns.on_mismatch),
        KeptRaw(columns.keep_raw),
        columns.flatten,
        columns.drop == "raw",
    )
    decode.check()
    return ReadOptions(
        headers=not records.no_headers,
        has_header_maps=records.header_form == "map",
        batch_columns=records.batch_columns,
        control=selected.is_control is True,
        isolation=Isolation.READ_COMMITTED if selected.is_committed else Isolation.READ_UNCOMMITTED,
        mode=Mode.FAILFAST if records.fail_on_damage else Mode.PERMISSIVE,
        latest_per_key=Tombstones(records.tombstones) if records.latest_per_key else None,
        selected=selected._replace(
            from_offset=None, to_offset=None, is_committed=False, is_control=selected.is_control or None
        ),
        decode=decode if columns.key_decoder or columns.value_decoder else NOTHING,
    )


def own_arguments(options: ExportOptions) -> list[str]:
    """Return the command line of these options, with absolute paths and without options of the caller's own."""
    values = options._asdict() | {"quiet": options.talk.is_quiet, "progress": options.talk.progress}
    parts = (options.selected, options.records, options.columns, options.undecoded, options.unwrapping, options.run)
    for part in parts:
        values |= part._asdict()
    for name in ("dead_letter", "runs_table", "openlineage"):
        values[name] = values[name] and _absolute(values[name])
    values["openlineage_kafka"] = options.run.kafka
    arguments: list[str] = []
    for param in click.get_current_context().command.params:
        if isinstance(param, click.Option) and param.name in values and param.name not in ("dry_run", "destination"):
            arguments += _spell(param, values[param.name])
    sources, destination = sources_and_destination(options)
    return [*arguments, *options.choice.arguments(), *(_absolute(os.fspath(path)) for path in (*sources, destination))]


def note_no_match(reports: "Iterable[Report]", options: ExportOptions) -> None:
    """Note that no record of an export matched the selection."""
    selection, accounts = options.selected.selection(), [each for report in reports for each in report.partitions]
    if selection.is_everything or any(each.records_out for each in accounts):
        return
    from kseg.text.selected import asked_text

    zone = parse_zone(options.selected.zone)
    count = plural(sum(each.records_in for each in accounts), "record")
    options.talk.note(f"none of {count} matches {asked_text(selection, zone)}; the export is empty")


def _absolute(path: str) -> str:
    return path if "://" in path else os.path.abspath(path)  # noqa: PTH100  keeps globs


def _spell(option: click.Option, value: Any) -> list[str]:
    if option.is_flag:
        if value is None:
            return []
        names = option.opts if value else option.secondary_opts
        return names[:1]
    if isinstance(option.type, Folders):
        return [option.opts[0], ",".join(value) or "none"]
    values = value if option.multiple else [value]
    return [text for each in values if each is not None for text in (option.opts[0], str(each))]
