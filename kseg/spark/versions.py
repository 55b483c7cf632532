"""What a run on this machine would use: Spark, Python, pyarrow, Java, and the JVM's class data archive."""

import os
import platform
import sys

import pyspark

from kseg.spark.class_archive import ClassArchive
from kseg.spark.java import find_java, problem


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
