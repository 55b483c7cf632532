"""Requests that no client sends are harmless: each is answered, or its connection is closed."""

import os
import select
import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from kseg.serve.connections import Security, server_tls
from kseg.serve.values import LARGEST_REQUEST, Limits
from tests.failing_disk import FailingDisk
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.serve.certificates import issue_certificate, write_files
from tests.serve.mutated_requests import SERVED, answered_requests, base_requests, mutate
from tests.serve.running import PATIENCE, serving
from tests.serve.test_server import FETCH, METADATA, Connection, fetch, open_connection, request

IN_PROCESS, OVER_NETWORK = 3_000, 300


def test_mutated_requests_are_answered_or_refused() -> None:
    for frame, problem in answered_requests(1, IN_PROCESS):
        assert problem is None, frame.hex()


def test_mutated_requests_over_the_network_leave_the_server_as_it_was() -> None:
    with serving(SERVED) as running:
        random, bases = Random(2), base_requests(running.served)
        for _ in range(OVER_NETWORK):
            frame = mutate(random, bases)[:LARGEST_REQUEST]
            with socket.create_connection(running.address, PATIENCE) as other:
                other.sendall(random.choice((len(frame), len(frame) + 1)).to_bytes(4, "big") + frame)
                other.shutdown(socket.SHUT_WR)
        with open_connection(running) as client:
            assert len(client.ask(METADATA, 9, {"topics": None})["topics"]) == len(running.served.topics)
        assert [line for line in running.said if "Error" in line or "Traceback" in line] == []


def test_connections_that_come_and_go_leave_nothing() -> None:
    with serving(SERVED) as running:
        before = threading.active_count()
        for _ in range(500):
            socket.create_connection(running.address, PATIENCE).close()
        with open_connection(running) as client:
            assert client.ask(METADATA, 9, {"topics": None})["topics"]
        assert threading.active_count() <= before + 4  # threads that read logs


SHORT = 0.05
"""A short limit in seconds, so that tests needn't wait."""


def closes(limits: Limits, sent: bytes) -> bool:
    """Return True if a server with these limits closes a connection that sends this and then nothing."""
    with serving(SERVED, limits=limits) as running, open_connection(running) as client:
        client.socket.sendall(sent)
        return client.is_closed()


def test_idle_connections_are_closed() -> None:
    assert closes(Limits(idle_seconds=SHORT), b"")
    assert closes(Limits(idle_seconds=SHORT), b"\0\0")


def test_a_request_that_never_ends_is_closed() -> None:
    assert closes(Limits(request_seconds=SHORT), (100).to_bytes(4, "big") + b"\0\x03")


def test_a_request_that_comes_byte_by_byte_has_no_more_time_than_others() -> None:
    with serving(SERVED, limits=Limits(request_seconds=SHORT)) as running, open_connection(running) as client:
        client.socket.sendall(LARGEST_REQUEST.to_bytes(4, "big"))
        poll = select.poll()
        poll.register(client.socket, select.POLLIN)
        try:
            while not poll.poll(1):
                client.socket.sendall(b"x")
        except ConnectionError:
            return
        assert client.is_closed()


def test_who_takes_no_answers_is_closed() -> None:
    limits = Limits(stalled_seconds=SHORT)
    with serving(SERVED / "zstd-0", limits=limits) as running, open_connection(running) as client:
        (served,) = running.served.partitions
        wanted = [{"partition": 0, "fetchOffset": served.offsets().log_start, "partitionMaxBytes": 1 << 20}]
        try:
            while not has_hung_up(client.socket):
                client.send(FETCH, 11, fetch(topics=[{"topic": "zstd", "partitions": wanted}]))
        except ConnectionError:
            return
        assert any("too slow" in line for line in running.requests)


def has_hung_up(sock: socket.socket) -> bool:
    """Return True if the other side has closed a connection, without reading sent bytes."""
    poll = select.poll()
    poll.register(sock, 0)
    return bool(poll.poll(0))


def test_connections_beyond_the_limit_are_refused_at_once_until_one_ends() -> None:
    limits = replace(Limits(), connections=2)
    with (
        serving(SERVED / "zstd-0", limits=limits) as running,
        open_connection(running) as first,
        open_connection(running) as second,
    ):
        for client in (first, second):
            assert client.ask(METADATA, 9, {"topics": None})["topics"]
        for _ in range(3):
            with open_connection(running) as third:
                assert third.is_closed()
        assert first.ask(METADATA, 9, {"topics": None})["topics"]
        assert running.said == ["more than 2 connections are open, so kseg closes new connections"]
        second.socket.shutdown(socket.SHUT_WR)
        assert second.is_closed()
        with open_connection(running) as third:
            assert third.ask(METADATA, 9, {"topics": None})["topics"]


def test_silent_connections_make_way_the_oldest_first() -> None:
    with serving(SERVED / "zstd-0", limits=Limits(connections=3)) as running, ExitStack() as stack:
        asking, *silent = (stack.enter_context(open_connection(running)) for _ in range(3))
        assert asking.ask(METADATA, 9, {"topics": None})["topics"]
        silent[1].socket.sendall(LARGEST_REQUEST.to_bytes(4, "big"))  # the beginning of a request doesn't count
        further = [stack.enter_context(open_connection(running)) for _ in range(3)]
        assert all(each.is_closed() for each in (*silent, further[0]))
        for client in (asking, *further[1:]):
            assert client.ask(METADATA, 9, {"topics": None})["topics"]
        assert running.said == []
        assert sum("silent: closed for another client" in line for line in running.requests) == 3


def test_who_was_idle_the_longest_makes_way_if_nobody_was_silent() -> None:
    limits = Limits(connections=2, spared_seconds=0)
    with serving(SERVED / "zstd-0", limits=limits) as running, ExitStack() as stack:
        first, second = (stack.enter_context(open_connection(running)) for _ in range(2))
        for client in (first, second, first):
            assert client.ask(METADATA, 9, {"topics": None})["topics"]
        third = stack.enter_context(open_connection(running))
        assert second.is_closed()
        for client in (third, first):
            assert client.ask(METADATA, 9, {"topics": None})["topics"]
        assert any("idle: closed for another client" in line for line in running.requests)


def test_who_waits_for_an_answer_makes_no_way() -> None:
    limits = Limits(connections=1, spared_seconds=0)
    with serving(SERVED / "zstd-0", limits=limits) as running, open_connection(running) as waiting:
        (served,) = running.served.partitions
        wanted = [{"partition": 0, "fetchOffset": served.offsets().log_end, "partitionMaxBytes": 1 << 20}]
        awaited = fetch(topics=[{"topic": "zstd", "partitions": wanted}], maxWaitMs=30_000)
        frames = (request(METADATA, 9, {"topics": None}, 1), request(FETCH, 11, awaited, 2))
        waiting.socket.sendall(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))
        waiting.receive()
        with open_connection(running) as another:
            assert another.is_closed()
        assert not has_hung_up(waiting.socket)


def test_requests_pipelined_by_thousands_are_answered_in_order() -> None:
    many = 2_000
    with serving(SERVED / "zstd-0") as running, open_connection(running) as client:

        def send_all() -> None:
            for _ in range(many):
                client.send(METADATA, 9, {"topics": []})

        sender = threading.Thread(target=send_all)
        sender.start()
        numbers = [int.from_bytes(client.receive()[:4], "big") for _ in range(many)]
        sender.join()
    assert numbers == list(range(1, many + 1))


BATCH = 1 << 20
LARGE = 15
"""The number of batches of that size: more than unread connections hold."""


@dataclass(frozen=True)
class BegunAnswer:
    """An answer whose sending has begun but is blocked: it is larger than a connection's buffers."""

    log: Path
    """The log that is being sent; a second partition, orders-1, is sent after it."""
    client: Connection
    size: int
    begun: bytes
    """The received bytes."""

    def all_of_it(self) -> bytes:
        return self.begun + receive_all(self.client, self.size - len(self.begun))


@contextmanager
def begun_answer(tmp_path: Path, **options: Any) -> Iterator[BegunAnswer]:
    value = os.urandom(BATCH)
    for number, count in ((0, LARGE), (1, 1)):
        batches = [NewBatch([NewRecord(b"k", value, 1)], base_offset=offset) for offset in range(count)]
        write_segment(tmp_path / f"orders-{number}", batches)
    with serving(tmp_path, **options) as running, open_connection(running) as client:
        if options:
            client.socket = trusting().wrap_socket(client.socket, suppress_ragged_eofs=True)
        wanted = [{"partition": number, "fetchOffset": 0, "partitionMaxBytes": 16 << 20} for number in (0, 1)]
        topics = [{"topic": "orders", "partitions": wanted}]
        client.send(FETCH, 11, fetch(topics=topics, maxBytes=64 << 20))
        size = int.from_bytes(client.exactly(4), "big")
        assert size > (LARGE + 1) * BATCH
        yield BegunAnswer(tmp_path / "orders-0" / f"{0:020}.log", client, size, client.exactly(BATCH // 4))


def trusting() -> ssl.SSLContext:
    """Return a client's TLS context that accepts any server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def receive_all(client: Connection, most: int) -> bytes:
    """Return the bytes received until the server closes the connection, at most `most`."""
    client.socket.settimeout(PATIENCE)
    pieces, left = [], most
    try:
        while left and (piece := client.socket.recv(min(left, 1 << 16))):
            pieces.append(piece)
            left -= len(piece)
    except ConnectionError:
        pass
    return b"".join(pieces)


def test_a_log_that_shrinks_while_it_is_sent_ends_the_answer_early(tmp_path: Path) -> None:
    with begun_answer(tmp_path) as answer:
        content = answer.log.read_bytes()
        os.truncate(answer.log, 0)
        got = answer.all_of_it()
        assert len(got) < answer.size
        assert content.startswith(got[got.index(content[:60]) :])


def test_a_directory_that_vanishes_while_it_is_sent_is_sent_to_its_end(tmp_path: Path) -> None:
    with begun_answer(tmp_path) as answer:
        content = answer.log.read_bytes()
        shutil.rmtree(tmp_path)
        got = answer.all_of_it()
        assert len(got) < answer.size  # nothing of the second log is left
        assert content in got


def test_a_disk_that_fails_while_a_log_is_sent_is_noted(tmp_path: Path, failing_disk: FailingDisk) -> None:
    tls = server_tls(*write_files(tmp_path, "server", issue_certificate("server")))
    with begun_answer(tmp_path, security=Security(tls)) as answer:
        content = answer.log.read_bytes()
        failing_disk.lose_blocks(answer.log, range(12 * BATCH + 1000, 12 * BATCH + 2000))
        got = answer.all_of_it()
        assert len(got) < answer.size
        assert content.startswith(got[got.index(content[:60]) :])
        assert answer.client.running.requests[-1].endswith(f"{answer.log}: can't be read: Input/output error: closed")


def test_a_log_that_is_replaced_before_it_is_sent_is_not_sent(tmp_path: Path) -> None:
    with begun_answer(tmp_path) as answer:
        second = tmp_path / "orders-1" / answer.log.name
        other = second.with_suffix(".other")
        other.write_bytes(b"x" * (2 * second.stat().st_size))
        other.replace(second)
        got = answer.all_of_it()
        assert len(got) < answer.size
        assert got.count(b"x" * 100) == 0
