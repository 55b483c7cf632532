"""The virtual environment that runs kseg, packed for executors: `python -m kseg.spark.environment FILE` writes it."""

import sys
import sysconfig
import tarfile
from importlib.util import find_spec
from pathlib import Path

from kseg.errors import UsageError

ENVIRONMENT = "environment"
"""The folder of a task's working directory where the packed environment is unpacked."""
PACKED = f"{ENVIRONMENT}.tar.gz"
OWN_PACKAGES = ("kseg", "pyspark_kseg")
NOT_PACKED = ("pyspark", "pip")
"""Packages that executors don't need: Spark brings its own Python side."""


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


if __name__ == "__main__":
    pack_environment(Path(sys.argv[1]))
