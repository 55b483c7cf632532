"""The ways back into a cluster of docs/how-to/dead-cluster.md with a real broker: kcat's, and restore.py's.

Needs Java, Maven and kcat.
"""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests import golden, run
from tests.live.compared import Compared
from tests.live.one_broker import OneBroker
from tests.log.real_broker import PATIENCE, new_broker

if TYPE_CHECKING:
    from confluent_kafka import Producer

pytestmark = pytest.mark.kafka

PARTITIONS = 3
RECOVERY = golden.ROOT.parent / "docs" / "how-to" / "dead-cluster.md"
EVERY = bytes(range(256))
CONTENTS = (None, b"", b"text", "é→𝄞".encode(), EVERY, b"\x1ek0\x1em0\n", bytes(700_000))
HEADERS: list[list[tuple[str, bytes | None]]] = [
    [],
    [("a", b"1"), ("a", b"2"), ("null", None), ("empty", b""), ("odd ' name", EVERY[1:])],
    [("trace", b"7f")],
]
REFUSED = (None, b"")
"""Key and value that kcat can't send."""


class Served(NamedTuple):
    """A record as a consumer gets it."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneBroker]:
    """A broker that was killed after all records were written, and started again."""
    from confluent_kafka.admin import AdminClient, NewTopic

    broker = new_broker(tmp_path_factory, {"auto.create.topics.enable": "false"})
    with ExitStack() as running:
        made = OneBroker(broker, (broker.logs,), int(time.time() * 1000) - 3_600_000, running)
        with broker.running("before", is_killed=True):
            admin = AdminClient({"bootstrap.servers": made.server})
            names = ("orders", "by-kcat", "by-restore")
            wanted = [NewTopic(name, PARTITIONS, 1, config={"retention.ms": "-1"}) for name in names]
            for future in admin.create_topics(wanted).values():
                future.result(PATIENCE)
            fill(made)
        running.enter_context(broker.running("after"))
        yield made


def fill(live: OneBroker) -> None:
    """Write records of all kinds, outside of transactions and in committed and aborted ones."""
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": live.server, "linger.ms": 5}
    plain, transactional = Producer(settings), Producer({**settings, "transactional.id": "t"})
    transactional.init_transactions(PATIENCE)
    for number in range(3):
        produce(plain, live.hour_ago + number)
        transactional.begin_transaction()
        produce(transactional, live.hour_ago + 10_000 + number)
        (transactional.abort_transaction if number == 1 else transactional.commit_transaction)(PATIENCE)
    last = Producer({**settings, "transactional.id": "t"})
    last.init_transactions(PATIENCE)  # this is possible only after the other one's markers are written


def produce(producer: "Producer", timestamp: int) -> None:
    number = 0
    for key in CONTENTS[:-1]:
        for value in CONTENTS:
            for headers in HEADERS:
                time_of_one = timestamp + 100 * number
                producer.produce("orders", value, key, number % PARTITIONS, headers=headers, timestamp=time_of_one)
                number += 1
        producer.flush(PATIENCE)


def consume(live: OneBroker, topic: str) -> list[Served]:
    """Return a consumer's committed records, partition by partition, in order."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    settings: dict[str, Any] = {"bootstrap.servers": live.server, "group.id": "test", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    found: list[Served] = []
    for partition in range(PARTITIONS):
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        while (message := consumer.poll(PATIENCE)) is not None:
            error = message.error()
            if error is None:
                headers = tuple(message.headers() or ())
                found.append(Served(partition, message.key(), message.value(), headers, message.timestamp()[1]))
            elif error.code() == KafkaError._PARTITION_EOF:
                break
    consumer.close()
    return found


def places(live: OneBroker) -> list[Path]:
    return sorted(live.broker.logs.glob("orders-*"))


def test_kcat_brings_back_all_but_what_is_named(live: OneBroker, compared: Compared) -> None:
    assert shutil.which("kcat"), "kcat isn't installed"
    wanted = [record for record in consume(live, "orders") if (record.key, record.value) != REFUSED]
    dumped = run.kseg(["dump", "-o", "kcat", *map(str, places(live))], live.broker.work)
    script = live.broker.work / "restore.sh"
    script.write_bytes(dumped.stdout)
    subprocess.run(["sh", str(script), live.server, "-t", "by-kcat"], check=True, timeout=5 * PATIENCE)
    found = consume(live, "by-kcat")
    assert [record[:4] for record in found] == [record[:4] for record in wanted]
    compared.rows("records by kcat", (record[:4] for record in wanted), (record[:4] for record in found))
    all_count = len(consume(live, "orders"))
    refused = all_count - len(wanted)
    assert dumped.status == 1
    assert f"kseg: the script sends {len(wanted)} of {refused + len(wanted)} records\n" in dumped.stderr.decode()
    assert f"kcat can't send times: {len(wanted)} records" in dumped.stderr.decode()
    assert refused > 0


def test_restore_brings_back_all_with_their_times(live: OneBroker, compared: Compared) -> None:
    (code,) = re.findall(r"^```py\n(.*?)^```", RECOVERY.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    program = live.broker.work / "restore.py"
    program.write_text(code, encoding="utf-8")
    for number, place in enumerate(places(live)):
        options = ["-o", "json", "--only", "records", "--isolation", "read_committed"]
        dumped = run.kseg(["dump", *options, str(place)], live.broker.work)
        command = [sys.executable, str(program), live.server, "by-restore", str(number)]
        subprocess.run(command, input=dumped.stdout, check=True, timeout=5 * PATIENCE)
    wanted, found = consume(live, "orders"), consume(live, "by-restore")
    assert found == wanted
    compared.rows("records by restore.py", wanted, found)
