"""A Kafka release's classes: fetched by Maven, with these tools' own Java programs compiled against them."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
# Starts quickly; text as UTF-8 and times as UTC wherever it runs.
JAVA_OPTIONS = (
    "-Xmx400m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dfile.encoding=UTF-8",
    "-Duser.timezone=UTC",
)


class KafkaClasses:
    """The class path of some artifacts and of Java programs of this folder. `work` is a scratch directory."""

    def __init__(self, artifacts: Iterable[str], programs: Iterable[str], work: Path) -> None:
        self._jars = work / "jars"
        self._classes = work / "classes"
        _fetch(artifacts, work, self._jars)
        sources = [str(SOURCES / f"{program}.java") for program in programs]
        if sources:
            subprocess.run(["javac", "-cp", f"{self._jars}/*", "-d", str(self._classes), *sources], check=True)

    def command(self, main_class: str, *arguments: str, options: Iterable[str] = ()) -> list[str]:
        """The command line that runs one of the classes."""
        class_path = f"{self._classes}{os.pathsep}{self._jars}/*"
        return ["java", *JAVA_OPTIONS, *options, "-cp", class_path, main_class, *arguments]


def _fetch(artifacts: Iterable[str], work: Path, jars: Path) -> None:
    """Let Maven copy artifacts (GROUP:NAME:VERSION) and what they need at run time."""
    dependencies = "".join(_dependency(*artifact.split(":")) for artifact in artifacts)
    (work / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>kseg</groupId><artifactId>tools</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>",
        encoding="utf-8",
    )
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
    subprocess.run(["mvn", "-q", "-B", "-Dstyle.color=never", *goal], cwd=work, check=True)


def _dependency(group: str, name: str, version: str) -> str:
    fields = f"<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
    return f"<dependency>{fields}</dependency>"
