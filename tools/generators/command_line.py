"""docs/reference/commands.md and the texts of man pages, from the commands' own help."""

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import click

from kseg.cli import COMMANDS, cli
from kseg.commands.guide import TASKS, VARIABLES

INTRODUCTION = """# The command line

Made from `kseg COMMAND --help` by `python tools/generate.py`: edit the commands, not this page.

`-o` chooses the form of the output, and `--to` names the new directory of a command that makes one; `--from` says which
form the input has. Options that mean the same on several commands stand once, under [Shared options](#shared-options);
each command says which of them it has. The [environment](environment.md) can set each option,
[exit status](exit-status.md) says how a command ends, and [streams](streams.md) has the fields of JSON and CSV.

"""


class Group(NamedTuple):
    """Options that several commands share: the section's title, and the command whose options are the model.

    about: a sentence before its table, in Markdown; empty for none.
    """

    title: str
    model: str
    options: tuple[str, ...]
    about: str = ""

    @property
    def link(self) -> str:
        """A link to its section."""
        return f"[{self.title}](#{self.title.lower().replace(' ', '-')})"


GROUPS = (
    Group("Which partitions", "dump", ("--topic", "--partition"), "Without these, all that PATHS have."),
    Group(
        "Which records",
        "dump",
        (
            "--from-offset",
            "--to-offset",
            "--from-time",
            "--to-time",
            "--key",
            "--key-regex",
            "--grep",
            "--header",
            "--producer-id",
            "--transactional-only",
            "--control",
            "--isolation",
            "--limit",
            "--tail",
            "--sample",
        ),
        "All that is given must hold. [Find records](../how-to/find-records.md) shows them at work.",
    ),
    Group("Times", "ls", ("--tz", "--now")),
    Group(
        "Archives and remote tiers",
        "dump",
        ("--as", "--max-unpacked", "--remote", "--private-key"),
        "PATHS may lead into a .tar, .tar.gz, .tar.zst or .zip, or be `-`, or a [bucket](../how-to/buckets.md).",
    ),
    Group("Redaction", "dump", ("--redact", "--redact-key")),
    Group("Output", "dump", ("--raw", "--csv-safe")),
    Group("Work", "ls", ("-j", "--gentle", "--keep-cache", "--progress")),
    Group(
        "Decoded columns",
        "export",
        (
            "--key-decoder",
            "--value-decoder",
            "--schema",
            "--schema-registry",
            "--decoded",
            "--on-mismatch",
            "--keep-raw",
        ),
    ),
    Group(
        "Exports",
        "export",
        (
            "--latest-per-key",
            "--tombstones",
            "--headers",
            "--batch-columns",
            "--mode",
            "--partition-by",
            "--target-file-size",
            "--compression",
            "--bloom-filter",
            "--format",
            "--merge-files",
            "--catalog",
            "--table",
            "--overwrite",
            "--dry-run",
        ),
    ),
    Group("Everywhere", "dump", ("-q", "-v", "--color", "--help")),
)
"""A command has a group if at least half of its options mean the same there; single ones stay with the command."""


class Help:
    """A command's help in its parts: paragraphs, examples, options as (what to write, what it means)."""

    def __init__(self, name: str, command: click.Command) -> None:
        context = click.Context(command, info_name=f"kseg {name}".strip())
        self.name = name
        self.usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        text = inspect.cleandoc(command.help or "")
        summary, _, rest = text.partition("\b\nExamples:\n")
        examples, _, more = rest.partition("\n\n")
        paragraphs = f"{summary}\n\n{more}".split("\n\n")
        self.paragraphs = [" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip()]
        self.examples = [line.strip() for line in examples.splitlines() if line.strip()]
        self.options = [
            record
            for parameter in command.get_params(context)
            if (record := parameter.get_help_record(context)) and not isinstance(parameter, click.Argument)
        ]


def helps() -> Iterator[Help]:
    """Each command's."""
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        yield Help(name, command)


def page() -> str:
    """The page of all commands."""
    commands = {each.name: each for each in helps()}
    shared = {group: _model(group, commands) for group in GROUPS}
    parts = [INTRODUCTION, "| what to do | with |\n|---|---|\n"]
    parts += [f"| {task.wanted} | `{task.line}` |\n" for task in TASKS]
    parts += ["\n| command | what it does |\n|---|---|\n"]
    parts += [f"| [`kseg {name}`](#kseg-{name}) | {line} |\n" for name, line in COMMANDS.items()]
    parts.append("\n## Shared options\n")
    for group, options in shared.items():
        about = f"\n{group.about}\n" if group.about else ""
        parts.append(f"\n### {group.title}\n{about}{_table(options)}")
    for each in commands.values():
        parts.append(_section(each, shared))
    return "".join(parts)


Options = Mapping[str, tuple[str, str]]
"""What to write, and what it means, by the first name of the option."""


def _by_name(each: Help) -> dict[str, tuple[str, str]]:
    return {re.split(r"[ ,]", written)[0]: (written, meaning) for written, meaning in each.options}


def _model(group: Group, commands: Mapping[str, Help]) -> Options:
    options = _by_name(commands[group.model])
    return {name: options[name] for name in group.options}


def _section(each: Help, shared: Mapping[Group, Options]) -> str:
    """A command's part of the page."""
    own, links = _by_name(each), []
    for group, options in shared.items():
        same = [name for name, option in options.items() if own.get(name) == option]
        if 2 * len(same) >= len(options):
            own = {name: option for name, option in own.items() if name not in same}
            links.append(group.link + _exceptions(same, list(options)))
    parts = [f"\n## kseg {each.name}\n\n```text\n{each.usage}\n```\n\n{each.paragraphs[0]}\n"]
    if each.examples:
        parts.append("\n```sh\n" + "".join(f"{line}\n" for line in each.examples) + "```\n")
    parts += [f"\n{paragraph}\n" for paragraph in each.paragraphs[1:]]
    parts.append(_table(own) if own else "")
    parts.append(f"\nShared options: {' · '.join(links)}\n")
    return "".join(parts)


def _exceptions(same: list[str], all_names: list[str]) -> str:
    """Which of a group's options a command has, if not all."""
    missing = [f"`{name}`" for name in all_names if name not in same]
    return f" without {', '.join(missing)}" if missing else ""


def _table(options: Options) -> str:
    rows = [f"| `{_cell(option)}` | {_cell(meaning)} |\n" for option, meaning in options.values()]
    return "".join(["\n| option | |\n|---|---|\n", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def man_page(each: Help) -> str:
    """A command's page in man's language."""
    title = f"kseg-{each.name}"
    lines = [
        f'.TH "{title.upper()}" 1 "" "kseg"',
        ".ad l",
        ".SH NAME",
        f"{_man(title)} \\- {_man(COMMANDS[each.name])}",
    ]
    lines += [".SH SYNOPSIS", _man(each.usage)]
    if each.examples:
        lines += [".SH EXAMPLES", ".nf", *(_man(line) for line in each.examples), ".fi"]
    lines.append(".SH DESCRIPTION")
    for paragraph in each.paragraphs:
        lines += [".PP", _man(paragraph)]
    lines.append(".SH OPTIONS")
    for option, meaning in each.options:
        lines += [".TP", f"\\fB{_man(option)}\\fR", _man(meaning)]
    return "\n".join([*lines, ".SH SEE ALSO", "\\fBkseg\\fR(1)", ""])


def main_man_page() -> str:
    """The page of `kseg` itself."""
    whole = Help("", cli)
    lines = ['.TH "KSEG" 1 "" "kseg"', ".ad l", ".SH NAME", f"kseg \\- {_man(whole.paragraphs[0])}"]
    lines += [".SH SYNOPSIS", _man(whole.usage), ".SH EXAMPLES"]
    for task in TASKS:
        lines += [".TP", _man(task.wanted), f"\\fB{_man(task.line)}\\fR"]
    lines.append(".SH COMMANDS")
    for name, line in COMMANDS.items():
        lines += [".TP", f"\\fBkseg-{_man(name)}\\fR(1)", _man(line)]
    lines.append(".SH ENVIRONMENT")
    for name, meaning in VARIABLES.items():
        lines += [".TP", f"\\fB{_man(name)}\\fR", _man(meaning)]
    return "\n".join([*lines, ""])


def _man(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("|", "|\\:")  # a long choice may be broken there
    text = re.sub(r"^([.'])", r"\\&\1", text)
    return "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in text)
