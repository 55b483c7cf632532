"""The site's reference has each option of each command, each exit status, and each public name with its docstring."""

import ast
import inspect
import re

import click

import kseg
from kseg.cli import CLOSED_PIPE, COMMANDS, cli
from kseg.system.signals import ENDING
from tests import golden
from tests.help.source import kseg_source, last_name
from tests.loops import for_each

ROOT = golden.ROOT.parent
REFERENCE = ROOT / "docs/reference"
_AFTER_SIGNAL = 128


@for_each("name", COMMANDS)
def test_each_option_of_a_command_has_its_row(name: str) -> None:
    own = (REFERENCE / "commands" / f"{name}.md").read_text(encoding="utf-8")
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    names = [max(each.opts, key=len) for each in options]
    assert [each for each in names if not has_row(each, own)] == []


def has_row(option: str, text: str) -> bool:
    """Return True if a line of a table, or of a command's help, begins with an option."""
    return re.search(rf"^[ |`]*(?:-\w[ ,/|`]+)?{option}(?![\w-])", text, re.MULTILINE) is not None


def test_each_exit_status_has_its_row() -> None:
    page = (REFERENCE / "exit-status.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d, ]+) \|", page, re.MULTILINE)
    assert {int(number) for row in rows for number in row.split(",")} >= statuses()


def statuses() -> set[int]:
    """Return all exit statuses: of kseg, of its exceptions, of a closed pipe, of a signal."""
    found = {0, CLOSED_PIPE} | {_AFTER_SIGNAL + number for number in ENDING}
    source = kseg_source()
    for name in source.errors & source.classes.keys():
        for _, node in source.classes[name]:
            found |= {number for each in node.body for number in _assignments(each)}
    return found | {
        number
        for _, call in source.calls.get("exit", ())
        for argument in call.args
        for number in _numbers(argument)
        if last_name(call.func) == "exit"
    }


def _assignments(node: ast.stmt) -> list[int]:
    match node:
        case ast.Assign(targets=[ast.Name(id="status")], value=value):
            return _numbers(value)
    return []


def _numbers(node: ast.expr) -> list[int]:
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and type(each.value) is int]


def test_each_public_name_is_on_the_site() -> None:
    page = (ROOT / "docs/python/reference.md").read_text(encoding="utf-8")
    assert [name for name in kseg.__all__ if not re.search(rf"^::: kseg\.{name}$", page, re.MULTILINE)] == []


@for_each("name", kseg.__all__)
def test_each_public_name_says_what_it_is(name: str) -> None:
    found = getattr(kseg, name)
    assert inspect.getdoc(found), name
    members = inspect.getmembers(found) if inspect.isclass(found) else []
    assert [member for member, value in members if is_own(member, value) and not inspect.getdoc(value)] == []


def is_own(name: str, value: object) -> bool:
    """Return True if a member is public and kseg's own, and not a field or value."""
    is_code = isinstance(value, property) or inspect.isfunction(value) or inspect.ismethod(value)
    module = getattr(value.fget if isinstance(value, property) else value, "__module__", "")
    return is_code and not name.startswith("_") and str(module).startswith("kseg")
