"""Nearly valid requests, with changed values, structures and bytes. Also a program: SEED COUNT.

`python -m tests.serve.mutated_requests 1 1000000` answers that many without a network; the status is 1 if an answer is
wrong.
"""

import copy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from kseg.cluster.cluster import Cluster
from kseg.formats.messages import Fields, MessageError
from kseg.formats.schemas import REQUESTS, Field, version_range
from kseg.protocol.messages import read_request_header, read_response
from kseg.serve.answer import Asking, RefusedError, answer_request
from kseg.serve.apis.table import APIS
from kseg.serve.cluster import ServedCluster, serve_partitions
from kseg.serve.stored_records import StoredRecords
from kseg.serve.turns import run_at_once
from kseg.serve.values import ServeSettings
from tests import golden
from tests.fuzz.mutations import havoc
from tests.protocol.packets import request
from tests.serve.captured_requests import captured_requests

SERVED = golden.ROOT / "logs" / "4.3.1"
NUMBERS = (0, 1, -1, -2, -3, -6, 2, 7, 250, 281, 571, 1 << 15, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1, -(1 << 63))
TEXTS = ("", "zstd", "compacted-txn", "__consumer_offsets", "a" * 249, "ü\0/../", "x" * 32767)
MOST_COPIES = 40
TOPIC_NAMES = ("name", "topic", "topicId")
NULL_IS_ALL = ("forgottenTopicsData",)
VALUES = {
    "fetchOffset": 281,
    "timestamp": -1,
    "partitionMaxBytes": 4096,
    "acks": 1,
    "replicaId": -1,
    "maxBytes": 1 << 20,
    "currentLeaderEpoch": -1,
    "responsePartitionLimit": 3,
    "endpointType": 1,
    "sessionTimeoutMs": 10_000,
    "rebalanceTimeoutMs": 1000,
    "protocolType": "consumer",
    "generationIdOrMemberEpoch": -1,
    "generationId": 1,
    "memberId": "",
}


def base_requests(served: ServedCluster) -> list[tuple[int, int, Fields]]:
    """Return a request of each answered API and version, for all served partitions, and real clients' requests."""
    found = []
    for key in APIS:
        versions = version_range(REQUESTS[key].versions)
        found += [(key, version, _body(key, served)) for version in range(versions.first, versions.last + 1)]
    return found + captured_requests(served)


def _body(key: int, served: ServedCluster) -> Fields:
    """Return a body that asks for existing things, as far as its fields' names show."""
    topics = [(name, topic.topic_id) for name, topic in served.topics.items()]
    return {field.name: _value(field, topics) for field in REQUESTS[key].fields if field.name not in NULL_IS_ALL}


def _value(field: Field, topics: Sequence[tuple[str, str]]) -> Any:
    kind = field.type.removeprefix("[]")
    if field.type.startswith("[]"):
        of_topics = any(each.name in TOPIC_NAMES for each in field.fields)
        return [_one(field, kind, [topic]) for topic in (topics if of_topics else topics[:1])]
    return _one(field, kind, topics)


def _one(field: Field, kind: str, topics: Sequence[tuple[str, str]]) -> Any:
    if field.fields:
        return {each.name: _value(each, topics) for each in field.fields}
    name, topic_id = topics[0]
    return VALUES.get(
        field.name, {"string": name, "uuid": topic_id, "bool": False, "records": b"", "bytes": b"wanted"}.get(kind, 0)
    )


def mutate(random: Random, bases: list[tuple[int, int, Fields]]) -> bytes:
    """Return one of the requests with changes."""
    key, version, body = random.choice(bases)
    body = copy.deepcopy(body)
    for _ in range(random.randrange(4)):
        _change(random, body)
    try:
        frame = request(key, version, body)
    except MessageError:
        frame = request(key, version, {})
    if random.random() < 0.5:
        frame = havoc(random, frame)
    if random.random() < 0.1:
        frame = frame[:2] + random.choice(NUMBERS[:9]).to_bytes(2, "big", signed=True) + frame[4:]
    return frame


def _change(random: Random, value: Any) -> None:
    """Change something anywhere in a value."""
    places: list[tuple[Any, Any]] = []

    def walk(inside: Any) -> None:
        for name in list(inside) if isinstance(inside, dict) else range(len(inside)):
            places.append((inside, name))
            if isinstance(inside[name], dict | list):
                walk(inside[name])

    walk(value)
    if not places:
        return
    holder, name = random.choice(places)
    old = holder[name]
    if isinstance(old, list):
        holder[name] = random.choice(([], old * random.randrange(MOST_COPIES), old[:1], None))
    elif isinstance(old, str):
        holder[name] = random.choice((*TEXTS, None))
    elif isinstance(old, int):
        holder[name] = random.choice(NUMBERS)


def wrong_answer(frame: bytes, served: ServedCluster) -> str | None:
    """Return the problem of a request's answer, or None if it is right, or its connection would be closed."""
    try:
        answered = run_at_once(answer_request(frame, served, Asking(("127.0.0.1", 9092))))
    except RefusedError as error:
        return None if "\n" not in str(error) else f"several lines: {error}"
    if not answered.pieces:
        return None
    header = read_request_header(frame)
    whole = b"".join(bytes(len(each)) if isinstance(each, StoredRecords) else each for each in answered.pieces)
    if int.from_bytes(whole[:4], "big") != len(whole) - 4:
        return "the size is wrong"
    message = read_response(whole[4:], header.api_key, header.api_version)
    return message.problem if message.body is not None else message.problem or "no body"


def answered_requests(seed: int, count: int, served_from: Path = SERVED) -> Iterator[tuple[bytes, str | None]]:
    """Yield mutated requests with the problems of their answers."""
    served = serve_partitions(Cluster([served_from]), ServeSettings(), lambda _: None)
    random, bases = Random(seed), base_requests(served)
    for _ in range(count):
        frame = mutate(random, bases)
        yield frame, wrong_answer(frame, served)


def main(seed: int, count: int) -> int:
    """Answer `count` requests, and write wrong answers to stdout; return the exit status."""
    failed = 0
    for number, (frame, problem) in enumerate(answered_requests(seed, count), 1):
        if problem is not None:
            failed += 1
            sys.stdout.write(f"{number}: {problem}: {frame.hex()}\n")
    sys.stdout.write(f"{count} requests, {failed} wrong answers\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
