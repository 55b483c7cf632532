"""Decoders of internal topics against what each release's real tool printed."""

import re
from pathlib import Path

import pytest

from kseg.decode.decoded import DecodeError, Parts
from kseg.decode.kafka_text import DECODERS, decoder_for
from kseg.errors import UsageError
from kseg.formats.messages import build_message, parse_message
from kseg.formats.schemas import METADATA_RECORDS, OFFSETS_KEYS, OFFSETS_VALUES, MessageSchema, message_schema
from tests import golden
from tests.decode.records import records
from tests.golden import GoldenCase
from tests.loops import for_each

OFFSET_KEY = b"\0\1" + build_message(message_schema("OffsetCommitKey"), 0, {"group": "g", "topic": "t"})
OFFSET_VALUE = b"\0\3" + build_message(message_schema("OffsetCommitValue"), 3, {"offset": 5, "metadata": "m"})
GROUP_KEY = b"\0\2" + build_message(message_schema("GroupMetadataKey"), 0, {"group": 'g"'})
TRANSACTION_KEY = b"\0\0" + build_message(message_schema("TransactionLogKey"), 0, {"transactionalId": "x"})


def group_value(version: int, members: list[dict[str, object]], protocol_type: str = "consumer") -> bytes:
    value = {"protocolType": protocol_type, "generation": 3, "protocol": 'r"', "members": members}
    return version.to_bytes(2, "big") + build_message(message_schema("GroupMetadataValue"), version, value)


ASSIGNED = bytes.fromhex("0000 00000001 000174 00000002 00000000 00000001 00000002 00ab")
"""Version 0, topic t with partitions 0 and 1, user data 00ab."""


def printed_parts(case: GoldenCase) -> list[bytes]:
    """The parts of the case's records as they stand in a line, in order."""
    option = next(option[2:] for option in case.arguments if option[2:] in DECODERS)
    decode = decoder_for(option, tuple(map(int, case.printer.split("."))))
    shown = []
    try:
        for name in case.files:
            for record in records(golden.ROOT / name):
                if not record.is_control:
                    shown.append(line_end(decode(record.key, record.value, record.offset)))
    except DecodeError:
        assert case.status == 1
    return [line for line in shown if line]


def line_end(parts: Parts) -> bytes:
    key = b"" if parts.key is None else b" key: " + parts.key
    payload = b"" if parts.payload is None else b" payload: " + parts.payload
    return key + payload


LINE_STARTS = re.compile(
    rb"(?m)^(?=\| |offset: |baseOffset: |Dumping | payload: |(?:Log s|S)tarting |Snapshot |Found )"
)
PARTS = re.compile(rb"(?s)(?: key: | payload: ).*")


def expected_parts(case: GoldenCase) -> list[bytes]:
    """The parts that the real tool printed; texts may hold line breaks, and control records may leave empty lines."""
    found = [PARTS.search(line) for line in LINE_STARTS.split(case.stdout())]
    return [match[0].rstrip(b"\n") for match in found if match]


def words(line: bytes) -> list[bytes]:
    return sorted(re.findall(rb"[^\s,;()\[\]{}]+", line))


@for_each("printer", [printer for printer in golden.printers() if printer != "0.8.2.2"])
def test_keys_and_payloads_are_the_real_tools(printer: str) -> None:
    cases = [case for case in golden.cases("healthy", printer=printer) if case.needs_internal_topic_decoder]
    # 0.9 to 1.0 print them only if asked to, and older tools pass over the checkpoints of newer ones.
    printing = [case for case in cases if b"payload: " in case.stdout()]
    for case in printing:
        order = words if case.hash_order else bytes
        assert list(map(order, printed_parts(case))) == list(map(order, expected_parts(case))), str(case)
    assert printing or printer == "0.11.0.3"


@for_each("path", [path for path in golden.files(".log") if "__consumer_offsets" in str(path)])
def test_offsets_survive_parsing_and_building(path: Path) -> None:
    for record in records(path):
        if not record.is_control and record.key is not None:
            number = int.from_bytes(record.key[:2], "big")
            key, value = OFFSETS_KEYS[number], OFFSETS_VALUES[number or 1]
            assert build_message(key, 0, parse_message(key, 0, record.key, 2).value) == record.key[2:]
            if record.value is not None:
                version = int.from_bytes(record.value[:2], "big")
                assert (
                    build_message(value, version, parse_message(value, version, record.value, 2).value)
                    == (record.value[2:])
                )


@for_each("path", [path for path in golden.files(".log") if "__cluster_metadata" in str(path)])
def test_metadata_survives_parsing_and_building(path: Path) -> None:
    for record in records(path):
        if not record.is_control and record.value is not None:
            _, number, version = record.value[:3]
            message = METADATA_RECORDS[number]
            fields = parse_message(message, version, record.value, 3).value
            assert build_message(message, version, fields) == record.value[3:]


@pytest.mark.parametrize(
    ("release", "parts"),
    [
        ((2, 1, 0), (b"offset::g:t:0", b"5:m")),
        ((2, 4, 1), (b"offset_commit::group=g,partition=t-0", b"offset=5,metadata=m")),
        (
            (3, 8, 0),
            (
                b'{"type":"1","data":{"group":"g","topic":"t","partition":0}}',
                b'{"version":"3","data":{"offset":5,"leaderEpoch":-1,"metadata":"m","commitTimestamp":0}}',
            ),
        ),
    ],
)
def test_offset_commit_by_release(release: tuple[int, ...], parts: tuple[bytes, bytes]) -> None:
    assert decoder_for("offsets-decoder", release)(OFFSET_KEY, OFFSET_VALUE, 0) == parts


@pytest.mark.parametrize(
    ("release", "parts"),
    [
        ((0, 11, 0, 3), (b'metadata::g"', b'consumer:r":3:{m=[t-0, t-1]:AB}')),
        (
            (1, 0, 2),
            (
                b'{"metadata":"g""}',
                b'{"protocolType":"consumer","protocol":"r"","generationId":3,"assignment":"{m=[t-0, t-1]:AB}"}',
            ),
        ),
        (
            (1, 1, 1),
            (
                b'{"metadata":"g\\""}',
                b'{"protocolType":"consumer","protocol":"r\\"","generationId":3,"assignment":"{m=[t-0, t-1]:AB}"}',
            ),
        ),
    ],
)
def test_group_by_release(release: tuple[int, ...], parts: tuple[bytes, bytes]) -> None:
    value = group_value(0, [{"memberId": "m", "assignment": ASSIGNED}])
    assert decoder_for("offsets-decoder", release)(GROUP_KEY, value, 0) == parts


def test_groups_that_are_not_consumers_show_their_assignment_in_hex() -> None:
    value = group_value(0, [{"memberId": "m", "assignment": b"\0\x0f\xa0"}], "connect")
    payload = decoder_for("offsets-decoder", (3, 7, 0))(GROUP_KEY, value, 0).payload
    assert payload == b'{"protocolType":"connect","protocol":"r\\"","generationId":3,"assignment":"{m=FA0}"}'


def test_embedded_protocol_that_cannot_be_read_stays_base64() -> None:
    value = group_value(0, [{"memberId": "m", "assignment": ASSIGNED, "subscription": b"\0\0\x7f"}])
    payload = decoder_for("offsets-decoder", (4, 3, 1))(GROUP_KEY, value, 0).payload
    assert payload is not None
    assert payload.endswith(
        b'"subscription":"AAB/","assignment":{"assignedPartitions":[{"topic":"t","partitions":[0,1]}],'
        b'"userData":"AKs="}}]}}'
    )


@pytest.mark.parametrize(
    ("option", "release", "key", "value"),
    [
        ("offsets-decoder", (2, 3, 1), None, OFFSET_VALUE),
        ("offsets-decoder", (4, 3, 1), None, OFFSET_VALUE),
        ("offsets-decoder", (3, 4, 0), b"\0\x63", OFFSET_VALUE),
        ("offsets-decoder", (2, 0, 1), OFFSET_KEY, OFFSET_VALUE),
        ("offsets-decoder", (0, 10, 0, 1), GROUP_KEY, group_value(0, [{"assignment": ASSIGNED}])),
        ("transaction-log-decoder", (2, 4, 0), TRANSACTION_KEY, None),
        ("transaction-log-decoder", (4, 0, 0), None, None),
    ],
    ids=["no key", "no key today", "key type", "value version", "hex", "no value", "no key of transaction"],
)
def test_real_tool_dies(option: str, release: tuple[int, ...], key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        decoder_for(option, release)(key, value, 0)


@pytest.mark.parametrize(
    ("release", "parts"),
    [
        ((2, 4, 0), (None, None)),
        ((2, 4, 1), (b"offset_commit::group=g,partition=t-0", b"<DELETE>")),
        ((4, 3, 1), (b'{"type":"1","data":{"group":"g","topic":"t","partition":0}}', b"<DELETE>")),
    ],
)
def test_tombstone_by_release(release: tuple[int, ...], parts: tuple[bytes | None, bytes | None]) -> None:
    assert decoder_for("offsets-decoder", release)(OFFSET_KEY, None, 0) == parts


@pytest.mark.parametrize(
    ("release", "number", "shown"),
    [
        ((4, 3, 1), 2, b"2"),
        ((4, 4, 0), 0, b'"Empty"'),
        ((4, 4, 0), 7, b'"PrepareEpochFence"'),
        ((4, 4, 0), 8, b'"8"'),
        ((4, 4, 0), -1, b'"-1"'),
    ],
)
def test_status_of_a_transaction_is_a_name_since_4_4(release: tuple[int, ...], number: int, shown: bytes) -> None:
    fields = {"transactionStatus": number, "transactionPartitions": []}
    value = b"\0\1" + build_message(message_schema("TransactionLogValue"), 1, fields)
    payload = decoder_for("transaction-log-decoder", release)(TRANSACTION_KEY, value, 0).payload
    assert payload is not None
    assert b'"transactionStatus":' + shown + b"," in payload


@pytest.mark.parametrize(
    ("option", "release", "key", "value", "parts"),
    [
        ("offsets-decoder", (3, 4, 1), b"\0\x63", b"", (b"unknown::version=99", None)),
        ("offsets-decoder", (4, 3, 1), b"\0\x63", b"", (b"Unknown record type 99 at offset 7, skipping.", None)),
        (
            "offsets-decoder",
            (4, 3, 1),
            OFFSET_KEY,
            b"\0\x63",
            (b"Error at offset 7, skipping. Found an unknown record version 99 for 1 type", None),
        ),
        (
            "cluster-metadata-decoder",
            (4, 3, 1),
            None,
            b"\1\x63\0",
            (
                None,
                b"Error at 7, skipping. org.apache.kafka.common.errors.UnsupportedVersionException: "
                b"Unknown metadata id 99",
            ),
        ),
        (
            "cluster-metadata-decoder",
            (2, 8, 0),
            None,
            b"\1\2\0",
            (
                None,
                b"Error at 7, skipping. Could not deserialize metadata record due to unknown frame version 1"
                b"(only frame version 0 is supported)",
            ),
        ),
        (
            "cluster-metadata-decoder",
            (3, 6, 0),
            None,
            b"\1\x14\0\0more",
            (None, b"Error at 7, skipping. Found 4 byte(s) of garbage after 20"),
        ),
    ],
    ids=["3.4.1", "type", "version", "metadata type", "preview", "garbage"],
)
def test_what_a_tool_does_not_know_is_named(
    option: str, release: tuple[int, ...], key: bytes | None, value: bytes, parts: tuple[bytes | None, bytes | None]
) -> None:
    assert decoder_for(option, release)(key, value, 7) == parts


def test_preview_reads_its_own_metadata() -> None:
    topic = bytes.fromhex("00 02 00 0001 74") + bytes(16)  # frame version, type, version, name, topicId
    text = b'{"type":"TOPIC_RECORD","version":0,"data":{"name":"t","topicId":"AAAAAAAAAAAAAAAAAAAAAA"}}'
    assert decoder_for("cluster-metadata-decoder", (2, 8, 2))(None, topic, 0) == (None, text)
    later = decoder_for("cluster-metadata-decoder", (3, 0, 0))(None, topic, 0).payload
    assert later is not None
    assert later.startswith(b"Error at 0, skipping. Could not deserialize metadata record with frame version 0. ")


@pytest.mark.parametrize(
    ("release", "end"),
    [((3, 9, 1), b", state=COPY_SEGMENT_FINISHED}"), ((4, 3, 1), b", state=COPY_SEGMENT_FINISHED, txnIdxEmpty=true}")],
)
def test_remote_segment_is_javas_text(release: tuple[int, ...], end: bytes) -> None:
    value = {
        "remoteLogSegmentId": {"topicIdPartition": {"name": "t", "id": "A" * 22, "partition": 1}, "id": "B" * 21 + "A"},
        "startOffset": 1,
        "endOffset": 9,
        "segmentLeaderEpochs": [{"leaderEpoch": 3, "offset": 5}, {"leaderEpoch": 0, "offset": 1}],
        "customMetadata": b"abc",
        "remoteLogSegmentState": 1,
        "txnIndexEmpty": True,
    }
    record = b"\1\0\0" + build_message(message_schema("RemoteLogSegmentMetadataRecord"), 0, value)
    assert decoder_for("remote-log-metadata-decoder", release)(None, record, 0) == (
        None,
        b"RemoteLogSegmentMetadata{remoteLogSegmentId=RemoteLogSegmentId{topicIdPartition=AAAAAAAAAAAAAAAAAAAAAA:t-1, "
        b"id=BBBBBBBBBBBBBBBBBBBBBA}, startOffset=1, endOffset=9, brokerId=0, maxTimestampMs=0, eventTimestampMs=0, "
        b"segmentLeaderEpochs={0=1, 3=5}, segmentSizeInBytes=0, customMetadata=Optional[CustomMetadata{3 bytes}]" + end,
    )


@pytest.mark.parametrize(
    ("message", "number", "text"),
    [
        (message_schema("RemotePartitionDeleteMetadataRecord"), 2, b"null"),
        (message_schema("RemoteLogSegmentMetadataSnapshotRecord"), 3, b"state can not be null"),
        (
            message_schema("RemoteLogSegmentMetadataRecord"),
            0,
            b"segmentLeaderEpochs can not be null or empty",
        ),
    ],
    ids=["delete", "snapshot", "segment"],
)
def test_remote_metadata_with_an_unknown_state_and_no_epochs_is_refused_in_kafkas_words(
    message: MessageSchema, number: int, text: bytes
) -> None:
    names = {field.name for field in message.fields if field.name.endswith("State")}
    record = bytes([1, number, 0]) + build_message(message, 0, dict.fromkeys(names, 77))
    shown = decoder_for("remote-log-metadata-decoder", (4, 3, 1))(None, record, 5).payload
    assert shown == b"Error at offset 5, skipping. " + text


def test_unknown_option_is_wrong_usage() -> None:
    with pytest.raises(UsageError):
        decoder_for("offset-decoder", (4, 3, 1))
