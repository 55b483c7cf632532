"""A round of an export's work orders: what each task is to do stands in the destination, where all machines find it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kseg.errors import KsegError
from kseg.export.commit import JOBS
from kseg.export.destination import open_destination
from kseg.export.order import Job, execute_order
from kseg.export.plan import WorkOrder
from kseg.export.result import Result
from kseg.export.shapes import parse_json


class Round(NamedTuple):
    """Where the orders of a round stand: in which destination, of which job, the how many-th."""

    destination: str
    job: str
    number: str

    def write_orders(self, job: Job, tasks: Sequence[Sequence[WorkOrder]]) -> None:
        """Leaves there what the tasks are to do."""
        members = {"job": job.to_json(), "tasks": [[order.to_json() for order in task] for task in tasks]}
        self._write("orders", members)

    def execute(self, tasks: Iterable[int]) -> Iterator[Result]:
        """Runs in Spark's tasks: executes the orders of the tasks with these numbers.

        Attempts may run at once, be killed, and run again: each writes files of its own names.
        """
        place = open_destination(self.destination)
        members = self._read("orders")
        job = Job.from_json(members["job"])
        for task in tasks:
            for order in map(WorkOrder.from_json, members["tasks"][task]):
                yield execute_order(order, job, place)

    def write_results(self, results: Iterable[Result]) -> None:
        """Leaves the results there for the program that asked for them."""
        self._write("results", {"results": [result.to_json() for result in results]})

    def read_results(self) -> list[Result]:
        """The results that `write_results` has left."""
        return [*map(Result.from_json, self._read("results")["results"])]

    def _name(self, content: str) -> str:
        return f"{JOBS}/{self.job}/{content}-{self.number}.json"

    def _write(self, content: str, members: dict[str, Any]) -> None:
        open_destination(self.destination).replace(self._name(content), json.dumps(members).encode())

    def _read(self, content: str) -> dict[str, Any]:
        found = open_destination(self.destination).read(self._name(content))
        if found is None:
            raise KsegError("is not the same place here as on the driver: all machines must reach it", self.destination)
        members: dict[str, Any] = parse_json(found, self._name(content))
        return members
