"""Arguments and options that several commands share, as decorators."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kseg.commands.parameters import NewDirectory, int_number

if TYPE_CHECKING:
    from kseg.redaction import Redaction

REDACT_KEY = "KSEG_REDACT_KEY"
"""What holds the key of --redact for all commands, out of sight of those who list processes."""

Command = TypeVar("Command", bound=Callable[..., Any])


def paths_argument(command: Command) -> Command:
    """`[PATHS]…` as a tuple of Path; the current directory if none is given."""
    return click.argument(
        "paths", nargs=-1, type=click.Path(path_type=Path), callback=lambda _, __, paths: paths or (Path(),)
    )(command)


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


def new_directory_option(
    help_text: str = "The new directory.", *, form_option: str | None = None, required: bool = False
) -> Callable[[Command], Command]:
    """`-o/--output` of a command that makes a directory; `form_option` names the form of its report, if it has one."""
    return click.option(
        "-o", "--output", "directory", required=required, type=NewDirectory(form_option), help=help_text
    )


def report_form_option(*forms: str) -> Callable[[Command], Command]:
    """`--format`, one of some forms of a report; the first is the default."""
    return click.option(
        "--format", "form", type=click.Choice(forms), default=forms[0], show_default=True, help="Of the report."
    )


def now_option(command: Command) -> Command:
    """`--now`: the time that ages are judged by."""
    return click.option("--now", metavar="TIME", help="Time to judge by; the clock's by itself.")(command)


def quiet_writing_option(command: Command) -> Command:
    """`-q/--quiet` of a command that tells what it wrote."""
    return click.option("-q", "--quiet", is_flag=True, help="Don't say what was written.")(command)
