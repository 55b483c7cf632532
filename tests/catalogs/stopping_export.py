"""`kseg export` that stops at its first commit in a catalog: it dies, or waits until another export has committed.

Usage: python -m tests.catalogs.stopping_export POINT ARGUMENTS…
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pyiceberg.catalog

from kseg.cli import main

BEFORE, AFTER, MEET = "before", "after", "meet"
"""Where a run dies: before or after the commit. With MEET, the command of the variable OTHER runs before the commit."""
OTHER = "OTHER_EXPORT"
KILLED = 9


def stop(catalog: Any, point: str) -> Any:
    """Return a catalog whose first commit stops the run."""
    commit_table = catalog.commit_table

    def stopping(*arguments: Any) -> Any:
        catalog.commit_table = commit_table
        if point == MEET:
            subprocess.run(json.loads(os.environ[OTHER]), check=True)
        elif point == AFTER:
            commit_table(*arguments)
        if point != MEET:
            os._exit(KILLED)
        return commit_table(*arguments)

    catalog.commit_table = stopping
    return catalog


def stopping_loader(load: Callable[..., Any], point: str) -> Callable[..., Any]:
    """Return pyiceberg's function that opens a catalog, changed to stop at the first commit."""
    return lambda *arguments, **properties: stop(load(*arguments, **properties), point)


if __name__ == "__main__":
    pyiceberg.catalog.load_catalog = stopping_loader(pyiceberg.catalog.load_catalog, sys.argv[1])
    sys.exit(main(sys.argv[2:]))
