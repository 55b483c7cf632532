"""Records of a run of batches as values: the twin's."""

from collections.abc import Iterator, Sequence

from kseg.formats.codes import TimestampType
from kseg.kernel.contract import RecordProblem, Rows
from kseg.kernel.record import Header, Record
from kseg.kernel.twin_rows import take_pieces
from kseg.kernel.twin_values import (
    POSITION,
    TIMESTAMP_TYPE,
    BatchValues,
    RecordValues,
    crc_of,
    headers_of,
    int32,
    key_of,
    offset_of,
    sequence_of,
    timestamp_of,
    validity_of,
    value_of,
)

_TIMESTAMP_TYPES = {kind.value: kind for kind in TimestampType}


def records(
    buffer: memoryview,
    rows: Rows,
    first: int,
    last: int,
    position: int,
    bodies: Sequence[bytes | None] | None,
    first_body: int = -1,
) -> Iterator[list[Record] | RecordProblem]:
    """The records of rows first … last - 1 as values; see the contract."""
    for batch, pieces in take_pieces(buffer, rows, first, last, position, bodies, first_body):
        for piece in pieces:
            if isinstance(piece, RecordProblem):
                yield piece
            elif piece:
                yield [_record(batch, values) for values in piece]


def _record(batch: BatchValues, values: RecordValues) -> Record:
    headers = headers_of(values)
    return Record(
        offset_of(values),
        timestamp_of(values),
        _TIMESTAMP_TYPES[batch[TIMESTAMP_TYPE]],
        key_of(values),
        value_of(values),
        tuple([Header(name.decode("utf-8", "replace"), value) for name, value in headers]) if headers else (),
        int32(sequence_of(values)),
        batch[POSITION],
        crc_of(values),
        bool(validity_of(values)),
    )
