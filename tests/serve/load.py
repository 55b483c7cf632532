"""Load on a separate server: thousands of connections, or many readers. Also a program.

`python -m tests.serve.load connects 60`: 1,000 connections a second for 60 seconds; another client is served.
`python -m tests.serve.load readers 64`: 200 connections that each read 64 MiB of a partition of 1 GiB.
`python -m tests.serve.load attacks 10`: each attack for 10 seconds, while another client is served. That client also
uses a server without attack: its waits there are due to the machine.
Prints the server's memory before, after and at most, from /proc.
"""

import asyncio
import re
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from tests import golden
from tests.log_files import NewBatch, NewRecord, batch_bytes
from tests.processes import start_process
from tests.protocol.packets import frame_message, request

KSEG = Path(sys.executable).with_name("kseg")
RATE = 1000
AT_ONCE = 600
"""Connections that stay open for a while after half a request."""
READERS = 200
MIB = 1 << 20
GIB = 1 << 30
METADATA, FETCH, LIST_OFFSETS, OFFSET_FETCH, DESCRIBE_GROUPS, CREATE_TOPICS = 3, 1, 2, 9, 15, 19
WIDEST = 99_999
"""The largest number of a partition; missing lower ones are served as empty ones."""


@dataclass(frozen=True)
class Server:
    """A running `kseg serve` process."""

    address: tuple[str, int]
    process_id: int

    def memory(self, name: str = "VmRSS") -> float:
        """Return MiB of resident memory; for VmHWM its maximum."""
        status = Path(f"/proc/{self.process_id}/status").read_text()
        found = re.search(rf"{name}:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024

    def forget_most(self) -> None:
        """Reset VmHWM."""
        Path(f"/proc/{self.process_id}/clear_refs").write_text("5")


@contextmanager
def server_of(directory: Path) -> Iterator[Server]:
    command = [KSEG, "serve", directory, "-q", "--listen", "127.0.0.1:0"]
    with start_process(command, directory, stderr=None) as process:
        assert process.stdout is not None
        host, port = process.stdout.readline().decode().strip().rsplit(":", 1)
        yield Server((host, int(port)), process.pid)
        process.terminate()
        process.wait()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frame: bytes) -> int:
    """Send a request and read its answer; return its size."""
    writer.write(frame)
    size = left = int.from_bytes(await reader.readexactly(4), "big")
    while left:
        left -= len(await reader.readexactly(min(left, 1 << 18)))
    return size


def metadata() -> bytes:
    return frame_message(request(METADATA, 9, {"topics": None}))


@dataclass
class Comers:
    """Connections that come and go, each in one of several ways."""

    server: Server
    counts: Counter[str] = field(default_factory=Counter)
    waiting: list[asyncio.StreamWriter] = field(default_factory=list)

    async def come(self, number: int) -> None:
        try:
            reader, writer = await asyncio.open_connection(*self.server.address)
            if number % 3 == 0:
                writer.transport.abort()
                self.counts["closed at once"] += 1
            elif number % 3 == 1:
                await ask(reader, writer, metadata())
                writer.close()
                self.counts["answered"] += 1
            else:
                writer.write(metadata()[:9])
                self.waiting.append(writer)
                self.counts["left half a request"] += 1
                if len(self.waiting) > AT_ONCE:
                    self.waiting.pop(0).transport.abort()
        except (OSError, EOFError):
            self.counts["refused"] += 1


async def connects(server: Server, seconds: float) -> None:
    comers, tasks = Comers(server), set[asyncio.Task[None]]()
    reader, writer = await asyncio.open_connection(*server.address)
    await ask(reader, writer, metadata())
    before, begun = server.memory(), monotonic()
    ended, longest, answers = begun + seconds, 0.0, 0
    number = 0
    while (now := monotonic()) < ended:
        while number < (now - begun) * RATE:
            tasks.add(task := asyncio.create_task(comers.come(number)))
            task.add_done_callback(tasks.discard)
            number += 1
        await ask(reader, writer, metadata())
        longest, answers = max(longest, monotonic() - now), answers + 1
        await asyncio.sleep(0.001)
    for task in list(tasks):
        with suppress(Exception):
            await task
    took = monotonic() - begun
    for each in comers.waiting:
        each.transport.abort()
    await ask(reader, writer, metadata())
    told = ", ".join(f"{count} {what}" for what, count in sorted(comers.counts.items()))
    print(f"{number} connects in {took:.0f} s: {told}")  # noqa: T201
    print(f"another client: {answers} answers, the slowest after {longest * 1000:.0f} ms")  # noqa: T201
    tell_memory(server, before)


def make_partition(directory: Path, size: int) -> int:
    """Write a partition of some size; return its number of batches of one record.

    A batch's CRC doesn't cover its offset.
    """
    batch = batch_bytes(NewBatch([NewRecord(b"k", bytes(range(256)) * (MIB // 256), 1_700_000_000_000)]))
    count = size // len(batch)
    (directory / "large-0").mkdir()
    with (directory / "large-0" / f"{0:020}.log").open("wb") as log:
        for offset in range(count):
            log.write(offset.to_bytes(8, "big") + batch[8:])
    return count


async def readers(server: Server, count: int, mib: int) -> None:
    before, begun = server.memory(), monotonic()
    sizes = await asyncio.gather(*(read(server, number * count // READERS, count, mib) for number in range(READERS)))
    took = monotonic() - begun
    total = sum(sizes) / MIB
    print(f"{READERS} connections read {total:.0f} MiB in {took:.0f} s: {total / took:.0f} MiB/s")  # noqa: T201
    tell_memory(server, before)


async def read(server: Server, offset: int, count: int, mib: int) -> int:
    reader, writer = await asyncio.open_connection(*server.address)
    size = 0
    while size < mib * MIB:
        part = {"partition": 0, "fetchOffset": offset % count, "partitionMaxBytes": MIB}
        topics = [{"topic": "large", "partitions": [part]}]
        body = {"maxWaitMs": 0, "minBytes": 1, "maxBytes": 50 * MIB, "replicaId": -1, "topics": topics}
        size += await ask(reader, writer, frame_message(request(FETCH, 11, body)))
        offset += 1
    writer.close()
    return size


def tell_memory(server: Server, before: float) -> None:
    now, most = server.memory(), server.memory("VmHWM")
    print(f"the server's memory: {before:.1f} MiB before, {now:.1f} MiB after, {most:.1f} MiB at most")  # noqa: T201


def make_wide_topic(directory: Path) -> None:
    """Write a topic with the most partitions possible, and one with a record."""
    for name in (f"wide-{WIDEST}", "small-0"):
        batch = batch_bytes(NewBatch([NewRecord(b"k", b"v", 1_700_000_000_000)]))
        (directory / name).mkdir()
        (directory / name / f"{0:020}.log").write_bytes(batch)


Attack = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def asking(*frames: bytes) -> Attack:
    """Return an attack that sends requests again and again."""

    async def attack(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            for frame in frames:
                await ask(reader, writer, frame)

    return attack


def saying(content: bytes) -> Attack:
    """Return an attack that sends something, and then neither reads nor writes."""

    async def attack(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(content)
        await asyncio.sleep(1_000)

    return attack


async def coming(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
    """Connect, and close the connection at once."""


def many_offsets(count: int) -> bytes:
    parts = [{"partitionIndex": number, "timestamp": -2} for number in range(count)]
    return frame_message(request(LIST_OFFSETS, 5, {"replicaId": -1, "topics": [{"name": "wide", "partitions": parts}]}))


def repeated_names() -> bytes:
    """Return a request of three kB that names topics repeatedly."""
    return frame_message(request(METADATA, 9, {"topics": [{"name": "wide"}] * 400}))


def repeated_groups() -> bytes:
    group = {"groupId": "g", "topics": [{"name": "wide", "partitionIndexes": [1, 2, 3] * 100}]}
    return frame_message(request(OFFSET_FETCH, 8, {"groups": [group] * 20}))


def waiting_fetch(count: int) -> bytes:
    parts = [{"partition": number, "fetchOffset": 0, "partitionMaxBytes": MIB} for number in range(count)]
    topics = [{"topic": "wide", "partitions": parts}]
    body = {"maxWaitMs": 30_000, "minBytes": 1, "maxBytes": MIB, "replicaId": -1, "topics": topics}
    return frame_message(request(FETCH, 11, body))


def refused_topics(count: int) -> bytes:
    topics = [{"name": f"t{number}", "numPartitions": 1, "replicationFactor": 1} for number in range(count)]
    return frame_message(request(CREATE_TOPICS, 7, {"topics": topics}))


def tagged_fields(count: int) -> bytes:
    return frame_message(request(METADATA, 9, {"topics": [], "unknownTaggedFields": dict.fromkeys(range(count), b"")}))


ATTACKS: dict[str, tuple[int, Attack]] = {
    "nothing": (0, asking()),
    "4 clients that name a topic of 100,000 partitions 400 times": (4, asking(repeated_names())),
    "16 clients that ask for all topics": (16, asking(metadata())),
    "8 clients with groups that are named again and again": (
        8,
        asking(repeated_groups(), frame_message(request(DESCRIBE_GROUPS, 5, {"groups": ["g"] * 5_000}))),
    ),
    "4 clients that ask for 32,000 offsets": (4, asking(many_offsets(32_000))),
    "400 unfinished requests of a MiB": (400, saying((MIB).to_bytes(4, "big") + bytes(MIB - 1))),
    "400 clients that take no answer": (400, saying(metadata() * 20)),
    "50 clients that connect again and again": (50, coming),
    "300 clients that wait for 5,000 partitions": (300, asking(waiting_fetch(5_000))),
    "8 clients that make 30,000 topics": (8, asking(refused_topics(30_000))),
    "8 clients that send 32,000 tagged fields": (8, asking(tagged_fields(32_000))),
}


async def attacks(server: Server, untouched: Server, seconds: float) -> None:
    """Measure another client's waits during each attack, and the server's memory.

    untouched: a server without attackers, to measure waits that the busy machine causes.
    """
    usual = 0.0
    connections = [await asyncio.open_connection(*each.address) for each in (server, untouched)]
    for what in ATTACKS:
        server.forget_most()
        host, port = server.address
        command = ["-m", "tests.serve.load", "attackers", what, host, str(port)]
        attackers = await asyncio.create_subprocess_exec(sys.executable, *command)
        waits, usual_waits = await innocent(connections, seconds)
        attackers.kill()
        await attackers.wait()
        p50, p99 = (waits[int(len(waits) * share)] * 1000 for share in (0.5, 0.99))
        of_machine = usual_waits[int(len(usual_waits) * 0.99)] * 1000
        usual = usual or p99
        print(  # noqa: T201
            f"{what}: {len(waits)} answers, p50 {p50:.1f} ms, p99 {p99:.1f} ms ({p99 / usual:.1f} times, and"
            f" {p99 / of_machine:.1f} times that of a server without attack), the slowest {waits[-1] * 1000:.0f} ms;"
            f" memory at most {server.memory('VmHWM'):.0f} MiB",
            flush=True,
        )


async def attackers(what: str, address: tuple[str, int]) -> None:
    """Run all attackers of a kind, without end."""
    count, attack = ATTACKS[what]
    await asyncio.gather(asyncio.sleep(1_000), *(attacker(address, attack) for _ in range(count)))


async def attacker(address: tuple[str, int], attack: Attack) -> None:
    """Run an attacker, which reconnects whenever its connection is closed."""
    while True:
        with suppress(OSError, EOFError):
            reader, writer = await asyncio.open_connection(*address)
            try:
                await attack(reader, writer)
            finally:
                writer.transport.abort()


async def innocent(
    connections: Sequence[tuple[asyncio.StreamReader, asyncio.StreamWriter]], seconds: float
) -> list[list[float]]:
    """Return the durations of another client's requests, on each connection in turn; the shortest first."""
    part = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": MIB}
    topics = [{"topic": "small", "partitions": [part]}]
    body = {"maxWaitMs": 0, "minBytes": 1, "maxBytes": MIB, "replicaId": -1, "topics": topics}
    frames = (
        frame_message(request(FETCH, 11, body)),
        frame_message(request(METADATA, 9, {"topics": [{"name": "small"}]})),
    )
    waits: list[list[float]] = [[] for _ in connections]
    ended = monotonic() + seconds
    while monotonic() < ended:
        for (reader, writer), took in zip(connections, waits, strict=True):
            begun = monotonic()
            await ask(reader, writer, frames[len(took) % 2])
            took.append(monotonic() - begun)
        await asyncio.sleep(0.01)
    return [sorted(each) for each in waits]


def main(what: str, much: str, *address: str) -> None:
    """Put load on a server, and print the results."""
    if what == "attackers":
        asyncio.run(attackers(much, (address[0], int(address[1]))))
        return
    if what == "connects":
        with server_of(golden.ROOT / "logs" / "4.3.1" / "zstd-0") as server:
            asyncio.run(connects(server, float(much)))
        return
    if what == "attacks":
        with TemporaryDirectory() as directory:
            make_wide_topic(Path(directory))
            with server_of(Path(directory)) as server, server_of(Path(directory)) as untouched:
                asyncio.run(attacks(server, untouched, float(much)))
        return
    with TemporaryDirectory() as directory:
        count = make_partition(Path(directory), GIB)
        with server_of(Path(directory)) as server:
            asyncio.run(readers(server, count, int(much)))


if __name__ == "__main__":
    main(*sys.argv[1:])
