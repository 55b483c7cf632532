"""The self-contained folder: kseg with its libraries and a Python, for Linux hosts without one.

The Python is a copy of the one that runs this program. Its interpreter finds the libraries next to it,
wherever the folder is.
"""

import re
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.make_dist import ROOT, run

EXTRAS = "arrow avro azure browse fast-gzip gcs http msgpack patterns pcap sql tiered"
"""The extras of the folder. The others need a Java, a compiler's tools, or a library as large as the folder."""
PINS = Path(__file__).with_name("pins.txt")
"""The version of each library, so that the same commit gives the same folder."""
UNUSED = (
    *("config-*", "ensurepip", "idlelib", "lib2to3", "site-packages", "test", "tkinter", "turtledemo", "turtle.py"),
    *("_tkinter.*", "_test*", "_xx*", "xxlimited*", "_ctypes_test.*", "nis.*", "ossaudiodev.*", "_gdbm.*", "_dbm.*"),
    "_curses*",
    "readline.*",  # its library's license is the GPL
)
"""Parts of Python that kseg never imports."""
UNUSED_OF_LIBRARIES = (
    *("bin", "*.dist-info/RECORD", "*.dist-info/INSTALLER", "*.dist-info/REQUESTED", "*.dist-info/direct_url.json"),
    *("pyarrow/tests", "pyarrow/include", "pyarrow/src", "pyarrow/_flight.*", "pyarrow/libarrow_flight.*"),
    *("pyarrow/libarrow_python_flight.*", "pyarrow/_s3fs.*", "pyarrow/libarrow_s3.*", "pyarrow/_pyarrow_cpp_tests.*"),
    *("pyarrow/libarrow_python.so", "pyarrow/libarrow_python.so.*.*.*"),  # copies of one file under three names
    *("Crypto/SelfTest", "duckdb/experimental"),
)
"""Files of the libraries that kseg never opens, or that name the directory of the build."""
OF_THE_HOST = re.compile(r"(ld-linux.*|linux-vdso|lib(c|m|dl|rt|util|pthread|resolv|nsl|crypt))\.so.*")
"""Libraries of every Linux with glibc."""
LAUNCHER = """#!/bin/sh
# Runs kseg with the Python next to this file, from any directory and through links.
unset PYTHONHOME
exec "$(dirname "$(readlink -f "$0")")/{python}" -P -s -m kseg "$@"
"""


def make_bundle(wheel: Path, folder: Path) -> None:
    """Make the folder from the wheel: bin/, lib/ and share/."""
    (folder / "bin").mkdir(parents=True)
    libraries = _copy_python(folder)
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--only-binary", ":all:"]
    wanted = f"{wheel}[{','.join(EXTRAS.split())}]"
    run([*install, "--disable-pip-version-check", "-c", str(PINS), "--target", str(libraries), wanted], folder)
    shutil.move(libraries / "share", folder / "share")
    _remove(libraries, UNUSED_OF_LIBRARIES)
    _check_pins(libraries)
    for name in ("LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, folder)
    shared = _copy_shared_libraries(folder)
    run(["strip", "--strip-unneeded", *map(str, binaries(folder))], folder)
    # DT_RPATH of the interpreter, unlike DT_RUNPATH, also holds for its modules, which then have no path of their own.
    run(["patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/../lib", str(python_of(folder))], folder)
    run(["patchelf", "--remove-rpath", *map(str, shared), *map(str, _modules_of_python(folder))], folder)
    _compile(folder)


def python_of(folder: Path) -> Path:
    """Return the interpreter of the folder."""
    return folder / "bin" / f"python{sysconfig.get_python_version()}"


def site_packages_of(folder: Path) -> Path:
    """Return the directory of kseg and the libraries."""
    return folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"


def _copy_python(folder: Path) -> Path:
    """Copy the interpreter and its standard library; return the empty directory of the other libraries."""
    python = python_of(folder)
    shutil.copy(Path(sys.base_prefix) / "bin" / python.name, python)
    libraries = site_packages_of(folder)
    unused = shutil.ignore_patterns(*UNUSED, "__pycache__")
    shutil.copytree(sysconfig.get_path("stdlib"), libraries.parent, ignore=unused)
    libraries.mkdir()
    launcher = folder / "bin" / "kseg"
    launcher.write_text(LAUNCHER.format(python=python.name), encoding="utf-8")
    launcher.chmod(0o755)
    return libraries


def _remove(place: Path, patterns: Iterable[str]) -> None:
    for path in [found for pattern in patterns for found in place.glob(pattern)]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _check_pins(libraries: Path) -> None:
    pinned = {line for line in PINS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")}
    there = {"{}=={}".format(*path.stem.split("-")).lower() for path in libraries.glob("*.dist-info")}
    open_pins = {name for name in there if not name.startswith("kseg=")} ^ pinned
    if open_pins:
        sys.exit(
            f"{PINS}: the pins are not the installed libraries; correct these lines: {' '.join(sorted(open_pins))}"
        )


def _copy_shared_libraries(folder: Path) -> list[Path]:
    """Copy the libraries of this system that Python needs to lib/."""
    needed = needed_by([Path(sys.base_prefix) / "bin" / python_of(folder).name, *_modules_of_python(folder)])
    return [Path(shutil.copy(path, folder / "lib" / name)) for name, path in sorted(needed.items())]


def _modules_of_python(folder: Path) -> list[Path]:
    return sorted((site_packages_of(folder).parent / "lib-dynload").glob("*.so"))


def needed_by(programs: Iterable[Path]) -> dict[str, str]:
    """Return the shared libraries of programs by their names, without those of every host."""
    listed = run(["ldd", *map(str, programs)], Path("/"))
    found = dict(re.findall(r"^\s+(\S+) => (\S+) \(", listed, re.MULTILINE))
    return {name: path for name, path in found.items() if not OF_THE_HOST.fullmatch(name)}


def binaries(folder: Path) -> list[Path]:
    """Return the programs and libraries of the folder, sorted."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and _is_elf(path))


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def oldest_c_library(folder: Path) -> str:
    """Return the lowest version of glibc that all programs and libraries run with, such as 2.36."""
    return max(_c_library_versions(folder), key=lambda version: [int(part) for part in version.split(".")])


def _c_library_versions(folder: Path) -> Iterator[str]:
    shown = run(["objdump", "-p", *map(str, binaries(folder))], folder)
    return iter(re.findall(r"\bGLIBC_([\d.]+)$", shown, re.MULTILINE))


def _compile(folder: Path) -> None:
    """Compile all modules; the compiled ones have hashes instead of times, which Python doesn't compare."""
    place = folder / "lib"
    for old in [*place.rglob("__pycache__")]:
        shutil.rmtree(old)
    command = [python_of(folder), "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s", place, place]
    run([*map(str, command)], folder)
