"""The recipes of docs/how-to/serve.md work: each block runs unchanged but for the server's address.

Recipes that begin with kseg are run by tests/test_docs.py, Spark's by tests/spark/test_served.py, MirrorMaker's by
tests/serve/test_mirror_maker.py. Needs Java and Maven.
"""

import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests import golden
from tests.sandbox import make_sandbox
from tests.serve.pages import blocks, lines
from tests.serve.reading import on_disk
from tests.serve.running import PATIENCE, Running, serving

if TYPE_CHECKING:
    from tools.kafka_classes import KafkaClasses

pytestmark = pytest.mark.kafka

PROGRAMS = {
    "kafka-console-consumer.sh": "consumer.ConsoleConsumer",
    "kafka-consumer-groups.sh": "consumer.group.ConsumerGroupCommand",
}
"""The classes of Kafka's scripts, in org.apache.kafka.tools."""
AT_THE_END = ["--timeout-ms", "5000"]
"""Options that end the console consumer after the last record."""
COMMITTED = 100
"""The number of records that the group had read."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(make_sandbox(tmp_path_factory.mktemp("sandbox")) / "kafka-logs") as running:
        yield running


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> "KafkaClasses":
    sys.path.insert(0, str(golden.ROOT.parent / "tools"))
    import make_golden

    return make_golden.kafka_classes("4.3.1", tmp_path_factory.mktemp("tools"))


def print_output(line: str, tools: "KafkaClasses", running: Running) -> bytes:
    program, *options = shlex.split(at(running, line))
    own = AT_THE_END if program == "kafka-console-consumer.sh" else []
    command = tools.command(f"org.apache.kafka.tools.{PROGRAMS[program]}", *options, *own)
    return subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False).stdout


def at(running: Running, text: str) -> str:
    """Return a recipe for this server."""
    assert "127.0.0.1:9092" in text
    return text.replace("127.0.0.1:9092", running.bootstrap)


def values(running: Running) -> list[bytes | None]:
    (partition,) = running.served.topics["orders"].partitions.values()
    assert partition.listed is not None
    return [record.value for record in on_disk(partition.listed.path)]


def print_values(found: Iterable[bytes | None]) -> bytes:
    """Return values as the console consumer prints them."""
    return b"".join(b"%b\n" % (b"null" if value is None else value) for value in found)


def test_the_console_consumer_reads_a_partition(tools: "KafkaClasses", running: Running) -> None:
    (line,) = lines("kafka-console-consumer.sh .* --partition")
    assert print_output(line, tools, running) == print_values(values(running))


def test_a_group_goes_on_where_it_was(tools: "KafkaClasses", running: Running) -> None:
    (reading,) = lines("kafka-console-consumer.sh .* --group")
    (asking,) = lines("kafka-consumer-groups.sh .* --describe")
    assert print_output(reading, tools, running) == print_values(values(running)[COMMITTED:])
    (partition,) = running.served.topics["orders"].partitions.values()
    (row,) = (line.split() for line in print_output(asking, tools, running).decode().splitlines() if "orders " in line)
    assert row[3:6] == [str(partition.offsets().log_end)] * 2 + ["0"]


@pytest.mark.parametrize("wanted", ["assign", "subscribe"])
def test_python_reads(wanted: str, running: Running) -> None:
    import confluent_kafka

    (code,) = (each for each in blocks() if each.startswith("consumer = ") and wanted in each)
    names: dict[str, Any] = dict(vars(confluent_kafka))
    exec(at(running, code), names)
    expected = values(running)
    got = [names["consumer"].poll(PATIENCE).value() for _ in expected]
    names["consumer"].close()
    assert got == expected
