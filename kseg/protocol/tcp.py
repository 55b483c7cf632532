"""One direction of a TCP connection: its bytes in order, once each, out of packets as they come. Source: RFC 9293."""

from collections.abc import Iterator
from heapq import heappop, heappush

_MODULUS = 1 << 32
MOST_HELD_BYTES = 1 << 24
"""Bytes that came too early, before what is missing is given up."""
MOST_HELD = 1 << 12
"""The same in packets."""


class Direction:
    """Puts the payloads of one direction in order.

    Gives bytes, or the number of those that the capture doesn't have; repeated ones are left out.
    """

    def __init__(self, next_sequence: int | None) -> None:
        """`next_sequence`: the number of the first byte; None where the connection's beginning wasn't seen."""
        self._next_sequence = next_sequence
        self._position = 0
        """Bytes up to the next one: sequence numbers begin again at 0, positions don't."""
        self._held: list[tuple[int, int, bytes]] = []
        """Position, size and what is there of packets that came too early; the first one first."""
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
        """The other side has all bytes before this number: what of them is missing here won't come any more."""
        while self._held and self._position_of(sequence) > self._position:
            yield from self._pass_over()

    def end(self) -> Iterator[bytes | int]:
        """What was held back when nothing more comes."""
        while self._held:
            yield from self._pass_over()

    def _position_of(self, sequence: int) -> int:
        """The position that is meant by a sequence number: the nearest one to the next byte's."""
        distance = (sequence - (self._next_sequence or 0) + _MODULUS // 2) % _MODULUS - _MODULUS // 2
        return self._position + distance

    def _advance(self, size: int) -> None:
        self._position += size
        self._next_sequence = ((self._next_sequence or 0) + size) % _MODULUS

    def _pass_over(self) -> Iterator[bytes | int]:
        """Goes on at the first packet that is held, whatever is missing before it."""
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
