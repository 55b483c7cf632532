"""The Spark data source "kseg": tables, streams, and the writer that executes work orders."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

from kseg.errors import UsageError
from kseg.export.results import Result
from kseg.export.settings import LogSelection
from kseg.spark.bounds import batch_ranges
from kseg.spark.options import STREAM_ONLY
from kseg.spark.partitions import find_partitions
from kseg.spark.tasks import OrderExecutor, Round, split

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from kseg.spark.stream import KsegStreamReader


_NO_WRITER = "the data source only reads; write DataFrames with another format, and topics with `kseg spark-export`"


class KsegSource(DataSource):
    """Log segments as a table. Spark makes one per query; modules load their dependencies when used."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "kseg"

    def schema(self) -> "StructType":
        """Return the columns of spark-sql-kafka, and the requested further ones."""
        from kseg.spark.tasks import spark_schema

        return spark_schema(self.options)

    def reader(self, schema: "StructType") -> "KsegReader":
        """Return a reader of the schema's columns, which a query may narrow."""
        from kseg.spark.tasks import columns_of, request_of

        request = request_of(self.options, schema)
        return KsegReader(request, columns_of(schema, request))

    def streamReader(self, schema: "StructType") -> "KsegStreamReader":
        """Return a stream over growing logs."""
        from kseg.spark.stream import KsegStreamReader
        from kseg.spark.tasks import columns_of, request_of

        request = request_of(self.options, schema)
        return KsegStreamReader(request, columns_of(schema, request))

    def writer(self, schema: "StructType", overwrite: bool) -> "OrderWriter":
        """Return an executor of an export's work orders; the rows are the numbers of its tasks."""
        from kseg.spark.tasks import Round

        if not self.options.keys() >= set(Round._fields):
            raise UsageError(_NO_WRITER)
        return OrderWriter(Round(*(self.options[name] for name in Round._fields)))

    def streamWriter(self, schema: "StructType", overwrite: bool) -> NoReturn:
        """Refuse to write. Raises UsageError."""
        raise UsageError(_NO_WRITER)


class KsegReader(OrderExecutor, DataSourceReader):
    """A batch query."""

    def partitions(self) -> Sequence[InputPartition]:
        """Return byte ranges of segments, balanced by bytes, from names, sizes and indexes. Runs on the driver."""
        self.request.note_unused(STREAM_ONLY)
        copies = find_partitions(self.request)
        return split(copies, LogSelection(offsets_of=batch_ranges(self.request, copies)), self.request)


@dataclass
class OrdersDone(WriterCommitMessage):
    """The results of a task's orders."""

    results: list[Result]


class OrderWriter(DataSourceArrowWriter):
    """An executor of a round's tasks, whose rows are the tasks' numbers.

    One message per task reaches `commit`; only files that it names enter the manifest.
    """

    def __init__(self, wanted: Round) -> None:
        self._round = wanted

    def write(self, iterator: Iterator["RecordBatch"]) -> OrdersDone:
        """Read segments and write Parquet files, in a task."""
        tasks = (task for batch in iterator for task in batch.column(0).to_pylist())
        return OrdersDone(list(self._round.execute(tasks)))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Pass the results to the calling program; runs on the driver, at most once."""
        done = [message for message in messages if isinstance(message, OrdersDone)]
        self._round.write_results(result for message in done for result in message.results)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Leave the files of finished tasks: the next run resumes or removes them."""


def register(spark: "SparkSession") -> None:
    """Register `spark.read.format("kseg")` in a session; if kseg is installed, Spark finds it automatically."""
    from pyspark.errors import AnalysisException

    try:
        spark.dataSource.register(KsegSource)
    except AnalysisException as error:
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):  # pyspark 4.0 refuses a source that it has already found
            raise
