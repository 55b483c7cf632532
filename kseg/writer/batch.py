"""v2 batches to bytes: header, CRC and records. Source: DefaultRecordBatch.writeHeader."""

from dataclasses import dataclass

from kseg import kernel
from kseg.formats.codes import BATCH_HEADER_SIZE, CODEC_MASK, LOG_OVERHEAD, Codec
from kseg.formats.fixed import BATCH_CRC, BATCH_HEADER_FIELDS
from kseg.writer.compress import compress
from kseg.writer.errors import RecordError
from kseg.writer.record import LARGEST_SIZE

_MAGIC = 2


@dataclass(frozen=True, slots=True)
class BatchFields:
    """What stands in a batch's header beside its size, CRC and magic; fields as in the grammar BATCH_HEADER."""

    base_offset: int
    last_offset: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    records_count: int
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    partition_leader_epoch: int = -1

    @property
    def codec(self) -> int:
        """Bits 0-2 of the attributes, see Codec."""
        return self.attributes & CODEC_MASK


def build_batch(fields: BatchFields, records: bytes, level: int | None = None) -> bytes:
    """A batch of records that are encoded already; compresses them by the attributes' codec.

    A batch without records has no body, whatever its codec: compaction leaves such. Raises RecordError if it becomes
    too large or a field doesn't fit.
    """
    if fields.codec != Codec.NONE and records:
        records = compress(fields.codec, records, magic=_MAGIC, level=level)
    if BATCH_HEADER_SIZE + len(records) > LARGEST_SIZE:
        raise RecordError(f"a batch of {BATCH_HEADER_SIZE + len(records)} bytes is larger than {LARGEST_SIZE}")
    header = bytearray(_header(fields, len(records)))
    BATCH_CRC.write(header, kernel.load().crc32c(memoryview(b"".join((header[BATCH_CRC.end :], records)))))
    return b"".join((header, records))


def _header(fields: BatchFields, size: int) -> bytes:
    from struct import error as struct_error

    try:
        return BATCH_HEADER_FIELDS.struct.pack(
            fields.base_offset,
            BATCH_HEADER_SIZE - LOG_OVERHEAD + size,
            fields.partition_leader_epoch,
            _MAGIC,
            0,
            (fields.attributes + 0x8000) % 0x10000 - 0x8000,
            fields.last_offset - fields.base_offset,
            fields.base_timestamp,
            fields.max_timestamp,
            fields.producer_id,
            fields.producer_epoch,
            fields.base_sequence,
            fields.records_count,
        )
    except struct_error as error:
        raise RecordError(f"a field of the batch from offset {fields.base_offset} is out of its range") from error
