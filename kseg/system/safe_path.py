"""Where Python looks for modules: never in the current directory, whose files are what kseg reads."""

import os
import sys

SAFE_PATH = "PYTHONSAFEPATH"
"""The variable that keeps Python from putting the current directory, or a program's, before all others."""
PYTHON_PATH = "PYTHONPATH"


def leave_out_current_directory() -> None:
    """Of this process: an empty name in PYTHONPATH means the current directory, which nobody meant who wrote none."""
    names = os.environ.get(PYTHON_PATH, "").split(os.pathsep)
    if "" not in names or names == [""]:
        return
    os.environ[PYTHON_PATH] = os.pathsep.join(filter(None, names))
    try:
        current = os.getcwd()  # noqa: PTH109  nothing but what every Python has loaded may be imported here
    except OSError:
        return
    if current not in map(os.path.abspath, filter(None, names)):
        sys.path[:] = [path for path in sys.path if path not in ("", current)]


class SafeChildren:
    """A context: Pythons that are started inside, by whatever library, look for modules where they are installed."""

    def __enter__(self) -> None:
        self._before = os.environ.get(SAFE_PATH)
        os.environ[SAFE_PATH] = "1"

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            os.environ.pop(SAFE_PATH, None)
        else:
            os.environ[SAFE_PATH] = self._before
