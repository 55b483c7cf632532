"""What JSON out of a destination must look like before it is used: anybody may have written it."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from kseg.errors import KsegError

Shape = Callable[[Any], None]
"""Raises UnfitError if a value isn't of the shape."""

INT32, INT64 = (1 << 31) - 1, (1 << 63) - 1
WIDE = 1 << 65
"""Sums of offsets out of damaged headers may pass 64 bits."""
SHOWN = 40
"""Characters of a value that a message shows."""


class UnfitError(Exception):
    """A value isn't of the shape; where it stands is put together on the way out."""

    def __init__(self, expected: str, value: object) -> None:
        super().__init__(expected)
        self.expected, self.value, self.where = expected, value, ""

    def within(self, step: str) -> "UnfitError":
        """The same, of a member or an element of what is looked at."""
        self.where = step + self.where
        return self


def parse_json(content: bytes, name: str) -> Any:
    """The value of a small file of JSON. Raises KsegError if it is none."""
    try:
        return json.loads(content.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise KsegError("isn't UTF-8: it was damaged, or kseg didn't write it", name) from error
    except (ValueError, RecursionError) as error:
        raise KsegError("is no JSON: it was cut or damaged, or kseg didn't write it", name) from error


def require_shape(value: Any, shape: Shape, name: str) -> None:
    """Raises KsegError, which names the file and the place in it, if a value isn't of that shape."""
    try:
        shape(value)
    except UnfitError as unfit:
        where = f"{unfit.where.lstrip('.')} " if unfit.where else ""
        raise KsegError(f"{where}is {brief(unfit.value)}, not {unfit.expected}", name) from unfit


def brief(value: object) -> str:
    """A value as a message shows it."""
    shown = ascii(value) if not isinstance(value, list | dict) else type(value).__name__
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def text(value: Any) -> None:
    """A text that a file's name or a table can hold."""
    if not isinstance(value, str) or "\0" in value:
        raise UnfitError("a text", value)
    if not value.isascii():
        try:
            value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise UnfitError("a text", value) from error


def flag(value: Any) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise UnfitError("true or false", value)


def number(least: int = -WIDE, most: int = WIDE) -> Shape:
    """A whole number within bounds."""

    def check(value: Any) -> None:
        if type(value) is not int or not least <= value <= most:
            raise UnfitError(f"a whole number from {least} to {most}", value)

    return check


def seconds(value: Any) -> None:
    """A time that something took."""
    if type(value) not in (int, float) or not 0 <= value < INT64 or not math.isfinite(value):
        raise UnfitError("a number of seconds", value)


def optional(shape: Shape) -> Shape:
    """The shape, or null."""

    def check(value: Any) -> None:
        if value is not None:
            shape(value)

    return check


def list_of(shape: Shape, count: int | None = None) -> Shape:
    """A list of things of a shape, of so many if a count is given."""

    def check(value: Any) -> None:
        if not isinstance(value, list) or count not in (None, len(value)):
            raise UnfitError("a list" if count is None else f"a list of {count}", value)
        for place, each in enumerate(value):
            try:
                shape(each)
            except UnfitError as unfit:
                raise unfit.within(f"[{place}]") from None

    return check


def anything(value: Any) -> None:
    """Whatever it is: it is judged elsewhere."""


def members(required: Mapping[str, Shape], allowed: Mapping[str, Shape] | None = None) -> Shape:
    """An object that has these members, may have the allowed ones, and has no others."""
    known = {**required, **(allowed or {})}

    def check(value: Any) -> None:
        if not isinstance(value, dict):
            raise UnfitError("an object", value)
        for name in required:
            if name not in value:
                raise UnfitError(f"an object with {name}", value)
        for name, each in value.items():
            if name not in known:
                raise UnfitError(f"one of {', '.join(known)}", name)
            try:
                known[name](each)
            except UnfitError as unfit:
                raise unfit.within(f".{name}") from None

    return check
