"""Groups and commits, replayed from `__consumer_offsets`."""

import shutil
from pathlib import Path

import pytest

from kseg.coordinators.groups import read_groups
from kseg.coordinators.members import AssignedTasks, AssignedTopic, Group
from kseg.errors import KsegError
from kseg.formats.messages import build_message
from kseg.formats.schemas import OFFSETS_KEYS, OFFSETS_VALUES, message_schema
from tests import golden
from tests.coordinators.printed import cases_of, printed_records
from tests.golden import GoldenCase
from tests.kernel.made import BatchHeader, batch
from tests.log_files import ABORT, COMMIT, NewBatch, NewRecord, marker, write_segment
from tests.loops import for_each

CASES = cases_of("--offsets-decoder", "__consumer_offsets-")
LOGS = golden.ROOT / "logs"


def last_commits(case: GoldenCase) -> dict[tuple[str, str, int], tuple[int, str, int]]:
    """The last commit per group and partition in the real tool's output, without transactions."""
    commits: dict[tuple[str, str, int], tuple[int, str, int]] = {}
    for record in printed_records(case):
        if record.key["type"] in ("0", "1") and not record.is_transactional:
            key = record.key["data"]
            name = (key["group"], key["topic"], key["partition"])
            commits.pop(name, None)
            if record.value is not None:
                value = record.value["data"]
                commits[name] = (value["offset"], value["metadata"], value["commitTimestamp"])
    return commits


def members_printed(case: GoldenCase) -> dict[str, int]:
    """Return the numbers of members of classic groups."""
    groups: dict[str, int] = {}
    for record in printed_records(case):
        if record.key["type"] == "2":
            groups.pop(record.key["data"]["group"], None)
            if record.value is not None:
                groups[record.key["data"]["group"]] = len(record.value["data"]["members"])
    return groups


def test_batches_whose_records_can_not_be_read_are_reported(tmp_path: Path) -> None:
    directory = tmp_path / "__consumer_offsets-1"
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(batch(BatchHeader(attributes=5, count=1), body=b"?"))
    (unreadable,) = read_groups(directory).unreadable
    assert unreadable.line().startswith("__consumer_offsets-1: offset 0: bad-codec in the batch that ends there: ")


def test_there_are_cases_of_old_and_new_brokers() -> None:
    assert {"0.9.0.1", "0.10.2.2", "2.8.2", "4.3.1"} <= {case.files[0].split("/")[1] for case in CASES}


@for_each("case", CASES, ids=str)
def test_the_last_commits_are_those_that_the_real_tool_printed(case: GoldenCase, tmp_path: Path) -> None:
    directory = tmp_path / "__consumer_offsets-1"
    directory.mkdir()
    shutil.copy(golden.ROOT / case.files[0], directory)
    view = read_groups(directory)
    commits = {
        (commit.group, commit.topic, commit.partition): (commit.offset, commit.metadata, commit.commit_timestamp)
        for group in view.groups
        for commit in group.commits
    }
    assert commits == last_commits(case)
    assert view.unreadable == ()
    classic = {group.group: len(group.members) for group in view.groups if group.type == "classic" and group.epoch >= 0}
    assert classic == members_printed(case)


def group_of(view_path: Path, name: str, at_ms: int | None = None) -> Group:
    return next(group for group in read_groups(view_path, at_ms).groups if group.group == name)


def test_a_consumer_group_has_its_members_and_their_partitions() -> None:
    group = group_of(LOGS / "4.1.0", "g-new-live")
    assert (group.type, group.state, group.epoch, group.coordinator_partition) == ("consumer", "Stable", 1, 1)
    (member,) = group.members
    assert (member.client_id, member.client_host, member.epoch) == ("new-live", "/127.0.0.1", 1)
    assert member.subscribed_topics == ("plain", "txn")
    assert member.assignment == (
        AssignedTopic("plain", "YDWa4aAHT1u5w6xHVHlGtg", (0, 1, 2)),
        AssignedTopic("txn", "3QopfSIqTseWGoIOb56qJg", (0, 1)),
    )


def test_a_classic_group_has_its_members_and_their_partitions() -> None:
    group = group_of(LOGS / "2.4.1", "g-members")
    assert (group.type, group.state, group.protocol_type, len(group.members)) == ("classic", "Stable", "consumer", 3)
    static = next(member for member in group.members if member.group_instance_id == "static-1")
    assert static.subscribed_topics == ("plain", "gzip")
    assert static.assignment == (AssignedTopic("plain", None, (0,)), AssignedTopic("gzip", None, (0, 1)))


@pytest.mark.parametrize("release", ["2.4.1", "2.8.2", "3.3.2", "3.6.2", "4.1.0"])
def test_a_commit_of_an_open_transaction_is_pending(release: str) -> None:
    group = group_of(LOGS / release, "g-txn-open")
    assert group.commits == ()
    (commit,) = group.pending_commits
    assert (commit.topic, commit.partition, commit.offset, commit.metadata) == ("plain", 0, 77, "pending")
    assert commit.producer_id is not None


def key(group: str, topic: str = "t", partition: int = 0, number: int = 1) -> bytes:
    fields = {"group": group, "topic": topic, "partition": partition}
    return number.to_bytes(2, "big") + build_message(message_schema("OffsetCommitKey"), 0, fields)


def value(offset: int, version: int = 3, metadata: str = "", commit_timestamp: int = 5) -> bytes:
    fields = {"offset": offset, "metadata": metadata, "commitTimestamp": commit_timestamp}
    return version.to_bytes(2, "big") + build_message(message_schema("OffsetCommitValue"), version, fields)


def offsets(path: Path, at_ms: int | None = None) -> dict[str, list[int]]:
    return {
        group.group: [commit.offset for commit in group.commits]
        for group in read_groups(path, at_ms).groups
        if group.commits
    }


def transactional(base_offset: int, records: list[NewRecord], producer_id: int = 7) -> NewBatch:
    return NewBatch(records, base_offset, producer_id, 0, is_transactional=True)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return tmp_path / "__consumer_offsets-3"


def test_committed_transactions_count_and_aborted_ones_dont(partition: Path) -> None:
    committed = transactional(0, [NewRecord(key("a"), value(10))])
    first_marker = marker(COMMIT, committed)
    aborted = transactional(2, [NewRecord(key("b"), value(20))])
    write_segment(partition, [committed, first_marker, aborted, marker(ABORT, aborted)])
    assert offsets(partition) == {"a": [10]}


def test_a_later_plain_commit_outlives_an_earlier_transactional_one(partition: Path) -> None:
    opened = transactional(0, [NewRecord(key("a"), value(10))])
    plain = NewBatch([NewRecord(key("a"), value(30))], 1)
    end = marker(COMMIT, opened)._replace(base_offset=2)
    write_segment(partition, [opened, plain, end])
    assert offsets(partition) == {"a": [30]}


def test_a_tombstone_removes_a_commit(partition: Path) -> None:
    write_segment(partition, [NewBatch([NewRecord(key("a"), value(10)), NewRecord(key("a"), None)])])
    assert offsets(partition) == {}


def test_both_types_of_keys_name_the_same_partition(partition: Path) -> None:
    records = [NewRecord(key("a", number=0), value(10, 0)), NewRecord(key("a", number=1), value(11))]
    write_segment(partition, [NewBatch(records)])
    assert offsets(partition) == {"a": [11]}


def test_what_came_later_than_the_time_is_left_out(partition: Path) -> None:
    records = [NewRecord(key("a"), value(n), n) for n in (1000, 2000, 3000)]
    write_segment(partition, [NewBatch([*records, NewRecord(key("late"), value(9), 3000)])])
    assert offsets(partition, 2500) == {"a": [2000]}
    assert offsets(partition, 2000) == {"a": [2000]}
    assert offsets(partition, 999) == {}
    assert read_groups(partition, 2500).later_count == 1


def test_a_transaction_that_ended_later_was_pending_then(partition: Path) -> None:
    opened = transactional(0, [NewRecord(key("a"), value(10), 1000)])
    write_segment(partition, [opened, marker(COMMIT, opened, 2000)])
    assert offsets(partition, 2000) == {"a": [10]}
    assert offsets(partition, 1999) == {}
    assert [commit.offset for commit in group_of(partition, "a", 1999).pending_commits] == [10]


@pytest.mark.parametrize("release", ["0.8.2.2", "0.9.0.1"])
def test_commits_without_a_records_time_have_their_own(release: str) -> None:
    everything = {
        (commit.group, commit.topic, commit.partition): commit.commit_timestamp
        for group in read_groups(LOGS / release).groups
        for commit in group.commits
    }
    times = sorted(everything.values())
    at_ms = times[len(times) // 2]
    view = read_groups(LOGS / release, at_ms)
    shown = [commit.commit_timestamp for group in view.groups for commit in group.commits]
    assert shown
    assert max(shown) <= at_ms


def record(number: int, fields: dict[str, object], member: str | None = None, version: int = 0) -> NewRecord:
    """Return a record of group `g`, or of one of its members, by its type's number."""
    keys, values = OFFSETS_KEYS[number], OFFSETS_VALUES[number]
    own = {"groupId": "g"} if member is None else {"groupId": "g", "memberId": member}
    written_key = number.to_bytes(2, "big") + build_message(keys, 0, own)
    return NewRecord(written_key, version.to_bytes(2, "big") + build_message(values, version, fields))


CLIENT = {"clientId": "c", "clientHost": "/h"}
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAABQ"


def test_a_groups_state_follows_from_its_epochs(partition: Path) -> None:
    def batch(epoch: int, target: int, member_epoch: int) -> NewBatch:
        return NewBatch(
            [
                record(5, {**CLIENT, "subscribedTopicNames": ["t"]}, "m"),
                record(3, {"epoch": epoch}),
                record(6, {"assignmentEpoch": target}),
                record(8, {"memberEpoch": member_epoch, "state": 0}, "m"),
            ]
        )

    states = []
    for epochs in ((3, 2, 2), (3, 3, 2), (3, 3, 3)):
        write_segment(partition, [batch(*epochs)])
        found = group_of(partition, "g")
        assert (found.epoch, found.assignment_epoch) == epochs[:2]
        states.append(found.state)
    assert states == ["Assigning", "Reconciling", "Stable"]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_share_group_that_never_had_members_is_one(partition: Path, *, is_first: bool) -> None:
    """AlterShareGroupOffsets creates it without an epoch; once it has one, that record says more."""
    initialized = [{"topicId": TOPIC_ID, "topicName": "t", "partitions": [1]}]
    offsets = record(15, {"initializingTopics": [], "initializedTopics": initialized, "deletingTopics": []})
    write_segment(partition, [NewBatch([offsets])])
    found = group_of(partition, "g")
    assert (found.type, found.state, found.epoch) == ("share", "Empty", 0)
    assert [(each.topic, each.partition) for each in found.share_partitions] == [("t", 1)]
    begun = record(11, {"epoch": 3})
    write_segment(partition, [NewBatch([begun, offsets] if is_first else [offsets, begun])])
    assert group_of(partition, "g").epoch == 3


STREAMS = [
    ("no topology", None, 0, 1, "NotReady"),
    ("a topology that isn't valid yet", 4, 3, 1, "NotReady"),
    ("a member that has all", 4, 4, 1, "Stable"),
    ("a member that is to revoke", 4, 4, 2, "Reconciling"),
    ("a member that waits", 4, 4, 3, "Reconciling"),
    ("a state that no member has", 4, 4, 0, "Reconciling"),
]


@pytest.mark.parametrize(
    ("name", "topology", "validated", "member_state", "state"), STREAMS, ids=lambda value: str(value)
)
def test_streams_groups_have_states_of_their_own(
    name: str, topology: int | None, validated: int, member_state: int, state: str, partition: Path
) -> None:
    """Their members' numbers of states begin with 1, not with 0. Source: streams.MemberState, StreamsGroup."""
    records = [
        record(19, {**CLIENT, "topologyEpoch": 4, "processId": "p"}, "m"),
        record(17, {"epoch": 3, "validatedTopologyEpoch": validated}),
        record(20, {"assignmentEpoch": 3}),
        record(22, {"memberEpoch": 3, "state": member_state}, "m"),
    ]
    if topology is not None:
        records.append(record(23, {"epoch": topology, "subtopologies": []}))
    write_segment(partition, [NewBatch(records)])
    found = group_of(partition, "g")
    assert (found.type, found.state, found.assignor) == ("streams", state, None)


def test_streams_members_have_tasks_and_are_to_have_others(partition: Path) -> None:
    def tasks(**partitions: list[int]) -> dict[str, object]:
        return {name: [{"subtopologyId": "0", "partitions": numbers}] for name, numbers in partitions.items()}

    records = [
        record(19, {**CLIENT, "topologyEpoch": 4, "processId": "p"}, "m"),
        record(17, {"epoch": 3}),
        record(21, tasks(activeTasks=[1, 0], warmupTasks=[5]), "m"),
        record(22, {"memberEpoch": 3, "state": 1, **tasks(activeTasks=[0], standbyTasks=[2])}, "m"),
    ]
    write_segment(partition, [NewBatch(records)])
    (member,) = group_of(partition, "g").members
    assert member.tasks == (AssignedTasks("active", "0", (0,)), AssignedTasks("standby", "0", (2,)))
    assert member.target_tasks == (AssignedTasks("active", "0", (0, 1)), AssignedTasks("warmup", "0", (5,)))
    assert (member.assignment, member.target) == (None, None)


def test_consumers_have_what_they_have_and_are_to_have_and_ask_for_an_assignor(partition: Path) -> None:
    def topics(name: str, *partitions: int) -> dict[str, object]:
        return {name: [{"topicId": TOPIC_ID, "partitions": list(partitions)}]}

    records = [
        record(3, {"epoch": 3}),
        record(7, topics("topicPartitions", 2, 1), "m"),
        record(8, {"memberEpoch": 3, "state": 0, **topics("assignedPartitions", 1)}, "m"),
        *(
            record(5, {**CLIENT, "subscribedTopicNames": ["t"], "serverAssignor": assignor}, member)
            for member, assignor in (("m", "range"), ("n", "range"), ("o", "uniform"), ("p", None))
        ),
    ]
    write_segment(partition, [NewBatch(records)])
    found = group_of(partition, "g")
    member = found.members[0]
    assert (found.assignor, member.assignor) == ("range", "range")
    assert member.assignment == (AssignedTopic(None, TOPIC_ID, (1,)),)
    assert member.target == (AssignedTopic(None, TOPIC_ID, (1, 2)),)


@pytest.mark.parametrize(("number", "assignor"), [(3, "uniform"), (11, "simple"), (17, None)])
def test_an_assignor_that_nobody_asked_for_is_the_default(number: int, assignor: str | None, partition: Path) -> None:
    write_segment(partition, [NewBatch([record(number, {"epoch": 1})])])
    assert group_of(partition, "g").assignor == assignor


def test_ids_of_topics_become_names_by_the_metadata_beside() -> None:
    view = read_groups(LOGS / "4.1.0")
    assigned = {
        topic.topic
        for group in view.groups
        for member in group.members
        for topic in (*(member.assignment or ()), *(member.target or ()))
    }
    assert assigned == {"plain", "txn"}


def test_a_classic_groups_member_of_any_version_is_read(partition: Path) -> None:
    subscription = b"\0\0" + build_message(message_schema("ConsumerProtocolSubscription"), 0, {"topics": ["t"]})
    assigned = {"assignedPartitions": [{"topic": "t", "partitions": [4, 2]}]}
    assignment = b"\0\0" + build_message(message_schema("ConsumerProtocolAssignment"), 0, assigned)
    member = {"memberId": "m", "clientId": "c", "clientHost": "/h"}
    for version in range(5):
        whole = {**member, "subscription": subscription, "assignment": assignment}
        broken = {**member, "memberId": "n", "subscription": b"\0", "assignment": b"\0\0\0"}
        fields = {"protocolType": "consumer", "generation": 9, "members": [whole, broken]}
        group_key = b"\0\2" + build_message(message_schema("GroupMetadataKey"), 0, {"group": "g"})
        group_value = build_message(message_schema("GroupMetadataValue"), version, fields)
        write_segment(partition, [NewBatch([NewRecord(group_key, version.to_bytes(2, "big") + group_value)])])
        found = group_of(partition, "g")
        assert (found.epoch, found.state) == (9, "Stable")
        assert [member.assignment for member in found.members] == [(AssignedTopic("t", None, (4, 2)),), None]


def test_records_that_cant_be_read_are_named(partition: Path) -> None:
    bad = [
        NewRecord(b"\0\x63" + b"x", b"\0\0"),
        NewRecord(key("a"), b"\0\x09" + b"x"),
        NewRecord(key("b"), value(1)[:-3]),
        NewRecord(b"x", b"y"),
    ]
    write_segment(partition, [NewBatch([*bad, NewRecord(key("good"), value(1))])])
    view = read_groups(partition)
    assert [unreadable.offset for unreadable in view.unreadable] == [0, 1, 2, 3]
    assert offsets(partition) == {"good": [1]}


def test_a_batch_whose_crc_is_wrong_is_left_out_and_named(partition: Path) -> None:
    path = write_segment(
        partition, [NewBatch([NewRecord(key("a"), value(1))]), NewBatch([NewRecord(key("b"), value(2))], 1)]
    )
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    assert offsets(partition) == {"b": [2]}
    assert "CRC" in read_groups(partition).unreadable[0].reason


def test_all_partitions_of_a_log_directory_are_read(tmp_path: Path) -> None:
    for number, group in enumerate(("b", "a")):
        write_segment(tmp_path / f"__consumer_offsets-{number}", [NewBatch([NewRecord(key(group), value(number))])])
    view = read_groups(tmp_path)
    assert [(group.group, group.coordinator_partition) for group in view.groups] == [("a", 1), ("b", 0)]


def test_disks_of_a_broker_are_read_together(tmp_path: Path) -> None:
    for number, group in enumerate(("c", "a", "b")):  # by their hashes
        disk = tmp_path / f"disk{number % 2}"
        write_segment(disk / f"__consumer_offsets-{number}", [NewBatch([NewRecord(key(group), value(number))])])
    for paths in (tmp_path, [tmp_path / "disk0", tmp_path / "disk1"], [tmp_path / "disk1", tmp_path]):
        view = read_groups(paths)
        assert ([group.group for group in view.groups], view.notes) == (["a", "b", "c"], ())


def test_of_two_replicas_the_one_that_goes_further_is_read(tmp_path: Path) -> None:
    first = NewBatch([NewRecord(key("a"), value(1))])
    write_segment(tmp_path / "broker1" / "__consumer_offsets-0", [first])
    second = first._replace(records=[NewRecord(key("a"), value(2))], base_offset=1)
    write_segment(tmp_path / "broker2" / "__consumer_offsets-0", [first, second])
    assert offsets(tmp_path) == {"a": [2]}


def test_partitions_that_are_not_here_are_said(tmp_path: Path) -> None:
    write_segment(tmp_path / "__consumer_offsets-2", [NewBatch([NewRecord(key("b"), value(1))])])
    assert read_groups(tmp_path).notes == (
        "1 of probably 3 partitions of __consumer_offsets are here, so groups of the other partitions aren't shown",
    )
    assert read_groups(tmp_path / "__consumer_offsets-2").notes == ()


def test_a_directory_without_the_topic_is_refused(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    with pytest.raises(KsegError, match="__consumer_offsets"):
        read_groups(tmp_path)
