"""The source distribution has all files for installing kseg; `make test-install` installs it."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests import golden

ROOT = golden.ROOT.parent
MADE_AT_BUILD = "kseg/kernel/fast/declarations.pxi"


@pytest.fixture(scope="module")
def source_distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the source distribution of a copy like a clone, so that the working tree stays clean."""
    copy = tmp_path_factory.mktemp("sdist") / "kseg"
    unwanted = shutil.ignore_patterns("*.so", "fast.c", "declarations.pxi", "__pycache__")
    shutil.copytree(ROOT / "kseg", copy / "kseg", ignore=unwanted)
    shutil.copytree(ROOT / "tests", copy / "tests", ignore=unwanted)
    shutil.copytree(ROOT / "share", copy / "share")
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, copy)
    builds = [sys.executable, "-c", "from setuptools import build_meta; build_meta.build_sdist('dist')"]
    ran = subprocess.run(builds, cwd=copy, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (archive,) = (copy / "dist").glob("*.tar.gz")
    return archive


def test_source_distribution_holds_the_kernels_sources_man_pages_and_schemas_and_nothing_built(
    source_distribution: Path,
) -> None:
    with tarfile.open(source_distribution) as archive:
        names = {Path(name).relative_to(*Path(name).parts[:1]).as_posix() for name in archive.getnames()}
    parts = {f"kseg/kernel/fast/{path.name}" for path in (ROOT / "kseg" / "kernel" / "fast").glob("*.pxi")}
    parts.discard(MADE_AT_BUILD)
    others = {
        "kseg/kernel/fast.pyx",
        "kseg/kernel/carve.h",
        "kseg/kernel/crc.h",
        "kseg/kernel/ascii.h",
        "kseg/kernel/keyed.h",
        "kseg/py.typed",
        "LICENSE",
        "NOTICE",
        "README.md",
    }
    shared = {path.relative_to(ROOT).as_posix() for path in (ROOT / "share").rglob("*") if path.is_file()}
    schemas = {path.relative_to(ROOT).as_posix() for path in (ROOT / "kseg" / "formats").rglob("*.jsonl")}
    assert schemas
    assert (parts | others | shared | schemas) - {MADE_AT_BUILD} <= names
    assert [name for name in names if name.endswith((".so", ".pyc", "/fast.c")) or name == MADE_AT_BUILD] == []


def test_source_distribution_has_no_tests_since_it_has_not_what_they_need(source_distribution: Path) -> None:
    with tarfile.open(source_distribution) as archive:
        assert [name for name in archive.getnames() if "/tests" in name] == []
