"""The machine of the figures, and the versions of programs."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

LIBRARIES = ("aiokafka", "kafka-python", "pyarrow", "isal", "lz4", "python-snappy", "zstandard", "crc32c")


def describe() -> list[str]:
    """Return machine and versions, one line each."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    cores = len(os.sched_getaffinity(0))
    libraries = ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)
    return [
        f"Machine: {_processor()}, {cores} cores, {memory:.0f} GiB, {platform.system()} {platform.release()}",
        f"{_java_version()}, Python {platform.python_version()}, {libraries}",
    ]


def load_average() -> str:
    """Return the machine's load before the first measurement. Figures are reliable if it is near 0."""
    return "Load before the first run (1, 5, 15 minutes): " + ", ".join(f"{load:.2f}" for load in os.getloadavg())


def kseg_version(kseg: str) -> str:
    """Return the first line of `kseg --version`, which has the kernel."""
    process = subprocess.run([kseg, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return process.stdout.partition("\n")[0] or "kseg --version failed"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "isn't installed"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _java_version() -> str:
    stdout = subprocess.run(["java", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return stdout.splitlines()[0]
