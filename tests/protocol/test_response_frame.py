"""Responses to bytes: what is built is read again as the same."""

from typing import Any

import pytest
from hypothesis import given, settings

from kseg.formats.messages import Fields, MessageError
from kseg.formats.schemas import RESPONSES, version_range
from kseg.protocol.messages import build_response, read_response
from kseg.serve.apis.table import APIS
from tests.formats.test_messages import fields_of
from tests.loops import examples, for_each

ANSWERED = [
    (key, version)
    for key in APIS
    for version in range(version_range(RESPONSES[key].versions).first, version_range(RESPONSES[key].versions).last + 1)
]


class Elsewhere:
    """Bytes that are somewhere else."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __len__(self) -> int:
        return len(self.content)


@for_each("api_key, version", ANSWERED, shards=2)
def test_response_is_read_as_it_was_built(api_key: int, version: int) -> None:
    """The newest version has most fields, and most examples; the others of an API hardly differ from it."""
    is_newest = version == version_range(RESPONSES[api_key].versions).last

    @settings(max_examples=examples(25 if is_newest else 6))
    @given(fields_of(RESPONSES[api_key].fields, version))
    def check(body: Fields) -> None:
        built = b"".join(build_response(api_key, version, 77, body))
        assert int.from_bytes(built[:4], "big") == len(built) - 4
        message = read_response(built[4:], api_key, version)
        assert (message.correlation_id, message.body, message.problem) == (77, body, None)

    check()


@for_each("version", range(4, 19))
def test_records_elsewhere_are_pieces_of_their_own(version: int) -> None:
    parts = [b"first records", b"", b"others" * 100]

    def body(records: list[Any]) -> dict[str, Any]:
        return {"responses": [{"partitions": [{"records": each} for each in records]}]}

    whole = b"".join(build_response(1, version, 5, body(parts)))
    pieces = build_response(1, version, 5, body([Elsewhere(part) for part in parts]), Elsewhere)
    assert [each.content for each in pieces if isinstance(each, Elsewhere)] == parts
    assert b"".join(each.content if isinstance(each, Elsewhere) else each for each in pieces) == whole


def test_what_is_no_response_is_refused() -> None:
    with pytest.raises(MessageError, match="MetadataResponse version 4: "):
        build_response(3, 4, 1, {"topics": [{"name": 5}]})
