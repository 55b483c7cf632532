"""Marks of imports for callgrind: `python bench/start_probe.py FILE ARGUMENTS…` runs kseg with these arguments.

Each mark is a call of Py_SetRecursionLimit, at which callgrind writes the instructions since the last mark. Nothing
else calls it. FILE gets a line per mark: `begin` or `end`, and the module. The probe itself imports nothing else.
"""

import _frozen_importlib as importing  # type: ignore[import-not-found]
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import NoReturn

LIMIT = sys.getrecursionlimit()


def main() -> None:
    """Run kseg, and write the marks when it ends the process."""
    file, marks = sys.argv[1], list[str]()
    find_and_load, leave = importing._find_and_load, os._exit

    def marked(name: str, import_: object) -> "ModuleType":
        marks.append(f"begin {name}\n")
        sys.setrecursionlimit(LIMIT)
        try:
            module: ModuleType = find_and_load(name, import_)
            return module
        finally:
            marks.append(f"end {name}\n")
            sys.setrecursionlimit(LIMIT)

    def write_and_leave(status: int) -> "NoReturn":
        with open(file, "w") as written:  # noqa: PTH123  pathlib is one of the measured imports
            written.writelines(marks)
        leave(status)

    importing._find_and_load = marked
    os._exit = write_and_leave
    sys.argv = ["kseg", *sys.argv[2:]]
    from kseg.__main__ import run

    write_and_leave(run())


main()
