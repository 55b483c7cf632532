"""Packet captures, frames and hex text: connections and their bytes in both directions."""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heappop, heappush
from ipaddress import ip_address
from types import ModuleType
from typing import Any, BinaryIO, NamedTuple

from kseg.errors import KsegError, UsageError, missing_library, plural
from kseg.protocol.conversation import Conversation, Frame, FrameDamage, Mixture, Numbers, Peers
from kseg.protocol.messages import MAX_FRAME, SIZE_SIZE, SMALLEST_MESSAGE, is_request

_MODULUS = 1 << 32
MOST_HELD_BYTES = 1 << 24
"""The most bytes that are held because they came too early; beyond this, missing bytes are given up."""
MOST_HELD = 1 << 12
"""The same limit in packets."""


class Direction:
    """A reassembler of the payloads of one direction.

    Yields bytes, or the number of bytes that the capture doesn't have; drops repeated ones.
    """

    def __init__(self, next_sequence: int | None) -> None:
        """Take the number of the first byte, or None if the capture doesn't have the connection's beginning."""
        self._next_sequence = next_sequence
        self._position = 0
        """The position of the next byte: sequence numbers wrap around to 0, positions don't."""
        self._early_packets: list[tuple[int, int, bytes]] = []
        """Position, size and available bytes of packets that came too early, in order."""
        self._held_bytes = 0

    def add(self, sequence: int, payload: bytes, size: int) -> Iterator[bytes | int]:
        """Yield a packet's payload, of which the capture may have less than its size."""
        if size == 0:
            return
        if self._next_sequence is None:
            self._next_sequence = sequence
        position = self._position_of(sequence)
        if position + size <= self._position:
            return  # seen already
        heappush(self._early_packets, (position, size, payload))
        self._held_bytes += size
        yield from self._in_order()
        while len(self._early_packets) > MOST_HELD or self._held_bytes > MOST_HELD_BYTES:
            yield from self._pass_over()

    def acknowledge(self, sequence: int) -> Iterator[bytes | int]:
        """Give up missing bytes before this number: the other side has them, so they won't be repeated."""
        while self._early_packets and self._position_of(sequence) > self._position:
            yield from self._pass_over()

    def end(self) -> Iterator[bytes | int]:
        """Yield the held bytes at the end."""
        while self._early_packets:
            yield from self._pass_over()

    def _position_of(self, sequence: int) -> int:
        """Return the position of a sequence number: the one nearest to the next byte."""
        distance = (sequence - (self._next_sequence or 0) + _MODULUS // 2) % _MODULUS - _MODULUS // 2
        return self._position + distance

    def _advance(self, size: int) -> None:
        self._position += size
        self._next_sequence = ((self._next_sequence or 0) + size) % _MODULUS

    def _pass_over(self) -> Iterator[bytes | int]:
        """Continue at the first held packet; the bytes missing before it are lost."""
        missing = self._early_packets[0][0] - self._position
        if missing > 0:
            self._advance(missing)
            yield missing
        yield from self._in_order()

    def _in_order(self) -> Iterator[bytes | int]:
        while self._early_packets and self._early_packets[0][0] <= self._position:
            position, size, payload = heappop(self._early_packets)
            self._held_bytes -= size
            seen = self._position - position
            if seen >= size:
                continue
            self._advance(size - seen)
            if new := payload[seen:]:
                yield new
            if missing := size - seen - len(new):
                yield missing


PIECE = 1 << 16
_PEEKED = 1 << 9
_PLAIN_LINE = re.compile(r"(0x)?([0-9A-Fa-f]{2}[\s:]*)*")
_DUMP_LINE = re.compile(
    r"[0-9A-Fa-f]{4,16}(?:: ((?:[0-9A-Fa-f]{2})+(?: (?:[0-9A-Fa-f]{2})+)*)(?:  .*)?"
    r"|   ?((?:[0-9A-Fa-f]{2}  ?)*[0-9A-Fa-f]{2})(?: +\|.*)?)"
)
"""A line of `xxd` (`00000010: 0001 0203  ..`), of `hexdump -C` (`00000010  00 01 02 03  |..|`) or of Wireshark."""
_POSITION_LINE = re.compile(r"[0-9A-Fa-f]{8}")
"""The last line of `hexdump -C`."""


class InputForm(StrEnum):
    """The forms of an input."""

    CAPTURE = "capture"
    FRAMES = "frames"
    HEX = "hex"


class HexError(KsegError):
    """The text isn't hexadecimal."""


class Replay:
    """A stream whose first bytes can be examined before they are read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.first = _read(stream, _PEEKED)
        self._unread = self.first

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes; returns none at the end."""
        if self._unread:
            taken, self._unread = self._unread[:size], self._unread[size:]
            return taken
        return self._stream.read(size)


def _read(stream: BinaryIO, size: int) -> bytes:
    pieces, left = [], size
    while left and (piece := stream.read(left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def form_of(first: bytes) -> InputForm:
    """Return the form of an input, judging by its first bytes."""
    if first[:4] in (*PCAP_MAGICS, PCAPNG_MAGIC):
        return InputForm.CAPTURE
    is_text = first.strip() and _looks_like_hex(first)
    return InputForm.HEX if is_text else InputForm.FRAMES


def _looks_like_hex(first: bytes) -> bool:
    lines = first.split(b"\n")
    # The last line may be cut in the middle of a character.
    whole = lines[:-1] if len(lines) > 1 else lines
    return all(_is_hex_line(line) for line in whole)


def _is_hex_line(line: bytes) -> bool:
    text = line.decode("ascii", "replace").partition("#")[0].strip()
    return _PLAIN_LINE.fullmatch(text) is not None or _DUMP_LINE.fullmatch(text) is not None


def read_frames(
    stream: Replay, *, max_frame: int = MAX_FRAME, response_to: tuple[int, int] | None = None
) -> Iterator[Frame | FrameDamage]:
    """Yield frames in order: size and message, requests and responses."""
    mixture = Mixture(Numbers(), max_frame, response_to=response_to)
    while piece := stream.read(PIECE):
        yield from mixture.feed(piece)
    yield from mixture.end()


def read_hex(
    stream: Replay, *, max_frame: int = MAX_FRAME, response_to: tuple[int, int] | None = None
) -> Iterator[Frame | FrameDamage]:
    """Yield messages in hexadecimal: one per paragraph, or several with their sizes; `#` begins a comment.

    Positions count the bytes that the text represents. Raises HexError for other text.
    """
    mixture = Mixture(Numbers(), max_frame, response_to=response_to)
    position = 0
    for content in _paragraphs(stream, 4 * max_frame):
        at = 0
        for size in _sizes(content):
            yield mixture.read(content[at + SIZE_SIZE : at + size], position + at, size)
            at += size
        if at == 0:
            yield mixture.read(content, position, len(content))
        position += len(content)


def _sizes(content: bytes) -> list[int]:
    """Return the sizes of the frames in the bytes; none if other bytes are among them."""
    sizes, at = [], 0
    while at < len(content):
        size = int.from_bytes(content[at : at + SIZE_SIZE], "big", signed=True)
        if size < SMALLEST_MESSAGE or at + SIZE_SIZE + size > len(content):
            return []
        sizes.append(SIZE_SIZE + size)
        at += SIZE_SIZE + size
    return sizes


def _paragraphs(stream: Replay, most: int) -> Iterator[bytes]:
    """Yield the bytes of each paragraph of hexadecimal text."""
    parts: list[bytes] = []
    is_dump = False
    for number, line in enumerate(_lines(stream, most), 1):
        text = line.partition("#")[0].strip()
        if text and not (is_dump and _POSITION_LINE.fullmatch(text)):
            is_dump = is_dump or (not parts and _digits_of_dump(text) is not None)
            digits = _digits_of_dump(text) if is_dump else text
            parts.append(_bytes_of(digits or text, number))
        elif not line.strip():
            if parts:
                yield b"".join(parts)
            parts, is_dump = [], False
    if parts:
        yield b"".join(parts)


def _digits_of_dump(text: str) -> str | None:
    """Return the hex digits of a line that begins with a position, or None if it doesn't."""
    match = _DUMP_LINE.fullmatch(text) if ":" in text[:17] or "  " in text else None
    return None if match is None else match[1] or match[2]


def _bytes_of(digits: str, number: int) -> bytes:
    try:
        return bytes.fromhex(digits.removeprefix("0x").replace(":", ""))
    except ValueError as error:
        raise HexError(f"line {number} isn't valid hexadecimal text: {digits[:40]!r}") from error


def _lines(stream: Replay, most: int) -> Iterator[str]:
    """Yield lines of text. Raises HexError for a line longer than any frame."""
    rest = b""
    while piece := stream.read(PIECE):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.decode("ascii", "replace")
        if len(rest) > most:
            raise HexError(f"a line of more than {plural(most, 'character')} isn't hexadecimal text")
    if rest:
        yield rest.decode("ascii", "replace")


PCAP_MAGICS = tuple(bytes.fromhex(magic) for magic in ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1"))
PCAPNG_MAGIC = bytes.fromhex("0a0d0d0a")
LARGEST_PACKET = 1 << 24
"""The largest size of a packet, or of a block of a .pcapng, in bytes."""
_PIECE = 1 << 16
_TLS_HANDSHAKE = b"\x16\x03"
_FIN, _SYN, _RST, _ACK = 0x01, 0x02, 0x04, 0x10
_MIDDLE = "the capture begins in the middle of the connection"
_BAD_PACKET = (ValueError, IndexError, KeyError, AttributeError, TypeError, struct.error)
"""Exceptions of dpkt, besides its own class, for bytes that aren't a packet."""


class CaptureError(KsegError):
    """The file isn't a capture, or can't be read any further."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark about a connection, not damage: it isn't Kafka's, or began before the capture."""

    peers: Peers
    size: int
    """The bytes of both directions."""
    detail: str


class Packet(NamedTuple):
    """A TCP packet. `payload` may be less than `size`, the sent size; `time` in microseconds since 1970."""

    source: str
    target: str
    sequence: int
    acknowledged: int
    flags: int
    payload: bytes
    size: int
    time: int


def dpkt_library() -> ModuleType:
    """Return the library dpkt. Raises UsageError if it isn't installed."""
    try:
        import dpkt
    except ImportError as error:
        raise UsageError(missing_library("dpkt", "pcap")) from error
    library: ModuleType = dpkt
    return library


class _Bounded:
    """A stream for dpkt that allocates no memory for missing bytes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.position = 0
        self.is_cut = False

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer at the end. Raises CaptureError for an impossible size."""
        if not 0 <= size <= LARGEST_PACKET:
            raise CaptureError(f"a packet can't have {plural(size, 'byte')}", position=self.position)
        pieces, left = [], size
        while left and (piece := self._stream.read(min(left, _PIECE))):
            pieces.append(piece)
            left -= len(piece)
        self.position += size - left
        self.is_cut = left > 0
        return b"".join(pieces)


def read_packets(stream: BinaryIO) -> Iterator[Packet | CaptureError]:
    """Yield the TCP packets of a capture, and errors where a packet can't be read.

    Raises CaptureError if it isn't a capture at all, and UsageError if the library is missing.
    """
    dpkt = dpkt_library()
    bounded = _Bounded(stream)
    try:
        reader = _reader(dpkt, bounded, bounded.read(len(PCAPNG_MAGIC)))
        unpack = _unpacker(dpkt, reader.datalink())
    except (dpkt.Error, *_BAD_PACKET) as error:
        raise CaptureError(f"can't be read as a capture: {error}") from error
    packets, position = iter(reader), -1
    while bounded.position > position:
        position = bounded.position
        try:
            time, raw = next(packets)
        except StopIteration:
            return
        except CaptureError as error:
            yield error
            return
        except (dpkt.Error, *_BAD_PACKET) as error:
            yield CaptureError(f"a packet can't be read: {error}", position=position)
            packets = iter(reader)  # yields more after an error
            continue
        if bounded.is_cut:
            yield CaptureError("the last packet is truncated", position=position)
        try:
            packet = _packet(dpkt, unpack(raw), round(time * 1_000_000))
        except (dpkt.Error, *_BAD_PACKET):
            continue  # not an IP packet, or too short
        if packet is not None:
            yield packet


class _Replayed:
    """A stream whose first bytes were read already, to recognize its form."""

    def __init__(self, first: bytes, bounded: _Bounded) -> None:
        self._first = first
        self._bounded_stream = bounded

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer at the end."""
        if size < 0:
            return self._bounded_stream.read(size)
        first, self._first = self._first[:size], self._first[size:]
        return first + self._bounded_stream.read(size - len(first))


def _reader(dpkt: ModuleType, bounded: _Bounded, magic: bytes) -> Any:
    module = dpkt.pcapng if magic == PCAPNG_MAGIC else dpkt.pcap
    return module.Reader(_Replayed(magic, bounded))


def _unpacker(dpkt: ModuleType, link: int) -> Any:
    """Return the parser of a packet's link layer."""
    unpackers = {
        0: dpkt.loopback.Loopback,
        108: dpkt.loopback.Loopback,
        1: dpkt.ethernet.Ethernet,
        113: dpkt.sll.SLL,
        276: dpkt.sll2.SLL2,
        12: lambda raw: _ip(dpkt, raw),
        14: lambda raw: _ip(dpkt, raw),
        101: lambda raw: _ip(dpkt, raw),
        228: dpkt.ip.IP,
        229: dpkt.ip6.IP6,
    }
    if link not in unpackers:
        raise CaptureError(f"kseg can't read link type {link}, only Ethernet, Linux cooked, loopback and raw IP")
    return unpackers[link]


def _ip(dpkt: ModuleType, raw: bytes) -> Any:
    return (dpkt.ip6.IP6 if raw[0] >> 4 == 6 else dpkt.ip.IP)(raw)


def _packet(dpkt: ModuleType, outer: Any, time: int) -> Packet | None:
    """Return the TCP packet inside another one, or None if it doesn't exist."""
    while isinstance(outer, dpkt.Packet) and not isinstance(outer, dpkt.ip.IP | dpkt.ip6.IP6):
        outer = outer.data
    if not isinstance(outer, dpkt.Packet) or not isinstance(outer.data, dpkt.tcp.TCP):
        return None
    tcp = outer.data
    payload = bytes(tcp.data)
    if isinstance(outer, dpkt.ip.IP):
        whole, headers = outer.len, outer.hl * 4
    else:
        whole, headers = outer.plen, sum(header.length for header in outer.all_extension_headers)
    # The length is 0 if the network card splits the packet later.
    size = max(whole - headers - tcp.off * 4, len(payload)) if whole else len(payload)
    source, target = _address(outer.src, tcp.sport), _address(outer.dst, tcp.dport)
    return Packet(source, target, tcp.seq, tcp.ack, tcp.flags, payload, size, time)


def _address(raw: bytes, port: int) -> str:
    address = ip_address(raw)
    return f"{address}:{port}" if address.version == 4 else f"[{address}]:{port}"


@dataclass(slots=True)
class _Connection:
    """A TCP connection. `client` is None until it is known which end that is."""

    ends: tuple[str, str]
    client: str | None
    conversation: Conversation | None
    directions: dict[str, Direction]
    is_from_middle: bool
    first_sequence: int | None
    sizes: dict[str, int] = field(default_factory=dict)
    first_bytes: bytes = b""
    held_back: list[FrameDamage] = field(default_factory=list)
    """Damage before the first frame: until then the connection may not be Kafka's."""

    @property
    def peers(self) -> Peers:
        """Client and server; if unknown, the ends in order of appearance."""
        if self.client == self.ends[1]:
            return Peers(self.ends[1], self.ends[0])
        return Peers(*self.ends)


class Capture:
    """The Kafka protocol in a capture.

    At the end, `unanswered` is the number of requests without a response, and `unreadable` the number of places where
    a packet can't be read.
    """

    def __init__(self, stream: BinaryIO, *, ports: frozenset[int] = frozenset(), max_frame: int = MAX_FRAME) -> None:
        """Take the ports of connections to read; if empty, read those whose first bytes are a request."""
        self._stream = stream
        self._ports = ports
        self._max_frame = max_frame
        self._numbers = Numbers()
        self._connections: dict[frozenset[str], _Connection] = {}
        self.unanswered = 0
        self.unreadable = 0

    def items(self) -> Iterator[Frame | FrameDamage | Remark | CaptureError]:
        """Yield frames and damages in the order of the packets, and the first place where a packet can't be read."""
        for packet in read_packets(self._stream):
            if isinstance(packet, CaptureError):
                self.unreadable += 1
                if self.unreadable == 1:
                    yield packet
                continue
            if self._ports and not {_port(packet.source), _port(packet.target)} & self._ports:
                continue
            yield from self._take(packet)
        for connection in self._connections.values():
            yield from self._end(connection)

    def _take(self, packet: Packet) -> Iterator[Frame | FrameDamage | Remark]:
        ends = frozenset((packet.source, packet.target))
        connection = self._connections.get(ends)
        if connection is not None and _opens_another(connection, packet):
            yield from self._end(connection)
            connection = None
        if connection is None:
            connection = self._connections[ends] = self._new(packet)
        if packet.flags & _SYN:
            connection.directions[packet.source] = Direction((packet.sequence + 1) % (1 << 32))
            return
        other = connection.directions.get(packet.target)
        if packet.flags & _ACK and other is not None:
            # This comes first, as a response must find its request.
            pieces = other.acknowledge(packet.acknowledged)
            yield from self._pieces(connection, packet.target, pieces, packet.time)
        direction = connection.directions.setdefault(packet.source, Direction(None))
        pieces = direction.add(packet.sequence, packet.payload, packet.size)
        yield from self._pieces(connection, packet.source, pieces, packet.time)

    def _new(self, packet: Packet) -> _Connection:
        """Return a connection with its first packet, which shows the client if it opens or accepts the connection."""
        ends = (packet.source, packet.target)
        is_opening = bool(packet.flags & _SYN)
        client = None
        if is_opening:
            client = ends[1] if packet.flags & _ACK else ends[0]
        elif _port(ends[1]) in self._ports:
            client = ends[0]
        elif _port(ends[0]) in self._ports:
            client = ends[1]
        first = packet.sequence if is_opening and not packet.flags & _ACK else None
        connection = _Connection(ends, client, None, {}, not is_opening, first)
        if client is not None:
            self._begin(connection)
        return connection

    def _begin(self, connection: _Connection) -> None:
        lost = _MIDDLE if connection.is_from_middle else None
        conversation = Conversation(self._numbers, connection.peers, self._max_frame, lost=lost)
        # The bytes skipped before the client was known.
        conversation.pass_over(*(connection.sizes.get(end, 0) for end in connection.peers))
        connection.conversation = conversation

    def _pieces(
        self, connection: _Connection, source: str, pieces: Iterator[bytes | int], time: int | None
    ) -> Iterator[Frame | FrameDamage]:
        for piece in pieces:
            size = piece if isinstance(piece, int) else len(piece)
            if connection.client is None and not isinstance(piece, int) and is_request(piece, 0, self._max_frame):
                connection.client = source
                self._begin(connection)
            connection.sizes[source] = connection.sizes.get(source, 0) + size
            if not connection.first_bytes and not isinstance(piece, int):
                connection.first_bytes = piece[: len(_TLS_HANDSHAKE)]
            if connection.client is not None:
                yield from self._hold_damages(connection, self._receive(connection, source, piece, time))

    @staticmethod
    def _receive(
        connection: _Connection, source: str, piece: bytes | int, time: int | None
    ) -> Iterator[Frame | FrameDamage]:
        conversation = connection.conversation
        assert conversation is not None
        if source == connection.client:
            if isinstance(piece, int):
                return conversation.skip_from_client(piece, time)
            return conversation.from_client(piece, time)
        if isinstance(piece, int):
            return conversation.skip_from_server(piece, time)
        return conversation.from_server(piece, time)

    @staticmethod
    def _hold_damages(connection: _Connection, items: Iterator[Frame | FrameDamage]) -> Iterator[Frame | FrameDamage]:
        """Hold back damages until the connection has had a frame."""
        for item in items:
            if isinstance(item, Frame):
                yield from connection.held_back
                connection.held_back = []
                yield item
            elif connection.conversation is not None and connection.conversation.frames:
                yield item
            else:
                connection.held_back.append(item)

    def _end(self, connection: _Connection) -> Iterator[Frame | FrameDamage | Remark]:
        for source, direction in connection.directions.items():
            yield from self._pieces(connection, source, direction.end(), None)
        conversation = connection.conversation
        if conversation is not None:
            yield from self._hold_damages(connection, conversation.end())
            self.unanswered += conversation.unanswered
        size = sum(connection.sizes.values())
        if size and (conversation is None or not conversation.frames):
            is_tls = connection.first_bytes.startswith(_TLS_HANDSHAKE)
            yield Remark(connection.peers, size, "TLS, which hides its contents" if is_tls else "not Kafka's protocol")
        elif size and connection.is_from_middle:
            yield Remark(connection.peers, size, _MIDDLE)


def _opens_another(connection: _Connection, packet: Packet) -> bool:
    """Return True if a packet opens another connection between the same ends."""
    is_opening = packet.flags & (_SYN | _ACK) == _SYN
    return is_opening and packet.sequence != connection.first_sequence


def _port(end: str) -> int:
    return int(end.rpartition(":")[2])
