"""Traffic for a broker from a seed: records, transactions, deletions and recreated topics, all accounted for."""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from random import Random
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.live.sent_records import Bounds, Incarnation, Sent, SentRecords
from tests.log.real_broker import PATIENCE

if TYPE_CHECKING:
    from confluent_kafka import Producer

KEYS = 40
PER_STEP = 24
PRODUCERS = 5
PAUSE = 0.2
"""Seconds between steps."""
LONGEST_STEPS = 120
"""The most steps for which a transaction is left open."""
DAY_MS = 86_400_000


class Transaction(NamedTuple):
    """An open transaction: its number, and the step in which it ends."""

    number: int
    last_step: int


class Traffic:
    """A writer to the topics of a broker in a thread of its own, until it is stopped."""

    def __init__(self, server: str, topics: Mapping[str, tuple[int, dict[str, str]]], seed: int) -> None:
        """Create the topics. `topics`: the number of partitions, and the settings, by name."""
        from confluent_kafka.admin import AdminClient

        self.sent = SentRecords()
        self.topic_ids: dict[tuple[str, int], str] = {}
        self._server, self._topics, self._random = server, topics, Random(seed)
        self._admin = AdminClient({"bootstrap.servers": server, "log_level": 0})
        self._made = dict.fromkeys(topics, 0)
        self._writing = Lock()
        self._stopped = Event()
        self._running: Future[None] | None = None
        self._failed: list[str] = []
        self._step = 0
        self._transactions = 0
        self._open: dict[int, Transaction] = {}
        self._make(topics)
        self._plain = {name: self._producer() for name in topics}
        self._transactional = [self._producer(number) for number in range(PRODUCERS)]

    # --- by the thread of the test ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to write."""
        self._running = ThreadPoolExecutor(1).submit(self._run)

    def write(self, steps: int) -> None:
        """Write for some steps instead, and end all transactions."""
        for _ in range(steps):
            self._write()
        self._end_all()
        self.require_success()

    def open_transaction(self, topic: str) -> "Producer":
        """Begin a transaction, write to a topic, and leave its end to the caller."""
        producer = self._transactional[0]
        self._begin(0)
        self._produce(producer, topic, self._open.pop(0).number)
        producer.flush(PATIENCE)
        return producer

    def stop(self) -> None:
        """End all transactions, and stop; raise errors of the thread."""
        self._stopped.set()
        assert self._running is not None
        self._running.result()
        self.require_success()

    def require_success(self) -> None:
        """Raise errors of the other thread."""
        if self._running is not None and self._running.done():
            self._running.result()
        assert self._failed == []

    def bounds(self) -> dict[Incarnation, Bounds]:
        """Return the present bounds of each partition, from the broker."""
        from confluent_kafka import IsolationLevel
        from confluent_kafka.admin import OffsetSpec

        starts = self._offsets(OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED)
        stable = self._offsets(OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
        ends = self._offsets(OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
        return {log: Bounds(starts[log], stable[log], ends[log]) for log in starts}

    def delete_records(self, random: Random, topic: str) -> None:
        """Delete some of the first records of one partition."""
        from confluent_kafka import TopicPartition

        log = random.choice([log for log in self._logs() if log.topic == topic])
        bounds = self.bounds()[log]
        offset = random.randint(bounds.start, bounds.end)
        for future in self._admin.delete_records([TopicPartition(topic, log.partition, offset)]).values():
            future.result(PATIENCE)

    def recreate(self, topic: str) -> None:
        """Delete a topic, and create it again: other offsets, another id."""
        with self._writing:
            self._plain[topic].flush(PATIENCE)
            for future in self._admin.delete_topics([topic], operation_timeout=PATIENCE).values():
                future.result(PATIENCE)
            self._made[topic] += 1
            self._make([topic])
            self._plain[topic] = self._producer()

    # --- by its own thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopped.wait(PAUSE):
            with self._writing:
                self._write()
        self._end_all()

    def _end_all(self) -> None:
        for number in list(self._open):
            self._end(number)
        for producer in self._plain.values():
            producer.flush(PATIENCE)

    def _write(self) -> None:
        """Take a step: plain records into some topics, and a step of a transaction."""
        self._step += 1
        topics = self._random.sample(sorted(self._topics), 3)
        for topic in topics:
            self._produce(self._plain[topic], topic, None)
        for topic in topics:
            self._plain[topic].flush(PATIENCE)
        number = self._random.randrange(PRODUCERS)
        producer = self._transactional[number]
        if number not in self._open:
            self._begin(number)
        for topic in self._random.sample([name for name in sorted(self._topics) if name != "remade"], 2):
            self._produce(producer, topic, self._open[number].number)
        producer.flush(PATIENCE)
        for due in [number for number, transaction in self._open.items() if transaction.last_step <= self._step]:
            self._end(due)

    def _begin(self, number: int) -> None:
        self._transactional[number].begin_transaction()
        self._transactions += 1
        steps = self._random.choice((0, 0, 0, 0, 1, 5, LONGEST_STEPS))
        self._open[number] = Transaction(self._transactions, self._step + steps)

    def _end(self, number: int) -> None:
        transaction, producer = self._open.pop(number), self._transactional[number]
        is_committed = self._random.random() < 0.7
        (producer.commit_transaction if is_committed else producer.abort_transaction)(PATIENCE)
        self.sent.note_end(transaction.number, is_committed=is_committed)

    def _produce(self, producer: "Producer", topic: str, transaction: int | None) -> None:
        count = self._random.randint(1, PER_STEP)
        partitions = [self._random.randrange(self._topics[topic][0]) for _ in range(2)]
        for _ in range(count):
            log = Incarnation(topic, self._made[topic], self._random.choice(partitions))
            key = b"key-%d" % self._random.randrange(KEYS)
            value = None if self._random.random() < 0.05 else self._random.randbytes(self._random.randint(0, 300))
            timestamp = int(time.time() * 1000) - self._random.choice((0, 0, 0, 1000))
            self._send(producer, log, key, value, timestamp, transaction)

    def _send(
        self,
        producer: "Producer",
        log: Incarnation,
        key: bytes,
        value: bytes | None,
        timestamp: int,
        transaction: int | None,
    ) -> None:
        number = self.sent.next_number(log, key)

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                self._failed.append(f"{log}: {error}")
                return
            self.sent.took(Sent(number, log, message.offset(), timestamp, key, value, transaction))

        headers = [("number", b"%d" % number)]
        producer.produce(log.topic, value, key, log.partition, delivered, timestamp=timestamp, headers=headers)

    # --- the broker ---------------------------------------------------------------------------------------------------

    def _producer(self, number: int | None = None) -> "Producer":
        from confluent_kafka import Producer

        settings: dict[str, Any] = {"bootstrap.servers": self._server, "linger.ms": 1, "acks": "all", "log_level": 0}
        if number is None:
            return Producer({**settings, "enable.idempotence": True})
        producer = Producer({**settings, "transactional.id": f"tx-{number}", "transaction.timeout.ms": 900_000})
        producer.init_transactions(PATIENCE)
        return producer

    def _make(self, names: Iterable[str]) -> None:
        from confluent_kafka.admin import NewTopic

        wanted_names = list(names)
        wanted = [NewTopic(name, self._topics[name][0], 1, config=self._topics[name][1]) for name in wanted_names]
        for future in self._admin.create_topics(wanted, operation_timeout=PATIENCE).values():
            future.result(PATIENCE)

        for name in wanted_names:
            self.topic_ids[name, self._made[name]] = self._topic_id(name)

    def _topic_id(self, name: str) -> str:
        from confluent_kafka import TopicCollection

        (described,) = patiently(lambda: self._admin.describe_topics(TopicCollection([name]))).values()
        return str(described.topic_id)

    def _logs(self) -> list[Incarnation]:
        return [
            Incarnation(topic, self._made[topic], number)
            for topic, (count, _) in self._topics.items()
            for number in range(count)
        ]

    def _offsets(self, spec: Any, isolation: Any) -> dict[Incarnation, int]:
        from confluent_kafka import TopicPartition

        logs = {TopicPartition(log.topic, log.partition): log for log in self._logs()}
        wanted = dict.fromkeys(logs, spec)
        found = patiently(lambda: self._admin.list_offsets(wanted, isolation_level=isolation))
        return {logs[partition]: result.offset for partition, result in found.items()}


def patiently(ask: Callable[[], "dict[Any, Future[Any]]"]) -> dict[Any, Any]:
    """Return the broker's answers, as soon as it knows topics that were just created."""
    from confluent_kafka import KafkaError, KafkaException

    end = time.monotonic() + PATIENCE
    while True:
        try:
            return {key: future.result(PATIENCE) for key, future in ask().items()}
        except KafkaException as error:
            too_early = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.NOT_LEADER_FOR_PARTITION)
            if error.args[0].code() not in too_early or time.monotonic() > end:
                raise
