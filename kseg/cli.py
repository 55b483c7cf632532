"""The command line: a group that imports a command's module when it is called."""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module

import click

from kseg.errors import ClosedPipeError, KsegError
from kseg.output.progress import talk, talk_error
from kseg.output.streams import flush_stdout, own_standard_streams, write_line
from kseg.system.signals import interrupted_status, raise_at_interrupt

COMMANDS = {
    "dump": "Print log segments, indexes, snapshots and checkpoints.",
    "ls": "List topics, partitions and segments.",
    "lookup": "Find the record at an offset or time.",
    "doctor": "Find a disk's problems, and the next step for each.",
    "verify": "Check logs, indexes, snapshots and checkpoints.",
    "salvage": "Save the intact batches of damaged partitions.",
    "carve": "Recover deleted partitions from raw disks and images.",
    "diff": "Compare replicas, backups, disks or whole brokers.",
    "report": "Write a report about a disk.",
    "redact": "Copy log directories without their contents and names.",
    "get": "Print one record's value, key or header.",
    "reindex": "Rebuild indexes from the logs.",
    "explain": "Explain the bytes of a file, field by field.",
    "browse": "Browse files and records on the screen.",
    "build": "Build a partition directory from records.",
    "slice": "Copy part of a partition.",
    "retain": "Show which segments retention would delete, and when.",
    "compact": "Compact a partition as a broker would.",
    "where": "Find the partition of a key, group or transactional id.",
    "protocol": "Read requests and responses from captures or hex text.",
    "serve": "Serve log directories to Kafka's clients, read-only.",
    "restore": "Restore records and group offsets to a running cluster.",
    "groups": "Show consumer groups, their members and their commits.",
    "txns": "Show transactions, and find hanging ones.",
    "query": "Query logs with SQL.",
    "plan-move": "Plan moves between a broker's log directories.",
    "metadata": "Show a KRaft cluster's metadata.",
    "rebuild-metadata": "Restore a lost controller quorum from a broker's copy.",
    "export": "Export topics to Parquet files or tables.",
    "spark-export": "Export topics to Parquet files or tables with Spark.",
    "completion": "Print a completion script for bash, zsh or fish.",
    "help": "List common tasks, or explain a command, finding or word.",
}
"""Each command and its line in the help; its module in kseg.commands has the same name, with _ for -."""

CLOSED_PIPE = 141
COMPLETION_VARIABLE = "_KSEG_COMPLETE"
"""Variable that a shell's completion sets, in click's spelling."""
_MOST_NAMED = 4
"""Most commands that are listed for an option given to the wrong command."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = "completion" if name == "help" else name  # both print declarations of other commands
        command: click.Command = getattr(import_module(f"kseg.commands.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest a command for an unknown one; end the start that `kseg.__main__` has begun."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            from kseg.commands.guide import OTHER_COMMANDS

            meant = OTHER_COMMANDS.get(args[0])
            near = [f"`kseg {name}`" for name in ([meant] if meant else get_close_matches(args[0], COMMANDS))]
            ctx.fail(f"no such command {args[0]!r}" + (f", did you mean {' or '.join(near)}?" if near else ""))
        found = super().resolve_command(ctx, args)
        name, command, arguments = found
        if COMPLETION_VARIABLE not in os.environ:
            _tell_misspelt_variables(name, command, arguments)
            self._take_config_file(ctx, name, command, arguments)
        raise_at_interrupt()
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        return found

    def _take_config_file(
        self, ctx: click.Context, name: str | None, command: click.Command | None, arguments: list[str]
    ) -> None:
        """Take defaults from the file of KSEG_CONFIG; the command line and variables have precedence."""
        path = os.environ.get("KSEG_CONFIG")
        if not path or name is None or command is None:
            return
        from pathlib import Path

        from kseg.commands.config_file import ConfigFile

        file = ConfigFile(Path(path), list(COMMANDS))
        ctx.default_map = {name: file.defaults(command, name)}
        if not {"-q", "--quiet"}.intersection(arguments):
            talk(*(f"kseg: {line}" for line in file.problems(self, ctx, command, name)))

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help by situation; the list of commands is a topic of `kseg help`."""
        from kseg.commands.guide import SITUATIONS, TASKS

        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        width = max(len(task.wanted) for task in TASKS)
        for situation in SITUATIONS:
            with formatter.section(situation.name):
                for task in situation.tasks:  # lines to copy: they are never wrapped
                    formatter.write(f"  {task.wanted:<{width}}  {task.line}\n")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _tell_misspelt_variables(name: str | None, command: click.Command | None, arguments: list[str]) -> None:
    if name is None or command is None or not any(each.startswith("KSEG_") for each in os.environ):
        return
    from kseg.commands.config_file import misspelt_variables

    if not {"-q", "--quiet"}.intersection(arguments):
        talk(*(f"kseg: {line}" for line in misspelt_variables(command, name, list(COMMANDS))))


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    for line in _version_lines():
        write_line(line)
    flush_stdout()
    context.exit()


def _version_lines() -> Iterator[str]:
    """Yield the version with the kernel, the known releases of Kafka, and the versions of Python and of libraries."""
    from sysconfig import get_platform

    from kseg import kernel
    from kseg.releases import NEWEST, OLDEST
    from kseg.system.distributions import installed_versions
    from kseg.version import VERSION

    problem = kernel.load_problem()
    passed_over = "" if problem is None else f"; fast can't be loaded: {problem}"
    yield f"kseg {VERSION} (kernel: {kernel.load().NAME}{passed_over})"
    yield f"Kafka: files and output of {OLDEST} to {NEWEST}"
    yield f"Python: {sys.version.partition(' ')[0]} on {get_platform()}"
    libraries = [f"{name} {version}" for name, version in installed_versions("kseg")]
    if libraries:
        yield f"libraries: {', '.join(libraries)}"


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Print the versions of kseg, its libraries and the Kafka it knows.",
)
@click.pass_context
def cli(command: click.Context) -> None:
    """Read, check and repair Apache Kafka's files on disk, without a broker or a JVM.

    \b
    kseg COMMAND -h        examples and common options of a command
    kseg help COMMAND      all options of a command
    kseg help WORD         tasks, commands and findings about a word
    kseg help commands     all commands
    kseg help environment  environment variables, and a file of defaults
    kseg --version         versions of kseg and its libraries
    """
    if command.invoked_subcommand is None:
        talk(*command.get_help().split("\n"))
        command.exit(2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status. By default, this is the command line of the process."""
    if arguments is None:
        own_standard_streams()
    own = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if arguments is None and COMPLETION_VARIABLE in os.environ:
            return int(import_module("kseg.commands.completion").answer_shell(cli, COMPLETION_VARIABLE))
        _check_arguments(own)
        status = cli.main(arguments, "kseg", standalone_mode=False, obj=own) or 0
        if arguments is None:
            flush_stdout()
    except ClosedPipeError:
        status = CLOSED_PIPE
    except click.ClickException as error:
        status = _tell(error, own)
    except (KsegError, OSError, MemoryError) as error:
        if os.environ.get("KSEG_DEBUG"):
            raise
        status = _tell(error, own)
    except (KeyboardInterrupt, click.Abort):
        status = interrupted_status()
    if status and arguments is None:
        _drop_output()
    return status


def _tell(error: click.ClickException | KsegError | OSError | MemoryError, arguments: Sequence[str]) -> int:
    """Print a one-line error message for the command and return its exit status."""
    match error:
        case MemoryError():
            talk("kseg: there isn't enough memory for the input; check the limit with `ulimit -v`")
            return 2
        case click.UsageError():
            line = _usage_line(error, arguments)
        case click.ClickException():
            line = error.format_message()
        case KsegError():
            line = error.one_line()
        case OSError():
            line = _system_line(error)
    talk_error(f"kseg: {line}", color=_error_color(arguments))
    return error.status if isinstance(error, KsegError) else 2


def _error_color(arguments: Sequence[str]) -> bool | None:
    """Return whether errors should be coloured, or None to let the terminal decide."""
    asked = [argument for argument in arguments if argument in ("--color", "--no-color")]
    return asked[-1] == "--color" if asked else None


def _check_arguments(arguments: Sequence[str]) -> None:
    """Raise UsageError for arguments that can't be passed to a program, such as those with NUL characters."""
    for argument in arguments:
        try:
            is_text = b"\0" not in os.fsencode(argument)
        except UnicodeEncodeError:
            is_text = False
        if not is_text:
            raise click.UsageError(f"{argument!a} isn't valid in a command line; pass it as text")


def _usage_line(error: click.UsageError, arguments: Sequence[str]) -> str:
    """Return a one-line message about a usage error, instead of the four lines that click prints."""
    if error.ctx is None:
        where = next((name for name in arguments if name in COMMANDS), "")
    else:
        where = error.ctx.command_path.removeprefix("kseg").strip()
    path = f"kseg {where}".rstrip()
    text = " ".join(error.format_message().split()).removesuffix(".")
    if isinstance(error, click.NoSuchOption):
        text = f"no such option {error.option_name}{_meant(error)}"
    if _names_new_directory(error):
        text += "; use --to for a new directory"
    elif _names_table_format(error):
        text += "; `kseg export` writes Parquet files and tables"
    text = text[:1].lower() + text[1:] + (" See" if text.endswith("?") else "; see")
    return f"{where}{': ' if where else ''}{text} `{path} --help`"


def _meant(error: click.NoSuchOption) -> str:
    """Return a suggestion for an unknown option."""
    from kseg.commands.guide import OTHER_WORDS

    own = {} if error.ctx is None else {name: each for each in error.ctx.command.params for name in each.opts}
    meant = OTHER_WORDS.get(error.option_name, "")
    option, _, value = meant.partition(" ")
    if option in own and value in ("", *getattr(own[option].type, "choices", ())):
        return f", did you mean {meant}?"
    longer = sorted(name for name in own if name.startswith(f"{error.option_name}-"))
    others = _commands_with(error.option_name)
    if 0 < len(others) <= _MOST_NAMED and not longer:
        return f", which belongs to {_list_names(others)}"
    near = longer or sorted(error.possibilities or ())
    near = [each for each in near if each.startswith(error.option_name)] or near
    return f", did you mean {' or '.join(near)}?" if near else ""


def _commands_with(option: str) -> list[str]:
    """Return the commands that support an option."""
    context = click.Context(cli)
    found = [(name, cli.get_command(context, name)) for name in COMMANDS]
    return [name for name, each in found if each is not None and any(option in one.opts for one in each.params)]


def _list_names(names: list[str]) -> str:
    *first, last = (f"`kseg {name}`" for name in names)
    return f"{', '.join(first)} and {last}" if first else last


def _names_new_directory(error: click.UsageError) -> bool:
    """Return True if -o was used like an output directory, on a command that writes one."""
    if isinstance(error, click.NoSuchOption):
        is_output = error.option_name in ("-o", "--output")
    else:
        is_output = isinstance(error, click.BadParameter) and error.param is not None and "-o" in error.param.opts
    return is_output and error.ctx is not None and any("--to" in each.opts for each in error.ctx.command.params)


def _names_table_format(error: click.UsageError) -> bool:
    """Return True if the requested output format is only supported by exports."""
    if not isinstance(error, click.BadParameter) or error.param is None or "-o" not in error.param.opts:
        return False
    from kseg.export.commit.formats import FORMATS

    return any(f"'{name}' is not" in error.message for name in FORMATS)


def _system_line(error: OSError) -> str:
    """Return the error message of the operating system, if there is no better one."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {reason}"
    try:
        os.getcwd()  # noqa: PTH109  pathlib loads modules that `kseg --help` doesn't need
    except OSError:
        return "the current directory no longer exists; change to another one, or specify absolute paths"
    return reason


def _drop_output() -> None:
    """Prevent Python from flushing its buffer at exit, because that would fail again."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        return  # stdout isn't a file of the system: nothing is written at the end
