"""Variables of the environment that set options, and those that look as if they did."""

import os
from collections.abc import Iterator

import click

from kseg.commands.guide import VARIABLES

_PREFIX = "KSEG_"


def variable_of(command: str, option: click.Option) -> str:
    """The variable of an option, named as the user writes it: click would use the parameter's name."""
    long_name = next((each for each in option.opts if each.startswith("--")), option.opts[0])
    return f"{prefix_of(command)}{long_name.lstrip('-')}".replace("-", "_").upper()


def prefix_of(command: str) -> str:
    """What the variables of a command's options begin with."""
    return f"{_PREFIX}{command}_".replace("-", "_").upper()


def name_variables(command: click.Command, name: str) -> None:
    """Lets the environment set a command's options, and says so at the end of its help."""
    command.epilog = (
        f"The environment can set each option: {prefix_of(name)}OPTION. `kseg help` says what else it sets."
    )
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            option.envvar = variable_of(name, option)


def misspelt_variables(command: click.Command, name: str, names: list[str]) -> Iterator[str]:
    """A line for each variable that means nothing to kseg, or not to this command. names: those of all commands."""
    given = sorted(each for each in os.environ if each.startswith(_PREFIX) and each not in VARIABLES)
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
        hint = f", did you mean {near[0]}?" if near else "; `kseg --help` lists what is"
        yield f"{each} in the environment is no variable of kseg's{hint}"
