"""Servers for tests, in threads of their own."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kseg.cluster.cluster import Cluster
from kseg.cluster.settings import read_server_properties
from kseg.cluster.tier_inputs import RemoteLogs
from kseg.formats.file_names import parse_file_name
from kseg.log.selection import EVERY_PARTITION, PartitionChoice
from kseg.serve.cluster import ServedCluster, serve_partitions
from kseg.serve.server import Server, ServerTalk
from kseg.serve.values import ServeSettings
from kseg.system.addresses import address_text
from kseg.system.placed_path import as_path

PATIENCE = 120
"""Seconds after which a test gives up on a silent client."""


@dataclass
class Running:
    """A running server: its address, served cluster, messages, and noted requests."""

    address: tuple[str, int]
    served: ServedCluster
    said: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def bootstrap(self) -> str:
        return address_text(self.address)


@contextmanager
def serving(
    *paths: Path,
    settings: ServeSettings = ServeSettings(),  # noqa: B008  frozen
    server_properties: Path | None = None,
    choice: PartitionChoice = EVERY_PARTITION,
    **options: Any,
) -> Iterator[Running]:
    """Run a server of the given directories until the context ends; options are Server's."""
    said: list[str] = []
    static = {} if server_properties is None else read_server_properties(server_properties)
    served = serve_partitions(Cluster(paths), settings, said.append, choice, server_properties=static)
    running = Running(("", 0), served, said)
    with running_server(running, **options):
        yield running


@contextmanager
def joined_serving(logs: Path, tier: Path) -> Iterator[Running]:
    """Run a server of a log directory and its remote tier."""
    said: list[str] = []
    with RemoteLogs({}, said.append) as remote, serving(as_path(remote.local(str(logs), [str(tier)]))) as running:
        yield running


@contextmanager
def running_server(running: Running, **options: Any) -> Iterator[None]:
    """Run a server in a thread, on a free port, which is put into `running`."""
    is_up, loop = threading.Event(), asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        talk = ServerTalk(running.requests.append, running.said.append)
        async with Server(running.served, ("127.0.0.1", 0), talk=talk, **options) as server:
            running.address = server.address
            is_up.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert is_up.wait(PATIENCE)
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(PATIENCE)
        loop.close()


def log_directories(root: Path) -> Sequence[Path]:
    """Return directories below a root with a broker's logs in them."""
    return sorted({path.parent for path in root.rglob("*.log") if parse_file_name(path).remote_id is None})
