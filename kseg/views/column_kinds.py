"""Kinds of columns that the rows of views have: texts, numbers, times."""

from collections.abc import Callable
from datetime import UTC, tzinfo
from functools import partial
from typing import TypeVar

from kseg.output.row_writer import NOT_SHOWN
from kseg.output.table import TableColumn
from kseg.times import iso_time, time_text

Row = TypeVar("Row")


def column(
    name: str, title: str, value: Callable[[Row], object], show: Callable[[Row], str] | None = None
) -> TableColumn[Row]:
    """A column of texts."""
    return TableColumn(name, title, -1, value, show)


def number_column(name: str, title: str, value: Callable[[Row], object]) -> TableColumn[Row]:
    """A column of numbers, set to the right."""
    return TableColumn(name, title, 1, value, None)


def timestamp_column(name: str, title: str, value: Callable[[Row], int | None], zone: tzinfo = UTC) -> TableColumn[Row]:
    """`nameTimestamp`: milliseconds since 1970, null for none; people see the time in the zone."""

    def milliseconds(row: Row) -> int | None:
        timestamp = value(row)
        return None if timestamp is None or timestamp < 0 else timestamp

    in_zone = partial(timestamp_column, name, title, value)
    return TableColumn(f"{name}Timestamp", title, -1, milliseconds, lambda row: time_text(value(row), zone), in_zone)


def iso_time_column(
    name: str, value: Callable[[Row], int | None], title: str = NOT_SHOWN, zone: tzinfo = UTC
) -> TableColumn[Row]:
    """`nameTime`: the same in ISO 8601."""
    in_zone = partial(iso_time_column, name, value, title)
    return TableColumn(
        f"{name}Time" if name else "time", title, -1, lambda row: iso_time(value(row), zone), None, in_zone
    )


def unless_negative(number: int) -> int | None:
    """A number; None for one below 0, which stands for none."""
    return None if number < 0 else number


def numbers_text(numbers: tuple[int, ...]) -> str:
    """Numbers for people."""
    return ",".join(map(str, numbers))
