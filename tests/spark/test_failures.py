"""Reports of a cluster's failures: a line with advice, status 3, and a file with Spark's complete output."""

import os
import re
import shlex
import socketserver
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kseg.errors import ClusterError
from tests import golden
from tests.export import exports
from tests.spark.standalone import LOCAL, Cluster

KSEG = str(Path(sys.executable).with_name("kseg"))
ZSTD = golden.ROOT / "logs" / "4.3.1" / "zstd-0"
HERE = ("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=500m")


def spark_export(*arguments: str | Path, directory: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    (directory / "temporary").mkdir(exist_ok=True)
    unset = {"HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_PYTHON"}
    own = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.run(
        [KSEG, "spark-export", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=directory,
        env=own | LOCAL | {"TMPDIR": str(directory / "temporary")} | variables,
        check=False,
    )


def assert_said(ran: "subprocess.CompletedProcess[str]", complaint: str, directory: Path) -> str:
    """Assert status 3 and the last line on stderr, which names the remaining file; return the file's text."""
    assert (ran.returncode, ran.stdout) == (3, "")
    last = ran.stderr.splitlines()[-1]
    assert re.match(f"kseg: .*{re.escape(complaint)}", last), ran.stderr
    named = Path(last.split("; ")[-1].removeprefix("read Spark's complete output in "))
    assert list((directory / "temporary").iterdir()) == [named]
    return named.read_text(encoding="utf-8")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--master yarn", "set HADOOP_CONF_DIR to the directory with yarn-site.xml"),
        ("--master sprak://head:7077", "sprak://head:7077 isn't a valid master; specify spark://HOST:PORT"),
        ("--master spark://head", "spark://head isn't a valid master; specify spark://HOST:PORT"),
        ("--master spark://127.0.0.1:1 --deploy-mode cluster", "omit --deploy-mode cluster"),
        ("--master k8s://https://127.0.0.1:1 --deploy-mode cluster", "--conf spark.kubernetes.container.image=…"),
        (
            "--master k8s://https://127.0.0.1:1 --deploy-mode cluster --conf spark.kubernetes.container.image=kseg",
            "the Kubernetes API server at k8s://https://127.0.0.1:1 can't be used: Connection refused",
        ),
        (
            "--master k8s://https://127.0.0.1:1 --conf spark.kubernetes.container.image=kseg",
            "the Kubernetes API server at k8s://https://127.0.0.1:1 can't be used: Connection refused",
        ),
        ("--master spark://127.0.0.1:1 --packages org.example:nothing:1", "org.example"),
    ],
)
def test_what_spark_submit_refuses_is_one_line(options: str, complaint: str, tmp_path: Path) -> None:
    ran = spark_export(*shlex.split(options), ZSTD, tmp_path / "out", directory=tmp_path)
    said = assert_said(ran, complaint, tmp_path)
    assert ran.stderr.count("\n") == 1
    assert said.count("\n") > 5
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
def test_with_v_all_lines_are_shown_and_no_file_is_left(tmp_path: Path) -> None:
    ran = spark_export("--master", "yarn", "-v", ZSTD, tmp_path / "out", directory=tmp_path)
    assert ran.returncode == 3
    assert "SparkSubmitArguments" in ran.stderr
    assert "set HADOOP_CONF_DIR" in ran.stderr
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.spark
def test_without_a_java_one_line_says_so(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n", encoding="utf-8")
    (tmp_path / "bin" / "java").chmod(0o755)
    ran = spark_export("--master", "spark://127.0.0.1:1", ZSTD, "out", directory=tmp_path, JAVA_HOME=str(tmp_path))
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert "Java 11 is too old" in ran.stderr


@pytest.mark.cluster
def test_a_master_that_does_not_answer(tmp_path: Path) -> None:
    ran = spark_export("--master", "spark://127.0.0.1:1", ZSTD, tmp_path / "out", directory=tmp_path)
    assert_said(ran, "no master answers at spark://127.0.0.1:1", tmp_path)
    assert ran.stderr.startswith("kseg: the master at 127.0.0.1:1 doesn't answer; Spark retries for a minute\n")
    assert ran.stderr.count("\n") == 2


@pytest.mark.cluster
def test_executors_without_memory_without_python_without_the_path(cluster: Cluster, tmp_path: Path) -> None:
    asked = ("--master", cluster.master, *HERE)
    out = tmp_path / "out"
    greedy = ("--conf", "spark.executor.memory=20g", "--conf", "spark.starvation.timeout=200ms")
    ran = spark_export(*asked, *greedy, ZSTD, out, directory=tmp_path)
    said = assert_said(ran, "no executor has started", tmp_path)
    assert "kseg: no executor has started yet: " in ran.stderr
    assert said.count("Initial job has not accepted any resources") >= 40
    (tmp_path / "temporary").joinpath(*[path.name for path in (tmp_path / "temporary").iterdir()]).unlink()
    ran = spark_export(*asked, ZSTD, out, directory=tmp_path, PYSPARK_PYTHON="/nowhere/python")
    assert_said(ran, "executors can't run /nowhere/python; send this environment with --ship-env", tmp_path)
    (tmp_path / "temporary").joinpath(*[path.name for path in (tmp_path / "temporary").iterdir()]).unlink()
    (tmp_path / "zstd-0").symlink_to(ZSTD)
    ran = spark_export(*asked, "/proc/self/cwd/zstd-0", out, directory=tmp_path)  # another place in each process
    assert_said(ran, "make sources and destination reachable under the same names on all machines", tmp_path)


@pytest.mark.cluster
def test_the_command_that_a_dry_run_prints_does_the_same(cluster: Cluster, tmp_path: Path) -> None:
    asked = ("--master", cluster.master, *HERE, ZSTD)
    ran = spark_export(*asked, tmp_path / "out", directory=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    printed = spark_export(*asked, tmp_path / "again", "--dry-run", directory=tmp_path).stdout.splitlines()[-1]
    again = subprocess.run(["sh", "-c", printed], capture_output=True, text=True, env=os.environ | LOCAL, check=False)
    assert again.returncode == 0
    assert again.stdout == ran.stdout.replace(str(tmp_path / "out"), str(tmp_path / "again"))
    assert exports.offsets(tmp_path / "again", "zstd") == exports.offsets(tmp_path / "out", "zstd")
    assert len(exports.offsets(tmp_path / "again", "zstd")) == 290


@pytest.mark.spark
@pytest.mark.parametrize(
    "answer", [b"", b"\0\0\x12\4\0", b"HTTP/1.1 400 Bad Request\r\n\r\n"], ids=["none", "half", "other"]
)
def test_a_connect_server_that_closes_its_connections_is_given_up(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kseg.spark import job

    class Closing(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(answer)

    monkeypatch.setattr(job, "CONNECT_SECONDS", 1)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Closing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"sc://127.0.0.1:{server.server_address[1]}"
        with pytest.raises(ClusterError) as raised, job.open_server(url):
            pass
        server.shutdown()
        thread.join()
    assert raised.value.one_line() == f"{url}: Spark Connect doesn't answer: no connection within 1 s"
