"""Arguments and options that several commands share, as decorators."""

import os
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from kseg.archive.paths import MAX_UNPACKED, leads_inside
from kseg.commands.parameters import ANY_LONG, Number, int_number, long_number

if TYPE_CHECKING:
    from kseg.archive.inputs import Inputs
    from kseg.redaction import Redaction
    from kseg.selection import Selection

REDACT_KEY = "KSEG_REDACT_KEY"
"""What holds the key of --redact for all commands, out of sight of those who list processes."""

Command = TypeVar("Command", bound=Callable[..., Any])


def paths_argument(command: Command) -> Command:
    """`[PATHS]…` as a tuple of Path; the current directory if none is given."""
    return click.argument(
        "paths", nargs=-1, type=click.Path(path_type=Path), callback=lambda _, __, paths: paths or (Path(),)
    )(command)


def reads_archives(*parameters: str) -> Callable[[Command], Command]:
    """Lets paths lead into archives or be `-`; adds `--max-unpacked` and `--as`. Must stand last of the decorators.

    The command gets paths that it can read. Ends with 2 where something couldn't be unpacked.
    """

    def decorate(command: Command) -> Command:
        @click.option(
            "--max-unpacked",
            type=Number(1, _LARGEST_UNPACKED),
            show_default=f"{MAX_UNPACKED}, but no more than a quarter of what is free in TMPDIR",
            help="Bytes that archives and standard input may become; they are kept in TMPDIR meanwhile.",
        )
        @click.option(
            "--as",
            "input_name",
            metavar="KIND",
            default="log",
            show_default=True,
            help="What - is: log, index, timeindex, txnindex, snapshot, checkpoint, or a file's whole name.",
        )
        @wraps(command)
        def reading(*arguments: Any, max_unpacked: int | None, input_name: str, **options: Any) -> Any:
            if not any(_leads_inside(options[name]) for name in parameters):
                return command(*arguments, **options)
            return _with_inputs(partial(command, *arguments), parameters, options, max_unpacked, input_name)

        return cast(Command, reading)

    return decorate


_LARGEST_UNPACKED = 1 << 50


def _leads_inside(value: Any) -> bool:
    """Whether a path, or one of several, is `-` or may lead into an archive."""
    if isinstance(value, tuple):
        return any(map(_leads_inside, value))
    return value is not None and any(map(leads_inside, str(value).split(",")))


def _with_inputs(
    command: Callable[..., Any],
    parameters: tuple[str, ...],
    options: dict[str, Any],
    max_unpacked: int | None,
    input_name: str,
) -> Any:
    from kseg.archive.inputs import Inputs
    from kseg.archive.shown_paths import shown
    from kseg.errors import KsegError, UsageError
    from kseg.output.talk import talk

    unpacking = Inputs(
        talk,
        max_unpacked=max_unpacked,
        standard_input=None if sys.stdin is None else sys.stdin.buffer,
        input_name=input_name,
        beside="__cluster_metadata-0" if "cluster_metadata" in options else "",
    )
    with unpacking as inputs:
        local = {name: _local(options[name], inputs) for name in parameters}
        if inputs.is_used and options.get("is_followed"):
            raise UsageError("--follow is for directories of a broker: an archive or a pipe doesn't grow")
        status = 0
        try:
            command(**{**options, **local})
        except click.exceptions.Exit as ended:
            status = ended.exit_code
        except KsegError as error:
            # It is told when the names of what was unpacked are forgotten.
            error.message = shown(error.message)
            error.path = None if error.path is None else shown(error.path)
            raise
        raise click.exceptions.Exit(max(status, 2) if inputs.problems else status)


def _several(values: tuple[Any, ...], inputs: "Inputs") -> tuple[Any, ...]:
    """Of several paths those that can be had; the others are said. Raises OpenError if that is none."""
    from kseg.errors import OpenError

    found, refused = [], []
    for value in values:
        try:
            found.append(_local(value, inputs))
        except OpenError as error:
            refused.append(error)
    if refused and not found:
        raise refused[0]
    for each in refused:
        inputs.refuse(each)
    return tuple(found)


def _local(value: Any, inputs: "Inputs") -> Any:
    if isinstance(value, tuple):
        return _several(value, inputs)
    if isinstance(value, Path):
        # A path that ends in a slash is the same to pathlib.
        return Path(inputs.local(str(value)))
    # Several names may stand together, as in --files.
    return value if value is None else ",".join(inputs.local(name) for name in value.split(","))


def output_option(*forms: str) -> Callable[[Command], Command]:
    """`-o/--output`, one of some forms; the first is the default."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        help="Form of the output.",
    )


def csv_safe_option(command: Command) -> Command:
    """`--csv-safe`, which `check_csv_safe` of kseg.output.csv holds against the form."""
    return click.option(
        "--csv-safe",
        is_flag=True,
        help="With -o csv: an apostrophe before texts that a spreadsheet would take for formulas.",
    )(command)


def raw_option(command: Command) -> Command:
    """`--raw`: nothing of a file is escaped on a terminal."""

    def let_through(_: click.Context, __: click.Parameter, wanted: bool) -> None:
        from kseg.output.stdout import let_contents_through

        if wanted:
            let_contents_through()

    return click.option(
        "--raw",
        is_flag=True,
        expose_value=False,
        callback=let_through,
        help="On a terminal, print control characters as they are; pipes and files get them so anyway.",
    )(command)


def quiet_option(command: Command) -> Command:
    """`-q/--quiet`."""
    return click.option(
        "-q", "--quiet", is_flag=True, help="Say nothing on stderr but what keeps a file from being read."
    )(command)


def progress_option(command: Command) -> Command:
    """`--progress/--no-progress`: None lets the terminals decide."""
    return click.option(
        "--progress/--no-progress", default=None, help="A bar on stderr; by itself only on a terminal."
    )(command)


def color_option(command: Command) -> Command:
    """`--color/--no-color`: None lets the terminal and NO_COLOR decide."""
    return click.option(
        "--color/--no-color",
        default=None,
        help="Colours; by themselves only on a terminal, and not if NO_COLOR is set.",
    )(command)


def partition_options(command: Command) -> Command:
    """`--topic` and `--partition`: which one below a log directory."""
    command = click.option("--partition", type=int_number(), help="Number of the partition in a log directory.")(
        command
    )
    return click.option("--topic", help="Topic of the partition in a log directory.")(command)


def gentle_options(command: Command) -> Command:
    """`--gentle` and `--keep-cache`: how to read beside a live broker."""
    command = click.option(
        "--keep-cache", is_flag=True, help="Leave what is read in the page cache; else it is left as it was."
    )(command)
    return click.option("--gentle", is_flag=True, help="Give way to others: lowest priority, disk only when idle.")(
        command
    )


def redact_options(command: Command) -> Command:
    """`--redact` and `--redact-key`, which `redaction_of` takes."""
    command = click.option(
        "--redact-key",
        metavar="TEXT",
        help="Key of --redact, better in KSEG_REDACT_KEY; the same gives the same again. None: nobody knows it.",
    )(command)
    return click.option(
        "--redact",
        type=click.Choice(["keys", "values", "headers"]),
        multiple=True,
        help="Replace their content by a keyed substitute of the same length, of headers the values; may be repeated.",
    )(command)


def redaction_of(options: dict[str, Any]) -> "Redaction | None":
    """The redaction that the options ask for; they are taken out of `options`."""
    parts, key = options.pop("redact"), options.pop("redact_key")
    if not parts:
        return None
    from kseg.redaction import Redaction

    return Redaction.of(parts, os.environ.get(REDACT_KEY) if key is None else key)


def cluster_metadata_option(command: Command) -> Command:
    """`--cluster-metadata`: where ids of topics are, which `topic_ids` looks up."""
    return click.option(
        "--cluster-metadata",
        type=click.Path(path_type=Path),
        help="__cluster_metadata-0 or a log directory that has it: tells the topic's id, if the partition has lost it. "
        "By itself what lies beside the partition.",
    )(command)


def zone_option(command: Command) -> Command:
    """`--tz`: the zone of times that name none, and of those that are printed."""
    return click.option(
        "--tz",
        "zone",
        metavar="ZONE",
        default="UTC",
        show_default=True,
        help="Zone of times, given and printed: Europe/Berlin, +02:00, local.",
    )(command)


_SELECTION_OPTIONS = {
    "from_offset": click.option("--from-offset", type=ANY_LONG, metavar="OFFSET", help="From this offset on."),
    "to_offset": click.option("--to-offset", type=ANY_LONG, metavar="OFFSET", help="To before this offset."),
    "from_time": click.option(
        "--from-time", metavar="TIME", help="Of this time or later: ISO 8601, milliseconds, -1h, now."
    ),
    "to_time": click.option("--to-time", metavar="TIME", help="Of before this time."),
    "key": click.option("--key", metavar="KEY", help="With this key: text, hex:… or base64:…."),
    "key_regex": click.option("--key-regex", metavar="REGEX", help="In whose key this is found."),
    "grep": click.option("--grep", metavar="REGEX", help="In whose value this is found."),
    "headers": click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="NAME[=VALUE]",
        help="With this header, with any value or this one (as for --key); may be repeated.",
    ),
    "producer_id": click.option("--producer-id", type=long_number(-1), metavar="ID", help="Of this producer."),
    "transactional_only": click.option("--transactional-only", is_flag=True, help="Of transactions."),
    "is_control": click.option(
        "--control/--no-control", "is_control", default=None, help="Control records alone; or none of them."
    ),
    "isolation": click.option(
        "--isolation",
        type=click.Choice(["read_uncommitted", "read_committed"]),
        default="read_uncommitted",
        show_default=True,
        help="read_committed: no aborted ones, no control records, nothing from the last stable offset on.",
    ),
    "limit": click.option("--limit", type=long_number(), metavar="N", help="The first N."),
    "tail": click.option("--tail", type=long_number(), metavar="N", help="The last N of each partition."),
    "sample": click.option(
        "--sample", metavar="SHARE", help="About this share of them, 0.01 or 1%; the same ones each time."
    ),
    "is_followed": click.option(
        "--follow", "is_followed", is_flag=True, help="Wait for more, over new segments; ends by Ctrl-C."
    ),
    "zone": zone_option,
}
"""The options that say which records are wanted, by their parameters, which `selection_of` takes."""


def selection_options(*left_out: str) -> Callable[[Command], Command]:
    """`--from-offset` … `--follow`, `--tz`: which records. Those parameters are left out that mean nothing there."""

    def decorate(command: Command) -> Command:
        for name, option in reversed(_SELECTION_OPTIONS.items()):
            if name not in left_out:
                command = option(command)
        return command

    return decorate


def selection_of(options: dict[str, Any]) -> "Selection":
    """The selection that the options ask for; they are taken out of `options`. Raises UsageError for wrong ones."""
    from kseg.selection import Selection, parse_bytes, parse_header, parse_share
    from kseg.times import parse_time, parse_zone

    given = {name: options.pop(name) for name in _SELECTION_OPTIONS if name in options}
    zone = parse_zone(given.pop("zone"))
    for name in ("from_time", "to_time"):
        if given[name] is not None:
            given[name] = parse_time(given[name], zone)
    if given["key"] is not None:
        given["key"] = parse_bytes(given["key"])
    given["headers"] = tuple(parse_header(header) for header in given["headers"])
    if given.get("sample") is not None:
        given["sample"] = parse_share(given["sample"])
    given["is_committed"] = given.pop("isolation", None) == "read_committed"
    return Selection(**given).checked()
