"""docs/reference/public-interface.txt: each part of kseg that programs may rely on, one line per part.

The parts come from the tables that declare them. docs/reference/compatibility.md says how they may change.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow as pa

import kseg
from kseg.arrow import ArrowOptions, schema_of
from kseg.cli import COMMANDS, cli
from kseg.commands.guide import VARIABLES
from kseg.doctor.kinds import OWN
from kseg.export import report, runs_table
from kseg.export.columns.header_maps import HEADER_MAP
from kseg.export.columns.unwrapped import OP, ORIGIN
from kseg.export.settings import COLUMNS
from kseg.findings.disk_kinds import CLUSTER_FINDINGS
from kseg.findings.kinds import FINDINGS
from kseg.findings.tier_kinds import TIER_FINDINGS
from kseg.spark.options import DEFAULTS
from tools.generators.streams import objects

STATUSES = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "exit-status.md"
MADE_BY_CALLERS = ("kseg.errors", "kseg.writer.")
"""Modules of classes that callers construct; `kseg.open` and other functions return instances of the others."""
DASH = "\N{EN DASH}"
Method = ast.FunctionDef | ast.AsyncFunctionDef


def page() -> str:
    """Return the lines, sorted."""
    parts = (_options(), _variables(), _json_fields(), _findings(), _statuses(), _python(), _tables(), _spark_options())
    return "".join(f"{line}\n" for line in sorted(line for part in parts for line in part))


def _options() -> Iterator[str]:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        yield f"command {name}"
        for parameter in command.params:
            if not getattr(parameter, "hidden", False):
                yield f"command {name} {_flags(parameter)}{_value(parameter)}{_default(parameter)}"


def _flags(parameter: click.Parameter) -> str:
    """Return the flags of an option, or the name of an argument's value."""
    if isinstance(parameter, click.Argument):
        return str(parameter.metavar or parameter.name)
    flags = sorted([*parameter.opts, *parameter.secondary_opts], key=lambda flag: (flag.startswith("--"), flag))
    return "/".join(flags)


def _value(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument) or (isinstance(parameter, click.Option) and parameter.is_flag):
        return ""
    marks = f"{' (repeatable)' * parameter.multiple}{' (required)' * parameter.required}"
    if isinstance(parameter.type, click.Choice):
        return f" {'|'.join(map(str, parameter.type.choices))}{marks}"
    return f" {parameter.metavar or parameter.type.name.upper()}{marks}"


def _default(parameter: click.Parameter) -> str:
    """Return a default that isn't absent, off or empty; which value click has for these depends on its release."""
    default = parameter.default
    return f" = {default}" if default and isinstance(default, str | int | float) and default is not True else ""


def _variables() -> Iterator[str]:
    return (f"environment {name}" for name in VARIABLES)


def _json_fields() -> Iterator[str]:
    for command, kinds in objects().items():
        for name, kind in kinds.items():
            for field in kind.fields:
                marks = f"{'?' * field.may_be_null}{' (may be missing)' * field.may_be_missing}"
                yield f"json {command} {name} {field.name}: {field.kind}{marks}"


def _findings() -> Iterator[str]:
    kinds = FINDINGS | TIER_FINDINGS | CLUSTER_FINDINGS | OWN
    return (f"finding {name}: {kind.severity}" for name, kind in kinds.items())


def _statuses() -> Iterator[str]:
    """Yield the statuses in the tables of the page; a dash stands for a status that a command never has."""
    text = STATUSES.read_text(encoding="utf-8")
    for numbers in re.findall(r"^\| ([\d, ]+) \| [A-Z]", text, re.MULTILINE):
        yield from (f"status {number}" for number in numbers.split(", "))
    for name, *meanings in re.findall(r"^\| `kseg ([\w-]+)` \| (.+?) \| (.+?) \|$", text, re.MULTILINE):
        yield from (f"status of {name}: {number}" for number, meaning in enumerate(meanings) if meaning != DASH)


def _python() -> Iterator[str]:
    """Yield the names of the API, the members of its classes, and the keywords that methods take as `**options`."""
    lines = set(_names())
    yield from lines
    api = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("kseg.api.")]
    known = {name: value for each in api for name, value in each.items()}
    for name in {found for line in lines for found in re.findall(r"\bUnpack\[(\w+)\]", line)}:
        yield from (f"python {name}: {keyword}" for keyword in known[name].__annotations__)


def _names() -> Iterator[str]:
    for name in kseg.__all__:
        value = getattr(kseg, name)
        if inspect.isclass(value):
            yield f"python {name}"
            yield from (f"python {name}{member}" for member in _members(value))
        else:
            (function,) = ast.parse(inspect.getsource(value)).body
            assert isinstance(function, Method)
            yield f"python {name}{_signature(function)}"


def _members(kind: type) -> set[str]:
    """Return the public members of a class and of those of its bases that kseg defines, as the source spells them."""
    found: dict[str, str] = {}
    for each in reversed([base for base in kind.__mro__ if base.__module__.startswith("kseg.")]):
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        assert isinstance(definition, ast.ClassDef)
        for node in definition.body:
            found |= dict(_declared(node))
    makes = "__init__" if kind.__module__.startswith(MADE_BY_CALLERS) else ""
    return {text for name, text in found.items() if name == makes or not name.startswith("_")}


def _declared(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each member that a statement of a class declares."""
    match node:
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
            yield name, f".{name}: {_type(annotation)}"
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, f".{name} = {ast.unparse(value)}"
        case ast.FunctionDef(name="__init__"):
            yield node.name, _signature(node)
            for each in ast.walk(node):
                if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
                    yield each.attr, f".{each.attr}"
        case ast.FunctionDef(name=name):
            is_property = any("property" in ast.unparse(each) for each in node.decorator_list)
            result = "" if node.returns is None else f": {_type(node.returns)}"
            yield name, f".{name}{result if is_property else _signature(node)}"


def _signature(function: Method) -> str:
    arguments = function.args
    if arguments.args and arguments.args[0].arg in ("self", "cls"):
        arguments.args.pop(0)
    result = "" if function.returns is None or function.name == "__init__" else f" -> {_type(function.returns)}"
    return f"({ast.unparse(arguments)}){result}".replace("'", "").replace('"', "")


def _type(annotation: ast.expr) -> str:
    return ast.unparse(annotation).strip("'\"")


def _tables() -> Iterator[str]:
    """Yield the columns of the tables that exports write, with their Arrow types."""
    options = ArrowOptions(headers=True, batch_columns=True, has_milliseconds=True)
    decoded = [pa.field(name, pa.string()) for name in COLUMNS.values()]
    tables = {
        "records": [*schema_of(options), *decoded],
        "records with --headers map": [pa.field("headers", HEADER_MAP)],
        "database rows": [*ORIGIN, OP],
        "damages": report.SCHEMA,
        "runs": runs_table.SCHEMA,
    }
    return (f"table {name} {field.name}: {field.type}" for name, fields in tables.items() for field in fields)


def _spark_options() -> Iterator[str]:
    return (f"spark option {name}{'' if value is None else f' = {value}'}" for name, value in DEFAULTS.items())
