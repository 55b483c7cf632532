"""Choices of a restore: settings at the end, and hints to what it doesn't bring."""

import random
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import golden, run
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.restore.fake_broker import FakeLog
from tests.restore.strict_broker import StrictBroker
from tests.restore.test_sender import write_partition
from tests.terminal import in_terminal

LOGS = golden.ROOT / "logs" / "4.3.1"


@pytest.fixture
def broker() -> Iterator[StrictBroker]:
    with StrictBroker(set()).running() as running:
        yield running


@pytest.fixture(autouse=True)
def _disk(tmp_path: Path) -> None:
    write_partition(tmp_path / "disk" / "t-0", 5, random.Random(2))


def bootstrap(broker: StrictBroker) -> str:
    return "{}:{}".format(*broker.address)


def restore(broker: StrictBroker, root: Path, *options: str) -> run.Run:
    return run.kseg(["restore", "disk", "--bootstrap", bootstrap(broker), "--job", "j", "--yes", *options], root)


def test_topics_may_keep_the_settings_of_the_restore(broker: StrictBroker, tmp_path: Path) -> None:
    ran = restore(broker, tmp_path, "--keep-settings")
    assert (ran.status, broker.settings["t"]["retention.ms"]) == (0, "-1")
    assert (
        b"topics keep the settings of the restore, which delete nothing; the source's settings are unknown, and these"
        b" commands apply the target's defaults:" in ran.stdout
    )
    command = f"kafka-configs.sh --bootstrap-server {bootstrap(broker)} --alter --entity-type topics --entity-name t"
    assert f"{command} --delete-config retention.ms,retention.bytes,".encode() in ran.stdout


def test_without_it_only_retention_stays_off(broker: StrictBroker, tmp_path: Path) -> None:
    assert restore(broker, tmp_path).status == 0
    assert broker.settings["t"] == {"retention.ms": "-1", "retention.bytes": "-1"}


def test_acls_quotas_and_users_are_left_to_their_commands(broker: StrictBroker, tmp_path: Path) -> None:
    for name in ("__cluster_metadata-0", "zstd-0", "meta.properties"):
        path = LOGS / name
        (shutil.copytree if path.is_dir() else shutil.copy)(path, tmp_path / "disk" / name)
    ran = restore(broker, tmp_path, "--topic", "zstd")
    command = f"kseg metadata disk -o commands --bootstrap-server {bootstrap(broker)}"
    assert (
        f"users, and settings of brokers and groups aren't restored; this prints their commands: {command}\n"
        in ran.stdout.decode()
    )
    assert run.kseg(command.split()[1:], tmp_path).stdout.count(b"kafka-acls.sh") > 0


def test_topics_get_as_many_replicas_as_in_the_source(broker: StrictBroker, tmp_path: Path) -> None:
    shutil.copytree(LOGS / "__cluster_metadata-0", tmp_path / "disk" / "__cluster_metadata-0")
    shutil.copytree(LOGS / "zstd-0", tmp_path / "disk" / "zstd-0")
    write_partition(tmp_path / "disk" / "two-brokers-0", 5, random.Random(2))
    ran = restore(broker, tmp_path)
    assert broker.replicas == {"zstd": 1, "two-brokers": 1}
    assert b"the target has 1 broker, so some topics get fewer replicas than in the source" in ran.stderr
    assert b"zstd: 2 partitions, 1 replica, " in ran.stdout
    options = ("--job", "k", "--topic", "zstd", "--topic-map", "zstd=three", "--replication-factor", "3")
    assert restore(broker, tmp_path, *options).stderr.count(b"fewer") == 0
    assert broker.replicas["three"] == 3


def test_another_run_prints_the_commands_for_retention_until_they_were_run(
    broker: StrictBroker, tmp_path: Path
) -> None:
    assert b"--delete-config retention.ms,retention.bytes" in restore(broker, tmp_path).stdout
    again = restore(broker, tmp_path).stdout
    assert b"already restored" in again
    assert b"--delete-config retention.ms,retention.bytes" in again
    broker.settings["t"] = {"retention.ms": "5"}
    assert b"retention" not in restore(broker, tmp_path).stdout


def test_a_run_that_only_compares_asks_nothing(broker: StrictBroker, tmp_path: Path) -> None:
    words = ["restore", "disk", "--bootstrap", bootstrap(broker), "--job", "j"]
    refused = in_terminal(tmp_path, *words, typed=b"n\n")
    assert "Restore this?" in refused
    assert broker.logs == {}
    assert restore(broker, tmp_path).status == 0
    compared = in_terminal(tmp_path, *words)
    assert "already restored" in compared
    assert "Restore this?" not in compared


def test_gaps_between_batches_are_listed(broker: StrictBroker, tmp_path: Path) -> None:
    batches = [NewBatch([NewRecord(b"k", b"v")] * 2, offset) for offset in (0, 2, 9, 11)]
    write_segment(tmp_path / "disk" / "lossy-0", batches)
    ran = restore(broker, tmp_path, "--topic", "lossy")
    line = (
        "  gaps: lossy-0 lacks 5 offsets between its batches: these records are lost, unless the topic was compacted\n"
    )
    assert (ran.status, line in ran.stdout.decode()) == (0, True)


def test_a_topic_with_another_number_of_partitions_is_refused(broker: StrictBroker, tmp_path: Path) -> None:
    broker.logs["t"] = [FakeLog(), FakeLog()]
    ran = restore(broker, tmp_path)
    problem = b"topic t of the target has 2 partitions, the source's has 1, and keys would move; delete it, or use"
    assert (ran.status, problem in ran.stderr) == (2, True)
    assert [log.end for log in broker.logs["t"]] == [0, 0]


def test_a_topic_with_other_records_is_refused(broker: StrictBroker, tmp_path: Path) -> None:
    broker.logs["t"] = [FakeLog(end=5)]
    ran = restore(broker, tmp_path)
    problem = b"topic t of the target isn't empty, and no restore kseg-restore-j has begun there; delete the topic,"
    assert (ran.status, problem in ran.stderr) == (2, True)
    assert broker.logs["t"][0].batches == []


def test_one_broker_of_those_that_are_named_is_enough(broker: StrictBroker, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        closed = listening.getsockname()[1]
    addresses = f"127.0.0.1:{closed}, {bootstrap(broker)}"
    ran = run.kseg(["restore", "disk", "--bootstrap", addresses, "--job", "j", "--yes"], tmp_path)
    assert (ran.status, bool(broker.logs["t"][0].records())) == (0, True), ran.stderr


def test_a_wrong_address_among_them_is_named(broker: StrictBroker, tmp_path: Path) -> None:
    ran = run.kseg(["restore", "disk", "--bootstrap", f"{bootstrap(broker)},broker", "--dry-run"], tmp_path)
    assert (ran.status, b"'broker' isn't HOST:PORT, such as broker:9092" in ran.stderr) == (2, True)
