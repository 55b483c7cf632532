"""Merges of changes into the rows of a table: files with changed rows are written again, the others stay."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kseg.export.cdc.envelope import DELETE, TOMBSTONE, TRUNCATE
from kseg.export.cdc.latest import UNAVAILABLE, key_of, latest_changes, unavailable_columns
from kseg.export.cdc.positions import compare
from kseg.export.cdc.row_files import RowFiles, conform
from kseg.export.changes import ChangeCounts, Changes, row_numbers
from kseg.export.columns.unwrapped import OFFSET, OP, ORIGIN, PARTITION, Unwrapping, new_deleted_name
from kseg.export.commit.table_log import CopiedRows
from kseg.export.destination import Destination
from kseg.export.settings import FileOptions
from kseg.system.run_usage import in_threads

_ORIGINS = [each.name for each in ORIGIN]
_GONE = (DELETE, TOMBSTONE)
_SEARCHED = 1 << 20
"""The fewest rows that are searched together, unless the table has fewer."""


class Target(NamedTuple):
    """A table before a run's commit, and what its new files need.

    names: its files; before: its columns then; unwrapping: its columns now. schema: of the new files.
    """

    place: Destination
    names: tuple[str, ...]
    before: Unwrapping
    unwrapping: Unwrapping
    schema: pa.Schema
    files: FileOptions
    run_id: str


class Merged(NamedTuple):
    """The effect of changes on a table's files.

    removed: the files that new ones replace. unwrapping: the table's columns, with the file of deleted rows.
    """

    removed: tuple[str, ...]
    added: tuple[CopiedRows, ...]
    unwrapping: Unwrapping
    counts: ChangeCounts


def append_changes(changes: Changes, target: Target) -> Merged:
    """Write all changes as rows, in the order of the log."""
    rows = changes.rows
    rows = rows.take(pc.sort_indices(rows, [(PARTITION.name, "ascending"), (OFFSET.name, "ascending")]))
    total = sum(pq.read_metadata(source).num_rows for source in _open_files(target))
    with RowFiles(target.place, target.run_id, target.schema, target.files) as files:
        files.write(rows)
    counts = ChangeCounts(
        changes=rows.num_rows,
        inserted=rows.num_rows,
        skipped=changes.skipped,
        total=total + rows.num_rows,
        files=_rows_by_name(files.files),
    )
    return Merged((), tuple(files.files), target.unwrapping, counts)


def _open_files(target: Target) -> Iterator[object]:
    for name in target.names:
        with target.place.open(name) as source:
            yield source


def _rows_by_name(files: Iterable[CopiedRows]) -> dict[str, int]:
    return {file.name: file.metadata.num_rows for file in files}


def merge_changes(changes: Changes, target: Target) -> Merged:
    """Apply the latest change of each key, unless the table knows a later one."""
    truncation, is_new = _truncation(changes.rows, target.before)
    rows, doubts = _after_truncation(changes.rows, truncation)
    latest = latest_changes(rows, changes.keys)
    wanted = _Wanted(latest.rows, changes.keys, truncation if is_new else truncation.slice(0, 0))
    found = _matches_in_files(wanted, target)
    gone = _deleted_rows(target)
    dead = wanted.judge(wanted.places(gone), lambda names, rows: gone.select(names).take(rows), are_gone=True)
    live = list(found.values())
    is_winner = pc.invert(_are([each.losers for each in (dead, *live)], latest.rows.num_rows))
    is_there = _are([each.changes for each in live], latest.rows.num_rows)
    is_insert = pc.and_(is_winner, pc.invert(pc.or_(is_there, wanted.is_delete)))
    with RowFiles(target.place, target.run_id, target.schema, target.files) as files:
        removed = tuple(_rewrite(found, wanted, target, files))
        files.write(_sort_by_key(latest.rows.filter(is_insert), changes.keys))
    beaten = pa.concat_arrays([each.winners for each in live] or [pa.array([], pa.int64())])
    by_keys = pc.sum(pc.less(beaten, latest.rows.num_rows)).as_py() or 0
    deleted = pc.sum(wanted.are_deleted.take(beaten)).as_py() or 0
    before, inserted = sum(each.row_count for each in live), is_insert.true_count
    changed = _count(changes.rows, TOMBSTONE)
    counts = ChangeCounts(
        changes=changed,
        inserted=inserted,
        updated=len(beaten) - deleted,
        deleted=deleted,
        superseded=changed - _count(latest.rows, TOMBSTONE),
        unchanged=max(_count(latest.rows, TOMBSTONE) - inserted - by_keys, 0),
        undecided=doubts + latest.undecided + sum(each.undecided for each in (dead, *live)),
        skipped=changes.skipped,
        total=before + inserted - deleted,
        files=_rows_by_name(files.files),
    )
    new_gone = latest.rows.filter(pc.and_(is_winner, wanted.is_delete))
    last = tuple(truncation.to_pylist()[0].values()) if truncation.num_rows else ()
    deleted_file = _write_deleted(gone, dead, new_gone, target)
    unwrapping = replace(target.unwrapping, deleted=deleted_file, truncated=last)
    return Merged(removed, tuple(files.files), unwrapping, counts)


def _truncation(changes: pa.Table, before: Unwrapping) -> tuple[pa.Table, bool]:
    """Return the latest change that removes all rows, if there is any, and whether the table doesn't know it yet."""
    latest, is_new = before.truncation(), False
    found = changes.filter(pc.equal(changes.column(OP.name), TRUNCATE)).select(_ORIGINS)
    for place in range(found.num_rows):  # there are few
        each = found.slice(place, 1)
        if not latest.num_rows or compare(latest, each)[0][0].as_py():
            latest, is_new = each, True
    return latest.combine_chunks(), is_new


def _after_truncation(changes: pa.Table, truncation: pa.Table) -> tuple[pa.Table, int]:
    """Return the changes of rows, without those before the change that removes all rows, and the undecided ones."""
    is_row = pc.not_equal(changes.column(OP.name), TRUNCATE)
    rows = (changes if pc.all(is_row).as_py() else changes.filter(is_row)).combine_chunks()
    if not truncation.num_rows or not rows.num_rows:
        return rows, 0
    is_earlier, is_undecided = compare(rows, _repeat(truncation, rows.num_rows))
    return rows.filter(pc.invert(is_earlier)).combine_chunks(), is_undecided.true_count


def _count(rows: pa.Table, other: str) -> int:
    """Return the number of changes except those of one kind."""
    return int(pc.sum(pc.not_equal(rows.column(OP.name), other)).as_py() or 0)


def _are(places: Sequence[pa.Array], count: int) -> pa.Array:
    """Return a mask of some places."""
    joined = pa.concat_arrays(places) if places else pa.array([], pa.int64())
    return pc.is_valid(_numbers_at(joined, count))


def _numbers_at(places: pa.Array, count: int) -> pa.Array:
    """Return for each of some rows the number of its entry in `places`, or null.

    A hash table of the places would take many times as long. The row after the last one means none.
    """
    return pc.inverse_permutation(places, max_index=count).slice(0, count)


def _sort_by_key(rows: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """Return rows in the order of their keys, by whose bounds readers skip row groups."""
    return rows.take(pc.sort_indices(rows, [(name, "ascending") for name in keys])) if rows.num_rows else rows


class _Matches(NamedTuple):
    """Rows of a file, or deleted rows, that have a change: their places, and those of the changes.

    is_beaten: whether the change is later than the one that made the row. row_count: of all rows.
    """

    row_count: int
    rows: pa.Array
    changes: pa.Array
    is_beaten: pa.Array
    undecided: int = 0

    @property
    def beaten(self) -> pa.Array:
        """The rows that a later change beats."""
        return self.rows.filter(self.is_beaten)

    @property
    def winners(self) -> pa.Array:
        """The changes that beat these rows."""
        return self.changes.filter(self.is_beaten)

    @property
    def losers(self) -> pa.Array:
        """The changes that the table has overtaken."""
        return self.changes.filter(pc.invert(self.is_beaten))


_Origins = Callable[[list[str], pa.Array], pa.Table]
"""A function that returns some of the columns of ORIGIN, of some rows."""


class _Wanted:
    """The latest change of each key, to be found in the table; the one that removes all rows is last.

    is_delete: which of the changes of keys delete their row; are_deleted: the same of all changes.
    """

    def __init__(self, changes: pa.Table, keys: tuple[str, ...], truncation: pa.Table) -> None:
        """Take the changes. truncation: a new change that removes all earlier rows, if there is any."""
        self.keys, self.truncation, self.count = keys, truncation, changes.num_rows
        self.changes = pa.concat_tables([changes, conform(truncation, changes.schema)]).combine_chunks()
        self.is_delete = pc.is_in(changes.column(OP.name).combine_chunks(), value_set=pa.array(_GONE))
        self.are_deleted = pa.concat_arrays([self.is_delete, pa.repeat(True, truncation.num_rows)])
        self._values = key_of(changes, keys) if changes.num_rows else None

    def places(self, rows: pa.Table) -> pa.Array:
        """Return the place of each row's change, null without one. rows: at least their keys."""
        if self._values is None or not rows.num_rows:
            return pa.nulls(rows.num_rows, pa.int64())
        return pc.index_in(key_of(rows, self.keys), value_set=self._values).cast(pa.int64())

    def judge(self, places: pa.Array, origins: _Origins, *, are_gone: bool = False) -> _Matches:
        """Return the rows that have a change, and which ones it beats. places: of each row's change."""
        own, changes = pc.indices_nonzero(pc.is_valid(places)).cast(pa.int64()), places.drop_null()
        if not len(own):
            return _Matches(len(places), own, changes, pa.array([], pa.bool_()))
        before = origins(_ORIGINS[:2], own)
        after = self.changes.select(_ORIGINS[:2]).take(changes).combine_chunks()
        is_same = pc.equal(before.column(PARTITION.name), after.column(PARTITION.name)).combine_chunks()
        if pc.all(is_same).as_py():  # as usual: positions needn't be read
            wins = pc.less(before.column(OFFSET.name), after.column(OFFSET.name)).combine_chunks()
            undecided = 0
        else:
            wins, is_undecided = compare(origins(_ORIGINS, own), self.changes.select(_ORIGINS).take(changes))
            undecided = is_undecided.true_count
        if are_gone:  # the tombstone after a deletion says nothing new, and it has no position
            is_tombstone = pc.equal(self.changes.column(OP.name).take(changes), TOMBSTONE).combine_chunks()
            wins = pc.and_not(wins, pc.and_(is_tombstone, is_same))
        return _Matches(len(places), own, changes, wins, undecided)


def _matches_in_files(wanted: _Wanted, target: Target) -> dict[str, _Matches]:
    """Return the matches in each file of a table; files are searched together up to a number of rows."""
    schema = pa.schema([each for each in target.unwrapping.key_schema() if each.name not in _ORIGINS])
    found: dict[str, _Matches] = {}
    waiting: list[tuple[str, pa.Table]] = []
    for number, name in enumerate(target.names, 1):
        waiting.append((name, conform(_read(name, schema.names, target), schema)))
        if number == len(target.names) or sum(keys.num_rows for _, keys in waiting) >= _SEARCHED:
            places, first = wanted.places(pa.concat_tables([keys for _, keys in waiting])), 0
            for own, keys in waiting:
                part = places.slice(first, keys.num_rows)
                matches = wanted.judge(part, partial(_origins_in, own, target))
                found[own] = _with_truncation(matches, wanted, partial(_read, own, _ORIGINS, target))
                first += keys.num_rows
            waiting = []
    return found


def _with_truncation(matches: _Matches, wanted: _Wanted, origins: Callable[[], pa.Table]) -> _Matches:
    """Return the matches, with rows that precede the change that removes all rows."""
    if not wanted.truncation.num_rows:
        return matches
    is_earlier, is_undecided = compare(origins(), _repeat(wanted.truncation, matches.row_count))
    own = pc.indices_nonzero(pc.and_not(is_earlier, _are([matches.beaten], matches.row_count))).cast(pa.int64())
    return _Matches(
        matches.row_count,
        pa.concat_arrays([matches.rows, own]),
        pa.concat_arrays([matches.changes, pa.repeat(pa.scalar(wanted.count, pa.int64()), len(own))]),
        pa.concat_arrays([matches.is_beaten, pa.repeat(True, len(own))]),
        matches.undecided + is_undecided.true_count,
    )


def _repeat(row: pa.Table, count: int) -> pa.Table:
    return row.take(pa.repeat(pa.scalar(0, pa.int64()), count)).combine_chunks()


def _origins_in(name: str, target: Target, columns: list[str], rows: pa.Array) -> pa.Table:
    return _read(name, columns, target).take(rows).combine_chunks()


def _read(name: str, columns: list[str], target: Target) -> pa.Table:
    with target.place.open(name) as source:
        return pq.ParquetFile(source).read(columns=columns)


def _rewrite(found: Mapping[str, _Matches], wanted: _Wanted, target: Target, files: RowFiles) -> Iterator[str]:
    """Write the rows of files that have changed ones again, and yield the names of these files."""
    before = dict(target.before.columns)
    is_wider = any(before.get(name, kind) != kind for name, kind in target.unwrapping.columns)
    for name, matches in found.items():
        if not is_wider and not pc.any(matches.is_beaten).as_py():
            continue
        changed = matches.winners.take(_numbers_at(matches.beaten, matches.row_count))
        with target.place.open(name) as source:
            file = pq.ParquetFile(source)
            counts = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
            parts = zip(range(len(counts)), accumulate(counts, initial=0), counts, strict=False)

            def read(part: tuple[int, int, int], file: Any = file, changed: pa.Array = changed) -> pa.Table:
                number, first, count = part
                return _with_changes(file.read_row_group(number), changed.slice(first, count), wanted, target.schema)

            for rows in in_threads(read, parts, at_once=1, ahead=1):  # one is read while another is written
                files.write(rows)
        yield name


def _with_changes(rows: pa.Table, changed: pa.Array, wanted: _Wanted, schema: pa.Schema) -> pa.Table:
    """Return rows with changed ones in their old places, and without deleted ones.

    changed: the place of the change that beats each row, null for rows that stay.
    """
    winners = changed.drop_null()
    if not len(winners):
        return rows
    is_changed = pc.is_valid(changed)
    is_kept = pc.fill_null(pc.invert(wanted.are_deleted.take(changed)), True)
    numbers = pc.subtract(pc.cumulative_sum(is_changed.cast(pa.int64())), 1 - rows.num_rows)
    places = pc.if_else(is_changed, numbers, row_numbers(rows.num_rows)).filter(is_kept)
    before, after = conform(rows, schema), conform(wanted.changes.take(winners), schema)
    found = pa.concat_tables([before, after]).take(places)
    for name in unavailable_columns(after):
        own = before.column(name).filter(is_kept)
        values = found.column(name)
        place = schema.get_field_index(name)
        is_unknown = pc.fill_null(pc.equal(values, UNAVAILABLE), False)
        found = found.set_column(place, schema.field(place), pc.if_else(is_unknown, own, values))
    return found


def _deleted_rows(target: Target) -> pa.Table:
    """Return the keys of deleted rows, and the changes that deleted them."""
    schema, name = target.unwrapping.key_schema(), target.before.deleted
    if name is None:
        return schema.empty_table()
    with target.place.open(name) as source:
        return conform(pq.ParquetFile(source).read(), schema)


def _write_deleted(known: pa.Table, dead: _Matches, new: pa.Table, target: Target) -> str | None:
    """Write the keys of deleted rows again if they have changed, and return the file's name."""
    if not len(dead.beaten) and not new.num_rows:
        return target.before.deleted
    left = known.filter(pc.invert(_are([dead.beaten], known.num_rows)))
    rows = pa.concat_tables([left, conform(new, known.schema)])
    if not rows.num_rows:
        return None
    name = new_deleted_name(target.run_id, uuid4().hex[:12])
    with target.place.create(name) as sink:
        pq.write_table(rows, sink, compression="zstd")
    return name
