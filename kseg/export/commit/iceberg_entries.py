"""Files as Iceberg's metadata list them: their partitions, statistics, and the ranges of offsets that they may hold."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from kseg.export.commit.table_log import (
    RowRange,
    TableChange,
)
from kseg.export.write.folders import FolderColumn, texts_in

_NO_TIMES = {"write.metadata.metrics.column.timestamp": "counts"}
_PARTITION = 3
"""The place of the partition in an entry of pyiceberg."""


def filter_of(change: TableChange) -> Any:
    """Return the filter of the rows that a change removes."""
    are: Any = import_module("pyiceberg.expressions")
    if change.replaces_all:
        return are.AlwaysTrue()

    def rows(part: RowRange) -> Any:
        is_its = are.IsNull("partition") if part.partition is None else are.EqualTo("partition", part.partition)
        is_from, is_before = are.GreaterThanOrEqual("offset", part.first), are.LessThan("offset", part.end)
        return are.And(are.EqualTo("topic", part.topic), is_its, is_from, is_before)

    parts = [rows(part) for part in change.gone]
    return parts[0] if len(parts) == 1 else are.Or(*parts)


def _bounds(file: Any, schema: Any, name: str) -> tuple[Any, Any]:
    """Return the lowest and the highest value of a column in a file, as far as known."""
    from pyiceberg.conversions import from_bytes

    field = schema.find_field(name)
    found = [(bounds or {}).get(field.field_id) for bounds in (file.lower_bounds, file.upper_bounds)]
    lowest, highest = (None if value is None else from_bytes(field.field_type, value) for value in found)
    return lowest, highest


def may_hold(file: Any, part: RowRange, schema: Any) -> bool:
    """Return False if the statistics of a file show that it has no row of a range."""
    for name, first, last in (("partition", part.partition, part.partition), ("offset", part.first, part.end - 1)):
        lowest, highest = _bounds(file, schema, name)
        if None not in (first, last, lowest, highest) and (lowest > last or highest < first):
            return False
    return True


def values_of(record: Any) -> list[Any]:
    """Return the values of a partition in Iceberg's metadata."""
    return [record[place] for place in range(len(record))]


def holds_only(file: Any, part: RowRange, topic: str | None, schema: Any) -> bool:
    """Return True if all rows of a file are known to be in a range; topic: the topic of all rows, if known."""
    offsets, numbers = _bounds(file, schema, "offset"), _bounds(file, schema, "partition")
    topics = _bounds(file, schema, "topic") if topic is None else (topic, topic)
    is_its = numbers == (part.partition, part.partition) and topics == (part.topic, part.topic)
    return is_its and None not in offsets and part.first <= offsets[0] and offsets[1] < part.end


def partition_of(columns: Iterable[FolderColumn], folder: str) -> Any:
    """Return the values of a folder as Iceberg's metadata have them."""
    from pyiceberg.typedef import Record

    pairs = zip(columns, texts_in(folder), strict=True)
    return Record(*(column.iceberg_value(text) for column, text in pairs))


def data_files(io: Any, metadata: Any, files: Iterable[tuple[str, Any]]) -> Iterable[Any]:
    """Yield files, each with its partition, as entries of Iceberg's metadata, with statistics from their footers."""
    from concurrent.futures import ThreadPoolExecutor

    from pyiceberg.partitioning import PartitionSpec

    # pyiceberg would take the partition from statistics, which can't tell a bucket
    spec = PartitionSpec(spec_id=metadata.default_spec_id)
    plain = metadata.model_copy(update={"partition_specs": [spec]})
    with ThreadPoolExecutor() as pool:
        yield from pool.map(lambda file: _data_file(io, plain, *file), files)


def _data_file(io: Any, metadata: Any, path: str, partition: Any) -> Any:
    """Return a file's entry, without bounds of times after the year 9999, where Python's times end."""
    from pyiceberg.io.pyarrow import parquet_file_to_data_file

    try:
        found = parquet_file_to_data_file(io, metadata, path)
    except OverflowError:
        without = metadata.model_copy(update={"properties": {**metadata.properties, **_NO_TIMES}})
        found = parquet_file_to_data_file(io, without, path)
    found[_PARTITION] = partition
    return found


def small_files(tasks: Iterable[Any], target_size: int) -> Iterator[list[Any]]:
    """Yield groups of the files of a partition that together have about the target size, with similar contents."""
    by_partition: dict[Any, list[Any]] = defaultdict(list)
    for task in tasks:
        if not task.delete_files and task.file.file_size_in_bytes < target_size:
            by_partition[task.file.partition].append(task.file)
    for files in by_partition.values():
        group: list[Any] = []
        size = 0
        for file in sorted(files, key=lambda file: str(file.file_path)):
            if group and size + file.file_size_in_bytes > target_size:
                if len(group) > 1:
                    yield group
                group, size = [], 0
            group.append(file)
            size += file.file_size_in_bytes
        if len(group) > 1:
            yield group
