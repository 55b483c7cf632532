"""Transactions by real producers with their outcomes: the truth that logs are compared with.

Partition 0 has transactions that are open at its end, partition 1 has none, and in partition 2 some hang.
"""

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.live.wire import coordinator_states, write_late
from tests.log.real_broker import PATIENCE, Broker

Records = frozenset[tuple[int, str]]
"""Offsets and values."""

SOURCE = "source"
OPEN, ENDED, HANGING = PARTITIONS = range(3)
IDS = 4
STEPS = 70
SEED = 7
HOUR_MS = 3_600_000
LONG = {"long-0": False, "long-1": True}
"""Transactions over several segments, and whether they are committed."""
LATE_PRODUCER = 4_000_000
"""A producer id that no coordinator issued."""
LEFT_OPEN_MS, SHORT_MS = 900_000, 1000
EXPIRES = {
    "transactional.id.expiration.ms": 500,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 300,
}
"""Settings with which a coordinator soon forgets a transactional id."""
ABORTS_LATE = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 300}


class Sent(NamedTuple):
    """Records that a broker took. transaction: its number, None outside of any."""

    partition: int
    records: Records
    transaction: int | None


class History:
    """The sent records, and each transaction's end: True for commit, None if it hasn't ended.

    forgotten: producer ids of transactional ids that their coordinator no longer has.
    """

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.outcomes: dict[int, bool | None] = {}
        self.forgotten: dict[str, int] = {}

    def committed_records(self, partition: int) -> Records:
        """Return the records of a partition that were committed, or sent outside of transactions."""
        return frozenset(
            record
            for sent in self.sent
            if sent.partition == partition and (sent.transaction is None or self.outcomes[sent.transaction] is True)
            for record in sent.records
        )

    def last_stable_offset(self, partition: int) -> int | None:
        """Return the first offset of the oldest open transaction, or None if all have ended."""
        opened = (
            offset
            for sent in self.sent
            if sent.partition == partition and sent.transaction is not None and self.outcomes[sent.transaction] is None
            for offset, _ in sent.records
        )
        return min(opened, default=None)


class Writer:
    """Producers of a broker's own release, and their history."""

    def __init__(self, broker: Broker, process: "subprocess.Popen[str]", history: History) -> None:
        self._broker = broker
        self._process = process
        self._history = history
        self._then = int(time.time() * 1000) - HOUR_MS
        self._open: dict[str, int] = {}

    def _ask(self, *words: object) -> str:
        """Send the script a line; return its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(*words, file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip()

    def _do(self, *words: object) -> str:
        """Send the script a line that it must confirm as done."""
        answer = self._ask(*words)
        assert answer.startswith("ok"), (words, answer)
        return answer

    def _open_producer(self, name: str, transactional_id: str = "-", timeout_ms: int = LEFT_OPEN_MS) -> None:
        self._do("open", name, transactional_id, timeout_ms)

    def _begin(self, name: str) -> None:
        self._do("begin", name)
        self._open[name] = number = len(self._history.outcomes)
        self._history.outcomes[number] = None

    def _send(self, name: str, partition: int, count: int) -> None:
        transaction = self._open.get(name)
        tag = f"{name}-{len(self._history.sent)}"
        _, *offsets = self._do("send", name, SOURCE, partition, self._then, count, tag).split()
        records = frozenset((int(offset), f"{tag}.{number}") for number, offset in enumerate(offsets))
        self._history.sent.append(Sent(partition, records, transaction))

    def _end(self, name: str, *, is_committed: bool) -> None:
        self._do("commit" if is_committed else "abort", name)
        self._note_end(name, is_committed=is_committed)

    def _note_end(self, name: str, *, is_committed: bool) -> None:
        """Note the end of a transaction, perhaps by its coordinator."""
        self._history.outcomes[self._open.pop(name)] = is_committed

    def _late(self, partition: int, producer_id: int, epoch: int) -> None:
        """Write a transactional batch that no coordinator knows."""
        offset = write_late(self._broker.port, SOURCE, partition, producer_id, epoch, self._then)
        number = len(self._history.outcomes)
        self._history.outcomes[number] = None
        self._history.sent.append(Sent(partition, frozenset({(offset, "late")}), number))

    # --- what happens -------------------------------------------------------------------------------------------------

    def write_forgotten(self) -> None:
        """Write transactions that their coordinator forgets after their end."""
        for number, name in enumerate(("gone-0", "gone-1")):
            self._open_producer(name, name)
            self._begin(name)
            for partition in PARTITIONS:
                self._send(name, partition, 3)
            self._history.forgotten[name] = coordinator_states(self._broker.port)[name].producer_id
            self._end(name, is_committed=number == 0)
        self._wait(lambda: not coordinator_states(self._broker.port))

    def write(self) -> None:
        """Write all others: short and long ones, of several producers at once, one fenced, one timed out, some open."""
        self._open_producer("plain")
        for name in LONG:
            self._open_producer(name, name)
            self._begin(name)
            for partition in PARTITIONS:
                self._send(name, partition, 1)
        chosen, steps = random.Random(SEED), dict.fromkeys(range(STEPS), self._step)
        steps |= {10: self._fence, 20: self._time_out, 45: self._leave_open, 50: self._hang, 55: self._end_long}
        for number in range(IDS):
            self._open_producer(f"tx-{number}", f"tx-{number}")
        for step in steps.values():
            step(chosen)
        for number in range(IDS):
            self._end_one(f"tx-{number}", is_committed=number % 2 == 0)
        self._wait(self._has_ended)

    def _step(self, chosen: random.Random) -> None:
        name = f"tx-{chosen.randrange(IDS)}"
        if name not in self._open:
            self._begin(name)
        for partition in chosen.sample(PARTITIONS, 2):
            self._send(name, partition, chosen.randint(1, 4))
        if chosen.random() < 0.2:
            self._send("plain", chosen.choice(PARTITIONS), 2)
        if chosen.random() < 0.5:
            self._end_one(name, is_committed=chosen.random() < 0.5)

    def _end_one(self, name: str, *, is_committed: bool) -> None:
        """End a transaction that has records in all partitions."""
        if name not in self._open:
            self._begin(name)
        for partition in PARTITIONS:
            self._send(name, partition, 1)
        self._end(name, is_committed=is_committed)

    def _fence(self, _: random.Random) -> None:
        self._open_producer("old", "fenced")
        self._begin("old")
        for partition in PARTITIONS:
            self._send("old", partition, 2)
        self._open_producer("new", "fenced")
        assert self._ask("commit", "old") != "ok"
        self._note_end("old", is_committed=False)
        self._end_one("new", is_committed=True)

    def _time_out(self, _: random.Random) -> None:
        self._open_producer("slow", "slow", SHORT_MS)
        self._begin("slow")
        for partition in PARTITIONS:
            self._send("slow", partition, 2)
        self._wait(lambda: coordinator_states(self._broker.port)["slow"].state == "CompleteAbort")
        self._note_end("slow", is_committed=False)

    def _leave_open(self, _: random.Random) -> None:
        for number in range(2):
            self._open_producer(f"left-{number}", f"left-{number}")
            self._begin(f"left-{number}")
            self._send(f"left-{number}", OPEN, 2)

    def _hang(self, _: random.Random) -> None:
        self._late(HANGING, LATE_PRODUCER, 0)
        self._late(HANGING, self._history.forgotten["gone-0"], 900)

    def _end_long(self, _: random.Random) -> None:
        for name, is_committed in LONG.items():
            self._end_one(name, is_committed=is_committed)

    def _has_ended(self) -> bool:
        """Return True if the coordinators have written all markers."""
        states = coordinator_states(self._broker.port)
        return all(known.state.startswith("Complete") for name, known in states.items() if not name.startswith("left-"))

    def _wait(self, condition: Callable[[], bool]) -> None:
        self._broker.tools.wait_until(condition, PATIENCE, "the coordinators don't get there")


@contextmanager
def writer(broker: Broker, history: History) -> Iterator[Writer]:
    """Start producers of a running broker; at the end they are killed, with their transactions open."""
    script = Path(__file__).with_name("TransactionScript.java")
    command = broker.kafka.command(str(script), f"127.0.0.1:{broker.port}", options=[broker.tools.QUIET])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Writer(broker, process, history)
        finally:
            process.kill()
