"""spark-submit for the export: its command line, its variables, and the same as a shell takes them."""

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pyspark

from kseg.spark.environment import ENVIRONMENT, PACKED
from kseg.system.safe_path import SAFE_PATH

SAFE_SETTINGS = tuple(
    (f"{place}.{SAFE_PATH}", "1")
    for place in ("spark.executorEnv", "spark.yarn.appMasterEnv", "spark.kubernetes.driverEnv")
)
"""Python processes of Spark's take no module from their current directory."""
IMAGE_PYTHON = "/opt/kseg/bin/python"
"""Python in the image that docs/kubernetes/Containerfile describes."""
IMAGE_APPLICATION = "local:///opt/kseg/application.py"
"""The application in that image, as a driver in a pod finds it."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the job goes, as spark-submit's options say it.

    archive: a packed environment for the executors. ships_environment: this one is packed as the archive PACKED.
    """

    master: str
    deploy_mode: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    packages: tuple[str, ...] = ()
    archive: str | None = None
    ships_environment: bool = False

    @property
    def drives_here(self) -> bool:
        """Whether the driver runs on this machine."""
        return self.deploy_mode != "cluster"

    @property
    def runs_image(self) -> bool:
        """Whether Python comes with an image."""
        return self.master.startswith("k8s://") and self.sent_archive is None

    @property
    def sent_archive(self) -> str | None:
        """The archive that spark-submit sends."""
        return PACKED if self.ships_environment else self.archive

    @property
    def links_environment(self) -> bool:
        """Whether a driver here finds its environment by the relative path that executors find it by.

        Spark plans with Python on the driver, by that path: so it must lead to this environment.
        """
        return self.sent_archive is not None and self.drives_here


def submit_command(cluster: Cluster, arguments: Sequence[str]) -> list[str]:
    """The command line of spark-submit; `arguments` are those of `kseg spark-export`."""
    command = [str(_spark_home() / "bin" / "spark-submit"), "--master", cluster.master]
    if cluster.deploy_mode is not None:
        command += ["--deploy-mode", cluster.deploy_mode]
    if cluster.packages:
        command += ["--packages", ",".join(cluster.packages)]
    if cluster.sent_archive is not None:
        command += ["--archives", f"{cluster.sent_archive}#{ENVIRONMENT}"]
    for name, value in (*SAFE_SETTINGS, *_image_settings(cluster), *cluster.settings):
        command += ["--conf", f"{name}={value}"]
    return [*command, _application(cluster), *arguments]


def _image_settings(cluster: Cluster) -> tuple[tuple[str, str], ...]:
    if not cluster.runs_image:
        return ()
    python = ("spark.pyspark.python", IMAGE_PYTHON)
    return (python, ("spark.pyspark.driver.python", sys.executable)) if cluster.drives_here else (python,)


def submit_environment(cluster: Cluster) -> dict[str, str]:
    """Variables for spark-submit: which Python driver and executors run."""
    if cluster.runs_image:
        return {SAFE_PATH: "1"}
    python = f"./{ENVIRONMENT}/bin/python" if cluster.sent_archive is not None else sys.executable
    driver = sys.executable if cluster.drives_here else python
    pythons = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", python), "PYSPARK_DRIVER_PYTHON": driver}
    return {**pythons, SAFE_PATH: "1"}


def _spark_home() -> Path:
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def _application(cluster: Cluster) -> str:
    if cluster.runs_image and not cluster.drives_here:
        return IMAGE_APPLICATION
    found = find_spec("kseg.spark.application")
    assert found is not None
    assert found.origin is not None
    return found.origin


def quoted(cluster: Cluster, arguments: Sequence[str]) -> str:
    """What is run, as a shell takes it: the directory and the archive that it needs, variables, the command line."""
    steps = []
    if cluster.sent_archive is not None:
        steps.append('cd "$(mktemp -d)"')
    if cluster.ships_environment:
        steps.append(shlex.join([sys.executable, "-m", "kseg.spark.environment", PACKED]))
    if cluster.links_environment:
        steps.append(shlex.join(["ln", "-s", sys.prefix, ENVIRONMENT]))
    variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in submit_environment(cluster).items())
    return " && ".join([*steps, f"{variables} {shlex.join(submit_command(cluster, arguments))}"])
