"""A cluster's state carried over by `kseg metadata -o commands`: Kafka's tools describe both clusters alike.

Needs Java and Maven.
"""

import re
from pathlib import Path

import pytest

from tests import run
from tests.live.compared import Compared
from tests.live.tool_scripts import ToolScripts
from tests.log.real_broker import Broker, new_broker

pytestmark = pytest.mark.kafka

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ODD = 'it\'s "$HOME" `id`; é & co'
"""A name that a shell must not split."""
TOPICS = (
    ("plain", "3", ()),
    ("compacted", "2", ("cleanup.policy=compact,delete", "min.cleanable.dirty.ratio=0.01")),
    ("never", "1", ("retention.ms=-1", "compression.type=zstd")),
)
ACLS = (
    ("--allow-principal", "User:alice", "--operation", "Read", "--operation", "Describe", "--topic", "plain"),
    ("--allow-principal", "User:alice", "--operation", "Read", "--operation", "Describe", "--topic", "never"),
    ("--deny-principal", f"User:{ODD}", "--deny-host", "10.1.2.3", "--operation", "Write", "--topic", "*"),
    ("--allow-principal", "User:*", "--operation", "All", "--group", f"-{ODD}", "--resource-pattern-type", "prefixed"),
    ("--allow-principal", "User:ops", "--operation", "IdempotentWrite", "--operation", "AlterConfigs", "--cluster"),
    ("--allow-principal", "User:svc", "--operation", "Write", "--transactional-id", "tx-"),
    ("--allow-principal", "User:svc", "--operation", "CreateTokens", "--user-principal", "User:alice"),
)
CONFIGS = (
    ("brokers --entity-default", "log.cleaner.threads=2,log.retention.ms=100000000"),
    (
        "brokers --entity-name 1",
        "log.cleaner.io.max.bytes.per.second=100000000,listener.name.x.ssl.keystore.password=s3cret",
    ),
    ("client-metrics --entity-name sub", "interval.ms=60000,metrics=[org.apache.kafka.producer.,org.apache.kafka.x]"),
    ("groups --entity-name g", "consumer.heartbeat.interval.ms=5000"),
    ("users --entity-name alice", "producer_byte_rate=1048576,consumer_byte_rate=1e9"),
    ("users --entity-name alice", "SCRAM-SHA-256=[iterations=8192,password=first]"),
    ("users --entity-name alice", "SCRAM-SHA-512=[password=first]"),
    ("users --entity-default", "request_percentage=55.25"),
    ("users --entity-name bob --entity-type clients --entity-default", "controller_mutation_rate=10"),
    ("users --entity-default --entity-type clients --entity-name app", "consumer_byte_rate=12345"),
    ("clients --entity-default", "producer_byte_rate=9000000000"),
    ("ips --entity-name 10.0.0.1", "connection_creation_rate=100"),
)
ENTITY_TYPES = ("topics", "brokers", "client-metrics", "groups", "users", "clients", "ips", "users clients")


def fill(tools: ToolScripts, work: Path) -> None:
    """Give a cluster all kinds of state."""
    for name, partitions, settings in TOPICS:
        own = [word for setting in settings for word in ("--config", setting)]
        tools.run("kafka-topics", "--create", "--topic", name, "--partitions", partitions, *own)
    for words in ACLS:
        tools.run("kafka-acls", "--add", *words)
    for entity, settings_text in CONFIGS:
        tools.run("kafka-configs", "--alter", "--entity-type", *entity.split(), "--add-config", settings_text)
    quota = ("--entity-type", "users", "--entity-name", ODD, "--add-config", "producer_byte_rate=7")
    tools.run("kafka-configs", "--alter", *quota)
    (work / "odd.properties").write_text("match=client_id=[a-z\\\\d]+,client_software_name=.*\\n")
    subscription = ("--entity-type", "client-metrics", "--entity-name", "odd")
    tools.run("kafka-configs", "--alter", *subscription, "--add-config-file", str(work / "odd.properties"))
    throttled = ("--entity-type", "topics", "--entity-name", "plain", "--add-config")
    tools.run("kafka-configs", "--alter", *throttled, "leader.replication.throttled.replicas=[0:1,1:1]")


def describe_cluster(tools: ToolScripts) -> dict[str, list[str]]:
    """Return the tools' descriptions of a cluster, in lines independent of order and creation time."""
    texts = {
        "topics": re.sub("TopicId: \\S+|Elr: \\S*|LastKnownElr: \\S*", "", tools.run("kafka-topics", "--describe")),
        "acls": tools.run("kafka-acls", "--list"),
        "features": re.sub("Epoch: \\d+", "", tools.run("kafka-features", "describe")),
    }
    for kinds in ENTITY_TYPES:
        words = [word for kind in kinds.split() for word in ("--entity-type", kind)]
        texts[f"configs of {kinds}"] = tools.run("kafka-configs", "--describe", *words)
    return {name: [_in_order(line) for line in text.splitlines() if line.strip()] for name, text in texts.items()}


def _in_order(line: str) -> str:
    """Return a line with sorted parts: the tools print some in the order of a hash table."""
    return ", ".join(sorted(re.split(", | are ", line.strip())))


def carried_over(source: Broker, server: str) -> tuple[str, str]:
    """Return kseg's script for another cluster, and its stderr."""
    ran = run.kseg(["metadata", str(source.logs), "-o", "commands", "--bootstrap-server", server], source.work)
    assert ran.status == 0
    return ran.stdout.decode(), ran.stderr.decode()


def test_kafkas_tools_describe_the_new_cluster_as_the_old_one(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, compared: Compared
) -> None:
    source = new_broker(tmp_path_factory, SETTINGS)
    with source.running("source"):
        tools = ToolScripts(source)
        fill(tools, tmp_path)
        before = describe_cluster(tools)
    target = new_broker(tmp_path_factory, SETTINGS)
    other = ToolScripts(target)
    text, said = carried_over(source, other.server)
    assert "s3cret" not in text
    assert "#   listener.name.x.ssl.keystore.password of broker 1: a secret" in text
    assert "omitted: 1" in said
    script = tmp_path / "carry-over.sh"
    # The user puts passwords into the lines for SCRAM.
    script.write_text(re.sub("^# (.*)NEW-PASSWORD", r"\1second", text, flags=re.MULTILINE))
    with target.running("target"):
        other.run_script(script)
        after = describe_cluster(other)
    for name, lines in before.items():
        compared.rows(
            name, *([line for line in each if "ssl.keystore.password" not in line] for each in (lines, after[name]))
        )
