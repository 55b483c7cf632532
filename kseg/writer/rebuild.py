"""Batches made anew without some of their records, which else stay byte for byte as they are."""

from collections.abc import Collection
from dataclasses import replace

from kseg.batch import Batch, Record
from kseg.codecs import decompress
from kseg.errors import KsegError
from kseg.formats.body import wrapper_value
from kseg.formats.codes import BATCH_HEADER_SIZE, CODEC_MASK, LOG_OVERHEAD, NO_TIMESTAMP, Codec, TimestampType
from kseg.writer.batch import BatchFields, build_batch
from kseg.writer.legacy import encode_wrapper


def without_records(batch: Batch, offsets: Collection[int]) -> bytes:
    """The batch's bytes without the records at some offsets; nothing if a v0 or v1 entry loses all that it has.

    As compaction does it: base offset, last offset and sequences stay, also of a v2 batch that becomes empty; count and
    largest time follow what is left. Raises KsegError if its records can't be read.
    """
    problem = batch.problem()
    if problem is not None:
        raise KsegError(f"the batch can't be made anew: {problem.detail}", position=batch.position)
    records = list(batch.records())
    left = [record for record in records if record.offset not in offsets]
    if batch.is_legacy:
        return _legacy(batch, records, left)
    body = batch.raw[BATCH_HEADER_SIZE:]
    if batch.codec != Codec.NONE:
        body = decompress(batch.codec, batch.magic, memoryview(body)).data
    pieces = _cut_records(body, len(records))
    kept = b"".join(piece for piece, record in zip(pieces, records, strict=True) if record.offset not in offsets)
    return build_batch(_fields(batch, left), kept)


def _fields(batch: Batch, left: list[Record]) -> BatchFields:
    fields = BatchFields(
        batch.base_offset,
        batch.last_offset,
        batch.attributes,
        batch.base_timestamp,
        batch.max_timestamp,
        len(left),
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.partition_leader_epoch,
    )
    if not left:
        is_horizon = batch.delete_horizon_ms is not None
        attributes = batch.attributes & ~CODEC_MASK
        base = batch.base_timestamp if is_horizon else NO_TIMESTAMP
        return replace(fields, attributes=attributes, base_timestamp=base)
    return replace(fields, max_timestamp=_largest(batch, left))


def _largest(batch: Batch, left: list[Record]) -> int:
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return batch.max_timestamp
    return max(record.timestamp for record in left)


def _cut_records(body: bytes, count: int) -> list[bytes]:
    """The records of a v2 body, each with its length."""
    pieces, at = [], 0
    for _ in range(count):
        start, number, shift = at, 0, 0
        while True:
            byte = body[at]
            number |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        at += number >> 1  # lengths aren't negative
        pieces.append(body[start:at])
    return pieces


def _legacy(batch: Batch, records: list[Record], left: list[Record]) -> bytes:
    """A wrapper of what is left: stored offsets stay, so that gaps do."""
    value = wrapper_value(memoryview(batch.raw))
    if not left or batch.codec == Codec.NONE or value is None:
        return b""
    body = decompress(batch.codec, batch.magic, value).data
    entries, at = [], 0
    kept = {record.offset for record in left}
    for record in records:
        size = LOG_OVERHEAD + int.from_bytes(body[at + 8 : at + LOG_OVERHEAD], "big")
        if record.offset in kept:
            entries.append(body[at : at + size])
        at += size
    return encode_wrapper(
        left[-1].offset, batch.magic, batch.attributes, b"".join(entries), timestamp=_largest(batch, left)
    )
