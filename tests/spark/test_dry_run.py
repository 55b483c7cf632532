"""`kseg spark-export --dry-run`: it prints the plan, and changes nothing anywhere."""

import json
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import golden, run
from tests.export import exports

pytestmark = pytest.mark.spark


def kseg(*arguments: str | Path) -> run.Run:
    return run.kseg([str(argument) for argument in arguments], golden.ROOT)


def test_a_dry_run_leaves_a_commit_that_was_broken_off_as_it_is(tmp_path: Path) -> None:
    source, out = tmp_path / "orders-0", tmp_path / "out"
    exports.write_log(source, 0, 10)
    assert kseg("export", source, out).status == 0
    (manifest,) = (out / "_kseg").glob("manifest-*")
    (file,) = json.loads(manifest.read_bytes())["results"][0]["files"]
    (out / "_kseg" / "attempts").mkdir(exist_ok=True)
    (out / file["path"]).rename(out / file["attempt"])
    before = {path: (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*")}
    ran = kseg("spark-export", "--dry-run", source, out)
    assert (ran.status, ran.stderr) == (0, b"")
    assert {path: (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*")} == before
    manifest.write_bytes(b"[]")
    ran = kseg("spark-export", "--dry-run", source, out)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)


def test_the_command_line_for_spark_submit_asks_for_the_same(tmp_path: Path) -> None:
    options = ["--topic", "*txn", "--partition", "0", "--no-control", "--value-decoder", "string"]
    options += ["--runs-table", str(tmp_path / "runs"), "--openlineage-kafka", "broker-1:9092"]
    asked = [*options, "--from-time", "2026-01-01", "--tz", "+01:00", "--partition-by", "none"]
    ran = kseg("spark-export", "--dry-run", "--master", "spark://head:7077", "logs/4.3.1", "--to", tmp_path, *asked)
    assert (ran.status, ran.stderr) == (0, b"")
    arguments = shlex.split(ran.stdout.decode().splitlines()[-1])
    assert set(asked) <= set(arguments)
    assert arguments[-2:] == [str(golden.ROOT / "logs/4.3.1"), str(tmp_path)]


def test_tables_per_topic_are_planned_together_and_sent_as_one_job(tmp_path: Path) -> None:
    destination = f"{tmp_path}/{{topic}}"
    ran = kseg("spark-export", "--dry-run", "--master", "spark://head:7077", "logs/4.3.1", "--to", destination)
    assert (ran.status, ran.stderr) == (0, b"")
    *plan, sent = ran.stdout.decode().splitlines()
    assert plan[-1].startswith("7 partitions, 7 tasks")
    assert shlex.split(sent)[-1] == destination


def test_a_run_on_this_machine_needs_no_spark_submit(tmp_path: Path) -> None:
    ran = kseg("spark-export", "--dry-run", "logs/4.3.1", tmp_path, "--topic", "zstd")
    assert (ran.status, ran.stderr) == (0, b"")
    assert ran.stdout.decode().splitlines()[-1] == "1 partition, 1 task, 8.8 KiB"


def test_a_shipped_environment_is_packed_by_the_printed_command(tmp_path: Path) -> None:
    ran = kseg("spark-export", "--dry-run", "--master", "yarn", "--ship-env", "logs/4.3.1", tmp_path)
    directory, pack, link, submit = ran.stdout.decode().splitlines()[-1].split(" && ")
    assert directory == 'cd "$(mktemp -d)"'
    assert shlex.split(pack) == [sys.executable, "-m", "kseg.spark.environment", "environment.tar.gz"]
    assert shlex.split(link) == ["ln", "-s", sys.prefix, "environment"]
    assert {"--archives", "environment.tar.gz#environment"} <= set(shlex.split(submit))


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_on_kubernetes_python_and_application_are_those_of_the_image(mode: str, tmp_path: Path) -> None:
    asked = ["--master", "k8s://https://head:6443", "--deploy-mode", mode]
    asked += ["--conf", "spark.kubernetes.container.image=registry/kseg"]
    ran = kseg("spark-export", "--dry-run", *asked, "logs/4.3.1", tmp_path)
    assert (ran.status, ran.stderr) == (0, b"")
    words = shlex.split(ran.stdout.decode().splitlines()[-1])
    image = (golden.ROOT.parent / "docs" / "kubernetes" / "Containerfile").read_text(encoding="utf-8")
    assert "python -m venv /opt/kseg " in image
    assert " /opt/kseg/application.py " in image
    assert "spark.pyspark.python=/opt/kseg/bin/python" in words
    assert not any(word.startswith("PYSPARK") for word in words)
    (application,) = [word for word in words if word.endswith("application.py")]
    if mode == "cluster":
        assert application == "local:///opt/kseg/application.py"
    else:
        found = find_spec("kseg.spark.application")
        assert found is not None
        assert application == found.origin
        assert f"spark.pyspark.driver.python={sys.executable}" in words
    assert words[-2:] == [str(golden.ROOT / "logs/4.3.1"), str(tmp_path)]
