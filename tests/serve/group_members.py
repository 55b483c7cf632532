"""Members of groups: clients of several libraries with one interface."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from time import monotonic
from types import MappingProxyType
from typing import Any, Protocol

from tests.serve.running import PATIENCE, Running

Place = tuple[str, int, int]
"""Topic, partition, offset of a record."""
GROUP = "billing"


class Member(Protocol):
    """A subscribed consumer."""

    def poll(self) -> list[Place]:
        """Return new records after a short wait."""

    def assigned_partitions(self) -> set[tuple[str, int]]:
        """Return its partitions."""

    def close(self) -> None:
        """Commit the position, and leave."""


class ByLibrdkafka:
    """confluent-kafka with the classic protocol."""

    protocol: Mapping[str, Any] = MappingProxyType({"heartbeat.interval.ms": 200})

    def __init__(self, bootstrap: str, topics: list[str], **settings: Any) -> None:
        from confluent_kafka import Consumer

        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 10,
                **self.protocol,
                **settings,
            }
        )
        self.consumer.list_topics(timeout=PATIENCE)  # otherwise it looks for topics only after half a second
        self.consumer.subscribe(topics)

    def poll(self) -> list[Place]:
        messages = self.consumer.consume(5, 0.1)
        for message in messages:
            assert message.error() is None, message.error()
        return [(message.topic(), message.partition(), message.offset()) for message in messages]

    def assigned_partitions(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self.consumer.assignment()}

    def close(self) -> None:
        self.consumer.close()


class ByLibrdkafkaConsumerProtocol(ByLibrdkafka):
    """The same with the consumer protocol."""

    protocol = MappingProxyType({"group.protocol": "consumer"})


class ByKafkaPython:
    """kafka-python."""

    def __init__(self, bootstrap: str, topics: list[str]) -> None:
        from kafka import KafkaConsumer  # type: ignore[import-untyped]

        self.consumer = KafkaConsumer(
            *topics,
            bootstrap_servers=bootstrap,
            group_id=GROUP,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=10,
            heartbeat_interval_ms=200,
            max_poll_records=5,
        )

    def poll(self) -> list[Place]:
        found = self.consumer.poll(100)
        return [(each.topic, each.partition, each.offset) for records in found.values() for each in records]

    def assigned_partitions(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self.consumer.assignment()}

    def close(self) -> None:
        self.consumer.close()


class ByAiokafka:
    """aiokafka, whose loop runs during polls."""

    def __init__(self, bootstrap: str, topics: list[str]) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self._start(bootstrap, topics))

    async def _start(self, bootstrap: str, topics: list[str]) -> None:
        from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]

        self.consumer = AIOKafkaConsumer(
            *topics,
            bootstrap_servers=bootstrap,
            group_id=GROUP,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=10,
            heartbeat_interval_ms=200,
            max_poll_records=5,
        )
        self.starting = asyncio.ensure_future(self.consumer.start())

    def poll(self) -> list[Place]:
        return self.loop.run_until_complete(self._poll())

    async def _poll(self) -> list[Place]:
        done, _ = await asyncio.wait({self.starting}, timeout=0.1)
        if not done:
            return []
        self.starting.result()
        found = await self.consumer.getmany(timeout_ms=100)
        return [(each.topic, each.partition, each.offset) for records in found.values() for each in records]

    def assigned_partitions(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self.consumer.assignment()}

    def close(self) -> None:
        self.loop.run_until_complete(self.consumer.stop())


@contextmanager
def members(running: Running, kind: Callable[..., Member], count: int, topics: Iterable[str]) -> Iterator[list[Member]]:
    """Start members of one group; the context closes those that the test didn't."""
    found = [kind(running.bootstrap, list(topics)) for _ in range(count)]
    try:
        yield found
    finally:
        for member in found:
            member.close()


def poll_until(polled: Iterable[Member], is_done: Callable[[list[Place]], bool], got: list[Place]) -> None:
    """Let members read into `got` until a condition holds.

    Each reads in a thread: some clients wait in a poll until all members have joined.
    """
    end = monotonic() + PATIENCE
    with ThreadPoolExecutor() as threads:
        polls = {threads.submit(member.poll): member for member in polled}
        while True:
            done, waiting = wait(polls, timeout=0.5)
            got += (place for poll in done for place in poll.result())
            is_over = is_done(got) and not waiting
            assert is_over or monotonic() < end, (got[-5:], [member.assigned_partitions() for member in polls.values()])
            if is_over:
                return
            polls = {threads.submit(who.poll) if poll in done else poll: who for poll, who in polls.items()}
