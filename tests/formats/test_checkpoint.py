import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kseg.errors import KsegError
from kseg.formats.checkpoints import (
    CleanShutdown,
    EpochStart,
    LeaderEpochCheckpoint,
    MetaProperties,
    OffsetCheckpoint,
    PartitionMetadata,
    PartitionOffset,
    QuorumState,
    build_clean_shutdown,
    build_leader_epoch_checkpoint,
    build_meta_properties,
    build_offset_checkpoint,
    build_partition_metadata,
    build_quorum_state,
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_metadata,
    parse_quorum_state,
)
from tests.loops import for_each

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
UUIDS = st.text("ABCxyz019_-", min_size=22, max_size=22)


def test_offset_checkpoint_is_read_and_built() -> None:
    content = b"0\n2\norders 0 203000\nmeta.9 12 9223372036854775807\n"
    entries = (PartitionOffset("orders", 0, 203000), PartitionOffset("meta.9", 12, 2**63 - 1))
    assert parse_offset_checkpoint(content) == OffsetCheckpoint(0, entries)
    assert build_offset_checkpoint(OffsetCheckpoint(0, entries)) == content


def test_leader_epoch_checkpoint_is_read_and_built() -> None:
    content = b"0\n2\n0 0\n5 570\n"
    entries = (EpochStart(0, 0), EpochStart(5, 570))
    assert parse_leader_epoch_checkpoint(content) == LeaderEpochCheckpoint(0, entries)
    assert build_leader_epoch_checkpoint(LeaderEpochCheckpoint(0, entries)) == content


@pytest.mark.parametrize("content", [b"", b"0\n0\n"])
def test_empty_file_and_empty_list_differ(content: bytes) -> None:
    checkpoint = parse_offset_checkpoint(content)
    assert checkpoint.entries == ()
    assert build_offset_checkpoint(checkpoint) == content
    assert build_leader_epoch_checkpoint(parse_leader_epoch_checkpoint(content)) == content


@pytest.mark.parametrize("content", [b"0\r\n1\r\na 0 5\r\n", b"0\r1\ra 0 5", b"0\n1\na \t 0   5 \n", b"0\n+1\na 0 +5"])
def test_any_line_end_white_space_and_plus_sign_are_read(content: bytes) -> None:
    assert parse_offset_checkpoint(content).entries == (PartitionOffset("a", 0, 5),)


@for_each(
    "content, message",
    [
        (b"1\n0\n", "line 1: version is 1, expected 0"),
        (b"x\n0\n", "line 1: 'x' isn't an integer from -2147483648 to 2147483647"),
        (b"\n", "line 1: '' isn't an integer from -2147483648 to 2147483647"),
        (b"0\nmany\n", "line 2: 'many' isn't an integer from -2147483648 to 2147483647"),
        (b"0\n2\na 0 5\n", "line 2: the number of entries is 2, but 1 follow"),
        (b"0\n-1\n", "line 2: the number of entries is -1, but 0 follow"),
        (b"0\n1\na 0 5\nb 0 5\n", "line 2: the number of entries is 1, but 2 follow"),
        (b"0\n1\na 0\n", "line 3: 'a 0' isn't `topic partition offset`"),
        (b"0\n1\n a 0\n", "line 3: ' a 0' isn't `topic partition offset`"),
        (b"0\n2\na 0 5\n\n", "line 4: '' isn't `topic partition offset`"),
        (b"0\n1\na 0 1_0\n", "line 3: '1_0' isn't an integer from -9223372036854775808 to 9223372036854775807"),
        (b"0\n1\na 2147483648 5\n", "line 3: '2147483648' isn't an integer from -2147483648 to 2147483647"),
        (b"0\n1\n\xff 0 5\n", "at position 4: line 3: not UTF-8"),
        (
            "0\n1\na 0 \u0665\n".encode(),
            "line 3: '\u0665' isn't an integer from -9223372036854775808 to 9223372036854775807",
        ),
    ],
)
def test_malformed_offset_checkpoint_is_refused_with_its_line(content: bytes, message: str) -> None:
    with pytest.raises(KsegError) as caught:
        parse_offset_checkpoint(content)
    assert str(caught.value) == message


def test_malformed_leader_epoch_checkpoint_is_refused_with_its_line() -> None:
    with pytest.raises(KsegError, match="line 4: '1 2 3' isn't `epoch startOffset`"):
        parse_leader_epoch_checkpoint(b"0\n2\n0 0\n1 2 3\n")


def test_partition_metadata_is_read_and_built() -> None:
    content = b"version: 0\ntopic_id: MOGqDXBTRdWeuQP7MX9O1A"
    metadata = PartitionMetadata(0, "MOGqDXBTRdWeuQP7MX9O1A")
    assert parse_partition_metadata(content) == metadata
    assert build_partition_metadata(metadata) == content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: the file has 0 lines, expected 2"),
        (b"version: 0\n", "line 2: the file has 1 line, expected 2"),
        (b"version: 0\ntopic_id: MOGqDXBTRdWeuQP7MX9O1A\n\n", "line 3: the file has 3 lines, expected 2"),
        (b"version 0\ntopic_id: x", "line 1: 'version 0' isn't `version: …`"),
        (
            b"version: one\ntopic_id: MOGqDXBTRdWeuQP7MX9O1A",
            "line 1: 'one' isn't an integer from -2147483648 to 2147483647",
        ),
        (b"version: 0\ntopic_id: short", "line 2: 'short' isn't a topic id of 22 base64url characters"),
    ],
)
def test_malformed_partition_metadata_is_refused_with_its_line(content: bytes, message: str) -> None:
    with pytest.raises(KsegError) as caught:
        parse_partition_metadata(content)
    assert str(caught.value) == message


def test_meta_properties_are_read_and_built() -> None:
    content = b"#\n#Sat Nov 21 10:11:47 UTC 2026\ncluster.id=AZWnfRGOKkgsgLaY4I_vmQ\nversion=1\nnode.id=1\n"
    properties = parse_meta_properties(content)
    assert properties.comments == ("#", "#Sat Nov 21 10:11:47 UTC 2026")
    assert properties.properties == (("cluster.id", "AZWnfRGOKkgsgLaY4I_vmQ"), ("version", "1"), ("node.id", "1"))
    assert properties.get("node.id") == "1"
    assert properties.get("broker.id") is None
    assert build_meta_properties(properties) == content


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        (rb"a=b", "a", "b"),
        (rb"a : b ", "a", "b "),
        (rb"  a b=c", "a", "b=c"),
        (rb"a", "a", ""),
        (rb"a\=\:\ b=\#c", "a=: b", "#c"),
        (rb"a=\u00e9\uD83D\uDE00\t", "a", "\u00e9\U0001f600\t"),
        (b"a=one \\\n    two", "a", "one two"),
        (b"a=end\\", "a", "end"),
        (b"a=\xe9", "a", "\u00e9"),  # the file is Latin-1
        (rb"a=\\u0041", "a", "\\u0041"),
        (rb"=b", "", "b"),
        (rb"a=\ud83d!", "a", "\ufffd!"),  # half a character
    ],
)
def test_properties_are_read_as_java_does(line: bytes, name: str, value: str) -> None:
    assert parse_meta_properties(b"\n! comment\n" + line + b"\n").properties == ((name, value),)


def test_properties_are_escaped_as_java_does() -> None:
    properties = MetaProperties((), (("a b", " c d"), ("e=:#!", "\\\t\u00e9\U0001f600")))
    assert build_meta_properties(properties) == b"a\\ b=\\ c d\ne\\=\\:\\#\\!=\\\\\\t\\u00E9\\uD83D\\uDE00\n"


def test_value_in_a_hundred_thousand_lines_is_read() -> None:
    assert parse_meta_properties(b"a=" + b"b\\\n" * 100_000).get("a") == "b" * 100_000


def test_properties_with_a_broken_escape_are_refused_with_their_line() -> None:
    with pytest.raises(KsegError, match=r"line 2: \\u isn't followed by four hex digits"):
        parse_meta_properties(rb"a=b" + b"\n" + rb"c=\u12x4")


QUORUM_STATES = {
    b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1},'
    b'{"voterId":2}],"data_version":0}': QuorumState(
        0, leader_id=1, leader_epoch=2, voted_id=-1, cluster_id="", applied_offset=0, current_voters=(1, 2)
    ),
    b'{"clusterId":"c","leaderId":-1,"leaderEpoch":0,"votedId":3,"appliedOffset":7,"currentVoters":null,'
    b'"data_version":0}': QuorumState(0, leader_id=-1, leader_epoch=0, voted_id=3, cluster_id="c", applied_offset=7),
    b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
    b'"data_version":1}': QuorumState(
        1, leader_id=1, leader_epoch=2, voted_id=-1, voted_directory_id="AAAAAAAAAAAAAAAAAAAAAA"
    ),
}


@pytest.mark.parametrize(("content", "state"), QUORUM_STATES.items(), ids=["v0", "v0-null-voters", "v1"])
def test_quorum_state_is_read_and_built(content: bytes, state: QuorumState) -> None:
    assert parse_quorum_state(content) == state
    assert build_quorum_state(state) == content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: not JSON: Expecting value at column 1"),
        (b"{\n1", "line 2: not JSON: Expecting property name enclosed in double quotes at column 1"),
        (b"[]", "line 1: the JSON is a list, expected an object"),
        (b"[" * 100_000, "line 1: the JSON has a number that is too long, or too many levels"),
        (
            b'{"data_version":' + b"9" * 5000 + b"}",
            "line 1: the JSON has a number that is too long, or too many levels",
        ),
        (b"{}", "line 1: data_version is missing"),
        (b'{"data_version":2}', "line 1: data_version is 2, expected 0 or 1"),
        (b'{"data_version":1,"leaderId":"1"}', "line 1: leaderId is '1'"),
        (b'{"data_version":1,"leaderId":true}', "line 1: leaderId is True"),
        (b'{"data_version":1,"leaderId":1}', "line 1: leaderEpoch is missing"),
        (
            b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[1],'
            b'"data_version":0}',
            "line 1: 1 in currentVoters isn't an object",
        ),
        (b'{"data_version":\xff}', "at position 16: line 1: not UTF-8"),
    ],
)
def test_malformed_quorum_state_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(KsegError) as caught:
        parse_quorum_state(content)
    assert str(caught.value) == message


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(KsegError) as caught:
        parse_offset_checkpoint(b"0\n1\n" + b"x" * 10_000)
    assert len(str(caught.value)) < 200


def test_half_a_character_in_json_is_replaced() -> None:
    content = build_quorum_state(
        QuorumState(0, leader_id=1, leader_epoch=2, voted_id=-1, cluster_id="x", applied_offset=0)
    )
    assert parse_quorum_state(content.replace(b'"x"', rb'"\ud83d"')).cluster_id == "\ufffd"


@pytest.mark.parametrize(
    ("content", "marker"),
    [(b"", CleanShutdown()), (b'{"version":0,"brokerEpoch":501}', CleanShutdown(0, 501))],
)
def test_clean_shutdown_is_read_and_built(content: bytes, marker: CleanShutdown) -> None:
    assert parse_clean_shutdown(content) == marker
    assert build_clean_shutdown(marker) == content


def test_clean_shutdown_without_an_epoch_is_refused() -> None:
    with pytest.raises(KsegError, match="line 1: brokerEpoch is missing"):
        parse_clean_shutdown(b'{"version":0}')


TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=20)


@given(st.lists(st.builds(PartitionOffset, TOPICS, INT32, INT64), max_size=5).map(tuple))
def test_offset_checkpoint_comes_back(entries: tuple[PartitionOffset, ...]) -> None:
    checkpoint = OffsetCheckpoint(0, entries)
    assert parse_offset_checkpoint(build_offset_checkpoint(checkpoint)) == checkpoint


@given(st.lists(st.builds(EpochStart, INT32, INT64), max_size=5).map(tuple))
def test_leader_epoch_checkpoint_comes_back(entries: tuple[EpochStart, ...]) -> None:
    checkpoint = LeaderEpochCheckpoint(0, entries)
    assert parse_leader_epoch_checkpoint(build_leader_epoch_checkpoint(checkpoint)) == checkpoint


@given(st.builds(PartitionMetadata, INT32, UUIDS))
def test_partition_metadata_comes_back(metadata: PartitionMetadata) -> None:
    assert parse_partition_metadata(build_partition_metadata(metadata)) == metadata


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=4).map(tuple))
def test_meta_properties_come_back(properties: tuple[tuple[str, str], ...]) -> None:
    value = MetaProperties(("#", "#today"), properties)
    assert parse_meta_properties(build_meta_properties(value)) == value


@given(
    st.builds(
        QuorumState,
        data_version=st.just(0),
        leader_id=INT32,
        leader_epoch=INT32,
        voted_id=INT32,
        cluster_id=st.text(st.characters(codec="utf-8"), max_size=8),
        applied_offset=INT64,
        current_voters=st.none() | st.lists(INT32, max_size=3).map(tuple),
    )
    | st.builds(
        QuorumState,
        data_version=st.just(1),
        leader_id=INT32,
        leader_epoch=INT32,
        voted_id=INT32,
        voted_directory_id=UUIDS,
    )
)
def test_quorum_state_comes_back(state: QuorumState) -> None:
    assert parse_quorum_state(build_quorum_state(state)) == state


@given(st.binary(max_size=60))
@pytest.mark.parametrize(
    "parse",
    [
        parse_offset_checkpoint,
        parse_leader_epoch_checkpoint,
        parse_partition_metadata,
        parse_meta_properties,
        parse_quorum_state,
        parse_clean_shutdown,
    ],
)
def test_any_bytes_are_read_or_refused_in_one_line(parse: Callable[[bytes], object], content: bytes) -> None:
    message = "line 1: read"
    try:
        parse(content)
    except KsegError as error:
        message = str(error)
    assert "line " in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"0\n1\n2147483648 5\n", "line 3: '2147483648' isn't an integer from -2147483648 to 2147483647"),
        (b"0\n2\n1 5\n", "line 2: the number of entries is 2, but 1 follow"),
        (b"0\n0\n1 5\n", "line 2: the number of entries is 0, but 1 follow"),
        (b"0\n1\n1 9223372036854775808\n", "isn't an integer from -9223372036854775808 to 9223372036854775807"),
        (b"1\n1\n1 5\n", "line 1: version is 1, expected 0"),
    ],
)
def test_epochs_that_only_look_as_a_broker_writes_them_are_refused(content: bytes, problem: str) -> None:
    with pytest.raises(KsegError, match=re.escape(problem)):
        parse_leader_epoch_checkpoint(content)


@pytest.mark.parametrize("content", [b"0\n2\n0 0\n7 90\n", b"0\r\n2\r\n0  0\r\n7 90 ", b"0\n+2\n0\t0\n7 90"])
def test_epochs_are_the_same_however_their_lines_are_spaced(content: bytes) -> None:
    assert parse_leader_epoch_checkpoint(content).entries == ((0, 0), (7, 90))
