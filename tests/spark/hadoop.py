"""HDFS and YARN on this machine: Hadoop's mini cluster in its own process (MiniHadoop.java), from Maven's jars."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from tests import golden
from tests.spark.processes import wait_until

sys.path.insert(0, str(golden.ROOT.parent / "tools"))
import peer_spark

JARS = (
    "org.apache.hadoop:hadoop-client-minicluster:3.5.0",
    "junit:junit:4.13.2",
    "org.hamcrest:hamcrest-core:1.3",
    "org.junit.jupiter:junit-jupiter-api:5.11.4",
    "org.junit.platform:junit-platform-commons:1.11.4",
    "org.opentest4j:opentest4j:1.3.0",
    "org.bouncycastle:bcprov-jdk18on:1.78.1",
    "org.bouncycastle:bcpkix-jdk18on:1.78.1",
    "org.bouncycastle:bcutil-jdk18on:1.78.1",
)
SETTINGS = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.nodemanager.resource.memory-mb": "3000",
    "yarn.nodemanager.disk-health-checker.enable": "false",  # this machine's disk may be full
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
}
OPENED = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "util")]
STOP_SECONDS = 120


class Hadoop(NamedTuple):
    """Its configuration directory, the URL of WebHDFS, and its process, which is an ancestor of containers."""

    configuration: Path
    url: str
    process: "subprocess.Popen[bytes]"


@contextmanager
def mini_hadoop(work: Path) -> Iterator[Hadoop]:
    """Yield a cluster on 127.0.0.1 with one node of HDFS and two of YARN."""
    import pyspark

    fetched = ":".join(map(str, peer_spark.fetched_jars(JARS, work)))
    jars = f"{fetched}:{Path(pyspark.__file__).parent}/jars/*"
    source = Path(__file__).with_name("MiniHadoop.java")
    subprocess.run(["javac", "-cp", jars, "-d", str(work / "classes"), str(source)], check=True)
    settings = [f"{name}={value}" for name, value in SETTINGS.items()]
    command = ["java", "-Xmx600m", *OPENED, "-cp", f"{work}/classes:{jars}", "MiniHadoop", str(work), *settings]
    with (work / "hadoop.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=work, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_until((work / "conf" / "yarn-site.xml").exists, "Hadoop is up", process)
        address = _setting(work / "conf" / "core-site.xml", "dfs.namenode.http-address")
        yield Hadoop(work / "conf", f"webhdfs://{address}", process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _setting(file: Path, name: str) -> str:
    for each in ElementTree.parse(file).getroot().iter("property"):
        if each.findtext("name") == name:
            return str(each.findtext("value"))
    raise KeyError(name)


def containers(hadoop: Hadoop, main_class: str) -> list[int]:
    """Return the processes of YARN's containers whose JVM runs a class."""
    found = []
    for pid in _descendants(hadoop.process.pid):
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended
        if arguments[0].endswith(b"/java") and any(part.endswith(main_class.encode()) for part in arguments):
            found.append(pid)
    return found


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found[1:]
