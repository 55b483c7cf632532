"""Java's console consumer over TLS and SASL: it reads, or reports the same error as with a broker."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kseg.serve.connections import Security, server_tls
from kseg.serve.login import MECHANISMS, Logins
from kseg.serve.values import Limits
from tests import golden
from tests.serve.certificates import issue_certificate, root, write_files
from tests.serve.reading import on_disk
from tests.serve.running import Running, serving

pytestmark = pytest.mark.kafka
RELEASE = "4.3.1"
PATIENCE = 120
ZSTD = golden.ROOT / "logs" / RELEASE / "zstd-0"
MODULES = {"PLAIN": "plain.PlainLoginModule"}
Ran = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Any:
    sys.path.insert(0, str(golden.ROOT.parent / "tools"))
    import make_golden as tools

    return tools.kafka_classes(RELEASE, tmp_path_factory.mktemp("kafka"))


@pytest.fixture
def root_file(tmp_path: Path) -> Path:
    return write_files(tmp_path, "root", root()).certificate


def security(directory: Path, *, clients: Path | None = None, has_logins: bool = False) -> Security:
    tls = server_tls(*write_files(directory, "server", issue_certificate("server", root())), clients)
    return Security(tls, Logins({"bob": "builder"}, MECHANISMS) if has_logins else None)


def consume(kafka: Any, running: Running, directory: Path, properties: dict[str, object]) -> Ran:
    """Run the consumer; its output has the offsets, one per line, and its messages."""
    configuration = directory / "client.properties"
    lines = {"default.api.timeout.ms": 20_000, "ssl.truststore.type": "PEM", **properties}
    configuration.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    where = ["--bootstrap-server", running.bootstrap, "--topic", "zstd", "--partition", "0", "--offset", "earliest"]
    shown = [f"--formatter-property=print.{name}={flag}" for name, flag in (("value", "false"), ("offset", "true"))]
    most = ["--max-messages", str(len(on_disk(ZSTD))), "--timeout-ms", "60000"]
    line = ["org.apache.kafka.tools.consumer.ConsoleConsumer", *where, *shown, *most]
    command = kafka.command(
        *line, "--command-config", str(configuration), options=["-Dorg.slf4j.simpleLogger.log=info"]
    )
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)


def offsets(ran: Ran) -> list[int]:
    return [int(line.removeprefix("Offset:").split()[0]) for line in ran.stdout.splitlines() if "Offset:" in line]


def login(mechanism: str, user: str, password: str, root_file: Path) -> dict[str, object]:
    module = MODULES.get(mechanism, "scram.ScramLoginModule")
    return {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": root_file,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": (
            f'org.apache.kafka.common.security.{module} required username="{user}" password="{password}";'
        ),
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_java_logs_in(kafka: Any, tmp_path: Path, root_file: Path, mechanism: str) -> None:
    with serving(ZSTD, security=security(tmp_path, has_logins=True)) as running:
        ran = consume(kafka, running, tmp_path, login(mechanism, "bob", "builder", root_file))
    assert offsets(ran) == [record.offset for record in on_disk(ZSTD)], ran.stderr[-2000:]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", ["bob", "nobody"])
def test_java_hears_kafkas_error(kafka: Any, tmp_path: Path, root_file: Path, mechanism: str, user: str) -> None:
    limits = Limits(failed_login_seconds=0.1)
    with serving(ZSTD, security=security(tmp_path, has_logins=True), limits=limits) as running:
        ran = consume(kafka, running, tmp_path, login(mechanism, user, "wrong", root_file))
    usual = f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    error = "Authentication failed: Invalid username or password" if mechanism == "PLAIN" else usual
    assert f"SaslAuthenticationException: {error}" in ran.stderr
    assert offsets(ran) == []


def test_java_shows_its_certificate(kafka: Any, tmp_path: Path, root_file: Path) -> None:
    own = write_files(tmp_path, "client", issue_certificate("client", root()))
    both = tmp_path / "both.pem"
    both.write_bytes(own.key.read_bytes() + own.certificate.read_bytes())
    properties = {
        "security.protocol": "SSL",
        "ssl.truststore.location": root_file,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": both,
    }
    with serving(ZSTD, security=security(tmp_path, clients=root_file)) as running:
        ran = consume(kafka, running, tmp_path, properties)
    assert offsets(ran) == [record.offset for record in on_disk(ZSTD)], ran.stderr[-2000:]


def test_java_without_a_certificate_is_told_so(kafka: Any, tmp_path: Path, root_file: Path) -> None:
    properties: dict[str, object] = {"security.protocol": "SSL", "ssl.truststore.location": root_file}
    with serving(ZSTD, security=security(tmp_path, clients=root_file)) as running:
        ran = consume(kafka, running, tmp_path, properties)
    assert "certificate_required" in ran.stderr
    assert offsets(ran) == []


def test_java_that_trusts_somebody_else_is_told_so(kafka: Any, tmp_path: Path) -> None:
    stranger = write_files(tmp_path, "stranger", issue_certificate("stranger"))
    properties: dict[str, object] = {"security.protocol": "SSL", "ssl.truststore.location": stranger.certificate}
    with serving(ZSTD, security=security(tmp_path)) as running:
        ran = consume(kafka, running, tmp_path, properties)
    assert "SslAuthenticationException: SSL handshake failed" in ran.stderr
    assert offsets(ran) == []
