"""`kseg completion` and `kseg help`, and values that completion offers."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from kseg.errors import KsegError
from kseg.output.pager import paged
from kseg.output.streams import flush_stdout, write_stdout

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script that makes a shell complete kseg's commands, options and paths.

    \b
    Examples:
      kseg completion bash >> ~/.bashrc
      kseg completion zsh > ~/.zfunc/_kseg
      kseg completion fish > ~/.config/fish/completions/kseg.fish
    """
    write_stdout(completion_script(shell).encode())
    flush_stdout()


def completion_script(shell: str) -> str:
    """The script by which a shell asks kseg what may come next: the same for all versions of kseg."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    # Only the text: click's own method would look for bash, to warn about an old one.
    writer = made(completion, {}, "kseg", "_KSEG_COMPLETE")
    script = writer.source_template % writer.source_vars()
    # In fish click's script would cut a value at its first comma.
    return script.replace('string split "," $completion', 'string split --max 1 "," $completion')


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


def answer_shell(group: click.Group, variable: str) -> int:
    """Print what may come next, for the shell that a variable asks for; give the exit status.

    Nothing else is written: the user's prompt is on the screen. Words that make no sense yet have no continuation.
    """
    from click.shell_completion import shell_complete

    try:
        return shell_complete(group, {}, "kseg", variable, os.environ[variable])
    except (click.ClickException, KsegError, OSError, LookupError, ValueError):
        return 2


Values = Callable[[click.Context], Iterable[str]]
_MOST = 200
"""Values that are offered at most."""


class CompletedType(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """An option's own type, with values for the shell."""

    def __init__(self, own: Any, values: Values, *, is_list: bool) -> None:
        """Takes what gives the values, and whether the option takes several, separated by commas."""
        self.name = own.name
        self._own = own
        self._values = values
        self._is_list = is_list

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As the own type does."""
        return self._own.convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The values that begin with what is there."""
        before, comma, start = incomplete.rpartition(",") if self._is_list else ("", "", incomplete)
        taken = set(before.split(","))
        with suppress(KsegError, OSError):
            found = [each for each in self._values(ctx) if each.startswith(start) and each not in taken]
            return [CompletionItem(f"{before}{comma}{each}") for each in found[:_MOST]]
        return []


def _releases(_: click.Context) -> list[str]:
    from kseg.releases import RELEASES

    return ["latest", *dict.fromkeys(".".join(map(str, release[:2])) for release in reversed(RELEASES))]


def _decoders(_: click.Context) -> list[str]:
    from kseg.decode.values import DECODERS

    return list(DECODERS)


def _fields(_: click.Context) -> tuple[str, ...]:
    from kseg.layouts.record_columns import FIELD_NAMES

    return FIELD_NAMES


def _findings(context: click.Context) -> list[str]:
    if context.info_name == "doctor":
        from kseg.doctor.kinds import KINDS

        return ["all", *KINDS]
    from kseg.findings.kinds import ALL_FINDINGS

    return ["all", *ALL_FINDINGS]


def _topics(context: click.Context) -> list[str]:
    """The topics in the directories that are given, by the names of these alone."""
    from kseg.formats.file_names import parse_partition_directory

    paths = context.params.get("paths") or context.params.get("path") or (Path(),)
    # An option that still waits for its value keeps click from taking the arguments before it.
    before = [word for word in context.args if Path(word).is_dir()]
    found = set()
    for path in before or (paths if isinstance(paths, tuple) else (paths,)):
        for name in (os.path.basename(os.path.abspath(path)), *_directories(Path(path))):  # noqa: PTH100, PTH119
            partition = parse_partition_directory(Path(name))
            if partition is not None:
                found.add(partition.topic)
    return sorted(found)


def _directories(path: Path) -> list[str]:
    """The names of directories in one, and in those of it that aren't partitions: disks, brokers."""
    from kseg.formats.file_names import parse_partition_directory

    found: list[str] = []
    with suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            if not entry.is_dir():
                continue
            found.append(entry.name)
            if parse_partition_directory(Path(entry.name)) is None:
                with suppress(OSError), os.scandir(entry.path) as inner:
                    found += [each.name for each in inner if each.is_dir()]
    return found


def _zones(_: click.Context) -> list[str]:
    from zoneinfo import available_timezones

    return ["local", *sorted(available_timezones())]


def _commands(context: click.Context) -> list[str]:
    group = context.find_root().command
    return group.list_commands(context) if isinstance(group, click.Group) else []


def _codecs(_: click.Context) -> list[str]:
    from kseg.formats.codes import CODEC_NAMES

    return list(CODEC_NAMES)


_VALUES: dict[str, Values] = {
    "--like": _releases,
    "--key-decoder": _decoders,
    "--value-decoder": _decoders,
    "--fields": _fields,
    "--explain": _findings,
    "--topic": _topics,
    "--tz": _zones,
    "--compression": _codecs,
    "command_name": _commands,
}
_LISTS = {"--fields"}


def add_completed_values(command: click.Command) -> None:
    """Lets the shell complete values of a command's options, other than words that the options' types know."""
    for parameter in command.params:
        names = [*parameter.opts, str(parameter.name)]
        known = next((name for name in names if name in _VALUES), None)
        if known is not None and not isinstance(parameter.type, click.Choice | CompletedType):
            parameter.type = CompletedType(parameter.type, _VALUES[known], is_list=known in _LISTS)
