"""`kseg serve`: the command, its address, its child command, and its end."""

import os
import pty
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests import golden, run
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.processes import start_process

LOGS = golden.ROOT / "logs" / "4.3.1"
KSEG = Path(sys.executable).with_name("kseg")
ROOT = golden.ROOT.parent
FETCH = f"""
import socket, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.protocol.packets import frame_message, request
part = {{"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1 << 20}}
body = {{"replicaId": -1, "maxBytes": 1 << 20, "topics": [{{"topic": "lz4", "partitions": [part]}}]}}
host, port = sys.argv[1].split(":")
with socket.create_connection((host, int(port))) as client, client.makefile("rb") as stream:
    client.sendall(frame_message(request(1, 4, body)))
    sys.stdout.write(stream.read(int.from_bytes(stream.read(4), "big")).hex())
"""
FRAME = "04224d186040"
"""Beginning of a frame of lz4; the checksum follows."""
ANSWER = "import socket, sys; host, port = sys.argv[1].split(':'); socket.create_connection((host, int(port)))"

COMMITTED = """
import sys
from confluent_kafka import Consumer, TopicPartition
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "g-new-live"})
print(consumer.committed([TopicPartition("plain", 0)], 60)[0].offset)
"""


def serve(*arguments: str | Path, directory: Path = LOGS) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([KSEG, "serve", *arguments], cwd=directory, capture_output=True, text=True, check=False)


def test_a_command_is_run_against_the_server() -> None:
    ran = serve("zstd-0", "--", sys.executable, "-c", ANSWER, "{bootstrap}")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_a_command_finds_the_server_in_its_environment() -> None:
    ran = serve("zstd-0", "--", "sh", "-c", 'echo "$KSEG_BOOTSTRAP {bootstrap}"; cat "$KCAT_CONFIG"')
    address = ran.stdout.split()[0]
    assert ran.stdout == f"{address} {address}\nbootstrap.servers={address}\n"
    assert address.startswith("127.0.0.1:")


def test_kseg_itself_knows_the_environment_of_the_command() -> None:
    ran = serve("zstd-0", "--", KSEG, "get", "zstd-0", "--offset", "282", "--field", "key")
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_the_status_is_that_of_the_command(script: str, status: int) -> None:
    assert serve("zstd-0", "--", "sh", "-c", script).returncode == status


@pytest.mark.parametrize(("options", "checksum"), [([], "1a"), (["--fix-lz4"], "82")])
def test_lz4_of_0_9_gets_right_checksums_if_wanted(options: list[str], checksum: str) -> None:
    fetch = (sys.executable, "-c", FETCH, "{bootstrap}")
    sent = serve("lz4-0", *options, "--", *fetch, directory=golden.ROOT / "logs" / "0.9.0.1").stdout
    assert {sent[at : at + 2] for at in (part.end() for part in re.finditer(FRAME, sent))} == {checksum}


def test_options_after_the_first_two_dashes_are_the_commands() -> None:
    assert serve("zstd-0", "--", "echo", "--topic", "--", "-v").stdout == "--topic -- -v\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["zstd-0", "--"], "kseg: serve: the command after -- is missing; see `kseg serve --help`"),
        (["zstd-0", "--", "./not-there"], "kseg: ./not-there: can't be run: No such file or directory"),
        (["zstd-0", "--topic", "other"], "kseg: --topic other: no such partition here; there are zstd (0)"),
        (["not-there"], "kseg: not-there: no such file or directory"),
        (["zstd-0", "--server-properties", "not-there"], "kseg: not-there: can't be opened: No such file or directory"),
    ],
)
def test_wrong_use_is_told_in_a_line(arguments: list[str], line: str) -> None:
    ran = run.kseg(["serve", *arguments], LOGS)
    assert (ran.status, ran.stderr.decode()) == (2, f"{line}\n")


@pytest.mark.parametrize("address", ["9092", "host:", ":1", "host:65536", "::1:9092", "[host]:1", "a b:1", "host:-1"])
def test_what_is_no_address_is_told(address: str) -> None:
    ran = run.kseg(["serve", "zstd-0", "--listen", address], LOGS)
    assert ran.status == 2
    assert "isn't HOST:PORT" in ran.stderr.decode()


def test_an_address_that_is_taken_is_told_in_a_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        ran = serve("zstd-0", "--listen", taken)
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert line.startswith(f"kseg: {taken}: kseg can't listen there: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_server(number: signal.Signals) -> None:
    with start_process([KSEG, "serve", "zstd-0", "--listen", "127.0.0.1:0"], LOGS) as server:
        assert server.stdout is not None
        address = server.stdout.readline().decode().strip()
        host, port = address.split(":")
        socket.create_connection((host, int(port))).close()
        server.send_signal(number)
        _, said = server.communicate(timeout=60)
    assert server.returncode == 0
    assert said.decode() == f"kseg: serving 1 partition of 1 topic at {address}; Ctrl-C ends\n"


def test_addresses_that_others_reach_are_warned_of() -> None:
    ran = serve("zstd-0", "--listen", "0.0.0.0:0", "--", "echo", "{bootstrap}")
    assert ran.stdout.startswith("127.0.0.1:")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("kseg: 0.0.0.0:0: anyone who reaches this address can read all served records")


def test_clients_are_told_what_is_advertised() -> None:
    ran = serve("zstd-0", "--advertise", "elsewhere.example:9092", "--", "echo", "{bootstrap}")
    assert ran.stdout == "elsewhere.example:9092\n"


def test_internal_topics_may_be_left_out(tmp_path: Path) -> None:
    for name in ("__consumer_offsets-3", "orders-0"):
        write_segment(tmp_path / name, [NewBatch([NewRecord(b"k", b"v")])])
    assert (
        "__consumer_offsets, of probably 50 partitions: partitions 0, 1, 2, 4, 5, 6, 7, 8, … aren't here"
        in serve("--", "true", directory=tmp_path).stderr
    )
    assert serve("--no-internal", "--", "true", directory=tmp_path).stderr == ""


@pytest.mark.parametrize("choice", [("--topic", "zstd"), ("--no-internal",), ()])
def test_groups_have_their_offsets_whatever_is_served(choice: tuple[str, ...]) -> None:
    ran = serve(*choice, "--", sys.executable, "-c", COMMITTED, "{bootstrap}")
    assert (ran.returncode, ran.stdout) == (0, "162\n")


def test_directories_that_a_broker_put_aside_are_not_served(tmp_path: Path) -> None:
    aside = f"orders-0.{'0' * 32}-delete"
    for name in (aside, "orders-0"):
        write_segment(tmp_path / name, [NewBatch([NewRecord(b"k", b"v")])])
    ran = serve("--", "true", directory=tmp_path)
    assert (ran.returncode, ran.stderr) == (
        0,
        "kseg: 1 partition; 1 directory omitted\n"
        f"kseg: omitted: {aside}: about to be deleted by its broker (-delete)\n",
    )


def test_figures_are_shown_on_a_terminal_and_go_at_the_end() -> None:
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    command = [KSEG, "serve", "zstd-0", "--listen", "127.0.0.1:0"]
    with start_process(command, LOGS, stderr=follower, environment=environment) as server:
        assert server.stdout is not None
        host, port = server.stdout.readline().decode().strip().split(":")
        with socket.create_connection((host, int(port))):
            shown = b""
            while b"1 client, 0.0 MiB/s" not in shown:
                shown += os.read(leader, 4096)
        server.send_signal(signal.SIGINT)
        assert server.wait() == 0
        os.close(follower)
        assert b"\x1b[2K" in os.read(leader, 4096)
    os.close(leader)
