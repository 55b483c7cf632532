"""What `kseg export` and `kseg spark-export` share: their options, and the export that these ask for."""

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kseg.commands.parameters import long_number
from kseg.commands.selection_options import selection_of, selection_options

if TYPE_CHECKING:
    from kseg.errors import OpenError
    from kseg.export.report import Report
    from kseg.export.run import Export, Plan

Command = TypeVar("Command", bound=Callable[..., Any])

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}
_FOLDERS = ("topic", "partition", "date")


class Size(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """Bytes: a number, with B, KB, MB, GB, KiB, MiB or GiB if wanted."""

    name = "SIZE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The bytes; fails if they aren't more than none."""
        match = re.fullmatch(r"([0-9]{1,18})\s*([KMG]I?|)B?", str(value).upper())
        if match is None or int(match[1]) == 0:
            self.fail(f"{value!r} is no size such as 256MB or 64MiB.", param, ctx)
        return int(match[1]) * _UNITS[match[2]]


class DecoderName(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """key=NAME or value=NAME."""

    name = "PART=NAME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The same; fails if the part isn't key or value."""
        part, _, name = str(value).partition("=")
        if part not in ("key", "value") or not name:
            self.fail(f"{value!r} is neither key=NAME nor value=NAME.", param, ctx)
        return str(value)


class Folders(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """Names of folders, separated by commas; `none` for none."""

    name = "NAMES"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The names; fails if one isn't known."""
        names = () if value == "none" else tuple(str(value).split(","))
        if not set(names) <= set(_FOLDERS) or len(set(names)) < len(names):
            self.fail(f"{value!r} isn't made of topic, partition, date, nor none.", param, ctx)
        return names


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


def export_of(options: dict[str, Any], parallelism: int) -> "Export":
    """The export that the options ask for. Raises UsageError if there is no destination."""
    from kseg.errors import UsageError
    from kseg.export.decoding import Decoding
    from kseg.export.options import (
        FileOptions,
        Isolation,
        Mode,
        OffsetRange,
        ReadOptions,
        Selection,
        TableFormat,
        Tombstones,
    )
    from kseg.export.run import Export
    from kseg.times import parse_time, parse_zone

    if len(options["paths"]) < 2:
        raise UsageError("give one SOURCE or more, and then DEST")
    *sources, destination = options["paths"]
    selected = selection_of({name: value for name, value in options.items() if name != "isolation"})
    zone = parse_zone(options["zone"])
    starting_time, ending_time = (
        None if text is None else parse_time(text, zone) for text in (options["starting_time"], options["ending_time"])
    )
    is_remote = any("://" in source for source in sources)
    named = dict(text.split("=", 1) for text in options["decoders"])
    decode = Decoding(
        named.get("key"), named.get("value"), options["schema"], options["message"], options["schema_registry"]
    )
    decode.decoders()
    latest = Tombstones(options["tombstones"]) if options["latest_per_key"] else None
    return Export(
        tuple(sources),
        destination,
        Selection(
            topics=tuple(options["topics"]),
            offsets=OffsetRange(
                _both(max, options["starting_offset"], selected.from_offset),
                _both(min, options["ending_offset"], selected.to_offset),
            ),
            first_time=_both(max, starting_time, None if is_remote else selected.from_time),
            end_time=ending_time,
        ),
        ReadOptions(
            headers=options["has_headers"],
            batch_columns=options["batch_columns"],
            control=options["control"],
            isolation=Isolation(options["isolation"]),
            mode=Mode(options["mode"]),
            latest_per_key=latest,
            selected=selected._replace(from_offset=None, to_offset=None),
            decode=decode,
        ),
        FileOptions(
            partition_by=options["partition_by"],
            target_size=options["target_file_size"],
            compression=options["compression"],
        ),
        parallelism,
        options["overwrite"],
        TableFormat(options["table_format"]),
    )


def _both(choose: Callable[[int, int], int], first: int | None, second: int | None) -> int | None:
    """What two options that mean the same ask for together."""
    return choose(first, second) if first is not None and second is not None else second if first is None else first


def own_arguments(context: click.Context, options: dict[str, Any]) -> list[str]:
    """The command line of these options, paths absolute, without those that aren't shared."""
    arguments: list[str] = []
    for param in context.command.params:
        if isinstance(param, click.Option) and param.name in options and param.name != "dry_run":
            arguments += _spelled(param, options[param.name])
    paths = [path if "://" in path else os.path.abspath(path) for path in options["paths"]]  # noqa: PTH100 (keeps globs)
    return [*arguments, *paths]


def _spelled(option: click.Option, value: Any) -> list[str]:
    if option.is_flag:
        if value is None:
            return []
        names = option.opts if value else option.secondary_opts
        return names[:1]
    if isinstance(option.type, Folders):
        return [option.opts[0], ",".join(value) or "none"]
    values = value if option.multiple else [value]
    return [text for each in values if each is not None for text in (option.opts[0], str(each))]


def show_plan(plan: "Plan", output: str) -> None:
    """Prints a plan, and on stderr what can't be read."""
    from kseg.output.export import plan_lines, plan_objects

    _show(plan_objects(plan) if output == "json" else plan_lines(plan), output)
    _tell_refused(plan.refused)


def show_report(report: "Report", output: str) -> int:
    """Prints a report; gives the exit status."""
    from kseg.output.export import report_lines, report_objects

    _show(report_objects(report) if output == "json" else report_lines(report), output)
    _tell_refused(report.refused)
    return report.status


def _tell_refused(refused: "tuple[OpenError, ...]") -> None:
    from kseg.output.talk import talk

    for error in refused:
        talk(f"kseg: {error}")


def _show(rows: Any, output: str) -> None:
    from kseg.output.json_lines import write_json
    from kseg.output.stdout import flush_stdout, write_line

    for row in rows:
        if output == "json":
            write_json(row)
        else:
            write_line(row)
    flush_stdout()
