"""The command line: a group that imports a command's module when it is called."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from kseg.errors import ClosedPipeError, KsegError

COMMANDS = {
    "dump": "Print what log segments, indexes, snapshots and checkpoints hold.",
    "ls": "List topics, partitions and segments.",
    "lookup": "Find the record of an offset or of a time, and show the way.",
    "verify": "Check logs, indexes, snapshots and checkpoints.",
    "salvage": "Save every intact batch of damaged partitions into a new directory.",
    "reindex": "Make indexes anew from the logs.",
    "explain": "Read bytes aloud: each field with its bytes, value and meaning.",
    "build": "Make a partition's directory of records.",
    "slice": "Cut a piece out of a partition, batches copied as they are.",
    "retain": "Show which segments retention would delete, and when.",
    "where": "Find the partition of a key, a group, a transactional id.",
    "groups": "Show consumer groups, their members, and what they had committed.",
    "txns": "Show transactions, and which of them hang.",
    "metadata": "Show a KRaft cluster's topics, partitions, brokers, configs.",
    "export": "Export topics to Parquet files, by processes of this machine.",
    "spark-export": "Export topics to Parquet files, by Spark: on this machine or a cluster.",
    "completion": "Print what makes bash, zsh or fish complete commands and options.",
}
"""Each command and its line in the help; its module in kseg.commands has the same name, with _ for -."""

INTERRUPTED = 130
CLOSED_PIPE = 141


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"kseg.commands.{module}"), module)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from importlib.metadata import version

    from kseg import kernel

    click.echo(f"kseg {version('kseg')} (kernel: {kernel.load().NAME})")
    context.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Version and kernel."
)
def cli() -> None:
    """Read Apache Kafka's files on disk: segments, indexes, snapshots, checkpoints. No broker, no JVM.

    \b
    Examples:
      kseg dump orders-0/00000000000000203000.log --print-data-log
      kseg dump --like 2.8 --files 00000000000000203000.log,00000000000000203000.index
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line, the process's own if none is given; gives its exit status."""
    try:
        return cli.main(arguments, "kseg", standalone_mode=False, auto_envvar_prefix="KSEG") or 0
    except click.ClickException as error:
        error.show()
        return 2
    except ClosedPipeError:
        _end(arguments)
        return CLOSED_PIPE
    except KsegError as error:
        if os.environ.get("KSEG_DEBUG"):
            raise
        click.echo(f"kseg: {error}", err=True)
        _end(arguments)
        return 2
    except MemoryError:
        if os.environ.get("KSEG_DEBUG"):
            raise
        click.echo("kseg: memory doesn't suffice for what is read; `ulimit -v` may limit it", err=True)
        _end(arguments)
        return 2
    except (KeyboardInterrupt, click.Abort):
        _end(arguments)
        return INTERRUPTED


def _end(arguments: Sequence[str] | None) -> None:
    """Keeps Python from writing what is left in its buffer when the process ends: that would fail once more.

    A caller's own standard output stays as it is.
    """
    if arguments is not None:
        return
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        return  # stdout is no file of the system's: nothing is written at the end
