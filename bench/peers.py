"""What kseg is compared with: Kafka's releases by Maven, and a C program that only checks headers and CRCs."""

import os
import subprocess
from pathlib import Path

HOME = Path(__file__).parent
JARS = HOME / "jars"
HEADER_WALK = HOME / "data" / "walk"
TOOLS = {"4.3.1": "org.apache.kafka.tools.DumpLogSegments", "3.9.1": "kafka.tools.DumpLogSegments"}
# What kafka-run-class.sh gives the JVM, and no logging.
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
    """Copies the release's jars to their place, unless they are there."""
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


def compile_header_walk() -> None:
    """By the C compiler that `CC` names, or `cc`."""
    HEADER_WALK.parent.mkdir(exist_ok=True)
    program = [os.environ.get("CC", "cc"), "-O2", "-o", str(HEADER_WALK), str(HOME / "walk.c")]
    subprocess.run(program, check=True)


def class_path(release: str) -> str:
    """The release's jars as Java's -cp wants them."""
    return str(JARS / release / "*")


def dump_tool(release: str) -> list[str]:
    """The command of the release's DumpLogSegments, to which its options are added."""
    return ["java", *JVM_FLAGS, *NO_LOGGING, "-cp", class_path(release), TOOLS[release]]
