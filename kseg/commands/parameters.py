"""Types of options: numbers within bounds, sizes, pairs of names."""

import re

import click
from click.core import ParameterSource

LARGEST_INT = 2**31 - 1
LARGEST_LONG = 2**63 - 1
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}
_FOLDERS = ("topic", "partition", "date")


class Number(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """A whole number in decimal digits, from `least` to `most`."""

    name = "integer"

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; fails if it isn't one, or is out of bounds."""
        text = str(value)
        if not re.fullmatch("[+-]?[0-9]{1,25}", text) or not self.least <= int(text) <= self.most:
            self.fail(f"{text!r} isn't a whole number from {self.least} to {self.most}", param, ctx)
        return int(text)


def int_number(least: int = 0) -> Number:
    """An int in Kafka: sizes, counts, epochs."""
    return Number(least, LARGEST_INT)


def long_number(least: int = 0) -> Number:
    """A long in Kafka: offsets, times, ids."""
    return Number(least, LARGEST_LONG)


ANY_LONG = long_number(-LARGEST_LONG - 1)
"""For damaged logs, whose batches may have any offset."""


class Size(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """Bytes: a number, with B, KB, MB, GB, KiB, MiB or GiB if wanted."""

    name = "SIZE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The bytes; fails if they aren't more than none."""
        match = re.fullmatch(r"([0-9]{1,18})\s*([KMG]I?|)B?", str(value).upper())
        if match is None or int(match[1]) == 0:
            self.fail(f"{value!r} is no size such as 256MB or 64MiB.", param, ctx)
        return int(match[1]) * _UNITS[match[2]]


class DecoderName(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """key=NAME or value=NAME."""

    name = "PART=NAME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The same; fails if the part isn't key or value."""
        part, _, name = str(value).partition("=")
        if part not in ("key", "value") or not name:
            self.fail(f"{value!r} is neither key=NAME nor value=NAME.", param, ctx)
        return str(value)


class Folders(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """Names of folders, separated by commas; `none` for none."""

    name = "NAMES"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The names; fails if one isn't known."""
        names = () if value == "none" else tuple(str(value).split(","))
        if not set(names) <= set(_FOLDERS) or len(set(names)) < len(names):
            self.fail(f"{value!r} isn't made of topic, partition, date, nor none.", param, ctx)
        return names


class Setting(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic from click 8.2 on
    """NAME=VALUE."""

    name = "NAME=VALUE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Name and value."""
        name, equals, text = str(value).partition("=")
        if not equals:
            self.fail(f"{value!r} has no =.", param, ctx)
        return name, text


def is_given(command: click.Context, name: str) -> bool:
    """Whether an option was given, on the command line or by the environment; otherwise it has its default."""
    return command.get_parameter_source(name) is not ParameterSource.DEFAULT
