"""Modules of the standard library that each start would import, but few runs use: their first use imports them."""

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _LateModule(ModuleType):
    """A substitute for a module; anything that it lacks imports the module itself."""

    def __getattr__(self, name: str) -> object:
        if name == "__path__":  # `from gettext import …` looks for it: only packages have one
            raise AttributeError(name)
        return getattr(_import_own(self.__name__), name)


class _Gettext(_LateModule):
    """Texts stay in English, as they would: there is no catalogue of translations, for which each text would search."""

    @staticmethod
    def gettext(message: str) -> str:
        """Return the message."""
        return message

    @staticmethod
    def ngettext(singular: str, plural: str, count: int) -> str:
        """Return the message for a number of things."""
        return singular if count == 1 else plural


class _Inspect(_LateModule):
    """The contents that click and the compiled kernel always use."""

    CO_OPTIMIZED, CO_NEWLOCALS, CO_VARARGS, CO_VARKEYWORDS = 1, 2, 4, 8
    CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR = 32, 128, 512

    @staticmethod
    def cleandoc(text: str) -> str:
        """Return a text without its indentation, as the module's own function does."""
        if "\n" not in text:
            return text.expandtabs().lstrip()
        cleaned: str = _import_own("inspect").cleandoc(text)
        return cleaned


class _Platform(_LateModule):
    """The function that `uuid` calls on systems with `os.uname`."""

    @staticmethod
    def system() -> str:
        """Return the name of the operating system."""
        return os.uname().sysname


class _UrllibParse(_LateModule):
    """The function that `pathlib` imports by name, for URIs."""

    @staticmethod
    def quote_from_bytes(*arguments: Any, **named: Any) -> str:
        """Return bytes in the form for URLs, as the module's own function does."""
        quoted: str = _import_own("urllib.parse").quote_from_bytes(*arguments, **named)
        return quoted


_SUBSTITUTES: dict[str, type[_LateModule]] = {
    "gettext": _Gettext,
    "inspect": _Inspect,
    "ipaddress": _LateModule,
    "ntpath": _LateModule,
    "platform": _Platform,
    "urllib.parse": _UrllibParse,
}
"""Modules that click, pathlib and urllib.parse import, directly or not."""


def put_off_imports() -> None:
    """Make imports of these modules return their substitutes from now on, unless they are imported already."""
    for name, substitute in _SUBSTITUTES.items():
        parent, _, last = name.rpartition(".")
        package = import_module(parent) if parent else None
        if name not in sys.modules:
            sys.modules[name] = substitute(name)
            if package is not None:
                setattr(package, last, sys.modules[name])


def _import_own(name: str) -> ModuleType:
    """Import the module itself, which later imports get, too."""
    if isinstance(sys.modules.get(name), _LateModule):
        del sys.modules[name]
    return import_module(name)
