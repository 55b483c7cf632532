"""Captures made packet by packet."""

import io
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import dpkt

from kseg.formats.messages import Fields, build_message
from kseg.formats.schemas import REQUESTS, RESPONSES, message_schema
from kseg.protocol.messages import request_header_version, response_header_version

CLIENT, SERVER = (bytes([10, 0, 0, 2]), 40000), (bytes([10, 0, 0, 1]), 9092)
SYN, ACK, FIN = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK, dpkt.tcp.TH_FIN


def frame_message(message: bytes) -> bytes:
    """A message after its size."""
    return struct.pack(">i", len(message)) + message


def request(api_key: int, version: int, body: Fields, correlation_id: int = 1, client_id: str | None = "c") -> bytes:
    """A request without its size."""
    header = {
        "requestApiKey": api_key,
        "requestApiVersion": version,
        "correlationId": correlation_id,
        "clientId": client_id,
    }
    header_version = request_header_version(api_key, version)
    assert header_version is not None
    return build_message(message_schema("RequestHeader"), header_version, header) + build_message(
        REQUESTS[api_key], version, body
    )


def response(api_key: int, version: int, body: Fields, correlation_id: int = 1) -> bytes:
    """A response without its size."""
    header = struct.pack(">i", correlation_id) + (b"\0" if response_header_version(api_key, version) else b"")
    return header + build_message(RESPONSES[api_key], version, body)


def metadata_request(correlation_id: int, topic: str = "orders") -> bytes:
    """A frame."""
    return frame_message(request(3, 12, {"topics": [{"name": topic}]}, correlation_id))


def metadata_response(correlation_id: int) -> bytes:
    """A frame."""
    return frame_message(response(3, 12, {"clusterId": "cluster", "controllerId": correlation_id}, correlation_id))


@dataclass
class Wire:
    """Packets of one connection; each side's sequence numbers go on."""

    client: tuple[bytes, int] = CLIENT
    server: tuple[bytes, int] = SERVER
    first: int = 1000
    packets: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.next = {True: self.first, False: self.first + 5}

    def open(self) -> "Wire":
        """SYN and SYN-ACK."""
        self._add(True, b"", SYN, self.next[True])
        self._add(False, b"", SYN | ACK, self.next[False])
        for side in self.next:
            self.next[side] = (self.next[side] + 1) % (1 << 32)
        return self

    def send(
        self, content: bytes, *, is_client: bool = True, at: int | None = None, captured: int | None = None
    ) -> int:
        """A packet; `at` gives an earlier sequence number; gives its own."""
        sequence = self.next[is_client] if at is None else at
        self._add(is_client, content, ACK, sequence, captured)
        if at is None:
            self.next[is_client] = (sequence + len(content)) % (1 << 32)
        return sequence

    def lose(self, content: bytes, *, is_client: bool = True) -> None:
        """A packet that isn't captured."""
        self.next[is_client] = (self.next[is_client] + len(content)) % (1 << 32)

    def answer(self, content: bytes) -> None:
        """A packet of the server."""
        self.send(content, is_client=False)

    def _add(self, is_client: bool, content: bytes, flags: int, sequence: int, captured: int | None = None) -> None:
        (source, sport), (target, dport) = (self.client, self.server) if is_client else (self.server, self.client)
        acknowledged = self.next[not is_client] if flags & ACK else 0
        tcp = dpkt.tcp.TCP(sport=sport, dport=dport, seq=sequence, ack=acknowledged, flags=flags, data=content)
        if len(source) == 4:
            ip = dpkt.ip.IP(src=source, dst=target, p=6, data=tcp)
            ip.len = len(ip)
            raw = bytes(dpkt.ethernet.Ethernet(data=ip))
        else:
            ip6 = dpkt.ip6.IP6(src=source, dst=target, nxt=6, plen=len(tcp), hlim=64, data=tcp)
            ip6.extension_hdrs = {}
            raw = bytes(dpkt.ethernet.Ethernet(type=dpkt.ethernet.ETH_TYPE_IP6, data=ip6))
        self.packets.append(raw if captured is None else raw[: len(raw) - len(content) + captured])


def pcap(packets: Iterable[bytes], link: int = 1) -> bytes:
    """A capture: a packet each millisecond."""
    file = io.BytesIO()
    writer = dpkt.pcap.Writer(file, linktype=link)
    for time, packet in _with_times(packets):
        writer.writepkt(packet, time)
    return file.getvalue()


def pcapng(packets: Iterable[bytes]) -> bytes:
    """The same in the newer format."""
    file = io.BytesIO()
    writer = dpkt.pcapng.Writer(file)
    for time, packet in _with_times(packets):
        writer.writepkt(packet, time)
    return file.getvalue()


def _with_times(packets: Iterable[bytes]) -> Iterator[tuple[float, bytes]]:
    for number, packet in enumerate(packets):
        yield 1_800_000_000 + number / 1000, packet
