"""Puts off the import of Python's `inspect`, which takes as long as half of click and does next to nothing for it."""

import sys
from importlib import import_module
from types import ModuleType

NAME = "inspect"


class _Inspect(ModuleType):
    """Stands for the module until something is asked for other than what click and the compiled kernel always ask."""

    CO_OPTIMIZED, CO_NEWLOCALS, CO_VARARGS, CO_VARKEYWORDS = 1, 2, 4, 8
    CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR = 32, 128, 512

    @staticmethod
    def cleandoc(text: str) -> str:
        """As the module's own: a text without its indentation."""
        if "\n" not in text:
            return text.expandtabs().lstrip()
        cleaned: str = _own().cleandoc(text)
        return cleaned

    def __getattr__(self, name: str) -> object:
        return getattr(_own(), name)


def put_off_inspect() -> None:
    """From now on, `import inspect` gives what stands for it, if it isn't there already."""
    sys.modules.setdefault(NAME, _Inspect(NAME))


def _own() -> ModuleType:
    """The module itself, which everyone gets that imports it later."""
    if isinstance(sys.modules.get(NAME), _Inspect):
        del sys.modules[NAME]
    return import_module(NAME)
