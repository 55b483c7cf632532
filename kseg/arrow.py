"""Records as pyarrow record batches, without a Python object per record: the kernel's columns are Arrow's buffers.

Columns have the names and types of spark-sql-kafka's source: key, value, topic, partition, offset, timestamp,
timestampType, headers; and on demand the timestamp in milliseconds, and the columns of a record's batch.
"""

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kseg import kernel
from kseg.formats.codes import codec_name
from kseg.formats.file_names import parse_partition_directory, plain_text
from kseg.kernel.contract import ROW, START, Buffer
from kseg.kernel.entry_points import Columns
from kseg.log.selected_records import SelectedLog, meeting, message_damage
from kseg.reading.batch import OnDamage, batch_of, damages_of
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice


class _NoPandas(MetaPathFinder):
    """A finder of modules that finds pandas missing."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Leave all other modules to other finders."""
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


def leave_out_pandas() -> None:
    """Keep pyarrow from importing pandas, for processes of kseg's own.

    pyarrow imports an installed pandas with the first value that it converts, which takes as long as exporting 60 MiB.
    It asks once. Afterwards, conversions to pandas still work.
    """
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.scalar(len(pa.array([0])))
    finally:
        sys.meta_path.remove(finder)


MAX_BYTES = 32 << 20
"""Most bytes of keys and values in a record batch, unless one record alone has more."""

TIMESTAMP = pa.timestamp("us", tz="UTC")
MOST_MILLISECONDS = ((1 << 63) - 1) // 1000
"""The timestamp farthest from 1970 that microseconds can represent, in either direction."""
_MILLISECONDS = pa.timestamp("ms", tz="UTC")
HEADERS = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))
_RECORD_FIELDS = (
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", TIMESTAMP),
    pa.field("timestampType", pa.int32()),
)
MILLISECONDS = pa.field("timestampMs", pa.int64())
"""The timestamp in Kafka's form: milliseconds since 1970 in 64 bits."""
_HEADERS_FIELD = pa.field("headers", HEADERS)
_BATCH_FIELDS = (
    pa.field("baseOffset", pa.int64()),
    pa.field("position", pa.int64()),
    pa.field("segment", pa.string()),
    pa.field("producerId", pa.int64()),
    pa.field("producerEpoch", pa.int32()),
    pa.field("sequence", pa.int32()),
    pa.field("partitionLeaderEpoch", pa.int32()),
    pa.field("isTransactional", pa.bool_()),
    pa.field("isControl", pa.bool_()),
    pa.field("magic", pa.int32()),
    pa.field("compression", pa.string()),
)


@dataclass(frozen=True, slots=True)
class ArrowOptions:
    """The requested columns and the maximum size of a record batch.

    `headers` adds the headers, `batch_columns` the facts of each record's batch, `has_milliseconds` the timestamps in
    Kafka's form.
    """

    headers: bool = True
    batch_columns: bool = False
    max_bytes: int = MAX_BYTES
    has_milliseconds: bool = False


class Origin(NamedTuple):
    """The origin of records: their topic and partition, and the name of their log file."""

    topic: str | None
    partition: int | None
    segment: str


def origin_of(path: Path) -> Origin:
    """Return the topic and partition from the directory of a log file, or None if the directory has another name."""
    directory = parse_partition_directory(path.absolute().parent)
    topic, partition = (None, None) if directory is None else (plain_text(directory.topic), directory.partition)
    return Origin(topic, partition, plain_text(path.name))


@lru_cache(maxsize=16)
def schema_of(options: ArrowOptions) -> pa.Schema:
    """Return the schema of all record batches. As in the Spark connector, all fields are nullable."""
    fields = list(_RECORD_FIELDS)
    if options.has_milliseconds:
        fields.append(MILLISECONDS)
    if options.headers:
        fields.append(_HEADERS_FIELD)
    if options.batch_columns:
        fields += _BATCH_FIELDS
    return pa.schema(fields)


def selected_record_batches(log: SelectedLog, options: ArrowOptions, on_damage: OnDamage) -> Iterator[pa.RecordBatch]:
    """Yield the selected records of a log in order, except for records in batches with a wrong CRC.

    Damage in a batch is reported after some records that follow it. The selection decides about control records.
    """
    met, origin = meeting(log, on_damage), origin_of(log.path)
    for piece in log.intact_slices(met):
        columns = columns_of(piece) if log.picker.takes_all else log.picker.columns(piece)
        yield from slice_batches(piece, columns, origin, options)
        for damage in (*damages_of(piece, columns), *_wrong_messages(piece, columns)):
            met(damage)


def _wrong_messages(piece: Slice, columns: Columns) -> Iterator[Damage]:
    """Yield a damage for every batch that contains a message with a wrong CRC."""
    if b"\0" not in bytes(columns.valid):
        return
    rows, valid, offsets = (memoryview(each).cast("B") for each in (columns.rows, columns.valid, columns.offsets))
    wrong = {row: at for at, row in reversed(list(enumerate(rows.cast("i")))) if not valid[at]}
    for row, at in sorted(wrong.items()):
        yield message_damage(piece.run.position + piece.run.rows[row * ROW + START], offsets.cast("q")[at])


def columns_of(piece: Slice) -> Columns:
    """Return the records of a slice, column by column."""
    run = piece.run
    return kernel.load().columns(run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies)


def slice_batches(piece: Slice, columns: Columns, origin: Origin, options: ArrowOptions) -> Iterator[pa.RecordBatch]:
    """Yield the intact records of a slice in record batches of at most `max_bytes`."""
    if not columns.count:
        return
    capped = _cap(as_record_batch(columns, piece, origin, options), columns, options.max_bytes)
    if b"\0" not in bytes(columns.valid):
        yield from capped
        return
    is_valid = pc.equal(numbers(columns.valid, pa.int8(), columns.count), 1)
    first = 0
    for batch in capped:
        yield batch.filter(is_valid.slice(first, batch.num_rows))
        first += batch.num_rows


def _cap(whole: pa.RecordBatch, columns: Columns, max_bytes: int) -> Iterator[pa.RecordBatch]:
    keys, values = memoryview(columns.key_offsets).cast("i"), memoryview(columns.value_offsets).cast("i")
    first = 0
    while first < columns.count:
        limit = keys[first] + values[first] + max_bytes
        last = bisect_right(range(columns.count + 1), limit, first + 1, key=lambda row: keys[row] + values[row]) - 1
        last = max(last, first + 1)
        yield whole.slice(first, last - first)
        first = last


def as_record_batch(columns: Columns, piece: Slice, origin: Origin, options: ArrowOptions) -> pa.RecordBatch:
    """Return all records of a slice that the kernel has read, including control records and invalid records."""
    count = columns.count
    milliseconds = numbers(columns.timestamps, _MILLISECONDS, count)
    arrays = [
        _binary(columns.key_offsets, columns.key_validity, columns.key_data, count),
        _binary(columns.value_offsets, columns.value_validity, columns.value_data, count),
        repeated_text(origin.topic, count),
        repeated_int32(origin.partition, count),
        numbers(columns.offsets, pa.int64(), count),
        _microseconds(milliseconds),
        numbers(columns.timestamp_types, pa.int32(), count),
    ]
    if options.has_milliseconds:
        arrays.append(milliseconds.view(pa.int64()))
    if options.headers:
        arrays.append(_headers(columns))
    if options.batch_columns:
        arrays += _batch_columns(columns, piece, origin)
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(options))


def _microseconds(milliseconds: pa.Array) -> pa.Array:
    """Convert timestamps to the unit used in tables.

    Null for a time beyond the range of microseconds, about 292,000 years.
    """
    try:
        return milliseconds.cast(TIMESTAMP)
    except pa.ArrowInvalid:
        since_1970 = milliseconds.cast(pa.int64())
        is_held = pc.and_(
            pc.greater_equal(since_1970, -MOST_MILLISECONDS), pc.less_equal(since_1970, MOST_MILLISECONDS)
        )
        return pc.if_else(is_held, milliseconds, pa.scalar(None, _MILLISECONDS)).cast(TIMESTAMP)


def numbers(buffer: Buffer, kind: pa.DataType, count: int) -> pa.Array:
    """Convert a kernel buffer to an Arrow array.

    An empty buffer may have no memory, which Arrow doesn't accept.
    """
    if count == 0:
        return pa.nulls(0, kind)
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(buffer)])


def repeated_text(text: str | None, count: int) -> pa.Array:
    """Return a column with the same text in all rows.

    Built from buffers: pyarrow imports an installed pandas with the first Python value that it converts.
    """
    if text is None:
        return pa.nulls(count, pa.string())
    content = text.encode()
    offsets = pa.py_buffer(array("i", (0, len(content))))
    return pa.repeat(pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(content)])[0], count)


def repeated_int32(number: int | None, count: int) -> pa.Array:
    """Return a column with the same number in all rows; built from buffers too."""
    if number is None:
        return pa.nulls(count, pa.int32())
    return pa.repeat(pa.Array.from_buffers(pa.int32(), 1, [None, pa.py_buffer(array("i", (number,)))])[0], count)


def _binary(offsets: Buffer, validity: Buffer, data: Buffer, count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(), count, list(map(pa.py_buffer, (validity, offsets, data))))


def _headers(columns: Columns) -> pa.Array:
    """Return the headers as non-null lists, because null lists make Spark's Arrow conversion quadratic."""
    count = columns.header_count
    keys = pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(columns.header_key_offsets), pa.py_buffer(columns.header_key_data)]
    )
    values = _binary(columns.header_value_offsets, columns.header_value_validity, columns.header_value_data, count)
    pairs = pa.StructArray.from_arrays([_text(keys), values], fields=list(HEADERS.value_type))
    return pa.Array.from_buffers(HEADERS, columns.count, [None, pa.py_buffer(columns.header_offsets)], children=[pairs])


def _text(keys: pa.Array) -> pa.Array:
    """Return valid UTF-8 unchanged, and decode other names like Java does."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([key.as_py().decode("utf-8", "replace") for key in keys], pa.string())


def _batch_columns(columns: Columns, piece: Slice, origin: Origin) -> list[pa.Array]:
    batches = [batch_of(piece.run, row) for row in range(piece.first, piece.last)]
    rows = pc.subtract(numbers(columns.rows, pa.int32(), columns.count), piece.first)
    of_batch = {
        "baseOffset": [batch.base_offset for batch in batches],
        "position": [batch.position for batch in batches],
        "segment": [origin.segment] * len(batches),
        "producerId": [batch.producer_id for batch in batches],
        "producerEpoch": [batch.producer_epoch for batch in batches],
        "partitionLeaderEpoch": [batch.partition_leader_epoch for batch in batches],
        "isTransactional": [batch.is_transactional for batch in batches],
        "isControl": [batch.is_control for batch in batches],
        "magic": [batch.magic for batch in batches],
        "compression": [codec_name(batch.codec) or f"unknown {batch.codec}" for batch in batches],
    }
    arrays: list[Any] = []
    for field in _BATCH_FIELDS:
        if field.name == "sequence":
            arrays.append(numbers(columns.sequences, pa.int32(), columns.count))
        else:
            arrays.append(pa.array(of_batch[field.name], field.type).take(rows))
    return arrays
