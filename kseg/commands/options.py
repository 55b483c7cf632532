"""Arguments and options that several commands share, as decorators."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from kseg.selection import Selection

Command = TypeVar("Command", bound=Callable[..., Any])


def paths_argument(command: Command) -> Command:
    """`[PATHS]…` as a tuple of Path; the current directory if none is given."""
    return click.argument(
        "paths", nargs=-1, type=click.Path(path_type=Path), callback=lambda _, __, paths: paths or (Path(),)
    )(command)


def output_option(*forms: str) -> Callable[[Command], Command]:
    """`-o/--output`, one of some forms; the first is the default."""
    return click.option(
        "-o", "--output", type=click.Choice(forms), default=forms[0], show_default=True, help="Form of the output."
    )


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
    command = click.option(
        "--partition", type=click.IntRange(min=0), help="Number of the partition in a log directory."
    )(command)
    return click.option("--topic", help="Topic of the partition in a log directory.")(command)


def gentle_options(command: Command) -> Command:
    """`--gentle` and `--keep-cache`: how to read beside a live broker."""
    command = click.option(
        "--keep-cache", is_flag=True, help="Leave what is read in the page cache; else it is left as it was."
    )(command)
    return click.option("--gentle", is_flag=True, help="Give way to others: lowest priority, disk only when idle.")(
        command
    )


def zone_option(command: Command) -> Command:
    """`--tz`: the zone of times that name none."""
    return click.option(
        "--tz", "zone", metavar="ZONE", default="UTC", show_default=True, help="Zone of times: Europe/Berlin, +02:00."
    )(command)


_SELECTION_OPTIONS = (
    click.option("--from-offset", type=int, metavar="OFFSET", help="From this offset on."),
    click.option("--to-offset", type=int, metavar="OFFSET", help="To before this offset."),
    click.option("--from-time", metavar="TIME", help="Of this time or later: ISO 8601, milliseconds, -1h, now."),
    click.option("--to-time", metavar="TIME", help="Of before this time."),
    click.option("--key", metavar="KEY", help="With this key: text, hex:… or base64:…."),
    click.option("--key-regex", metavar="REGEX", help="In whose key this is found."),
    click.option("--grep", metavar="REGEX", help="In whose value this is found."),
    click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="NAME[=VALUE]",
        help="With this header, with any value or this one (as for --key); may be repeated.",
    ),
    click.option("--producer-id", type=int, metavar="ID", help="Of this producer."),
    click.option("--transactional-only", is_flag=True, help="Of transactions."),
    click.option("--control/--no-control", "is_control", default=None, help="Control records alone; or none of them."),
    click.option(
        "--isolation",
        type=click.Choice(["read_uncommitted", "read_committed"]),
        default="read_uncommitted",
        show_default=True,
        help="read_committed: no aborted ones, no control records, nothing from the last stable offset on.",
    ),
    click.option("--limit", type=click.IntRange(min=0), metavar="N", help="The first N."),
    click.option("--tail", type=click.IntRange(min=0), metavar="N", help="The last N of each partition."),
    click.option("--sample", metavar="SHARE", help="About this share of them, 0.01 or 1%; the same ones each time."),
    click.option("--follow", "is_followed", is_flag=True, help="Wait for more, over new segments; ends by Ctrl-C."),
    zone_option,
)
"""The options that say which records are wanted; each one's parameter is taken by `selection_of`."""


def selection_options(command: Command) -> Command:
    """`--from-offset` … `--follow`, `--tz`: which records."""
    for option in reversed(_SELECTION_OPTIONS):
        command = option(command)
    return command


def selection_of(options: dict[str, Any]) -> "Selection":
    """The selection that the options ask for; they are taken out of `options`. Raises UsageError for wrong ones."""
    from kseg.selection import Selection, parse_bytes, parse_header, parse_share
    from kseg.times import parse_time, parse_zone

    zone = parse_zone(options.pop("zone"))
    from_time, to_time = (options.pop(name) for name in ("from_time", "to_time"))
    key, sample = options.pop("key"), options.pop("sample")
    plain = ("from_offset", "to_offset", "key_regex", "grep", "producer_id", "transactional_only", "is_control")
    return Selection(
        **{name: options.pop(name) for name in (*plain, "limit", "tail", "is_followed")},
        from_time=None if from_time is None else parse_time(from_time, zone),
        to_time=None if to_time is None else parse_time(to_time, zone),
        key=None if key is None else parse_bytes(key),
        headers=tuple(parse_header(header) for header in options.pop("headers")),
        sample=None if sample is None else parse_share(sample),
        is_committed=options.pop("isolation") == "read_committed",
    )


def talk(line: str) -> None:
    """A line on stderr."""
    click.echo(line, err=True)
