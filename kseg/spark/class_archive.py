"""The JVM's class archive, which speeds up Spark's start, and the versions of a run on this machine."""

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
"""Options of a JVM that only distributes work orders: it starts with two thirds of the CPU time, and a quiet stdout."""


class ClassArchive(NamedTuple):
    """The class archive of a Java and a Spark, which may not exist yet. jars: Spark's.

    The JVM itself refuses an archive of other jars or of another JVM, and then starts without it.
    """

    folder: Path
    name: str
    jars: Path

    @classmethod
    def of(cls, java: Java) -> "ClassArchive | None":
        """Return the archive of this Java and the installed pyspark.

        None if the classes would be from another Spark, or without a home directory. The locations of Java and pyspark
        determine the archive's folder, and their versions its name.
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
        """The archive itself, which names the basic one."""
        return self.folder / f"{self.name}.jsa"

    @property
    def basic(self) -> Path:
        """The archive of Java's own classes that it builds on. Some Javas don't have one."""
        return self.folder / f"{self.name}-basic.jsa"

    @property
    def spark_home(self) -> Path:
        """A home for Spark at a fixed path: an archive is only valid for jars with the same paths."""
        return self.folder / "home"

    @property
    def is_there(self) -> bool:
        """True if this user has made it: it is code that the JVM runs."""
        try:
            owner = self.folder.stat().st_uid
        except OSError:
            return False
        return owner == os.geteuid() and all(
            path.exists() for path in (self.path, self.basic, self.spark_home / "jars")
        )

    @property
    def options(self) -> str:
        """The options for a quick start of a JVM, with this archive if it exists."""
        return f"{QUICK_START} -XX:SharedArchiveFile={self.path}" if self.is_there else QUICK_START

    def options_to_make(self, path: Path) -> str:
        """Return the options with which a JVM writes the archive to a path when it ends."""
        return f"{QUICK_START} -XX:SharedArchiveFile={self.basic} -XX:ArchiveClassesAtExit={path}"


def versions() -> tuple[list[str], str | None]:
    """Return a line per version of Spark, Python, pyarrow and Java, and the problem that prevents their use, if any."""
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
