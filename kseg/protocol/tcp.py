"""One direction of a TCP connection: its bytes in order, each once, from packets in any order. Source: RFC 9293."""

from collections.abc import Iterator
from heapq import heappop, heappush

_MODULUS = 1 << 32
MOST_HELD_BYTES = 1 << 24
"""The most bytes that are held because they came too early; then what is missing is given up."""
MOST_HELD = 1 << 12
"""The same in packets."""


class Direction:
    """Puts the payloads of one direction in order.

    Yields bytes, or the number of bytes that the capture doesn't have; drops repeated ones.
    """

    def __init__(self, next_sequence: int | None) -> None:
        """`next_sequence`: the number of the first byte; None if the connection's beginning wasn't seen."""
        self._next_sequence = next_sequence
        self._position = 0
        """Bytes up to the next one: sequence numbers begin again at 0, positions don't."""
        self._held: list[tuple[int, int, bytes]] = []
        """Position, size and available bytes of packets that came too early, in order."""
        self._held_bytes = 0

    def add(self, sequence: int, payload: bytes, size: int) -> Iterator[bytes | int]:
        """A packet's payload, of which the capture may hold less than its size."""
        if size == 0:
            return
        if self._next_sequence is None:
            self._next_sequence = sequence
        position = self._position_of(sequence)
        if position + size <= self._position:
            return  # seen already
        heappush(self._held, (position, size, payload))
        self._held_bytes += size
        yield from self._in_order()
        while len(self._held) > MOST_HELD or self._held_bytes > MOST_HELD_BYTES:
            yield from self._pass_over()

    def acknowledge(self, sequence: int) -> Iterator[bytes | int]:
        """The other side has all bytes before this number: those that are missing here won't come any more."""
        while self._held and self._position_of(sequence) > self._position:
            yield from self._pass_over()

    def end(self) -> Iterator[bytes | int]:
        """What was held back, at the end."""
        while self._held:
            yield from self._pass_over()

    def _position_of(self, sequence: int) -> int:
        """The position that a sequence number means: the one nearest to the next byte."""
        distance = (sequence - (self._next_sequence or 0) + _MODULUS // 2) % _MODULUS - _MODULUS // 2
        return self._position + distance

    def _advance(self, size: int) -> None:
        self._position += size
        self._next_sequence = ((self._next_sequence or 0) + size) % _MODULUS

    def _pass_over(self) -> Iterator[bytes | int]:
        """Continues at the first held packet, whatever is missing before it."""
        missing = self._held[0][0] - self._position
        if missing > 0:
            self._advance(missing)
            yield missing
        yield from self._in_order()

    def _in_order(self) -> Iterator[bytes | int]:
        while self._held and self._held[0][0] <= self._position:
            position, size, payload = heappop(self._held)
            self._held_bytes -= size
            seen = self._position - position
            if seen >= size:
                continue
            self._advance(size - seen)
            if new := payload[seen:]:
                yield new
            if missing := size - seen - len(new):
                yield missing
