"""The versions of libraries that `kseg --version` prints."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kseg.system import distributions


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Let each test look for the files anew."""
    distributions._metadata_files.cache_clear()
    yield
    distributions._metadata_files.cache_clear()


def install(folder: Path, directory: str, file: str, *lines: str) -> None:
    (folder / directory).mkdir(parents=True)
    (folder / directory / file).write_text("\n".join([*lines, "", "Version: described"]), encoding="utf-8")


def test_a_tree_of_sources_names_its_libraries_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "tool.egg-info", "PKG-INFO", "Requires-Dist: Some_Library>=2; extra == 'x'", "Requires-Dist: no")
    install(tmp_path, "some.library-2.5.dist-info", "METADATA", "Version: 2.5")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert list(distributions.installed_versions("tool")) == [("Some_Library", "2.5")]


def test_places_that_cannot_be_read_hide_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "b", "tool-1.dist-info", "METADATA", "Requires-Dist: library")
    install(tmp_path / "b", "library-3.dist-info", "METADATA", "Version: 3")
    (tmp_path / "c" / "other-1.dist-info" / "METADATA").mkdir(parents=True)
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / each) for each in ("gone", "file", "c", "b")])
    assert list(distributions.installed_versions("tool")) == [("library", "3")]
