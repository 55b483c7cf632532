"""Arguments and options that several commands share, as decorators."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

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


def talk(line: str) -> None:
    """A line on stderr."""
    click.echo(line, err=True)
