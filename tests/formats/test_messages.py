"""Kafka's messages: bytes by schema and version, and JSON as Jackson writes it."""

from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kseg.formats import schemas
from kseg.formats.message_json import double_text, json_text, json_value
from kseg.formats.messages import UNKNOWN_TAGGED_FIELDS, MessageError, build_message, parse_message
from kseg.formats.schemas import Field, MessageSchema, message_schema, messages_in, version_range

FILES = sorted(path.stem for path in Path(schemas.__file__).with_name("message_schemas").iterdir())
MESSAGES = [message for file in FILES for message in messages_in(file)]
VERSIONS = [
    (message, version)
    for message in MESSAGES
    for version in range(version_range(message.versions).first, version_range(message.versions).last + 1)
]
INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UNSIGNED = {"uint16": 16, "uint32": 32}

OFFSET_COMMIT_V3 = bytes.fromhex(
    "000000000000002a"  # offset 42
    "00000007"  # leaderEpoch 7
    "0002 c3bc"  # metadata "ü"
    "0000019000000000"  # commitTimestamp
)
REGISTER_BROKER_V3_WITH_UNKNOWN_TAG = bytes.fromhex(
    "00000001"  # brokerId
    "00"  # isMigratingZkBroker
    "00000000000000000000000000000001"  # incarnationId
    "0000000000000005"  # brokerEpoch
    "02"  # one endpoint
    "0241"  # name "A"
    "0242"  # host "B"
    "ea60"  # port 60000
    "0000"  # securityProtocol
    "00"  # no tagged fields
    "01"  # no features
    "00"  # rack null
    "01"  # fenced
    "00"  # inControlledShutdown
    "02"  # two tagged fields
    "0011"  # tag 0, 17 bytes
    "0200000000000000000000000000000002"  # one log directory
    "0902cafe"  # tag 9, 2 bytes
)


def primitive(kind: str) -> st.SearchStrategy[Any]:
    if kind in INTEGERS:
        bits = INTEGERS[kind] - 1
        return st.integers(-(2**bits), 2**bits - 1)
    if kind in UNSIGNED:
        return st.integers(0, 2 ** UNSIGNED[kind] - 1)
    return {
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False),
        "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        "bytes": st.binary(max_size=20),
        "records": st.binary(max_size=20),
        "uuid": st.binary(min_size=16, max_size=16).map(lambda data: urlsafe_b64encode(data)[:22].decode()),
    }[kind]


def value_of(field: Field, version: int) -> st.SearchStrategy[Any]:
    if field.type.startswith("[]"):
        element = value_of(field._replace(type=field.type[2:], nullable="none"), version)
        values: st.SearchStrategy[Any] = st.lists(element, max_size=3)
    elif field.type[0].isupper():
        values = fields_of(field.fields, version)
    else:
        values = primitive(field.type)
    return st.none() | values if version in version_range(field.nullable) else values


def fields_of(fields: tuple[Field, ...], version: int) -> st.SearchStrategy[dict[str, Any]]:
    present = [field for field in fields if version in version_range(field.versions)]
    return st.fixed_dictionaries({field.name: value_of(field, version) for field in present})


@st.composite
def values(draw: st.DrawFn) -> tuple[MessageSchema, int, dict[str, Any]]:
    message, version = draw(st.sampled_from(VERSIONS))
    return message, version, draw(fields_of(message.fields, version))


def test_fields_of_a_message_are_read_by_version() -> None:
    value, end = parse_message(message_schema("OffsetCommitValue"), 3, OFFSET_COMMIT_V3 + b"more")
    assert value == {"offset": 42, "leaderEpoch": 7, "metadata": "ü", "commitTimestamp": 0x19000000000}
    assert end == len(OFFSET_COMMIT_V3)


def test_tagged_fields_are_read_and_unknown_ones_are_kept() -> None:
    data = REGISTER_BROKER_V3_WITH_UNKNOWN_TAG
    value = parse_message(message_schema("RegisterBrokerRecord"), 3, data).value
    assert value["endPoints"] == [{"name": "A", "host": "B", "port": 60000, "securityProtocol": 0}]
    assert value["rack"] is None
    assert value["logDirs"] == ["AAAAAAAAAAAAAAAAAAAAAg"]
    assert value[UNKNOWN_TAGGED_FIELDS] == {9: b"\xca\xfe"}
    assert build_message(message_schema("RegisterBrokerRecord"), 3, value) == data


def test_json_leaves_out_tagged_defaults_and_unknown_tagged_fields() -> None:
    value = parse_message(message_schema("RegisterBrokerRecord"), 3, REGISTER_BROKER_V3_WITH_UNKNOWN_TAG).value
    value["logDirs"] = []
    shown = json_text(json_value(message_schema("RegisterBrokerRecord"), 3, value))
    assert shown == (
        '{"brokerId":1,"isMigratingZkBroker":false,"incarnationId":"AAAAAAAAAAAAAAAAAAAAAQ","brokerEpoch":5,'
        '"endPoints":[{"name":"A","host":"B","port":60000,"securityProtocol":0}],"features":[],"rack":null,'
        '"fenced":true,"inControlledShutdown":false}'
    )


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ({}, "00"),
        ({"classicMemberMetadata": None}, "01 00 01 00"),
        ({"classicMemberMetadata": {"sessionTimeoutMs": 1, "supportedProtocols": []}}, "01 00 07 01 00000001 01 00"),
    ],
    ids=["default", "null", "set"],
)
def test_tagged_structure_that_may_be_null_has_a_uvarint_before_it(value: dict[str, Any], data: str) -> None:
    message = message_schema("ConsumerGroupMemberMetadataValue")
    built = build_message(message, 0, value)
    assert built.endswith(bytes.fromhex(data))
    assert parse_message(message, 0, built).value["classicMemberMetadata"] == value.get(
        "classicMemberMetadata", {"sessionTimeoutMs": 0, "supportedProtocols": []}
    )


@given(values())
def test_what_is_built_is_parsed_as_the_same(case: tuple[MessageSchema, int, dict[str, Any]]) -> None:
    message, version, value = case
    data = build_message(message, version, value)
    assert parse_message(message, version, data) == (value, len(data))


@given(values(), st.data())
def test_wrong_bytes_are_refused_or_read_but_never_crash(
    case: tuple[MessageSchema, int, dict[str, Any]], draw: st.DataObject
) -> None:
    message, version, value = case
    data = bytearray(build_message(message, version, value) or b"\0")
    for position in draw.draw(st.lists(st.integers(0, len(data) - 1), max_size=5)):
        data[position] = draw.draw(st.integers(0, 255))
    cut = bytes(data[: draw.draw(st.integers(0, len(data)))])
    try:
        parsed = parse_message(message, version, cut)
    except MessageError:
        return
    assert parsed.end <= len(cut)
    json_text(json_value(message, version, parsed.value))


@pytest.mark.parametrize(
    ("message", "version", "data", "text"),
    [
        (
            message_schema("GroupMetadataValue"),
            0,
            "0000 00000000 ffff ffff 7fffffff",
            "Tried to allocate a collection of size 2147483647, but there are only 0 bytes remaining.",
        ),
        (message_schema("GroupMetadataKey"), 2, "7fff61", "Error reading byte array of 32767 byte(s): only 1 "),
        (message_schema("GroupMetadataKey"), 2, "ffff", "non-nullable field group was serialized as null"),
        (message_schema("TopicRecord"), 0, "818004", "string field name had invalid length 65536"),
        (message_schema("RemoveTopicRecord"), 0, "00", "null"),
    ],
    ids=["count", "size", "null", "long string", "end"],
)
def test_refusals_have_kafkas_text(message: MessageSchema, version: int, data: str, text: str) -> None:
    with pytest.raises(MessageError) as caught:
        parse_message(message, version, bytes.fromhex(data))
    assert caught.value.kafka_text.startswith(text)


def test_null_where_null_cannot_be_is_not_built() -> None:
    with pytest.raises(MessageError, match="group can't be null"):
        build_message(message_schema("GroupMetadataKey"), 0, {"group": None})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('"\\/', '"\\"\\\\/"'),
        ("\b\t\n\f\r\x01\x1f\x7f\u2028é😀", '"\\b\\t\\n\\f\\r\\u0001\\u001F\x7f\u2028é😀"'),
        ({"a": [None, True, 2**63 - 1]}, '{"a":[null,true,9223372036854775807]}'),
        (float("nan"), '"NaN"'),
    ],
    ids=["quotes", "controls", "nested", "nan"],
)
def test_json_is_jacksons(value: object, text: str) -> None:
    assert json_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (9.99e-4, "9.99E-4"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (-1.25e22, "-1.25E22"),
        (5e-324, "5.0E-324"),
        (float("inf"), "Infinity"),
    ],
)
def test_doubles_are_printed_as_java_prints_them(value: float, text: str) -> None:
    assert double_text(value) == text


def test_encoded_surrogate_is_one_replacement_character() -> None:
    data = b"\x00\x05a\xed\xa0\x80b"
    assert parse_message(message_schema("GroupMetadataKey"), 2, data).value == {"group": "a\ufffdb"}
