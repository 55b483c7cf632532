"""All that a program changes in a cluster is in `kseg metadata --changes`, once, and nothing else.

Needs Java and Maven.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import golden, run
from tests.live.cluster import Cluster
from tests.live.compared import Compared

sys.path.insert(0, str(golden.ROOT.parent / "tools"))
import make_golden as tools

pytestmark = pytest.mark.kafka

CONTROLLER = 9
SASL_MAP = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT"
SETTINGS: dict[str, object] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "token-secret",
    "listener.security.protocol.map": SASL_MAP,
    "auto.leader.rebalance.enable": "false",
    "metadata.log.max.record.bytes.between.snapshots": 20 << 20,
}
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice";'
CLOCKS_MS = 100
"""The controller's clock is that of the program; a batch gets its time shortly before it is written."""
OF_THE_CLUSTER = {
    ("broker", "registered"), ("broker", "unfenced"), ("broker", "fenced"), ("broker", "changed"),
    ("controller", "registered"), ("voter", "added"),
}  # fmt: skip
"""Changes that a cluster makes by itself."""
BY_LEADERS = {"leader", "leaderEpoch", "isr", "eligibleLeaderReplicas", "lastKnownElr", "directories"}
"""Fields of a partition that leaders and controllers change on their own."""
BY_REASSIGNMENT = {"replicas", "addingReplicas", "removingReplicas"}
"""Fields that also change at the end of a reassignment."""


class Asked(NamedTuple):
    """A change that was asked for between two times; values: those after it, or before it of what was taken away."""

    before: int
    after: int
    kind: str
    action: str
    resource: str
    name: str
    values: dict[str, Any]

    @classmethod
    def parse(cls, line: str) -> "Asked":
        before, after, kind, action, resource, name, values = line.split("\t")
        return cls(int(before), int(after), kind, action, resource, name, json.loads(values))

    def is_told_by(self, change: dict[str, Any]) -> bool:
        """Return True if a change is the requested one, with these values and this time."""
        same = (self.kind, self.action, self.resource, self.name or None)
        if (change["kind"], change["action"], change["resource"], change["name"]) != same:
            return False
        own = change["new"] or change["old"]
        is_secret = str(self.values.get("value", "")).startswith("secret-")
        values = {"value": "(hidden)"} if is_secret else self.values
        in_time = self.before - CLOCKS_MS <= change["timestamp"] <= self.after + CLOCKS_MS
        return in_time and all(own.get(name) == value for name, value in values.items())


def started_cluster(work: Path) -> tuple[Cluster, str]:
    """A controller and three brokers, and addresses to log in at."""
    cluster = Cluster("4.3.1", work, SETTINGS, (CONTROLLER,))
    logins = []
    for number in (1, 2, 3):
        node, port = cluster.nodes[number], tools.free_port()
        listeners = f"PLAINTEXT://127.0.0.1:{node.port},SASL://127.0.0.1:{port}"
        with node.properties.open("a") as properties:
            properties.write(f"listeners={listeners}\nadvertised.listeners={listeners}\n")
            properties.write(f"sasl.enabled.mechanisms=PLAIN\nlistener.name.sasl.plain.sasl.jaas.config={LOGIN}\n")
        logins.append(f"127.0.0.1:{port}")
    source = Path(__file__).with_name("ManyChanges.java")
    clients = work / "clients"
    compiled = ["javac", "-nowarn", "-cp", f"{clients / 'jars'}/*", "-d", str(clients / "classes"), str(source)]
    subprocess.run(compiled, check=True, stderr=subprocess.DEVNULL)
    return cluster, ",".join(logins)


def list_changes(cluster: Cluster, node: int) -> list[dict[str, Any]]:
    """The changes that kseg finds in a node's copy of the metadata."""
    ran = run.kseg(["metadata", "--changes", "-q", "-o", "json", *map(str, cluster.nodes[node].log_dirs)], Path.cwd())
    assert ran.status == 0, ran.stderr
    assert b"secret" not in ran.stdout
    return [json.loads(line) for line in ran.stdout.splitlines()]


def is_of_the_cluster(change: dict[str, Any], first_broker: int) -> bool:
    """Return True if the cluster made a change on its own. Features are set before the first broker exists."""
    if (change["kind"], change["action"]) in OF_THE_CLUSTER or change["offset"] < first_broker:
        return True
    names = {*(change["old"] or {})}
    ends_reassignment = names >= {"removingReplicas"} and not change["new"].get("addingReplicas")
    allowed = BY_LEADERS | BY_REASSIGNMENT if ends_reassignment else BY_LEADERS
    return (change["kind"], change["action"]) == ("partition", "changed") and names <= allowed


def test_each_change_that_was_asked_for_is_told_once_and_nothing_else(tmp_path: Path, compared: Compared) -> None:
    cluster, logins = started_cluster(tmp_path)
    try:
        cluster.start(CONTROLLER, 1, 2, 3)
        printed = cluster.run("ManyChanges", cluster.bootstrap, logins)
    finally:
        cluster.stop()
    asked = printed.splitlines()
    left = list_changes(cluster, CONTROLLER)
    of_a_broker = list_changes(cluster, 1)
    assert of_a_broker == left[: len(of_a_broker)]
    first_broker = min(change["offset"] for change in left if change["kind"] == "broker")
    found = []
    for line in asked:
        match = next(filter(Asked.parse(line).is_told_by, left), None)
        if match is not None:
            left.remove(match)
            found.append(line)
    invented = [json.dumps(change) for change in left if not is_of_the_cluster(change, first_broker)]
    compared.rows("changes", asked, [*found, *invented])
    assert len(asked) >= 200
