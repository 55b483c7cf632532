"""Peers of kseg: Kafka's releases by Maven, and programs in C."""

import os
import subprocess
from pathlib import Path

HOME = Path(__file__).parent
JARS = HOME / "jars"
HEADER_WALK, LINES = HOME / "data" / "walk", HOME / "data" / "lines"
TOOLS = {"4.3.1": "org.apache.kafka.tools.DumpLogSegments", "3.9.1": "kafka.tools.DumpLogSegments"}
# The JVM's options in kafka-run-class.sh, and no logging.
JVM_FLAGS = [
    "-Xmx256M",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
]
NO_LOGGING = [f"-Dlog4j.configuration={(HOME / 'log4j.properties').as_uri()}"]


def fetch_jars(release: str) -> None:
    """Copy the release's jars to their place, unless they are there."""
    folder = JARS / release
    if not any(folder.glob("kafka-clients-*.jar")):
        goal = [
            "mvn",
            "-q",
            "-B",
            "-f",
            str(HOME / "pom.xml"),
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
        ]
        subprocess.run([*goal, f"-Dkafka.release={release}", f"-DoutputDirectory={folder}"], check=True)


def compile_c_programs() -> None:
    """Compile the programs in C by the compiler in `CC`, or by `cc`."""
    for program in (HEADER_WALK, LINES):
        program.parent.mkdir(exist_ok=True)
        source = HOME / f"{program.name}.c"
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", str(program), str(source)], check=True)


def class_path(release: str) -> str:
    """Return the release's jars as an argument for Java's -cp."""
    return str(JARS / release / "*")


def dump_tool(release: str) -> list[str]:
    """Return the command of the release's DumpLogSegments, without its options."""
    return ["java", *JVM_FLAGS, *NO_LOGGING, "-cp", class_path(release), TOOLS[release]]
