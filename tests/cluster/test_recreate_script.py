"""A cluster's state as a shell script of Kafka's tools."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kseg.cluster.model import (
    Acl,
    ClusterMetadata,
    ClusterPartition,
    Config,
    DelegationToken,
    Feature,
    Quota,
    QuotaEntity,
    ScramUser,
    Topic,
)
from kseg.cluster.recreate_script import CarryOver, Script, Target, carry_over_script

TOOLS = ("kafka-topics", "kafka-configs", "kafka-acls", "kafka-features")
TARGET = Target("new:9092")
EMPTY = ClusterMetadata(7, 1_700_000_000_000, None, None, (), (), (), (), (), 0, ())
HOSTILE = (
    "it's",
    "$(touch made)",
    "`touch made`",
    "a b",
    '"',
    "\\",
    "*",
    "é",
    "-x",
    "; touch made",
    "&& touch made",
    "#",
)
CAN_NOT_BE_NAMED = ("x\ntouch made", "x\x1b[2J", " x", "x\u202e", "x\udc80", "")


def cluster(**fields: object) -> ClusterMetadata:
    return ClusterMetadata(**{**{name: getattr(EMPTY, name) for name in EMPTY.__slots__}, **fields})  # type: ignore[arg-type]


def partition(number: int, *replicas: int, removing: tuple[int, ...] = ()) -> ClusterPartition:
    return ClusterPartition("t", "A" * 22, number, 1, 0, 0, replicas, replicas, (), removing, (), (), False)


def topic(name: str, *partitions: ClusterPartition) -> Topic:
    return Topic(name, "A" * 22, partitions or (partition(0, 1),))


STAND_IN = """#!{python}
import json, pathlib, sys
said = sys.stdin.read() if "/dev/stdin" in sys.argv else ""
with open("calls", "a") as calls:
    print(json.dumps([pathlib.Path(sys.argv[0]).stem, *sys.argv[3:], *filter(None, [said])]), file=calls)
"""
"""A tool that records its arguments and input."""


def ran(script: Script, work: Path) -> list[list[str]]:
    """Return the arguments of each tool when a shell runs the script, without the server; last its standard input."""
    bin_directory = work / "bin"
    bin_directory.mkdir()
    for tool in TOOLS:
        path = bin_directory / f"{tool}.sh"
        path.write_text(STAND_IN.format(python=sys.executable))
        path.chmod(0o755)
    (work / "script.sh").write_text("\n".join(script.lines), encoding="utf-8")
    environment = {**os.environ, "PATH": f"{bin_directory}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["sh", "-e", "script.sh"], cwd=work, env=environment, check=True, stdin=subprocess.DEVNULL)
    assert not (work / "made").exists()
    calls = work / "calls"
    return [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []


def script_of(found: ClusterMetadata, **wanted: object) -> Script:
    return carry_over_script(found, CarryOver(TARGET, **wanted))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_shell_gives_each_name_to_the_tool_as_it_is(name: str, tmp_path: Path) -> None:
    acl = Acl("GROUP", name, "PREFIXED", name, name, "READ", "DENY")
    quota = Quota((QuotaEntity("client-id", name), QuotaEntity("user", name)), "producer_byte_rate", 1.5e16)
    found = cluster(acls=(acl,), quotas=(quota,), configs=(Config("group", name, "x.ms", name),))
    configs, acls, quotas = ran(script_of(found), tmp_path)
    assert configs[:6] == ["kafka-configs", "--alter", "--entity-type", "groups", "--entity-name", name]
    assert configs[6:] == ["--add-config", f"x.ms={name}"]
    denied = ["--deny-principal", name, "--deny-host", name, "--operation", "Read", "--group", name]
    assert acls == ["kafka-acls", "--add", *denied, "--resource-pattern-type", "prefixed"]
    entity = ["--entity-type", "users", "--entity-name", name, "--entity-type", "clients", "--entity-name", name]
    assert quotas == ["kafka-configs", "--alter", *entity, "--add-config", "producer_byte_rate=15000000000000000"]


@pytest.mark.parametrize("name", CAN_NOT_BE_NAMED, ids=ascii)
def test_names_that_no_tool_takes_are_left_out_and_told(name: str, tmp_path: Path) -> None:
    acl = Acl("TOPIC", name, "LITERAL", "User:a", "*", "READ", "ALLOW")
    quota = Quota((QuotaEntity("user", name),), "producer_byte_rate", 1.0)
    found = cluster(acls=(acl,), quotas=(quota,), topics=(topic(name),), scram=(ScramUser(name, "SCRAM-SHA-512", 1),))
    script = script_of(found)
    assert ran(script, tmp_path) == []
    assert [text.split()[0] for text in script.left_out] == ["topic", "ACL", "quotas"]
    assert all(line.isprintable() for line in script.lines)


@pytest.mark.parametrize("value", ["[a]", " a", "a\nb", "é\t=,[]", "\\u0041", "#!: ", "", "a=b", "a,b"])
def test_values_of_any_kind_arrive(value: str, tmp_path: Path) -> None:
    found = cluster(configs=(Config("client-metrics", "s", "match", value),))
    (words,) = ran(script_of(found), tmp_path)
    if "--add-config-file" in words:
        name, _, escaped = words[-1].strip().partition("=")
        assert words[-1].isascii()
        assert (name, escaped.encode().decode("unicode_escape")) == ("match", value)
    else:
        quoted = f"[{value}]" if {",", "="} & {*value} else value
        assert words[-1] == f"match={quoted}"


def test_a_topic_has_as_many_partitions_and_replicas_as_it_is_to_have(tmp_path: Path) -> None:
    found = cluster(topics=(topic("t", partition(0, 1, 2), partition(1, 2, 3, 1, removing=(1,))),))
    (words,) = ran(script_of(found), tmp_path)
    assert words == ["kafka-topics", "--create", "--topic", "t", "--partitions", "2", "--replication-factor", "2"]


def test_replicas_can_stay_on_their_brokers(tmp_path: Path) -> None:
    found = cluster(topics=(topic("t", partition(0, 1, 2), partition(1, 2, 3, 1, removing=(1,))),))
    (words,) = ran(script_of(found, keeps_brokers=True), tmp_path)
    assert words[-2:] == ["--replica-assignment", "1:2,2:3"]


def test_topics_settings_that_kafka_topics_refuses_are_set_afterwards(tmp_path: Path) -> None:
    values = {"cleanup.policy": "compact,delete", "x": "a=b", "y": ""}
    found = cluster(topics=(topic("t"),), configs=tuple(Config("topic", "t", *each) for each in values.items()))
    created, altered = ran(script_of(found), tmp_path)
    assert created[-2:] == ["--config", "cleanup.policy=compact,delete"]
    assert altered[-3:] == ["t", "--add-config", "x=[a=b],y="]


def test_topics_that_brokers_create_themselves_may_be_there_already(tmp_path: Path) -> None:
    (words,) = ran(script_of(cluster(topics=(topic("__consumer_offsets"),))), tmp_path)
    assert words[1:3] == ["--create", "--if-not-exists"]


def test_acls_with_the_same_operations_share_a_line(tmp_path: Path) -> None:
    named = [Acl("TOPIC", f"t{number}", "LITERAL", "User:a", "*", operation, "ALLOW")
             for number in range(90) for operation in ("READ", "DESCRIBE_CONFIGS")]  # fmt: skip
    calls = ran(script_of(cluster(acls=tuple(named))), tmp_path)
    assert [call.count("--topic") for call in calls] == [40, 40, 10]
    assert all([each for each in call if each.istitle() or each == "DescribeConfigs"][1:] for call in calls)


def test_secrets_are_named_and_nothing_else_of_them() -> None:
    found = cluster(
        configs=(Config("broker", "", "listener.name.x.ssl.key.password", "s3cret"),),
        scram=(ScramUser("alice", "SCRAM-SHA-256", 8192),),
        tokens=(DelegationToken("id", "User:a", "User:a", (), 1, 2, 3),),
    )
    script = script_of(found)
    assert script.command_count == 0
    assert "s3cret" not in "\n".join(script.lines)
    assert script.left_out == (
        "listener.name.x.ssl.key.password of broker <default>: a secret",
        "1 delegation tokens: only brokers make them",
    )
    assert any(line.startswith("# kafka-configs.sh") and "NEW-PASSWORD" in line for line in script.lines)


def test_show_chooses_what_is_carried_over(tmp_path: Path) -> None:
    found = cluster(features=(Feature("group.version", 1),), topics=(topic("t"),))
    (words,) = ran(script_of(found, kind="features"), tmp_path)
    assert words == ["kafka-features", "upgrade", "--feature", "group.version=1"]


def test_a_login_of_the_tools_is_in_every_line() -> None:
    wanted = CarryOver(Target("new:9092", "my client.properties"))
    lines = carry_over_script(cluster(topics=(topic("t"),)), wanted).lines
    assert "--command-config 'my client.properties'" in lines[-1]
