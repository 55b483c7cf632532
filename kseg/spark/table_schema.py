"""The columns of the data source's tables, in Arrow's types and in Spark's; and the options that a table keeps.

Spark gives the options of `CREATE TABLE … USING kseg OPTIONS (…)` to the source once, when it asks for the columns, and
never when the table is read. So they stand in the metadata of the first column.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kseg.errors import UsageError
from kseg.spark.request import Request

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_METADATA = "kseg.options"
_OPTION = "option."
"""Begins the names of options among a catalog's properties."""


def table_schema(request: Request) -> "pa.Schema":
    """The columns that the options ask for."""
    if request.is_of_damages:
        from kseg.export.damages import SCHEMA

        return SCHEMA
    return request.reading().schema()


def spark_schema(options: Mapping[str, str]) -> "StructType":
    """The same for Spark, of a query's options or a catalog table's properties. Raises UsageError if they are wrong."""
    if "provider" not in options:
        return _as_spark(table_schema(Request.parse(options)))
    own = {name.removeprefix(_OPTION): value for name, value in options.items() if name.startswith(_OPTION)}
    place = {"path": options["location"]} if "location" in options else {}
    request = Request.parse({**own, **place})
    sources = [source if "://" in source else str(Path(source).absolute()) for source in request.sources()]
    columns = _as_spark(table_schema(request))
    columns.fields[0].metadata = {_METADATA: json.dumps({**own, "path": json.dumps(sources)})}
    return columns


def request_of(options: Mapping[str, str], columns: "StructType") -> Request:
    """What a query asks by its options, and by those that its table keeps."""
    metadata = columns.fields[0].metadata if columns.fields else {}
    return Request.parse({**json.loads(metadata.get(_METADATA, "{}")), **options})


def columns_of(asked: "StructType", request: Request) -> list[str]:
    """The names of the columns that a query's own schema asks for.

    Raises UsageError if the table has no such column, or one of another type: what is read must be what Spark expects.
    """
    from kseg.export.settings import ReadOptions

    schema = table_schema(request) if request.is_of_damages else ReadOptions(batch_columns=True).schema()
    types = {column.name: column.dataType.simpleString() for column in _as_spark(schema).fields}
    for column in asked.fields:
        kind = column.dataType.simpleString()
        if types.get(column.name) != kind:
            had = ", ".join(f"{name} {known}" for name, known in types.items())
            raise UsageError(f"the schema asks for {column.name} {kind}; there are: {had}")
    return [column.name for column in asked.fields]


def _as_spark(schema: "pa.Schema") -> "StructType":
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)
