"""Kafka's message schemas: found by name and by number, and read when needed."""

import subprocess
import sys

import pytest

from kseg.cluster.metadata import APPLIES
from kseg.cluster.metadata_access import ACCESS_APPLIES
from kseg.coordinators.groups import DESCRIBERS
from kseg.decode.internal_records import EARLY_METADATA_RECORDS, EARLY_SHARE_GROUP_KEYS, EARLY_SHARE_GROUP_VALUES
from kseg.formats.schemas import (
    METADATA_RECORDS,
    OFFSETS_VALUES,
    OFFSETS_VALUES_TO_4_0,
    REQUESTS,
    Field,
    message_schema,
    messages_in,
)
from tests.loops import for_each

NEWEST_FILES = (
    "consumer_offsets",
    "consumer_protocol",
    "transaction_state",
    "share_group_state",
    "cluster_metadata",
    "remote_log_metadata",
    "control_records",
    "protocol",
)


@for_each("name", NEWEST_FILES)
def test_messages_of_the_newest_release_are_found_by_their_names(name: str) -> None:
    for message in messages_in(name):
        assert message_schema(message.name) is message


def test_unknown_message_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="OffsetComitKey"):
        message_schema("OffsetComitKey")


def test_shared_structure_has_its_fields_wherever_it_is_used() -> None:
    fields = {field.name: field for field in message_schema("LeaderChangeMessage").fields}
    voter = (Field("voterId", "int32", "0+"), Field("voterDirectoryId", "uuid", "1+"))
    assert (fields["voters"].fields, fields["grantingVoters"].fields) == (voter, voter)


def test_tables_have_messages_by_number() -> None:
    assert REQUESTS[18] is message_schema("ApiVersionsRequest")
    assert REQUESTS.names[18] == "ApiVersionsRequest"
    assert (18 in REQUESTS, 900 in REQUESTS, REQUESTS.get(900)) == (True, False, None)
    assert list(REQUESTS) == list(range(95))
    assert (OFFSETS_VALUES[0].name, OFFSETS_VALUES_TO_4_0[0].name) == ("LegacyOffsetCommitValue", "OffsetCommitValue")


def test_earlier_releases_have_messages_of_their_own() -> None:
    assert [field.name for field in EARLY_METADATA_RECORDS[15].fields] == ["brokerId", "brokerEpoch", "producerIdsEnd"]
    assert EARLY_SHARE_GROUP_KEYS[9].name == "ShareGroupPartitionMetadataKey"
    assert list(EARLY_SHARE_GROUP_VALUES) == [9, 11, 15]
    assert EARLY_SHARE_GROUP_VALUES[11] != message_schema("ShareGroupMetadataValue")


def test_views_name_messages_that_there_are() -> None:
    assert APPLIES.keys() | ACCESS_APPLIES.keys() <= set(METADATA_RECORDS.names.values())
    assert DESCRIBERS.keys() <= set(OFFSETS_VALUES.names.values())


def test_files_are_read_when_a_message_is_first_asked_for() -> None:
    code = """
import sys
opened = []
sys.addaudithook(lambda event, args: event == "open" and str(args[0]).endswith(".jsonl") and opened.append(args[0]))
import kseg.decode.kafka_text, kseg.explain.internal_records, kseg.coordinators.groups, kseg.cluster.metadata
from kseg.formats.schemas import message_schema
print(len(opened))
message_schema("OffsetCommitKey"), message_schema("OffsetCommitValue")
print([path.rpartition("/")[2] for path in map(str, opened)])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "0\n['consumer_offsets.jsonl']\n"
