"""A proxy before a broker whose connections a test cuts, or holds back until their client is gone."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from typing import NamedTuple

PIECE = 1 << 16


class _Pair(NamedTuple):
    """A client's connection and the broker's, and whether requests are forwarded."""

    client: socket.socket
    broker: socket.socket
    is_open: Event

    def forward_requests(self) -> None:
        """Forward requests until the client is gone; the broker still gets those that were held back."""
        with suppress(OSError):
            while content := self.client.recv(PIECE):
                if not self.is_open.is_set():
                    self.broker.sendall(content[:-1])  # the broker waits for the rest of the frame
                    self.is_open.wait()
                    content = content[-1:]
                self.broker.sendall(content)
        with suppress(OSError):
            self.broker.shutdown(socket.SHUT_WR)

    def forward_answers(self) -> None:
        """Forward answers until the broker ends the connection, or the client doesn't take any."""
        with suppress(OSError):
            while content := self.broker.recv(PIECE):
                self.client.sendall(content)
        self.end()

    def end(self) -> None:
        """End both connections."""
        self.is_open.set()
        for each in (self.client, self.broker):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class CutProxy:
    """A proxy on a port of this machine. port: the clients' port."""

    def __init__(self, port: int, broker_port: int) -> None:
        """Take both ports; nothing listens yet."""
        self.port, self._broker_port = port, broker_port
        self._pairs: list[_Pair] = []
        self._lock = Lock()

    @contextmanager
    def running(self) -> Iterator["CutProxy"]:
        """Forward connections until the context ends."""
        with socket.create_server(("127.0.0.1", self.port)) as server:
            thread = Thread(target=self._accept, args=(server,), daemon=True)
            thread.start()
            try:
                yield self
            finally:
                server.shutdown(socket.SHUT_RDWR)
                self.cut()
                thread.join()

    def cut(self) -> None:
        """End all connections, in the middle of what they send."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for each in pairs:
            each.end()

    def hold_back(self) -> None:
        """Hold back the last byte of the next requests of all connections, until `release`."""
        with self._lock:
            for each in self._pairs:
                each.is_open.clear()

    def release(self) -> None:
        """Let the broker have the requests that were held back."""
        with self._lock:
            for each in self._pairs:
                each.is_open.set()

    def _accept(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                try:
                    broker = socket.create_connection(("127.0.0.1", self._broker_port))
                except OSError:  # the broker is down
                    client.close()
                    continue
                opened = Event()
                opened.set()
                pair = _Pair(client, broker, opened)
                with self._lock:
                    self._pairs.append(pair)
                for forward in (pair.forward_requests, pair.forward_answers):
                    Thread(target=forward, daemon=True).start()
