"""What a condition on records leaves of partitions, offsets and times.

Nobody reads the condition itself. Arrow is asked whether it can hold for any row about which something is known ("its
offset is below 1000"), as it leaves out the files of a data set that can't matter. Offsets and times are found by
halving: if no row below a bound can be meant, none of them has to be read.
"""

from collections.abc import Callable
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from kseg.arrow import TIMESTAMP
from kseg.export.copies import Copies
from kseg.export.settings import OffsetRange
from kseg.kernel.contract import MOST

Condition = Any
"""A pyarrow.compute.Expression over the columns of records."""
_MICROSECONDS = 1000
FEW = 256
"""Partitions up to which each has bounds of its own; of more, bounds that hold for all."""
_FORMAT, _FILES = ds.IpcFileFormat(), pafs.LocalFileSystem()


class FilterBounds:
    """What the rows for which a condition may hold can have."""

    def __init__(self, condition: Condition | None, schema: pa.Schema) -> None:
        """Takes the condition, None for all rows; and the columns of the rows."""
        self._condition = condition
        self._schema = schema

    def may_hold(self, known: Condition) -> bool:
        """Whether the condition may hold for a row for which another one does."""
        if self._condition is None:
            return True
        part = _FORMAT.make_fragment("", _FILES, known)
        parts = ds.FileSystemDataset([part], self._schema, _FORMAT, _FILES)
        return next(iter(parts.get_fragments(self._condition)), None) is not None

    def find(self, copies: Copies) -> Copies:
        """The partitions that may have such rows."""
        if self._condition is None:
            return copies
        topics = {topic: self.may_hold(_equals("topic", topic)) for topic in {topic for topic, _ in copies}}
        return {key: known for key, known in copies.items() if topics[key[0]] and self.may_be_of(*key)}

    def may_be_of(self, topic: str, partition: int | None) -> bool:
        """Whether a partition may have such rows; their table may lack columns that say whose they are."""
        place = (("topic", _equals("topic", topic)), ("partition", _is_number(partition)))
        known = [condition for name, condition in place if name in self._schema.names]
        return self._condition is None or not known or self.may_hold(reduce(and_, known))

    def offsets(self, copies: Copies) -> dict[tuple[str, int | None], OffsetRange]:
        """The offsets that such rows may have, by partition."""
        if len(copies) <= FEW:
            return {key: self._offsets(_is_of(*key)) for key in copies}
        return dict.fromkeys(copies, self.offsets_anywhere())

    def offsets_anywhere(self) -> OffsetRange:
        """The offsets that such rows may have, whatever their partition."""
        return self._offsets(None)

    def _offsets(self, place: Condition | None) -> OffsetRange:
        def may_hold(known: Condition) -> bool:
            return self.may_hold(known if place is None else place & known)

        offset = pc.field("offset")
        first = _least(lambda most: may_hold(offset <= pa.scalar(most, pa.int64())))
        end = _most(lambda least: may_hold(offset >= pa.scalar(least, pa.int64())))
        return OffsetRange(first, None if end is None else end + 1)

    def first_time(self) -> int | None:
        """The least time that such rows may have, in milliseconds since 1970; None if any."""
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
    """The least number from 0 on for which a question is answered with yes; None if it is for one below 0, too."""
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
    """The largest number for which it is, -1 if for none from 0 on; None if it is for the largest of all."""
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
