"""The options of `kseg metadata --as-commands`, and the script that they describe."""

from functools import wraps
from typing import Any, cast

import click

from kseg.commands.options import Command, bootstrap_server_option
from kseg.errors import UsageError
from kseg.views.carry_over.carried_script import CarryOver
from kseg.views.carry_over.tool_line import Target


def carry_over_options(command: Command) -> Command:
    """`--as-commands` and what goes with it; the command gets them as one `script`, None without --as-commands."""

    @click.option(
        "--as-commands",
        is_flag=True,
        help="Print a shell script of kafka-topics.sh, kafka-configs.sh, kafka-acls.sh that makes it anew elsewhere.",
    )
    @click.option(
        "--keep-brokers",
        is_flag=True,
        help="With --as-commands: each replica on the broker with the same id, instead of as many replicas.",
    )
    @bootstrap_server_option("With --as-commands: the other cluster's address.")
    @click.option(
        "--command-config",
        metavar="FILE",
        help="With --as-commands: the file of client settings for the tools, if the other cluster wants a login.",
    )
    @wraps(command)
    def describing(*arguments: Any, **options: Any) -> Any:
        return command(*arguments, script=_wanted(options), **options)

    return cast(Command, describing)


def _wanted(options: dict[str, Any]) -> CarryOver | None:
    """The script that the options describe; removes them from `options`."""
    server, config = options.pop("bootstrap_server"), options.pop("command_config")
    keeps_brokers, is_wanted = options.pop("keep_brokers"), options.pop("as_commands")
    if is_wanted and options["output"] != "text":
        raise UsageError("--as-commands prints a shell script: leave -o out")
    if not is_wanted:
        if keeps_brokers or config is not None:
            raise UsageError("--keep-brokers and --command-config need --as-commands")
        return None
    return CarryOver(Target(server, config), options["choice"], options["show"], keeps_brokers)
