"""The choice of a Java for Spark, and the message if there is none."""

from pathlib import Path

import pytest

from kseg.spark.java import Java, find_java, problem


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
    program.chmod(0o755)
    return home


def choose_java() -> tuple[Path, int, str] | None:
    """Return home, version and origin of the chosen Java."""
    java = find_java()
    return None if java is None else (java.home, java.version, java.origin)


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", "21.0.2")))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "b", "17.0.1") / "bin"))
    assert choose_java() == (tmp_path / "a", 21, "JAVA_HOME")


def test_java_of_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'b', '17.0.1') / 'bin'}:/bin")
    assert choose_java() == (tmp_path / "b", 17, "PATH")


@pytest.mark.parametrize(
    ("version", "spark", "complaint"),
    [(None, "4.2.1", "no Java"), (11, "4.2.1", "too old"), (25, "4.1.4", "fails on Java 25")],
)
def test_what_does_not_go_together_is_said(version: int | None, spark: str, complaint: str) -> None:
    java = None if version is None else Java(Path("/java"), version, "PATH")
    assert complaint in (problem(java, spark) or "")


@pytest.mark.parametrize(("version", "spark"), [(17, "4.1.4"), (17, "4.2.1"), (25, "4.2.1")])
def test_what_goes_together_is_no_problem(version: int, spark: str) -> None:
    assert problem(Java(Path("/java"), version, "PATH"), spark) is None
