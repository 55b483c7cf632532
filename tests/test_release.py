"""The tarball of a release has the same bytes wherever it is made, runs from any place, and pins each library."""

import os
import re
import subprocess
import tarfile
import tomllib
from pathlib import Path

from tests import golden
from tools.release.bundle import EXTRAS, LAUNCHER, PINS
from tools.release.packages import make_tarball, read_maintainer

ROOT = golden.ROOT.parent
TIME = 1_700_000_000


def make_folder(place: Path, mode: int, time: int) -> Path:
    """Return a folder with a program and a module, with the given mode and times."""
    folder = place / "kseg-1-linux"
    (folder / "bin").mkdir(parents=True)
    for name, text, execute in (("bin/kseg", "#!/bin/sh\n", 0o100), ("module.py", "x = 1\n", 0)):
        path = folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(mode | execute)
        os.utime(path, (time, time))
    return folder


def test_tarball_has_the_same_bytes_whatever_the_times_and_the_umask(tmp_path: Path) -> None:
    for name, mode, time in (("a", 0o644, 1), ("b", 0o600, 2_000_000_000)):
        make_tarball(make_folder(tmp_path / name, mode, time), tmp_path / f"{name}.tar.gz", TIME)
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()


def test_tarball_unpacks_to_one_folder_that_everybody_can_read_and_run(tmp_path: Path) -> None:
    make_tarball(make_folder(tmp_path, 0o600, 1), tmp_path / "a.tar.gz", TIME)
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        modes = {member.name: member.mode for member in archive}
        assert {(member.uid, member.uname, member.mtime) for member in archive} == {(0, "", TIME)}
    names = ("kseg-1-linux", "kseg-1-linux/bin", "kseg-1-linux/bin/kseg")
    assert modes == {**dict.fromkeys(names, 0o755), "kseg-1-linux/module.py": 0o644}


def test_launcher_finds_its_python_through_a_link_and_passes_arguments_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / "a folder" / "bin"
    folder.mkdir(parents=True)
    (folder / "kseg").write_text(LAUNCHER.format(python="python3"), encoding="utf-8")
    (folder / "python3").write_text('#!/bin/sh\nprintf "%s|" "home=$PYTHONHOME" "$@"\n', encoding="utf-8")
    for path in folder.iterdir():
        path.chmod(0o755)
    (tmp_path / "kseg").symlink_to(folder / "kseg")
    command = [str(tmp_path / "kseg"), "dump", "a b", "*"]
    ran = subprocess.run(command, env={**os.environ, "PYTHONHOME": "/old"}, capture_output=True, text=True, check=True)
    assert ran.stdout == "home=|-P|-s|-m|kseg|dump|a b|*|"


def test_maintainer_of_the_debian_package_is_the_first_author_with_the_address_if_there_is_one() -> None:
    (author, *_) = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["authors"]
    assert read_maintainer().split(" <") == [author["name"], *(f"{email}>" for email in [author.get("email")] if email)]


def test_each_library_that_the_tarball_asks_for_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(each for extra in EXTRAS.split() for each in project["optional-dependencies"][extra]),
    ]
    names = {re.split(r"[^\w.-]", line)[0].lower().replace("-", "_") for line in wanted}
    pins = {line.partition("==")[0] for line in PINS.read_text(encoding="utf-8").splitlines()}
    assert sorted(names - pins) == []
