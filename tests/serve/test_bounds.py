"""Limits per client: small requests have no huge answers, and memory and workers are shared."""

import asyncio
import gc
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import current_thread
from time import thread_time
from typing import Any

import pytest

from kseg.formats.messages import Fields, LazyList, MessageError
from kseg.formats.schemas import REQUESTS, version_range
from kseg.protocol.messages import api_name, build_response
from kseg.serve.answer import Asking as Asked
from kseg.serve.answer import answer_request
from kseg.serve.server import Server
from kseg.serve.turns import AT_WORKER, Room, Step, Steps, Turns, Usage, run_at_once
from kseg.serve.values import LARGEST_REQUEST, MOST_BEGUN, WORKERS, Limits
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each
from tests.protocol.packets import frame_message
from tests.serve.running import PATIENCE, Running, running_server, serving
from tests.serve.test_server import METADATA, Connection, open_connection, request

PARTITIONS, TIMES = 1000, 2000
TOPIC_ID = "kyhdsJGrQrOXD0nG3u2j8A"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of a topic with many partitions; all but the last one are empty."""
    log_dir = tmp_path_factory.mktemp("served")
    write_segment(log_dir / f"orders-{PARTITIONS - 1}", [NewBatch([NewRecord(b"k", b"v", 1)])])
    (log_dir / f"orders-{PARTITIONS - 1}" / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    with serving(log_dir) as running:
        yield running


def topics_of(name: str, partitions: str, part: Any, **others: Any) -> Fields:
    """Return a request for one partition of one topic."""
    return {"topics": [{name: "orders", "topicId": TOPIC_ID, partitions: [part]}], **others}


REPEATED: dict[str, Fields] = {
    "Metadata": {"topics": [{"name": "orders"}]},
    "DescribeGroups": {"groups": ["g"]},
    "ConsumerGroupDescribe": {"groupIds": ["g"]},
    "FindCoordinator": {"keyType": 0, "coordinatorKeys": ["g"]},
    "OffsetForLeaderEpoch": topics_of("topic", "partitions", {"partition": 0, "leaderEpoch": 0}, replicaId=-1),
    "DescribeLogDirs": {"topics": [{"topic": "orders", "partitions": [PARTITIONS - 1]}]},
    "DescribeConfigs": {"resources": [{"resourceType": 2, "resourceName": "orders", "configurationKeys": None}]},
    "DescribeProducers": topics_of("name", "partitionIndexes", PARTITIONS - 1),
    "DescribeTransactions": {"transactionalIds": ["t"]},
    "DescribeTopicPartitions": {"topics": [{"name": "orders"}], "responsePartitionLimit": 2000, "cursor": None},
    "ListTransactions": {"stateFilters": ["Odd"], "producerIdFilters": [7]},
    "CreateTopics": {"topics": [{"name": "orders", "numPartitions": 1, "replicationFactor": 1}]},
    "DeleteTopics": {"topics": [{"name": "orders"}]},
    "DeleteRecords": topics_of("name", "partitions", {"partitionIndex": 0, "offset": 0}),
    "DeleteGroups": {"groupsNames": ["g"]},
    "AlterConfigs": {"resources": [{"resourceType": 2, "resourceName": "orders", "configs": []}]},
    "ElectLeaders": {"topicPartitions": [{"topic": "orders", "partitions": [0]}]},
    "Produce": {
        "acks": 1,
        "topicData": [{"name": "orders", "topicId": TOPIC_ID, "partitionData": [{"index": 0, "records": b""}]}],
    },
}
"""Requests that name everything once."""
KEYS = {api_name(key): key for key in REQUESTS}


def repeat_elements(value: Any) -> Any:
    """Return the same with the elements of each outermost list repeated."""
    return {name: each * TIMES if isinstance(each, list) else each for name, each in value.items()}


def answer_to(client: Connection, api: str, body: Fields) -> bytes:
    client.number = 0
    client.send(KEYS[api], version_range(REQUESTS[KEYS[api]].versions).last, body)
    return client.receive()


@for_each("api", REPEATED)
def test_what_is_named_again_and_again_is_answered_once(running: Running, api: str) -> None:
    with open_connection(running) as client:
        once, often = (answer_to(client, api, body) for body in (REPEATED[api], repeat_elements(REPEATED[api])))
        assert len(once) > 10
        assert often == once or api == "DescribeLogDirs"  # its answer has the free space
        assert len(often) == len(once)


def test_groups_whose_offsets_are_asked_for_twice_are_answered_once(running: Running) -> None:
    def group(*numbers: int) -> Fields:
        named = [{"topicId": TOPIC_ID, "partitionIndexes": [number]} for number in numbers]
        return {"groupId": "g", "memberId": None, "memberEpoch": -1, "topics": named}

    with open_connection(running) as client:
        body = {"groups": [group(0, 1), group(1, 2)] * TIMES, "requireStable": False}
        (found,) = client.ask(9, 10, body)["groups"]
        (topic,) = found["topics"]
        assert [each["partitionIndex"] for each in topic["partitions"]] == [0, 1, 2]
        body = {"groups": [group(0), {**group(), "topics": None}], "requireStable": False}
        (found,) = client.ask(9, 10, body)["groups"]
        assert found["topics"] == []  # an empty list asks for none


def test_partitions_whose_offsets_are_listed_twice_are_an_error_as_brokers_have_it(running: Running) -> None:
    parts = [{"partitionIndex": number, "timestamp": -1} for number in (5, PARTITIONS - 1, 5)]
    with open_connection(running) as client:
        (topic,) = client.ask(2, 7, {"replicaId": -1, "topics": [{"name": "orders", "partitions": parts}]})["topics"]
        assert [each["errorCode"] for each in topic["partitions"]] == [42, 0]


def test_an_answer_that_would_be_too_large_is_not_made(tmp_path: Path) -> None:
    write_segment(tmp_path / f"orders-{PARTITIONS - 1}", [NewBatch([NewRecord(b"k", b"v", 1)])])
    with serving(tmp_path, limits=Limits(answer=10_000)) as running:
        with open_connection(running) as client:
            assert client.ask(METADATA, 9, {"topics": []})["topics"] == []
            client.send(METADATA, 9, {"topics": None})
            assert client.is_closed()
        assert any("the answer has more than 10000 bytes; request less at once" in line for line in running.requests)


def test_elements_of_a_long_answer_are_made_when_they_are_written() -> None:
    alive, most = 0, 0

    class Counted(dict[str, Any]):
        def __init__(self) -> None:
            nonlocal alive, most
            super().__init__(name="orders", partitions=[])
            alive += 1
            most = max(most, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    build_response(METADATA, 9, 1, {"brokers": [], "topics": LazyList(500, (Counted() for _ in range(500)))})
    assert most <= 2
    with pytest.raises(RuntimeError, match="can't be made"):
        build_response(METADATA, 9, 1, {"brokers": [], "topics": LazyList(1, (each.name for each in [None]))})
    with pytest.raises(MessageError):
        build_response(METADATA, 9, 1, {"brokers": [], "topics": LazyList(1, [{"name": 5}])})


def test_unfinished_requests_hold_little_and_the_oldest_makes_way(running: Running) -> None:
    limits, running = Limits(request_bytes=3 * LARGEST_REQUEST, held_seconds=0), Running(("", 0), running.served)
    with running_server(running, limits=limits), ExitStack() as stack:
        clients = [stack.enter_context(open_connection(running)) for _ in range(8)]
        for client in clients:
            client.socket.sendall(LARGEST_REQUEST.to_bytes(4, "big") + bytes(1000))
        assert all(client.is_closed() for client in clients[:5])
        with open_connection(running) as another:
            assert another.ask(METADATA, 9, {"topics": []})["topics"] == []
        frame = request(METADATA, 1, {"topics": [{"name": ""}] * 20_000}, 1)
        clients[0] = stack.enter_context(open_connection(running))
        clients[0].socket.sendall(len(frame).to_bytes(4, "big") + frame)
        assert clients[0].receive()[:4] == b"\0\0\0\1"
        assert any(
            "took long with a request, which left no room for other clients" in line for line in running.requests
        )


def test_connections_that_were_closed_leave_nothing_in_memory(running: Running) -> None:
    limits, running = Limits(request_bytes=LARGEST_REQUEST, held_seconds=0), Running(("", 0), running.served)
    gc.collect()
    gc.disable()  # a collection may come long after a MiB isn't needed any more
    try:
        with running_server(running, limits=limits), ExitStack() as stack:
            clients = [stack.enter_context(open_connection(running)) for _ in range(8)]
            for client in clients:
                client.socket.sendall(LARGEST_REQUEST.to_bytes(4, "big") + bytes(1000))
            assert all(client.is_closed() for client in clients[:7])
            with open_connection(running) as another:
                assert another.ask(METADATA, 9, {"topics": []})["topics"] == []
                open_here = sum(isinstance(each, asyncio.StreamReader) for each in gc.get_objects())
        assert open_here == 2
    finally:
        gc.enable()


MANY = 3_000
NUMBERED = [{"partition": number} for number in range(MANY)]
LONG: dict[str, tuple[int, Fields, int]] = {
    "unknown tagged fields": (18, {"unknownTaggedFields": dict.fromkeys(range(100, 100 + MANY), b"")}, 1),
    "topics that aren't made": (19, {"topics": [{"name": f"t{number}"} for number in range(MANY)]}, 4),
    "partitions without leader": (43, {"topicPartitions": [{"topic": "t", "partitions": list(range(MANY))}]}, 4),
    "fetched partitions": (1, {"sessionEpoch": -1, "topics": [{"topicId": TOPIC_ID, "partitions": NUMBERED}]}, 3),
    "producers": (61, {"topics": [{"name": "orders", "partitionIndexes": list(range(MANY))}]}, 2),
}
"""APIs, requests with long work, and the least number of steps for each of the MANY."""


@for_each("what", LONG)
def test_long_requests_are_worked_on_in_many_steps(running: Running, what: str) -> None:
    key, body, times = LONG[what]
    frame = request(key, version_range(REQUESTS[key].versions).last, body, 1)
    steps = answer_request(frame, running.served, Asked(("localhost", 9092)))
    assert sum(1 for _ in steps) >= times * MANY


SERVE = """
import gc, sys
from kseg.cli import main

pauses = []
freeze = gc.freeze
gc.freeze = lambda: (freeze(), pauses.clear())
gc.callbacks.append(lambda phase, about: pauses.append(phase) if about["generation"] == 2 else None)
main(["serve", *sys.argv[1:]])
print(pauses)
"""
ASK = """
import os, pathlib, socket
host, port = os.environ["KSEG_BOOTSTRAP"].rsplit(":", 1)
with socket.create_connection((host, int(port))) as server:
    server.sendall(pathlib.Path("request").read_bytes())
    assert len(server.recv(4, socket.MSG_WAITALL)) == 4
"""


def test_a_large_request_makes_no_others_wait_for_a_collection_of_garbage(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(b"k", b"v", 1)])])
    (tmp_path / "serve.py").write_text(SERVE)
    (tmp_path / "request").write_bytes(
        frame_message(request(19, 7, {"topics": [{"name": f"t{n}"} for n in range(32_000)]}, 1))
    )
    command = [sys.executable, "serve.py", "orders-0", "-q", "--", sys.executable, "-c", ASK]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stdout == "['start', 'stop']\n", ran.stderr  # the one before the first client comes


def test_few_of_those_that_connect_at_once_are_let_in_before_others_are_served(running: Running) -> None:
    async def check() -> list[int]:
        counts = [0]
        async with Server(running.served, ("127.0.0.1", 0)) as server:
            with ExitStack() as stack:
                for _ in range(200):  # the system keeps them until they are accepted
                    stack.enter_context(socket.create_connection(server.address, PATIENCE))
                while counts[-1] < 200:
                    await asyncio.sleep(0)
                    counts.append(server.figures.clients)
        return counts

    assert max(after - before for before, after in pairwise(asyncio.run(check()))) <= 20


class Holding:
    """A holder of bytes in a room."""

    def __init__(self) -> None:
        self.why = ""

    def make_way(self, why: str) -> None:
        self.why = why


def test_room_is_taken_from_who_has_held_it_the_longest() -> None:
    now = 0.0
    room = Room(100, 2.0, "an answer", lambda: now)
    first, second, third, fourth = (Holding() for _ in range(4))

    async def check() -> None:
        nonlocal now
        await room.take(first, 40)
        now = 1.0
        await room.take(second, 60)
        room.keep(first)  # the server itself works for it
        now = 3.5
        await room.take(third, 50)
        assert (bool(first.why), bool(second.why), room.held) == (False, True, 90)
        waiting = asyncio.create_task(room.take(fourth, 60))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waiting.done()  # nobody has held it long enough
        room.give_back(third)
        await waiting
        assert room.held == 100
        await room.take(fourth, 10)
        for each in (first, fourth):
            room.give_back(each)
        assert room.held == 0

    asyncio.run(check())


def test_who_wants_the_fewest_bytes_has_room_first() -> None:
    room, holding, came = Room(100, 60.0, "a request"), [Holding() for _ in range(5)], list[int]()

    async def take(holder: Holding, size: int) -> None:
        await room.take(holder, size)
        came.append(size)

    async def check() -> None:
        first, left, *others = holding
        await room.take(first, 100)
        leaving = asyncio.create_task(take(left, 10))
        waiting = [asyncio.create_task(take(each, size)) for each, size in zip(others, (60, 90, 40), strict=True)]
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        room.give_back(first)
        await asyncio.gather(waiting[0], waiting[2])
        for each in (others[0], others[2]):
            room.give_back(each)
        await waiting[1]

    asyncio.run(check())
    assert came == [40, 60, 90]


class Asking:
    """A client of some work."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.has_left = False

    def is_gone(self) -> bool:
        return self.has_left

    async def hold(self, size: int) -> None:
        assert size in (0, 1)


class LongWork:
    """Work that runs until it is told to end, in steps of some milliseconds or in one much longer step."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may_end = False

    def steps(self, name: str, *, may_begin_again: bool) -> Steps[str]:
        self.begun.append(name)
        for _ in range(2_000):
            until = thread_time() + 0.004
            while thread_time() < until:
                pass
            yield Step(1, may_begin_again)
            if self.may_end:
                break
        return name


def short_work() -> Steps[str]:
    yield Step()
    return "short"


def test_long_work_lets_short_work_pass_and_ends() -> None:
    work, names = LongWork(), [f"long {number}" for number in range(2 * MOST_BEGUN)]

    async def check() -> list[str]:
        done: list[str] = []
        with ThreadPoolExecutor(WORKERS) as workers:
            turns = Turns(workers)

            async def do(begin: Callable[[], Steps[str]], *, is_large: bool) -> None:
                done.append(await turns.finish(begin, Asking(), is_large=is_large))

            long = [
                asyncio.create_task(
                    do(partial(work.steps, name, may_begin_again=number > 2), is_large=bool(number % 2))
                )
                for number, name in enumerate(names)
            ]
            while len(work.begun) < WORKERS:
                await asyncio.sleep(0)
            await do(short_work, is_large=False)
            work.may_end = True
            await asyncio.gather(*long)
        return done

    done = asyncio.run(check())
    assert done[0] == "short"
    assert sorted(done[1:]) == names
    assert work.begun.count("long 0") == work.begun.count("long 2") == 1  # they change others' answers
    assert max(map(work.begun.count, names)) <= 2


def test_only_work_that_needs_a_worker_goes_to_one() -> None:
    threads: list[str] = []

    def work() -> Steps[None]:
        threads.append(current_thread().name)
        yield Step()
        threads.append(current_thread().name)
        yield AT_WORKER
        threads.append(current_thread().name)

    with ThreadPoolExecutor(WORKERS, "worker") as workers:
        asyncio.run(Turns(workers).finish(work, Asking(), is_large=False))
    assert threads == [current_thread().name] * 2 + ["worker_0"]


def test_nothing_is_done_for_a_client_that_left_while_its_large_request_waited() -> None:
    asking, begun = Asking(), LongWork()
    asking.has_left = True
    begin = partial(begun.steps, "large", may_begin_again=True)
    with ThreadPoolExecutor(WORKERS) as workers, pytest.raises(ConnectionAbortedError):
        asyncio.run(Turns(workers).finish(begin, asking, is_large=True))
    assert begun.begun == []


def test_work_counts_less_as_time_goes_by() -> None:
    now = 0.0
    usage = Usage(lambda: now)
    before = usage.seconds
    usage.add(4.0)
    now = 50.0
    assert usage.seconds < before + 0.005
    assert run_at_once(short_work()) == "short"
