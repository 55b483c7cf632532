"""Log-in: allowed clients read, others get Kafka's error, and nothing else is answered before."""

import asyncio
import hmac
import shutil
import subprocess
import sys
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kseg.formats.messages import Fields
from kseg.serve.answer import RefusedError
from kseg.serve.connections import Security, server_tls
from kseg.serve.login import MECHANISMS, MOST_OF_A_HOST, Login, Logins, scram_credential
from kseg.serve.values import LARGEST_LOGIN_REQUEST, Limits
from tests import golden, run
from tests.fuzz.mutations import havoc
from tests.loops import for_each, some
from tests.protocol.packets import request
from tests.serve.certificates import Files, issue_certificate, root, write_files
from tests.serve.reading import Got, by_kafka_python, by_librdkafka, on_disk
from tests.serve.running import PATIENCE, Running, serving
from tests.serve.test_clients import by_aiokafka
from tests.serve.test_server import API_VERSIONS, FETCH, METADATA, Connection, fetch, open_connection

ZSTD = golden.ROOT / "logs" / "4.3.1" / "zstd-0"
KCAT = shutil.which("kcat") or shutil.which("kafkacat")
KSEG = Path(sys.executable).with_name("kseg")
HANDSHAKE, AUTHENTICATE = 17, 36
SCRAMS = MECHANISMS[:2]
NAME, PASSWORD = "al,i=ce", "se=cret, ü"  # all characters that SCRAM escapes
USERS = {"bob": "builder", NAME: PASSWORD}
SHORT = Limits(failed_login_seconds=0.01, leaving_seconds=0.1)


def logins() -> Logins:
    return Logins(USERS, MECHANISMS)


@pytest.fixture
def root_files(tmp_path: Path) -> Files:
    return write_files(tmp_path, "root", root())


@pytest.fixture
def encrypted_server(tmp_path: Path) -> Iterator[Running]:
    tls = server_tls(*write_files(tmp_path, "server", issue_certificate("server", root())))
    with serving(ZSTD, security=Security(tls, logins()), limits=SHORT) as running:
        yield running


@pytest.fixture
def running() -> Iterator[Running]:
    with serving(ZSTD, security=Security(None, logins()), limits=SHORT) as running:
        yield running


@pytest.fixture
def client(running: Running) -> Iterator[Connection]:
    with open_connection(running) as connection:
        yield connection


def librdkafka(running: Running, mechanism: str, password: str, trusted: Path) -> list[Got]:
    settings = {
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": str(trusted),
        "sasl.mechanism": mechanism,
        "sasl.username": NAME,
        "sasl.password": password,
    }
    return by_librdkafka(running, **settings)["zstd-0"]


def python_settings(mechanism: str, name: str, password: str) -> dict[str, str]:
    return {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": name,
        "sasl_plain_password": password,
    }


def aiokafka(running: Running, mechanism: str, password: str, trusted: Path) -> list[Got]:
    from aiokafka.helpers import create_ssl_context  # type: ignore[import-untyped]

    context = create_ssl_context(cafile=str(trusted))
    return asyncio.run(by_aiokafka(running, ssl_context=context, **python_settings(mechanism, NAME, password)))[
        "zstd-0"
    ]


def kafka_python(running: Running, mechanism: str, password: str, trusted: Path) -> list[Got]:
    settings = python_settings(mechanism, "bob", "builder" if password == PASSWORD else password)  # it escapes no name
    patience = 1000 * (PATIENCE if password == PASSWORD else 1)
    return by_kafka_python(running, ssl_cafile=str(trusted), bootstrap_timeout_ms=patience, **settings)["zstd-0"]


Reader = Callable[[Running, str, str, Path], list[Got]]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("read", [librdkafka, aiokafka, kafka_python])
def test_clients_that_log_in_read(encrypted_server: Running, root_files: Files, read: Reader, mechanism: str) -> None:
    assert read(encrypted_server, mechanism, PASSWORD, root_files.certificate) == on_disk(ZSTD)
    assert any(" logged in as " in line and line.endswith(f" by {mechanism}") for line in encrypted_server.requests)


def usual(mechanism: str) -> str:
    return f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"


ERRORS = {
    "SCRAM-SHA-256": usual("SCRAM-SHA-256"),
    "SCRAM-SHA-512": usual("SCRAM-SHA-512"),
    "PLAIN": "Authentication failed: Invalid username or password",
}


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", ["bob", "nobody"])
def test_librdkafka_hears_kafkas_error(encrypted_server: Running, root_files: Files, mechanism: str, name: str) -> None:
    from confluent_kafka import Consumer

    said: list[str] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": encrypted_server.bootstrap,
        "group.id": "none",
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": str(root_files.certificate),
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": "wrong",
        "error_cb": lambda error: said.append(error.str()),
    }
    consumer = Consumer(settings)
    for _ in range(50 * PATIENCE):
        consumer.poll(1 / 50)
        if said:
            break
    consumer.close()
    assert f"SASL authentication error: {ERRORS[mechanism]}" in said[0]
    told = f"log-in as '{name}' by {mechanism} failed: unknown user or wrong password: closed"
    assert any(told in line for line in encrypted_server.requests)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_is_kept_out_with_a_wrong_password(
    encrypted_server: Running, root_files: Files, mechanism: str
) -> None:
    from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

    with pytest.raises(KafkaError):
        aiokafka(encrypted_server, mechanism, "wrong", root_files.certificate)
    assert not any("logged in" in line or "Fetch" in line for line in encrypted_server.requests)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_is_kept_out_with_a_wrong_password(
    encrypted_server: Running, root_files: Files, mechanism: str
) -> None:
    from kafka.errors import KafkaError  # type: ignore[import-untyped]

    with pytest.raises(KafkaError):
        kafka_python(encrypted_server, mechanism, "wrong", root_files.certificate)
    assert not any("logged in" in line or "Fetch" in line for line in encrypted_server.requests)


def ask_bare(client: Connection, token: bytes) -> bytes:
    client.socket.sendall(len(token).to_bytes(4, "big") + token)
    return client.receive()


def authenticate(client: Connection, token: bytes, version: int = 2) -> Fields:
    return client.ask(AUTHENTICATE, version, {"authBytes": token})


def plain(name: str = NAME, password: str = PASSWORD, authorized: str = "") -> bytes:
    return "\0".join((authorized, name, password)).encode()


def begin(client: Connection, mechanism: str = "PLAIN", version: int = 1) -> None:
    assert client.ask(HANDSHAKE, version, {"mechanism": mechanism})["errorCode"] == 0


@pytest.mark.parametrize("version", range(3))
def test_who_is_logged_in_is_answered_and_needs_no_more(client: Connection, version: int) -> None:
    begin(client)
    answer = authenticate(client, plain(), version)
    assert (answer["errorCode"], answer["authBytes"], answer.get("sessionLifetimeMs", 0)) == (0, b"", 0)
    assert client.ask(METADATA, 9, {"topics": None})["topics"]
    assert client.ask(HANDSHAKE, 1, {"mechanism": "PLAIN"})["errorCode"] == 34
    again = authenticate(client, plain())
    message = "SaslAuthenticate request received after successful authentication"
    assert (again["errorCode"], again["errorMessage"]) == (34, message)
    assert client.ask(METADATA, 9, {"topics": None})["topics"]


def test_old_clients_send_bare_tokens(client: Connection) -> None:
    begin(client, version=0)
    assert ask_bare(client, plain()) == b""
    assert client.ask(METADATA, 9, {"topics": None})["topics"]


def test_old_clients_with_a_wrong_password_are_closed(client: Connection) -> None:
    begin(client, version=0)
    with pytest.raises((EOFError, ConnectionError)):
        ask_bare(client, plain(password="wrong"))


@pytest.mark.parametrize("key", [FETCH, METADATA, AUTHENTICATE])
def test_nothing_is_answered_before(running: Running, client: Connection, key: int) -> None:
    body = {FETCH: fetch(), METADATA: {"topics": None}, AUTHENTICATE: {"authBytes": plain()}}[key]
    assert client.ask(API_VERSIONS, 3, {"clientSoftwareName": "a", "clientSoftwareVersion": "1"})["apiKeys"]
    client.send(key, 2 if key == AUTHENTICATE else 9, body)
    assert client.is_closed()
    assert running.requests[-1].endswith(": not logged in: closed")


@pytest.mark.parametrize("key", [FETCH, METADATA, HANDSHAKE, API_VERSIONS])
def test_nothing_else_is_answered_while_logging_in(client: Connection, key: int) -> None:
    begin(client)
    client.send(key, 1 if key == HANDSHAKE else 4, {"mechanism": "PLAIN"} if key == HANDSHAKE else {})
    assert client.is_closed()


def test_other_mechanisms_are_refused_with_those_that_there_are(client: Connection) -> None:
    answer = client.ask(HANDSHAKE, 1, {"mechanism": "GSSAPI"})
    assert (answer["errorCode"], answer["mechanisms"]) == (33, list(MECHANISMS))
    assert client.is_closed()


@for_each(
    "mechanism, token",
    [
        ("PLAIN", b""),
        ("PLAIN", b"no zeros"),
        ("PLAIN", b"\0\0"),
        ("PLAIN", plain() + b"\0"),
        ("PLAIN", plain(authorized="bob")),
        ("PLAIN", b"\xff\0\xff\0\xff"),
        ("SCRAM-SHA-256", b""),
        ("SCRAM-SHA-256", b"n,,n=bob"),
        ("SCRAM-SHA-256", b"p=tls-unique,,n=bob,r=abc"),
        ("SCRAM-SHA-256", b"n,,m=must,n=bob,r=abc"),
        ("SCRAM-SHA-256", b"n,a=other,n=bob,r=abc"),
        ("SCRAM-SHA-512", b"n,,n=b=3db,r=abc"),
    ],
)
def test_what_is_no_first_token_is_refused(running: Running, mechanism: str, token: bytes) -> None:
    with open_connection(running) as client:
        begin(client, mechanism)
        assert authenticate(client, token)["errorCode"] == 58
        assert client.is_closed()


FINALS = (
    b"",
    b"c=biws,r=%b",
    b"c=biws,r=%b,p=",
    b"c=biws,r=%b,p=AAAA",
    b"c=biws,r=%b,p=" + b64encode(bytes(32)),
    b"c=biws,r=%b,p=" + b64encode(bytes(64)),
    b"c=biws,r=other%b,p=" + b64encode(bytes(32)),
    b"c=eSws,r=%b,p=" + b64encode(bytes(32)),
    b"c=b,r=%b,p=b",
)


@for_each("final, mechanism, name", some(product(FINALS, SCRAMS, ["bob", "nobody"]), 3))
def test_what_proves_nothing_is_refused(running: Running, mechanism: str, name: str, final: bytes) -> None:
    with open_connection(running) as client:
        begin(client, mechanism)
        answer = authenticate(client, b"n,,n=%b,r=abc" % name.encode())
        nonce, salt, iterations = (part[2:] for part in answer["authBytes"].split(b","))
        assert (answer["errorCode"], nonce[:3], len(salt), iterations) == (0, b"abc", 24, b"4096")
        refused = authenticate(client, final % nonce if b"%b" in final else final)
        assert (refused["errorCode"], refused["errorMessage"]) == (58, usual(mechanism))
        assert client.is_closed()


def test_passwords_and_proofs_are_compared_in_constant_time(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong one is compared once, as a whole, by the standard library's function; also an unknown user's."""
    compare, compared = hmac.compare_digest, []

    def note(ours: bytes, theirs: bytes) -> bool:
        compared.append((len(ours), len(theirs)))
        return compare(ours, theirs)

    monkeypatch.setattr(hmac, "compare_digest", note)
    for mechanism, name in product(("PLAIN", "SCRAM-SHA-256"), (b"bob", b"nobody")):
        with open_connection(running) as client:
            begin(client, mechanism)
            token = b"\0%b\0wrong" % name
            if mechanism != "PLAIN":
                nonce = authenticate(client, b"n,,n=%b,r=abc" % name)["authBytes"].split(b",")[0][2:]
                token = b"c=biws,r=%b,p=%b" % (nonce, b64encode(bytes(32)))
            assert authenticate(client, token)["errorCode"] == 58
    assert compared == [(32, 32)] * 4


def test_unknown_users_have_a_salt_that_stays(running: Running) -> None:
    salts = set()
    for _ in range(2):
        with open_connection(running) as client:
            begin(client, "SCRAM-SHA-256")
            salts.add(authenticate(client, b"n,,n=nobody,r=abc")["authBytes"].split(b",")[1])
    assert len(salts) == 1


EXCHANGED = (
    b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
)


def test_credentials_are_those_of_the_standard() -> None:
    """The example of RFC 7677."""
    credential = scram_credential("SCRAM-SHA-256", "pencil", b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
    signature = hmac.digest(credential.server_key, EXCHANGED, "sha256")
    assert b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_requests_before_logging_in_are_small(client: Connection) -> None:
    client.socket.sendall((LARGEST_LOGIN_REQUEST + 1).to_bytes(4, "big"))
    assert client.is_closed()


def test_who_takes_too_long_to_log_in_is_closed() -> None:
    limits = Limits(login_seconds=0.05)
    with serving(ZSTD, security=Security(None, logins()), limits=limits) as running, open_connection(running) as client:
        begin(client)
        assert client.is_closed()


def test_failed_log_ins_wait_and_hold_up_no_other_host() -> None:
    """While the most log-ins fail at once, their host can't log in, and logged-in clients are served."""
    security = Security(None, logins())
    limits = Limits(failed_login_seconds=PATIENCE, login_seconds=PATIENCE)
    with (
        serving(ZSTD, security=security, limits=limits) as running,
        ExitStack() as guesses,
        open_connection(running) as known,
    ):
        begin(known)
        assert authenticate(known, plain())["errorCode"] == 0
        for _ in range(MOST_OF_A_HOST):
            guess = guesses.enter_context(open_connection(running))
            begin(guess)
            guess.send(AUTHENTICATE, 2, {"authBytes": plain(password="guess")})
        with open_connection(running) as late:
            begin(late)
            late.send(AUTHENTICATE, 2, {"authBytes": plain()})
            assert late.is_closed()
        assert running.requests[-1].endswith("too many failed log-ins from this host at once: closed")
        assert known.ask(METADATA, 9, {"topics": None})["topics"]


def test_mutated_log_ins_are_answered_or_refused() -> None:
    random, known = Random(4), logins()
    tokens = [plain(), b"n,,n=bob,r=abc", b"y,a=bob,n=bob,r=abc,x=y", b"c=biws,r=,p="]
    problems = []
    for number in range(5_000):
        login = Login(known, "host")
        mechanism = random.choice(MECHANISMS)
        frames = [request(HANDSHAKE, random.randrange(2), {"mechanism": mechanism})]
        frames += [request(AUTHENTICATE, random.randrange(3), {"authBytes": token}) for token in tokens]
        try:
            for frame in (frames[0], random.choice(frames[1:]), random.choice(frames[1:])):
                login.step(havoc(random, frame) if random.random() < 0.5 else frame)
        except RefusedError as error:
            problems += [number] if "\n" in str(error) else []
        assert login.user is None or login.user in USERS
    assert problems == []


def test_thousands_of_wrong_passwords_do_no_harm(running: Running) -> None:
    def guess() -> None:
        for _ in range(50):
            try:
                with open_connection(running) as client:
                    begin(client)
                    assert authenticate(client, plain(password="guess"))["errorCode"] == 58
            except (EOFError, ConnectionError):
                continue

    threads = [threading.Thread(target=guess) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open_connection(running) as client:
        begin(client)
        assert authenticate(client, plain())["errorCode"] == 0
    assert running.said == []


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    path.write_text("# who may read\n\nbob:builder\nal,i=ce:with:colon\n")
    path.chmod(0o600)
    return path


def serve(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([KSEG, "serve", ZSTD, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.skipif(KCAT is None, reason="kcat isn't installed")
@pytest.mark.parametrize("mechanism", SCRAMS)
def test_the_command_logs_in_by_its_configuration(users: Path, mechanism: str) -> None:
    kcat = [str(KCAT), "-C", "-t", "zstd", "-o", "beginning", "-e", "-q", "-f", "%o\n"]
    ran = serve("--sasl-users", users, "--sasl-mechanism", mechanism, "--", *kcat)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert list(map(int, ran.stdout.split())) == [record.offset for record in on_disk(ZSTD)]


@pytest.mark.skipif(KCAT is None, reason="kcat isn't installed")
@pytest.mark.parametrize(("name", "password", "status"), [("al,i=ce", "with:colon", 0), ("bob", "alice", 1)])
def test_kcat_logs_in_as_a_user_of_the_file(users: Path, name: str, password: str, status: int) -> None:
    own = users.with_name("own.conf")
    own.write_text(
        f"security.protocol=sasl_plaintext\nsasl.mechanism=SCRAM-SHA-256\n"
        f"sasl.username={name}\nsasl.password={password}\n"
    )
    ran = serve("--sasl-users", users, "--", str(KCAT), "-F", own, "-b", "{bootstrap}", "-L", "-m1")
    assert ran.returncode == status
    assert ('topic "zstd"' in ran.stdout) == (status == 0)


def test_without_listen_this_machine_alone_is_served(users: Path) -> None:
    assert serve("--", "echo", "{bootstrap}").stdout.startswith("127.0.0.1:")
    ran = subprocess.run([KSEG, "serve", "--help"], capture_output=True, text=True, check=True)
    assert "[default: 127.0.0.1:9092]" in " ".join(ran.stdout.split())


def test_files_that_others_can_read_are_warned_of(users: Path) -> None:
    users.chmod(0o640)
    ran = serve("--sasl-users", users, "--", "true")
    assert ran.stderr == (
        f"kseg: {users}: other users of this machine can read the passwords; run `chmod 600 {users}` to prevent that\n"
    )


def test_passwords_without_encryption_are_warned_of_at_other_addresses(users: Path) -> None:
    ran = serve("--sasl-users", users, "--listen", "0.0.0.0:0", "--", "true")
    assert ran.stderr == (
        "kseg: 0.0.0.0:0: anyone on the network path to this address can read all records, since nothing is encrypted\n"
    )


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "the file has 0 users; specify 1 to 1000, one line USER:PASSWORD each"),
        (b"bob\n", "line 1 isn't USER:PASSWORD"),
        (b"\nbob:\n", "line 2 isn't USER:PASSWORD"),
        (b":builder\n", "line 1 isn't USER:PASSWORD"),
        (b"bob:a\nbob:b\n", "line 2: this user has a password already"),
        (b"bob:\xff\n", "line 1 isn't UTF-8"),
    ],
)
def test_what_is_no_user_is_told(users: Path, content: bytes, line: str) -> None:
    users.write_bytes(content)
    ran = run.kseg(["serve", str(ZSTD), "--sasl-users", str(users)], users.parent)
    assert (ran.status, ran.stderr.decode()) == (2, f"kseg: {users}: {line}\n")


def test_plain_is_refused_without_tls(users: Path) -> None:
    ran = run.kseg(["serve", str(ZSTD), "--sasl-users", str(users), "--sasl-mechanism", "PLAIN"], users.parent)
    line = "--sasl-mechanism PLAIN needs --tls-cert, which encrypts the passwords"
    assert (ran.status, ran.stderr.decode()) == (2, f"kseg: {line}\n")


def test_mechanisms_need_users(users: Path) -> None:
    ran = run.kseg(["serve", str(ZSTD), "--sasl-mechanism", "SCRAM-SHA-256"], users.parent)
    assert (ran.status, ran.stderr.decode()) == (2, "kseg: --sasl-mechanism needs --sasl-users\n")
