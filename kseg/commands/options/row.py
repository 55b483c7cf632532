"""A row of the table of options, and its command-line parameter."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import click

from kseg.commands.options.types import Size, size_text

PREFIX = "KSEG_"
EVERY_COMMAND = "*"
_MOST_VALUES = 200
"""Most values that completion offers."""


class Late(NamedTuple):
    """A constant or function of a module that is imported only for commands with the row."""

    module: str
    name: str

    def load(self) -> Any:
        """Import the module, and return the constant or function."""
        return getattr(import_module(self.module), self.name)


class Option(NamedTuple):
    """An option or argument of one command, or one with the same meaning on several.

    flags: as click takes them, separated by blanks. commands: names, separated by blanks. type: bool for a switch,
    words for a choice, some of which may be late. name: the field that gets the value, by default the long flag's
    words. values: offered by completion; with is_list several of them, separated by commas. is_read: the value has
    paths that may lead into archives or tiers. nargs: number of values of an argument, -1 for any number; 0 for an
    option.
    """

    flags: str
    commands: str
    help: str = ""
    type: Any = str
    metavar: str | None = None
    default: Any = None
    name: str = ""
    multiple: bool = False
    required: bool = False
    hidden: bool = False
    flag_value: str | None = None
    callback: Callable[..., Any] | None = None
    values: Late | None = None
    is_list: bool = False
    is_read: bool = False
    nargs: int = 0

    @property
    def field(self) -> str:
        """The field of the values of a command that gets the option."""
        return self.name or self.flags.split("/")[0].split()[-1].lstrip("-").replace("-", "_")

    @property
    def is_plain(self) -> bool:
        """True for an option whose value needs no conversion unless it is given."""
        is_bare = self.callback is None and not self.required and not self.nargs and "/" not in self.flags
        return is_bare and (self.default is None or (isinstance(self.type, tuple) and not self.multiple))

    @property
    def missing_value(self) -> object:
        """The value of a plain option that isn't given."""
        return () if self.multiple else False if self.type is bool else _load(self.default)


class TableOption(click.Option):
    """An option whose help has one space before [default: …], as rows have it that name a default in words."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the flags and the help of the option, or None if it is hidden."""
        record = super().get_help_record(ctx)
        return record and (record[0], record[1].replace("  [", " ["))


def takes(row: Option, command: str) -> bool:
    """Return True if a command has the row."""
    # Few names contain others: most rows are decided without splitting.
    return row.commands == EVERY_COMMAND or (command in row.commands and command in row.commands.split())


def parameter_of(row: Option, command: str) -> click.Parameter:
    """Make the argument or option of a command."""
    return _argument_of(row) if row.nargs else _option_of(row, command)


def _option_of(row: Option, command: str) -> click.Option:
    flags = row.flags.split()
    given: dict[str, Any] = {}
    if row.type is bool:
        given["is_flag"] = True
    else:
        given["type"] = _type_of(row.type)
    default = _load(row.default)
    words = f"{row.help} [repeatable]" if row.multiple else row.help
    if default is not None or "/" in row.flags:
        given["default"] = size_text(default) if isinstance(row.type, Size) and isinstance(default, int) else default
    if row.flag_value is not None:
        given |= {"is_flag": False, "flag_value": row.flag_value}
    return TableOption(
        [row.field, *flags],
        metavar=row.metavar,
        help=words,
        show_default=default not in (None, ""),
        multiple=row.multiple,
        required=row.required,
        hidden=row.hidden,
        callback=row.callback,
        envvar=None if row.hidden else variable_of(command, flags[-1].split("/")[0]),
        shell_complete=_completion_of(row.values, is_list=row.is_list),
        **given,
    )


def _argument_of(row: Option) -> click.Argument:
    return click.Argument(
        [row.flags],
        metavar=row.metavar,
        type=_type_of(row.type),
        nargs=row.nargs,
        required=row.required,
        callback=row.callback,
        shell_complete=_completion_of(row.values, is_list=False),
        **({} if row.default is None else {"default": row.default}),
    )


def _type_of(kind: Any) -> Any:
    if not isinstance(kind, tuple):
        return kind
    groups = (
        _load(each) if isinstance(each, Late) else (each,) for each in ((kind,) if isinstance(kind, Late) else kind)
    )
    return click.Choice([str(word) for words in groups for word in words])


def _load(value: Any) -> Any:
    return value.load() if isinstance(value, Late) else value


def _completion_of(values: Late | None, *, is_list: bool) -> Callable[..., list[str]] | None:
    """Return the function that offers a shell the values with a prefix; None leaves it to the type."""
    if values is None:
        return None

    def offer(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        from contextlib import suppress

        from kseg.errors import KsegError

        before, comma, start = incomplete.rpartition(",") if is_list else ("", "", incomplete)
        taken = set(before.split(","))
        with suppress(KsegError, OSError):
            known = values.load()
            known = known(context) if callable(known) else known
            found = [each for each in known if each.startswith(start) and each not in taken]
            return [f"{before}{comma}{each}" for each in found[:_MOST_VALUES]]
        return []

    return offer


def variable_of(command: str, flag: str) -> str:
    """Return the environment variable of an option."""
    return f"{prefix_of(command)}{flag.lstrip('-')}".replace("-", "_").upper()


def prefix_of(command: str) -> str:
    """Return the prefix of a command's variables."""
    return f"{PREFIX}{command}_".replace("-", "_").upper()
