"""Parquet files of an export: their layout, their names, and attempts to write them."""

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from inspect import signature
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kseg.arrow import MILLISECONDS
from kseg.errors import KsegError, UsageError, quote
from kseg.export.columns.column_types import END_TIME, FIRST_TIME, text_columns
from kseg.export.columns.flat_columns import is_decoded
from kseg.export.destination import Destination
from kseg.export.plan import TOLERANCE, WorkOrder, count_files
from kseg.export.read.batch_sizes import cut
from kseg.export.results import ExportedFile
from kseg.export.settings import MIB, REASON, SIDE, FileOptions, ReadOptions
from kseg.export.write.field_ids import with_field_ids
from kseg.export.write.folders import NO_VALUE, Folders, path_in_log
from kseg.export.write.sort_order import parquet_order, sorted_rows

ATTEMPTS = "_kseg/attempts"
ATTEMPT_SUFFIX = ".attempt"
"""Suffix of renamable files that aren't valid yet: readers of `**/*.parquet` ignore them."""
ATTEMPT = re.compile(
    rf"(?:.*[-/])?([0-9a-f]{{8}})-[0-9]+-[0-9a-f]{{12}}-[0-9]+(?:\.parquet|{re.escape(ATTEMPT_SUFFIX)})", re.DOTALL
)
"""Pattern of the name of an attempt's file; its group is the run's id."""
OPEN_FILES = 16
"""The most files of different folders that are written concurrently."""
DIVIDED_SIZE = 16 * MIB
"""Bytes of records that are divided by folder at once."""
WAITING_GROUPS = 2
"""The most records of all open files in memory, as a multiple of a row group."""
MOST_OF_A_TOPIC = 160
"""The most bytes of a topic's name in a file name: file systems allow 255 per name, and Kafka's topics 249."""
DIGEST = 12
"""Hexadecimal digits that replace the rest."""
SORTED_BY = ("topic", "partition", "offset")
"""The order of a file's rows."""
MOST_FALSE = 0.01
"""The share of row groups without a value that a bloom filter fails to exclude; about ten bits per record."""
_DELTAS = ("offset", "timestamp", MILLISECONDS.name, "baseOffset", "position")
_FEW_VALUES = (
    *("topic", "partition", "timestampType", "segment", "compression", "magic", "isTransactional", "isControl"),
    *(SIDE.name, REASON.name),
)


def schema_of_files(read: ReadOptions, options: FileOptions) -> pa.Schema:
    """Return the schema of the Parquet files without folder columns; with ids, if the format has them."""
    schema = read.schema()
    if options.format.has_field_ids:
        schema = with_field_ids(schema, read.decode.field_ids)
    return pa.schema([field for field in schema if field.name not in options.columns_of_folders])


def with_readable_times(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the records, with a null timestamp if it is outside of the years 1 to 9999.

    Delta's and Iceberg's libraries can't represent such a day, and the table would become unreadable.
    """
    place = batch.schema.get_field_index("timestamp")
    times = batch.column(place)
    bounds = pc.min_max(times.view(pa.int64()))
    first, last = bounds["min"].as_py(), bounds["max"].as_py()
    if first is None or (first >= FIRST_TIME and last < END_TIME):
        return batch
    since_1970 = times.view(pa.int64())
    is_held = pc.and_(pc.greater_equal(since_1970, FIRST_TIME), pc.less(since_1970, END_TIME))
    held = pc.if_else(is_held, times, pa.scalar(None, times.type))
    return batch.set_column(place, batch.schema.field(place), held)


class ParquetFiles:
    """A context manager for the output files of one attempt at an order.

    files: the complete ones, for the manifest. An attempt's names are unique; the manifest alone decides which files
    are valid.
    """

    def __init__(self, order: WorkOrder, job: str, read: ReadOptions, options: FileOptions, place: Destination) -> None:
        self.files: list[ExportedFile] = []
        self._order = order
        self._attempt = new_attempt(job, order.number)
        self._options = options
        self._place = place
        self._schema = schema_of_files(read, options)
        self._folders = Folders((order.topic, order.partition), read, options)
        self._open: dict[str, NewFile] = {}
        self._undivided: list[pa.RecordBatch] = []
        self._read = 0.0
        self._waiting = 0
        self._density: float | None = None
        self._progress = 0.0

    def __enter__(self) -> "ParquetFiles":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._divide()
        while self._open:
            if kind is None:
                self._close(next(iter(self._open)))
            else:
                self._open.popitem()[1].abandon()
        if kind is None:
            self._place.sync(file.attempt for file in self.files)

    def abandon(self) -> None:
        """Remove all written files."""
        self._undivided = []
        while self._open:
            self._open.popitem()[1].abandon()
        while self.files:
            with suppress(KsegError):  # the sweep finds the file
                self._place.delete(self.files.pop().attempt)

    def write(self, batch: pa.RecordBatch, progress: float = 1.0) -> None:
        """Add records to the files of their folders. progress: the part of the order that was read, from 0 to 1."""
        self._undivided.append(batch)
        self._read = progress
        if not self._folders.are_many or sum(each.nbytes for each in self._undivided) >= DIVIDED_SIZE:
            self._divide()

    def _divide(self) -> None:
        """Divide the records by folder, several batches at once: each folder costs time in each of them."""
        batches = pa.Table.from_batches(self._undivided).combine_chunks().to_batches() if self._undivided else []
        self._undivided = []
        for batch in batches:
            self._write(batch, self._read)

    def _write(self, batch: pa.RecordBatch, progress: float) -> None:
        size = min(self._options.row_group_size, max(self._options.target_size // 8, 1))
        before, rows = self._progress, 0
        for piece in cut(batch, size, batch.num_rows):
            rows += piece.num_rows
            self._progress = before + (progress - before) * rows / batch.num_rows
            for folder, records in self._folders.split(piece):
                self._write_to(folder, records.select(self._schema.names))

    def _write_to(self, folder: str, records: pa.RecordBatch) -> None:
        file = self._open.pop(folder, None) or self._new_file(folder)
        self._open[folder] = file
        before, was_started = file.waiting_size, file.is_started
        file.write(records)
        self._waiting += file.waiting_size - before
        if file.size >= self._aim():
            self._density = file.density
            self._close(folder)
        if self._waiting > WAITING_GROUPS * self._options.row_group_size:
            self._write_largest()
        if file.is_started and not was_started:
            self._limit_started()

    def _write_largest(self) -> None:
        """Write half of the waiting records, of the folders that have most; few of their files stay open."""
        wanted = WAITING_GROUPS * self._options.row_group_size // 2
        started = sum(file.is_started for file in self._open.values())
        for folder in sorted(self._open, key=lambda name: -self._open[name].waiting_size):
            if self._waiting <= wanted:
                return
            file = self._open[folder]
            if file.is_started or started < OPEN_FILES:
                started += not file.is_started
                self._waiting -= file.waiting_size
                file.flush()
            else:
                self._close(folder)

    def _limit_started(self) -> None:
        started = [folder for folder, file in self._open.items() if file.is_started]
        for folder in started[: max(len(started) - OPEN_FILES, 0)]:
            self._close(folder)

    def _aim(self) -> float:
        """Return the size at which a file ends: an equal part of the order's rest, near the target.

        So the last file is about as large as the others.
        """
        target = self._options.target_size
        if self._folders.are_many or self._progress <= 0:
            return target
        closed = sum(file.size for file in self.files)
        rest = (closed + sum(file.size for file in self._open.values())) / self._progress - closed
        size = rest / count_files(rest / target, TOLERANCE)
        return min(max(size, (1 - TOLERANCE) * target), (1 + TOLERANCE) * target)

    def _new_file(self, folder: str) -> "NewFile":
        order = self._order
        attempt = f"{self._attempt}-{len(self.files) + len(self._open)}"
        layout = Layout(self._schema, self._options, not order.is_disordered, self._density)
        origin = {"topic": order.topic, "partition": order.partition, "replica": order.replica}
        if order.topic_id is not None:
            origin["topicId"] = order.topic_id
        return NewFile(folder, attempt, stem_of(order.topic, order.partition), origin, layout, self._place)

    def _close(self, folder: str) -> None:
        file = self._open.pop(folder)
        self._waiting -= file.waiting_size
        self.files.append(file.close())


class Layout(NamedTuple):
    """The layout of a file. schema: its columns. is_sorted: whether its rows rise by topic, partition and offset.

    density: bytes of a file per byte of records in memory, in earlier files of its kind; None if unknown.
    """

    schema: pa.Schema
    options: FileOptions
    is_sorted: bool
    density: float | None = None


class NewFile:
    """A Parquet file under an attempt's name; its first record creates it. The caller syncs it after its end.

    stem: the prefix of its final name, before the first offset. origin: metadata of the file, for programs.
    """

    def __init__(
        self, folder: str, attempt: str, stem: str, origin: Mapping[str, Any], layout: Layout, place: Destination
    ) -> None:
        self._folder, self._attempt, self._stem, self._origin = folder, attempt, stem, origin
        self._layout, self._place = layout, place
        self._stack = ExitStack()
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_size = self._flushed_size = 0
        self._rows = 0
        self._first: int | None = None
        self._last = 0
        self._first_time: int | None = None
        self._last_time: int | None = None
        self._path = self._name = ""

    def _start(self) -> None:
        digits = 20 if (self._first or 0) >= 0 else 21  # Python counts the sign, which Kafka adds
        # readers ignore names that begin with _, as internal topics' do
        self._name = f"part-{self._stem}-{self._first:0{digits}}"
        form = self._layout.options.format
        is_logged = form.has_log
        folder = path_in_log(self._folder, has_values=form.has_field_ids) if is_logged else self._folder
        self._path = (
            f"{ATTEMPTS}/{self._attempt}{ATTEMPT_SUFFIX}"
            if self._place.renames and not is_logged
            else f"{folder}/{self._name}-{self._attempt}.parquet".removeprefix("/")
        )
        self._sink = self._stack.enter_context(self._place.create_unsynced(self._path))

    @property
    def is_started(self) -> bool:
        """True if the file exists; before, all its records are in memory."""
        return bool(self._path)

    @property
    def waiting_size(self) -> int:
        """Bytes of records in memory."""
        return self._waiting_size

    @property
    def density(self) -> float | None:
        """Bytes of the file per byte of records in memory, as far as known."""
        return self._sink.tell() / self._flushed_size if self._flushed_size else self._layout.density

    @property
    def size(self) -> float:
        """Bytes written, and an estimate for the records still in memory."""
        written = self._sink.tell() if self.is_started else 0
        return float(written + self._waiting_size * (self.density or 1))

    @property
    def rows(self) -> int:
        """The number of records so far."""
        return self._rows

    def write(self, batch: pa.RecordBatch) -> None:
        """Add records to the current row group."""
        offsets = pc.min_max(batch.column("offset"))
        if self._first is None:
            self._first = offsets["min"].as_py()
        self._last = max(self._last, offsets["max"].as_py())
        self._note_times(batch.column("timestamp"))
        self._waiting.append(batch)
        self._waiting_size += batch.nbytes
        self._rows += batch.num_rows
        if self._waiting_size >= self._row_group_size:
            self.flush()

    @property
    def _row_group_size(self) -> int:
        """Bytes of records in the next row group: fewer in the first one, if a small file size isn't known yet."""
        options = self._layout.options
        return min(options.row_group_size, options.target_size // 4) if self.density is None else options.row_group_size

    def _note_times(self, times: pa.Array) -> None:
        found = pc.min_max(times.view(pa.int64()))
        first, last = found["min"].as_py(), found["max"].as_py()
        if first is not None:
            self._first_time = first if self._first_time is None else min(self._first_time, first)
            self._last_time = last if self._last_time is None else max(self._last_time, last)

    def flush(self) -> None:
        """Write the waiting records as a row group."""
        if self._waiting and not self.is_started:
            self._start()
        if self._waiting:
            rows = pa.Table.from_batches(self._waiting, self._layout.schema)
            table = sorted_rows(rows, self._layout.options.sort_by)
            with self._named_on_error():
                if self._writer is None:  # the first row group determines the filters' size
                    self._writer = self._stack.enter_context(_writer(self._sink, self._layout, table.num_rows))
                self._writer.write_table(table, row_group_size=table.num_rows)
            self._flushed_size += self._waiting_size
            self._waiting, self._waiting_size = [], 0

    @contextmanager
    def _named_on_error(self) -> Iterator[None]:
        """Add the file name to the system's errors: pyarrow doesn't know it."""
        try:
            yield
        except OSError as error:
            raise KsegError(
                f"can't be written: {error.strerror or error}", f"{self._place.url}/{self._path}"
            ) from error

    def abandon(self) -> None:
        """Close and remove an unwanted file; the sweep finds files that can't be removed now."""
        with suppress(OSError, KsegError, pa.ArrowException):
            self._stack.close()
        if self.is_started:
            with suppress(OSError, KsegError):
                self._place.delete(self._path)

    def close(self) -> ExportedFile:
        """Finish a file that has been started, and return its manifest entry; remove it if that fails."""
        try:
            return self._finish()
        except BaseException:
            self.abandon()
            raise

    def _finish(self) -> ExportedFile:
        self.flush()
        assert self._first is not None
        assert self._writer is not None
        self._writer.add_key_value_metadata({"kseg": json.dumps(self._origin)})
        with self._named_on_error():
            self._writer.close()
            size = self._sink.tell()
        self._stack.close()
        return ExportedFile(
            self._path,
            self._folder,
            self._name,
            self._first,
            self._last,
            self._rows,
            size,
            None,
            0,
            self._first_time,
            self._last_time,
        )


def origin_of_parts(parts: Iterable[tuple[str, int | None, str | None]]) -> dict[str, Any]:
    """Return the metadata of a file with rows of several partitions: topic, partition and topic id of each, once."""
    origins = {(topic, partition): topic_id for topic, partition, topic_id in parts}
    return {"parts": [{"topic": key[0], "partition": key[1], "topicId": own} for key, own in origins.items()]}


def new_attempt(job: str, number: int) -> str:
    """Return the prefix of an attempt's file names, which is unique to this attempt at the run's order."""
    return f"{job}-{number}-{uuid4().hex[:12]}"


def stem_of(topic: str, *partitions: int | None) -> str:
    """Return the part of file names that stands for a topic and its partitions."""
    known = sorted({partition for partition in partitions if partition is not None})
    return "-".join((_short(topic), "_".join(map(str, {known[0]: 0, known[-1]: 0})))) if known else _short(topic)


def _short(topic: str) -> str:
    """Return a topic name, truncated and extended by a digest if it is too long for a file name."""
    if len(os.fsencode(topic)) <= MOST_OF_A_TOPIC:
        return topic
    start = os.fsencode(topic)[: MOST_OF_A_TOPIC - DIGEST - 1].decode(errors="ignore")
    return f"{start}~{sha256(os.fsencode(topic)).hexdigest()[:DIGEST]}"


def check_options(options: FileOptions) -> None:
    """Raise UsageError if the installed pyarrow can't write such files."""
    if options.bloom_filter is not None and "bloom_filter_options" not in signature(pq.ParquetWriter).parameters:
        raise UsageError(f"pyarrow {pa.__version__} can't write bloom filters; update pyarrow, or omit --bloom-filter")


def check_topics(topics: Collection[str], options: FileOptions) -> None:
    """Raise UsageError for a topic whose folder or files readers would misinterpret."""
    if NO_VALUE in topics and "topic" in options.columns_of_folders:
        raise UsageError(
            f"readers interpret the folder topic={NO_VALUE} as null; specify --partition-by none, or choose other"
            " topics"
        )
    form = options.format
    cut = next((topic for topic in topics if set(topic) & set(form.unreadable)), None)
    if cut is not None:
        raise UsageError(
            f"readers of {form.title} can't find files of the topic {quote(cut)}; "
            "choose another --format, or other topics"
        )


def _writer(sink: Any, layout: Layout, row_count: int) -> pq.ParquetWriter:
    """Return a writer for row groups of about `row_count` records."""
    schema, names = layout.schema, layout.schema.names
    column = layout.options.bloom_filter
    filters = {} if column is None else {"bloom_filter_options": {column: {"ndv": row_count, "fpp": MOST_FALSE}}}
    return pq.ParquetWriter(
        sink,
        schema,
        **layout.options.codec,
        use_dictionary=_dictionary_columns(schema),
        column_encoding={name: "DELTA_BINARY_PACKED" for name in _DELTAS if name in names},
        write_page_index=True,
        sorting_columns=_sort_order(layout),
        **filters,
    )


@lru_cache(8)
def _dictionary_columns(schema: pa.Schema) -> list[str]:
    """Return the columns with dictionaries: those of few values, and texts in decoded values and headers."""
    names = schema.names
    texts = [
        path for name in names if is_decoded(name) or name == "headers" for path in text_columns(schema.field(name))
    ]
    return [*(name for name in _FEW_VALUES if name in names), *texts]


def _sort_order(layout: Layout) -> list[pq.SortingColumn] | None:
    """Return the order of the rows for the file's metadata; None if they have none."""
    schema, columns = layout.schema, layout.options.sort_by
    if columns:
        return parquet_order(schema, columns)
    names = schema.names  # columns before the headers have one leaf each
    rising = [pq.SortingColumn(names.index(name), nulls_first=True) for name in SORTED_BY if name in names]
    return rising if layout.is_sorted else None


def size_in_file(batches: Iterable[pa.RecordBatch], read: ReadOptions, options: FileOptions) -> int:
    """Return the bytes that records take in a file; 0 without records. Nothing is kept."""
    layout = Layout(schema_of_files(read, options), options, is_sorted=False)
    records = [with_readable_times(batch).select(layout.schema.names) for batch in batches if batch.num_rows]
    if not records:
        return 0
    rows = pa.Table.from_batches(records, layout.schema)
    per_group = max(rows.num_rows * min(options.row_group_size, WAITING_GROUPS * options.target_size) // rows.nbytes, 1)
    sink = pa.MockOutputStream()
    with _writer(sink, layout, per_group) as writer:
        for first in range(0, rows.num_rows, per_group):
            writer.write_table(sorted_rows(rows.slice(first, per_group), options.sort_by), row_group_size=per_group)
    return int(sink.size())
