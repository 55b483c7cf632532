"""Records of any opened path as Python values and as tables: Arrow, pandas, Polars, and a DuckDB connection."""

import os
import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Self, TypedDict, Unpack, cast

from kseg.errors import UsageError, plural
from kseg.kernel.record import Record
from kseg.log.selected_records import SelectedLog, selected_batches, selected_records
from kseg.log.selection import EVERYTHING, PartitionChoice, Selection, SelectionOptions, selection_of
from kseg.output.table import aligned_line
from kseg.reading.batch import Batch, OnDamage, check_on_damage
from kseg.store.location import leads_inside
from kseg.system.new_directory import scratch_directory
from kseg.system.placed_path import as_path
from kseg.system.terminal_text import escaped_text
from kseg.times import parse_zone

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from kseg.decode.decoded import Decoded, Json, ValueDecoder
    from kseg.export.settings import ColumnDecoding
    from kseg.query.session import QuerySources


SHOWN_ROWS = 10
"""The most rows of a table that are shown."""


@dataclass(frozen=True, slots=True)
class ShortTable:
    """A title, and rows below the names of their columns; `count`: the total number of rows."""

    title: str
    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[object, ...]] = ()
    count: int = 0

    @property
    def more(self) -> str:
        """Return the line about the rows that aren't shown."""
        left = self.count - len(self.rows)
        return f"… {left} more" if left > 0 else ""

    def text(self) -> str:
        """Return the table as lines of text."""
        lines = [escaped_text(self.title)]
        if self.rows:
            cells = [self.columns, *(tuple(map(_cell, row)) for row in self.rows)]
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            signs = [1 if isinstance(value, int) else -1 for value in self.rows[0]]
            signed = [width * sign for width, sign in zip(widths, signs, strict=True)]
            lines += [f"  {aligned_line(row, signed)}" for row in cells]
        return "\n".join([*lines, f"  {self.more}"] if self.more else lines)

    def html(self) -> str:
        """Return the table as HTML."""
        body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in self.rows)
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns) if self.rows else ""
        more = f"<p>{escape(self.more)}</p>" if self.more else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if self.rows else ""
        return f"<div><p>{escape(escaped_text(self.title))}</p>{table}{more}</div>"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else escaped_text(str(value))


def _html_cell(value: object) -> str:
    align = ' style="text-align: right"' if isinstance(value, int) else ""
    return f"<td{align}>{escape(_cell(value))}</td>"


class DecodingOptions(TypedDict, total=False):
    """Decoders of keys and values, by the names of the commands' options.

    key_decoder, value_decoder: names of decoders, or the caller's own `module:callable`. schema: an Avro schema, a map
    of ids to schemas, or a Protobuf descriptor set; message: the Protobuf message's full name; schema_registry: the
    directory of the `_schemas` partition.
    """

    key_decoder: str | None
    value_decoder: str | None
    schema: Path | str | None
    message: str | None
    schema_registry: Path | str | None


class DecodedOptions(SelectionOptions, DecodingOptions, total=False):
    """The selected records and their decoders."""


class TableOptions(DecodedOptions, total=False):
    """The selected records, their decoders, and the table's columns.

    headers: whether there is a column with them, True by default. batch_columns: whether there are columns about each
    record's batch. max_bytes: bytes of keys and values that a record batch holds at most, unless one record alone has
    more.
    """

    headers: bool
    batch_columns: bool
    max_bytes: int


def asked_selection(selection: Selection | None, options: Mapping[str, object], *, has_control: bool) -> Selection:
    """Apply the options to a selection and return it. Options that aren't part of a selection are ignored.

    `has_control`: whether control records are selected by default. Raises UsageError for an invalid option.
    """
    known = {name: value for name, value in options.items() if name not in _NOT_OF_SELECTIONS}
    if "control" not in known and not has_control and (selection is None or selection.is_control is None):
        known["control"] = False
    asked = selection_of(cast(SelectionOptions, known), EVERYTHING if selection is None else selection)
    if asked.is_followed:
        raise UsageError("is_followed works only in `kseg dump --follow`; omit it, and call again for new records")
    return asked


_NOT_OF_SELECTIONS = TableOptions.__annotations__.keys() - SelectionOptions.__annotations__.keys()


def path_of(path: Path | str | None) -> Path | None:
    """Convert a path to a Path object. None is returned unchanged."""
    return None if path is None else Path(path)


class KsegWarning(UserWarning):
    """A warning about a result, such as an index that wasn't trusted or a file that couldn't be read."""


def warn(text: str) -> None:
    """Issue a KsegWarning."""
    warnings.warn(text, KsegWarning, stacklevel=2)


def arrow_reader(logs: Iterator[SelectedLog], options: TableOptions, on_damage: OnDamage) -> "pa.RecordBatchReader":
    """Return the selected records of logs as a reader of record batches.

    Raises UsageError if pyarrow or a decoder is missing, and OpenError if a schema can't be read.
    """
    arrow = import_library("pyarrow", "pip install 'kseg[arrow]'")
    from kseg.arrow import MAX_BYTES, ArrowOptions, schema_of

    columns = ArrowOptions(
        options.get("headers", True), options.get("batch_columns", False), options.get("max_bytes", MAX_BYTES)
    )
    decoding = column_decoding(options)

    def batches() -> Iterator["pa.RecordBatch"]:
        from kseg.arrow import selected_record_batches

        for log in logs:
            yield from selected_record_batches(log, columns, on_damage)

    found = _decode_batches(batches(), decoding) if decoding.fields() else batches()
    return arrow.RecordBatchReader.from_batches(arrow.schema([*schema_of(columns), *decoding.fields()]), found)


def column_decoding(options: DecodingOptions) -> "ColumnDecoding":
    """Return the requested columns of decoded keys and values."""
    from kseg.export.settings import ColumnDecoding

    schema, registry = options.get("schema"), options.get("schema_registry")
    return ColumnDecoding(
        options.get("key_decoder"),
        options.get("value_decoder"),
        None if schema is None else str(schema),
        options.get("message"),
        None if registry is None else str(registry),
    )


def _decode_batches(batches: Iterator["pa.RecordBatch"], decoding: "ColumnDecoding") -> Iterator["pa.RecordBatch"]:
    """Yield batches with decoded key and value columns, and finally warn about undecodable records."""
    from kseg.export.settings import DecodedColumns

    decoded = DecodedColumns(decoding)

    def add_columns() -> Iterator["pa.RecordBatch"]:
        yield from map(decoded.add_columns, batches)
        if decoded.failure_count:
            warn(
                f"{plural(decoded.failure_count, 'key')} or values can't be decoded, so they are null in the"
                f" decoded columns"
            )

    return add_columns()


def import_library(module: str, command: str) -> ModuleType:
    """Import an optional library. Raises UsageError with the install command if the library is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(f"{module} is missing; run `{command}`") from error


class Logs(ABC):
    """Context manager that opens logs and reads their records, batches and tables.

    Records are selected by a `kseg.Selection`, by keywords with the names of the commands' options, or by both; then
    the keywords win. Damage raises DamagedError, unless `on_damage` says otherwise: "skip" leaves damaged parts out,
    and a function is called with each Damage before reading continues after it.
    """

    def __init__(self) -> None:
        self._at_close = ExitStack()
        self._close = weakref.finalize(self, self._at_close.close)

    @abstractmethod
    def _select_logs(self, selection: Selection) -> Iterator[SelectedLog]:
        """Yield the logs that may hold selected records, in order.

        The iterator keeps this object alive until its end.
        """

    @abstractmethod
    def _table(self) -> ShortTable:
        """Return the table that is shown."""

    def close(self) -> None:
        """Close all open files and delete the files unpacked from archives."""
        self._close()

    def close_with(self, resources: AbstractContextManager[object]) -> None:
        """Release the resources when this object is closed or garbage-collected."""
        self._at_close.enter_context(resources)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """Return a short table."""
        return self._table().text()

    def _repr_html_(self) -> str:
        """Return the same as HTML for notebooks."""
        return self._table().html()

    def records(
        self, selection: Selection | None = None, *, on_damage: OnDamage = "raise", **options: Unpack[SelectionOptions]
    ) -> Iterator[Record]:
        """Yield the selected records in log order. Only a few records are in memory at a time.

        Control records are omitted, unless `control` is True, for them alone, or None, for all.

        Raises:
            DamagedError: at damage, after the records before it, unless `on_damage` says otherwise.
            OpenError: a file can't be opened.
            UsageError: the selection is invalid.
        """
        check_on_damage(on_damage)
        logs = self._select_logs(asked_selection(selection, options, has_control=False))
        return chain.from_iterable(chain.from_iterable(selected_records(log, on_damage) for log in logs))

    def decoded_records(
        self, selection: Selection | None = None, *, on_damage: OnDamage = "raise", **options: Unpack[DecodedOptions]
    ) -> "Iterator[DecodedRecord]":
        """Yield the selected records, decoded with `key_decoder` and `value_decoder`.

        A value that can't be decoded isn't damage: the record says why. Raises as `records` does; also UsageError if
        the decoder is unknown, or its library is missing.
        """
        check_on_damage(on_damage)
        logs = self._select_logs(asked_selection(selection, options, has_control=False))
        records = chain.from_iterable(selected_records(log, on_damage) for log in logs)
        return decoded_records(chain.from_iterable(records), options)

    def batches(
        self, selection: Selection | None = None, *, on_damage: OnDamage = "raise", **options: Unpack[SelectionOptions]
    ) -> Iterator[Batch]:
        """Yield the batches that contain selected records, including control batches.

        Damage inside a batch only appears when its own `records` are read. Raises as `records` does.
        """
        check_on_damage(on_damage)
        logs = self._select_logs(asked_selection(selection, options, has_control=True))
        return chain.from_iterable(selected_batches(log, on_damage) for log in logs)

    def to_arrow(
        self, selection: Selection | None = None, *, on_damage: OnDamage = "raise", **options: Unpack[TableOptions]
    ) -> "pa.RecordBatchReader":
        """Return the selected records as a `pyarrow.RecordBatchReader`. It can only be read once.

        The columns are spark-sql-kafka's: key, value, topic, partition, offset, timestamp, timestampType, headers.
        With decoders there are also keyDecoded and valueDecoded, null where decoding fails. Raises as
        `decoded_records` does; damage is raised while the reader is read.
        """
        check_on_damage(on_damage)
        logs = self._select_logs(asked_selection(selection, options, has_control=False))
        return arrow_reader(logs, options, on_damage)

    def to_pandas(
        self, selection: Selection | None = None, *, on_damage: OnDamage = "raise", **options: Unpack[TableOptions]
    ) -> "pd.DataFrame":
        """Return the selected records as a `pandas.DataFrame`. All records are loaded into memory."""
        import_library("pandas", "pip install pandas")
        return self.to_arrow(selection, on_damage=on_damage, **options).read_pandas()

    def to_polars(
        self, selection: Selection | None = None, *, on_damage: OnDamage = "raise", **options: Unpack[TableOptions]
    ) -> "pl.DataFrame":
        """Return the selected records as a `polars.DataFrame`. All records are loaded into memory."""
        polars = import_library("polars", "pip install polars")
        table = self.to_arrow(selection, on_damage=on_damage, **options).read_all()
        return cast("pl.DataFrame", polars.from_arrow(table))


@dataclass(frozen=True, slots=True)
class DecodedRecord:
    """A record with its key and value decoded.

    Null is None. A value without decoder stays bytes; so does one that can't be decoded, and then `key_error` or
    `value_error` says why.
    """

    record: Record
    key: "Json | bytes"
    value: "Json | bytes"
    key_error: str | None = None
    value_error: str | None = None

    @property
    def offset(self) -> int:
        """The record offset."""
        return self.record.offset

    @property
    def timestamp(self) -> int:
        """Return the record timestamp in milliseconds since 1970, or -1 if there is none."""
        return self.record.timestamp


def decoded_records(records: Iterable[Record], options: DecodingOptions) -> Iterator[DecodedRecord]:
    """Decode records. Raises UsageError and OpenError as `value_decoder` does."""
    from kseg.cluster.schemas_topic import SchemasTopic
    from kseg.decode.values import DecoderOptions, value_decoder

    registry = path_of(options.get("schema_registry"))
    topic = None if registry is None else SchemasTopic(registry)
    needed = DecoderOptions(path_of(options.get("schema")), options.get("message"), topic)
    key, value = options.get("key_decoder"), options.get("value_decoder")
    of_key = None if key is None else value_decoder(key, needed, "key")
    of_value = None if value is None else value_decoder(value, needed, "value")
    return map(partial(_decoded_record, of_key, of_value), records)


def _decoded_record(of_key: "ValueDecoder | None", of_value: "ValueDecoder | None", record: Record) -> DecodedRecord:
    key, value = _part(of_key, record.key, record), _part(of_value, record.value, record)
    return DecodedRecord(record, key.value, value.value, key.reason, value.reason)


def _part(decode: "ValueDecoder | None", data: bytes | None, record: Record) -> "Decoded":
    from kseg.decode.decoded import Decoded

    return Decoded(data) if decode is None or data is None else decode(data, record.headers)


def connect(
    path: str | os.PathLike[str],
    *more: str | os.PathLike[str],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    files: str | os.PathLike[str] | None = None,
    memory: int | None = None,
    **options: Unpack[DecodedOptions],
) -> "duckdb.DuckDBPyConnection":
    """Connect to a DuckDB database in memory, with the views and tables of `kseg query`.

    Damaged records are omitted of answers, with a warning. SQL reaches no files and no network, and can't change
    that. Temporary files are removed when the connection is garbage-collected.

    Args:
        path: a log directory, a parent of one, or a partition's directory; also in an archive.
        more: further disks of the same broker.
        topic: names or globs of topics.
        partition: numbers of partitions.
        files: a directory in which SQL may read and write files.
        memory: the most bytes of memory; None for half of the machine's.
        options: the selected records and their decoders, as for `kseg.open(…).to_arrow`.

    Raises:
        OpenError: a path doesn't exist, or has no Kafka files.
        UsageError: a library is missing, no partition matches, or an option is invalid.
    """
    from kseg.query import require_libraries

    require_libraries()
    from kseg.query.database import QueryLimits, QueryLog
    from kseg.query.session import new_session

    choice = PartitionChoice.of(topic, partition)
    limits = QueryLimits(memory, files=None if files is None else Path(files))
    with ExitStack() as stack:
        paths = _local_paths([os.fspath(each) for each in (path, *more)], stack)
        scratch = stack.enter_context(scratch_directory())
        zone = parse_zone(options.get("tz", "UTC"))
        session = new_session(
            _open_query(paths, choice, options), limits, scratch, QueryLog(lambda error: warn(str(error)), warn), zone
        )
        weakref.finalize(session.connection, stack.pop_all().close)
        return session.connection


def _local_paths(given: list[str], stack: ExitStack) -> tuple[Path, ...]:
    if not any(map(leads_inside, given)):
        return tuple(map(Path, given))
    from kseg.store.archive import Inputs

    inputs = stack.enter_context(Inputs(warn))
    return tuple(as_path(inputs.local(each)) for each in given)


def _open_query(paths: tuple[Path, ...], choice: PartitionChoice, options: DecodedOptions) -> "QuerySources":
    from kseg.export.settings import DecodedAs, Isolation, LogSelection, OffsetRange, ReadOptions
    from kseg.query.session import QuerySources

    asked = asked_selection(None, options, has_control=False)
    decode = replace(column_decoding(options), decoded_as=DecodedAs.TYPED)
    decode.check()
    read = ReadOptions(
        control=asked.is_control is not False,
        isolation=Isolation.READ_COMMITTED if asked.is_committed else Isolation.READ_UNCOMMITTED,
        selected=asked._replace(
            from_offset=None, to_offset=None, is_committed=False, is_control=asked.is_control or None
        ),
        decode=decode,
    )
    selection = LogSelection(choice, OffsetRange(asked.from_offset, asked.to_offset), first_time=asked.from_time)
    return QuerySources(paths, choice, selection, read)
