"""Batches without some of their records, as the log cleaner writes them. Source: MemoryRecords.filterTo."""

from collections.abc import Collection

from kseg.codecs.bodies import decompress
from kseg.errors import KsegError
from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    Codec,
    TimestampType,
    size_field,
    wrapper_value,
)
from kseg.formats.varint_bytes import LONGEST_VARINT, LONGEST_VARLONG, read_uvarint, varint
from kseg.kernel.record import Record
from kseg.reading.batch import Batch, BatchHeader
from kseg.writer.batches import build_batch
from kseg.writer.messages import encode_wrapper

_CLEANED_FLAGS = TIMESTAMP_TYPE_MASK | TRANSACTIONAL_MASK | CONTROL_MASK


def without_records(batch: Batch, offsets: Collection[int]) -> bytes:
    """Return the batch's bytes without the records at some offsets; empty if a v0 or v1 entry loses all its records.

    As in compaction, base offset, last offset and sequences stay, even if a v2 batch becomes empty; count and largest
    timestamp are those of the remaining records. Raises KsegError if its records can't be read.
    """
    records = _readable_records(batch)
    left = [record for record in records if record.offset not in offsets]
    if batch.is_legacy:
        return _legacy(batch, records, left)
    if not left:
        return empty_batch(batch)
    pieces = _cut_records(_body(batch), len(records))
    kept = b"".join(piece for piece, record in zip(pieces, records, strict=True) if record.offset not in offsets)
    return build_batch(batch.header._replace(records_count=len(left), max_timestamp=_largest(batch, left)), kept)


def cleaned_batch(batch: Batch, offsets: Collection[int], delete_horizon_ms: int | None = None) -> bytes:
    """Return the bytes of the batch with only the records at some offsets, as the log cleaner writes them.

    A v2 batch's base timestamp becomes the delete horizon or, without one, its first record's; an empty one keeps its
    header. A v0 or v1 wrapper keeps its format, and gaps inside, as cleaners before 4.0 left it; a wrapper without
    records becomes empty bytes. Raises KsegError if its records can't be read. Source: MemoryRecords.filterTo.
    """
    records = _readable_records(batch)
    left = [record for record in records if record.offset in offsets]
    if batch.is_legacy:
        return _legacy(batch, records, left)
    if not left:
        return empty_batch(batch)
    base = left[0].timestamp if delete_horizon_ms is None else delete_horizon_ms
    pieces = _cut_records(_body(batch), len(records))
    kept = (
        _rebase_timestamp(piece, each, base)
        for piece, each in zip(pieces, records, strict=True)
        if each.offset in offsets
    )
    body = b"".join(kept)
    flags = batch.attributes & ~DELETE_HORIZON_MASK | (DELETE_HORIZON_MASK if delete_horizon_ms is not None else 0)
    return batch_of_rest(batch.header._replace(attributes=flags), body, len(left), base, _largest(batch, left))


def batch_of_rest(header: BatchHeader, records: bytes, count: int, base_timestamp: int, max_timestamp: int) -> bytes:
    """Build a v2 batch of its remaining records, as the log cleaner writes it.

    Args:
        header: the batch's.
        records: the remaining ones, uncompressed, their timestamps relative to the base timestamp.
        count: their number.
        base_timestamp: the delete horizon, if the header has one.
        max_timestamp: the largest of the records'.
    """
    cleaned = header._replace(
        attributes=header.attributes & (CODEC_MASK | DELETE_HORIZON_MASK | _CLEANED_FLAGS),
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        records_count=count,
    )
    return build_batch(cleaned, records)


def empty_batch(batch: Batch) -> bytes:
    """Return the header of a v2 batch without its records: sequences and offsets stay.

    Source: DefaultRecordBatch.writeEmptyHeader.
    """
    attributes = batch.attributes & _CLEANED_FLAGS
    header = batch.header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, records_count=0)
    return build_batch(header, b"")


def _readable_records(batch: Batch) -> list[Record]:
    problem = batch.problem()
    if problem is not None:
        raise KsegError(f"the batch can't be rebuilt: {problem.detail}", position=batch.position)
    return list(batch.records())


def _body(batch: Batch) -> bytes:
    """Return the bytes of a v2 batch's records, decompressed."""
    body = batch.raw[BATCH_HEADER_SIZE:]
    return body if batch.codec == Codec.NONE else decompress(batch.codec, batch.magic, memoryview(body)).data


def _rebase_timestamp(piece: bytes, record: Record, base_timestamp: int) -> bytes:
    """Return a record with its time relative to another base."""
    _, start = read_uvarint(piece, 0, LONGEST_VARINT)
    _, rest = read_uvarint(piece, start + 1, LONGEST_VARLONG)
    delta = (record.timestamp - base_timestamp + 2**63) % 2**64 - 2**63
    body = b"".join((b"\0", varint(delta), piece[rest:]))
    return varint(len(body)) + body


def _largest(batch: Batch, left: list[Record]) -> int:
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return batch.max_timestamp
    return max(record.timestamp for record in left)


def _cut_records(body: bytes, count: int) -> list[bytes]:
    """Split the records of a v2 body, each with its length."""
    pieces, at = [], 0
    for _ in range(count):
        start = at
        number, at = read_uvarint(body, at, LONGEST_VARINT)
        at += number >> 1  # lengths aren't negative
        pieces.append(body[start:at])
    return pieces


def _legacy(batch: Batch, records: list[Record], left: list[Record]) -> bytes:
    """Build a wrapper of the remaining entries: stored offsets stay, so gaps stay too."""
    value = wrapper_value(memoryview(batch.raw))
    if not left or batch.codec == Codec.NONE or value is None:
        return b""
    body = decompress(batch.codec, batch.magic, value).data
    entries, at = [], 0
    kept = {record.offset for record in left}
    for record in records:
        size = LOG_OVERHEAD + size_field(body, at)
        if record.offset in kept:
            entries.append(body[at : at + size])
        at += size
    return encode_wrapper(
        left[-1].offset, batch.magic, batch.attributes, b"".join(entries), timestamp=_largest(batch, left)
    )
