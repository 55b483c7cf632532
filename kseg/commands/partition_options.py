"""The options that say which partitions are read, and the choice that they describe."""

import re
from functools import wraps
from typing import Any, cast

import click

from kseg.commands.options import Command
from kseg.formats.names import MAXIMUM_PARTITION
from kseg.log.partition.partition_choice import PartitionChoice

_NUMBERS = re.compile("([0-9]{1,10})(?:-([0-9]{1,10}))?")


class PartitionNumbers(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """Numbers of partitions and ranges of them, separated by commas: `0,4-7`."""

    name = "N,…"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[range, ...]:
        """The ranges; fails if one isn't any."""
        return tuple(self._numbers(text, param, ctx) for text in str(value).split(","))

    def _numbers(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> range:
        match = _NUMBERS.fullmatch(text.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last <= MAXIMUM_PARTITION:
            self.fail(f"{text!r} is neither a partition's number nor a range such as 0-3", param, ctx)
        return range(first, last + 1)


def partition_options(command: Command) -> Command:
    """`--topic` and `--partition`; the command gets them as one PartitionChoice, `choice`."""

    @click.option(
        "--topic",
        "topics",
        multiple=True,
        metavar="NAME|GLOB",
        help="Only this topic, or those that match, 'ord*' for example; may be repeated.",
    )
    @click.option(
        "--partition",
        "numbers",
        type=PartitionNumbers(),
        multiple=True,
        metavar="N,…",
        help="Only partitions with these numbers: 3, or 0,4-7.",
    )
    @wraps(command)
    def choosing(*arguments: Any, **options: Any) -> Any:
        return command(*arguments, choice=partition_choice_of(options), **options)

    return cast(Command, choosing)


def partition_choice_of(options: dict[str, Any]) -> PartitionChoice:
    """The choice that the options describe; removes them from `options`."""
    numbers = options.pop("numbers")
    return PartitionChoice(options.pop("topics"), tuple(each for given in numbers for each in given))
