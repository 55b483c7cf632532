"""Log directories balanced by `kseg plan-move` and the real kafka-reassign-partitions.sh. Needs Java and Maven."""

import json
from pathlib import Path

import pytest

from tests import run
from tests.live.compared import Compared
from tests.live.tool_scripts import ToolScripts
from tests.log.real_broker import PATIENCE, Broker, make_topics, new_broker

pytestmark = pytest.mark.kafka

SIZES = {"large": 400, "middle": 300, "small": 100, "smaller": 80, "tiny": 40}
"""Topics and their numbers of 10 kB values; all of them begin on the first disk."""


def sizes(tools: ToolScripts) -> dict[tuple[str, str], int]:
    """Return kafka-log-dirs.sh's bytes by log directory and partition."""
    answer = json.loads(tools.run("kafka-log-dirs", "--describe").splitlines()[-1])
    return {
        (Path(log_dir["logDir"]).name, each["partition"]): each["size"]
        for broker in answer["brokers"]
        for log_dir in broker["logDirs"]
        for each in log_dir["partitions"]
    }


def fill(broker: Broker) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{broker.port}", "linger.ms": 5})
    for topic, count in SIZES.items():
        for number in range(count):
            producer.produce(topic, value=bytes([number % 251]) * 10_000)
            producer.poll(0)
    assert producer.flush(PATIENCE) == 0


def reassign(tools: ToolScripts, plan: Path) -> None:
    """Execute a plan, and wait for its end."""
    words = ("--reassignment-json-file", str(plan))
    assert "Successfully started" in tools.run("kafka-reassign-partitions", *words, "--execute")

    def is_over() -> bool:
        said = tools.run("kafka-reassign-partitions", *words, "--verify", "--preserve-throttles")
        return "still in progress" not in said

    tools.wait_until(is_over)


def test_kafkas_tool_carries_out_the_plan_and_sees_what_it_foretold(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, compared: Compared
) -> None:
    second = tmp_path / "second"
    broker = new_broker(tmp_path_factory, log_dirs=[second])
    disks = [str(broker.logs), str(second)]
    with broker.running("levelled"):
        tools = ToolScripts(broker)
        make_topics(broker.port, SIZES)
        fill(broker)
        first = run.kseg(["plan-move", *disks, "--within", "100"], tmp_path)
        assert first.status == 0
        everything_first = {
            "version": 1,
            "partitions": [
                {"topic": topic, "partition": 0, "replicas": [1], "log_dirs": [str(broker.logs)]} for topic in SIZES
            ],
        }
        (tmp_path / "gather.json").write_text(json.dumps(everything_first))
        reassign(tools, tmp_path / "gather.json")
        plan = run.kseg(["plan-move", *disks, "--within", "5"], tmp_path)
        foretold = run.kseg(["plan-move", *disks, "--within", "5", "-o", "json"], tmp_path)
        (tmp_path / "moves.json").write_bytes(plan.stdout)
        reassign(tools, tmp_path / "moves.json")
        found = sizes(tools)
        again = run.kseg(["plan-move", *disks, "--within", "5"], tmp_path)
    rows = [json.loads(line) for line in foretold.stdout.splitlines()]
    fills = {Path(row["path"]).name: row["after"] for row in rows if row["type"] == "logDir"}
    of_tool = {name: sum(size for (place, _), size in found.items() if place == name) for name in fills}
    metadata_size = sum(path.stat().st_size for path in (broker.logs / "__cluster_metadata-0").glob("*.log"))
    of_tool[broker.logs.name] += metadata_size  # the tool doesn't list it
    compared.rows("moves", [(row["topic"], Path(row["to"]).name) for row in rows if row["type"] == "move"],
                  [(each["topic"], "second") for each in json.loads(plan.stdout)["partitions"]])  # fmt: skip
    for name, size in fills.items():
        assert abs(of_tool[name] - size) <= metadata_size
    assert max(fills.values()) < 1.05 * sum(fills.values()) / 2
    assert json.loads(again.stdout)["partitions"] == []
    assert b"nothing to move" in again.stderr
