"""Executes work orders through Spark Connect, under Spark's commit protocol: each order gives the driver one result."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from kseg.export.result import Result
from kseg.spark.round import Round

if TYPE_CHECKING:
    from pyarrow import RecordBatch


@dataclass
class OrdersDone(WriterCommitMessage):
    """What a task did: results of its orders."""

    results: list[Result]


class OrderWriter(DataSourceArrowWriter):
    """Takes rows that are numbers of a round's tasks.

    Of each task one message reaches `commit`; only files that it names get into the manifest.
    """

    def __init__(self, wanted: Round) -> None:
        self._round = wanted

    def write(self, iterator: Iterator["RecordBatch"]) -> OrdersDone:
        """Runs in a task: reads segments, writes Parquet files."""
        tasks = (task for batch in iterator for task in batch.column(0).to_pylist())
        return OrdersDone(list(self._round.execute(tasks)))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Runs on the driver, at most once: hands the results to the program that asked for them."""
        done = [message for message in messages if isinstance(message, OrdersDone)]
        self._round.write_results(result for message in done for result in message.results)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Leaves what the tasks have finished: the next run takes it up, or removes it."""
