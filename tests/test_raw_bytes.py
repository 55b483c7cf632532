"""Code that reads bytes has no literal numbers of a format: positions and struct formats come from declared fields."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import golden
from tests.loops import for_each

ROOT = golden.ROOT.parent
SOURCES = [
    path.relative_to(ROOT).as_posix()
    for suffix in ("*.py", "*.pyx", "*.pxi")
    for path in sorted((ROOT / "kseg").rglob(suffix))
]

# Places where numbers are allowed: the beginning of `path:function`, and the reason.
ALLOWED = {
    "kseg/codecs": "frames of gzip, snappy, lz4 and zstd, which have no grammar here",
    "kseg/formats/extent_lists.py": "structures of ext4 and xfs",
    "kseg/kernel/fast/bodies.pxi:take_lz4": "lz4's frame",
    "kseg/kernel/fast/bodies.pxi:blocks_of": "lz4's blocks",
    "kseg/kernel/fast/text.pxi": "UTF-8 and Base64",
    "kseg/kernel/fast/output.pxi:put_two": "digits of a time that is written",
    "kseg/kernel/fast/output.pxi:set_second": "the same",
    "kseg/decode/simple_values.py:parse_json": "the first byte of what a schema registry's serializers write",
    "kseg/decode/simple_values.py:_schema_id": "the same",
    "kseg/decode/simple_values.py:without_id": "the byte that an error shows",
    "kseg/protocol/": "sizes and keys of requests, needed before a schema is chosen",
    "kseg/kernel/twin/cleaning.py": "slots of a table that no file has",
    "kseg/coordinators/home_partition.py": "murmur2's blocks",
    "kseg/export/read/offset_accounts.py:_add_invalid": "a column of numbers",
}


class Found(NamedTuple):
    """A forbidden number: its function, and its expression."""

    function: str
    what: str


@for_each("path", SOURCES)
def test_raw_bytes_are_read_by_names(path: str) -> None:
    found = [each for each in numbers_in(path) if reason_for(path, each) is None]
    assert found == [], "take the field from kseg/formats/header_fields.py, or declarations.pxi"


def test_each_exception_is_needed() -> None:
    found = {(path, each) for path in SOURCES for each in numbers_in(path)}
    assert set(ALLOWED) == {reason_for(path, each) for path, each in found} - {None}


@pytest.mark.parametrize(
    "code",
    [
        "def read(raw: bytes): return raw[16]",
        "def read(raw: 'bytes | None'): return raw[2:4]",
        "def read(raw: memoryview, at: int): return raw[at + 8 : at + 12]",
        "def read(batch): return batch.raw[:8]",
        "def read(file): content = file.read(); return content[5]",
        "form = Struct('>qi')",
        "def read(raw: bytes): return unpack_from('>q', raw)",
        "def read(batch): return batch.attributes & 0x07",
        "is_control = flags & 32 != 0",
    ],
)
def test_numbers_in_python_are_found(code: str) -> None:
    assert len(list(numbers_in_python(code))) == 1


@pytest.mark.parametrize("code", ["at[16]", "int64_at(at + 43)", "buffer[2]"])
def test_numbers_in_the_kernel_are_found(code: str) -> None:
    text = (
        f'cdef int read(const uint8_t* at, const uint8_t[::1] buffer):\n    """at[16]"""\n    return {code}  # at + 8\n'
    )
    assert [each.function for each in numbers_in_kernel(text)] == ["read"]


def reason_for(path: str, found: Found) -> str | None:
    """Return the exception that allows it."""
    place = f"{path}:{found.function}"
    return next((beginning for beginning in ALLOWED if place.startswith(beginning)), None)


@cache
def numbers_in(path: str) -> list[Found]:
    """Return the numbers in a file."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return list(numbers_in_python(text) if Path(path).suffix == ".py" else numbers_in_kernel(text))


# --- Python ----------------------------------------------------------------------------------------------------------

RAW_TYPES = {"bytes", "bytearray", "memoryview", "Buffer", "Bytes"}
RAW_ATTRIBUTES = {"raw", "buffer", "key", "value"}
"""Attributes of batches, runs and records that hold raw bytes."""
OF_STRUCT = {"Struct", "pack", "unpack", "unpack_from", "pack_into", "calcsize", "iter_unpack"}


def numbers_in_python(text: str) -> Iterator[Found]:
    """Yield subscripts of raw bytes by numbers, masks of attributes, and struct formats."""
    tree = ast.parse(text)
    functions: list[ast.AST] = [tree]
    for function in functions:  # the list grows in the loop
        own, inner = nodes_of(function)
        functions += inner
        is_function = isinstance(function, ast.FunctionDef)
        raw = raw_names(function, own) if is_function else set()
        yield from (Found(function.name if is_function else "", what) for what in numbers_of(own, raw))


def numbers_of(own: list[ast.AST], raw: set[str]) -> Iterator[str]:
    for node in own:
        is_cut = isinstance(node, ast.Subscript) and is_raw(node.value, raw) and has_number(node.slice)
        if is_cut or is_mask(node) or (isinstance(node, ast.Call) and has_struct_format(node)):
            yield ast.unparse(node)


def nodes_of(function: ast.AST) -> tuple[list[ast.AST], list[ast.FunctionDef]]:
    """Return all nodes of a function or module except those of inner functions; and the inner functions."""
    own: list[ast.AST] = []
    inner: list[ast.FunctionDef] = []
    waiting = list(ast.iter_child_nodes(function))[::-1]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef):
            inner.append(node)
        else:
            own.append(node)
            waiting += list(ast.iter_child_nodes(node))[::-1]
    return own, inner


def raw_names(function: ast.FunctionDef, own: list[ast.AST]) -> set[str]:
    """Return names that hold raw bytes: by annotation, or by certain assignments."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    names = {argument.arg for argument in arguments if argument.annotation and is_raw_type(argument.annotation)}
    for node in own:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if is_raw_type(annotation):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if gives_raw(value, names):
                names.add(name)
    return names


def is_raw_type(annotation: ast.expr) -> bool:
    """Return True if an annotation is only raw bytes, or None."""
    types = {part.strip(" '\"") for part in ast.unparse(annotation).split("|")} - {"None"}
    return bool(types) and types <= RAW_TYPES


def gives_raw(value: ast.expr, names: set[str]) -> bool:
    """Return True if an expression reads bytes, converts to bytes, or cuts out of them."""
    match value:
        case ast.Call(func=ast.Attribute(attr="read" | "tobytes")):
            return True
        case ast.Call(func=ast.Name(id="bytes" | "bytearray" | "memoryview")):
            return True
        case ast.Subscript(value=inner, slice=ast.Slice()):
            return is_raw(inner, names)
    return False


def is_raw(node: ast.expr, names: set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in names
        case ast.Attribute(attr=name):
            return name in RAW_ATTRIBUTES
        case ast.BoolOp(values=values):
            return any(is_raw(value, names) for value in values)
    return False


def has_number(index: ast.expr) -> bool:
    """Return True if a subscript is a number, has one for a bound, or adds one above 1."""
    bounds = (index.lower, index.upper) if isinstance(index, ast.Slice) else (index,)
    added = [node.right for node in ast.walk(index) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)]
    return any(number_of(bound) >= 0 for bound in bounds) or any(number_of(addend) > 1 for addend in added)


def number_of(node: ast.expr | None) -> int:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else -1


def is_mask(node: ast.AST) -> bool:
    """Return True if a number masks bits of attributes; 0xFF, which gives a byte of them, doesn't count."""
    match node:
        case ast.BinOp(
            left=ast.Name(id=name) | ast.Attribute(attr=name), op=ast.BitAnd(), right=ast.Constant(value=mask)
        ):
            return name.endswith(("attributes", "flags")) and mask != 0xFF
    return False


def has_struct_format(call: ast.Call) -> bool:
    """Return True if a call has a literal struct format."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    first = call.args[0] if call.args else None
    return name in OF_STRUCT and isinstance(first, ast.Constant) and isinstance(first.value, str)


# --- Cython ----------------------------------------------------------------------------------------------------------

TOKEN = re.compile(r'"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*|\w+|[^\w\s]')
FUNCTION = re.compile(r"^ *(?:cdef|cpdef|def)\b[^\n(=]*?(\w+)\(", re.MULTILINE)
RAW_POINTER = re.compile(r"const uint8_t(?:\*|\[::1\]) *(\w+)")
NUMBER = re.compile(r"\d+")


def numbers_in_kernel(text: str) -> Iterator[Found]:
    """Yield subscripts of raw bytes by numbers but 0, and numbers above 1 added to a place among them."""
    raw = set(RAW_POINTER.findall(text))
    functions = [(match.start(), match[1]) for match in FUNCTION.finditer(text)]
    tokens = [match for match in TOKEN.finditer(text) if not match[0].startswith("#")]
    for name, sign, number, *_ in zip(tokens, tokens[1:], tokens[2:], strict=False):
        least = {"[": 1, "+": 2}.get(sign[0])
        if name[0] in raw and least is not None and NUMBER.fullmatch(number[0]) and int(number[0]) >= least:
            function = max((each for each in functions if each[0] < name.start()), default=(0, ""))[1]
            yield Found(function, f"{name[0]}{sign[0]}{number[0]}")
