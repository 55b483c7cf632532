"""The two equal readers: `fast`, compiled, and `twin`, in Python. `load` chooses."""

import os
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from kseg.errors import UsageError

if TYPE_CHECKING:
    from types import ModuleType

    from kseg.kernel.merge_contract import MergeKernel


KERNEL_VARIABLE = "KSEG_KERNEL"
_FAST, _TWIN = "fast", "twin"
_COMPILED = "kseg.kernel.fast"


def load() -> "MergeKernel":
    """Return the kernel to use: the kernel that KSEG_KERNEL names, else the compiled one, else its twin.

    Raises UsageError if the variable names an unknown or missing kernel.
    """
    return _load(os.environ.get(KERNEL_VARIABLE, ""))


@cache
def _load(wanted: str) -> "MergeKernel":
    if wanted not in ("", _FAST, _TWIN):
        raise UsageError(f"{KERNEL_VARIABLE} is {wanted!r}; set it to fast or twin")
    if wanted != _TWIN:
        try:
            return cast("MergeKernel", _import_compiled())
        except ImportError as error:
            if wanted:
                raise UsageError(f"{KERNEL_VARIABLE}={wanted}: this kernel isn't built: {error}") from error
    return cast("MergeKernel", import_module("kseg.kernel.twin"))


def _import_compiled() -> "ModuleType":
    """Return the compiled module.

    Without one, Python takes the folder of its sources for an empty package.
    """
    module = import_module(_COMPILED)
    if module.__file__ is None:
        raise ModuleNotFoundError(f"No module named {_COMPILED!r}", name=_COMPILED)
    return module


def load_problem() -> str | None:
    """Return why the compiled kernel can't be loaded although its file exists.

    None if it can be loaded, or if KSEG_KERNEL chooses.
    """
    if os.environ.get(KERNEL_VARIABLE):
        return None
    try:
        _import_compiled()
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == _COMPILED:
            return _of_another_python()
        return " ".join(str(error).split())
    return None


def _of_another_python() -> str | None:
    """Return the name of a compiled kernel that Python skips, since it was built for another Python."""
    from pathlib import Path

    files = sorted(path.name for path in Path(__file__).parent.glob("fast.*") if path.suffix in (".so", ".pyd"))
    return f"{files[0]} is for another Python" if files else None
