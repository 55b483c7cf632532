"""Selected records as tables: Arrow, pandas, Polars. Each library is imported when its table is asked for."""

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from kseg.api.asked import DecodingOptions, TableOptions
from kseg.api.kseg_warning import warn
from kseg.errors import UsageError
from kseg.log.select.record_picker import SelectedLog
from kseg.reading.batch import OnDamage

if TYPE_CHECKING:
    import pyarrow as pa

    from kseg.export.decoding import ColumnDecoding


def arrow_reader(logs: Iterator[SelectedLog], options: TableOptions, on_damage: OnDamage) -> "pa.RecordBatchReader":
    """The selected records of logs as a reader of record batches.

    Raises UsageError if pyarrow or a decoder is missing; OpenError if a schema can't be read.
    """
    arrow = needed("pyarrow", "pip install 'kseg[arrow]'")
    from kseg.arrow import MAX_BYTES, ArrowOptions, schema_of

    columns = ArrowOptions(
        options.get("headers", True), options.get("batch_columns", False), options.get("max_bytes", MAX_BYTES)
    )
    decoding = column_decoding(options)

    def batches() -> Iterator["pa.RecordBatch"]:
        from kseg.arrow import selected_record_batches

        for log in logs:
            yield from selected_record_batches(log, columns, on_damage)

    found = _decoded(batches(), decoding) if decoding.fields() else batches()
    return arrow.RecordBatchReader.from_batches(arrow.schema([*schema_of(columns), *decoding.fields()]), found)


def column_decoding(options: DecodingOptions) -> "ColumnDecoding":
    """The columns of decoded keys and values that are asked for."""
    from kseg.export.decoding import ColumnDecoding

    schema, registry = options.get("schema"), options.get("schema_registry")
    return ColumnDecoding(
        options.get("key_decoder"),
        options.get("value_decoder"),
        None if schema is None else str(schema),
        options.get("message"),
        None if registry is None else str(registry),
    )


def _decoded(batches: Iterator["pa.RecordBatch"], decoding: "ColumnDecoding") -> Iterator["pa.RecordBatch"]:
    """The batches with columns of decoded keys or values; warns at the end of what doesn't decode."""
    from kseg.export.decoding import DecodedColumns

    decoded = DecodedColumns(decoding)

    def added() -> Iterator["pa.RecordBatch"]:
        yield from map(decoded.added, batches)
        if decoded.undecoded:
            warn(f"{decoded.undecoded} keys or values don't decode: they are null in the decoded columns")

    return added()


def needed(module: str, command: str) -> ModuleType:
    """A module of a library that kseg doesn't require. Raises UsageError, with the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(f"{module} is missing: {command}") from error
