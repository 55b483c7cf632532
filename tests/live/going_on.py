"""A producer and a consumer that continue while a cluster fails and comes back."""

import threading
import time
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

TOPIC = "orders"
GROUP = "billing"
PARTITIONS = 6
PAUSE = 0.01
PATIENCE = 300


class Producing:
    """A producer of numbered records with acks=all; `acknowledged`: the numbers with their places."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: dict[int, tuple[int, int]] = {}
        self.failed: list[str] = []
        self._producer = Producer({
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "delivery.timeout.ms": 600_000,
            "reconnect.backoff.max.ms": 1000,
        })  # fmt: skip
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop once all sent records are acknowledged."""
        self._ended.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE) == 0

    def _send(self) -> None:
        number = 0
        while not self._ended.wait(PAUSE):
            self._producer.produce(
                TOPIC, str(number).encode(), partition=number % PARTITIONS, on_delivery=self._delivered
            )
            number += 1
            self._producer.poll(0)

    def _delivered(self, error: Any, message: Message) -> None:
        if error is not None:
            self.failed.append(str(error))
            return
        place = (message.partition() or 0, message.offset() or 0)
        self.acknowledged[int(message.value() or b"")] = place

    def wait_for_more(self, count: int) -> None:
        """Wait until `count` more records are acknowledged."""
        wanted = len(self.acknowledged) + count
        deadline = time.monotonic() + PATIENCE
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < deadline, f"{len(self.acknowledged)} of {wanted} are acknowledged"
            time.sleep(PAUSE)


def consumer_of(bootstrap: str, group: str) -> Consumer:
    return Consumer({
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "reconnect.backoff.max.ms": 1000,
    })  # fmt: skip


def take(consumer: Consumer, count: int) -> dict[int, tuple[int, int]]:
    """Consume `count` records of a group, and commit; return their numbers and places."""
    taken: dict[int, tuple[int, int]] = {}
    deadline = time.monotonic() + PATIENCE
    while len(taken) < count:
        assert time.monotonic() < deadline, f"{len(taken)} of {count} came"
        for message in consumer.consume(500, 1):
            if message.error() is None:
                taken[int(message.value() or b"")] = (message.partition() or 0, message.offset() or 0)
    ends: dict[int, int] = {}
    for partition, offset in taken.values():
        ends[partition] = max(ends.get(partition, 0), offset + 1)
    consumer.commit(offsets=[TopicPartition(TOPIC, *end) for end in ends.items()], asynchronous=False)
    return taken


def everything(bootstrap: str) -> dict[int, tuple[int, int]]:
    """Return all numbers in the topic with their places."""
    consumer = consumer_of(bootstrap, "auditor")
    ends = {
        number: consumer.get_watermark_offsets(TopicPartition(TOPIC, number), PATIENCE) for number in range(PARTITIONS)
    }
    consumer.assign([TopicPartition(TOPIC, number, low) for number, (low, _) in ends.items()])
    wanted = sum(high - low for low, high in ends.values())
    found = take(consumer, wanted) if wanted else {}
    consumer.close()
    return found
