"""Load on a server of its own: connections that come by the thousand, or many readers. Also a program.

`python -m tests.serve.load connects 60`: so many seconds long 1,000 connections a second; another client is served on.
`python -m tests.serve.load readers 64`: 200 connections that read so many MiB each of a partition of 1 GiB.
Prints the server's memory before, after and at most, by /proc.
"""

import asyncio
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from tests import golden
from tests.log_files import NewBatch, NewRecord, batch_bytes
from tests.processes import started
from tests.protocol.packets import framed, request

KSEG = Path(sys.executable).with_name("kseg")
RATE = 1000
AT_ONCE = 600
"""Connections that stay open for a while: half of a request was sent there."""
READERS = 200
MIB = 1 << 20
GIB = 1 << 30
METADATA, FETCH = 3, 1


@dataclass(frozen=True)
class Server:
    """A running `kseg serve`."""

    address: tuple[str, int]
    process_id: int

    def memory(self, name: str = "VmRSS") -> float:
        """MiB of resident memory now; of VmHWM at most."""
        status = Path(f"/proc/{self.process_id}/status").read_text()
        found = re.search(rf"{name}:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024


@contextmanager
def server_of(directory: Path) -> Iterator[Server]:
    command = [KSEG, "serve", directory, "-q", "--listen", "127.0.0.1:0"]
    with started(command, directory, stderr=None) as process:
        assert process.stdout is not None
        host, port = process.stdout.readline().decode().strip().rsplit(":", 1)
        yield Server((host, int(port)), process.pid)
        process.terminate()
        process.wait()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frame: bytes) -> int:
    """Sends a request and takes its answer; gives its size."""
    writer.write(frame)
    size = left = int.from_bytes(await reader.readexactly(4), "big")
    while left:
        left -= len(await reader.readexactly(min(left, 1 << 18)))
    return size


def metadata() -> bytes:
    return framed(request(METADATA, 9, {"topics": None}))


@dataclass
class Comers:
    """Connections that come and go, each in one of some ways."""

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
    """A partition of some size; gives how many batches of one record it has. A batch's CRC doesn't cover its offset."""
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
        size += await ask(reader, writer, framed(request(FETCH, 11, body)))
        offset += 1
    writer.close()
    return size


def tell_memory(server: Server, before: float) -> None:
    now, most = server.memory(), server.memory("VmHWM")
    print(f"the server's memory: {before:.1f} MiB before, {now:.1f} MiB after, {most:.1f} MiB at most")  # noqa: T201


def main(what: str, much: str) -> None:
    """Puts load on a server, and prints what came of it."""
    if what == "connects":
        with server_of(golden.ROOT / "logs" / "4.3.1" / "zstd-0") as server:
            asyncio.run(connects(server, float(much)))
        return
    with TemporaryDirectory() as directory:
        count = make_partition(Path(directory), GIB)
        with server_of(Path(directory)) as server:
            asyncio.run(readers(server, count, int(much)))


if __name__ == "__main__":
    main(*sys.argv[1:3])
