"""The data source "kseg": tables, streams, and the writer that executes work orders."""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kseg.spark.reader import KsegReader
    from kseg.spark.stream import KsegStreamReader
    from kseg.spark.writer import OrderWriter


class KsegSource(DataSource):
    """Log segments as a table. Spark makes one per query; its modules load what they need when they are used."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "kseg"

    def schema(self) -> "StructType":
        """The columns: spark-sql-kafka's, and those asked for."""
        from kseg.spark.table_schema import spark_schema

        return spark_schema(self.options)

    def reader(self, schema: "StructType") -> "KsegReader":
        """Reads the columns of the schema, which a query may narrow."""
        from kseg.spark.reader import KsegReader
        from kseg.spark.table_schema import columns_of, request_of

        request = request_of(self.options, schema)
        return KsegReader(request, columns_of(schema, request))

    def streamReader(self, schema: "StructType") -> "KsegStreamReader":
        """Follows growing logs."""
        from kseg.spark.stream import KsegStreamReader
        from kseg.spark.table_schema import columns_of, request_of

        request = request_of(self.options, schema)
        return KsegStreamReader(request, columns_of(schema, request))

    def writer(self, schema: "StructType", overwrite: bool) -> "OrderWriter":
        """Executes the work orders of an export; the rows are the numbers of its tasks."""
        from kseg.spark.round import Round
        from kseg.spark.writer import OrderWriter

        return OrderWriter(Round(self.options["destination"], self.options["job"], self.options["number"]))
