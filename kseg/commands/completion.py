"""`kseg completion` and `kseg help`, and values that completion offers."""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import click

from kseg.commands.options.command import command
from kseg.errors import KsegError
from kseg.output.pager import open_pager
from kseg.output.streams import flush_stdout, write_stdout


class CompletionOptions(NamedTuple):
    """The shell that gets completion."""

    shell: str


@command(CompletionOptions)
def completion(options: CompletionOptions) -> None:
    """Print a completion script for bash, zsh or fish.

    With the script, the shell completes kseg's commands, options and values.

    \b
    Examples:
      kseg completion bash >> ~/.bashrc
      kseg completion zsh > ~/.zfunc/_kseg
      kseg completion fish > ~/.config/fish/completions/kseg.fish
    """
    write_stdout(completion_script(options.shell).encode())
    flush_stdout()


def completion_script(shell: str) -> str:
    """Return the script by which a shell asks kseg for completions. It is the same for all versions of kseg."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    # Only the text: click's own method would look for bash, to warn about an old one.
    writer = made(completion, {}, "kseg", "_KSEG_COMPLETE")
    script = writer.source_template % writer.source_vars()
    # In fish, click's script would cut a value at its first comma.
    return script.replace('string split "," $completion', 'string split --max 1 "," $completion')


class HelpOptions(NamedTuple):
    """The explained command, topic or finding, or a word to search for."""

    subject: str | None


TOPICS = ("commands", "environment")
"""Topics of `kseg help` that aren't commands."""


@command(HelpOptions)
def help(options: HelpOptions) -> None:  # noqa: A001  the command's name
    """List common tasks, or explain a command, finding or word.

    Without a name, `help` lists tasks and the command line for each. For a word such as `disk`, it lists the tasks,
    commands and findings whose help has the word.

    \b
    Examples:
      kseg help
      kseg help dump
      kseg help commands
      kseg help torn-tail
      kseg help stuck
    """
    root = click.get_current_context().find_root()
    group = root.command
    assert isinstance(group, click.Group)
    text = root.get_help() if options.subject is None else _help_about(root, group, options.subject)
    with open_pager() as out:
        out.write(f"{text}\n")
    flush_stdout()


def _help_about(root: click.Context, group: click.Group, subject: str) -> str:
    """Return the help of a command, topic or finding, or the places that have a word.

    Raises click.UsageError if none has it.
    """
    from kseg.doctor.kinds import KINDS
    from kseg.findings.kinds import explanation

    if subject in TOPICS:
        return _topic(root, group, subject)
    command = group.get_command(root, subject)
    if command is not None:
        return click.Context(command, info_name=subject, parent=root).get_help()
    if subject in KINDS:
        return explanation(subject, KINDS).rstrip("\n")
    found = _places_with(root, group, subject)
    if found:
        return found
    from difflib import get_close_matches

    near = get_close_matches(subject, [*group.list_commands(root), *TOPICS, *KINDS])
    meant = f", did you mean {' or '.join(f'`kseg help {name}`' for name in near)}?" if near else ""
    raise click.UsageError(f"no help about {subject!r}{meant}")


def _places_with(root: click.Context, group: click.Group, word: str) -> str:
    """Return the tasks, commands and findings whose help has a word that begins like this; empty without any."""
    from kseg.commands.guide import OTHER_COMMANDS, SITUATIONS
    from kseg.doctor.kinds import KINDS

    has_word = re.compile(rf"\b{re.escape(word)}", re.IGNORECASE).search
    formatter = root.make_formatter()
    for situation in SITUATIONS:
        tasks = (
            situation.tasks if has_word(situation.name) else [each for each in situation.tasks if has_word(each.wanted)]
        )
        if tasks:
            with formatter.section(situation.name):
                width = max(len(task.wanted) for task in tasks)
                for task in tasks:  # lines to copy: they are never wrapped
                    formatter.write(f"  {task.wanted:<{width}}  {task.line}\n")
    named = OTHER_COMMANDS.get(word, "").partition(" ")[0]
    commands = {name: group.get_command(root, name) for name in group.list_commands(root)}
    rows = [
        (f"kseg help {name}", each.get_short_help_str(limit=1000))
        for name, each in commands.items()
        if each is not None and name != "help" and (name == named or has_word(each.help or ""))
    ]
    findings = [
        (f"kseg help {name}", kind.meaning)
        for name, kind in KINDS.items()
        if has_word(f"{name} {kind.meaning} {kind.risk} {kind.next_step}")
    ]
    for title, pairs in (("Commands", rows), ("Findings", findings)):
        if pairs:
            with formatter.section(title):
                formatter.write_dl(pairs)
    return formatter.getvalue().strip("\n")


def _topic(root: click.Context, group: click.Group, name: str) -> str:
    """Return the list that a topic of `kseg help` prints."""
    from kseg.commands.guide import VARIABLES

    formatter = root.make_formatter()
    if name == "commands":
        group.format_commands(root, formatter)
    else:
        with formatter.section("Environment"):
            formatter.write_dl(list(VARIABLES.items()))
    return formatter.getvalue().rstrip("\n")


def answer_shell(group: click.Group, variable: str) -> int:
    """Print the completions for the shell that a variable names; return the exit status.

    Nothing else is written, since the user's prompt is on the screen. Invalid words have no completions.
    """
    from click.shell_completion import shell_complete

    try:
        return shell_complete(group, {}, "kseg", variable, os.environ[variable])
    except (click.ClickException, KsegError, OSError, LookupError, ValueError):
        return 2


def releases(_: click.Context) -> list[str]:
    """Return the releases that --like accepts."""
    from kseg.releases import all_releases

    return ["latest", *dict.fromkeys(".".join(map(str, release[:2])) for release in reversed(all_releases()))]


def findings(context: click.Context) -> list[str]:
    """Return the findings that --explain accepts."""
    if context.info_name == "doctor":
        from kseg.doctor.kinds import KINDS

        return ["all", *KINDS]
    from kseg.findings.kinds import ALL_FINDINGS

    return ["all", *ALL_FINDINGS]


def topics(context: click.Context) -> list[str]:
    """Return the topics in the given directories, by the names of their partitions' directories."""
    from kseg.formats.file_names import parse_partition_directory

    paths = context.params.get("paths") or context.params.get("path") or (Path(),)
    # An option without its value keeps click from taking the arguments before it.
    before = [word for word in context.args if Path(word).is_dir()]
    found = set()
    for path in before or (paths if isinstance(paths, tuple) else (paths,)):
        for name in (os.path.basename(os.path.abspath(path)), *_directories(Path(path))):  # noqa: PTH100, PTH119
            partition = parse_partition_directory(Path(name))
            if partition is not None:
                found.add(partition.topic)
    return sorted(found)


def _directories(path: Path) -> list[str]:
    """Return the names of the directories in a directory, and in its subdirectories that aren't partitions."""
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


def zones(_: click.Context) -> list[str]:
    """Return the time zones."""
    from zoneinfo import available_timezones

    return ["local", *sorted(available_timezones())]


def commands(context: click.Context) -> list[str]:
    """Return the names of all commands, and the topics of `kseg help`."""
    group = context.find_root().command
    return [*group.list_commands(context), *TOPICS] if isinstance(group, click.Group) else []
