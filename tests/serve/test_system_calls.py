"""A server's system calls: sending of records, and memory while nobody reads."""

import os
import re
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes import start_process
from tests.protocol.packets import frame_message, request
from tests.serve.load import MIB, Server, make_partition, server_of
from tests.serve.test_server import FETCH, METADATA

STRACE = shutil.which("strace")
KSEG = Path(sys.executable).with_name("kseg")
BATCHES = 32
MOST_CALLS = 24
"""A fetch takes 15 of the counted calls."""
MOST_GROWTH = 64
"""MiB; 2,000 answers of 1 MiB would take far more."""


def fetch_large(offset: int, most: int) -> bytes:
    part = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": most}
    body = {"minBytes": 1, "maxBytes": most, "replicaId": -1, "topics": [{"topic": "large", "partitions": [part]}]}
    return frame_message(request(FETCH, 11, body))


def take_answer(client: socket.socket) -> int:
    """Read a complete answer, and return its size."""
    answer = client.makefile("rb")
    size = int.from_bytes(answer.read(4), "big")
    assert len(answer.read(size)) == size
    return size


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A directory with a partition of large batches."""
    make_partition(tmp_path, BATCHES * 2 * MIB)
    return tmp_path


NEEDS_STRACE = pytest.mark.skipif(
    STRACE is None, reason="strace isn't installed; test_server counts calls of os.sendfile"
)


@contextmanager
def traced(directory: Path, calls: Path, wanted: str) -> Iterator[socket.socket]:
    """Run a server whose system calls of some names go to a file, and connect to it."""
    command = [str(STRACE), "-E", "PYTHONDONTWRITEBYTECODE=1", "-f", "-qq", "-e", f"trace={wanted}", "-o", calls]
    with start_process([*command, KSEG, "serve", directory, "-q", "--listen", "127.0.0.1:0"], directory) as process:
        assert process.stdout is not None
        host, port = process.stdout.readline().decode().strip().rsplit(":", 1)
        with socket.create_connection((host, int(port))) as client:
            yield client
        os.killpg(process.pid, signal.SIGTERM)  # strace itself ends with the server
        process.wait()


@NEEDS_STRACE
def test_records_go_out_by_sendfile_alone(large: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    with traced(large, calls, "sendfile,sendto,write,writev,sendmsg") as client:
        client.sendall(fetch_large(0, 8 * MIB))
        size = take_answer(client)
    done = re.findall(r"(?:\d+ +)(?:<\.\.\. )?(\w+)(?:\(| resumed).* = (\d+)$", calls.read_text(), re.MULTILINE)
    by_system = sum(int(count) for name, count in done if name == "sendfile")
    by_copy = sum(int(count) for name, count in done if name != "sendfile")
    assert size - 1000 < by_system < size
    assert by_copy < 10_000


@pytest.mark.skipif(STRACE is None, reason="strace isn't installed")
def test_a_fetch_from_memory_takes_few_system_calls(large: Path, tmp_path: Path) -> None:
    calls, fetches = tmp_path / "calls", 50
    with traced(large, calls, "clock_gettime,setsockopt,getpid,sendto,newfstatat,fstat,stat,pread64") as client:
        for _ in range(fetches):
            client.sendall(fetch_large(0, MIB // 2))
            take_answer(client)
        while_reading = calls.read_text()
    after_first_answer = while_reading[while_reading.index("sendto(") :]
    assert after_first_answer.count("\n") < MOST_CALLS * fetches


def test_answers_that_nobody_takes_need_no_memory(large: Path) -> None:
    with server_of(large) as server, asking(server) as client:
        client.sendall(frame_message(request(METADATA, 9, {"topics": None})))
        take_answer(client)
        before = server.memory()
        with asking(server) as other:
            other.settimeout(0)
            sent = fetch_large(0, MIB) * 2_000
            assert other.send(sent) > 0  # no more of it is accepted than there is room for
            for _ in range(200):
                client.sendall(fetch_large(0, MIB))
                take_answer(client)
        assert server.memory() - before < MOST_GROWTH


def asking(server: Server) -> socket.socket:
    return socket.create_connection(server.address)
