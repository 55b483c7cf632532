"""Conversations of real clients with a broker of 4.3.1: each frame is read to its last byte."""

import io
from collections import defaultdict
from typing import Any

import dpkt

from kseg.formats.messages import UNKNOWN_TAGGED_FIELDS, build_message
from kseg.formats.schemas import message_schema
from kseg.protocol.capture import Capture
from kseg.protocol.conversation import Frame
from tests import golden

PATH = golden.ROOT / "protocol/4.3.1/clients.pcap"
FRAMES, APIS, API_VERSIONS = 398, 30, 57


def frames() -> list[Frame]:
    with PATH.open("rb") as file:
        capture = Capture(file)
        items = list(capture.items())
    found = [item for item in items if isinstance(item, Frame)]
    assert len(found) == len(items), "there is something else than frames"
    assert (capture.unanswered, capture.unreadable) == (0, 0)
    return found


def payloads() -> dict[tuple[str, bool], bytes]:
    """Each connection's bytes by the client's end and direction; the recording has each packet once, in order."""
    found: dict[tuple[str, bool], bytes] = defaultdict(bytes)
    for _, raw in dpkt.pcap.Reader(io.BytesIO(PATH.read_bytes())):
        packet = dpkt.ethernet.Ethernet(raw).data
        is_client = packet.data.dport == 9092
        port = packet.data.sport if is_client else packet.data.dport
        found[f"10.0.0.2:{port}", is_client] += packet.data.data
    return {stream: content for stream, content in found.items() if content}


def test_every_frame_is_read() -> None:
    found = frames()
    assert [frame.number for frame in found if frame.message.body is None or frame.message.problem] == []
    assert len(found) == FRAMES
    assert len({frame.message.api_key for frame in found}) == APIS
    assert len({(frame.message.api_key, frame.message.api_version) for frame in found}) == API_VERSIONS


def test_no_field_is_unknown() -> None:
    def unknown(value: Any) -> bool:
        if isinstance(value, dict):
            return UNKNOWN_TAGGED_FIELDS in value or any(map(unknown, value.values()))
        return isinstance(value, list) and any(map(unknown, value))

    found = [frame.number for frame in frames() if unknown(frame.message.body) or frame.message.tagged_fields]
    assert found == []


def test_frames_fill_each_stream_from_its_first_byte_to_its_last() -> None:
    ends: dict[tuple[str, bool], int] = defaultdict(int)
    for frame in frames():
        assert frame.peers is not None
        stream = frame.peers.client, frame.message.kind == "request"
        assert frame.position == ends[stream]
        ends[stream] += frame.size
    assert ends == {stream: len(content) for stream, content in payloads().items()}


def test_what_is_read_gives_the_same_bytes_again() -> None:
    streams = payloads()
    for frame in frames():
        message, peers = frame.message, frame.peers
        assert peers is not None
        assert message.header_version is not None
        assert message.schema is not None
        assert message.body is not None
        is_request = message.kind == "request"
        header = {
            "requestApiKey": message.api_key,
            "requestApiVersion": message.api_version,
            "correlationId": message.correlation_id,
            "clientId": message.client_id,
        }
        built = build_message(
            message_schema("RequestHeader" if is_request else "ResponseHeader"), message.header_version, header
        )
        built += build_message(message.schema, message.body_version, message.body)
        there = streams[peers.client, is_request][frame.position : frame.position + frame.size]
        assert len(built).to_bytes(4, "big") + built == there, f"frame {frame.number}"


def test_each_response_answers_a_request_of_its_connection() -> None:
    found = {frame.number: frame for frame in frames()}
    responses = [frame for frame in found.values() if frame.message.kind == "response"]
    for frame in responses:
        asked = found[frame.request or 0]
        assert asked.peers == frame.peers
        assert (asked.message.kind, asked.message.api_key) == ("request", frame.message.api_key)
    assert len({frame.request for frame in responses}) == len(responses) == FRAMES // 2


def test_all_three_clients_speak() -> None:
    clients = {(frame.message.client_id or "").partition("-")[0] for frame in frames()}
    assert {"console", "aiokafka", "rdkafka"} <= clients
