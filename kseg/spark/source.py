"""The data source "kseg": tables, streams, and the writer that executes work orders."""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from kseg.spark.request import Request

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kseg.spark.reader import KsegReader
    from kseg.spark.stream import KsegStreamReader
    from kseg.spark.writer import OrderWriter

_TYPES = {
    "binary": "binary",
    "string": "string",
    "int32": "int",
    "int64": "bigint",
    "bool": "boolean",
    "timestamp[us, tz=UTC]": "timestamp",
}
_HEADERS = "array<struct<key: string, value: binary>>"


class KsegSource(DataSource):
    """Log segments as a table. Spark makes one per query; its modules load what they need when they are used."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "kseg"

    def schema(self) -> str:
        """The columns: spark-sql-kafka's, and those asked for."""
        request = Request.parse(self.options)
        if request.text("table") == "damages":
            from kseg.export.damages import SCHEMA as fields
        else:
            from kseg.arrow import schema_of

            fields = schema_of(request.reading().arrow())
        return ", ".join(f"{field.name} {_TYPES.get(str(field.type), _HEADERS)}" for field in fields)

    def reader(self, schema: "StructType") -> "KsegReader":
        """Reads the columns of the schema, which a query may narrow."""
        from kseg.spark.reader import KsegReader, PushdownReader

        request = Request.parse(self.options)
        return (PushdownReader if request.flag("pushdown") else KsegReader)(request, schema.fieldNames())

    def streamReader(self, schema: "StructType") -> "KsegStreamReader":
        """Follows growing logs."""
        from kseg.spark.stream import KsegStreamReader

        return KsegStreamReader(Request.parse(self.options), schema.fieldNames())

    def writer(self, schema: "StructType", overwrite: bool) -> "OrderWriter":
        """Executes the work orders of an export; the rows are the numbers of its tasks."""
        from kseg.spark.round import Round
        from kseg.spark.writer import OrderWriter

        return OrderWriter(Round(self.options["destination"], self.options["job"], self.options["number"]))
