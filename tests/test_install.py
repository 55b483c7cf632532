"""kseg installs from its source distribution, with a compiler and without one, and says which kernel it has."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests import golden
from tests.run import KERNELS

ROOT = golden.ROOT.parent
SAMPLE = golden.ROOT / "docs" / "test-1-0" / "00000000000000203000.log"

# What is tested is that it compiles, not how fast it runs; the compiler takes a quarter of the time so.
QUICKLY = {"CFLAGS": "-O0"}
NO_COMPILER = {"CC": "/bin/false"}
MADE_AT_BUILD = "kseg/kernel/fast/positions.pxi"


def run(arguments: list[str], directory: Path, **environment: str) -> str:
    env = {**os.environ, **environment}
    ran = subprocess.run(arguments, cwd=directory, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def source_distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made from a copy, as a clone would have it, so that nothing is left in the working tree."""
    copy = tmp_path_factory.mktemp("sdist") / "kseg"
    unwanted = shutil.ignore_patterns("*.so", "fast.c", "positions.pxi", "__pycache__")
    shutil.copytree(ROOT / "kseg", copy / "kseg", ignore=unwanted)
    shutil.copytree(ROOT / "tests", copy / "tests", ignore=unwanted)
    shutil.copytree(ROOT / "share", copy / "share")
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, copy)
    run([sys.executable, "-c", "from setuptools import build_meta; build_meta.build_sdist('dist')"], copy)
    (archive,) = (copy / "dist").glob("*.tar.gz")
    return archive


def build_wheel(source: Path, target: Path, **environment: str) -> Path:
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation"]
    run([*pip, "-w", str(target), str(source)], target, **environment)
    (wheel,) = target.glob("*.whl")
    return wheel


def install(wheel: Path, target: Path) -> Path:
    """Unpacks a wheel with its command, beside whatever is installed."""
    run(
        [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", str(target), str(wheel)], target
    )
    return target


def installed_kseg(target: Path, *arguments: str, **environment: str) -> str:
    return run([str(target / "bin" / "kseg"), *arguments], target, PYTHONPATH=str(target), **environment)


@pytest.fixture(scope="module")
def installed(source_distribution: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    wheel = build_wheel(source_distribution, tmp_path_factory.mktemp("wheel"), **QUICKLY)
    return install(wheel, tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def installed_without_compiler(source_distribution: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    wheel = build_wheel(source_distribution, tmp_path_factory.mktemp("pure-wheel"), **NO_COMPILER)
    return install(wheel, tmp_path_factory.mktemp("pure-installed"))


def test_source_distribution_holds_the_kernels_sources_and_nothing_built(source_distribution: Path) -> None:
    with tarfile.open(source_distribution) as archive:
        names = {Path(name).relative_to(*Path(name).parts[:1]).as_posix() for name in archive.getnames()}
    parts = {f"kseg/kernel/fast/{path.name}" for path in (ROOT / "kseg" / "kernel" / "fast").glob("*.pxi")}
    parts.discard(MADE_AT_BUILD)
    others = {
        "kseg/kernel/fast.pyx",
        "kseg/kernel/crc.h",
        "kseg/kernel/escape.h",
        "kseg/py.typed",
        "LICENSE",
        "NOTICE",
        "README.md",
    }
    assert parts | others <= names
    assert [name for name in names if name.endswith((".so", ".pyc", "/fast.c")) or name == MADE_AT_BUILD] == []


def test_source_distribution_has_no_tests_since_it_has_not_what_they_need(source_distribution: Path) -> None:
    with tarfile.open(source_distribution) as archive:
        assert [name for name in archive.getnames() if "/tests" in name] == []


def test_license_and_notice_are_installed(installed: Path) -> None:
    (directory,) = installed.glob("kseg-*.dist-info")
    for name in ("LICENSE", "NOTICE"):
        assert (directory / "licenses" / name).read_bytes() == (ROOT / name).read_bytes()


def test_man_pages_and_completion_are_installed_where_they_are_looked_for(installed: Path) -> None:
    share = ROOT / "share"
    there = {path.relative_to(installed / "share") for path in (installed / "share").rglob("*") if path.is_file()}
    assert there == {path.relative_to(share) for path in share.rglob("*") if path.is_file()}


@pytest.mark.skipif(shutil.which("man") is None, reason="there is no man here")
def test_man_shows_an_installed_page(installed: Path) -> None:
    manual = run(["man", "-M", str(installed / "share" / "man"), "kseg-dump"], installed, MANWIDTH="80")
    assert "kseg dump [OPTIONS] [PATHS]..." in manual
    assert "--from-offset OFFSET" in manual


def test_version_names_the_kernel_in_use(installed: Path) -> None:
    assert installed_kseg(installed, "--version") == f"kseg 0.1.0 (kernel: {KERNELS[0]})\n"


def test_installed_package_is_the_one_that_runs(installed: Path) -> None:
    code = "import kseg.reading.log_file; print(kseg.reading.log_file.__file__)"
    assert run([sys.executable, "-c", code], installed, PYTHONPATH=str(installed)).startswith(str(installed))


def test_without_a_compiler_kseg_has_its_twin_kernel(installed_without_compiler: Path) -> None:
    kernel_of_session = {"KSEG_KERNEL": ""}
    assert "kernel: twin" in installed_kseg(installed_without_compiler, "--version", **kernel_of_session)


def test_without_a_compiler_the_kernel_of_an_earlier_build_is_not_installed(installed_without_compiler: Path) -> None:
    assert list(installed_without_compiler.rglob("fast.*.so")) == []


def test_both_installations_print_the_same(installed: Path, installed_without_compiler: Path) -> None:
    arguments = ("dump", "--print-data-log", str(SAMPLE))
    printed = installed_kseg(installed, *arguments)
    assert printed.count("\n") == 6302
    assert installed_kseg(installed_without_compiler, *arguments, KSEG_KERNEL="") == printed
