"""The two readers that agree: `fast`, compiled, and `twin`, in Python. `load` chooses."""

import os
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from kseg.errors import UsageError

if TYPE_CHECKING:
    from kseg.kernel.contract import Kernel

KERNEL_VARIABLE = "KSEG_KERNEL"
_NAMES = ("fast", "twin")


def load() -> "Kernel":
    """The kernel to use: the one that KSEG_KERNEL names, else the compiled one, else its twin.

    Raises UsageError if the variable names none, or one that isn't there.
    """
    return _load(os.environ.get(KERNEL_VARIABLE, ""))


@cache
def _load(wanted: str) -> "Kernel":
    if wanted not in ("", *_NAMES):
        raise UsageError(f"{KERNEL_VARIABLE} is {wanted!r}; it can be fast or twin")
    if wanted != "twin":
        try:
            return cast("Kernel", import_module("kseg.kernel.fast"))
        except ImportError as error:
            if wanted:
                raise UsageError(f"{KERNEL_VARIABLE}={wanted}: that kernel isn't built: {error}") from error
    return cast("Kernel", import_module("kseg.kernel.twin"))
