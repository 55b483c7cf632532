"""spark-submit for the export: its command line, and the environment that executors are given."""

import os
import shlex
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import pyspark

from kseg.errors import KsegError, UsageError
from kseg.system.interrupts import Uninterrupted
from kseg.system.safe_path import SAFE_PATH
from kseg.system.scratch import scratch_directory

ENVIRONMENT = "environment"
"""The folder of a task's working directory where the packed environment is unpacked."""
OWN_PACKAGES = ("kseg", "pyspark_kseg")
SAFE_SETTINGS = tuple(
    (f"{place}.{SAFE_PATH}", "1")
    for place in ("spark.executorEnv", "spark.yarn.appMasterEnv", "spark.kubernetes.driverEnv")
)
"""Python processes of Spark's take no module from their current directory."""
NOT_PACKED = ("pyspark", "pip")
"""Packages that executors don't need: Spark brings its own Python side."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the job goes, as spark-submit's options say it. archive: a packed environment for the executors."""

    master: str
    deploy_mode: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    packages: tuple[str, ...] = ()
    archive: str | None = None


def submit_command(cluster: Cluster, arguments: Sequence[str]) -> list[str]:
    """The command line of spark-submit; `arguments` are those of `kseg spark-export`."""
    command = [str(_spark_home() / "bin" / "spark-submit"), "--master", cluster.master]
    if cluster.deploy_mode is not None:
        command += ["--deploy-mode", cluster.deploy_mode]
    if cluster.packages:
        command += ["--packages", ",".join(cluster.packages)]
    if cluster.archive is not None:
        command += ["--archives", f"{cluster.archive}#{ENVIRONMENT}"]
    for name, value in (*SAFE_SETTINGS, *cluster.settings):
        command += ["--conf", f"{name}={value}"]
    return [*command, str(_application()), *arguments]


def submit_environment(cluster: Cluster) -> dict[str, str]:
    """Variables for spark-submit: which Python driver and executors run."""
    here = sys.executable
    python = f"./{ENVIRONMENT}/bin/python" if cluster.archive is not None else here
    driver = python if cluster.deploy_mode == "cluster" else here
    pythons = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", python), "PYSPARK_DRIVER_PYTHON": driver}
    return {**pythons, SAFE_PATH: "1"}


def submit(cluster: Cluster, arguments: Sequence[str], *, verbose: bool) -> int:
    """Runs spark-submit; gives its exit status. Its own talk is dropped unless `verbose`, or if it fails to start."""
    command = submit_command(cluster, arguments)
    environment = {**os.environ, **submit_environment(cluster)}
    stderr = None if verbose else subprocess.PIPE
    with _driver_directory(cluster) as directory:
        try:
            ran = subprocess.Popen(command, env=environment, cwd=directory, stderr=stderr, text=True)  # noqa: S603
        except OSError as error:
            raise KsegError(f"can't be run: {error.strerror}", command[0]) from error
        said = _error_text(ran)
    own = [line for line in said.splitlines() if line.startswith("kseg: ")]
    if own:
        sys.stderr.write("\n".join(own) + "\n")
    elif ran.returncode not in (0, 1):
        last = said.strip().splitlines()[-5:]
        raise KsegError(f"spark-submit ended with {ran.returncode}: {' | '.join(last)}; -v shows all")
    return ran.returncode


def submit_with_environment(cluster: Cluster, arguments: Sequence[str], *, verbose: bool) -> int:
    """As `submit`, with this virtual environment packed for the executors."""
    with scratch_directory() as scratch:
        packed = pack_environment(scratch / "environment.tar.gz")
        return submit(replace(cluster, archive=str(packed)), arguments, verbose=verbose)


def _error_text(ran: "subprocess.Popen[str]") -> str:
    """What a process said on stderr until it ended; a signal that ends this one is handed on, and waited for."""
    try:
        return ran.communicate()[1] or ""
    except KeyboardInterrupt:
        with Uninterrupted():
            ran.terminate()
            ran.wait()
        raise


@contextmanager
def _driver_directory(cluster: Cluster) -> Iterator[str | None]:
    """Where a driver on this machine runs; None means here.

    Spark plans with Python on the driver, by the same relative path that executors find in the archive: so it must lead
    to this environment.
    """
    if not _links_environment(cluster):
        yield None
        return
    with scratch_directory() as directory:
        (directory / ENVIRONMENT).symlink_to(sys.prefix)
        yield str(directory)


def _links_environment(cluster: Cluster) -> bool:
    return cluster.archive is not None and cluster.deploy_mode != "cluster"


def pack_environment(target: Path) -> Path:
    """Packs this Python's environment, kseg included, as a .tar.gz that executors can run from.

    It holds a link to the interpreter that it was made from: that must lie at the same path on all machines. Raises
    UsageError outside of a virtual environment.
    """
    if sys.prefix == sys.base_prefix:
        raise UsageError("--ship-env packs a virtual environment, and this Python isn't in one")
    root = Path(sys.prefix)
    libraries = Path(sysconfig.get_path("purelib")).relative_to(root)
    with tarfile.open(target, "w:gz", compresslevel=1) as archive:
        for name in ("bin", "lib", "lib64", "pyvenv.cfg"):
            if (root / name).exists():
                archive.add(root / name, name, filter=_without_what_executors_have)
        for package in OWN_PACKAGES:
            found = find_spec(package)
            if found is not None and found.origin is not None and root not in Path(found.origin).parents:
                archive.add(Path(found.origin).parent, str(libraries / package), filter=_without_what_executors_have)
    return target


def _without_what_executors_have(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    *folders, name = Path(member.name).parts
    is_package = bool(folders) and folders[-1] == "site-packages"
    return None if name == "__pycache__" or (is_package and name in NOT_PACKED) else member


def _spark_home() -> Path:
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def _application() -> Path:
    found = find_spec("kseg.spark.application")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin)


def quoted(cluster: Cluster, arguments: Sequence[str]) -> str:
    """The command line as a shell takes it, variables included."""
    link = f"ln -s {shlex.quote(sys.prefix)} {ENVIRONMENT} && " if _links_environment(cluster) else ""
    variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in submit_environment(cluster).items())
    return f"{link}{variables} {shlex.join(submit_command(cluster, arguments))}"
