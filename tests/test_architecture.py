"""The order of kseg's packages: docs/developers/architecture.md lists it, and each rule names all offenders."""

import re
import subprocess
import sys
from functools import cache

import pytest

from tests.architecture import HOMES, ROOT, House, compiled_modules, documented_floors, sources
from tests.start import loaded_by

KNOWN_UPWARD_IMPORTS: set[str] = set()
"""Known upward imports. Delete entries that no longer exist; add none."""
KNOWN_TEXT_MAKERS = {"kseg.layouts.record_columns -> kseg.output.rows"}
"""Text made below the package `text`: templates that the kernel fills with records have quoted CSV values."""
CACHES = {"kseg.codecs.zstd: _of_thread"}
"""Allowed state of the process: its content doesn't depend on the time of its creation."""


@cache
def house() -> House:
    return House(sources(), documented_floors(), compiled_modules())


def test_imports_point_downwards() -> None:
    assert house().modules_on_no_floor() == []
    assert house().empty_floors() == []
    assert house().upward_imports() == KNOWN_UPWARD_IMPORTS


def test_rooms_below_text_make_no_text() -> None:
    assert house().text_made_below("text") == KNOWN_TEXT_MAKERS


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert house().circle() == []


def test_heavy_libraries_are_imported_at_module_level_only_at_home() -> None:
    assert house().libraries_away_from_home() == set()


def test_help_imports_nothing_heavy() -> None:
    slow = {*HOMES, "concurrent.futures", "importlib.metadata", "kseg.kernel.fast", "kseg.reading.log_file"}
    assert loaded_by(["--help"]) & slow == set()


def test_public_names_are_listed_before_they_are_imported() -> None:
    code = "import kseg; print(set(kseg.__all__) - set(dir(kseg)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout == "set()\n"


def test_nothing_at_module_level_changes() -> None:
    assert house().changing_values() == CACHES


@pytest.mark.parametrize("room", ["cluster", "coordinators", "doctor", "index", "log", "tiered", "verify"])
def test_what_reads_disks_takes_no_store_that_fails_for_files_that_lack(room: str) -> None:
    """Readers of a file may ignore a FileError; KsegError includes failures of stores."""
    caught = re.compile(r"(except|suppress\().*\bKsegError\b(?!.*# raised again)")
    found = [
        f"{path.name}: {line.strip()}"
        for path in (ROOT / "kseg" / room).rglob("*.py")
        for line in path.read_text().splitlines()
        if caught.search(line)
    ]
    assert found == []


# --- the rules find violations ----------------------------------------------------------------------------------------

FLOORS = [["cli"], ["export/run"], ["export", "verify"], ["log"], ["errors"]]


@pytest.mark.parametrize(
    ("module", "target"),
    [
        ("kseg.errors", "kseg.cli"),
        ("kseg.export.plan", "kseg.export.run"),
        ("kseg.log.a", "kseg.verify.checks"),
    ],
)
@pytest.mark.parametrize("statement", ["import {}", "from {} import name", "def late():\n    from {} import name"])
def test_an_upward_import_is_found(module: str, target: str, statement: str) -> None:
    planted = House({module: statement.format(target), target: ""}, FLOORS)
    assert planted.upward_imports() == {f"{module} -> {target}"}
    assert House({module: "", target: statement.format(module)}, FLOORS).upward_imports() == set()


@pytest.mark.parametrize(
    "statement", ["import kseg.log.fast", "from kseg.log import fast", "from kseg.log.fast import name"]
)
def test_an_upward_import_of_a_compiled_module_is_found(statement: str) -> None:
    planted = House({"kseg.errors": statement}, FLOORS, ["kseg.log.fast"])
    assert planted.upward_imports() == {"kseg.errors -> kseg.log.fast"}


def test_an_upward_import_of_the_compiled_kernel_is_found() -> None:
    planted = House({"kseg.errors": "import kseg.kernel.fast"}, documented_floors(), compiled_modules())
    assert planted.upward_imports() == {"kseg.errors -> kseg.kernel.fast"}


def test_text_made_below_is_found() -> None:
    names = ("kseg.text.a", "kseg.log.a", "kseg.output.rows")
    modules = dict.fromkeys(names, "import kseg.output.rows")
    assert House(modules, [["text"], ["log"], ["output"]]).text_made_below("text") == {"kseg.log.a -> kseg.output.rows"}


def test_an_import_of_a_neighbour_on_the_same_floor_is_found() -> None:
    planted = House({"kseg.export.plan": "import kseg.verify.checks", "kseg.verify.checks": ""}, FLOORS)
    assert planted.upward_imports() == {"kseg.export.plan -> kseg.verify.checks"}


def test_a_module_on_no_floor_is_found() -> None:
    assert House({"kseg.cli": "", "kseg.drawer.things": ""}, FLOORS).modules_on_no_floor() == ["kseg.drawer.things"]


def test_an_empty_floor_is_found() -> None:
    assert House({"kseg.cli": "", "kseg.export.plan": "", "kseg.verify.checks": ""}, FLOORS).empty_floors() == [
        "errors",
        "export/run",
        "log",
    ]


def test_a_circle_is_found() -> None:
    planted = House({"kseg.log.a": "import kseg.log.b", "kseg.log.b": "def f():\n    import kseg.log.a"}, FLOORS)
    assert set(planted.circle()) == {"kseg.log.a", "kseg.log.b"}


def test_a_library_away_from_home_is_found() -> None:
    planted = House({"kseg.log.a": "import lz4.frame", "kseg.log.b": "def f():\n    import lz4.frame"}, FLOORS)
    assert planted.libraries_away_from_home() == {"kseg.log.a: lz4"}


@pytest.mark.parametrize(
    "change",
    [
        "def f():\n    TABLE['key'] = 1",
        "def f():\n    del TABLE['key']",
        "def f():\n    TABLE.update(key=1)",
        "def f():\n    global TABLE\n    TABLE = {}",
        "class Cache:\n    def f(self):\n        return TABLE.setdefault('key', 1)",
        "def f():\n    TABLE.attribute = 1",
    ],
)
def test_a_table_that_changes_is_found(change: str) -> None:
    assert House({"kseg.log.a": f"TABLE = {{}}\n{change}"}, FLOORS).changing_values() == {"kseg.log.a: TABLE"}


@pytest.mark.parametrize("change", ["self.last = 1", "self.known.append(1)", "self.known[1] = 2"])
def test_an_object_that_changes_itself_is_found(change: str) -> None:
    kept = f"class Kept:\n    def note(self):\n        {change}"
    user = "from kseg.log.a import Kept as K\nLAST = K()"
    assert House({"kseg.log.a": f"{kept}\nOWN = Kept()"}, FLOORS).changing_values() == {"kseg.log.a: OWN"}
    assert House({"kseg.log.a": kept, "kseg.cli": user}, FLOORS).changing_values() == {"kseg.cli: LAST"}


def test_an_object_that_is_complete_when_it_is_made_is_allowed() -> None:
    made = "class Made:\n    def __init__(self):\n        self.first = 1\nONE = Made()"
    assert House({"kseg.log.a": made}, FLOORS).changing_values() == set()


@pytest.mark.parametrize("use", ["def f():\n    return TABLE['key']", "def f():\n    TABLE = {}\n    TABLE['key'] = 1"])
def test_a_table_that_is_only_read_is_allowed(use: str) -> None:
    assert House({"kseg.log.a": f"TABLE = {{'key': 0}}\n{use}"}, FLOORS).changing_values() == set()
