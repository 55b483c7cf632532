"""Installs kseg into empty environments, as users do, and dumps a segment there.

python tools/try_installs.py

From a source distribution, from a wheel, and without a compiler. Ends with 1 where one of them fails.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "golden" / "docs" / "test-1-0" / "00000000000000203000.log"
DUMP = ("dump", "--like", "4.3", "--print-data-log", str(SAMPLE))
QUICKLY = {"CFLAGS": "-O0"}
"""What is tried is that it compiles; the compiler takes a quarter of the time so."""
NO_COMPILER = {"CC": "/bin/false"}


class Environment:
    """An empty environment of Python, in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        run([sys.executable, "-m", "venv", str(directory)], {})

    def pip(self, *arguments: str, **variables: str) -> None:
        """Runs its pip."""
        pip = [str(self.directory / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        run([*pip, *arguments], variables)

    def check(self, name: str, kernel: str, expected: bytes) -> None:
        """Ends the program unless the kseg that is installed there has that kernel and dumps what is expected."""
        kseg = str(self.directory / "bin" / "kseg")
        version = run([kseg, "--version"], {}).decode().strip()
        if f"(kernel: {kernel})" not in version or run([kseg, *DUMP], {}) != expected:
            sys.exit(f"{name}: {version} should have the kernel {kernel} and dump {len(expected)} bytes")
        print(f"{name}: {version} dumps what it should", flush=True)


def run(command: list[str], variables: dict[str, str]) -> bytes:
    """What a command prints, run outside of the repository. Ends the program if it fails."""
    kept = {name: value for name, value in os.environ.items() if name not in ("KSEG_KERNEL", "PYTHONPATH", "CC")}
    ran = subprocess.run(command, cwd="/", env={**kept, **variables}, capture_output=True, check=False)
    if ran.returncode:
        sys.exit(f"{' '.join(command)}: status {ran.returncode}\n{(ran.stdout + ran.stderr).decode()}")
    return ran.stdout


def make_source_distribution(target: Path) -> Path:
    """The archive, in a directory."""
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(target)!r})"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (archive,) = target.glob("*.tar.gz")
    return archive


def main() -> int:
    """Tries all three ways."""
    argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0]).parse_args()
    expected = run([str(Path(sys.executable).with_name("kseg")), *DUMP], {})
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        archive = str(make_source_distribution(place))
        from_source = Environment(place / "from-source")
        from_source.pip("install", archive, **QUICKLY)
        from_source.check("source distribution", "fast", expected)
        from_source.pip("wheel", "--no-deps", "-w", str(place), archive, **QUICKLY)
        from_wheel = Environment(place / "from-wheel")
        from_wheel.pip("install", *map(str, place.glob("*.whl")))
        from_wheel.check("wheel", "fast", expected)
        without_compiler = Environment(place / "without-compiler")
        without_compiler.pip("install", archive, **NO_COMPILER)
        without_compiler.check("without a compiler", "twin", expected)
    return 0


if __name__ == "__main__":
    sys.exit(main())
