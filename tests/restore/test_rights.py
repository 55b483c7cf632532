"""Rights in the target: refused operations are found by requests that change nothing, and named with a command."""

import random
from pathlib import Path

import pytest

from kseg.client import connection as apis
from tests import run
from tests.restore.strict_broker import StrictBroker
from tests.restore.test_sender import write_partition


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_partition(tmp_path / "t-0", 3, random.Random(1))
    return tmp_path


CASES = [
    (apis.CREATE_TOPICS, "topic t: the target refuses Create", "--operation Create --topic t"),
    (apis.PRODUCE, "topic t: the target refuses Write", "--operation Write --topic t"),
    (apis.FETCH, "topic t: the target refuses Read", "--operation Read --topic t"),
    (apis.INCREMENTAL_ALTER_CONFIGS, "topic t: the target refuses AlterConfigs", "--operation AlterConfigs --topic t"),
    (apis.INIT_PRODUCER_ID, "cluster: the target refuses IdempotentWrite", "--operation IdempotentWrite --cluster"),
    (apis.HEARTBEAT, "group kseg-restore-j: the target refuses Read", "--operation Read --group kseg-restore-j"),
]


@pytest.mark.parametrize(("api", "problem", "arguments"), CASES)
def test_a_missing_right_is_named_and_nothing_is_written(
    source: Path, api: apis.Api, problem: str, arguments: str
) -> None:
    with StrictBroker({api.key}).running() as broker:
        bootstrap = "{}:{}".format(*broker.address)
        ran = run.kseg(["restore", "t-0", "--bootstrap", bootstrap, "--job", "j", "--yes"], source)
        command = f"kafka-acls.sh --bootstrap-server {bootstrap} --add --allow-principal User:NAME {arguments}"
        line = f"kseg: {problem}; run `{command}`"
        assert (ran.status, line in ran.stderr.decode().splitlines()) == (3, True), ran.stderr
        assert (broker.logs, broker.groups) == ({}, {})


def test_a_restore_begins_if_nothing_is_refused(source: Path) -> None:
    with StrictBroker(set()).running() as broker:
        bootstrap = "{}:{}".format(*broker.address)
        ran = run.kseg(["restore", "t-0", "--bootstrap", bootstrap, "--job", "j", "--yes", "-q"], source)
        assert (ran.status, ran.stderr) == (0, b"")
        assert broker.logs["t"][0].end > 0


def test_a_plan_waits_for_a_new_cluster(source: Path) -> None:
    """Its first search for a coordinator makes it create the topic of the groups' offsets."""
    with StrictBroker(set()).running() as broker:
        broker.searches = 2
        ran = run.kseg(["restore", "t-0", "--bootstrap", "{}:{}".format(*broker.address), "--dry-run", "-q"], source)
        assert (ran.status, ran.stderr, broker.logs) == (0, b"", {})
