"""Installs the files of a release into empty Debian systems, as users do, and runs kseg there without a network.

python tools/try_release.py build/release

The tarball and the Debian package go into systems without Python. The wheel and the source distribution go into systems
with Debian's Python, the latter without a compiler. The tasks of tools/release/tasks.py run in each. debootstrap makes
each system once, in build/roots/. Needs root. Ends with 1 where something fails.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests import golden
from tools.release.tasks import TASKS
from tools.try_installs import ROOT, VERSION, Failed, run

ROOTS = ROOT / "build" / "roots"
SUITES = ("stable", "oldstable")
COMMANDS = (
    *("dump", "ls", "verify", "doctor", "diff", "salvage", "reindex", "groups", "txns", "metadata", "serve"),
    *("restore", "carve", "export"),
)
"""Commands that must start in each installation."""
EXTRAS = "arrow,sql"
"""The extras that pip installs for the tasks."""
PARTITION = "logs/4.3.1/append-zstd-0"
INSIDE = 'mount -t proc proc "$0/proc" && ip link set lo up && exec chroot "$0" /usr/bin/env -i --chdir=/golden "$@"'
"""A script: its arguments are the root, the environment and the command."""
ENVIRONMENT = ("HOME=/root", "LANG=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")


class System:
    """A copy of a Debian system, with golden files in /golden and the files of the release in /release."""

    def __init__(self, suite: str, release: Path, *, with_python: bool) -> None:
        made = ROOTS / (f"{suite}-python" if with_python else suite)
        if not (made / "bin").exists():
            run(["debootstrap", "--variant=minbase", *["--include=python3-venv"] * with_python, suite, str(made)])
        self.root = ROOTS / "tried"
        shutil.rmtree(self.root, ignore_errors=True)
        run(["cp", "--archive", str(made), str(self.root)])
        shutil.copytree(golden.ROOT, self.root / "golden")
        shutil.copytree(release, self.root / "release")

    def run(self, *command: str) -> "subprocess.CompletedProcess[bytes]":
        """Run a command in /golden of the system, without a network."""
        alone = ["unshare", "--mount", "--net", "sh", "-c", INSIDE, str(self.root), *ENVIRONMENT]
        return subprocess.run([*alone, *command], capture_output=True, check=False)

    def must(self, *command: str) -> bytes:
        """Return the output of a command. Raises Failed if it fails."""
        ran = self.run(*command)
        if ran.returncode:
            raise Failed(f"{' '.join(command)}: status {ran.returncode}\n{ran.stdout.decode()}{ran.stderr.decode()}")
        return ran.stdout

    def check_kseg(self, kernel: str) -> None:
        """Fail unless kseg prints, verifies, exports and explains there as it does here."""
        version = self.must("kseg", "--version").decode()
        if not version.startswith(f"kseg {VERSION} (kernel: {kernel})"):
            raise Failed(f"{version} should be {VERSION} with the kernel {kernel}")
        (case, *_) = [
            each
            for each in golden.cases("healthy", printer="4.3.1")
            if "--print-data-log" in each.arguments and any(PARTITION in word for word in each.arguments)
        ]
        if self.must("kseg", "dump", "--like", case.like, *case.arguments) != case.stdout():
            raise Failed(f"`kseg dump --like {case.like} {' '.join(case.arguments)}` isn't the recorded output")
        self.must("kseg", "verify", PARTITION)
        records = self.must("kseg", "dump", "-o", "json", "--only", "records", PARTITION).splitlines()
        self.must("kseg", "export", PARTITION, "/tmp/exported")
        files = [*(self.root / "tmp" / "exported").rglob("*.parquet")]
        rows = sum(pq.read_metadata(path).num_rows for path in files)
        if rows != len(records):
            raise Failed(f"{rows} rows were exported of {len(records)} records")
        for name in COMMANDS:
            if f"Usage: kseg {name}" not in self.must("kseg", name, "--help").decode():
                raise Failed(f"`kseg {name} --help` prints no usage")
        self.check_tasks()

    def check_tasks(self) -> None:
        """Fail at tasks that end with another status, or don't print their words."""
        failed = []
        for task in TASKS:
            ran = self.run("sh", "-c", task.line)
            printed = (ran.stdout + ran.stderr).decode()
            if ran.returncode != task.status or task.words not in printed:
                failed.append(f"{task.about}: `{task.line}`: status {ran.returncode}\n{printed}")
        if failed:
            raise Failed("\n".join(failed))


def try_tarball(suite: str, release: Path) -> None:
    """Unpack the tarball, and run it through a link."""
    system = System(suite, release, with_python=False)
    (name,) = [path.name for path in release.glob("kseg-*-linux-*.tar.gz")]
    system.must("tar", "-C", "/opt", "-xf", f"/release/{name}")
    system.must("ln", "-s", f"/opt/{name.removesuffix('.tar.gz')}/bin/kseg", "/usr/local/bin/kseg")
    system.check_kseg("fast")


def try_debian_package(suite: str, release: Path) -> None:
    """Install the package, find its man pages and completion, and remove it."""
    system = System(suite, release, with_python=False)
    (name,) = [path.name for path in release.glob("*.deb")]
    system.must("dpkg", "--install", f"/release/{name}")
    system.check_kseg("fast")
    for path in ("man/man1/kseg-dump.1.gz", "bash-completion/completions/kseg", "zsh/vendor-completions/_kseg"):
        system.must("test", "-e", f"/usr/share/{path}")
    system.must("dpkg", "--purge", "kseg")
    if left := [path for path in (system.root / "usr").rglob("*kseg*") if path.is_file()]:
        raise Failed(f"the removed package leaves {left}")


def try_wheel(suite: str, release: Path) -> None:
    """Install the wheel and its libraries by Debian's Python."""
    _try_by_pip(suite, release, "*.whl", "fast")


def try_source_distribution(suite: str, release: Path) -> None:
    """Install the source distribution without a compiler."""
    _try_by_pip(suite, release, f"kseg-{VERSION}.tar.gz", "twin")


def _try_by_pip(suite: str, release: Path, pattern: str, kernel: str) -> None:
    system = System(suite, release, with_python=True)
    version = system.must("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").decode().strip()
    (wheel,) = release.glob("*.whl")
    download = [sys.executable, "-m", "pip", "download", "-q", "-d", str(system.root / "packages"), "--python-version"]
    platforms = [f"--platform=manylinux{tag}_x86_64" for tag in ("2014", "_2_17", "_2_27", "_2_28", "_2_31", "_2_34")]
    libraries = [f"{wheel}[{EXTRAS}]", "setuptools>=77", "Cython>=3.3"]
    run([*download, version, "--only-binary", ":all:", *platforms, *libraries])
    (given,) = [path.name for path in release.glob(pattern)]
    (system.root / "packages" / wheel.name).unlink()
    system.must("python3", "-m", "venv", "/opt/kseg")
    pip = ["/opt/kseg/bin/python", "-m", "pip", "install", "--no-index", "--find-links", "/packages"]
    system.must(*pip, f"/release/{given}[{EXTRAS}]")
    system.must("ln", "-s", "/opt/kseg/bin/kseg", "/usr/local/bin/kseg")
    system.check_kseg(kernel)


TRIALS: dict[str, Callable[[str, Path], None]] = {
    "tarball": try_tarball,
    "Debian package": try_debian_package,
    "wheel": try_wheel,
    "source distribution": try_source_distribution,
}


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("release", type=Path, help="directory of the files, from tools/make_release.py")
    release = parser.parse_args().release.resolve()
    failed = 0
    for suite in SUITES:
        for name, install in TRIALS.items():
            try:
                install(suite, release)
                print(f"Debian {suite}, {name}: works", flush=True)
            except Failed as problem:
                failed = 1
                print(f"Debian {suite}, {name}: {problem}", file=sys.stderr, flush=True)
    shutil.rmtree(ROOTS / "tried", ignore_errors=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
