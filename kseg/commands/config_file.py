"""Defaults of options: the file that KSEG_CONFIG names, and environment variables."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from kseg.commands.guide import VARIABLES
from kseg.commands.options.row import PREFIX, prefix_of
from kseg.errors import OpenError, UsageError
from kseg.system.files import read_small

VARIABLE = "KSEG_CONFIG"
LARGEST_FILE = 1 << 20
"""Bytes of the largest file: a larger file isn't a file of defaults."""
Defaults = dict[str, Any]


class ConfigFile:
    """The contents of a file for a command: defaults by parameter, and lines about unknown keys."""

    def __init__(self, path: Path, commands: list[str]) -> None:
        """Read the file. Raises UsageError if it can't be read or isn't TOML."""
        import tomllib

        self._path = path
        self._commands = commands
        try:
            self._content = tomllib.loads(read_small(path, LARGEST_FILE).decode())
        except RecursionError as error:
            raise UsageError(f"{VARIABLE}: its values are nested too deeply", path) from error
        except OpenError as error:
            raise UsageError(f"{VARIABLE}: {error.message}", path) from error
        except ValueError as error:
            raise UsageError(f"{VARIABLE}: {error}", path) from error

    def defaults(self, command: click.Command, name: str) -> Defaults:
        """Return the values for a command's options, by parameter name; the command's own table takes precedence."""
        own = self._content.get(name, {})
        common = {key: value for key, value in self._content.items() if not isinstance(value, dict)}
        found = {}
        for key, value in {**common, **(own if isinstance(own, dict) else {})}.items():
            option = _option(command, key)
            if option is not None and option.name is not None:
                found[option.name] = _as_given(option, value)
        return found

    def problems(self, group: click.Group, context: click.Context, command: click.Command, name: str) -> Iterator[str]:
        """Yield a line for each unknown key, at the top level and in the command's own table."""
        for key, value in self._content.items():
            if isinstance(value, dict):
                if key not in self._commands:
                    yield f"{self._path}: no such command {key!r}"
                elif key == name:
                    unknown = [each for each in value if _option(command, each) is None]
                    yield from (f"{self._path}: `kseg {name}` has no option {each!r}" for each in unknown)
            elif _option(command, key) is None and not self._is_known(group, context, key):
                yield f"{self._path}: no command has an option {key!r}"

    def _is_known(self, group: click.Group, context: click.Context, key: str) -> bool:
        found = (group.get_command(context, each) for each in self._commands)
        return any(each is not None and _option(each, key) is not None for each in found)


def _option(command: click.Command, key: str) -> click.Option | None:
    """Return the option that a key names, as on the command line without leading dashes."""
    names = {f"--{key}", f"-{key}"}
    options = (each for each in command.params if isinstance(each, click.Option) and not each.hidden)
    return next((each for each in options if names.intersection(each.opts)), None)


def _as_given(option: click.Option, value: Any) -> Any:
    """Return a value as the command line would have it: numbers and dates of TOML as text."""
    if option.multiple:
        return list(map(str, value if isinstance(value, list) else [value]))
    return value if isinstance(value, bool) and option.is_flag else str(value)


def misspelt_variables(command: click.Command, name: str, names: list[str]) -> Iterator[str]:
    """Yield a line for each unknown variable, and for each variable that the command doesn't have.

    names: the names of all commands.
    """
    given = sorted(each for each in os.environ if each.startswith(PREFIX) and each not in VARIABLES)
    if not given:
        return
    own = {option.envvar for option in command.params if isinstance(option, click.Option) and option.envvar}
    prefixes = {prefix_of(each): each for each in sorted(names, key=len)}
    for each in given:
        owner = max((prefix for prefix in prefixes if each.startswith(prefix)), key=len, default=None)
        if each in own or (owner is not None and prefixes[owner] != name):
            continue
        from difflib import get_close_matches

        near = get_close_matches(each, [*map(str, own), *VARIABLES], 1)
        hint = f", did you mean {near[0]}?" if near else "; `kseg help environment` lists all"
        yield f"unknown environment variable {each}{hint}"
