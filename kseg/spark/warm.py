"""Makes the class data archive with which later exports on this machine start faster: `kseg spark-export --warm`."""

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyspark

from kseg.errors import KsegError, OpenError, UsageError
from kseg.spark.class_archive import ClassArchive
from kseg.spark.java import Java, find_java, problem
from kseg.spark.session import JAVA_OPTIONS, link_spark_home, open_context, spark_home_at
from kseg.system.scratch import scratch_directory


def make_class_archive(master: str, settings: Mapping[str, str], *, verbose: bool = False) -> ClassArchive:
    """Runs a job without orders, whose JVM writes down what it has loaded; replaces the archive of before.

    Raises:
        UsageError: if no Java can run this Spark, or Spark's classes aren't pyspark's.
        KsegError: if Spark can't start, the JVM writes no archive, or the cache directory can't be written.
    """
    java = find_java()
    wrong = problem(java, pyspark.__version__)
    if java is None or wrong is not None:
        raise UsageError(wrong or "no Java is here")
    archive = ClassArchive.of(java)
    if archive is None:
        raise UsageError("--warm is for pyspark's own Spark and a user's cache directory: unset SPARK_HOME, set HOME")
    try:
        _make(archive, java, (master, settings), verbose=verbose)
    except OSError as error:
        raise OpenError(error.strerror or str(error), archive.folder) from error
    return archive


def _make(archive: ClassArchive, java: Java, place: tuple[str, Mapping[str, str]], *, verbose: bool) -> None:
    archive.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with scratch_directory(archive.folder, ".new-") as scratch:
        link_spark_home(archive.spark_home)
        _make_basic(java, scratch / "basic").replace(archive.basic)
        made = scratch / "classes"
        master, settings = place
        wanted = {**settings, JAVA_OPTIONS: archive.options_to_make(made)}
        with spark_home_at(archive.spark_home), open_context(master, wanted, verbose=verbose) as context:
            context.parallelize(range(context.defaultParallelism)).mapPartitions(_nothing).collect()
        if not made.exists():
            raise KsegError(f"Java {java.version} wrote no class archive", str(java.home))
        made.replace(archive.path)
    for path in archive.folder.glob("*.jsa"):
        if path not in (archive.path, archive.basic):
            path.unlink(missing_ok=True)


def _make_basic(java: Java, path: Path) -> Path:
    command = [str(java.program), "-Xlog:disable", "-Xshare:dump", f"-XX:SharedArchiveFile={path}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if ran.returncode or not path.exists():
        said = " | ".join((ran.stderr + ran.stdout).split("\n"))
        raise KsegError(f"Java {java.version} wrote no class archive: {said}", str(java.home))
    return path


def _nothing(tasks: Iterable[int]) -> Iterator[int]:
    yield from tasks
