"""`kseg spark-export` on a standalone cluster, while workers, tasks and the driver fail: each record exactly once."""

import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

from tests.export import exports
from tests.spark.processes import wait_until
from tests.spark.standalone import LOCAL, Cluster

pytestmark = pytest.mark.cluster

PARTITIONS = 6
RECORDS = 2000
# Each Python worker loads this at its start: it slows orders down, and makes those of a partition fail as configured.
FAULTS = """
import os, pathlib, time
from kseg.export.commit import order
execute = order.execute_order
def execute_with_faults(wanted, job, place):
    folder = pathlib.Path(os.environ["TEST_KSEG_FAULTS"])
    (folder / f"started-{os.urandom(4).hex()}").touch()
    time.sleep(float(os.environ["TEST_KSEG_SECONDS"]))
    result = execute(wanted, job, place)
    if wanted.partition == 0 and len(list(folder.glob("failed-*"))) < int(os.environ["TEST_KSEG_FAILURES"]):
        (folder / f"failed-{os.urandom(4).hex()}").touch()
        raise OSError("a fault of the test's")
    return result
order.execute_order = execute_with_faults
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a log directory with some partitions of 2,000 records."""
    for partition in range(PARTITIONS):
        exports.write_log(tmp_path / "logs" / f"orders-{partition}", 0, RECORDS, value=b"%d" % partition)
    return tmp_path / "logs"


class Exporting(NamedTuple):
    """A running `kseg spark-export`, and the files of its results and its faults."""

    process: "subprocess.Popen[bytes]"
    output: Path
    faults: Path


def start(
    cluster: Cluster, source: Path, out: Path, *, seconds: float = 0, failures: int = 0, more: tuple[str, ...] = ()
) -> Exporting:
    folder = out.parent / f"faults-{os.urandom(4).hex()}"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(FAULTS, encoding="utf-8")
    variables = {
        "PYTHONPATH": str(folder),
        "TEST_KSEG_FAULTS": str(folder),
        "TEST_KSEG_SECONDS": str(seconds),
        "TEST_KSEG_FAILURES": str(failures),
    }
    settings = [f"spark.executorEnv.{name}={value}" for name, value in variables.items()]
    settings += ["spark.driver.host=127.0.0.1", "spark.executor.memory=500m", "spark.ui.enabled=false"]
    command = [str(Path(sys.executable).with_name("kseg")), "spark-export", "--master", cluster.master, "-v"]
    command += [part for setting in settings for part in ("--conf", setting)]
    output = folder / "output"
    with output.open("wb") as stdout, (folder / "errors").open("wb") as stderr:
        process = subprocess.Popen(
            [*command, *more, "-j", "2", "-o", "json", str(source), str(out)],
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, **LOCAL},
            start_new_session=True,
        )
    cluster.drivers.append(process)
    return Exporting(process, output, folder)


def assert_each_record_is_there_once(out: Path) -> None:
    for partition in range(PARTITIONS):
        assert exports.offsets(out, "orders", partition) == list(range(RECORDS))
    assert pq.read_table(out).num_rows == PARTITIONS * RECORDS


def finish(exporting: Exporting) -> dict[str, object]:
    status = exporting.process.wait(600)
    errors = (exporting.faults / "errors").read_text(errors="replace")
    assert status == 0, errors[-3000:]
    summary: dict[str, object] = json.loads(exporting.output.read_text().splitlines()[-1])
    return summary


def test_a_worker_is_killed_and_a_task_fails_twice(cluster: Cluster, source: Path, tmp_path: Path) -> None:
    exporting = start(cluster, source, tmp_path / "out", seconds=2, failures=2)
    wait_until(lambda: len(list(exporting.faults.glob("started-*"))) >= 3, "orders are under way")
    cluster.workers[1].send_signal(signal.SIGKILL)
    summary = finish(exporting)
    assert len(list(exporting.faults.glob("failed-*"))) == 2
    assert len(list(exporting.faults.glob("started-*"))) >= PARTITIONS + 2
    assert summary["recordsOut"] == PARTITIONS * RECORDS
    assert_each_record_is_there_once(tmp_path / "out")


def test_the_driver_is_killed_and_run_again(cluster: Cluster, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    killed = start(cluster, source, out, seconds=1)
    wait_until(lambda: list((out / "_kseg" / "attempts").glob("*.attempt")), "an order has written its file")
    os.killpg(killed.process.pid, signal.SIGKILL)
    killed.process.wait()
    assert [path for path in out.rglob("*.parquet") if "_kseg" not in path.parts] == []
    summary = finish(start(cluster, source, out))
    assert summary["newFiles"] == PARTITIONS
    assert_each_record_is_there_once(out)
    assert finish(start(cluster, source, out))["newFiles"] == 0


def test_executors_run_the_python_of_an_archive(cluster: Cluster, source: Path, tmp_path: Path) -> None:
    """The packed environment is a small one that leads to this one's packages, and reports its location."""
    libraries = Path("lib") / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    packed, says = tmp_path / "packed", tmp_path / "says"
    (packed / "bin").mkdir(parents=True)
    (packed / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    (packed / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n", encoding="utf-8")
    (packed / libraries).mkdir(parents=True)
    own = [path for path in sys.path if path and Path(path).is_dir()]
    line = f"import sys; open({str(says)!r}, 'a').write(sys.prefix + chr(10))"
    (packed / libraries / "own.pth").write_text("\n".join([*own, line]) + "\n", encoding="utf-8")
    with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as archive:
        archive.add(packed, "")
    finish(start(cluster, source, tmp_path / "out", more=("--archives", str(tmp_path / "packed.tar.gz"))))
    assert_each_record_is_there_once(tmp_path / "out")
    prefixes = {Path(prefix) for prefix in says.read_text().splitlines()}
    assert prefixes
    assert {prefix.name for prefix in prefixes} == {"environment"}
    assert {prefix.parents[2].parent for prefix in prefixes} == {tmp_path}
