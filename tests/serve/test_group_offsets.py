"""Groups over a connection: offsets from `__consumer_offsets`, new ones in memory, listings, refusals, limits."""

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kseg.cluster.cluster import Cluster
from kseg.coordinators.groups import read_groups
from kseg.formats.messages import Fields
from kseg.formats.schemas import REQUESTS, version_range
from kseg.protocol.messages import read_response
from kseg.serve.cluster import serve_partitions
from kseg.serve.values import COMMITS_SECONDS, ServeSettings
from tests import golden
from tests.coordinators.coordinators import commit as stored_commit
from tests.log_files import NewBatch, NewRecord, batch_bytes, write_segment
from tests.loops import for_each, some
from tests.run import kseg
from tests.serve.running import Running, serving
from tests.serve.test_server import Connection, open_connection

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP = 8, 9, 10, 11, 12, 13
SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS, CONSUMER_HEARTBEAT, CONSUMER_DESCRIBE = 14, 15, 16, 68, 69
LOGS = golden.ROOT / "logs"
DISK = LOGS / "4.3.1"
DISKS = sorted({path.parent for path in LOGS.rglob("__consumer_offsets-*")})
GROUP, TOPIC = "new", "zstd"


@pytest.fixture
def running() -> Iterator[Running]:
    with serving(DISK) as server:
        yield server


@pytest.fixture
def client(running: Running) -> Iterator[Connection]:
    with open_connection(running) as connection:
        yield connection


def versions(api_key: int) -> range:
    first, last = version_range(REQUESTS[api_key].versions)
    return range(first, last + 1)


def topic_id(running: Running) -> str:
    return running.served.topics[TOPIC].topic_id


def fetch(running: Running, version: int, group: str = GROUP, **changed: Any) -> Fields:
    topics = [{"name": TOPIC, "topicId": topic_id(running), "partitionIndexes": [0]}]
    asked = {"groupId": group, "topics": topics, **changed}
    return {**asked, "groups": [asked]} if version < 8 else {"groups": [asked]}


def commit(running: Running, offset: int, group: str = GROUP, **changed: Any) -> Fields:
    part = {"partitionIndex": 0, "committedOffset": offset, "committedMetadata": "noted"}
    topics = [{"name": TOPIC, "topicId": topic_id(running), "partitions": [part | changed.pop("partition", {})]}]
    return {"groupId": group, "generationIdOrMemberEpoch": -1, "memberId": "", "topics": topics, **changed}


def list_commits(answer: Fields) -> list[tuple[int, int, str]]:
    """Return partitions, offsets and their metadata."""
    topics = answer["groups"][0]["topics"] if "groups" in answer else answer["topics"]
    parts = [part for topic in topics for part in topic["partitions"]]
    assert all(part["errorCode"] == 0 for part in parts)
    return [(part["partitionIndex"], part["committedOffset"], part["metadata"]) for part in parts]


def error_of(answer: Fields) -> int:
    ((part,),) = (topic["partitions"] for topic in answer["topics"])
    code: int = part["errorCode"]
    return code


@for_each("version", versions(OFFSET_FETCH))
def test_nothing_is_committed_at_first(client: Connection, running: Running, version: int) -> None:
    assert list_commits(client.ask(OFFSET_FETCH, version, fetch(running, version))) == [(0, -1, "")]


@pytest.mark.parametrize("version", versions(OFFSET_COMMIT))
def test_a_commit_is_kept_and_said_once(client: Connection, running: Running, version: int) -> None:
    for offset in (1, 7):
        assert error_of(client.ask(OFFSET_COMMIT, version, commit(running, offset))) == 0
    assert list_commits(client.ask(OFFSET_FETCH, version, fetch(running, version))) == [(0, 7, "noted")]
    (line,) = [line for line in running.said if "commits" in line]
    assert line == "group new: commits are kept while this server runs, and not written to the disk"


@for_each("version", range(2, 10))
def test_offsets_of_the_disk_are_those_of_kseg_groups(client: Connection, running: Running, version: int) -> None:
    groups = [group for group in read_groups(DISK).groups if group.commits and group.type in ("classic", "consumer")]
    assert groups
    for group in groups:
        topics = [{"name": each.topic, "partitionIndexes": [each.partition]} for each in group.commits]
        found = client.ask(OFFSET_FETCH, version, fetch(running, version, group.group, topics=topics))
        assert list_commits(found) == [(each.partition, each.offset, each.metadata) for each in group.commits]


@for_each("disk", DISKS, ids=lambda path: path.relative_to(LOGS))
def test_each_disk_has_the_groups_of_kseg_groups(disk: Path) -> None:
    served = serve_partitions(Cluster([disk]), ServeSettings(), lambda _: None)
    groups = [group for group in read_groups(disk).groups if group.type in ("classic", "consumer")]
    assert set(served.groups.commits.kinds()) == {group.group for group in groups}
    for group in groups:
        found = served.groups.commits_of(group.group, None, -1)
        offsets = {partition: committed.offset for partition, committed in found.items()}
        assert offsets == {(each.topic, each.partition): each.offset for each in group.commits}


@for_each("version", range(2, 11))
def test_all_offsets_are_those_of_what_is_served(tmp_path: Path, version: int) -> None:
    metadata = write_segment(tmp_path / "plain-0", [NewBatch([NewRecord(b"k", b"v")] * 200)]).parent
    (metadata / "partition.metadata").write_text("version: 0\ntopic_id: kyhdsJGrQrOXD0nG3u2j8A\n")
    with serving(DISK / "__consumer_offsets-1", tmp_path / "plain-0") as running, open_connection(running) as client:
        asked = {"groupId": "g-new-live", "topics": None}
        found = client.ask(OFFSET_FETCH, version, {**asked, "groups": [asked]} if version < 8 else {"groups": [asked]})
        assert list_commits(found) == [(0, 162, "")]


def test_offsets_are_there_without_the_internal_topics() -> None:
    with serving(DISK, settings=ServeSettings(has_internal=False)) as running, open_connection(running) as client:
        assert "__consumer_offsets" not in running.served.topics
        topics = [plain_parts(0)]
        assert list_commits(client.ask(OFFSET_FETCH, 9, fetch(running, 9, "g-new-live", topics=topics))) == [
            (0, 162, "")
        ]


@pytest.mark.parametrize("directory", ["__consumer_offsets-1", "__consumer_offsets-7"])
def test_without_metadata_a_coordinators_topic_has_as_many_partitions_as_for_other_commands(
    directory: str, tmp_path: Path
) -> None:
    """Number 7 alone doesn't show how many there are: other brokers may have 50."""
    if directory.endswith("-1"):
        shutil.copytree(DISK / directory, tmp_path / "disk" / directory)
    else:
        write_segment(tmp_path / "disk" / directory, [NewBatch([NewRecord(None, b"v")])])
    ran = kseg(["where", "--group", "any", "-o", "json", "disk"], tmp_path)
    with serving(tmp_path / "disk") as running:
        topic = running.served.topics["__consumer_offsets"]
        assert len(topic.partitions) == json.loads(ran.stdout)["partitions"] != 8


def plain_parts(number: int) -> Fields:
    return {"name": "plain", "partitionIndexes": [number]}


def test_a_new_commit_comes_before_the_one_on_the_disk(tmp_path: Path) -> None:
    write_segment(tmp_path / "plain-0", [NewBatch([NewRecord(b"k", b"v")] * 200)])
    asked = {"groups": [{"groupId": "g-new-live", "topics": [plain_parts(0)]}]}
    with serving(DISK / "__consumer_offsets-1", tmp_path / "plain-0") as running, open_connection(running) as client:
        assert list_commits(client.ask(OFFSET_FETCH, 9, asked)) == [(0, 162, "")]
        new = [{"name": "plain", "partitions": [{"partitionIndex": 0, "committedOffset": 3, "committedMetadata": ""}]}]
        client.ask(OFFSET_COMMIT, 9, {"groupId": "g-new-live", "memberId": "", "topics": new})
        assert list_commits(client.ask(OFFSET_FETCH, 9, asked)) == [(0, 3, "")]


def test_commits_that_a_broker_adds_meanwhile_are_seen(tmp_path: Path) -> None:
    shutil.copytree(DISK / "__consumer_offsets-1", tmp_path / "__consumer_offsets-1")
    (log,) = sorted((tmp_path / "__consumer_offsets-1").glob("*.log"))
    whole, now = log.read_bytes(), [0.0]
    log.write_bytes(b"")
    served = serve_partitions(Cluster([tmp_path]), ServeSettings(), lambda _: None, clock=lambda: now[0])
    assert served.groups.commits_of("g-new-live", None, -1) == {}
    log.write_bytes(whole)
    now[0] += COMMITS_SECONDS
    assert served.groups.commits_of("g-new-live", None, -1)["plain", 0].offset == 162


def test_commits_of_another_copy_stay_when_a_broker_adds_files(tmp_path: Path) -> None:
    """The best copy has lost the second of its three batches; a segment comes later."""
    batches = [NewBatch([stored_commit("orders", 10 + number, partition=number)], number) for number in range(4)]
    log = write_segment(tmp_path / "b1" / "__consumer_offsets-0", batches[:3])
    write_segment(tmp_path / "b2" / "__consumer_offsets-0", batches[:2])
    content = bytearray(log.read_bytes())
    content[len(batch_bytes(batches[0])) + 70] ^= 0xFF
    log.write_bytes(content)
    for number in (1, 2):
        (tmp_path / f"b{number}" / "meta.properties").write_text(f"version=1\nnode.id={number}\n")
    now = [0.0]
    served = serve_partitions(Cluster([tmp_path]), ServeSettings(), lambda _: None, clock=lambda: now[0])

    def offsets() -> dict[int, int]:
        return {part: each.offset for (_, part), each in served.groups.commits_of("g", None, -1).items()}

    assert offsets() == {0: 10, 1: 11, 2: 12}
    write_segment(log.parent, batches[3:], 3)
    now[0] += COMMITS_SECONDS
    assert offsets() == {0: 10, 1: 11, 2: 12, 3: 13}


def test_commits_of_what_is_not_served_are_refused(client: Connection, running: Running) -> None:
    other = [{"name": "elsewhere", "partitions": [{"partitionIndex": 0}]}]
    assert error_of(client.ask(OFFSET_COMMIT, 9, commit(running, 1, topics=other))) == 3
    assert error_of(client.ask(OFFSET_COMMIT, 9, commit(running, 1, partition={"partitionIndex": 9}))) == 3
    assert error_of(client.ask(OFFSET_COMMIT, 10, commit(running, 1, topics=other))) == 100
    assert error_of(client.ask(OFFSET_COMMIT, 9, commit(running, 1, partition={"committedMetadata": "x" * 4097}))) == 12


def test_commits_take_only_so_much_memory(client: Connection, running: Running) -> None:
    noted = {"partition": {"committedMetadata": "x" * 4000}}
    errors = {error_of(client.ask(OFFSET_COMMIT, 9, commit(running, 1, f"g{n}", **noted))) for n in range(1100)}
    assert errors == {0, 81}


@for_each("version", versions(FIND_COORDINATOR))
def test_the_one_broker_coordinates_all_groups(client: Connection, running: Running, version: int) -> None:
    answer = client.ask(FIND_COORDINATOR, version, {"key": GROUP, "coordinatorKeys": [GROUP]})
    found = answer["coordinators"][0] if version >= 4 else answer
    assert (found["errorCode"], found["host"], found["port"]) == (0, *running.address)


def join(version: int, member_id: str = "", **changed: Any) -> Fields:
    protocols = [{"name": "range", "metadata": b"wanted"}]
    fields = {"groupId": GROUP, "sessionTimeoutMs": 10_000, "rebalanceTimeoutMs": 10_000, "memberId": member_id}
    return {**fields, "protocolType": "consumer", "protocols": protocols, **changed}


def join_group(client: Connection, version: int, **changed: Any) -> Fields:
    answer = client.ask(JOIN_GROUP, version, join(version, **changed))
    if answer["errorCode"] == 79:
        answer = client.ask(JOIN_GROUP, version, join(version, answer["memberId"], **changed))
    assert answer["errorCode"] == 0
    return answer


@for_each("version", some(versions(JOIN_GROUP), 3))
def test_a_member_joins_syncs_beats_and_leaves(client: Connection, version: int) -> None:
    group = f"group of version {version}"
    member = join_group(client, version, groupId=group)
    assert member["leader"] == member["memberId"]
    assert [each["metadata"] for each in member["members"]] == [b"wanted"]
    name = {"groupId": group, "memberId": member["memberId"], "generationId": member["generationId"]}
    assignments = [{"memberId": member["memberId"], "assignment": b"given"}]
    synced = {**name, "protocolType": "consumer", "protocolName": "range", "assignments": assignments}
    assert client.ask(SYNC_GROUP, min(version, 5), synced)["assignment"] == b"given"
    assert client.ask(HEARTBEAT, min(version, 4), name)["errorCode"] == 0
    (described,) = client.ask(DESCRIBE_GROUPS, min(version, 6), {"groups": [group]})["groups"]
    assert (described["groupState"], described["protocolData"]) == ("Stable", "range")
    (shown,) = described["members"]
    assert (shown["clientHost"], shown["memberAssignment"]) == ("/127.0.0.1", b"given")
    left = client.ask(LEAVE_GROUP, min(version, 5), {**name, "members": [{"memberId": member["memberId"]}]})
    assert left["errorCode"] == 0
    assert [each["errorCode"] for each in left.get("members", [])] in ([], [0])
    assert client.ask(HEARTBEAT, min(version, 4), name)["errorCode"] == 25


@pytest.mark.parametrize(
    ("changed", "code"),
    [({"groupId": ""}, 24), ({"sessionTimeoutMs": 1}, 26), ({"protocols": []}, 23), ({"memberId": "other"}, 25)],
)
def test_wrong_joins_are_refused(client: Connection, changed: Fields, code: int) -> None:
    assert client.ask(JOIN_GROUP, 9, {**join(9), **changed})["errorCode"] == code


def test_a_client_that_hangs_up_while_it_waits_keeps_nobody_waiting(running: Running) -> None:
    with open_connection(running) as first, open_connection(running) as second:
        first.send(JOIN_GROUP, 3, join(3))
        second.send(JOIN_GROUP, 3, join(3))
        first.socket.close()
        assert second.receive()


@pytest.mark.parametrize("version", versions(LIST_GROUPS))
def test_groups_of_the_disk_and_of_clients_are_listed(client: Connection, running: Running, version: int) -> None:
    join_group(client, 9)
    stored = {group.group for group in read_groups(DISK).groups if group.type in ("classic", "consumer")}
    listed = {each["groupId"]: each for each in client.ask(LIST_GROUPS, version, {})["groups"]}
    assert set(listed) == stored | {GROUP}
    if version >= 4:
        assert {each["groupState"] for name, each in listed.items() if name != GROUP} == {"Empty"}
        assert listed[GROUP]["groupState"] == "CompletingRebalance"
        few = client.ask(LIST_GROUPS, version, {"statesFilter": ["completingrebalance"]})["groups"]
        assert [each["groupId"] for each in few] == [GROUP]


def test_a_group_of_the_disk_is_described_as_an_empty_one(client: Connection) -> None:
    name = next(group.group for group in read_groups(DISK).groups if group.type == "classic")
    (found,) = client.ask(DESCRIBE_GROUPS, 6, {"groups": [name]})["groups"]
    assert (found["errorCode"], found["groupState"], found["members"]) == (0, "Empty", [])


def test_a_consumer_group_of_the_disk_is_described_as_an_empty_one() -> None:
    with serving(LOGS / "4.1.0") as running, open_connection(running) as client:
        (found,) = client.ask(CONSUMER_DESCRIBE, 1, {"groupIds": ["g-new-live"]})["groups"]
        assert (found["errorCode"], found["groupState"], found["members"]) == (0, "Empty", [])
        assert (found["groupEpoch"], found["assignorName"]) == (1, "uniform")
        listed = {each["groupId"]: each for each in client.ask(LIST_GROUPS, 5, {})["groups"]}
        assert (listed["g-new-live"]["groupType"], listed["g-new-live"]["groupState"]) == ("consumer", "Empty")


@pytest.mark.parametrize(("version", "code"), [(5, 0), (6, 69)])
def test_a_group_that_is_not_there_is_dead(client: Connection, version: int, code: int) -> None:
    (found,) = client.ask(DESCRIBE_GROUPS, version, {"groups": ["nobody"]})["groups"]
    assert (found["errorCode"], found["groupState"]) == (code, "Dead")
    (found,) = client.ask(CONSUMER_DESCRIBE, 1, {"groupIds": ["nobody"]})["groups"]
    assert found["errorCode"] == 69


def beat(**changed: Any) -> Fields:
    fields = {"groupId": GROUP, "memberId": "m", "memberEpoch": 0, "rebalanceTimeoutMs": 1000}
    return {**fields, "subscribedTopicNames": [TOPIC], "topicPartitions": [], **changed}


@pytest.mark.parametrize("version", versions(CONSUMER_HEARTBEAT))
def test_a_member_of_the_consumer_protocol_is_described(client: Connection, running: Running, version: int) -> None:
    answer = client.ask(CONSUMER_HEARTBEAT, version, beat())
    parts = [{"topicId": topic_id(running), "partitions": [0, 1]}]
    assert (answer["errorCode"], answer["memberEpoch"]) == (0, 2)
    assert answer["assignment"] == {"topicPartitions": parts}
    (group,) = client.ask(CONSUMER_DESCRIBE, version, {"groupIds": [GROUP]})["groups"]
    assert (group["groupState"], group["assignorName"], group["groupEpoch"]) == ("Stable", "uniform", 2)
    (member,) = group["members"]
    assert member["assignment"]["topicPartitions"] == [{**parts[0], "topicName": TOPIC}]
    assert error_of(client.ask(OFFSET_COMMIT, 10, commit(running, 5, memberId="m", generationIdOrMemberEpoch=2))) == 0
    assert error_of(client.ask(OFFSET_COMMIT, 10, commit(running, 5, memberId="m", generationIdOrMemberEpoch=0))) == 113
    stale = client.ask(OFFSET_FETCH, 10, fetch(running, 10, memberId="m", memberEpoch=0))
    assert stale["groups"][0]["errorCode"] == 113
    assert list_commits(client.ask(OFFSET_FETCH, 10, fetch(running, 10, memberId="m", memberEpoch=2))) == [
        (0, 5, "noted")
    ]


def test_an_older_client_is_given_an_id(client: Connection) -> None:
    answer = client.ask(CONSUMER_HEARTBEAT, 0, beat(memberId=""))
    assert answer["errorCode"] == 0
    known = beat(memberId=answer["memberId"], memberEpoch=2, subscribedTopicNames=None, topicPartitions=None)
    assert client.ask(CONSUMER_HEARTBEAT, 0, known)["memberEpoch"] == 2


def test_a_group_stays_what_it_was_when_its_members_have_left(client: Connection, running: Running) -> None:
    client.ask(CONSUMER_HEARTBEAT, 1, beat())
    client.ask(OFFSET_COMMIT, 10, commit(running, 5, memberId="m", generationIdOrMemberEpoch=2))
    client.ask(CONSUMER_HEARTBEAT, 1, beat(memberEpoch=-1))
    listed = {each["groupId"]: each for each in client.ask(LIST_GROUPS, 5, {})["groups"]}[GROUP]
    assert (listed["groupType"], listed["protocolType"], listed["groupState"]) == ("consumer", "consumer", "Empty")
    (group,) = client.ask(CONSUMER_DESCRIBE, 1, {"groupIds": [GROUP]})["groups"]
    assert (group["errorCode"], group["groupState"], group["members"]) == (0, "Empty", [])


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"groupId": ""}, 42),
        ({"memberId": ""}, 42),
        ({"rebalanceTimeoutMs": -1}, 42),
        ({"subscribedTopicNames": None}, 42),
        ({"serverAssignor": "own"}, 112),
        ({"subscribedTopicRegex": "("}, 128),
        ({"memberEpoch": -3}, 42),
        ({"memberEpoch": 4}, 25),
    ],
)
def test_wrong_heartbeats_are_refused(client: Connection, changed: Fields, code: int) -> None:
    answer = client.ask(CONSUMER_HEARTBEAT, 1, beat(**changed))
    assert answer["errorCode"] == code
    assert answer["errorMessage"]


def test_a_group_has_one_protocol_at_a_time(client: Connection) -> None:
    client.ask(CONSUMER_HEARTBEAT, 1, beat())
    assert client.ask(JOIN_GROUP, 9, join(9))["errorCode"] == 23
    client.ask(CONSUMER_HEARTBEAT, 1, beat(memberEpoch=-1))
    join_group(client, 9)
    assert client.ask(CONSUMER_HEARTBEAT, 1, beat())["errorCode"] == 69


def test_groups_are_so_many(client: Connection) -> None:
    errors = [client.ask(CONSUMER_HEARTBEAT, 1, beat(groupId=f"g{n}"))["errorCode"] for n in range(1001)]
    assert errors == [0] * 1000 + [81]


def test_subscriptions_take_only_so_much_memory(running: Running) -> None:
    large = [{"name": "range", "metadata": bytes(900_000)}]
    with ExitStack() as opened:
        clients = [opened.enter_context(open_connection(running)) for _ in range(20)]
        for number, client in enumerate(clients):
            client.send(JOIN_GROUP, 3, join(3, groupId=f"g{number}", protocols=large))
        answers = [read_response(client.receive(), JOIN_GROUP, 3).body for client in clients]
    assert sorted(answer["errorCode"] for answer in answers if answer is not None) == [0] * 18 + [81] * 2
