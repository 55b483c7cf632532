"""Protection against modules in the current directory, which has the files that kseg reads."""

import os
import sys

SAFE_PATH = "PYTHONSAFEPATH"
"""The variable that keeps Python from looking first in the current directory or in a program's."""
PYTHON_PATH = "PYTHONPATH"


def leave_out_current_directory() -> None:
    """Remove the current directory from this process's path, where an empty name in PYTHONPATH adds it."""
    names = os.environ.get(PYTHON_PATH, "").split(os.pathsep)
    if "" not in names or names == [""]:
        return
    os.environ[PYTHON_PATH] = os.pathsep.join(filter(None, names))
    try:
        current = os.getcwd()  # noqa: PTH109  only modules that every Python has loaded may be imported here
    except OSError:
        return
    if current not in map(os.path.abspath, filter(None, names)):
        sys.path[:] = [path for path in sys.path if path not in ("", current)]


class SafeChildren:
    """A context in which every Python that is started, by any library, finds only installed modules."""

    def __enter__(self) -> None:
        self._before = os.environ.get(SAFE_PATH)
        os.environ[SAFE_PATH] = "1"

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            os.environ.pop(SAFE_PATH, None)
        else:
            os.environ[SAFE_PATH] = self._before
