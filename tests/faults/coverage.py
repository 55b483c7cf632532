"""The tests that reach each fault, recorded by probes in a copy of the tree whose tests all run once."""

import ast
import json
from collections import defaultdict
from pathlib import Path

from tests.faults.fault import Fault
from tests.faults.worker import BUILD, Worker

MAP = BUILD / "map.json"
PROBES = "kseg_fault_probes"
_PROBE_MODULE = """
import os

_seen = set()


def hit(fault):
    known = fault, os.environ.get("PYTEST_CURRENT_TEST", "")
    if known not in _seen:
        _seen.add(known)
        try:
            with open(f"{FOLDER}/{os.getpid()}", "a") as hits:
                hits.write(f"{known[0]}\\t{known[1]}\\n")
        except OSError:
            pass
"""
"""Source of the function that probes call when FOLDER is filled in: it records the test that reached a fault."""
_PROBE = f"__import__('kseg.{PROBES}', fromlist=['hit']).hit({{name!r}})"
_BODIES = ("body", "orelse", "finalbody")


def make_map(faults: list[Fault]) -> None:
    """Run the suite with probes; write the map: the tests of each fault (null: all), the seconds of each test."""
    worker = Worker("worker-map")
    hits = worker.root / "build" / "hits"
    hits.mkdir(parents=True)
    module = worker.root / "kseg" / f"{PROBES}.py"
    module.write_text(f"FOLDER = {str(hits)!r}\n{_PROBE_MODULE}", encoding="utf-8")
    everywhere = _insert_probes(worker.root, faults)
    _, log = worker.run("-n", "auto", "--dist", "loadfile")
    seconds: dict[str, float] = defaultdict(float)
    for _, duration, test in log:
        seconds[test] += float(duration)
    by_file: dict[str, list[str]] = defaultdict(list)
    for test in seconds:
        by_file[test.partition("::")[0]].append(test)
    covering = {fault.name: set[str]() for fault in faults}
    for path in hits.iterdir():
        for line in path.read_text(encoding="utf-8").splitlines():
            name, _, current = line.partition("\t")
            covering[name] |= set(_tests_of(current, by_file))
    tests = {name: None if name in everywhere else sorted(found) for name, found in covering.items()}
    MAP.write_text(json.dumps({"tests": tests, "seconds": seconds}, indent=1), encoding="utf-8")


def read_map() -> tuple[dict[str, list[str] | None], dict[str, float]]:
    """Read the tests of each fault, and the seconds of each test."""
    content = json.loads(MAP.read_text(encoding="utf-8"))
    return content["tests"], content["seconds"]


def _tests_of(current: str, by_file: dict[str, list[str]]) -> list[str]:
    """Return the tests that a value of PYTEST_CURRENT_TEST is about: a fixture's setup may serve a whole file."""
    test, _, phase = current.rpartition(" ")
    if phase == "(setup)":
        return by_file[test.partition("::")[0]]
    return [test] if test else []


def _insert_probes(root: Path, faults: list[Fault]) -> set[str]:
    """Put a probe before the statement of each fault; return the faults that all tests have to try.

    These are the faults of the compiled kernel, and those outside of functions.
    """
    by_path: dict[str, list[Fault]] = defaultdict(list)
    for fault in faults:
        by_path[fault.path].append(fault)
    everywhere = {fault.name for fault in faults if fault.is_compiled}
    for path, own in by_path.items():
        if own[0].is_compiled:
            continue
        source = (root / path).read_text(encoding="utf-8")
        tree = ast.parse(source)
        places = {fault.name: _statement_at(tree, fault.changed_line(source)) for fault in own}
        for name, place in places.items():
            if place is None:
                everywhere.add(name)
            else:
                body, statement = place
                body.insert(body.index(statement), ast.parse(_PROBE.format(name=name)).body[0])
        (root / path).write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
    return everywhere


def _statement_at(tree: ast.Module, line: int) -> tuple[list[ast.stmt], ast.stmt] | None:
    """Return the smallest statement that holds a line, and the list that has it; None outside of functions."""
    found: tuple[list[ast.stmt], ast.stmt] | None = None
    least, is_inside = float("inf"), False
    for owner in ast.walk(tree):
        for body in (getattr(owner, field, None) for field in _BODIES):
            for statement in body if isinstance(body, list) else ():
                size = (statement.end_lineno or line) - statement.lineno
                if statement.lineno <= line <= (statement.end_lineno or line) and size <= least:
                    found, least = (body, statement), size
                    is_inside |= isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef)
    return found if is_inside else None
