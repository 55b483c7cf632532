"""Makes the source distribution, and a wheel from it: the same bytes from the same sources, wherever and whenever.

python tools/make_dist.py dist

Times in them are the last commit's, or SOURCE_DATE_EPOCH. Paths, the user and the umask leave no trace. Under
Linux auditwheel names the wheel after the oldest C library that it runs with. Another compiler, Cython or setuptools
may give other bytes.
"""

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("kseg", "pyspark_kseg", "share")
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "NOTICE")
NOT_SOURCES = shutil.ignore_patterns("*.so", "fast.c", "fast.html", "declarations.pxi", "__pycache__")
EARLIEST = 315532800
"""1980, where the times of zip files begin."""
NO_DEBUGGING = "-g0"
"""Option without debugging lines, which would name the compiler's directory."""


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("directory", type=Path, help="directory for both; its files are removed first")
    directory = parser.parse_args().directory.resolve()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for path in (make_source_distribution(ROOT, directory), make_wheel(directory)):
        print(path.name)
    return 0


def make_source_distribution(checkout: Path, target: Path) -> Path:
    """Make the archive of a checkout in a directory; the checkout doesn't change."""
    with TemporaryDirectory() as place:
        copy = Path(place) / "kseg"
        copy_sources(checkout, copy)
        code = f"from setuptools import build_meta; build_meta.build_sdist({place!r})"
        run([sys.executable, "-W", "ignore", "-c", code], copy)
        (made,) = Path(place).glob("*.tar.gz")
        _write_without_traces(made, target / made.name, time_of(checkout))
    return target / made.name


def copy_sources(checkout: Path, copy: Path) -> None:
    """Copy the parts of a source distribution."""
    copy.mkdir()
    for name in FOLDERS:
        shutil.copytree(checkout / name, copy / name, ignore=NOT_SOURCES)
    for name in FILES:
        shutil.copy(checkout / name, copy)


def time_of(checkout: Path) -> int:
    """Return seconds since 1970: SOURCE_DATE_EPOCH, or the last commit's.

    Without git, it is the earliest time that a wheel can have.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    asked = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=checkout, capture_output=True, check=False)
    return max(int(asked.stdout or EARLIEST), EARLIEST)


def _write_without_traces(source: Path, target: Path, time: int) -> None:
    """Write an archive again, sorted, with one time, without users, and with modes independent of the umask."""
    with (
        tarfile.open(source) as old,
        target.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            clean = tarfile.TarInfo(member.name)
            clean.type, clean.size, clean.mtime = member.type, member.size, time
            clean.mode = 0o755 if member.isdir() else 0o644
            new.addfile(clean, old.extractfile(member) if member.isfile() else None)


def make_wheel(directory: Path) -> Path:
    """Make the wheel of the source distribution in a directory, next to it."""
    (source,) = directory.glob("*.tar.gz")
    time = _time_in(source)
    variables = {"SOURCE_DATE_EPOCH": str(time), "CFLAGS": f"{os.environ.get('CFLAGS', '')} {NO_DEBUGGING}"}
    with TemporaryDirectory() as place:
        pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
        run([*pip, "-w", place, str(source)], directory, variables)
        (wheel,) = Path(place).glob("*.whl")
        if sys.platform == "linux":
            repair = [sys.executable, "-m", "auditwheel", "repair", "-w", str(directory), str(wheel)]
            run(repair, directory, {**variables, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})
        else:
            shutil.copy(wheel, directory)
    (made,) = directory.glob("*.whl")
    return made


def _time_in(archive: Path) -> int:
    with tarfile.open(archive) as opened:
        return int(opened.getmembers()[0].mtime)


def run(command: list[str], directory: Path, variables: Mapping[str, str] | None = None) -> str:
    """Return the output of a command whose files get the usual modes; if it fails, end the program with its output.

    Python writes no compiled modules on the way: those of a release must not depend on which ones were there before.
    """
    ran = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
        umask=0o022,
    )
    if ran.returncode:
        sys.exit(f"{' '.join(command)}: status {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


if __name__ == "__main__":
    sys.exit(main())
