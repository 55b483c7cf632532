"""The records of a batch one by one: where each of them lies, and its fields when they are asked for."""

from collections.abc import Iterator
from typing import NamedTuple

from kseg.codecs.body import decompress
from kseg.explain.batch_fields import MOST_DECOMPRESSED, all_fields, check_crcs, open_control_records
from kseg.explain.field import Content, ExplainedField
from kseg.explain.internal_records import OpenRecord, open_records
from kseg.explain.walk import UNREADABLE, part_of, walk
from kseg.formats.batch import COMPRESSED_RECORD_BATCH, RECORD
from kseg.formats.body import wrapper_value
from kseg.formats.codes import BATCH_HEADER_SIZE, LOG_OVERHEAD, Codec
from kseg.formats.legacy import LOG_ENTRY
from kseg.formats.positions import size_field
from kseg.formats.varint_bytes import LONGEST_VARINT, from_zigzag, read_uvarint
from kseg.reading.batch import Batch
from kseg.times import iso_time

_UINT = (1 << 32) - 1


class RecordBytes(NamedTuple):
    """Where a record lies: bytes of the batch's records, from `start` up to `end`. is_rest: no record, what is left."""

    start: int
    end: int
    is_rest: bool = False


def outer_fields(batch: Batch) -> list[ExplainedField]:
    """The fields of a batch, its records as one of them: nothing is decompressed, and no record is read."""
    fields = walk(LOG_ENTRY if batch.is_legacy else COMPRESSED_RECORD_BATCH, batch.raw, batch.position)
    check_crcs(fields, batch)
    if not batch.is_legacy and batch.codec == Codec.NONE:
        for field in fields:
            if field.path == "records":
                field.meaning = "the records, one after another"
    return fields


class BatchRecords:
    """The records of one batch, or the messages in a wrapper.

    content: their bytes, decompressed. first_position: that of the first of these bytes in the file; of compressed
    ones 0, as positions count from there. problem: why the content can't be had whole; None if it can.
    """

    def __init__(self, batch: Batch, open_record: OpenRecord | None = None) -> None:
        self.batch = batch
        self.is_compressed = batch.codec != Codec.NONE
        self.problem: str | None = None
        self._open_record = None if batch.is_control else open_record
        raw = memoryview(batch.raw)
        stored: memoryview | None = wrapper_value(raw) if batch.is_legacy else raw[BATCH_HEADER_SIZE:]
        self.content: Content = b"" if stored is None else stored
        self.first_position = batch.position + len(raw) - len(self.content)
        if self.is_compressed:
            body = decompress(batch.codec, batch.magic, memoryview(self.content), MOST_DECOMPRESSED)
            self.content, self.problem, self.first_position = body.data, body.failure, 0

    def places(self) -> Iterator[RecordBytes]:
        """The records in order, up to the first whose length can't be right; then what is left, as one piece."""
        at, number, size = 0, 0, len(self.content)
        most = size if self.batch.is_legacy else self.batch.header.records_count or 0
        while at < size:
            end = self._end_of(at) if number < most else None
            if end is None or end > size:
                yield RecordBytes(at, size, is_rest=True)
                return
            yield RecordBytes(at, end)
            at, number = end, number + 1

    def _end_of(self, at: int) -> int | None:
        """Where the record at a place ends by its length; None if it says nothing that can be."""
        if self.batch.is_legacy:
            length = size_field(self.content, at) if at + LOG_OVERHEAD <= len(self.content) else -1
            return at + LOG_OVERHEAD + length if length >= 0 else None
        try:
            number, begin = read_uvarint(self.content, at, LONGEST_VARINT)
        except EOFError:
            return None
        length = from_zigzag(number & _UINT)
        return begin + length if length >= 0 else None

    def fields(self, number: int, place: RecordBytes) -> list[ExplainedField]:
        """The fields of a record; of what is left the bytes only."""
        position = self.first_position + place.start
        raw = part_of(self.content, place.start, place.end)
        if place.is_rest:
            problem = self.problem or "no record can be read here"
            return [ExplainedField(UNREADABLE, position, len(raw), "bytes", raw, "", raw, problem=problem)]
        if self.batch.is_legacy:
            return walk(LOG_ENTRY, raw, position)
        found = walk(RECORD, raw, position, f"records[{number}]")
        if self.batch.is_control:
            open_control_records(found)
        if self._open_record is not None:
            open_records(all_fields(found), self._open_record)
        fields = [*found[0].children, *found[1:]] if found[0].children else found
        self._add_sums(fields)
        return fields

    def _add_sums(self, fields: list[ExplainedField]) -> None:
        """Says of deltas what they come to."""
        header = self.batch.header
        for field in fields:
            if field.name == "offset_delta" and isinstance(field.value, int) and header.base_offset is not None:
                field.meaning += f": offset {header.base_offset + field.value}"
            if field.name == "timestamp_delta" and isinstance(field.value, int) and not header.is_log_append_time:
                time = header.base_timestamp + field.value
                field.meaning += f": {iso_time(time) or time}"
