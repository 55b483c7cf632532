"""Columns of all commands: a name has one meaning, and each value has the type that its field declares."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from kseg import text
from kseg.output.columns import FOR_PEOPLE, Column, Field, Kind, Unit
from kseg.output.table import Section
from kseg.text import fields
from kseg.text.listing import ListingColumns

DECLARED = {name: each for name, each in vars(fields).items() if isinstance(each, Field)}


def columns() -> Iterator[Column[Any]]:
    """Yield all columns: of sections, of tuples of columns, and of listings with all options."""
    for module in pkgutil.iter_modules(text.__path__):
        for value in vars(importlib.import_module(f"kseg.text.{module.name}")).values():
            if isinstance(value, Section):
                yield from (*value.columns, *value.shown_columns)
            elif isinstance(value, tuple):
                yield from (each for each in (value, *value) if isinstance(each, Column))
    for by in ("segment", "partition", "topic", "directory"):
        listing = ListingColumns(by, deep=True, selected=True, cache=True, has_tiers=True)
        yield from (*listing.section().columns, *listing.section().shown_columns, *listing.total().columns)


def test_name_means_one_thing() -> None:
    names = [field.name for field in DECLARED.values()]
    assert len(names) == len(set(names))
    found = {column.field for column in columns()}
    assert found - {FOR_PEOPLE} <= set(DECLARED.values())


def test_each_field_has_a_sentence_of_its_own() -> None:
    meanings = {name: field.meaning for name, field in DECLARED.items()}
    assert [name for name, each in meanings.items() if not each.endswith(".") or each.count(". ")] == []


def test_units_fit_names() -> None:
    """Programs recognise timestamps and times by their names, and so does the page about streams."""
    for field in DECLARED.values():
        if field.name.endswith("Timestamp"):
            assert field.unit is Unit.TIMESTAMP
        if field.name.endswith("Time") or field.name == "time":
            assert (field.kind, field.unit) == (Kind.TEXT, Unit.ISO_TIME)
        if field.unit in (Unit.BYTES, Unit.MS, Unit.OFFSET, Unit.POSITION, Unit.TIMESTAMP):
            assert field.kind is Kind.INTEGER
