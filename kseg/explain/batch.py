"""Batches, entries and damages of a log, explained field by field, with their records."""

from collections.abc import Iterator
from datetime import UTC, tzinfo
from typing import Any, NamedTuple

from construct import Array

from kseg.codecs.bodies import decompress
from kseg.explain.field import Check, Content, ExplainedField
from kseg.explain.internal_records import OpenRecord, open_records
from kseg.explain.walk import UNREADABLE, part_of, walk
from kseg.formats.batch import BATCH_HEADER, COMPRESSED_RECORD_BATCH, LOG_ENTRY, RECORD, RECORD_BATCH
from kseg.formats.codes import (
    BATCH_FLAGS,
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    LEGACY_FLAGS_POSITION,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    Codec,
    ControlType,
    DamageKind,
    checksum_of,
    size_field,
    wrapper_value,
)
from kseg.formats.control import CONTROL_RECORD_KEY, CONTROL_VALUES
from kseg.formats.varint_bytes import LONGEST_VARINT, from_zigzag, read_uvarint
from kseg.reading.batch import Batch
from kseg.reading.blocks import Damage
from kseg.times import time_text

MOST_DECOMPRESSED = 1 << 24
"""The most bytes of a decompressed body that are read; showing them takes many times as much memory."""
DAMAGE_WALKED = 1 << 20
"""The most bytes of a damage that are read; the rest is shown as one stretch."""
_SHOWN = 64


def batch_fields(batch: Batch, open_record: OpenRecord | None = None) -> list[ExplainedField]:
    """Return the fields of a batch, up to its last byte; `open_record` splits keys and values of an internal topic."""
    fields = walk(_grammar(batch.magic, batch.codec), batch.raw, batch.position)
    check_crcs(fields, batch)
    if batch.codec != Codec.NONE:
        _open_body(fields, batch)
    elif batch.is_control:
        open_control_records(fields)
    if open_record is not None and not batch.is_control:
        open_records(_with_bodies(fields), open_record)
    return fields


def _grammar(magic: int, codec: int) -> Any:
    if magic < 2:
        return LOG_ENTRY
    return RECORD_BATCH if codec == Codec.NONE else COMPRESSED_RECORD_BATCH


def all_fields(fields: list[ExplainedField]) -> Iterator[ExplainedField]:
    """Yield some fields with their parts, recursively, without those of decompressed bodies."""
    for field in fields:
        yield field
        yield from all_fields(field.children)


def _with_bodies(fields: list[ExplainedField]) -> Iterator[ExplainedField]:
    for field in all_fields(fields):
        yield field
        yield from all_fields(field.body)


def check_crcs(fields: list[ExplainedField], batch: Batch) -> None:
    """Add to a batch's checksum whether it is right."""
    for field in all_fields(fields):
        if field.path in ("header.crc", "message.crc"):
            _check_crc(field, batch)


def _check_crc(field: ExplainedField, batch: Batch) -> None:
    start = batch.position + checksum_of(batch.magic).covers_from
    field.check = Check(batch.crc, batch.compute_crc(), start, batch.position + batch.size)
    if not field.check.holds:
        field.problem = f"crc is 0x{batch.crc:08x}, computed 0x{field.check.computed:08x}"


def _open_body(fields: list[ExplainedField], batch: Batch) -> None:
    """Add the contents of the compressed records, or of a wrapper's value."""
    name = "message.value" if batch.is_legacy else "records"
    compressed = next((field for field in all_fields(fields) if field.path == name and field.raw), None)
    if compressed is None:
        return
    body = decompress(batch.codec, batch.magic, memoryview(compressed.raw), MOST_DECOMPRESSED)
    is_cut = body.failure is not None and len(body.data) == MOST_DECOMPRESSED
    too_large = f"decompresses to more than {MOST_DECOMPRESSED} bytes; kseg skips the rest"
    compressed.problem = too_large if is_cut else body.failure
    if batch.is_legacy:
        compressed.body = list(_entries(body.data))
    else:
        compressed.body = walk(Array(max(batch.header.records_count or 0, 0), RECORD), body.data, 0, name)


def _entries(body: bytes) -> Iterator[ExplainedField]:
    """Yield the log entries in a wrapper."""
    at, number = 0, 0
    while at < len(body):
        size = LOG_OVERHEAD + max(size_field(body, at), 0)
        entry = memoryview(body)[at : at + size]
        yield from walk(LOG_ENTRY, entry, at, f"entries[{number}]")
        at += size
        number += 1


def open_control_records(fields: list[ExplainedField]) -> None:
    """Split the keys and values of control records into fields."""
    contents = {field.path: field for field in all_fields(fields) if field.name in ("key", "value")}
    for path, key in contents.items():
        if not path.endswith("].key"):
            continue
        key.children = walk(CONTROL_RECORD_KEY, key.raw, key.position, key.path)[0].children or key.children
        number = next((field.value for field in key.children if field.name == "type"), None)
        grammar = CONTROL_VALUES.get(number) if number in list(ControlType) else None  # type: ignore[call-overload]
        value = contents.get(path.removesuffix("key") + "value")
        if grammar is not None and value is not None and value.raw:
            read = walk(grammar, value.raw, value.position, value.path)
            value.children = [*read[0].children, *read[1:]] if read[0].children else read


def damage_fields(damage: Damage, raw: bytes) -> list[ExplainedField]:
    """Return the readable fields of a damaged stretch; `raw` is at most its first DAMAGE_WALKED bytes."""
    if damage.kind is DamageKind.ZERO_TAIL:
        return [_rest_field(damage, raw, 0, "zero tail")]
    if damage.kind is DamageKind.UNREADABLE:
        rest = _rest_field(damage, b"", 0, UNREADABLE)
        rest.problem = damage.detail
        return [rest]
    read = _readable_fields(damage, raw)
    if read[-1].path == UNREADABLE:
        read.pop()
    size = sum(field.size for field in read)
    if size < damage.size:
        read.append(_rest_field(damage, raw, size, UNREADABLE))
        read[-1].problem = damage.detail
    return read


def _readable_fields(damage: Damage, raw: bytes) -> list[ExplainedField]:
    """Return the header fields if its length or magic is wrong, otherwise all available fields."""
    magic = raw[MAGIC_POSITION] if len(raw) > MAGIC_POSITION else None
    size = LOG_OVERHEAD + size_field(raw)
    if magic is None or magic > 2:
        return walk(BATCH_HEADER, raw[: MAGIC_POSITION + 1], damage.position)
    if damage.kind is DamageKind.BAD_LENGTH or size <= LOG_OVERHEAD:
        grammar = BATCH_HEADER if magic == 2 else LOG_ENTRY
        return walk(grammar, raw[: BATCH_HEADER.sizeof() if magic == 2 else LEGACY_FLAGS_POSITION + 1], damage.position)
    codec = BATCH_FLAGS.read(raw) & CODEC_MASK  # NONE if the attributes are missing
    return walk(_grammar(magic, codec), raw[:size], damage.position)


def _rest_field(damage: Damage, raw: bytes, at: int, path: str) -> ExplainedField:
    content = raw[at : at + _SHOWN]
    return ExplainedField(path, damage.position + at, damage.size - at, "bytes", None, damage.detail, content)


_UINT = (1 << 32) - 1


class RecordBytes(NamedTuple):
    """The range of a record in its batch's records, from `start` up to `end`. is_rest: it is the rest."""

    start: int
    end: int
    is_rest: bool = False


def outer_fields(batch: Batch) -> list[ExplainedField]:
    """Return the fields of a batch with its records as one field: nothing is decompressed, and no record is parsed."""
    fields = walk(LOG_ENTRY if batch.is_legacy else COMPRESSED_RECORD_BATCH, batch.raw, batch.position)
    check_crcs(fields, batch)
    if not batch.is_legacy and batch.codec == Codec.NONE:
        for field in fields:
            if field.path == "records":
                field.meaning = "the records in order"
    return fields


class BatchRecords:
    """The records of one batch, or the messages in a wrapper.

    content: their bytes, decompressed. first_position: the first byte's position in the file; 0 for compressed ones,
    whose positions count from there. problem: the reason if the content is incomplete; None if it isn't.
    """

    def __init__(self, batch: Batch, open_record: OpenRecord | None = None, zone: tzinfo = UTC) -> None:
        self.batch = batch
        self._zone = zone
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
        """Yield the records in order, up to the first with an impossible length; then the rest as one piece."""
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
        """Return the end of the record at a place by its length, or None if the length is impossible."""
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
        """Return the fields of a record; for remaining bytes one field."""
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
        """Add the resulting values to deltas."""
        header = self.batch.header
        for field in fields:
            if field.name == "offset_delta" and isinstance(field.value, int) and header.base_offset is not None:
                field.meaning += f": offset {header.base_offset + field.value}"
            if field.name == "timestamp_delta" and isinstance(field.value, int) and not header.is_log_append_time:
                time = header.base_timestamp + field.value
                field.meaning += f": {time_text(time, self._zone, none=str(time))}"
