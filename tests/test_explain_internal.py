"""Explained records of internal topics: each byte once, values as parsed, odd bytes unchanged."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kseg.decode.internal_records import parse_framed
from kseg.explain.internal_records import internal_opener
from kseg.explain.items import ExplainedField, explain_file
from kseg.formats.codes import Codec
from kseg.formats.messages import build_message, parse_message
from kseg.formats.schemas import (
    METADATA_RECORDS,
    OFFSETS_KEYS,
    OFFSETS_VALUES,
    SHARE_STATE_KEYS,
    SHARE_STATE_VALUES,
    TRANSACTION_KEYS,
    TRANSACTION_VALUES,
    MessageTable,
    message_schema,
)
from kseg.reading.batch import Batch
from tests import golden, run
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each

TOPICS = ("__consumer_offsets", "__transaction_state", "__cluster_metadata", "__share_group_state")
LOGS = [path for path in golden.files(".log") if path.parent.name.rpartition("-")[0] in TOPICS]
COORDINATORS: dict[str, tuple[MessageTable, MessageTable]] = {
    "__consumer_offsets": (OFFSETS_KEYS, OFFSETS_VALUES),
    "__transaction_state": (TRANSACTION_KEYS, TRANSACTION_VALUES),
    "__share_group_state": (SHARE_STATE_KEYS, SHARE_STATE_VALUES),
}
OLD_COMMIT = ("__consumer_offsets", 0)
"""The topic, and the type of its keys whose values have the format of type 1."""


def leaves(fields: list[ExplainedField]) -> Iterator[ExplainedField]:
    for field in fields:
        for leaf in field.leaves():
            yield leaf
            yield from leaves(leaf.body)


def flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield each scalar of a message by its path."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from flat(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from flat(inner, f"{path}[{number}]")
    else:
        yield path, value


def parse_record(topic: str, key: bytes | None, value: bytes | None, stem: str) -> dict[str, Any]:
    """Return the values of a record by Kafka's schemas, by path."""
    if topic == "__cluster_metadata":
        return dict(flat(parse_framed(METADATA_RECORDS, value).fields, f"{stem}.value"))
    assert key is not None
    keys, values = COORDINATORS[topic]
    number = int.from_bytes(key[:2], "big")
    found = dict(flat(parse_message(keys[number], number, key, 2).value, f"{stem}.key"))
    if value is not None:
        version = int.from_bytes(value[:2], "big")
        found |= flat(
            parse_message(values[1 if (topic, number) == OLD_COMMIT else number], version, value, 2).value,
            f"{stem}.value",
        )
    return found


@for_each("path", LOGS, ids=lambda path: str(path.relative_to(golden.ROOT)))
def test_fields_of_internal_records_are_those_that_are_parsed(path: Path) -> None:
    topic, content = path.parent.name.rpartition("-")[0], path.read_bytes()
    opened = records = 0
    for item in explain_file(path):
        told = {leaf.path: leaf for leaf in leaves(item.fields)}
        assert [leaf.path for leaf in told.values() if leaf.problem or leaf.name == "rest"] == []
        batch = Batch.parse(content[item.position : item.position + item.size], item.position, is_valid=True)
        for number, record in enumerate(() if batch.is_control else batch.records()):
            records += 1
            for place, value in parse_record(topic, record.key, record.value, stem_of(batch, number)).items():
                if place in told:
                    assert told[place].value == value
                    opened += 1
                else:  # without bytes of its own, or with bytes that are explained further
                    assert not value or place.endswith((".subscription", ".assignment")) or is_left_out(place, told)
    assert opened >= records


def stem_of(batch: Batch, number: int) -> str:
    """Return the beginning of the paths of the fields of a record."""
    if batch.is_legacy:
        return "message" if batch.codec == Codec.NONE else f"entries[{number}].message"
    return f"records[{number}]"


def is_left_out(place: str, told: dict[str, ExplainedField]) -> bool:
    """Return True if the bytes lack a field: a tagged one, or one that the version doesn't have, with its default."""
    return not any(path.startswith(place) for path in told)


def explain_record(directory: Path, key: bytes | None, value: bytes | None) -> list[ExplainedField]:
    """Return the leaves of one record of `__consumer_offsets`, each byte in one of them."""
    path = write_segment(directory / "__consumer_offsets-0", [NewBatch([NewRecord(key, value)])])
    (item,) = explain_file(path)
    found = list(leaves(item.fields))
    position = 0
    for leaf in found:
        assert leaf.position == position
        position += leaf.size
    assert position == path.stat().st_size
    return found


def test_members_subscriptions_are_opened(tmp_path: Path) -> None:
    topics = build_message(message_schema("ConsumerProtocolSubscription"), 0, {"topics": ["orders"]})
    member = {"memberId": "m", "clientId": "c", "clientHost": "h", "subscription": b"\0\0" + topics, "assignment": b""}
    for protocol, wanted in (("consumer", ["orders"]), ("connect", [])):
        group = {"protocolType": protocol, "members": [member]}
        value = b"\0\3" + build_message(message_schema("GroupMetadataValue"), 3, group)
        key = b"\0\2" + build_message(message_schema("GroupMetadataKey"), 2, {"group": "g"})
        found = explain_record(tmp_path / protocol, key, value)
        assert [leaf.value for leaf in found if leaf.path.endswith(".subscription.topics[0]")] == wanted


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"\0", None, "2 bytes are needed, 1 left"),
        (b"\0\x63abc", b"\0\1", "kseg doesn't know records of type 99"),
        (b"\0\1\0\5ab", None, "5 bytes are needed, 2 left"),
        (b"\0\2\0\1g!", None, "bytes too many"),
        (b"\0\2\0\1g", b"\0\4\xff\xff\xff\xff\xff\xff", "a number has too many bytes or no end"),
    ],
)
def test_bytes_that_fit_no_message_stay_as_they_are_and_say_why(
    key: bytes, value: bytes | None, reason: str, tmp_path: Path
) -> None:
    found = explain_record(tmp_path, key, value)
    assert reason in [leaf.meaning for leaf in found if leaf.name == "rest"]
    assert [leaf for leaf in found if leaf.problem] == [], "anybody may write into a topic: the file is intact"


@given(key=st.binary(max_size=60), value=st.binary(max_size=200), number=st.integers(0, 24))
def test_any_bytes_are_shown_exactly_once(
    key: bytes, value: bytes, number: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    explain_record(tmp_path_factory.mktemp("logs"), number.to_bytes(2, "big") + key, b"\0\1" + value)


def test_a_large_count_of_elements_costs_nothing(tmp_path: Path) -> None:
    group = b"\0\3" + b"\0\1c" + bytes(4) + b"\xff\xff" * 2 + bytes(8) + b"\x7f\xff\xff\xff" + bytes(1000)
    found = explain_record(tmp_path, b"\0\2\0\1g", group)
    assert found[-2].meaning == "2147483647 elements, but 1000 bytes are left"


def test_very_many_fields_of_a_batch_are_not_all_opened(tmp_path: Path) -> None:
    topics = build_message(message_schema("ConsumerProtocolSubscription"), 0, {"topics": [""] * 20_000})
    member = {"memberId": "m", "clientId": "c", "clientHost": "h", "subscription": b"\0\0" + topics, "assignment": b""}
    group = {"protocolType": "consumer", "members": [member]}
    value = b"\0\3" + build_message(message_schema("GroupMetadataValue"), 3, group)
    records = [NewRecord(b"\0\2\0\1g", value)] * 10
    path = write_segment(tmp_path / "__consumer_offsets-0", [NewBatch(records)])
    (item,) = explain_file(path)
    found = list(leaves(item.fields))
    assert 20_000 < len(found) < 100_000
    assert sum(leaf.size for leaf in found) == path.stat().st_size
    assert (found[-2].value, found[-2].meaning) == (
        value,
        "more than 50000 fields before this one; kseg doesn't read it",
    )


def test_only_internal_topics_are_opened(tmp_path: Path) -> None:
    assert internal_opener(tmp_path / "orders-0" / f"{0:020}.log") is None
    path = write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(b"\0\2\0\1g", b"")])])
    ran = run.kseg(["explain", str(path)], tmp_path)
    assert b"recordType" not in ran.stdout


def test_text_names_the_message_and_its_fields(tmp_path: Path) -> None:
    path = next(path for path in LOGS if "logs/4.3.1/__consumer_offsets" in str(path))
    ran = run.kseg(["explain", str(path), "--batch", "0"], tmp_path)
    lines = ran.stdout.decode()
    assert ran.status == 0
    for word in (
        "OffsetCommitKey",
        "of OffsetCommitValue",
        "commitTimestamp",
        "of topicId",
        "(2026-11-21T10:14:36.071Z)",
    ):
        assert word in lines
