"""An export by Spark on this machine starts quickly after `--prepare-jvm`, and ends after its report."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import golden
from tests.export import exports
from tests.process_groups import interruptible, members

pytestmark = pytest.mark.spark

KSEG = str(Path(sys.executable).with_name("kseg"))
NOTE = b"kseg: on one machine `kseg export` does the same, and is quicker: it needs no Spark\n"
ZSTD = [str(golden.ROOT / "logs" / "4.3.1"), "--topic", "zstd"]
# Each Python process loads this at its start: it shows the driver's stop of Spark.
AT_STOP = """
import os, signal
from pathlib import Path
import pyspark
from py4j.protocol import Py4JError
stop = pyspark.SparkContext.stop
def stop_with_faults(self):
    Path(os.environ["TEST_KSEG_PRINTED"]).write_bytes(Path("stdout").read_bytes())
    {before}
    stop(self)
    {after}
pyspark.SparkContext.stop = stop_with_faults
"""


def spark_export(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[bytes]":
    command = [KSEG, "spark-export", "--master", "local[2]", *arguments]
    return subprocess.run(command, capture_output=True, env=os.environ | variables, check=False)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a user's cache directory, with an archive made by `--prepare-jvm`."""
    cache = tmp_path_factory.mktemp("cache")
    ran = spark_export("--prepare-jvm", XDG_CACHE_HOME=str(cache))
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.startswith(f"{archive(cache)}: ".encode())
    return cache


def archive(cache: Path) -> Path:
    (found,) = [path for path in cache.glob("kseg/spark/*/*.jsa") if not path.stem.endswith("-basic")]
    return found


def export_with(cache: Path, directory: Path) -> bool:
    """Export a topic quietly, and return whether the JVM loaded its classes from the archive."""
    log = directory / "classes-%p"
    variables = {"XDG_CACHE_HOME": str(cache), "_JAVA_OPTIONS": f"-Xlog:class+load:file={log}"}
    ran = spark_export(*ZSTD, str(directory / "out"), **variables)
    assert (ran.returncode, ran.stderr, ran.stdout.count(b"\n")) == (0, NOTE, 5)
    assert len(exports.offsets(directory / "out", "zstd")) == 290
    loaded = [line for path in directory.glob("classes-*") for line in path.read_text().splitlines()]
    (context,) = [line for line in loaded if " org.apache.spark.SparkContext source: " in line]
    return context.endswith("shared objects file (top)")


def test_later_exports_use_what_warm_has_made(cache: Path, tmp_path: Path) -> None:
    assert export_with(cache, tmp_path)
    assert f"class archive {archive(cache)}\n".encode() in spark_export("--check", XDG_CACHE_HOME=str(cache)).stdout


def test_an_export_makes_no_archive(tmp_path: Path) -> None:
    assert not export_with(tmp_path / "cache", tmp_path)
    assert not (tmp_path / "cache").exists()
    assert b"class archive none\n" in spark_export("--check", XDG_CACHE_HOME=str(tmp_path)).stdout


def test_an_archive_that_does_not_fit_is_ignored(cache: Path, tmp_path: Path) -> None:
    stale = archive(cache).relative_to(cache)
    (tmp_path / stale).parent.mkdir(parents=True)
    for path in archive(cache).parent.iterdir():
        (tmp_path / stale).with_name(path.name).symlink_to(path)
    (tmp_path / stale).unlink()
    (tmp_path / stale).write_bytes(bytes(8192))
    assert not export_with(tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "variables", "complaint"),
    [
        (["--master", "spark://head:7077"], {}, "--prepare-jvm needs --master local[N]"),
        ([], {"SPARK_HOME": "/opt/spark"}, "unset SPARK_HOME"),
        ([], {"XDG_CACHE_HOME": "/dev/null"}, "Not a directory"),
    ],
)
def test_where_no_archive_can_be_made_warm_says_so(
    arguments: list[str], variables: dict[str, str], complaint: str
) -> None:
    ran = spark_export("--prepare-jvm", *arguments, **variables)
    assert (ran.returncode, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)
    assert complaint in ran.stderr.decode()


WORKER = """
import sys
from kseg.spark.job import open_context
def loaded(_):
    return [name for name in ("kseg.spark.tasks", "pandas") if name in sys.modules]
with open_context("local[2]") as context:
    print(context.parallelize([0], 1).flatMap(loaded).collect())
"""


def test_workers_begin_with_the_modules_of_tasks_and_without_pandas() -> None:
    ran = subprocess.run([sys.executable, "-c", WORKER], capture_output=True, check=True)
    assert ran.stdout == b"['kseg.spark.tasks']\n"


def test_where_spark_cannot_start_one_line_has_its_words() -> None:
    ran = spark_export("--conf", "spark.driver.memory=1m", *ZSTD, "out")
    assert (ran.returncode, ran.stdout, ran.stderr.count(b"\n")) == (3, b"", 2)
    assert ran.stderr.startswith(NOTE)
    assert ran.stderr.rstrip().endswith(b"Too small maximum heap")


def test_after_spark_the_variables_are_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    from kseg.spark.job import open_context

    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    before = {name: os.environ.get(name) for name in ("PYSPARK_PYTHON", "JAVA_HOME", "SPARK_HOME", "PYTHONSAFEPATH")}
    with open_context("local[1]") as context:
        assert context.parallelize([1, 2], 1).sum() == 3
    assert {name: os.environ.get(name) for name in before} == before


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ("", "", 0),
        ("", "raise Py4JError('a fault of the test')", 0),
        ("os.kill(os.getpid(), signal.SIGINT)", "", 130),
        ("", "os.kill(os.getpid(), signal.SIGTERM)", 143),
    ],
    ids=["as usual", "it fails", "an interrupt comes before", "another comes after"],
)
def test_the_report_is_printed_before_spark_is_stopped(before: str, after: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(AT_STOP.format(before=before, after=after), encoding="utf-8")
    (tmp_path / "temporary").mkdir()
    variables = {"PYTHONPATH": "site", "TEST_KSEG_PRINTED": "printed", "TMPDIR": str(tmp_path / "temporary")}
    with (tmp_path / "stdout").open("wb") as stdout, (tmp_path / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [KSEG, "spark-export", "--master", "local[2]", *ZSTD, "out"],
            cwd=tmp_path,
            env=os.environ | variables,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            preexec_fn=interruptible,
        )
        assert process.wait() == status
    assert b"290 of 290 records" in (tmp_path / "printed").read_bytes()
    assert (tmp_path / "printed").read_bytes() == (tmp_path / "stdout").read_bytes()
    assert (tmp_path / "stderr").read_bytes().strip() == NOTE.strip()
    assert len(exports.offsets(tmp_path / "out", "zstd")) == 290
    while members(process.pid):
        pass
    assert list((tmp_path / "temporary").iterdir()) == []
