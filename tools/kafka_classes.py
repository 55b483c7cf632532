"""A Kafka release's classes: fetched by Maven, with these tools' own Java programs compiled against them."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

STDERR = 2
"""Where Maven's messages go: standard output is for the results of the tool that calls it."""
SOURCES = Path(__file__).resolve().parent
# For a quick start, with text as UTF-8 and times as UTC on every machine.
JAVA_OPTIONS = (
    "-Xmx400m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dfile.encoding=UTF-8",
    "-Duser.timezone=UTC",
)


class KafkaClasses:
    """The class path of some artifacts and of Java programs of this folder. `work` is a scratch directory.

    `without`: artifacts (GROUP:NAME) that others depend on, but that aren't published.
    """

    def __init__(
        self, artifacts: Iterable[str], programs: Iterable[str], work: Path, without: Iterable[str] = ()
    ) -> None:
        self._jars = work / "jars"
        self._classes = work / "classes"
        _fetch(artifacts, work, self._jars, tuple(without))
        sources = [str(SOURCES / f"{program}.java") for program in programs]
        if sources:
            subprocess.run(["javac", "-cp", f"{self._jars}/*", "-d", str(self._classes), *sources], check=True)

    def command(self, main_class: str, *arguments: str, options: Iterable[str] = ()) -> list[str]:
        """Return the command line that runs one of the classes."""
        class_path = f"{self._classes}{os.pathsep}{self._jars}/*"
        return ["java", *JAVA_OPTIONS, *options, "-cp", class_path, main_class, *arguments]


def _fetch(artifacts: Iterable[str], work: Path, jars: Path, without: tuple[str, ...]) -> None:
    """Let Maven copy artifacts (GROUP:NAME:VERSION) and their runtime dependencies."""
    dependencies = "".join(_dependency(artifact, without) for artifact in artifacts)
    (work / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>kseg</groupId><artifactId>tools</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>",
        encoding="utf-8",
    )
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
    subprocess.run(["mvn", "-q", "-B", "-Dstyle.color=never", *goal], cwd=work, check=True, stdout=STDERR)


def _dependency(artifact: str, without: tuple[str, ...]) -> str:
    group, name, version = artifact.split(":")
    exclusions = "".join(f"<exclusion>{_coordinates(*each.split(':'))}</exclusion>" for each in without)
    fields = f"{_coordinates(group, name)}<version>{version}</version><exclusions>{exclusions}</exclusions>"
    return f"<dependency>{fields}</dependency>"


def _coordinates(group: str, name: str) -> str:
    return f"<groupId>{group}</groupId><artifactId>{name}</artifactId>"
