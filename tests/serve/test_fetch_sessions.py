"""Fetch sessions: requests and answers contain only changes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kseg.formats.messages import Fields
from kseg.serve.fetch_sessions import EVICTION_SECONDS, MOST_PARTITIONS, MOST_SESSIONS, FetchSessions, FetchView
from tests.log_files import NewBatch, NewRecord, batch_bytes, write_segment
from tests.loops import for_each
from tests.serve.running import Running, serving
from tests.serve.test_server import FETCH, Connection, open_connection

NOT_FOUND, WRONG_EPOCH, WRONG_FORM = 70, 71, 106
RECORDS = [NewRecord(b"k", b"v" * 100, 1_700_000_000_000 + number) for number in range(10)]
IDS = {"orders": "kyhdsJGrQrOXD0nG3u2j8A", "pay": "rj7WDd3NQ2SwWbzNiQgUlg"}
NAMES = {topic_id: name for name, topic_id in IDS.items()}


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    for topic, topic_id in IDS.items():
        for number in range(2):
            directory = tmp_path / f"{topic}-{number}"
            write_segment(directory, [NewBatch(RECORDS)])
            (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    return tmp_path


@pytest.fixture
def running(log_dir: Path) -> Iterator[Running]:
    with serving(log_dir) as running:
        yield running


@pytest.fixture
def client(running: Running) -> Iterator[Connection]:
    with open_connection(running) as connection:
        yield connection


def body(session: tuple[int, int], *asked: tuple[str, int, int], forgotten: Any = (), **fields: Any) -> Fields:
    """Return a fetch in a session (id and epoch) of some partitions (topic, number, offset) that forgets others."""
    topics = [
        {"topic": name, "topicId": IDS[name], "partitions": [_wanted_fields(number, offset)]}
        for name, number, offset in asked
    ]
    gone = [{"topic": name, "topicId": IDS[name], "partitions": [number]} for name, number in forgotten]
    ids = {"sessionId": session[0], "sessionEpoch": session[1], "forgottenTopicsData": gone}
    return {"maxWaitMs": 0, "minBytes": 1, "maxBytes": 1 << 20, "replicaId": -1, "topics": topics, **ids, **fields}


def _wanted_fields(number: int, offset: int) -> Fields:
    return {"partition": number, "fetchOffset": offset, "partitionMaxBytes": 1 << 20}


def parts(answer: Fields) -> dict[tuple[str, int], Fields]:
    return {
        (topic.get("topic") or NAMES[topic["topicId"]], part["partitionIndex"]): part
        for topic in answer["responses"]
        for part in topic["partitions"]
    }


ALL = [("orders", 0, 10), ("orders", 1, 10), ("pay", 0, 10), ("pay", 1, 10)]
"""All partitions, at their ends."""


def begin_session(client: Connection, *asked: tuple[str, int, int], version: int = 12) -> int:
    """Begin a session, and return its id."""
    answer = client.ask(FETCH, version, body((0, 0), *asked))
    assert len(parts(answer)) == len(asked)
    return int(answer["sessionId"])


@for_each("version", range(7, 19))
def test_a_full_fetch_begins_a_session_that_incremental_ones_go_on_with(client: Connection, version: int) -> None:
    session = begin_session(client, *ALL, version=version)
    assert session > 0
    for epoch in (1, 2):
        answer = client.ask(FETCH, version, body((session, epoch)))
        assert (answer["errorCode"], answer["sessionId"], answer["responses"]) == (0, session, [])


@pytest.mark.parametrize("version", [7, 12, 18])
def test_only_partitions_with_news_are_told(client: Connection, log_dir: Path, version: int) -> None:
    session = begin_session(client, *ALL, version=version)
    added = batch_bytes(NewBatch(RECORDS, base_offset=10))
    with (log_dir / "pay-0" / f"{0:020}.log").open("ab") as log:
        log.write(added)
    answer = client.ask(FETCH, version, body((session, 1), maxWaitMs=60_000))
    assert {key: part["records"] for key, part in parts(answer).items()} == {("pay", 0): added}


def test_a_session_remembers_offsets_until_others_are_named(client: Connection) -> None:
    session = begin_session(client, ("orders", 0, 0), ("orders", 1, 10))
    again = client.ask(FETCH, 12, body((session, 1)))
    assert len(parts(again)["orders", 0]["records"]) > 0
    after = client.ask(FETCH, 12, body((session, 2), ("orders", 0, 10)))
    assert parts(after) == {}


def test_partitions_join_and_leave_a_session(client: Connection) -> None:
    session = begin_session(client, ("orders", 0, 0), ("orders", 1, 0))
    answer = client.ask(FETCH, 12, body((session, 1), ("pay", 0, 0), forgotten=[("orders", 0)]))
    assert set(parts(answer)) == {("orders", 1), ("pay", 0)}


def test_a_session_ends_with_its_last_partition(client: Connection, running: Running) -> None:
    session = begin_session(client, ("orders", 0, 10))
    answer = client.ask(FETCH, 12, body((session, 1), forgotten=[("orders", 0)]))
    assert (answer["sessionId"], answer["responses"]) == (0, [])
    assert client.ask(FETCH, 12, body((session, 2)))["errorCode"] == NOT_FOUND


@pytest.mark.parametrize(
    ("id_offset", "epoch", "version", "error"),
    [(0, 2, 12, WRONG_EPOCH), (0, 7, 12, WRONG_EPOCH), (1, 1, 12, NOT_FOUND), (0, 1, 13, WRONG_FORM)],
)
def test_who_is_not_in_step_begins_anew(
    client: Connection, id_offset: int, epoch: int, version: int, error: int
) -> None:
    session = begin_session(client, *ALL)
    answer = client.ask(FETCH, version, body((session + id_offset, epoch)))
    assert (answer["errorCode"], answer["sessionId"], answer["responses"]) == (error, 0, [])
    assert client.ask(FETCH, 12, body((session, 1)))["errorCode"] == 0


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_fetch_ends_the_former_session(client: Connection, epoch: int) -> None:
    session = begin_session(client, *ALL)
    answer = client.ask(FETCH, 12, body((session, epoch), ("orders", 0, 0)))
    assert set(parts(answer)) == {("orders", 0)}
    assert (answer["sessionId"] > 0) == (epoch == 0)
    assert client.ask(FETCH, 12, body((session, 1)))["errorCode"] == NOT_FOUND


def test_who_wants_no_session_gets_none(client: Connection) -> None:
    assert client.ask(FETCH, 12, body((0, -1), *ALL))["sessionId"] == 0


def test_records_are_told_in_turns(client: Connection) -> None:
    session = begin_session(client, ("orders", 0, 0), ("orders", 1, 0), ("pay", 0, 0))
    seen = [next(iter(parts(client.ask(FETCH, 12, body((session, epoch), maxBytes=1))))) for epoch in range(1, 5)]
    assert seen[:3] != seen[:1] * 3
    assert set(seen) == {("orders", 0), ("orders", 1), ("pay", 0)}


def test_an_error_is_told_again_as_is_what_comes_after_it(client: Connection) -> None:
    session = begin_session(client, ("orders", 0, 99), ("orders", 1, 10))
    answer = client.ask(FETCH, 12, body((session, 1)))
    assert {key: part["errorCode"] for key, part in parts(answer).items()} == {("orders", 0): 1}
    answer = client.ask(FETCH, 12, body((session, 2), ("orders", 0, 10)))
    assert {key: part["errorCode"] for key, part in parts(answer).items()} == {("orders", 0): 0}


def test_sessions_have_a_limit_and_fetches_go_on_without(client: Connection, running: Running) -> None:
    for _ in range(MOST_SESSIONS):
        assert begin_session(client, ("orders", 0, 10)) > 0
    assert begin_session(client, ("orders", 0, 10)) == 0
    assert len(running.served.fetch_sessions) == MOST_SESSIONS


def test_sessions_remember_no_more_partitions_than_there_is_room_for() -> None:
    sessions = FetchSessions(lambda: 0.0)
    many = [("orders", number, 10) for number in range(8_000)]
    ids = [begin(sessions, *many) for _ in range(6)]
    assert [each > 0 for each in ids] == [True] * (MOST_PARTITIONS // len(many)) + [False] * 2


PART = {"errorCode": 0, "highWatermark": 10, "logStartOffset": 0, "records": b""}


def begin(sessions: FetchSessions, *asked: tuple[str, int, int]) -> int:
    """Begin a session without a connection, and return its id; 0 if there is no room."""
    view = sessions.view(body((0, 0), *asked), 12)
    assert isinstance(view, FetchView)
    answer = sessions.remember_answer(view, [PART] * len(asked))
    assert not isinstance(answer, int)
    return int(answer.session_id)


def test_a_session_that_was_not_used_for_long_makes_room() -> None:
    seconds = 0.0
    sessions = FetchSessions(lambda: seconds)
    first, second, *_ = [begin(sessions, ("orders", 0, 10)) for _ in range(MOST_SESSIONS)]
    seconds = EVICTION_SECONDS - 1
    used = sessions.view(body((first, 1)), 12)
    assert isinstance(used, FetchView)
    sessions.remember_answer(used, [PART])
    assert begin(sessions, ("orders", 0, 10)) == 0
    seconds = EVICTION_SECONDS
    assert begin(sessions, ("orders", 0, 10)) > 0
    assert isinstance(sessions.view(body((first, 2)), 12), FetchView)
    assert sessions.view(body((second, 1)), 12) == NOT_FOUND
