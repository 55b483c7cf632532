"""docs/reference/commands/, their navigation, and the texts of man pages, from the commands' own help."""

import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from kseg.cli import COMMANDS, cli
from kseg.commands.guide import SITUATIONS, VARIABLES
from kseg.commands.options.command import TableCommand

SITE = Path(__file__).resolve().parent.parent.parent / "mkdocs.yml"
NOTICE = "Generated from `kseg{} --help` by `python tools/generate.py`: edit the command, not this page."
INTRODUCTION = f"""# The command line

{NOTICE.format(" COMMAND")}

`-o` is the output format, `--to` the new directory of a command that writes one, and `--input-format` the input format.
The [environment](../environment.md) can set each option, [exit status](../exit-status.md) lists
how a command can end, and [streams](../streams.md) has the fields of JSON and CSV.

"""
ABOUT = {
    "Input": "PATHS may lead into a .tar, .tar.gz, .tar.zst or .zip, be `-` or a [bucket](../../how-to/buckets.md).",
    "Selection": "Given options must all hold. [Find records](../../how-to/find-records.md) shows them at work.",
}
"""Sentences below a heading of options, on commands that read PATHS and select records."""


Record = tuple[str, str]
"""An option: its flags, and its meaning."""


class Help:
    """A command's help in parts: paragraphs, examples, options under their headings."""

    def __init__(self, name: str, command: click.Command) -> None:
        own_names = cli.context_settings["help_option_names"]
        context = click.Context(command, info_name=f"kseg {name}".strip(), help_option_names=own_names)
        self.name = name
        self.usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        text = inspect.cleandoc(command.help or "")
        summary, _, rest = text.partition("\b\nExamples:\n")
        examples, _, more = rest.partition("\n\n")
        paragraphs = f"{summary}\n\n{more}".split("\n\n")
        self.paragraphs = [" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip()]
        self.examples = [line.strip() for line in examples.splitlines() if line.strip()]
        self.sections = command.sections(context) if isinstance(command, TableCommand) else {}

    def options(self) -> Iterator[tuple[str, Record]]:
        """Yield each option with its heading."""
        return ((heading, record) for heading, records in self.sections.items() for record in records)


def helps() -> Iterator[Help]:
    """Yield the help of each command."""
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        yield Help(name, command)


def pages() -> dict[str, str]:
    """Return the pages about commands, by their names: an overview, and one per command."""
    return {"index.md": _overview(), **{f"{each.name}.md": command_page(each) for each in helps()}}


def navigation() -> str:
    """Return mkdocs.yml with the page of each command, after the overview."""
    before, start, rest = SITE.read_text(encoding="utf-8").partition("          - reference/commands/index.md\n")
    listed = "".join(f"          - reference/commands/{name}.md\n" for name in COMMANDS)
    return before + start + listed + re.sub(r"^ *- reference/commands/.*\n", "", rest, flags=re.MULTILINE)


def _overview() -> str:
    """Return tasks with their commands, and a list of all commands."""
    parts = [INTRODUCTION, "| task | command |\n|---|---|\n"]
    for situation in SITUATIONS:
        parts.append(f"| **{situation.name}** | |\n")
        parts += [f"| {task.wanted} | `{task.line}` |\n" for task in situation.tasks]
    parts += ["\n| command | purpose |\n|---|---|\n"]
    parts += [f"| [`kseg {name}`]({name}.md) | {line} |\n" for name, line in COMMANDS.items()]
    return "".join(parts)


def command_page(each: Help) -> str:
    """Return the page of a command: usage, examples, paragraphs, and a table of options for each heading."""
    parts = [f"# kseg {each.name}\n\n{each.paragraphs[0]}\n\n```text\n{each.usage}\n```\n"]
    if each.examples:
        parts.append("\n```sh\n" + "".join(f"{line}\n" for line in each.examples) + "```\n")
    parts += [f"\n{paragraph}\n" for paragraph in each.paragraphs[1:]]
    for heading, options in each.sections.items():
        about = f"\n{ABOUT[heading]}\n" if heading in ABOUT and len(options) > 1 else ""
        parts.append(f"\n## {heading}\n{about}{_table(options)}")
    parts.append(f"\n{NOTICE.format(f' {each.name}')}\n")
    return "".join(parts)


def _table(options: Iterable[Record]) -> str:
    rows = [f"| `{_cell(option)}` | {_cell(meaning)} |\n" for option, meaning in options]
    return "".join(["\n| option | meaning |\n|---|---|\n", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def man_page(each: Help) -> str:
    """Return a command's page in man's language."""
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
    for heading, options in each.sections.items():
        lines.append(f".SS {heading}")
        for option, meaning in options:
            lines += [".TP", f"\\fB{_man(option)}\\fR", _man(meaning)]
    return "\n".join([*lines, ".SH SEE ALSO", "\\fBkseg\\fR(1)", ""])


def main_man_page() -> str:
    """Return the page of `kseg` itself."""
    whole = Help("", cli)
    lines = ['.TH "KSEG" 1 "" "kseg"', ".ad l", ".SH NAME", f"kseg \\- {_man(whole.paragraphs[0])}"]
    lines += [".SH SYNOPSIS", _man(whole.usage), ".SH EXAMPLES"]
    for situation in SITUATIONS:
        lines.append(f".SS {_man(situation.name)}")
        for task in situation.tasks:
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
