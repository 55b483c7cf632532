"""`kseg help`: the help of kseg, or of a command."""

import click

from kseg.output.pager import paged
from kseg.output.stdout import flush_stdout


@click.command("help")
@click.argument("command_name", metavar="[COMMAND]", required=False)
@click.pass_context
def help(command: click.Context, command_name: str | None) -> None:  # noqa: A001  the command's name
    """Show what to do for what, or how to use a command.

    \b
    Examples:
      kseg help
      kseg help dump
    """
    root = command.find_root()
    group = root.command
    assert isinstance(group, click.Group)
    if command_name is None:
        text = root.get_help()
    else:
        name, found, _ = group.resolve_command(root, [command_name])
        assert found is not None
        text = click.Context(found, info_name=name, parent=root).get_help()
    with paged() as out:
        out.write(f"{text}\n")
    flush_stdout()
