"""The export that `kseg export` and `kseg spark-export` are asked for, and the command line that asks for it."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from kseg.commands.parameters import Folders
from kseg.commands.selection_options import selection_of
from kseg.errors import UsageError
from kseg.times import parse_zone, time_or_none

if TYPE_CHECKING:
    from kseg.export.run import Export
    from kseg.export.settings import LogSelection, ReadOptions
    from kseg.selection import Selection


def export_of(options: dict[str, Any], parallelism: int) -> "Export":
    """The export that the options ask for. Raises UsageError if there is no destination."""
    from kseg.export.run import Export
    from kseg.export.settings import FileOptions, TableFormat

    if len(options["paths"]) < 2:
        raise UsageError("give one SOURCE or more, and then DEST")
    *sources, destination = options["paths"]
    selected = selection_of({name: value for name, value in options.items() if name != "isolation"})
    is_remote = any("://" in source for source in sources)
    return Export(
        tuple(sources),
        destination,
        _part_of_logs(options, selected, is_remote=is_remote),
        _read_options(options, selected),
        FileOptions(
            partition_by=options["partition_by"],
            target_size=options["target_file_size"],
            compression=options["compression"],
        ),
        parallelism,
        options["overwrite"],
        TableFormat(options["table_format"]),
    )


def _part_of_logs(options: dict[str, Any], selected: "Selection", *, is_remote: bool) -> "LogSelection":
    """Topics, offsets and times. Segments in an object store aren't chosen by the times of a selection's records."""
    from kseg.export.settings import LogSelection, OffsetRange

    zone = parse_zone(options["zone"])
    starting_time, ending_time = (time_or_none(options[name], zone) for name in ("starting_time", "ending_time"))
    return LogSelection(
        topics=tuple(options["topics"]),
        offsets=OffsetRange(
            _both(max, options["starting_offset"], selected.from_offset),
            _both(min, options["ending_offset"], selected.to_offset),
        ),
        first_time=_both(max, starting_time, None if is_remote else selected.from_time),
        end_time=ending_time,
    )


def _read_options(options: dict[str, Any], selected: "Selection") -> "ReadOptions":
    from kseg.export.decoding import ColumnDecoding
    from kseg.export.settings import Isolation, Mode, ReadOptions, Tombstones

    named = dict(text.split("=", 1) for text in options["decoders"])
    decode = ColumnDecoding(
        named.get("key"), named.get("value"), options["schema"], options["message"], options["schema_registry"]
    )
    decode.decoders()
    return ReadOptions(
        headers=options["has_headers"],
        batch_columns=options["batch_columns"],
        control=options["control"],
        isolation=Isolation(options["isolation"]),
        mode=Mode(options["mode"]),
        latest_per_key=Tombstones(options["tombstones"]) if options["latest_per_key"] else None,
        selected=selected._replace(from_offset=None, to_offset=None),
        decode=decode,
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
