"""Brokers answer requests that have bytes after their body, and `kseg protocol` reads them. Needs Java and Maven."""

import json
import socket
import struct
from pathlib import Path

import pytest

from tests import run
from tests.log.real_broker import new_broker
from tests.protocol.packets import frame_message, request
from tests.releases import NEWEST_TWO

REQUESTS = [(18, 0), (18, 4), (3, 1), (3, 12)]
"""Keys and versions of ApiVersions and Metadata, of both kinds of headers."""


@pytest.mark.kafka
@pytest.mark.parametrize("release", NEWEST_TWO)
def test_broker_answers_requests_with_bytes_after_their_body(
    release: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    broker = new_broker(tmp_path_factory, release=release)
    with broker.running("live"):
        for key, version in REQUESTS:
            plain = request(key, version, {})
            own = request_answer(broker.port, plain)
            assert request_answer(broker.port, plain + bytes(4)) == own
            assert own[:4] == b"\0\0\0\1"
            shown = frames(broker.work, frame_message(plain + bytes(4)) + frame_message(own))
            assert [each["type"] for each in shown] == ["request", "response", "summary"]
            assert shown[0]["trailingSize"] == 4
            assert all(each["body"] is not None for each in shown[:2])


def request_answer(port: int, message: bytes) -> bytes:
    """The broker's answer, without its size."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(frame_message(message))
        stream = connection.makefile("rb")
        (size,) = struct.unpack(">i", stream.read(4))
        return stream.read(size)


def frames(directory: Path, content: bytes) -> list[dict[str, object]]:
    path = directory / "frames"
    path.write_bytes(content)
    ran = run.kseg(["protocol", str(path), "--input-format", "frames", "-o", "json"], directory)
    assert (ran.status, ran.stderr) == (0, b"")
    return [json.loads(line) for line in ran.stdout.splitlines()]
