"""Lets Spark execute the work orders of an export."""

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kseg.errors import KsegError
from kseg.export.order import Job
from kseg.export.plan import WorkOrder, balance
from kseg.export.result import Result
from kseg.export.run import Execute
from kseg.spark.session import stop_session
from kseg.spark.source import KsegSource
from kseg.spark.writer import read_job, write_job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

TASKS_PER_SLOT = 3
POLL_SECONDS = 0.2

TaskProgress = Callable[[int, int, int], object]
"""Is told how many tasks are done, of how many, and how many attempts failed."""
ByteProgress = Callable[[int, int, int], object]
"""Is told about how many bytes are read, of how many, and how many attempts of tasks failed."""


def by_spark(spark: "SparkSession", parallelism: int, progress: ByteProgress | None = None) -> Execute:
    """Executes orders in Spark's tasks, the largest first. Raises KsegError with the task's own message."""
    rounds = count()

    def execute(orders: Sequence[WorkOrder], job: Job) -> Iterable[Result]:
        name = str(next(rounds))
        tasks = balance(orders, min(len(orders), parallelism * TASKS_PER_SLOT))
        members = {"job": job.to_json(), "tasks": [[order.to_json() for order in task] for task in tasks]}
        write_job(job.destination, job.id, f"orders-{name}", members)
        _run(
            spark, len(tasks), {"destination": job.destination, "job": job.id, "round": name}, in_bytes(tasks, progress)
        )
        results = [*map(Result.from_json, read_job(job.destination, job.id, f"results-{name}")["results"])]
        if len(results) != len(orders):
            raise KsegError(f"{len(orders)} orders were given, {len(results)} results came back", job.destination)
        return results

    return execute


def in_bytes(tasks: Sequence[Sequence[WorkOrder]], progress: ByteProgress | None) -> TaskProgress | None:
    """Reports bytes, since Spark reports only tasks: they start in this order, and end roughly in it."""
    if progress is None:
        return None
    sums = [0, *accumulate(sum(order.size for order in task) for task in tasks)]
    return lambda done, _, failed: progress(sums[min(done, len(tasks))], sums[-1], failed)


def _run(spark: "SparkSession", tasks: int, options: dict[str, str], progress: TaskProgress | None) -> None:
    spark.dataSource.register(KsegSource)
    rows = spark.range(0, tasks, 1, tasks)
    try:
        with _watched(spark, progress) if progress is not None else nullcontext():
            rows.write.format(KsegSource.name()).mode("append").options(**options).save()
    except KeyboardInterrupt:
        stop_session(spark)  # before what its tasks wrote is removed
        raise
    except (PySparkException, Py4JError) as error:
        raise KsegError(message_of(error)) from error


def message_of(error: Exception) -> str:
    """The last line of a Python error that came over from a task, without the exception's name."""
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.toString())
    lines = [line for line in text.splitlines() if line[:1].strip() and not line.startswith("SQLSTATE")]
    own = [line for line in lines if line.startswith("kseg.errors.")]
    if own:
        return own[-1].partition(": ")[2]
    return lines[-1] if lines else type(error).__name__


def _watched(spark: Any, progress: TaskProgress) -> AbstractContextManager[None]:
    return _watched_remotely(spark, progress) if _is_remote(spark) else _watched_here(spark, progress)


def _is_remote(spark: Any) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


@contextmanager
def _watched_here(spark: "SparkSession", progress: TaskProgress) -> "Iterator[None]":
    """Polls Spark's status tracker while the job runs."""
    tracker = spark.sparkContext.statusTracker()
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
def _watched_remotely(spark: Any, progress: TaskProgress) -> "Iterator[None]":
    """Spark Connect tells its progress by itself."""

    def tell(stages: Any = None, **_: object) -> None:
        if stages:
            progress(sum(stage.num_completed_tasks for stage in stages), sum(stage.num_tasks for stage in stages), 0)

    spark.registerProgressHandler(tell)
    try:
        yield
    finally:
        spark.removeProgressHandler(tell)
