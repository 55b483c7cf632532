"""Connections over TLS: clients read the same as without it; rejected clients read nothing."""

import asyncio
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from kseg.serve.connections import Security, server_tls
from kseg.serve.values import Limits
from tests import golden, run
from tests.fuzz.mutations import havoc
from tests.serve.certificates import Files, issue_certificate, root, write_files
from tests.serve.reading import Got, by_kafka_python, by_librdkafka, on_disk
from tests.serve.running import PATIENCE, Running, serving
from tests.serve.test_clients import by_aiokafka

ZSTD = golden.ROOT / "logs" / "4.3.1" / "zstd-0"
KCAT = shutil.which("kcat") or shutil.which("kafkacat")
KSEG = Path(sys.executable).with_name("kseg")
Read = dict[str, list[Got]]


class Pems(NamedTuple):
    """PEM files: the root, the server's and a client's certificates from it, and a stranger's."""

    root: Files
    server: Files
    client: Files
    stranger: Files


@pytest.fixture
def pems(tmp_path: Path) -> Pems:
    return Pems(
        write_files(tmp_path, "root", root()),
        write_files(tmp_path, "server", issue_certificate("server", root())),
        write_files(tmp_path, "client", issue_certificate("client", root())),
        write_files(tmp_path, "stranger", issue_certificate("stranger")),
    )


@pytest.fixture
def running(pems: Pems) -> Iterator[Running]:
    with serving(ZSTD, security=Security(server_tls(*pems.server))) as running:
        yield running


@pytest.fixture
def asking(pems: Pems) -> Iterator[Running]:
    """A server that asks clients for certificates."""
    with serving(ZSTD, security=Security(server_tls(*pems.server, pems.root.certificate))) as running:
        yield running


def librdkafka(running: Running, trusted: Path, own: Files | None) -> Read:
    files = {"ssl.certificate.location": own.certificate, "ssl.key.location": own.key} if own else {}
    settings = {name: str(path) for name, path in {"ssl.ca.location": trusted, **files}.items()}
    return by_librdkafka(running, **{"security.protocol": "ssl", **settings})


def aiokafka(running: Running, trusted: Path, own: Files | None) -> Read:
    from aiokafka.helpers import create_ssl_context  # type: ignore[import-untyped]

    files = {"certfile": str(own.certificate), "keyfile": str(own.key)} if own else {}
    context = create_ssl_context(cafile=str(trusted), **files)
    return asyncio.run(by_aiokafka(running, security_protocol="SSL", ssl_context=context))


def kafka_python(running: Running, trusted: Path, own: Files | None) -> Read:
    files = {"ssl_certfile": str(own.certificate), "ssl_keyfile": str(own.key)} if own else {}
    return by_kafka_python(running, security_protocol="SSL", ssl_cafile=str(trusted), **files)


ALL = [librdkafka, aiokafka, kafka_python]
Reader = Callable[[Running, Path, Files | None], Read]


@pytest.mark.parametrize("read", ALL)
def test_clients_read_over_tls_what_is_on_the_disk(running: Running, pems: Pems, read: Reader) -> None:
    assert read(running, pems.root.certificate, None)["zstd-0"] == on_disk(ZSTD)


@pytest.mark.parametrize("read", ALL)
def test_clients_with_a_certificate_are_let_in(asking: Running, pems: Pems, read: Reader) -> None:
    assert read(asking, pems.root.certificate, pems.client)["zstd-0"] == on_disk(ZSTD)


def error_of(running: Running, **settings: str) -> str:
    """Return librdkafka's error when it can't connect."""
    from confluent_kafka import Consumer

    said: list[str] = []
    fixed = {"bootstrap.servers": running.bootstrap, "group.id": "none", "security.protocol": "ssl"}
    consumer = Consumer({**fixed, "error_cb": lambda error: said.append(error.str()), **settings})
    for _ in range(50 * PATIENCE):
        consumer.poll(1 / 50)
        if said:
            break
    consumer.close()
    return said[0]


def test_a_client_that_trusts_somebody_else_sees_why_it_gets_nothing(running: Running, pems: Pems) -> None:
    said = error_of(running, **{"ssl.ca.location": str(pems.stranger.certificate)})
    assert "certificate verify failed" in said
    assert any("TLS: " in line and line.endswith(": closed") for line in running.requests)


@pytest.mark.parametrize("who", ["nobody", "stranger"])
def test_a_client_without_a_certificate_from_the_right_place_is_kept_out(asking: Running, pems: Pems, who: str) -> None:
    files = {"ssl.certificate.location": pems.stranger.certificate, "ssl.key.location": pems.stranger.key}
    own = files if who == "stranger" else {}
    settings = {name: str(path) for name, path in {"ssl.ca.location": pems.root.certificate, **own}.items()}
    assert ("alert unknown ca" if own else "alert certificate required") in error_of(asking, **settings)
    reason = "certificate verify failed" if own else "peer did not return a certificate"
    assert any(f"TLS: {reason}: closed" in line for line in asking.requests)


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x10\0\x12\0\0"])
def test_a_handshake_that_never_ends_is_given_up(pems: Pems, sent: bytes) -> None:
    security = Security(server_tls(*pems.server))
    with serving(ZSTD, security=security, limits=Limits(login_seconds=0.1)) as running:
        with socket.create_connection(running.address, PATIENCE) as half:
            half.sendall(sent)
            with suppress(ConnectionError):
                while half.recv(1000):
                    pass  # an alert
        assert [line for line in running.said if "Error" in line] == []


def test_mutated_handshakes_do_no_harm(running: Running, pems: Pems) -> None:
    random, sent = Random(5), ssl.MemoryBIO()
    client = ssl.create_default_context(cafile=pems.root.certificate).wrap_bio(
        ssl.MemoryBIO(), sent, server_hostname="127.0.0.1"
    )
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    hello = sent.read()
    for _ in range(300):
        with socket.create_connection(running.address, PATIENCE) as other, suppress(ConnectionError):
            other.sendall(havoc(random, hello))
            other.shutdown(socket.SHUT_WR)
            while other.recv(1000):
                pass
    assert librdkafka(running, pems.root.certificate, None)["zstd-0"] == on_disk(ZSTD)
    assert running.said == []


def test_connections_in_their_handshake_count_and_make_way(pems: Pems) -> None:
    security = Security(server_tls(*pems.server))
    with serving(ZSTD, security=security, limits=Limits(connections=1)) as running:
        first, second = (socket.create_connection(running.address, PATIENCE) for _ in range(2))
        with first, second:
            assert first.recv(1) == b""
            assert librdkafka(running, pems.root.certificate, None)["zstd-0"] == on_disk(ZSTD)
            assert second.recv(1) == b""


def serve(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([KSEG, "serve", ZSTD, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.skipif(KCAT is None, reason="kcat isn't installed")
def test_kcat_is_told_how_to_connect_by_its_configuration(tmp_path: Path) -> None:
    own = write_files(tmp_path, "own", issue_certificate("anywhere"))
    kcat = [str(KCAT), "-C", "-t", "zstd", "-o", "beginning", "-e", "-q", "-f", "%o\n"]
    ran = serve("--tls-cert", own.certificate, "--tls-key", own.key, "--", *kcat)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert list(map(int, ran.stdout.split())) == [record.offset for record in on_disk(ZSTD)]


def test_the_configuration_names_the_root(pems: Pems, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(pems.server.certificate.read_bytes() + pems.server.key.read_bytes())
    shown = ["--", "sh", "-c", 'cat "$KCAT_CONFIG"']
    ran = serve("--tls-cert", both, "--tls-ca", pems.root.certificate, "--advertise", "host:9092", *shown)
    assert ran.stdout.splitlines() == [
        "bootstrap.servers=host:9092",
        "security.protocol=ssl",
        f"ssl.ca.location={pems.root.certificate}",
    ]


def test_what_is_missing_is_warned_of(pems: Pems) -> None:
    others, nothing = ["--listen", "0.0.0.0:0"], ["--", "true"]
    line = "kseg: 0.0.0.0:0: anyone who reaches this address can read all served records: kseg asks for no password"
    with_tls = [*others, "--tls-cert", pems.server.certificate, "--tls-key", pems.server.key]
    assert serve(*others, *nothing).stderr == f"{line}, and encrypts nothing\n"
    assert serve(*with_tls, *nothing).stderr == f"{line}\n"
    assert serve(*with_tls, "--tls-ca", pems.root.certificate, *nothing).stderr == ""


def test_files_that_are_no_certificates_are_told(pems: Pems, tmp_path: Path) -> None:
    locked = write_files(tmp_path, "locked", issue_certificate("locked"), b"secret")

    def error(*arguments: Any) -> str:
        ran = run.kseg(["serve", str(ZSTD), *map(str, arguments)], tmp_path)
        assert ran.status == 2
        (line,) = ran.stderr.decode().splitlines()
        return line.removeprefix("kseg: ")

    server = pems.server
    no_key = f"{server.certificate}: no certificate with its private key in PEM: "
    assert error("--tls-key", server.key) == "--tls-key needs --tls-cert, the server's certificate"
    assert error("--tls-ca", server.key) == "--tls-ca needs --tls-cert, the server's certificate"
    assert error("--tls-cert", "not-there").startswith("not-there: can't be opened: ")
    assert error("--tls-cert", server.certificate).startswith(no_key)
    assert error("--tls-cert", server.certificate, "--tls-key", pems.client.key) == f"{no_key}key values mismatch"
    assert error("--tls-cert", locked.certificate, "--tls-key", locked.key).startswith(
        f"{locked.key}: its key has a passphrase; "
    )
    assert error("--tls-cert", server.certificate, "--tls-key", server.key, "--tls-ca", server.key).startswith(
        f"{server.key}: no certificates in PEM"
    )
