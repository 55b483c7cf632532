"""A standalone Spark cluster on this machine."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.spark.processes import free_port, is_listening, running, wait_until

if TYPE_CHECKING:
    import subprocess

LOCAL = {"SPARK_LOCAL_IP": "127.0.0.1"}


class Cluster(NamedTuple):
    """A master's URL, and the processes of its workers and of submitted jobs, each a group's leader."""

    master: str
    workers: list["subprocess.Popen[bytes]"]
    drivers: list["subprocess.Popen[bytes]"]


@contextmanager
def standalone_cluster(work: Path) -> Iterator[Cluster]:
    """Yield a master and two workers, of one core each, on 127.0.0.1 and 127.0.0.2."""
    import pyspark

    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    port = free_port()
    master = [spark_class, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
    with ExitStack() as stack:
        stack.enter_context(running([*master, "--webui-port", str(free_port())], work / "master.log", LOCAL))
        wait_until(lambda: is_listening(port), "the master listens")
        workers = []
        for number, host in enumerate(("127.0.0.1", "127.0.0.2")):
            log = work / f"worker{number}.log"
            worker = [spark_class, "org.apache.spark.deploy.worker.Worker", "--host", host, "--cores", "1"]
            worker += ["--memory", "700m", "--webui-port", str(free_port()), "--work-dir", str(work / f"w{number}")]
            workers.append(stack.enter_context(running([*worker, f"spark://127.0.0.1:{port}"], log, LOCAL)))
        for number in range(2):
            log = work / f"worker{number}.log"
            wait_until(lambda log=log: "Successfully registered" in log.read_text(), "the worker is registered")
        made = Cluster(f"spark://127.0.0.1:{port}", workers, [])
        yield made
        for process in made.drivers:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
