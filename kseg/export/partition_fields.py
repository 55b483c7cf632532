"""Fields by which an export is divided into folders or partitions, as the user spells them."""

import re
from enum import StrEnum
from typing import NamedTuple

LARGEST_BUCKETS = 1 << 20
"""The most buckets: each gets a file per order."""


class Transform(StrEnum):
    """The function from a source column to the value of a partition."""

    IDENTITY = "identity"
    DAY = "day"
    MONTH = "month"
    HOUR = "hour"
    BUCKET = "bucket"


_OF_TIMES = {"date": Transform.DAY, "dt": Transform.DAY, "month": Transform.MONTH, "hour": Transform.HOUR}
_BUCKET = re.compile(r"bucket\( *([1-9][0-9]{0,6}) *(?:, *([^ ,()]+) *)?\)")
_SEPARATOR = re.compile(r",(?![^()]*\))")
"""A comma that isn't within parentheses."""


class PartitionField(NamedTuple):
    """A field of `--partition-by`.

    source: a column of the records, or `key.PATH` or `value.PATH` for a decoded field. buckets: the number of buckets.
    """

    spelling: str
    source: str
    transform: Transform = Transform.IDENTITY
    buckets: int = 0

    @property
    def decoded_path(self) -> tuple[str, ...]:
        """The part and the names of a decoded field; empty for a column."""
        names = tuple(self.source.split("."))
        return names if len(names) > 1 and names[0] in ("key", "value") and all(names) else ()

    @property
    def column(self) -> str:
        """The name of the folders' column, or of Iceberg's partition field."""
        if self.transform is Transform.BUCKET:
            return "bucket"
        if self.decoded_path:
            from kseg.export.columns.flat_columns import flat_name

            part, *path = self.decoded_path
            return flat_name("key" if part == "key" else "value", "_".join(path))
        return self.spelling


def parse_field(spelling: str) -> PartitionField:
    """Return a field. Raises ValueError if it can't be one."""
    if spelling in _OF_TIMES:
        return PartitionField(spelling, "timestamp", _OF_TIMES[spelling])
    if (found := _BUCKET.fullmatch(spelling)) is not None:
        count, source = int(found[1]), found[2] or "key"
        if count > LARGEST_BUCKETS:
            raise ValueError(f"{count} buckets are more than {LARGEST_BUCKETS}")
        return PartitionField(
            f"bucket({count}, {source})" if found[2] else f"bucket({count})", source, Transform.BUCKET, count
        )
    if not spelling or set(spelling) & set("()=/ ") or spelling.startswith(("_", ".")):
        raise ValueError(f"{spelling!r} isn't a field")
    return PartitionField(spelling, spelling)


def parse_fields(text: str) -> tuple[str, ...]:
    """Return the spellings of fields that commas separate; `none` for none. Raises ValueError."""
    if text == "none":
        return ()
    names = tuple(parse_field(part.strip()).spelling for part in _SEPARATOR.split(text))
    if len(set(names)) < len(names):
        raise ValueError("a field occurs twice")
    return names
