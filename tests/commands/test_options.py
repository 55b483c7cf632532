"""The table of options: each option of each command is a row, and each row is used and documented."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from kseg.cli import COMMANDS, cli
from kseg.commands.options.command import TableCommand
from kseg.commands.options.row import Option, prefix_of, takes
from kseg.commands.options.table import ARGUMENTS, OPTIONS
from kseg.commands.options.types import NewPath
from kseg.output.progress import Talk
from tests.loops import for_each
from tests.run import kseg

ROWS = [row for _, rows in OPTIONS for row in rows]
HEADINGS = ["Input", "Selection", "Output", "Behaviour", "Decoding", "Security", "Other"]
LONGEST_LINE = 60
TWO_TYPES = {"--check", "--command-config", "--compression", "--like", "--to"}
"""Flags whose values differ by command: a codec's level, URLs, files that are only named, evidence, copies."""


def parameters_of(name: str) -> list[click.Parameter]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command.params


def is_new_path(row: Option) -> bool:
    return isinstance(row.type, NewPath)


def flags_of(row: Option) -> list[str]:
    return row.flags.replace("/", " ").split()


def type_of(row: Option) -> Any:
    if isinstance(row.type, tuple):
        return click.Choice
    return row.type if isinstance(row.type, type) else type(row.type)


@for_each("name", COMMANDS)
def test_the_options_of_a_command_are_rows_of_the_table(name: str) -> None:
    own = [flag for row in ROWS if takes(row, name) for flag in flags_of(row)]
    assert [flag for flag, count in Counter(own).items() if count > 1] == []
    options = [each for each in parameters_of(name) if isinstance(each, click.Option)]
    assert sorted(flag for each in options for flag in (*each.opts, *each.secondary_opts)) == sorted(own)


FOR_ALL = {"quiet", "verbose", "color", "raw", "input_name", "max_unpacked", "remotes", "private_keys", "evidence"}
"""Options about a command's surroundings: its inputs and its messages."""


def fields_of(kind: type) -> set[str]:
    found = set()
    for name, part in kind.__annotations__.items():
        found |= fields_of(part) if hasattr(part, "_fields") else {name, "progress"} if part is Talk else {name}
    return found


@for_each("name", COMMANDS)
def test_each_option_is_a_field_of_its_commands_values(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert isinstance(command, TableCommand)
    assert {str(each.name) for each in command.params} - FOR_ALL <= fields_of(command.values)


@for_each("name", COMMANDS)
def test_an_option_that_is_not_given_has_the_value_that_click_gives_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert isinstance(command, TableCommand)
    context = command.make_context(name, [], resilient_parsing=True)
    monkeypatch.setenv(f"{prefix_of(name)}OTHER", "")  # with any variable of the command, click processes all options
    by_click = command.make_context(name, [], resilient_parsing=True)
    assert context.params == by_click.params
    sources = [{each: own.get_parameter_source(each) for each in own.params} for own in (context, by_click)]
    assert sources[0] == sources[1]


def test_every_row_is_of_known_commands() -> None:
    named = {command for row in (*ROWS, *ARGUMENTS) for command in row.commands.split()}
    assert named <= {*COMMANDS, "*"}
    assert [row.flags for row in ROWS if not row.commands.split()] == []


def test_a_flag_of_several_rows_has_one_type() -> None:
    kinds = defaultdict(set)
    for row in ROWS:
        for flag in flags_of(row):
            kinds[flag].add(type_of(row))
    assert {flag for flag, types in kinds.items() if len(types) > 1} == TWO_TYPES


def sections(page: str) -> Iterator[str]:
    return (line[:-1] for line in page.splitlines() if line.endswith(":") and not line.startswith(" "))


@for_each("name", COMMANDS)
def test_help_has_the_options_under_headings(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    found = list(sections(command.get_help(click.Context(command, info_name=name))))
    assert found == [heading for heading in HEADINGS if heading in found]
    assert found[-1] == "Other"


@for_each("name", COMMANDS)
def test_a_command_is_described_by_one_short_line(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert (command.help or "").splitlines()[0] == COMMANDS[name]
    assert len(COMMANDS[name]) < LONGEST_LINE


@for_each("name", [name for name in COMMANDS if any(takes(row, name) and is_new_path(row) for row in ROWS)])
def test_standard_output_is_no_directory(name: str, tmp_path: Path) -> None:
    flag = next(row.flags for row in ROWS if takes(row, name) and is_new_path(row))
    ran = kseg([name, ".", flag, "-"], tmp_path)
    assert ran.status == 2
    assert f"invalid value for '{flag}': kseg can't write this to standard output; name a path".encode() in ran.stderr
    assert list(tmp_path.iterdir()) == []
