"""Bounds of the rows for which a query's condition may hold."""

from collections.abc import Callable
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kseg.arrow import TIMESTAMP
from kseg.cluster.copies import Copies
from kseg.export.settings import OffsetRange
from kseg.kernel.contract import MOST

Condition = Any
"""A pyarrow.compute.Expression over the columns of records."""
_MICROSECONDS = 1000
FEW = 256
"""The most partitions with bounds of their own; more partitions share common bounds."""


class FilterBounds:
    """Bounds of the rows for which a condition may hold."""

    def __init__(self, condition: Condition | None, schema: pa.Schema) -> None:
        """Take the condition, None for all rows, and the schema of the rows."""
        self._condition = condition
        self._schema = schema

    def may_hold(self, known: Condition) -> bool:
        """Return True if the condition may hold for a row for which another condition holds."""
        if self._condition is None:
            return True
        import pyarrow.dataset as ds
        from pyarrow.fs import LocalFileSystem

        form, files = ds.IpcFileFormat(), LocalFileSystem()
        parts = ds.FileSystemDataset([form.make_fragment("", files, known)], self._schema, form, files)
        return next(iter(parts.get_fragments(self._condition)), None) is not None

    def find(self, copies: Copies) -> Copies:
        """Return the partitions that may have such rows."""
        if self._condition is None:
            return copies
        topics = {topic: self.may_hold(_equals("topic", topic)) for topic in {topic for topic, _ in copies}}
        return {key: known for key, known in copies.items() if topics[key[0]] and self.may_be_of(*key)}

    def may_be_of(self, topic: str, partition: int | None) -> bool:
        """Return True if a partition may have such rows; the schema may lack columns that identify the partition."""
        place = (("topic", _equals("topic", topic)), ("partition", _is_number(partition)))
        known = [condition for name, condition in place if name in self._schema.names]
        return self._condition is None or not known or self.may_hold(reduce(and_, known))

    def offsets(self, copies: Copies) -> dict[tuple[str, int | None], OffsetRange]:
        """Return the offsets of such rows by partition."""
        if len(copies) <= FEW:
            return {key: self._offsets(_is_of(*key)) for key in copies}
        return dict.fromkeys(copies, self.offsets_anywhere())

    def offsets_anywhere(self) -> OffsetRange:
        """Return the offsets of such rows in any partition."""
        return self._offsets(None)

    def _offsets(self, place: Condition | None) -> OffsetRange:
        def may_hold(known: Condition) -> bool:
            return self.may_hold(known if place is None else place & known)

        offset = pc.field("offset")
        first = _least(lambda most: may_hold(offset <= pa.scalar(most, pa.int64())))
        end = _most(lambda least: may_hold(offset >= pa.scalar(least, pa.int64())))
        return OffsetRange(first, None if end is None else end + 1)

    def first_time(self) -> int | None:
        """Return the lowest time of such rows in milliseconds since 1970, or None if unbounded."""
        time = pc.field("timestamp")
        least = _least(lambda most: self.may_hold((time <= pa.scalar(most, TIMESTAMP)) | time.is_null()))
        return None if least is None else least // _MICROSECONDS


def _is_of(topic: str, partition: int | None) -> Condition:
    return _equals("topic", topic) & _is_number(partition)


def _equals(name: str, value: str) -> Condition:
    return pc.field(name) == value


def _is_number(partition: int | None) -> Condition:
    number = pc.field("partition")
    return number.is_null() if partition is None else number == pa.scalar(partition, pa.int32())


def _least(reaches: Callable[[int], bool]) -> int | None:
    """Return the least number from 0 on for which `reaches` holds, or None if it holds below 0, too."""
    if reaches(-1):
        return None
    first, last = 0, MOST
    while first < last:
        middle = (first + last) // 2
        if reaches(middle):
            last = middle
        else:
            first = middle + 1
    return first


def _most(reaches: Callable[[int], bool]) -> int | None:
    """Return the largest number from 0 on for which `reaches` holds, -1 without one, or None if it holds for MOST."""
    if reaches(MOST):
        return None
    first, last = -1, MOST
    while first < last:
        middle = (first + last + 1) // 2
        if reaches(middle):
            first = middle
        else:
            last = middle - 1
    return first
