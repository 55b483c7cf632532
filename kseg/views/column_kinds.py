"""Kinds of columns that the rows of views have: texts, numbers, times."""

from collections.abc import Callable
from typing import TypeVar

from kseg.output.row_writer import NOT_SHOWN
from kseg.output.table import TableColumn
from kseg.times import iso_time, short_time

Row = TypeVar("Row")


def column(
    name: str, title: str, value: Callable[[Row], object], show: Callable[[Row], str] | None = None
) -> TableColumn[Row]:
    """A column of texts."""
    return TableColumn(name, title, -1, value, show)


def number_column(name: str, title: str, value: Callable[[Row], object]) -> TableColumn[Row]:
    """A column of numbers, set to the right."""
    return TableColumn(name, title, 1, value, None)


def timestamp_column(name: str, title: str, value: Callable[[Row], int | None]) -> TableColumn[Row]:
    """`nameTimestamp`: milliseconds since 1970, null for none."""

    def milliseconds(row: Row) -> int | None:
        timestamp = value(row)
        return None if timestamp is None or timestamp < 0 else timestamp

    return TableColumn(f"{name}Timestamp", title, -1, milliseconds, lambda row: short_time(value(row)))


def iso_time_column(name: str, value: Callable[[Row], int | None]) -> TableColumn[Row]:
    """`nameTime`: the same in ISO 8601."""
    return TableColumn(f"{name}Time", NOT_SHOWN, -1, lambda row: iso_time(value(row)))


def unless_negative(number: int) -> int | None:
    """A number; None for one below 0, which stands for none."""
    return None if number < 0 else number


def numbers_text(numbers: tuple[int, ...]) -> str:
    """Numbers for people."""
    return ",".join(map(str, numbers))
