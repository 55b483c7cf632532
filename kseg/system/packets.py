"""Packets of connections: when the system sends incomplete ones."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def full_packets(connection: socket.socket) -> Iterator[None]:
    """Let the system hold back incomplete packets until the end of the context. Only Linux can do it."""
    _hold_back(connection, is_held=True)
    try:
        yield
    finally:
        _hold_back(connection, is_held=False)


def _hold_back(connection: socket.socket, *, is_held: bool) -> None:
    if sys.platform == "linux":
        with suppress(OSError):  # a closed connection has no packets
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, is_held)
