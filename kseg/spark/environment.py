"""The current virtual environment, packed for executors: `python -m kseg.spark.environment FILE` writes it."""

import sys
import sysconfig
import tarfile
from importlib.util import find_spec
from pathlib import Path

from kseg.errors import UsageError

ENVIRONMENT = "environment"
"""The folder, in a task's working directory, of the unpacked environment."""
PACKED = f"{ENVIRONMENT}.tar.gz"
OWN_PACKAGES = ("kseg", "pyspark_kseg")
NOT_PACKED = ("pyspark", "pip")
"""Packages that executors don't need: Spark brings its own Python side."""


def pack_environment(target: Path) -> Path:
    """Pack this Python's environment, kseg included, as a .tar.gz that executors can run from.

    It contains a link to its interpreter, which must have the same path on all machines. Raises UsageError outside of a
    virtual environment.
    """
    if sys.prefix == sys.base_prefix:
        raise UsageError(
            "--ship-env packs a virtual environment, but this Python isn't in one; run kseg from a virtual environment"
        )
    root = Path(sys.prefix)
    libraries = Path(sysconfig.get_path("purelib")).relative_to(root)
    with tarfile.open(target, "w:gz", compresslevel=1) as archive:
        for name in ("bin", "lib", "lib64", "pyvenv.cfg"):
            if (root / name).exists():
                archive.add(root / name, name, filter=_exclude_unneeded)
        for package in OWN_PACKAGES:
            found = find_spec(package)
            if found is not None and found.origin is not None and root not in Path(found.origin).parents:
                archive.add(Path(found.origin).parent, str(libraries / package), filter=_exclude_unneeded)
    return target


def _exclude_unneeded(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    *folders, name = Path(member.name).parts
    is_package = bool(folders) and folders[-1] == "site-packages"
    return None if name == "__pycache__" or (is_package and name in NOT_PACKED) else member


if __name__ == "__main__":
    pack_environment(Path(sys.argv[1]))
