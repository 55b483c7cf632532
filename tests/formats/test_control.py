import pytest
from construct import ConstructError
from hypothesis import given
from hypothesis import strategies as st

from kseg.formats.codes import ControlType
from kseg.formats.control import (
    CONTROL_RECORD_KEY,
    CONTROL_VALUES,
    END_TXN_MARKER,
    KRAFT_VERSION,
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    TAGGED_FIELDS,
    VOTERS,
)
from tests.formats.grammar import check_grammar

DIRECTORY = bytes(range(16))
NO_TAGS = {"tagged_fields": [], "trailing": b""}


def test_control_record_key_is_read_and_built() -> None:
    content = bytes.fromhex(
        "0000"  # version
        "0001"  # type: COMMIT
    )
    check_grammar(CONTROL_RECORD_KEY, {"version": 0, "type": ControlType.COMMIT, "trailing": b""}, content)


def test_more_bytes_of_a_key_are_kept() -> None:
    content = bytes.fromhex("0001 0007 ffff")
    check_grammar(CONTROL_RECORD_KEY, {"version": 1, "type": 7, "trailing": b"\xff\xff"}, content)


@pytest.mark.parametrize("content", [b"", b"\x00\x00\x00"])
def test_key_under_four_bytes_is_refused(content: bytes) -> None:
    with pytest.raises(ConstructError):
        CONTROL_RECORD_KEY.parse(content)


def test_end_of_transaction_marker_is_read_and_built() -> None:
    content = bytes.fromhex(
        "0000"  # version
        "00000005"  # coordinator epoch
    )
    check_grammar(END_TXN_MARKER, {"version": 0, "coordinator_epoch": 5, "trailing": b""}, content)


def test_leader_change_version_0_is_read_and_built() -> None:
    content = bytes.fromhex(
        "0000"  # version
        "00000001"  # leader id
        "03"  # voters: 2
        "00000001 00"  # voter id, no tagged fields
        "00000002 00"  # voter id, no tagged fields
        "02"  # granting voters: 1
        "00000001 00"  # voter id, no tagged fields
        "00"  # no tagged fields
    )
    value = {
        "version": 0,
        "leader_id": 1,
        "voters": [{"voter_id": 1, "tagged_fields": []}, {"voter_id": 2, "tagged_fields": []}],
        "granting_voters": [{"voter_id": 1, "tagged_fields": []}],
        **NO_TAGS,
    }
    check_grammar(LEADER_CHANGE, value, content)


@pytest.mark.parametrize("version", [1, 2])
def test_leader_change_has_directories_from_version_1_on(version: int) -> None:
    content = bytes.fromhex(
        f"{version:04x}"  # version
        "00000001"  # leader id
        "02"  # voters: 1
        "00000001 000102030405060708090a0b0c0d0e0f 00"  # voter id, directory id, no tagged fields
        "01"  # granting voters: none
        "00"  # no tagged fields
    )
    value = {
        "version": version,
        "leader_id": 1,
        "voters": [{"voter_id": 1, "voter_directory_id": DIRECTORY, "tagged_fields": []}],
        "granting_voters": [],
        **NO_TAGS,
    }
    check_grammar(LEADER_CHANGE, value, content)


def test_snapshot_header_is_read_and_built() -> None:
    content = bytes.fromhex(
        "0000"  # version
        "00000170 3e8e4da6"  # last contained log timestamp
        "00"  # no tagged fields
    )
    value = {"version": 0, "last_contained_log_timestamp": 1581597478310, **NO_TAGS}
    check_grammar(SNAPSHOT_HEADER, value, content)


def test_snapshot_footer_is_read_and_built() -> None:
    content = bytes.fromhex(
        "0000"  # version
        "00"  # no tagged fields
    )
    check_grammar(SNAPSHOT_FOOTER, {"version": 0, **NO_TAGS}, content)


def test_kraft_version_is_read_and_built() -> None:
    content = bytes.fromhex(
        "0000"  # version
        "0001"  # kraft version
        "00"  # no tagged fields
    )
    check_grammar(KRAFT_VERSION, {"version": 0, "kraft_version": 1, **NO_TAGS}, content)


def test_voters_are_read_and_built() -> None:
    content = bytes.fromhex(
        "0000"  # version
        "02"  # voters: 1
        "00000003"  # voter id
        "000102030405060708090a0b0c0d0e0f"  # directory id
        "02"  # endpoints: 1
        "0b 434f4e54524f4c4c4552"  # name: 10 bytes
        "05 6e6f6465"  # host: 4 bytes
        "ea60"  # port
        "00"  # no tagged fields of the endpoint
        "0000 0001 00"  # kraft.version from, to, no tagged fields
        "00"  # no tagged fields of the voter
        "00"  # no tagged fields
    )
    endpoint = {"name": "CONTROLLER", "host": "node", "port": 60000, "tagged_fields": []}
    feature = {"min_supported_version": 0, "max_supported_version": 1, "tagged_fields": []}
    voter = {
        "voter_id": 3,
        "voter_directory_id": DIRECTORY,
        "endpoints": [endpoint],
        "kraft_version_feature": feature,
        "tagged_fields": [],
    }
    check_grammar(VOTERS, {"version": 0, "voters": [voter], **NO_TAGS}, content)


def test_tagged_fields_are_kept_as_bytes() -> None:
    content = bytes.fromhex(
        "02"  # two of them
        "00 03 616263"  # tag 0, 3 bytes
        "ac02 00"  # tag 300, no bytes
    )
    assert TAGGED_FIELDS.parse(content) == [{"tag": 0, "value": b"abc"}, {"tag": 300, "value": b""}]
    assert TAGGED_FIELDS.build(TAGGED_FIELDS.parse(content)) == content


@pytest.mark.parametrize(
    ("grammar", "content"),
    [
        (LEADER_CHANGE, "0000 00000001 00 01 00"),  # null voters
        (LEADER_CHANGE, "0000 00000001 ff ff ff ff 0f 00"),  # 2^32 - 2 voters
        (VOTERS, "0000 02 00000003"),  # cut
        (SNAPSHOT_FOOTER, "0000 01 00 7f 00"),  # tagged field beyond the end
        (SNAPSHOT_FOOTER, "0000 ff ff ff ff 0f 00"),  # 2^32 - 1 tagged fields
        (END_TXN_MARKER, "0000 000000"),  # cut
    ],
)
def test_value_that_can_not_be_true_is_refused(grammar, content: str) -> None:
    with pytest.raises(ConstructError):
        grammar.parse(bytes.fromhex(content))


@pytest.mark.parametrize("control_type", ControlType)
def test_every_control_type_has_a_grammar_that_begins_with_the_version(control_type: ControlType) -> None:
    first = CONTROL_VALUES[control_type].subcons[0]
    assert (first.name, first.sizeof()) == ("version", 2)


@pytest.mark.parametrize(
    ("grammar", "content"),
    [
        (END_TXN_MARKER, "0009 00000005 abcdef"),
        (KRAFT_VERSION, "0009 0001 00 abcdef"),
        (SNAPSHOT_HEADER, "0009 0000000000000001 00 abcdef"),
    ],
)
def test_newer_version_is_read_as_the_newest_known_and_keeps_its_rest(grammar, content: str) -> None:
    parsed = grammar.parse(bytes.fromhex(content))
    assert (parsed.version, parsed.trailing) == (9, bytes.fromhex("abcdef"))
    assert grammar.build(parsed) == bytes.fromhex(content)


INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
TAGS = st.lists(st.fixed_dictionaries({"tag": st.integers(0, 2**32 - 1), "value": st.binary(max_size=200)}), max_size=2)
NAMES = st.text(st.characters(codec="utf-8"), max_size=150)
LEADER_CHANGE_VOTERS = st.lists(
    st.fixed_dictionaries(
        {"voter_id": INT32, "voter_directory_id": st.binary(min_size=16, max_size=16), "tagged_fields": TAGS}
    ),
    max_size=3,
)
VOTER_LISTS = st.lists(
    st.fixed_dictionaries(
        {
            "voter_id": INT32,
            "voter_directory_id": st.binary(min_size=16, max_size=16),
            "endpoints": st.lists(
                st.fixed_dictionaries(
                    {"name": NAMES, "host": NAMES, "port": st.integers(0, 65535), "tagged_fields": TAGS}
                ),
                max_size=2,
            ),
            "kraft_version_feature": st.fixed_dictionaries(
                {"min_supported_version": INT16, "max_supported_version": INT16, "tagged_fields": TAGS}
            ),
            "tagged_fields": TAGS,
        }
    ),
    max_size=2,
)


@given(INT32, LEADER_CHANGE_VOTERS, LEADER_CHANGE_VOTERS, TAGS)
def test_leader_change_comes_back(leader_id: int, voters: list, granting_voters: list, tags: list) -> None:
    value = {
        "version": 1,
        "leader_id": leader_id,
        "voters": voters,
        "granting_voters": granting_voters,
        "tagged_fields": tags,
        "trailing": b"",
    }
    assert LEADER_CHANGE.parse(LEADER_CHANGE.build(value)) == value


@given(VOTER_LISTS, TAGS)
def test_voters_come_back(voters: list, tags: list) -> None:
    value = {"version": 0, "voters": voters, "tagged_fields": tags, "trailing": b""}
    assert VOTERS.parse(VOTERS.build(value)) == value


@given(INT16, INT16, st.binary(max_size=5))
def test_control_record_key_comes_back(version: int, control_type: int, trailing: bytes) -> None:
    value = {"version": version, "type": control_type, "trailing": trailing}
    assert CONTROL_RECORD_KEY.parse(CONTROL_RECORD_KEY.build(value)) == value


@given(st.sampled_from(sorted(CONTROL_VALUES)), st.binary(max_size=120))
def test_any_bytes_are_refused_or_come_back_by_value(control_type: ControlType, content: bytes) -> None:
    grammar = CONTROL_VALUES[control_type]
    try:
        value = grammar.parse(content)
    except ConstructError:
        return
    assert grammar.parse(grammar.build(value)) == value
