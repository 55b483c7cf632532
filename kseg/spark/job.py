"""Lets Spark execute the work orders of an export: in a job of plain rows, or through a Spark Connect server."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kseg.errors import KsegError
from kseg.export.order import Job
from kseg.export.plan import WorkOrder, balance
from kseg.export.result import Result
from kseg.export.run import Execute
from kseg.spark.messages import error_of
from kseg.spark.round import Round
from kseg.spark.session import stop_context

if TYPE_CHECKING:
    from pyspark import SparkContext

TASKS_PER_SLOT = 3
POLL_SECONDS = 0.2

TaskProgress = Callable[[int, int, int], object]
"""Is told how many tasks are done, of how many, and how many attempts failed."""
ByteProgress = Callable[[int, int, int], object]
"""Is told about how many bytes are read, of how many, and how many attempts of tasks failed."""
_Run = Callable[[Round, int, TaskProgress | None], list[Result]]
"""Executes a round of so many tasks."""


def by_context(context: "SparkContext", parallelism: int, progress: ByteProgress | None = None) -> Execute:
    """Executes orders in the tasks of a job, the largest first. Raises KsegError with the task's own message.

    It needs no session: Spark's SQL takes longer to load than all the rest, here and in each Python worker. Of a task's
    attempts, one gives its results to the job; those of the others are dropped, with the files that they name.
    """

    def run(wanted: Round, tasks: int, watch: TaskProgress | None) -> list[Result]:
        rows = context.parallelize(range(tasks), tasks).mapPartitions(wanted.execute)
        # A thread of its own waits for the JVM's answer: after an interrupt, pyspark would take it for another call's.
        with ThreadPoolExecutor(1) as pool:
            answer: Future[list[Result]] = pool.submit(rows.collect)
            try:
                with _watched(context, watch) if watch is not None else nullcontext():
                    return answer.result()
            except KeyboardInterrupt:
                stop_context(context)  # before what its tasks wrote is removed
                raise

    return _in_rounds(run, parallelism, progress)


def by_server(session: Any, parallelism: int, progress: ByteProgress | None = None) -> Execute:
    """As `by_context`, by a data source's writer and a session of Spark Connect, which has no jobs of plain rows."""
    from kseg.spark.source import KsegSource

    def run(wanted: Round, tasks: int, watch: TaskProgress | None) -> list[Result]:
        session.dataSource.register(KsegSource)
        rows = session.range(0, tasks, 1, tasks).write.format(KsegSource.name()).mode("append")
        try:
            with _watched_remotely(session, watch) if watch is not None else nullcontext():
                rows.options(**wanted._asdict()).save()
        except KeyboardInterrupt:
            session.stop()
            raise
        return wanted.read_results()

    return _in_rounds(run, parallelism, progress)


def _in_rounds(run: _Run, parallelism: int, progress: ByteProgress | None) -> Execute:
    numbers = count()

    def execute(orders: Sequence[WorkOrder], job: Job) -> Iterable[Result]:
        tasks = balance(orders, min(len(orders), parallelism * TASKS_PER_SLOT))
        wanted = Round(job.destination, job.id, str(next(numbers)))
        wanted.write_orders(job, tasks)
        try:
            results = run(wanted, len(tasks), in_bytes(tasks, progress))
        except (PySparkException, Py4JError) as error:
            raise error_of(error) from error
        if len(results) != len(orders):
            wrong = f"Spark gave {len(results)} results for {len(orders)} pieces of work: run it again"
            raise KsegError(wrong, job.destination)
        return results

    return execute


def in_bytes(tasks: Sequence[Sequence[WorkOrder]], progress: ByteProgress | None) -> TaskProgress | None:
    """Reports bytes, since Spark reports only tasks: they start in this order, and end roughly in it."""
    if progress is None:
        return None
    sums = [0, *accumulate(sum(order.size for order in task) for task in tasks)]
    return lambda done, _, failed: progress(sums[min(done, len(tasks))], sums[-1], failed)


@contextmanager
def _watched(context: "SparkContext", progress: TaskProgress) -> Iterator[None]:
    """Polls Spark's status tracker while the job runs."""
    tracker = context.statusTracker()
    done = threading.Event()

    def poll() -> None:
        while not done.wait(POLL_SECONDS):
            stages = [
                stage
                for job in tracker.getActiveJobsIds()
                if (running := tracker.getJobInfo(job)) is not None
                for number in running.stageIds
                if (stage := tracker.getStageInfo(number)) is not None
            ]
            if stages:
                progress(
                    sum(stage.numCompletedTasks for stage in stages),
                    sum(stage.numTasks for stage in stages),
                    sum(stage.numFailedTasks for stage in stages),
                )

    thread = threading.Thread(target=poll, name="kseg-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def _watched_remotely(session: Any, progress: TaskProgress) -> Iterator[None]:
    """Spark Connect tells its progress by itself."""

    def tell(stages: Any = None, **_: object) -> None:
        if stages:
            progress(sum(stage.num_completed_tasks for stage in stages), sum(stage.num_tasks for stage in stages), 0)

    session.registerProgressHandler(tell)
    try:
        yield
    finally:
        session.removeProgressHandler(tell)
