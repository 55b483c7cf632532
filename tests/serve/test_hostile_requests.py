"""Requests that no client sends do no harm: each is answered, or its connection is closed."""

import socket
import threading
from random import Random

from kseg.serve.limits import LARGEST_REQUEST
from tests.serve.mutated_requests import SERVED, answered_requests, base_requests, mutated
from tests.serve.running import PATIENCE, serving
from tests.serve.test_server import METADATA, connected

IN_PROCESS, OVER_NETWORK = 3_000, 300


def test_mutated_requests_are_answered_or_refused() -> None:
    for frame, problem in answered_requests(1, IN_PROCESS):
        assert problem is None, frame.hex()


def test_mutated_requests_over_the_network_leave_the_server_as_it_was() -> None:
    with serving(SERVED) as running:
        random, bases = Random(2), base_requests(running.served)
        for _ in range(OVER_NETWORK):
            frame = mutated(random, bases)[:LARGEST_REQUEST]
            with socket.create_connection(running.address, PATIENCE) as other:
                other.sendall(random.choice((len(frame), len(frame) + 1)).to_bytes(4, "big") + frame)
                other.shutdown(socket.SHUT_WR)
        with connected(running) as client:
            assert len(client.ask(METADATA, 9, {"topics": None})["topics"]) == len(running.served.topics)
        assert [line for line in running.said if "Error" in line or "Traceback" in line] == []


def test_connections_that_come_and_go_leave_nothing() -> None:
    with serving(SERVED) as running:
        before = threading.active_count()
        for _ in range(500):
            socket.create_connection(running.address, PATIENCE).close()
        with connected(running) as client:
            assert client.ask(METADATA, 9, {"topics": None})["topics"]
        assert threading.active_count() <= before + 4  # those that read logs
