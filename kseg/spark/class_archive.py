"""The JVM's class archive, with which Spark starts faster, and the versions of a run on this machine."""

import hashlib
import os
import platform
import sys
from pathlib import Path
from typing import NamedTuple

import pyspark

from kseg.spark.java import Java, find_java, problem
from kseg.system.files import cache_directory

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable"
"""For a JVM that only hands out work orders: it starts with two thirds of the CPU time, and says nothing on stdout."""


class ClassArchive(NamedTuple):
    """Where the archive of a Java and a Spark is, or would be.

    The JVM itself refuses an archive of other jars or of another JVM, and then starts as without one. jars: Spark's.
    """

    folder: Path
    name: str
    jars: Path

    @classmethod
    def of(cls, java: Java) -> "ClassArchive | None":
        """The archive for this Java and the installed pyspark; None where the classes would be others', or no home is.

        Its folder is that of the place of Java and pyspark, its name that of their versions.
        """
        cache = cache_directory()
        if cache is None or "SPARK_HOME" in os.environ:
            return None
        package = Path(pyspark.__file__).parent
        place = hashlib.sha256(f"{java.home}\n{package}".encode()).hexdigest()[:16]
        build = hashlib.sha256(java.build.encode()).hexdigest()[:16]
        return cls(
            cache / "spark" / place, f"spark-{pyspark.__version__}-java-{java.version}-{build}", package / "jars"
        )

    @property
    def path(self) -> Path:
        """The archive itself; it names the basic one."""
        return self.folder / f"{self.name}.jsa"

    @property
    def basic(self) -> Path:
        """The archive of Java's own classes that it builds on. Not every Java brings one."""
        return self.folder / f"{self.name}-basic.jsa"

    @property
    def spark_home(self) -> Path:
        """A home for Spark that is always in the same place: an archive is only for jars with the same paths."""
        return self.folder / "home"

    @property
    def is_there(self) -> bool:
        """Whether it has been made, by this user: it is code that the JVM runs."""
        try:
            owner = self.folder.stat().st_uid
        except OSError:
            return False
        return owner == os.geteuid() and all(
            path.exists() for path in (self.path, self.basic, self.spark_home / "jars")
        )

    @property
    def options(self) -> str:
        """What lets a JVM start quickly: with this archive, if it is there."""
        return f"{QUICK_START} -XX:SharedArchiveFile={self.path}" if self.is_there else QUICK_START

    def options_to_make(self, path: Path) -> str:
        """What lets a JVM write the archive to a path when it ends."""
        return f"{QUICK_START} -XX:SharedArchiveFile={self.basic} -XX:ArchiveClassesAtExit={path}"


def versions() -> tuple[list[str], str | None]:
    """Which Spark, Python, pyarrow and Java would be used, a line each; and why they can't be, None if they can."""
    import pyarrow

    java = find_java()
    archive = None if java is None else ClassArchive.of(java)
    lines = [
        f"Spark {pyspark.__version__}",
        f"Python {platform.python_version()} ({os.environ.get('PYSPARK_PYTHON', sys.executable)})",
        f"pyarrow {pyarrow.__version__}",
        "Java none" if java is None else f"Java {java.version} ({java.origin}: {java.home})",
        "class archive none" if archive is None or not archive.is_there else f"class archive {archive.path}",
    ]
    return lines, problem(java, pyspark.__version__)
