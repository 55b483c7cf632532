"""A proxy between clients and a server that records their traffic as a capture."""

import itertools
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.protocol.packets import Wire, pcap
from tests.serve.running import PATIENCE

_PIECE = 1 << 14
"""The most bytes of a packet."""


@dataclass
class Recording:
    """The address for clients; `target` is the server's. The traffic so far is in `packets`."""

    port: int
    target: tuple[str, int] = ("127.0.0.1", 0)
    packets: list[bytes] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(40_000))
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def write_to(self, path: Path) -> None:
        """Write the recorded traffic, and start again; open connections aren't in the next capture."""
        with self.lock:
            path.write_bytes(pcap(self.packets))
            self.packets = []

    def relay(self, client: socket.socket) -> None:
        """Connect a client to the target until both have closed."""
        with client, socket.create_connection(self.target, PATIENCE) as server:
            with self.lock:
                wire = Wire((bytes([10, 0, 0, 2]), next(self.numbers)), packets=self.packets).open()
            answers = threading.Thread(target=self._pass_on, args=(wire, server, client, False))
            answers.start()
            self._pass_on(wire, client, server, True)
            answers.join()

    def _pass_on(self, wire: Wire, source: socket.socket, target: socket.socket, is_client: bool) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                with self.lock:
                    wire.send(piece, is_client=is_client)
                target.sendall(piece)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def recording() -> Iterator[Recording]:
    """Accept connections until the context ends."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        found = Recording(listening.getsockname()[1])

        def take() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    threading.Thread(target=found.relay, args=(client,), daemon=True).start()

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield found
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)
