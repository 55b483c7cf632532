"""`-h` is a first screen: a command's purpose, three examples, and the options that most people need."""

import re

import click

from kseg.cli import COMMANDS, cli
from kseg.commands.guide import FIRST_OPTIONS
from tests import golden
from tests.loops import for_each
from tests.run import kseg

LINES, COLUMNS = 24, 80


@for_each("name", COMMANDS)
def test_it_fits_a_screen(name: str) -> None:
    ran = kseg([name, "-h"], golden.ROOT)
    lines = ran.stdout.decode().splitlines()
    assert ran.status == 0
    assert len(lines) <= LINES
    assert [line for line in lines if len(line) > COLUMNS] == []
    assert any(line.startswith(f"  kseg {name}") for line in lines)
    assert f"`kseg {name} --help` explains all" in lines[-1]


@for_each("name", FIRST_OPTIONS)
def test_its_options_are_the_commands_own(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    there = {flag for each in command.params for flag in each.opts}
    assert [option for option in FIRST_OPTIONS[name].split() if option not in there] == []
    shown = re.findall(r"(?:^  |, )(--[\w-]+)", kseg([name, "-h"], golden.ROOT).stdout.decode(), re.MULTILINE)
    assert len(shown) >= min(3, len(FIRST_OPTIONS[name].split()))


def test_every_command_with_work_has_its_first_options() -> None:
    assert set(COMMANDS) - set(FIRST_OPTIONS) == {"help", "completion"}
