"""`kseg spark-export --remote`: an export through a Spark Connect server on this machine."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import golden
from tests.export import exports
from tests.spark.processes import free_port, is_listening, running, wait_until

pytestmark = pytest.mark.cluster

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Yield the URL of a server that uses this Python."""
    import pyspark

    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    command = [submit, "--master", "local[2]", "--class", SERVER]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    with running([*command, "spark-internal"], tmp_path / "server.log", environment) as process:
        wait_until(lambda: is_listening(port), "the server listens", process)
        yield f"sc://127.0.0.1:{port}"


def test_a_connect_server_exports_as_processes_do(server: str, tmp_path: Path) -> None:
    logs = golden.ROOT / "logs" / "4.3.1"
    command = [sys.executable, "-m", "kseg", "spark-export", "--remote", server, "-o", "json", str(logs)]
    ran = subprocess.run([*command, str(tmp_path / "out")], capture_output=True, env=os.environ, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    report = exports.export([logs], tmp_path / "here")
    assert json.loads(ran.stdout.splitlines()[-1])["recordsOut"] == sum(part.records_out for part in report.partitions)
    assert [table for _, _, table in exports.tables(tmp_path / "out")] == [
        table for _, _, table in exports.tables(tmp_path / "here")
    ]


def test_a_failing_task_of_a_connect_server_shows_one_line(server: str, tmp_path: Path) -> None:
    damaged = golden.ROOT / "damaged" / "210-wiped-batch"
    command = [sys.executable, "-m", "kseg", "spark-export", "--remote", server, "--fail-on-damage", str(damaged)]
    ran = subprocess.run([*command, str(tmp_path / "out")], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"kseg: {damaged}/00000000000000021933.log: at position 237: bad-length")
    assert ran.stderr.count("\n") == 1
