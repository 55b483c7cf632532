"""A server's system calls: sending of records, and memory while nobody reads."""

import os
import re
import shutil
import signal
import socket
import sys
from pathlib import Path

import pytest

from tests.processes import start_process
from tests.protocol.packets import frame_message, request
from tests.serve.load import MIB, Server, make_partition, server_of
from tests.serve.test_server import FETCH, METADATA

STRACE = shutil.which("strace")
KSEG = Path(sys.executable).with_name("kseg")
BATCHES = 32
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


@pytest.mark.skipif(STRACE is None, reason="strace isn't installed; test_server counts calls of os.sendfile")
def test_records_go_out_by_sendfile_alone(large: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    traced = [
        str(STRACE),
        "-E",
        "PYTHONDONTWRITEBYTECODE=1",
        "-f",
        "-qq",
        "-e",
        "trace=sendfile,sendto,write,writev,sendmsg",
        "-o",
        calls,
    ]
    with start_process([*traced, KSEG, "serve", large, "-q", "--listen", "127.0.0.1:0"], large) as process:
        assert process.stdout is not None
        host, port = process.stdout.readline().decode().strip().rsplit(":", 1)
        with socket.create_connection((host, int(port))) as client:
            client.sendall(fetch_large(0, 8 * MIB))
            size = take_answer(client)
        os.killpg(process.pid, signal.SIGTERM)  # strace itself ends with the server
        process.wait()
    done = re.findall(r"(?:\d+ +)(?:<\.\.\. )?(\w+)(?:\(| resumed).* = (\d+)$", calls.read_text(), re.MULTILINE)
    by_system = sum(int(count) for name, count in done if name == "sendfile")
    by_copy = sum(int(count) for name, count in done if name != "sendfile")
    assert size - 1000 < by_system < size
    assert by_copy < 10_000


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
