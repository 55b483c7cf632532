"""`kseg restore` logs in to a real broker in all ways, and names the rights that it lacks. Needs Java and Maven."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kseg import open as open_partition
from tests import golden, run
from tests.live.secure_broker import (
    BEARER_MODULE,
    PASSWORD,
    PLAIN_MODULE,
    SCRAM_MODULE,
    USER,
    SecureBroker,
    allow,
    forbid_all,
    make_users,
    new_secure_broker,
    unsecured_token,
)
from tests.log.real_broker import served_records
from tests.restore.test_sender import write_partition

pytestmark = pytest.mark.kafka

OFFSETS = golden.ROOT / "logs" / "4.3.1" / "__consumer_offsets-1"
TOPIC, GROUP = "plain", "g-new-live"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition, and a group with an offset in it."""
    root = tmp_path_factory.mktemp("source")
    write_partition(root / f"{TOPIC}-0", 20, random.Random(1))
    shutil.copytree(OFFSETS, root / OFFSETS.name)
    return root


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    broker = new_secure_broker(tmp_path_factory)
    with broker.broker.running("secure"):
        make_users(broker)
        yield broker


@pytest.fixture
def secure(running: SecureBroker) -> Iterator[SecureBroker]:
    """A broker that allows the user nothing yet."""
    yield running
    forbid_all(running)


def password_settings(mechanism: str, password: str = PASSWORD) -> dict[str, object]:
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="{USER}" password="{password}";',
    }


def settings_of(secure: SecureBroker, way: str) -> tuple[int, Path]:
    """Return the port of a way to log in, and the file of its settings."""
    listener, mechanism = way.split()
    tls: dict[str, object] = {"ssl.truststore.type": "PEM", "ssl.truststore.location": secure.root.certificate}
    if listener == "MTLS":
        values = {"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.location": secure.client, **tls}
    else:
        values = (
            {"security.protocol": "SASL_PLAINTEXT"} if listener == "SASL" else {"security.protocol": "SASL_SSL", **tls}
        )
        if mechanism == "OAUTHBEARER":
            token = secure.broker.work / "token"
            token.write_text(unsecured_token())
            values |= {
                "sasl.mechanism": mechanism,
                "sasl.jaas.config": f"{BEARER_MODULE} required;",
                "sasl.oauthbearer.token.endpoint.url": f"file://{token}",
            }
        else:
            values |= password_settings(mechanism)
    return secure.ports[listener], secure.write_settings(way.replace(" ", "-"), values)


def restore(secure: SecureBroker, source: Path, way: str, topic: str, *options: str) -> run.Run:
    port, settings = settings_of(secure, way)
    words = [str(source), "--topic", TOPIC, "--topic-map", f"{TOPIC}={topic}", "--group", GROUP, "--job", topic]
    words += ["--bootstrap", f"127.0.0.1:{port}", "--command-config", str(settings), *options]
    return run.kseg(["restore", *words], secure.broker.work)


def test_missing_rights_are_named_before_anything_is_written(secure: SecureBroker, source: Path) -> None:
    ran = restore(secure, source, "SAFE SCRAM-SHA-512", "refused", "--yes")
    lines = [line for line in ran.stderr.decode().splitlines() if "refuses" in line]
    assert ran.status == 3
    assert [line.split("; run ")[0] for line in lines] == [
        "kseg: topic refused: the target refuses Create, Write, Read, AlterConfigs",
        "kseg: cluster: the target refuses IdempotentWrite",
        "kseg: group kseg-restore-refused: the target refuses Read",
        f"kseg: group {GROUP}: the target refuses Read",
    ]
    assert f"--allow-principal User:{USER} --operation Create --operation Write" in lines[0]
    assert "refused" not in secure.admin.list_topics(timeout=10).topics
    dry = restore(secure, source, "SAFE SCRAM-SHA-512", "refused", "--dry-run")
    assert (dry.status, dry.stderr) == (3, ran.stderr)


def test_few_rights_are_enough(secure: SecureBroker, source: Path) -> None:
    """The rights that the how-to names."""
    allow(secure, "TOPIC", "few", "CREATE", "WRITE", "READ", "ALTER_CONFIGS")
    allow(secure, "GROUP", "kseg-restore-few", "READ")
    allow(secure, "GROUP", GROUP, "READ")
    ran = restore(secure, source, "SAFE SCRAM-SHA-256", "few", "--yes", "-q")
    assert (ran.status, ran.stderr) == (0, b"")
    assert served_records(secure.broker.port, "few")


WAYS = (
    "SASL PLAIN",
    "SASL SCRAM-SHA-256",
    "SASL SCRAM-SHA-512",
    "SASL OAUTHBEARER",
    "SAFE PLAIN",
    "SAFE SCRAM-SHA-512",
    "SAFE OAUTHBEARER",
    "MTLS -",
)


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_log_in_restores_the_same(secure: SecureBroker, source: Path, way: str) -> None:
    name = way.replace(" ", "-")
    allow(secure, "TOPIC", name, "ALL")
    for group in (GROUP, f"kseg-restore-{name}"):
        allow(secure, "GROUP", group, "ALL")
    ran = restore(secure, source, way, name, "--yes", "--no-groups", "-o", "json")
    assert ran.status == 0, ran.stderr
    assert PASSWORD.encode() not in ran.stdout + ran.stderr
    records = open_partition(source / f"{TOPIC}-0").records()
    expected = [(each.timestamp, each.key, each.value) for each in records]
    assert [each[1:] for each in served_records(secure.broker.port, name)] == expected


@pytest.mark.parametrize("way", ["SAFE PLAIN", "SASL SCRAM-SHA-256"])
def test_a_wrong_password_is_refused(secure: SecureBroker, source: Path, way: str) -> None:
    port, _ = settings_of(secure, way)
    listener, mechanism = way.split()
    protocol = {"security.protocol": "SASL_PLAINTEXT" if listener == "SASL" else "SASL_SSL"}
    tls: dict[str, object] = {"ssl.truststore.location": secure.root.certificate}
    wrong = {**protocol, **tls, **password_settings(mechanism, "wr0ng")}
    settings = secure.write_settings("wrong", wrong)
    words = [
        str(source),
        "--topic",
        TOPIC,
        "--bootstrap",
        f"127.0.0.1:{port}",
        "--command-config",
        str(settings),
        "--yes",
    ]
    ran = run.kseg(["restore", *words], secure.broker.work)
    assert (ran.status, f"refuses the log-in of {USER}: ".encode() in ran.stderr) == (3, True)
    assert b"wr0ng" not in ran.stdout + ran.stderr


@pytest.mark.parametrize("listener", ["SASL", "SAFE", "MTLS"])
def test_a_listener_that_wants_security_is_named(secure: SecureBroker, source: Path, listener: str) -> None:
    words = [str(source), "--topic", TOPIC, "--bootstrap", f"127.0.0.1:{secure.ports[listener]}", "--yes"]
    ran = run.kseg(["restore", *words], secure.broker.work)
    assert (ran.status, b"--command-config" in ran.stderr) == (3, True), ran.stderr
