"""Positions of changes in their database's log, as text that sorts like them; and which of two changes is later."""

from collections.abc import Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kseg.export.columns.unwrapped import OFFSET, PARTITION, POSITION, TIME

Fields = Mapping[str, pa.Array]
_DIGITS = 20
"""Digits of the largest number of 64 bits."""
_FILE_NUMBER = r"\.(?P<number>[0-9]+)$"


def positions(source: Fields, count: int) -> pa.Array:
    """Return the position of each change, from the fields of Debezium's `source`; null where it has none.

    PostgreSQL has `lsn`, MySQL `file`, `pos` and `row`, SQL Server and Db2 `commit_lsn` and `change_lsn`, Oracle
    `scn`. The text begins with the kind of position: different kinds can't be compared.
    """
    known = (
        _join_parts("lsn", [_number(source, "lsn", count)]),
        _join_parts("binlog", [_file_number(source, count), _number(source, "pos", count), _row(source, count)]),
        _join_parts("commit", [_text(source, "commit_lsn", count), _serial(source, count)]),
        _join_parts("scn", [_number(source, "scn", count)]),
    )
    return pc.coalesce(*known)


def _text(source: Fields, name: str, count: int) -> pa.Array:
    column = source.get(name)
    if column is None or pa.types.is_nested(column.type) or pa.types.is_null(column.type):
        return pa.nulls(count, pa.string())
    return column.cast(pa.string())


def _number(source: Fields, name: str, count: int) -> pa.Array:
    """Return whole numbers as texts of the same length; null for others."""
    texts = _text(source, name, count)
    is_number = pc.match_substring_regex(texts, "^[0-9]{1,20}$")
    return pc.utf8_lpad(pc.if_else(is_number, texts, None), _DIGITS, "0")


def _file_number(source: Fields, count: int) -> pa.Array:
    found = pc.extract_regex(_text(source, "file", count), _FILE_NUMBER)
    return _number({"file": found.field("number")}, "file", count)


def _row(source: Fields, count: int) -> pa.Array:
    return pc.fill_null(_number(source, "row", count), "0" * _DIGITS)


def _serial(source: Fields, count: int) -> pa.Array:
    """Return the position within a transaction; empty in a snapshot, which has none."""
    change = pc.fill_null(_text(source, "change_lsn", count), "")
    number = pc.fill_null(_number(source, "event_serial_no", count), "")
    return pc.binary_join_element_wise(change, number, "/")


def _join_parts(kind: str, parts: list[pa.Array]) -> pa.Array:
    """Return the parts of a position as one text; null if one is missing."""
    return pc.binary_join_element_wise(pa.scalar(f"{kind}:"), pc.binary_join_element_wise(*parts, "/"), "")


def compare(one: pa.Table, other: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Return for each pair of changes of a key whether the other is later, and whether that isn't certain.

    Within a partition the later record wins. Across partitions it is the position in the database's log, and without
    positions the time. If these are equal or unknown, the pair is undecided, and time, partition and offset decide.
    """
    parts, offsets, places, times = (_pairs(one, other, each.name) for each in (PARTITION, OFFSET, POSITION, TIME))
    is_same = pc.equal(*parts)
    have_places = pc.fill_null(pc.equal(*map(_kind, places)), False)
    have_times = pc.and_(pc.is_valid(times[0]), pc.is_valid(times[1]))
    by_place = pc.if_else(have_places, pc.less(*places), pc.if_else(have_times, pc.less(*times), None))
    is_tie = pc.if_else(have_places, pc.equal(*places), pc.if_else(have_times, pc.equal(*times), True))
    is_undecided = pc.and_(pc.invert(is_same), is_tie)
    filled = tuple(pc.fill_null(each, -1) for each in times)
    wins = pc.if_else(is_same, pc.less(*offsets), pc.if_else(is_tie, _less([filled, parts, offsets]), by_place))
    return wins, is_undecided


def _pairs(one: pa.Table, other: pa.Table, name: str) -> tuple[Any, Any]:
    return one.column(name).combine_chunks(), other.column(name).combine_chunks()


def _kind(places: pa.Array) -> pa.Array:
    return pc.utf8_slice_codeunits(places, 0, 4)


def _less(pairs: list[tuple[Any, Any]]) -> Any:
    """Return whether the first tuple of each pair is less than the second one, by its first different member."""
    *outer, inner = pairs
    return reduce(
        lambda found, pair: pc.if_else(pc.equal(*pair), found, pc.less(*pair)), reversed(outer), pc.less(*inner)
    )
