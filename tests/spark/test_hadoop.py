"""Exports from and to HDFS, here and in YARN's containers, even if these are killed: each record exactly once."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from kseg.export.commit.manifest import read_manifest
from kseg.export.commit.order import execute_here
from kseg.export.destination import open_destination
from kseg.export.planning import Export
from kseg.export.run import run_export
from kseg.export.settings import FileOptions
from kseg.store.hdfs import web_system
from tests import golden
from tests.export import exports
from tests.spark.hadoop import Hadoop, containers, mini_hadoop
from tests.spark.processes import wait_until
from tests.spark.standalone import LOCAL
from tests.spark.test_cluster import FAULTS, PARTITIONS, RECORDS

pytestmark = pytest.mark.cluster

Start = Callable[..., "subprocess.Popen[str]"]
EXECUTOR = "YarnCoarseGrainedExecutorBackend"
DRIVER = "ApplicationMaster"
# As in test_cluster, but only in processes that have a place to report to.
FAULTS_IF_ASKED = f"import os\nif 'TEST_KSEG_FAULTS' in os.environ:\n    exec({FAULTS!r})\n"


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    """Yield HDFS and YARN, with golden's files of 4.3.1 below /golden and a log of the given partitions below /logs."""
    work = tmp_path_factory.mktemp("hadoop")
    with mini_hadoop(work) as made:
        for partition in range(PARTITIONS):
            exports.write_log(work / "logs" / f"orders-{partition}", 0, RECORDS, value=b"%d" % partition)
        system = web_system(made.url)
        fs.copy_files(str(golden.ROOT / "logs" / "4.3.1"), "/golden", destination_filesystem=system)
        fs.copy_files(str(work / "logs"), "/logs", destination_filesystem=system)
        yield made


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a small environment that leads to this one's packages."""
    root = tmp_path_factory.mktemp("small")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    (libraries,) = root.glob("lib/python*/site-packages")
    own = [path for path in sys.path if path and Path(path).is_dir()]
    (libraries / "own.pth").write_text("\n".join([*own, str(golden.ROOT.parent)]) + "\n", encoding="utf-8")
    (libraries / "sitecustomize.py").write_text(FAULTS_IF_ASKED, encoding="utf-8")
    return root / "bin" / "python"


@pytest.fixture
def submitted_exports() -> Iterator[list["subprocess.Popen[str]"]]:
    """Yield the exports that a test starts, and end them afterwards."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        if process.poll() is None:
            process.terminate()
            process.communicate()


@pytest.fixture
def start(python: Path, hadoop: Hadoop, tmp_path: Path, submitted_exports: list["subprocess.Popen[str]"]) -> Start:
    """Return a function that starts an export of /logs into a folder of HDFS, with more options."""

    def started(out: str, *more: str) -> "subprocess.Popen[str]":
        submitted_exports.append(spark_export(python, hadoop, out, tmp_path, more))
        return submitted_exports[-1]

    return started


def spark_export(python: Path, hadoop: Hadoop, out: str, work: Path, more: tuple[str, ...]) -> "subprocess.Popen[str]":
    """Start `kseg spark-export` of /logs on YARN, each order slowed down by some seconds."""
    import pyspark

    settings = {
        "spark.driver.memory": "500m",
        "spark.executor.memory": "500m",
        "spark.executor.instances": "2",
        "spark.yarn.am.memory": "400m",
        "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
        "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
        "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
        "spark.executorEnv.TEST_KSEG_FAULTS": str(work),
        "spark.executorEnv.TEST_KSEG_SECONDS": "4",
        "spark.executorEnv.TEST_KSEG_FAILURES": "0",
    }
    options = [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
    command = [str(python), "-m", "kseg", "spark-export", "--master", "yarn", "--ship-env", *options, *more]
    return subprocess.Popen(
        [*command, f"{hadoop.url}/logs", f"{hadoop.url}/{out}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **LOCAL, "HADOOP_CONF_DIR": str(hadoop.configuration), "TMPDIR": str(work)},
    )


def finish(process: "subprocess.Popen[str]") -> str:
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    return stdout


def table(hadoop: Hadoop, out: str) -> pa.Table:
    """Return the files in the manifest of an export in HDFS, which must be all."""
    place = open_destination(f"{hadoop.url}/{out}")
    manifest = read_manifest(place)
    assert manifest is not None
    there = [name for name in place.names() if name.endswith(".parquet")]
    assert sorted(there) == sorted(manifest.paths())
    assert list(place.names("_kseg/attempts")) == []
    system = web_system(hadoop.url)
    return pa.concat_tables(pq.read_table(f"/{out}/{name}", filesystem=system, partitioning=None) for name in there)


def assert_each_record_is_there_once(written: pa.Table) -> None:
    rows = zip(written.column("partition").to_pylist(), written.column("offset").to_pylist(), strict=True)
    assert sorted(rows) == [(partition, offset) for partition in range(PARTITIONS) for offset in range(RECORDS)]


def test_an_export_from_and_to_hdfs_is_the_export_from_and_to_disks(hadoop: Hadoop, tmp_path: Path) -> None:
    wanted = Export(
        (f"{hadoop.url}/golden",), f"{hadoop.url}/out", files=FileOptions(target_size=3000), order_size=3000
    )
    report = run_export(wanted, execute_here)
    local = exports.export([golden.ROOT / "logs" / "4.3.1"], tmp_path / "out", target_size=3000)
    assert [(part.topic, part.records_out) for part in report.partitions] == [
        (part.topic, part.records_out) for part in local.partitions
    ]
    written = table(hadoop, "out")
    assert sorted(exports.rows_of(written)) == sorted(exports.rows_of(pq.read_table(tmp_path / "out")))
    assert written.num_rows == sum(part.records_out for part in report.partitions)
    assert run_export(wanted, execute_here).new_files == 0
    assert table(hadoop, "out").num_rows == written.num_rows


def test_in_hdfs_a_name_is_claimed_once_and_renamed_to_once(hadoop: Hadoop) -> None:
    place = open_destination(f"{hadoop.url}/claims")
    assert place.read("_kseg/a.json") is None
    assert place.claim("_kseg/a.json", b"one")
    assert not place.claim("_kseg/a.json", b"two")
    assert place.claim("_kseg/a.json", b"one")  # a first answer may be lost
    place.replace("_kseg/a.json", b"stub")
    assert place.read("_kseg/a.json") == b"stub"
    place.replace("attempt", b"rows")
    for _ in range(2):
        place.rename("attempt", "topic=t/part.parquet")
    assert sorted(place.names()) == ["_kseg/a.json", "topic=t/part.parquet"]
    place.delete("topic=t/part.parquet")
    assert list(place.names("topic=t")) == []


def test_a_driver_here_and_containers_of_which_one_is_killed(hadoop: Hadoop, start: Start, tmp_path: Path) -> None:
    process = start("client")
    wait_until(lambda: len(list(tmp_path.glob("started-*"))) >= 2, "orders are under way")
    os.kill(containers(hadoop, EXECUTOR)[0], signal.SIGKILL)
    assert f"{PARTITIONS * RECORDS} of {PARTITIONS * RECORDS} records, 0 offsets lost" in finish(process)
    assert len(list(tmp_path.glob("started-*"))) > PARTITIONS
    assert_each_record_is_there_once(table(hadoop, "client"))


def test_a_driver_on_the_cluster_that_is_killed_and_run_again(hadoop: Hadoop, start: Start, tmp_path: Path) -> None:
    asked = ("--deploy-mode", "cluster", "--conf", "spark.yarn.maxAppAttempts=1")
    killed = start("cluster", *asked)
    wait_until(lambda: list(tmp_path.glob("started-*")), "orders are under way")
    for pid in containers(hadoop, DRIVER):
        os.kill(pid, signal.SIGKILL)
    stdout, stderr = killed.communicate()
    assert (killed.returncode, stdout, stderr.count("\n")) == (3, "", 1)
    assert "; read its log with `yarn logs -applicationId application_" in stderr
    assert [name for name in open_destination(f"{hadoop.url}/cluster").names() if name.endswith(".parquet")] == []
    said = finish(start("cluster", *asked))
    assert said.startswith(
        f"{PARTITIONS * RECORDS} of {PARTITIONS * RECORDS} records, 0 offsets lost; {PARTITIONS} new"
    )
    assert_each_record_is_there_once(table(hadoop, "cluster"))
