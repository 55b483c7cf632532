"""docs/reference/commands.md and the texts of man pages, from the commands' own help."""

import inspect
import re
from collections.abc import Iterator

import click

from kseg.cli import COMMANDS, cli
from kseg.commands.guide import TASKS, VARIABLES

INTRODUCTION = """# The command line

Made from `kseg COMMAND --help` by `python tools/generate.py`: edit the commands, not this page.

`-o` chooses the form of the output, and `--to` names the new directory of a command that makes one; `--from` says which
form the input has.

"""


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
            record for parameter in command.get_params(context) if (record := parameter.get_help_record(context))
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
    parts = [INTRODUCTION, "| what to do | with |\n|---|---|\n"]
    parts += [f"| {task.wanted} | `{task.line}` |\n" for task in TASKS]
    parts.append("\n| variable | what it sets |\n|---|---|\n")
    parts += [f"| `{name}` | {meaning} |\n" for name, meaning in VARIABLES.items()]
    parts += ["\n| command | what it does |\n|---|---|\n"]
    parts += [f"| [`kseg {name}`](#kseg-{name}) | {line} |\n" for name, line in COMMANDS.items()]
    for each in helps():
        parts.append(f"\n## kseg {each.name}\n\n```text\n{each.usage}\n```\n")
        parts.append(f"\n{each.paragraphs[0]}\n")
        if each.examples:
            parts.append("\n```sh\n" + "".join(f"{line}\n" for line in each.examples) + "```\n")
        parts += [f"\n{paragraph}\n" for paragraph in each.paragraphs[1:]]
        parts.append("\n| option | |\n|---|---|\n")
        parts += [f"| `{_cell(option)}` | {_cell(meaning)} |\n" for option, meaning in each.options]
    return "".join(parts)


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
