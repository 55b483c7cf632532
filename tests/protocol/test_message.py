"""Requests and responses: which header they have, and what is done about those that the schemas don't have."""

import struct

import pytest

from kseg.formats.schemas import REQUESTS, version_range
from kseg.protocol.messages import (
    FrameError,
    read_request,
    read_response,
    request_header_version,
    response_header_version,
)
from tests.loops import for_each
from tests.protocol.packets import request, response
from tests.releases import NEWEST


def versions(text: str) -> range:
    first, last = version_range(text)
    return range(first, last + 1)


VERSIONS = [(key, version) for key, each in REQUESTS.items() for version in versions(each.versions)]


@pytest.mark.parametrize(
    ("api_key", "version", "request_header", "response_header"),
    [
        (0, 8, 1, 0),  # Produce
        (0, 9, 2, 1),
        (17, 1, 1, 0),  # SaslHandshake, which is never flexible
        (18, 0, 1, 0),  # ApiVersions
        (18, 4, 2, 0),
        (7, 0, 0, None),  # ControlledShutdown, which is gone
        (4, 2, None, None),  # LeaderAndIsr, the same
        (32000, 0, None, None),
    ],
)
def test_headers(api_key: int, version: int, request_header: int | None, response_header: int | None) -> None:
    assert request_header_version(api_key, version) == request_header
    assert response_header_version(api_key, version) == response_header


@for_each("api_key, version", VERSIONS)
def test_every_request_of_the_schemas_is_read(api_key: int, version: int) -> None:
    message = read_request(request(api_key, version, {}, 77, "someone"))
    assert (message.api_key, message.api_version, message.correlation_id) == (api_key, version, 77)
    assert message.client_id == "someone"
    assert message.body is not None


@for_each("api_key, version", VERSIONS)
def test_every_response_of_the_schemas_is_read(api_key: int, version: int) -> None:
    message = read_response(response(api_key, version, {}, 77), api_key, version)
    assert message.correlation_id == 77
    assert message.body is not None


def test_broker_that_does_not_know_the_version_of_api_versions_answers_in_the_first_one() -> None:
    body = {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 2}]}
    message = read_response(response(18, 0, body), 18, 4)
    assert (message.body_version, message.header_version) == (0, 0)
    assert message.body == body


def test_unknown_api_is_a_header_and_a_size() -> None:
    message = read_request(struct.pack(">hhih", 900, 3, 5, 2) + b"me" + bytes(30))
    assert (message.api, message.api_key, message.correlation_id, message.client_id) == (None, 900, 5, "me")
    assert (message.header_version, message.body, message.problem, message.body_size) == (None, None, None, 30)


def test_version_that_the_schemas_lack_is_a_header_and_a_size() -> None:
    message = read_request(struct.pack(">hhih", 0, 2, 5, -1) + bytes(30))
    assert (message.api, message.header_version, message.body, message.problem) == ("Produce", 1, None, None)


@pytest.mark.parametrize(
    ("api_key", "version", "reason"),
    [
        (900, 3, f"api 900 is newer than kseg supports; its schemas are from Kafka {NEWEST}"),
        (1, 40, f"Fetch version 40 is newer than kseg supports; its schemas are from Kafka {NEWEST}"),
        (0, 2, f"Produce version 2 is older than kseg supports; its schemas are from Kafka {NEWEST}"),
        (4, 1, f"LeaderAndIsr version 1 is older than kseg supports; its schemas are from Kafka {NEWEST}"),
        (18, 5, None),
        (28, 6, None),
        (42, 3, None),
        (88, 1, None),
        (93, 0, None),
        (94, 0, None),
    ],
)
def test_what_the_schemas_lack_is_said(api_key: int, version: int, reason: str | None) -> None:
    assert read_request(struct.pack(">hhih", api_key, version, 5, -1) + bytes(30)).unknown == reason


def test_bytes_after_a_request_are_counted_and_its_body_is_read() -> None:
    message = read_request(request(3, 12, {}) + b"?")
    assert (message.problem, message.trailing_size) == (None, 1)
    assert message.body == read_request(request(3, 12, {})).body


def test_bytes_after_a_response_are_counted_and_its_body_is_read() -> None:
    plain = response(3, 12, {"clusterId": "cluster"})
    message = read_response(plain + bytes(7), 3, 12)
    assert (message.problem, message.trailing_size) == (None, 7)
    assert message.body == read_response(plain, 3, 12).body


def test_count_of_more_than_there_is_is_a_problem() -> None:
    message = read_request(request(3, 0, {"topics": []})[:-4] + (1 << 30).to_bytes(4, "big"))
    assert message.body is None
    assert "only 0 bytes remaining" in (message.problem or "")


def test_elements_of_a_message_are_bounded() -> None:
    count = 3 << 20
    start = request(47, 0, {"groupId": "g", "topics": []})[:-4]
    message = read_request(start + count.to_bytes(4, "big") + bytes(2 * count))
    assert "more elements" in (message.problem or "")


def test_produce_request_without_acks_waits_for_nothing() -> None:
    assert not read_request(request(0, 9, {"acks": 0})).is_answered
    assert read_request(request(0, 9, {"acks": 1})).is_answered


@pytest.mark.parametrize("content", [b"", b"\0\0\0\1", b"\xff\xff\0\0\0\0\0\1\xff\xff", bytes(8) + b"\0\x09abc"])
def test_bytes_that_are_no_request_are_refused(content: bytes) -> None:
    with pytest.raises(FrameError):
        read_request(content)
