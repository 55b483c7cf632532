"""Folders of an export: the values of the fields that divide its records, and their names as Hive spells them."""

import re
from collections.abc import Iterator
from datetime import date
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc

from kseg.errors import KsegError, UsageError
from kseg.export.columns.flat_columns import is_decoded
from kseg.export.partition_fields import PartitionField, Transform
from kseg.export.settings import FileOptions, ReadOptions
from kseg.export.write.murmur import bucket_numbers

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The folder name of a null. Source: Hive, and all readers of Hive's folders."""
LONGEST_NAME = 255
"""The most bytes of a folder's name in file systems."""
_OF_ORDER = ("topic", "partition")
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{[\]^]""")
"""Characters that Hive escapes in names of folders. Source: Hive's FileUtils.escapePathName."""
_NO_PATH = re.compile(r"%|[^\x21-\x7e]")
_TIME_SIZES = {Transform.DAY: 10, Transform.MONTH: 7, Transform.HOUR: 13}
_TYPES = {Transform.DAY: pa.date32(), Transform.BUCKET: pa.int32()}
_PLAIN = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_date32)
_HASHED = (pa.types.is_string, pa.types.is_binary, pa.types.is_integer)


class FolderColumn(NamedTuple):
    """A field with its source among the records' columns: a column, and names of fields within it.

    kind: the type of the folder's column.
    """

    field: PartitionField
    source: str
    path: tuple[str, ...]
    kind: pa.DataType

    @property
    def name(self) -> str:
        """The folder's column."""
        return self.field.column

    @property
    def is_of_order(self) -> bool:
        """Return whether all records of an order have the same value."""
        return self.source in _OF_ORDER and self.field.transform is Transform.IDENTITY

    def groups(self, batch: pa.RecordBatch) -> pa.Array:
        """Return values of the records that are equal if, and only if, their folder is the same."""
        column = batch.column(self.source)
        if self.path:
            column = pc.struct_field(column, list(self.path))
        match self.field.transform:
            case Transform.DAY:
                return column.cast(pa.date32())
            case Transform.MONTH | Transform.HOUR as unit:
                return pc.floor_temporal(column, unit=unit.value)
            case Transform.BUCKET:
                return bucket_numbers(column, self.field.buckets)
        return column

    def text(self, value: Any) -> str | None:
        """Return the text of a value of `groups`; None for null."""
        if value is None or self.field.transform in (Transform.IDENTITY, Transform.BUCKET):
            return plain_text(value)
        return str(value.isoformat()[: _TIME_SIZES[self.field.transform]].replace("T", "-"))

    def segment(self, text: str | None, options: FileOptions) -> str:
        """Return the folder's name. As in Hive, an empty text is null, unless the files have the column too."""
        if text is None or not (text or options.format.has_field_ids):
            return f"{self.name}={NO_VALUE}"
        if self.source == "topic":
            return f"{self.name}={text}"
        if options.format.has_log and text == NO_VALUE:
            return f"{self.name}=%5F{text[1:]}"
        return f"{self.name}={_ESCAPED.sub(lambda found: f'%{ord(found[0]):02X}', text)}"

    @property
    def iceberg_transform(self) -> str:
        """Iceberg's transform from the source to the partition's value."""
        is_bucket = self.field.transform is Transform.BUCKET
        return f"bucket[{self.field.buckets}]" if is_bucket else self.field.transform.value

    def iceberg_value(self, text: str | None) -> Any:
        """Return the value of Iceberg's transform: dates as days since 1970, months and hours as their number."""
        if text is None or (pa.types.is_string(self.kind) and self.field.transform is Transform.IDENTITY):
            return text
        match self.field.transform:
            case Transform.MONTH:
                return int(text[:-3]) * 12 + int(text[-2:]) - 1 - 1970 * 12
            case Transform.HOUR:
                return _days(text[:-3]) * 24 + int(text[-2:])
        if pa.types.is_date32(self.kind):
            return _days(text)
        return text == "true" if pa.types.is_boolean(self.kind) else int(text)


def plain_text(value: Any) -> str | None:
    """Return a value as Hive and Delta spell it."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def _days(text: str) -> int:
    return date.fromisoformat(text).toordinal() - date(1970, 1, 1).toordinal()


def folder_columns(read: ReadOptions, options: FileOptions) -> tuple[FolderColumn, ...]:
    """Return the columns of the folders.

    Raises UsageError if a field doesn't exist or can't divide records, or if two columns would have the same name.
    """
    schema = read.schema()
    found = tuple(_bind(field, schema) for field in options.partitions)
    names = [each.name.lower() for each in found]
    times = [each.field.spelling for each in found if each.source == "timestamp"]
    if options.format.has_field_ids and len(times) > 1:
        raise UsageError(f"--partition-by {','.join(times)}: Iceberg takes one of these; specify the finest one")
    for number, each in enumerate(found):
        is_own = each.path == () and each.field.transform is Transform.IDENTITY
        taken = [name.lower() for name in schema.names if not (is_own and name == each.source)]
        if each.name.lower() in (*taken, *names[:number]):
            raise UsageError(
                f"--partition-by {each.field.spelling}: another column has the name {each.name}; choose another field"
            )
    return found


def _bind(field: PartitionField, schema: pa.Schema) -> FolderColumn:
    """Return a field with its source in the records' schema."""
    source, path = field.source, tuple[str, ...]()
    if field.decoded_path:
        part, first, *more = field.decoded_path
        own = PartitionField(f"{part}.{first}", f"{part}.{first}").column
        source, path = (own, tuple(more)) if own in schema.names else (f"{part}Decoded", (first, *more))
    kind = schema.field(source).type if source in schema.names else None
    for name in path:
        place = kind.get_field_index(name) if kind is not None and pa.types.is_struct(kind) else -1
        kind = None if kind is None or place < 0 else kind.field(place).type
    is_known = field.transform is not Transform.IDENTITY or source in _OF_ORDER or is_decoded(source)
    if kind is None or not is_known:
        raise UsageError(
            f"--partition-by {field.spelling}: there is no such field; specify topic, partition, date, dt, month, hour,"
            " bucket(N) or a field that a schema describes, such as value.country"
        )
    fitting = _HASHED if field.transform is Transform.BUCKET else _PLAIN
    if field.source != "timestamp" and not any(fits(kind) for fits in fitting):
        raise UsageError(
            f"--partition-by {field.spelling}: values of type {kind} can't divide records; choose another field"
        )
    kept = kind if field.transform is Transform.IDENTITY else _TYPES.get(field.transform, pa.string())
    return FolderColumn(field, source, path, kept)


class Folders:
    """The folders of an order's records."""

    def __init__(self, order: tuple[str, int | None], read: ReadOptions, options: FileOptions) -> None:
        self._columns = folder_columns(read, options)
        self._options = options
        self._of_order = dict(zip(_OF_ORDER, order, strict=True))
        self._varying = [each for each in self._columns if not each.is_of_order]

    @property
    def are_many(self) -> bool:
        """True if records of an order may have different folders."""
        return bool(self._varying)

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the records of each folder."""
        if not self._varying or not batch.num_rows:
            yield self._name({}), batch
            return
        keys = {each.name: each.groups(batch) for each in self._varying}
        rows = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows), start=-1)
        table = pa.table([*keys.values(), rows], [*map(str, range(len(keys))), "row"])
        groups = table.group_by(table.column_names[:-1], use_threads=False).aggregate([("row", "list")])
        *values, places = (column.combine_chunks() for column in groups.columns)
        for number, found in enumerate(zip(*(column.to_pylist() for column in values), strict=True)):
            name = self._name(dict(zip(keys, found, strict=True)))
            # copies: a slice of a sorted batch would keep all of it in memory
            yield name, batch if groups.num_rows == 1 else batch.take(places[number].values)

    def _name(self, values: dict[str, Any]) -> str:
        texts = (
            plain_text(self._of_order[each.source]) if each.is_of_order else each.text(values[each.name])
            for each in self._columns
        )
        parts = [each.segment(text, self._options) for each, text in zip(self._columns, texts, strict=True)]
        for each, part in zip(self._columns, parts, strict=True):
            if not self._options.format.has_log and len(part.encode()) > LONGEST_NAME:
                raise KsegError(
                    f"--partition-by {each.field.spelling}: a value has {len(part.encode())} bytes, but a folder's name"
                    f" at most {LONGEST_NAME}; specify bucket(N, {each.field.source}), or another --format"
                )
        return "/".join(parts)


def texts_in(folder: str) -> list[str | None]:
    """Return the values' texts in a folder's name; None for null."""
    pairs = (part.split("=", 1) for part in folder.split("/") if part)
    return [None if text == NO_VALUE else text if name == "topic" else unquote(text) for name, text in pairs]


def path_in_log(folder: str, *, has_values: bool) -> str:
    """Return the directory for a folder's files if the table's log names them.

    has_values: the files have the values, so names need no escapes. Otherwise some readers take them from the names.
    """

    def name(part: str) -> str:
        escaped = part if has_values else quote(part, safe="".join(map(chr, range(0x21, 0x7F))))
        return _NO_PATH.sub("_", part)[:LONGEST_NAME] if has_values or len(escaped) > LONGEST_NAME else escaped

    return "/".join(part if part.startswith("topic=") else name(part) for part in folder.split("/"))
