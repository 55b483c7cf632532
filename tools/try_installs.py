"""Builds kseg twice and compares the bytes; then installs it into empty environments, as users do, and tests it there.

python tools/try_installs.py             with each Python that pyproject.toml names and this machine has
python tools/try_installs.py --newest    only with the newest of them
python tools/try_installs.py --extras    also asks pip whether it finds the libraries of each extra

In each environment: an older wheel is upgraded, tests run on the installed package, far from the checkout, and so does
the pip line by which kseg asks for a missing library. Uninstalling leaves nothing. Then the source distribution is
installed without a compiler, and with one. Ends with 1 where something fails.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from kseg.version import VERSION
from tools.make_dist import ROOT, copy_sources, make_source_distribution, make_wheel, time_of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TESTS = (
    "tests/formats",
    "tests/index/test_indexes.py",
    "tests/index/test_rebuild.py",
    "tests/dump/test_files.py",
    "tests/dump/test_indexes.py",
    "tests/commands/test_lookup.py",
    "tests/commands/test_salvage.py",
    "tests/commands/test_slice.py",
    "tests/commands/test_verify.py",
)
"""Tests that need the golden files and TEST_LIBRARIES, but neither a checkout nor an extra."""
TEST_LIBRARIES = ("pytest>=9", "pytest-timeout>=2.3", "hypothesis>=6.100", "aiokafka>=0.12")
SAMPLE = ROOT / "golden" / "docs" / "test-1-0" / "00000000000000203000.log"
SAMPLE_LINES = 6332
DUMP = ("dump", "--like", "4.3", "--print-data-log", str(SAMPLE))
QUICKLY = "-O0"
"""Compiler option for speed: only successful compilation is tested; it takes a quarter of the time."""
NO_COMPILER = {"CC": "/bin/false"}
EXTRA, ITS_MODULE = "msgpack", "msgpack"
"""A small library."""
OLDER = "0.0.1"


class Failed(Exception):
    """An error: a tested installation has a problem."""


class Environment:
    """An environment of a Python, in a directory, with only pip in it."""

    def __init__(self, python: str, directory: Path) -> None:
        self.directory = directory
        self.python = str(directory / "bin" / "python")
        run([python, "-m", "venv", str(directory)])

    def pip(self, *arguments: str, **variables: str) -> None:
        """Run its pip."""
        run([self.python, "-m", "pip", "--disable-pip-version-check", *arguments], **variables)

    def kseg(self, *arguments: str) -> str:
        """Return the output of the kseg that is installed there."""
        return run([str(self.directory / "bin" / "kseg"), *arguments])

    def check(self, kernel: str, expected: str) -> None:
        """Fail unless kseg has that kernel and dumps the expected lines."""
        version = self.kseg("--version").splitlines()[0]
        if version != f"kseg {VERSION} (kernel: {kernel})" or self.kseg(*DUMP) != expected:
            raise Failed(f"{version} should be {VERSION}, have the kernel {kernel} and dump {len(expected)} bytes")

    def check_shared_files(self) -> None:
        """Fail unless man pages and completion, and no others, are where man and shells look for them."""
        wanted, found = (
            {path.relative_to(place) for path in (place / "share").rglob("*kseg*") if path.is_file()}
            for place in (ROOT, self.directory)
        )
        if wanted != found:
            raise Failed(f"installed in share/, or missing there: {sorted(map(str, wanted ^ found))}")
        if shutil.which("man"):
            manual = run(["man", "-M", str(self.directory / "share" / "man"), "kseg-dump"], MANWIDTH="80")
            if "kseg dump [OPTIONS] [PATHS]..." not in manual or "--from-offset OFFSET" not in manual:
                raise Failed(f"man doesn't show the page of dump:\n{manual}")

    def check_package(self) -> None:
        """Fail unless the package that runs is the installed one, with its licenses."""
        place = Path(run([self.python, "-c", "import kseg.reading.log_file as found; print(found.__file__)"]).strip())
        if not place.is_relative_to(self.directory):
            raise Failed(f"{place} runs, which isn't what was installed")
        (metadata,) = self.directory.rglob("kseg-*.dist-info")
        for name in ("LICENSE", "NOTICE"):
            if (metadata / "licenses" / name).read_bytes() != (ROOT / name).read_bytes():
                raise Failed(f"the installed {name} isn't that of the sources")

    def test(self, place: Path) -> str:
        """Run TESTS on the installed package, from a directory without kseg; return pytest's last line."""
        printed = run([self.python, "-m", "pytest", "-p", "no:cacheprovider", *TESTS], place, KSEG_KERNEL=self.kernel())
        return printed.strip().splitlines()[-1]

    def kernel(self) -> str:
        """Return the name of its kernel."""
        (name,) = re.findall(r"kernel: (\w+)", self.kseg("--version"))
        return str(name)

    def files(self) -> set[str]:
        """Return names of kseg's files and folders in it."""
        paths = (path.relative_to(self.directory) for path in self.directory.rglob("*"))
        return {str(path) for path in paths if re.search(r"(^|/)_?(pyspark_)?kseg", str(path))}


def run(command: Sequence[str], directory: Path = Path("/"), **variables: str) -> str:
    """Return the output of a command that runs outside of the checkout. Raises Failed if it fails."""
    kept = {name: value for name, value in os.environ.items() if name not in ("KSEG_KERNEL", "PYTHONPATH", "CC")}
    environment = {**kept, **variables}
    ran = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise Failed(f"{' '.join(command)}: status {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def found_pythons() -> dict[str, str | None]:
    """Return the program of each Python in pyproject.toml: from the PATH, or of pyenv, or None for a missing one."""
    names = (each.rpartition(" :: ")[2] for each in PROJECT["classifiers"])
    versions = [name for name in names if re.fullmatch(r"3\.\d+", name)]
    return {version: next(filter(_is_usable, _candidates(version)), None) for version in versions}


def _candidates(version: str) -> list[str]:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return [f"python{version}", *map(str, pyenv.glob(f"versions/{version}.*/bin/python{version}"))]


def _is_usable(python: str) -> bool:
    if shutil.which(python) is None:
        return False
    return subprocess.run([python, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode == 0


def make_twice(place: Path) -> Path:
    """Make both files in different circumstances, and compare them; return their directory."""
    sums = []
    for name, umask in (("first", 0o022), ("a-longer-name", 0o077)):
        before = os.umask(umask)
        copy_sources(ROOT, place / f"{name}-checkout")
        (place / name).mkdir()
        made = make_source_distribution(place / f"{name}-checkout", place / name), make_wheel(place / name)
        sums.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made})
        os.umask(before)
    if sums[0] != sums[1]:
        raise Failed(f"two builds differ: {sums}")
    for name, digest in sums[0].items():
        print(f"{name}: the same bytes twice, SHA-256 {digest}", flush=True)
    return place / "first"


def make_older(place: Path) -> Path:
    """Return a wheel of a lower version, with a module that the newer one no longer has."""
    copy_sources(ROOT, place / "older")
    module = place / "older" / "kseg" / "version.py"
    module.write_text(module.read_text(encoding="utf-8").replace(f'"{VERSION}"', f'"{OLDER}"'), encoding="utf-8")
    (place / "older" / "kseg" / "gone.py").touch()
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(place)]
    run([*pip, str(place / "older")], place, **NO_COMPILER)
    (wheel,) = place.glob("*.whl")
    return wheel


def make_test_place(place: Path) -> Path:
    """Return a directory with the tests and their data, without kseg's sources."""
    directory = place / "tested-from"
    shutil.copytree(ROOT / "tests", directory / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", directory)
    (directory / "golden").symlink_to(ROOT / "golden")
    return directory


def try_python(python: str, place: Path, dist: Path, older: Path, expected: str) -> list[str]:
    """Install, upgrade, test and uninstall with one Python; return the steps."""
    (wheel,), (source,) = map(str, dist.glob("*.whl")), map(str, dist.glob("*.tar.gz"))
    made = Environment(python, place)
    said = []
    made.pip("install", str(older))
    made.pip("install", "--upgrade", wheel)
    made.check("fast", expected)
    made.check_shared_files()
    made.check_package()
    if any(name.endswith("kseg/gone.py") for name in made.files()):
        raise Failed("an upgrade leaves a module of the older version")
    made.pip("install", f"kseg[{EXTRA}]")
    run([made.python, "-c", f"import {ITS_MODULE}"])
    made.pip("install", *TEST_LIBRARIES)
    tests = make_test_place(place)
    said.append(f"wheel, upgraded from {OLDER}: {made.test(tests)}")
    made.pip("uninstall", "--yes", "kseg")
    if made.files() - {str(path.relative_to(place)) for path in tests.rglob("*")}:
        raise Failed(f"uninstalled, but there is still {sorted(made.files())}")
    said.append("uninstalled: nothing is left")
    made.pip("install", source, **NO_COMPILER)
    made.check("twin", expected)
    if kernels := [name for name in made.files() if re.search(r"/fast\..*\.so$", name)]:
        raise Failed(f"nothing was compiled, but {kernels} is installed")
    said.append(f"source distribution without a compiler: {made.test(tests)}")
    made.pip("install", "--force-reinstall", "--no-deps", source)
    made.check("fast", expected)
    said.append("source distribution: compiled, and dumps what it should")
    return said


def try_extras(python: str, place: Path, wheel: Path) -> None:
    """Let pip look for the libraries of each extra."""
    made = Environment(python, place)
    for extra in PROJECT["optional-dependencies"]:
        made.pip("install", "--dry-run", f"{wheel}[{extra}]")
        print(f"extra {extra}: pip finds its libraries", flush=True)


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--extras", action="store_true", help="ask pip for the libraries of each extra; takes minutes")
    parser.add_argument("--newest", action="store_true", help="try only the newest installed Python")
    options = parser.parse_args()
    pythons = found_pythons()
    if options.newest:
        pythons = dict([*((version, python) for version, python in pythons.items() if python)][-1:])
    try:
        with tempfile.TemporaryDirectory() as place:
            try_all(Path(place), pythons, with_extras=options.extras)
    except Failed as failed:
        print(failed, file=sys.stderr)
        return 1
    return 0


def try_all(place: Path, pythons: dict[str, str | None], *, with_extras: bool) -> None:
    """Test each Python, some at once; None is the program of a missing one. Raises Failed."""
    os.environ |= {"SOURCE_DATE_EPOCH": str(time_of(ROOT)), "CFLAGS": QUICKLY}  # for all builds here
    expected = run([str(Path(sys.executable).with_name("kseg")), *DUMP])
    if expected.count("\n") != SAMPLE_LINES:
        raise Failed(f"the sample has {SAMPLE_LINES} lines, kseg dumps {expected.count(chr(10))}")
    dist, older = make_twice(place), make_older(place)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tried = {
            version: pool.submit(try_python, python, place / version, dist, older, expected)
            for version, python in pythons.items()
            if python is not None
        }
        for version, python in pythons.items():
            for line in [f"not found: python{version}"] if python is None else tried[version].result():
                print(f"Python {version}: {line}" if python else line, flush=True)
    if not tried:
        raise Failed("none of these Pythons is here")
    if with_extras:
        (wheel,) = dist.glob("*.whl")
        try_extras(sys.executable, place / "extras", wheel)


if __name__ == "__main__":
    sys.exit(main())
