"""A batch as a place: its records, or the messages in a wrapper, one row each."""

from collections.abc import Iterable
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path

from kseg.browse.byte_source import BodyBytes, ByteSource
from kseg.browse.place import BrowsedPlace, PlaceRow, ReadRows, ShownRow
from kseg.explain.batch_records import BatchRecords, RecordBytes
from kseg.explain.field import ExplainedField
from kseg.explain.internal_records import OpenRecord
from kseg.explain.items import Item
from kseg.explain.words import shown_value
from kseg.output.printable import printable
from kseg.reading.batch import Batch
from kseg.reading.header import BatchHeader

ENOUGH_RECORDS = 4096
"""Records that are looked for at once."""
_SHOWN_KEY, _SHOWN_VALUE = 32, 160


class BatchPlace(BrowsedPlace):
    """The records of one batch."""

    heading = f"{'offset':>10}  key → value"

    def __init__(self, batch: Batch, path: Path, source: ByteSource, open_record: OpenRecord | None) -> None:
        super().__init__(batch_title(batch.header), path)
        self.batch = batch
        self._records = BatchRecords(batch, open_record)
        self._coming = self._records.places()
        self._places: list[RecordBytes] = []
        self._source = source
        if self._records.is_compressed:
            title = f"decompressed records of the batch at {batch.position}"
            self._source = BodyBytes(self._records.content, title)
        self.has_all = False
        self.take_more(self.read_more())
        self._fields = lru_cache(maxsize=256)(self._read_fields)

    @property
    def count(self) -> int:
        """How many records are known."""
        return len(self._places)

    def read_more(self) -> ReadRows:
        """Looks for records after the known ones."""
        return ReadRows(list(islice(self._coming, ENOUGH_RECORDS)))

    def take_more(self, found: ReadRows) -> None:
        """Adds them."""
        added = [each for each in found.rows or () if isinstance(each, RecordBytes)]
        self._places += added
        self.has_all = len(added) < ENOUGH_RECORDS

    def _read_fields(self, number: int) -> list[ExplainedField]:
        return self._records.fields(number, self._places[number])

    def row(self, number: int) -> PlaceRow:
        """A record as a line: offset, key, value."""
        place = self._places[number]
        if place.is_rest:
            return PlaceRow(f"unreadable: {place.end - place.start} bytes", is_wrong=True, is_open=False)
        fields = self._fields(number)
        is_wrong = any(field.problem is not None for field in fields)
        key, value = (
            _short(_leaf(fields, name), most) for name, most in (("key", _SHOWN_KEY), ("value", _SHOWN_VALUE))
        )
        text = f"{self._offset(fields):>10}  {key} → {value}" if key else f"{self._offset(fields):>10}  → {value}"
        return PlaceRow(text, is_wrong=is_wrong, is_open=False)

    def _offset(self, fields: list[ExplainedField]) -> object:
        delta, base = _leaf(fields, "offset_delta"), self.batch.header.base_offset
        if delta is not None and isinstance(delta.value, int) and base is not None:
            return base + delta.value
        own = _leaf(fields, "offset")
        return own.value + self._shift if own is not None and isinstance(own.value, int) else ""

    @cached_property
    def _shift(self) -> int:
        """What has to be added to the offsets of messages in a wrapper: in format 1 they count from its first one."""
        first = _leaf(self._fields(0), "offset")
        return self.batch.base_offset - first.value if first is not None and isinstance(first.value, int) else 0

    def shown(self, number: int) -> ShownRow:
        """The fields of a record."""
        place, fields = self._places[number], self._fields(number)
        position = self._records.first_position + place.start
        item = Item(
            f"record {number}, offset {self._offset(fields)}", position, place.end - place.start, lambda: fields
        )
        return ShownRow(item, self._source)

    def offset_of(self, number: int) -> int | None:
        """The offset of a row's record; None if it can't be read."""
        if not self._places:
            return None
        offset = self._offset(self._fields(number))
        return offset if isinstance(offset, int) else None

    def number_of_offset(self, offset: int) -> int:
        """The row of the record with an offset; the first one if there is no such record."""
        records = enumerate(self.batch.records(on_damage="skip"))
        number = next((number for number, record in records if record.offset == offset), 0)
        while number >= self.count and not self.has_all:
            self.take_more(self.read_more())
        return min(number, max(self.count - 1, 0))


def batch_title(header: BatchHeader) -> str:
    """What a batch is called on the screen."""
    what = "batch" if header.magic >= 2 else "entry"
    first = header.last_offset if header.base_offset is None else header.base_offset
    return f"{what} {first}" if first == header.last_offset else f"{what} {first}-{header.last_offset}"


def _leaf(fields: Iterable[ExplainedField], name: str) -> ExplainedField | None:
    """The field of this name, which may be in the structure of a message."""
    for field in fields:
        if field.name == name:
            return field
        if field.name == "message":
            return _leaf(field.children, name)
    return None


def _short(field: ExplainedField | None, most: int) -> str:
    if field is None:
        return "null" if most == _SHOWN_VALUE else ""
    text = printable(shown_value(field) if not field.children or field.raw else field.meaning or "…")
    return text if len(text) <= most else f"{text[: most - 1]}…"
