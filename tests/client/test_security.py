"""Secure connections of the client: settings as Kafka's Java client has them, TLS, certificates, log-ins.

The server is `kseg serve`, whose log-ins other clients test.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from kseg.client.brokers import Brokers
from kseg.client.connection import METADATA, Connection, await_answers
from kseg.client.security import Login
from kseg.client.settings import read_client_settings
from kseg.errors import ClusterError, KsegError, UsageError
from kseg.serve.connections import Security, server_tls
from kseg.serve.login import MECHANISMS, Logins
from kseg.serve.values import Limits
from tests import golden
from tests.serve.certificates import Certified, Files, issue_certificate, root, write_files
from tests.serve.running import Running, serving

ZSTD = golden.ROOT / "logs" / "4.3.1" / "zstd-0"
USER, PASSWORD = "al,i=ce", 'se=c"ret\\ ü'  # all characters that SCRAM or JAAS escapes
SHORT = Limits(failed_login_seconds=0.01, leaving_seconds=0.1)
ALL_TOPICS = {"topics": None, "allowAutoTopicCreation": False}


class Pems(NamedTuple):
    """Files of the root, of the server, and of a client."""

    root: Files
    server: Files
    client: Path


@pytest.fixture
def pems(tmp_path: Path) -> Pems:
    client = write_files(tmp_path, "client", issue_certificate("client", root()), b"passphrase")
    both = tmp_path / "both.pem"
    both.write_bytes(client.key.read_bytes() + client.certificate.read_bytes())
    server = write_files(tmp_path, "server", issue_certificate("server", root()))
    return Pems(write_files(tmp_path, "root", root()), server, both)


@pytest.fixture
def server(pems: Pems) -> Iterator[Running]:
    """A server with TLS and log-ins."""
    with serving(
        ZSTD, security=Security(server_tls(*pems.server), Logins({USER: PASSWORD}, MECHANISMS)), limits=SHORT
    ) as running:
        yield running


def write_settings(pems: Pems, **values: str | Path | None) -> Path:
    """Write settings with the right root and log-in, and others, by their names with _ for dots."""
    quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    settings = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": pems.root.certificate,
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'some.LoginModule required username="{USER}" password="{quoted}";',
        **{name.replace("_", "."): value for name, value in values.items()},
    }
    path = pems.client.with_name("client.properties")
    lines = [
        f"{name}={str(value).replace(chr(92), chr(92) * 2)}\n" for name, value in settings.items() if value is not None
    ]
    path.write_text("".join(lines).encode("ascii", "backslashreplace").decode().replace("\\xfc", "\\u00fc"))
    path.chmod(0o600)
    return path


def topics(server: Running, settings: Path) -> list[str]:
    host, port = server.address
    with Brokers([(host, port)], 5, read_client_settings(settings).security) as brokers:
        return [*brokers.topics()]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_log_in_over_tls(server: Running, pems: Pems, mechanism: str) -> None:
    assert topics(server, write_settings(pems, sasl_mechanism=mechanism)) == ["zstd"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_refused_at_once(server: Running, pems: Pems, mechanism: str) -> None:
    settings = write_settings(
        pems, sasl_mechanism=mechanism, sasl_jaas_config="L required username=bob password='hidden';"
    )
    with pytest.raises(ClusterError, match=r"refuses the log-in of bob: Authentication failed") as caught:
        topics(server, settings)
    assert "hidden" not in str(caught.value)


def test_a_client_may_show_a_certificate(pems: Pems) -> None:
    security = Security(server_tls(*pems.server, pems.root.certificate))
    with serving(ZSTD, security=security, limits=SHORT) as running:
        settings = write_settings(
            pems, security_protocol="SSL", ssl_keystore_location=pems.client, ssl_key_password="passphrase"
        )
        assert topics(running, settings) == ["zstd"]
        with pytest.raises(ClusterError, match=r"TLS fails: .*certificate required"):
            topics(running, write_settings(pems, security_protocol="SSL"))


def test_an_unknown_certificate_is_not_accepted(server: Running, pems: Pems, tmp_path: Path) -> None:
    other = write_files(tmp_path, "other", issue_certificate("other"))
    with pytest.raises(ClusterError, match=r"its certificate isn't accepted: .*; check ssl.truststore.location"):
        topics(server, write_settings(pems, ssl_truststore_location=other.certificate))


def test_roots_may_be_part_of_the_settings(server: Running, pems: Pems) -> None:
    text = pems.root.certificate.read_text().replace("\n", "\\n")
    settings = write_settings(pems, ssl_truststore_location=None)
    with settings.open("a") as lines:
        lines.write(f"ssl.truststore.certificates={text}\n")
    assert topics(server, settings) == ["zstd"]


def test_the_name_of_the_host_is_checked_unless_it_should_not_be(server: Running, pems: Pems) -> None:
    address = ("localhost", server.address[1])
    strict = read_client_settings(write_settings(pems)).security
    with pytest.raises(ClusterError, match=r"its certificate isn't accepted: Hostname mismatch"):
        Connection.open(address, strict)
    lax = read_client_settings(write_settings(pems, ssl_endpoint_identification_algorithm="")).security
    Connection.open(address, lax).close()


def test_a_wrong_protocol_is_named(server: Running, pems: Pems) -> None:
    with (
        pytest.raises(ClusterError, match=r"specify --command-config|wants TLS"),
        Brokers([server.address], 0) as brokers,
    ):
        brokers.topics()
    with serving(ZSTD) as plain, pytest.raises(ClusterError, match=r"TLS fails|can't be reached|closed the connection"):
        topics(plain, write_settings(pems))


def test_several_answers_are_taken_from_one_record_of_tls(server: Running, pems: Pems) -> None:
    connection = Connection.open(server.address, read_client_settings(write_settings(pems)).security)
    for _ in range(5):
        connection.send(METADATA, ALL_TOPICS)
    answers = 0
    while connection.under_way:
        assert await_answers([connection], 5) == [connection]
        assert connection.receive()["topics"]
        answers += 1
    connection.close()
    assert answers == 5


# --- settings --------------------------------------------------------------------------------------------------------


def test_passwords_may_come_from_the_environment(pems: Pems, monkeypatch: pytest.MonkeyPatch) -> None:
    jaas = 'L required username="u" password="${env:KAFKA_PASSWORD}";'
    settings = write_settings(pems, sasl_jaas_config=jaas)
    monkeypatch.setenv("KAFKA_PASSWORD", "from outside")
    assert read_client_settings(settings).security.login == Login("PLAIN", "u", "from outside")
    monkeypatch.delenv("KAFKA_PASSWORD")
    with pytest.raises(UsageError, match=r"sasl.jaas.config: the environment has no variable KAFKA_PASSWORD"):
        read_client_settings(settings)


def test_a_token_comes_from_a_file(pems: Pems, tmp_path: Path) -> None:
    (tmp_path / "a token").write_text("ab.cd.\n")
    wanted = {"sasl_mechanism": "OAUTHBEARER", "sasl_jaas_config": "L required;"}
    settings = write_settings(pems, **wanted)
    with settings.open("a") as lines:
        lines.write(f"sasl.oauthbearer.token.endpoint.url=file://{tmp_path}/a%20token\n")
    login = read_client_settings(settings).security.login
    assert login == Login("OAUTHBEARER", "", "ab.cd.")
    assert login is not None
    tokens = login.tokens()
    assert next(tokens) == b"n,,\1auth=Bearer ab.cd.\1\1"
    assert tokens.send(b'{"status":"invalid_token"}') == b"\1"


def test_secrets_are_not_shown() -> None:
    assert "hidden" not in repr(Login("PLAIN", "u", "hidden"))


def test_other_settings_are_named_once(pems: Pems) -> None:
    settings = write_settings(pems, acks="all", client_id="c", config_providers="env")
    assert read_client_settings(settings).notes == (f"{settings}: kseg ignores acks, client.id",)
    settings.chmod(0o644)
    assert read_client_settings(settings).notes[1].endswith(f"run `chmod 600 {settings}` to prevent that")


def write_key_store(directory: Path) -> Path:
    own: Certified = issue_certificate("client", root())
    path = directory / "client.p12"
    encryption = serialization.BestAvailableEncryption(b"x")
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"c", own.key, own.certificate, None, encryption))
    return path


def test_key_stores_of_java_are_refused_with_the_command_that_converts_them(pems: Pems, tmp_path: Path) -> None:
    keys = write_key_store(tmp_path)
    jks = tmp_path / "trusted.jks"
    jks.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    with pytest.raises(UsageError) as caught:
        read_client_settings(write_settings(pems, ssl_keystore_location=keys))
    pem = tmp_path / "client.pem"
    expected = f"{keys} is a PKCS12 file, and kseg reads PEM; run `openssl pkcs12 -in {keys} -out {pem}`, then set"
    assert f"ssl.keystore.location: {expected} ssl.keystore.location to {pem}" in str(caught.value)
    with pytest.raises(UsageError, match=r"is a JKS file, .* `keytool -list -rfc -keystore .*trusted.jks >"):
        read_client_settings(write_settings(pems, ssl_truststore_location=jks))
    with pytest.raises(UsageError, match=r"`keytool -importkeystore .* && openssl pkcs12 -in .*trusted.p12 -out"):
        read_client_settings(write_settings(pems, ssl_keystore_location=jks))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"security.protocol": "TLS"}, "security.protocol: TLS isn't one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"sasl.mechanism": "NTLM"}, "sasl.mechanism: kseg has no NTLM; use a listener with PLAIN, SCRAM-SHA-256, "),
        (
            {"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka"},
            "sasl.mechanism: kseg has no log-in by Kerberos (GSSAPI); use a listener with PLAIN, ",
        ),
        ({"sasl.mechanism": None}, "sasl.mechanism: kseg has no log-in by Kerberos (GSSAPI)"),
        (
            {
                "sasl.mechanism": "AWS_MSK_IAM",
                "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
            },
            "sasl.mechanism: kseg has no log-in by AWS IAM (AWS_MSK_IAM); use a listener with PLAIN, ",
        ),
        ({"sasl.jaas.config": None}, "sasl.jaas.config: security.protocol SASL_SSL needs it"),
        ({"sasl.jaas.config": "L required username"}, "sasl.jaas.config: it isn't CLASS required username="),
        ({"sasl.jaas.config": "L required username=u;"}, "sasl.jaas.config: PLAIN needs a password"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "token.endpoint.url: kseg asks no server for a token; write one to a file"),
        ({"ssl.keystore.key": "k"}, "ssl.keystore.key: kseg reads keys only from files; write key and "),
        ({"ssl.truststore.location": "/none"}, "/none: can't be opened"),
        ({"ssl.truststore.location": None, "ssl.truststore.certificates": "x"}, "certificates: no certificates in PEM"),
    ],
)
def test_wrong_settings_are_named(pems: Pems, values: dict[str, str | None], problem: str) -> None:
    settings = write_settings(pems, **{name.replace(".", "_"): value for name, value in values.items()})
    with pytest.raises(KsegError) as caught:
        read_client_settings(settings)
    assert problem in str(caught.value)
