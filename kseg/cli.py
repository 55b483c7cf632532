"""The command line: a group that imports a command's module when it is called."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from kseg.errors import KsegError

COMMANDS = {"dump": "Print what log segments, indexes, snapshots and checkpoints hold."}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"kseg.commands.{cmd_name}"), cmd_name)
        return command


@click.group(cls=_Commands)
def cli() -> None:
    """Read Apache Kafka's files on disk."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line; gives its exit status."""
    try:
        return cli.main(arguments, "kseg", standalone_mode=False) or 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except KsegError as error:
        click.echo(f"kseg: {error}", err=True)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (KeyboardInterrupt, click.Abort):
        return 130
