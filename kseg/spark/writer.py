"""Executes work orders in Spark's tasks, under Spark's own commit protocol: one result per order reaches the driver."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from kseg.errors import KsegError
from kseg.export.commit import JOBS
from kseg.export.destination import open_destination
from kseg.export.order import Job, execute_order
from kseg.export.plan import WorkOrder
from kseg.export.result import Result
from kseg.export.shapes import parse_json

if TYPE_CHECKING:
    from pyarrow import RecordBatch


@dataclass
class OrdersDone(WriterCommitMessage):
    """What a task did: results of its orders."""

    results: list[Result]


class OrderWriter(DataSourceArrowWriter):
    """Takes rows that are numbers of tasks; what a task is to do stands in the destination.

    Attempts may run at once, be killed, and run again: each writes files of its own names. Of each task one message
    reaches `commit`; only files that it names get into the manifest.
    """

    def __init__(self, destination: str, job: str, number: str) -> None:
        self._destination, self._job, self._number = destination, job, number

    def write(self, iterator: Iterator["RecordBatch"]) -> OrdersDone:
        """Runs in a task: reads segments, writes Parquet files."""
        place = open_destination(self._destination)
        members = read_job(self._destination, self._job, f"orders-{self._number}")
        job = Job.from_json(members["job"])
        results: list[Result] = []
        for batch in iterator:
            for task in batch.column(0).to_pylist():
                orders = map(WorkOrder.from_json, members["tasks"][task])
                results += [execute_order(order, job, place) for order in orders]
        return OrdersDone(results)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Runs on the driver, at most once: hands the results to the program that asked for them."""
        done = [message for message in messages if isinstance(message, OrdersDone)]
        results = [result.to_json() for message in done for result in message.results]
        write_job(
            self._destination,
            self._job,
            f"results-{self._number}",
            {"results": results},
        )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Removes what the tasks say they wrote; the sweep at the next commit finds the rest."""
        place = open_destination(self._destination)
        for message in messages:
            if isinstance(message, OrdersDone):
                for result in message.results:
                    for file in result.files:
                        place.delete(file.attempt)


def write_job(destination: str, job: str, name: str, members: dict[str, Any]) -> None:
    """Leaves a job's file in the destination, which driver and executors can reach."""
    open_destination(destination).replace(f"{JOBS}/{job}/{name}.json", json.dumps(members).encode())


def read_job(destination: str, job: str, name: str) -> dict[str, Any]:
    """A job's file. Raises KsegError if it isn't there: executors and driver see different places."""
    content = open_destination(destination).read(f"{JOBS}/{job}/{name}.json")
    if content is None:
        raise KsegError("is not the same place here as on the driver: all machines must reach it", destination)
    members: dict[str, Any] = parse_json(content, f"{JOBS}/{job}/{name}.json")
    return members
