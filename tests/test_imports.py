"""Imports point downwards, as docs/developers/architecture.md orders them; heavy libraries wait until they are used."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests import golden
from tests.run import KERNELS

ROOT = golden.ROOT.parent
ARCHITECTURE = (ROOT / "docs" / "developers" / "architecture.md").read_text(encoding="utf-8")

# Libraries that are slow to import or may not be there, and the packages whose modules may import them at their top.
HOMES: dict[str, tuple[str, ...]] = {
    "construct": ("kseg.formats", "kseg.decode", "kseg.explain"),
    "crc32c": (),
    "fastavro": (),
    "lz4": (),
    "duckdb": ("kseg.query",),
    "pyarrow": ("kseg.arrow", "kseg.export", "kseg.query"),
    "pyspark": ("kseg.spark",),
    "rich": ("kseg.output", "kseg.browse.screen"),
    "snappy": (),
    "textual": ("kseg.browse.screen",),
    "zstandard": (),
}
SLOW = {*HOMES, "concurrent.futures", "importlib.metadata", "kseg.kernel.fast", "kseg.reading.log_file"}


def modules() -> dict[str, Path]:
    """Every module of kseg, by its dotted name."""
    found = {}
    for path in sorted((ROOT / "kseg").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imported(nodes: Iterator[ast.AST]) -> Iterator[str]:
    """Dotted names of the modules that some nodes import; of kseg's own the module, not the name in it."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES or is_compiled(whole) else str(node.module)


def is_compiled(name: str) -> bool:
    return (ROOT / name.replace(".", "/")).with_suffix(".pyx").exists()


def tree(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def imports_of_kseg(name: str) -> set[str]:
    return {target for target in imported(ast.walk(tree(name))) if target.split(".")[0] == "kseg"}


def imports_at_top(name: str) -> set[str]:
    """Top-level packages imported when the module is: not in functions, and not for type checkers only."""

    def run_at_import(node: ast.AST) -> Iterator[ast.AST]:
        for child in ast.iter_child_nodes(node):
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            if not is_function and not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
                yield child
                yield from run_at_import(child)

    return {target.split(".")[0] for target in imported(run_at_import(tree(name)))}


def layers() -> list[str]:
    """Parts of kseg from the top down, as the documentation lists them."""
    block = re.search(r"^```layers\n(.*?)^```", ARCHITECTURE, re.MULTILINE | re.DOTALL)
    assert block is not None
    return [line.split()[0] for line in block[1].splitlines()]


def layer(name: str) -> str:
    """`kseg.formats.schemas.schema` is of `formats`, kseg's own `__init__` of `kseg`."""
    return [*name.split("."), "kseg"][1]


def test_every_part_of_kseg_has_its_layer_in_the_documentation() -> None:
    assert set(layers()) == {layer(name) for name in MODULES}


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_downwards(name: str) -> None:
    order = layers()
    own = order.index(layer(name))
    assert {target for target in imports_of_kseg(name) if order.index(layer(target)) < own} == set()


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {name: imports_of_kseg(name) - {name} for name in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("name", MODULES)
def test_heavy_libraries_are_imported_at_the_top_only_at_home(name: str) -> None:
    strangers = {library for library in imports_at_top(name) & set(HOMES) if not is_at_home(name, HOMES[library])}
    assert strangers == set()


def is_at_home(name: str, homes: tuple[str, ...]) -> bool:
    return any(name == home or name.startswith(f"{home}.") for home in homes)


def loaded_by(arguments: list[str]) -> set[str]:
    """Modules that are there after kseg ran, in an interpreter of its own."""
    code = "import sys; from kseg.cli import main; main(sys.argv[1:]); loaded = list(sys.modules)"
    code += "; import json; print(json.dumps(loaded), file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(ran.stderr.splitlines()[-1]))


def test_help_imports_nothing_heavy() -> None:
    assert loaded_by(["--help"]) & SLOW == set()


def test_dump_of_an_uncompressed_log_imports_no_grammar_and_no_codec() -> None:
    sample = golden.ROOT / "docs" / "test-1-0" / "00000000000000203000.log"
    slow_to_import = {"construct", "kseg.formats.varint_writing", "lz4", "pyarrow", "rich", "snappy", "zstandard"}
    if "fast" in KERNELS:  # the twin makes classes of its own
        slow_to_import |= {"base64", "dataclasses", "json"}
    assert loaded_by(["dump", str(sample)]) & slow_to_import == set()


def test_lookup_imports_nothing_that_it_does_not_use() -> None:
    sample = golden.ROOT / "docs" / "test-1-0"
    loaded = loaded_by(["lookup", str(sample), "--offset", "203500"])
    assert (
        loaded & {"construct", "kseg.log.select.record_picker", "kseg.log.salvage.salvage_plan", "rich", "json"}
        == set()
    )


def test_garbage_is_collected_while_a_command_runs(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import gc\ndef decode(*_): return str(gc.isenabled())\n")
    sample = golden.ROOT / "docs" / "test-1-0" / "00000000000000203000.log"
    decoder = ["--value-decoder", "own:decode", "--fields", "value", "--limit", "1"]
    ran = subprocess.run(
        [sys.executable, "-m", "kseg", "dump", *decoder, str(sample)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "value: True\n"


def test_public_api_is_listed_before_it_is_imported() -> None:
    code = "import kseg; print(set(kseg.__all__) - set(dir(kseg)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout == "set()\n"


def test_what_stands_for_inspect_has_its_numbers() -> None:
    put_off = (
        "import sys; sys.modules.pop('inspect', 0); import kseg.system.late_inspect as late; late.put_off_inspect()"
    )
    code = f"""
{put_off}
import inspect as stand_in
del sys.modules["inspect"]
import inspect
names = [name for name in dir(type(stand_in)) if name.startswith("CO_")]
print(len(names), [name for name in names if getattr(stand_in, name) != getattr(inspect, name)])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout == "7 []\n"


def test_a_process_of_kseg_imports_inspect_only_when_something_of_it_is_asked_for() -> None:
    code = """
import sys
from kseg.__main__ import main
main()
loaded = list(sys.modules)
import inspect
print("tokenize" in loaded, inspect.cleandoc("  a\\n    b"), inspect.signature(main), file=sys.stderr)
"""
    sample = golden.ROOT / "docs" / "test-1-0" / "00000000000000203000.log"
    program = [sys.executable, "-c", code, "dump", str(sample)]
    ran = subprocess.run(program, capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stderr.endswith("False a\nb () -> int\n")
