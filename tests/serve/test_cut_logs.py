"""Served logs that are cut and grow again: clients get the present records, or Kafka's error."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.log_files import NewBatch, NewRecord, batch_bytes, write_segment
from tests.serve.running import Running, serving
from tests.serve.test_hostile_requests import BATCH, begun_answer
from tests.serve.test_server import FETCH, LIST_OFFSETS, Connection, fetch, open_connection, partition_of

OFFSET_OUT_OF_RANGE = 1


def batch(offset: int, letter: bytes, size: int = 1000) -> NewBatch:
    return NewBatch([NewRecord(b"k", letter * size)], base_offset=offset)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_segment(tmp_path / "orders-0", [batch(offset, b"a") for offset in range(100)])


@pytest.fixture
def running(log: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setattr("kseg.serve.partition.GROWTH_SECONDS", 0)
    with serving(log.parent) as running:
        yield running


@pytest.fixture
def client(running: Running) -> Iterator[Connection]:
    with open_connection(running) as connection:
        yield connection


def rewrite(log: Path, content: bytes) -> None:
    """Cut a log and write it again, in the same file."""
    os.truncate(log, 0)
    with log.open("r+b") as file:
        file.write(content)
    os.utime(log, ns=(1, log.stat().st_mtime_ns + 1))


def end_of(client: Connection) -> int:
    parts = [{"partitionIndex": 0, "timestamp": -1}]
    (topic,) = client.ask(LIST_OFFSETS, 5, {"replicaId": -1, "topics": [{"name": "orders", "partitions": parts}]})[
        "topics"
    ]
    return int(topic["partitions"][0]["offset"])


def test_a_log_that_was_cut_and_grew_again_is_read_again(client: Connection, running: Running, log: Path) -> None:
    assert len(partition_of(client.ask(FETCH, 11, fetch(50)))["records"]) > 50_000
    before = log.stat().st_size
    other = b"".join(batch_bytes(batch(offset, b"b", 1300)) for offset in range(90))
    rewrite(log, other)
    assert log.stat().st_size > before
    assert end_of(client) == 90
    assert partition_of(client.ask(FETCH, 11, fetch(0)))["records"] == other
    assert partition_of(client.ask(FETCH, 11, fetch(100)))["errorCode"] == OFFSET_OUT_OF_RANGE
    assert running.said == ["orders-0: its log was truncated and rewritten, so clients beyond its end get an error"]


def test_a_log_that_was_cut_and_grew_by_zeros_ends_before_them(client: Connection, log: Path) -> None:
    assert end_of(client) == 100
    kept = log.read_bytes()[: len(batch_bytes(batch(0, b"a"))) * 40]
    rewrite(log, kept + bytes(500_000))
    assert end_of(client) == 40
    assert partition_of(client.ask(FETCH, 11, fetch(0)))["records"] == kept
    assert partition_of(client.ask(FETCH, 11, fetch(70)))["errorCode"] == OFFSET_OUT_OF_RANGE
    assert partition_of(client.ask(FETCH, 11, fetch(40)))["records"] == b""


def test_a_log_that_is_cut_and_grows_by_zeros_while_it_is_sent_ends_the_answer_early(tmp_path: Path) -> None:
    with begun_answer(tmp_path) as answer:
        size = answer.log.stat().st_size
        os.truncate(answer.log, BATCH)
        os.truncate(answer.log, size)
        got = answer.all_of_it()
        assert len(got) < answer.size
    assert any("while kseg was sending it" in line for line in answer.client.running.requests)


def test_a_log_that_only_grows_while_it_is_sent_is_sent(tmp_path: Path) -> None:
    with begun_answer(tmp_path) as answer:
        content = answer.log.read_bytes()
        with answer.log.open("ab") as log:
            log.write(batch_bytes(batch(15, b"more")))
        got = answer.all_of_it()
        assert len(got) == answer.size
        assert content in got


def test_a_segment_that_appears_between_others_is_read(client: Connection, log: Path) -> None:
    write_segment(log.parent, [batch(200, b"c")], 200)
    assert partition_of(client.ask(FETCH, 11, fetch(100)))["records"] == batch_bytes(batch(200, b"c"))
    write_segment(log.parent, [batch(100, b"b")], 100)
    assert partition_of(client.ask(FETCH, 11, fetch(100)))["records"] == batch_bytes(batch(100, b"b"))
