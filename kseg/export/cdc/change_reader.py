"""Reading of changes from the records that a run has written to staged files."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kseg.errors import UsageError
from kseg.export.cdc.envelope import (
    DELETE,
    TOMBSTONE,
    TRUNCATE,
    Envelopes,
    Fields,
    Skipped,
    open_envelopes,
    struct_fields,
)
from kseg.export.cdc.json_objects import read_in_parts, read_objects, without_schemas
from kseg.export.changes import Changes, row_numbers
from kseg.export.columns.column_types import (
    ColumnMember,
    MismatchError,
    NamesError,
    StructType,
    arrow_type,
    check_names,
    unify,
    widen,
)
from kseg.export.columns.unwrapped import Unwrapping, column_type, columns_of
from kseg.export.commit.merge import Joined
from kseg.export.commit.protocol import ExportPlan
from kseg.export.destination import Destination
from kseg.export.results import Result
from kseg.export.settings import COLUMNS
from kseg.export.undecoded import DecodedPart, joined_parts

if TYPE_CHECKING:
    from kseg.decode.decoded import Part

PARTS: "tuple[Part, Part]" = ("key", "value")
NO_KEY = "the record has no key, which finds the row of its change; use --history"
_JSON_NULL = b"null"
Records = Mapping[str, pa.Array]


class _Block(NamedTuple):
    """Some changes. type: the columns of their rows; origin: kseg's own columns."""

    type: StructType
    columns: list[pa.Array]
    origin: list[pa.Array]

    def column(self, name: str) -> pa.Array:
        """Return a column by its name."""
        return self.columns[[member.name for member in self.type.members].index(name)]

    def table(self, wide: StructType) -> pa.Table:
        """Return the changes with the columns of a wider type."""
        own = {
            member.name: (member.type, column) for member, column in zip(self.type.members, self.columns, strict=True)
        }
        count = len(self.origin[0])
        columns = [
            widen(own[each.name][1], own[each.name][0], each.type)
            if each.name in own
            else pa.nulls(count, arrow_type(each.type))
            for each in wide.members
        ]
        return pa.table([*columns, *self.origin], schema=Unwrapping(history=True, columns=columns_of(wide)).schema())


@dataclass(slots=True)
class _Counts:
    """Keys and values of a result: their number, and reasons for those without a change, by offset."""

    totals: "Counter[Part]" = field(default_factory=Counter)
    failures: "dict[Part, dict[int, str]]" = field(default_factory=lambda: {part: {} for part in PARTS})

    def add(self, part: "Part", records: Records, failures: Mapping[int, str]) -> None:
        """Add rows that failed."""
        offsets = records["offset"]
        self.failures[part] |= {offsets[row].as_py(): reason for row, reason in failures.items()}

    def parts(self) -> Iterator[DecodedPart]:
        """Yield the counts of keys and of values."""
        for part, own in self.failures.items():
            first = min(own, default=None)
            total = self.totals[part]
            if first is None:
                yield DecodedPart(part, total)
            else:
                yield DecodedPart(part, total, len(own), first, max(own), own[first])


def read_changes(plan: ExportPlan, kept: list[Result], new: list[Result], place: Destination) -> Joined:
    """Return a run's results with the changes in their records, and the counts of records without a change."""
    unwrapping = plan.previous.read.unwrap
    assert unwrapping is not None
    reader = ChangeReader(unwrapping, frozenset(plan.read.decode.typed_columns()))
    in_order = sorted(new, key=lambda result: (result.partition or 0, result.tally.first_offset or 0))
    counted = list(reader.read(in_order, place))  # the first value of a column decides its type
    return Joined([*plan.absent, *kept], counted, changes=reader.changes())


class ChangeReader:
    """A reader that collects changes, and the columns of their rows."""

    def __init__(self, unwrapping: Unwrapping, typed: "frozenset[Part]") -> None:
        """Take the table's columns so far. typed: the parts that are decoded already; the others are JSON."""
        self._history, self._typed = unwrapping.history, typed
        self._type, self._keys = unwrapping.row_type(), tuple(unwrapping.keys)
        self._blocks: list[_Block] = []
        self._skipped: Counter[str] = Counter()

    def read(self, results: Iterable[Result], place: Destination) -> Iterator[Result]:
        """Read the records of results, and yield these with the counts of records without a change."""
        for result in results:
            counts = _Counts()
            for file in result.files:
                with place.open(file.attempt) as source:
                    staged = pq.ParquetFile(source)
                    for number in range(staged.num_row_groups):
                        rows = staged.read_row_group(number).combine_chunks()
                        self._take({name: rows.column(name).combine_chunks() for name in rows.column_names}, counts)
            decoded = joined_parts([*result.tally.decoded, *counts.parts()])
            undecoded = sum(each.undecoded for each in decoded)
            yield replace(result, tally=replace(result.tally, decoded=decoded, undecoded=undecoded))

    def changes(self) -> Changes:
        """Return all changes in one table. Raises UsageError for names that a table can't have."""
        try:
            check_names(self._type)
        except NamesError as error:
            raise UsageError(f"--unwrap: {error.message}") from error
        columns = columns_of(self._type)
        none = Unwrapping(history=True, columns=columns).schema().empty_table()
        rows = pa.concat_tables([none, *(block.table(self._type) for block in self._blocks)])
        return Changes(rows.combine_chunks(), columns, self._keys, self._skipped)

    def _take(self, records: Records, counts: _Counts) -> None:
        keys, has_key = self._keys_of(records, counts)
        values, count = records["value"], len(records["offset"])
        rows = row_numbers(count)
        if "value" in self._typed:
            decoded = records[COLUMNS["value"]]
            is_null = pc.and_(pc.is_null(values), pc.is_null(decoded))
            rows = rows.filter(pc.and_(pc.is_valid(decoded), has_key))
            self._add(struct_fields(decoded.take(rows)), rows, keys, records, counts)
        else:
            counts.totals["value"] += count - values.null_count
            texts = without_schemas(values)
            is_null = pc.or_(pc.is_null(texts), pc.fill_null(pc.equal(texts, _JSON_NULL), False))
            rows = rows.filter(pc.and_(pc.invert(is_null), has_key))
            add = partial(self._add_texts, texts, keys, records, counts)
            counts.add("value", records, read_in_parts(texts, rows, add))
        self._add_tombstones(pc.and_(is_null, has_key), keys, records, counts)

    def _keys_of(self, records: Records, counts: _Counts) -> tuple[pa.Array, pa.Array]:
        """Return the keys, and a mask of the records whose key is readable or absent."""
        count = len(records["offset"])
        if "key" in self._typed:
            decoded = records[COLUMNS["key"]]
            return decoded, pc.or_(pc.is_valid(decoded), pc.is_null(records["key"]))
        counts.totals["key"] += count - records["key"].null_count
        texts = without_schemas(records["key"])
        rows = pc.indices_nonzero(pc.is_valid(texts)).cast(pa.int64())
        parts: list[tuple[StructType, pa.Array, pa.Array]] = []

        def read(own: pa.Array) -> None:
            members = _members(texts.take(own))
            kind = _row_type(members)
            unify(parts[0][0] if parts else kind, kind)
            parts.append((kind, _struct(members, kind, len(own)), own))

        failures = read_in_parts(texts, rows, read)
        counts.add("key", records, failures)
        has_key = pc.invert(pc.is_in(row_numbers(count), value_set=pa.array(list(failures), pa.int64())))
        if not parts:
            return pa.nulls(count, pa.struct([])), has_key
        wide = parts[0][0]
        for kind, _, _ in parts:
            wide = unify(wide, kind)  # type: ignore[assignment]
        joined = pa.concat_arrays([widen(array, kind, wide) for kind, array, _ in parts])
        places = pc.index_in(row_numbers(count), value_set=pa.concat_arrays([own for *_, own in parts]))
        return joined.take(places), has_key

    def _add_texts(self, texts: pa.Array, keys: pa.Array, records: Records, counts: _Counts, rows: pa.Array) -> None:
        self._add(_members(texts.take(rows)), rows, keys, records, counts)

    def _add(self, fields: Fields, rows: pa.Array, keys: pa.Array, records: Records, counts: _Counts) -> None:
        """Add the changes in decoded values."""
        for each in open_envelopes(fields, rows):
            self._skipped += each.skipped
            counts.add("value", records, each.failures)
            if not self._history:
                has_none = pc.and_(pc.is_null(keys.take(each.rows)), pc.not_equal(each.ops, TRUNCATE))
                counts.add("key", records, dict.fromkeys(each.rows.filter(has_none).to_pylist(), NO_KEY))
                each = each.filter_by(pc.invert(has_none))
            is_delete = pc.equal(each.ops, DELETE)
            deletes, others = each.filter_by(is_delete), each.filter_by(pc.invert(is_delete))
            self._add_rows(deletes, deletes.before if self._history else {}, keys, records, counts)
            self._add_rows(others, others.after, keys, records, counts)

    def _add_rows(self, part: Envelopes, row: Fields, keys: pa.Array, records: Records, counts: _Counts) -> None:
        """Add changes with some columns of their rows, without those that have a value of another type than before."""
        while len(part.rows):
            block = self._block(keys.take(part.rows), row, part, records)
            try:
                self._type = unify(self._type, block.type)  # type: ignore[assignment]
            except MismatchError as error:
                other = re.split(r"[.\[]", error.field, maxsplit=1)[0]
                is_other = pc.is_valid(block.column(other))
                counts.add("value", records, dict.fromkeys(part.rows.filter(is_other).to_pylist(), error.message))
                row = {name: each.filter(pc.invert(is_other)) for name, each in row.items() if name != other}
                part = part.filter_by(pc.invert(is_other))
                continue
            self._blocks.append(block)
            return

    def _add_tombstones(self, mask: pa.Array, keys: pa.Array, records: Records, counts: _Counts) -> None:
        rows = pc.indices_nonzero(mask).cast(pa.int64())
        self._skipped += Counter({Skipped.TOMBSTONES.value: len(rows)}) if len(rows) else Counter()
        rows = rows.filter(pc.is_valid(keys.take(rows)))
        if self._history or not len(rows):
            return
        ops, times = pa.array([TOMBSTONE] * len(rows)), records["timestampMs"].take(rows)
        part = Envelopes(rows, ops, times, pa.nulls(len(rows), pa.string()), {}, {}, Counter(), {})
        self._add_rows(part, {}, keys, records, counts)

    def _block(self, key: pa.Array, row: Fields, part: Envelopes, records: Records) -> _Block:
        """Return changes with the columns of their keys, and the row's other columns."""
        members = {name: column for name, column in struct_fields(key).items() if column.null_count < len(column)}
        self._check_keys(tuple(members))
        members |= {name: column for name, column in row.items() if name not in members}
        kind = _row_type(members)
        columns = [members[each.name].cast(arrow_type(each.type)) for each in kind.members]
        own = (records["partition"].take(part.rows), records["offset"].take(part.rows), part.positions, part.times)
        return _Block(kind, columns, [*own, part.ops])

    def _check_keys(self, names: tuple[str, ...]) -> None:
        """Raise UsageError if changes have other keys than before: they would find no row."""
        if names and not self._keys:
            self._keys = names
        if not self._history and names and set(names) != set(self._keys):
            why = f"--unwrap: the columns of the key are {', '.join(names)}, but were {', '.join(self._keys)}"
            raise UsageError(f"{why}; export with --overwrite, or to another destination")


def _members(texts: pa.Array) -> Fields:
    found = read_objects(texts)
    members = {name: found.column(name).combine_chunks() for name in found.column_names}
    return struct_fields(members["payload"]) if set(members) == {"schema", "payload"} else members


def _row_type(fields: Fields) -> StructType:
    """Return the columns of fields, without those whose type isn't known yet."""
    known = ((name, column_type(column.type)) for name, column in fields.items())
    return StructType(tuple(ColumnMember(name, kind) for name, kind in known if kind is not None))


def _struct(fields: Fields, kind: StructType, count: int) -> pa.Array:
    if not kind.members:
        return pa.nulls(count, pa.struct([]))
    columns = [fields[each.name].cast(arrow_type(each.type)) for each in kind.members]
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type(kind)))
