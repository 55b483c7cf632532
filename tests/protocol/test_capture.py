"""Captures: packets that come twice, late, cut or never; connections that aren't Kafka's or begin too early."""

import io
from collections.abc import Iterable

import dpkt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.protocol.capture import LARGEST_PACKET, Capture, CaptureError, Remark
from kseg.protocol.conversation import Frame, FrameDamage
from tests.protocol.packets import Wire, frame_message, metadata_request, metadata_response, pcap, pcapng

Item = Frame | FrameDamage | Remark | CaptureError


def read(content: bytes, ports: Iterable[int] = ()) -> list[Item]:
    return list(Capture(io.BytesIO(content), ports=frozenset(ports)).items())


def frames_and_losses(items: list[Item]) -> list[tuple[str, int]]:
    """Kind and correlation id of frames, what is lost of bytes."""
    return [
        (item.message.kind, item.message.correlation_id)
        if isinstance(item, Frame)
        else (type(item).__name__, item.size if isinstance(item, FrameDamage | Remark) else -1)
        for item in items
    ]


def exchange(wire: Wire, *numbers: int) -> None:
    for number in numbers:
        wire.send(metadata_request(number))
        wire.answer(metadata_response(number))


BOTH = [(kind, number) for number in (1, 2) for kind in ("request", "response")]


@pytest.mark.parametrize("write", [pcap, pcapng])
def test_frames_of_both_directions_in_the_order_of_packets(write) -> None:  # type: ignore[no-untyped-def]
    wire = Wire().open()
    exchange(wire, 1, 2)
    items = read(write(wire.packets))
    assert frames_and_losses(items) == BOTH
    first, second = items[:2]
    assert isinstance(first, Frame)
    assert isinstance(second, Frame)
    assert first.peers == ("10.0.0.2:40000", "10.0.0.1:9092")
    assert first.time == 1_800_000_000_002_000
    assert (second.request, second.request_time) == (first.number, first.time)


def test_ipv6() -> None:
    wire = Wire(client=(bytes(15) + b"\2", 40000), server=(bytes(15) + b"\1", 9092)).open()
    exchange(wire, 1, 2)
    items = read(pcap(wire.packets))
    assert frames_and_losses(items) == BOTH
    assert isinstance(items[0], Frame)
    assert items[0].peers == ("[::2]:40000", "[::1]:9092")


@pytest.mark.parametrize("link", [dpkt.pcap.DLT_RAW, dpkt.pcap.DLT_LINUX_SLL, dpkt.pcap.DLT_NULL])
def test_other_links(link: int) -> None:
    wire = Wire().open()
    exchange(wire, 1, 2)
    head = {
        dpkt.pcap.DLT_RAW: b"",
        dpkt.pcap.DLT_LINUX_SLL: bytes(14) + b"\x08\x00",
        dpkt.pcap.DLT_NULL: b"\2\0\0\0",
    }
    assert frames_and_losses(read(pcap([head[link] + packet[14:] for packet in wire.packets], link))) == BOTH


def test_many_frames_in_a_packet_and_many_packets_for_a_frame() -> None:
    wire = Wire().open()
    content = metadata_request(1) + metadata_request(2)
    wire.send(content[:3])
    wire.send(content[3:30])
    wire.send(content[30:])
    wire.answer(metadata_response(1) + metadata_response(2))
    assert frames_and_losses(read(pcap(wire.packets))) == [
        ("request", 1),
        ("request", 2),
        ("response", 1),
        ("response", 2),
    ]


def test_repeated_packets_count_once() -> None:
    wire = Wire().open()
    at = wire.send(metadata_request(1))
    wire.send(metadata_request(1), at=at)
    content = metadata_request(2)
    second = wire.send(content)
    wire.send(content[7:] + b"", at=second + 7)
    wire.send(metadata_request(1)[-1:], at=second - 1)
    assert frames_and_losses(read(pcap(wire.packets))) == [("request", 1), ("request", 2)]


def test_packets_that_change_places() -> None:
    wire = Wire().open()
    for number in (1, 2, 3):
        wire.send(metadata_request(number))
    opening, packets = wire.packets[:2], wire.packets[2:]
    assert frames_and_losses(read(pcap([*opening, packets[2], packets[0], packets[1]]))) == [
        ("request", 1),
        ("request", 2),
        ("request", 3),
    ]


def test_sequence_numbers_begin_again_at_0() -> None:
    wire = Wire(first=2**32 - 20).open()
    exchange(wire, 1, 2)
    assert frames_and_losses(read(pcap(wire.packets))) == BOTH


def test_lost_packet_is_said_and_what_follows_is_read() -> None:
    wire = Wire().open()
    exchange(wire, 1)
    wire.lose(metadata_request(7))
    wire.send(metadata_request(2))
    wire.answer(metadata_response(2))
    items = read(pcap(wire.packets))
    size = len(metadata_request(7))
    assert frames_and_losses(items) == [*BOTH[:2], ("FrameDamage", size), *BOTH[2:]]
    damage = items[2]
    assert isinstance(damage, FrameDamage)
    assert damage.detail == f"{size} bytes are missing"
    assert damage.position == size


def test_lost_end_of_a_frame_loses_that_frame_alone() -> None:
    wire = Wire().open()
    content = metadata_request(1)
    wire.send(content[:20])
    wire.lose(content[20:])
    wire.send(metadata_request(2))
    wire.answer(metadata_response(2))
    assert frames_and_losses(read(pcap(wire.packets))) == [("FrameDamage", len(content)), *BOTH[2:]]


def test_lost_response_is_said_and_the_next_one_joined() -> None:
    wire = Wire().open()
    wire.send(metadata_request(1))
    wire.lose(metadata_response(1), is_client=False)
    exchange(wire, 2)
    wire.send(b"")
    items = read(pcap(wire.packets))
    assert frames_and_losses(items) == [BOTH[0], BOTH[2], ("FrameDamage", len(metadata_response(1))), BOTH[3]]


def test_snap_length_cuts_a_packet_and_not_the_next_one() -> None:
    wire = Wire().open()
    content = metadata_request(1)
    wire.send(content, captured=10)
    wire.send(metadata_request(2))
    assert frames_and_losses(read(pcap(wire.packets))) == [("FrameDamage", len(content)), ("request", 2)]


def test_connection_from_its_middle_is_read_from_the_next_frame_and_said() -> None:
    wire = Wire()
    wire.answer(b"the end of a response")
    wire.send(b"the end of a request")
    exchange(wire, 1, 2)
    items = read(pcap(wire.packets), ports=[9092])
    assert frames_and_losses(items)[:-1] == [("FrameDamage", 20), BOTH[0], ("FrameDamage", 21), *BOTH[1:]]
    remark = items[-1]
    assert isinstance(remark, Remark)
    assert remark.detail == "the capture begins in the middle of the connection"


def test_first_request_tells_which_end_is_the_client() -> None:
    wire = Wire(server=(bytes([10, 0, 0, 1]), 31999))
    wire.answer(metadata_response(9))
    exchange(wire, 1, 2)
    items = read(pcap(wire.packets))
    size = len(metadata_response(9))
    assert frames_and_losses(items)[:-1] == [BOTH[0], ("FrameDamage", size), *BOTH[1:]]
    assert isinstance(items[0], Frame)
    assert items[0].peers == ("10.0.0.2:40000", "10.0.0.1:31999")


def test_connection_that_is_not_kafkas_is_no_damage() -> None:
    wire, tls = Wire().open(), Wire(client=(bytes([10, 0, 0, 3]), 1)).open()
    wire.send(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n")
    wire.answer(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    tls.send(bytes.fromhex("160301007b0100007703"))
    items = read(pcap([*wire.packets, *tls.packets]))
    assert [item.detail for item in items if isinstance(item, Remark)] == [
        "not Kafka's protocol",
        "TLS, which hides its contents",
    ]
    assert len(items) == 2


def test_port_that_is_used_again_is_another_connection() -> None:
    first, second = Wire().open(), Wire(first=70_000).open()
    exchange(first, 1)
    exchange(second, 1)
    assert frames_and_losses(read(pcap([*first.packets, *second.packets]))) == BOTH[:2] * 2


def test_frame_that_is_none_is_said_with_its_place() -> None:
    wire = Wire().open()
    wire.send(metadata_request(1) + frame_message(b"\xff\xff\0\0\0\0\0\0\xff\xff") + metadata_request(2))
    items = read(pcap(wire.packets))
    assert frames_and_losses(items) == [("request", 1), ("FrameDamage", 14), ("request", 2)]


def test_size_that_is_damaged_costs_what_lies_up_to_the_next_request() -> None:
    wire = Wire().open()
    broken = bytearray(metadata_request(1))
    broken[0] ^= 0x80
    wire.send(bytes(broken) + metadata_request(2))
    assert frames_and_losses(read(pcap(wire.packets))) == [("FrameDamage", len(broken)), ("request", 2)]


def test_claim_of_much_costs_nothing_and_hides_nothing() -> None:
    wire = Wire().open()
    broken = bytearray(metadata_request(1))
    broken[1] = 4  # 64 MiB
    wire.send(bytes(broken))
    wire.send(metadata_request(2))
    assert frames_and_losses(read(pcap(wire.packets))) == [("FrameDamage", len(broken)), ("request", 2)]


def test_packet_that_claims_too_much_ends_the_reading() -> None:
    wire = Wire().open()
    exchange(wire, 1)
    content = pcap(wire.packets) + bytes(8) + (LARGEST_PACKET + 1).to_bytes(4, "little") * 2
    *frames, error = read(content)
    assert frames_and_losses(frames) == BOTH[:2]
    assert isinstance(error, CaptureError)


def test_cut_capture_is_said() -> None:
    wire = Wire().open()
    exchange(wire, 1, 2)
    items = read(pcap(wire.packets)[:-3])
    assert frames_and_losses(items) == [*BOTH[:3], ("CaptureError", -1), ("FrameDamage", len(metadata_response(2)))]


def test_file_that_is_no_capture_is_refused() -> None:
    with pytest.raises(CaptureError):
        read(b"\xd4\xc3\xb2\xa1")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_captures_are_read_without_an_exception(data: st.DataObject) -> None:
    wire = Wire().open()
    exchange(wire, 1, 2, 3)
    write = data.draw(st.sampled_from([pcap, pcapng]))
    content = bytearray(write(wire.packets))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(24, len(content) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(24, len(content)))
    try:
        items = read(bytes(content[:end]))
    except CaptureError:
        return
    assert len(items) < 50
