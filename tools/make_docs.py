"""Writes docs/cli.md, docs/findings.md and man pages out of kseg itself; `--check` says whether they are up to date.

python tools/make_docs.py                    writes docs/cli.md and docs/findings.md
python tools/make_docs.py --check            ends with 1 if it would change one of them
python tools/make_docs.py --man build/man    writes kseg.1, kseg-dump.1, … there
"""

import argparse
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from kseg.cli import COMMANDS, cli
from kseg.log.verify.finding_kinds import FINDINGS, Severity

DOCS = Path(__file__).resolve().parent.parent / "docs"
INTRODUCTION = """# The command line

Made from `kseg COMMAND --help` by `python tools/make_docs.py`: edit the commands, not this page.

`KSEG_COMMAND_OPTION` in the environment sets an option: `KSEG_DUMP_OUTPUT=json`. `NO_COLOR` keeps colours away. Long
tables go through `KSEG_PAGER`, or else `PAGER`, or else `less`, on a terminal; `cat` means none.

`-o` names the form of what is printed or, on commands that make a directory (`salvage`, `reindex`, `build`, `slice`,
`retain`), that directory; the form of their report is `--format`, where there is a choice.

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


def commands_page() -> str:
    """`docs/cli.md`: all commands."""
    parts = [INTRODUCTION, "| command | what it does |\n|---|---|\n"]
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


def findings_page() -> str:
    """`docs/findings.md`: all findings, by severity."""
    lines = [
        "# What `kseg verify` finds",
        "",
        "Errors and warnings make the exit status 1; notes don't: they are counted, and listed with `-v`. `kseg verify"
        " --explain ID` prints an entry.",
        "Each next step was carried out on damaged disks of a 4.3.1 broker, stopped in order and killed before, by"
        " `tests/log/test_advice_kafka.py`: the broker starts, and nothing is found then but holes that no replica"
        " fills.",
        "This page is made from the table in `kseg/log/verify/finding_kinds.py`.",
        "",
    ]
    for severity in Severity:
        lines += [f"## {severity.capitalize()}s", "", "| id | meaning | risk | next step |", "|---|---|---|---|"]
        lines += [
            f"| `{name}` | {kind.meaning} | {kind.risk} | {kind.next_step} |"
            for name, kind in FINDINGS.items()
            if kind.severity is severity
        ]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def man_page(each: Help) -> str:
    """A command's page in man's language."""
    title = f"kseg-{each.name}"
    lines = [f'.TH "{title.upper()}" 1 "" "kseg"', ".SH NAME", f"{_man(title)} \\- {_man(COMMANDS[each.name])}"]
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
    lines = ['.TH "KSEG" 1 "" "kseg"', ".SH NAME", f"kseg \\- {_man(whole.paragraphs[0])}"]
    lines += [".SH SYNOPSIS", _man(whole.usage), ".SH COMMANDS"]
    for name, line in COMMANDS.items():
        lines += [".TP", f"\\fBkseg-{_man(name)}\\fR(1)", _man(line)]
    return "\n".join([*lines, ""])


def _man(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"^([.'])", r"\\&\1", text)
    return "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in text)


def write_man_pages(directory: Path) -> None:
    """Writes all of them."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "kseg.1").write_text(main_man_page(), encoding="utf-8")
    for each in helps():
        (directory / f"kseg-{each.name}.1").write_text(man_page(each), encoding="utf-8")


def main() -> int:
    """Runs the command line; gives the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="only say whether the pages are up to date")
    parser.add_argument("--man", type=Path, metavar="DIRECTORY", help="write man pages there, and nothing else")
    arguments: Any = parser.parse_args()
    if arguments.man is not None:
        write_man_pages(arguments.man)
        return 0
    status = 0
    for name, made in (("cli.md", commands_page()), ("findings.md", findings_page())):
        page = DOCS / name
        if not arguments.check:
            page.write_text(made, encoding="utf-8")
            continue
        is_same = page.exists() and page.read_text(encoding="utf-8") == made
        print(f"docs/{name} is up to date" if is_same else f"docs/{name} is old: run python tools/make_docs.py")
        status |= int(not is_same)
    return status


if __name__ == "__main__":
    sys.exit(main())
