"""Code stays in small pieces: commands, functions and modules have bounds, and names stand for one thing each."""

import ast
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.test_imports import MODULES, tree

COMMAND_LINES, FUNCTION_LINES, MODULE_LINES = 25, 60, 500
DATA = {"kseg.formats.schemas.consumer_offsets", "kseg.formats.schemas.protocol"}
"""Modules of nothing but data, made from Kafka's message schemas, may be longer."""
LONG = {"read_usual_records"}
"""The twin's quick way through records: calls would cost it what it gains."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(module: str) -> Iterator[Function]:
    return (node for node in ast.walk(tree(module)) if isinstance(node, Function))


def line_count(function: Function) -> int:
    """Lines of code: without decorators, signature and docstring."""
    first, *others = function.body
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    body = others if is_docstring else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]  # parsed code has lines


def is_command(function: Function) -> bool:
    return any("click.command" in ast.unparse(decorator) for decorator in function.decorator_list)


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("kseg.commands.")])
def test_command_is_options_a_call_and_output(module: str) -> None:
    long = {each.name: line_count(each) for each in functions(module) if is_command(each)}
    assert {name: count for name, count in long.items() if count > COMMAND_LINES} == {}


@pytest.mark.parametrize("module", MODULES)
def test_function_fits_on_a_screen(module: str) -> None:
    long = {each.name: line_count(each) for each in functions(module)}
    assert {name: count for name, count in long.items() if count > FUNCTION_LINES and name not in LONG} == {}


@pytest.mark.parametrize("module", [name for name in MODULES if name not in DATA])
def test_module_is_short_enough_to_be_read(module: str) -> None:
    assert len(MODULES[module].read_text(encoding="utf-8").splitlines()) <= MODULE_LINES


ABOUT = ("kseg.commands.", "kseg.output.", "kseg.layouts.", "kseg.formats.")
"""Packages whose modules are called after what they are about, as the module elsewhere that does it."""
KERNEL = "kseg.kernel."
"""Its Python twin has what the contract names."""


def test_modules_of_one_name_are_about_one_thing() -> None:
    places = defaultdict(list)
    for module in MODULES:
        name = module.rpartition(".")[2]
        is_package = MODULES[module].name == "__init__.py"
        if not is_package and not module.startswith(ABOUT):
            places[name].append(module)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def test_a_class_has_its_name_for_itself() -> None:
    places = defaultdict(set)
    for module in MODULES:
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].add(KERNEL if module.startswith(KERNEL) else module)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}
