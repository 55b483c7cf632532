"""v2 batches to bytes: header, CRC and records. Source: DefaultRecordBatch.writeHeader."""

from kseg import kernel
from kseg.codecs.body import compress
from kseg.errors import RecordError
from kseg.formats.codes import BATCH_HEADER_SIZE, LOG_OVERHEAD, Codec
from kseg.formats.header_fields import BATCH_CRC, BATCH_HEADER_FIELDS
from kseg.reading.header import BatchHeader
from kseg.writer.record_encoding import LARGEST_SIZE

_MAGIC = 2


def build_batch(header: BatchHeader, records: bytes, level: int | None = None) -> bytes:
    """A batch of records that are encoded already; compresses them by the attributes' codec.

    Size, CRC and magic are made here, whatever the header says of them. A batch without records has no body, whatever
    its codec: compaction leaves such. Raises RecordError if it becomes too large or a field doesn't fit.
    """
    if header.codec != Codec.NONE and records:
        records = compress(header.codec, records, magic=_MAGIC, level=level)
    if BATCH_HEADER_SIZE + len(records) > LARGEST_SIZE:
        raise RecordError(f"a batch of {BATCH_HEADER_SIZE + len(records)} bytes is larger than {LARGEST_SIZE}")
    encoded = bytearray(_encoded(header, len(records)))
    BATCH_CRC.write(encoded, kernel.load().crc32c(memoryview(b"".join((encoded[BATCH_CRC.end :], records)))))
    return b"".join((encoded, records))


def _encoded(header: BatchHeader, size: int) -> bytes:
    from struct import error as struct_error

    values = header._asdict() | {
        "base_offset": header.first_offset,
        "length": BATCH_HEADER_SIZE - LOG_OVERHEAD + size,
        "magic": _MAGIC,
        "crc": 0,
        "attributes": (header.attributes + 0x8000) % 0x10000 - 0x8000,
        "last_offset_delta": header.last_offset - header.first_offset,
    }
    try:
        return BATCH_HEADER_FIELDS.struct.pack(*map(values.__getitem__, BATCH_HEADER_FIELDS.names))
    except struct_error as error:
        raise RecordError(f"a field of the batch from offset {header.first_offset} is out of its range") from error
