"""Answers of a cluster that one directory alone would contradict: every command gives them."""

import json
import shutil
from itertools import permutations
from pathlib import Path

import pytest

import kseg
from kseg.cluster.cluster import Cluster
from kseg.cluster.metadata_copy import CHEAP_METADATA
from kseg.log.selection import EVERY_PARTITION, PartitionChoice
from kseg.serve.cluster import serve_partitions
from kseg.serve.values import ServeSettings
from tests import golden
from tests.cluster.made_metadata import BROKER, write_id, write_metadata
from tests.cluster.questions import lines
from tests.coordinators.coordinators import commit
from tests.log.edits import write_bytes
from tests.log.replicas import Part, replica
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import kseg as run
from tests.serve.running import serving
from tests.serve.test_server import open_connection
from tests.serve.test_settings import DEFAULT, OF_TOPIC, STATIC, TOPIC, setting

CURRENT, BEFORE = "cJFU-m2vQ6uCEEqPGgnDXw", "p1XHsPOYQDm0-X-eJ7nDVQ"
"""Ids of the topic, and of an earlier topic of the same name."""
TRANSACTIONS = Path("transactions-0")
LAST_MARKER = 78
"""Bytes of the last batch of the golden partition: the marker that commits its last transaction."""


def is_about_open(row: dict[str, object]) -> bool:
    return "transaction" in str(row.get("id"))


@pytest.fixture
def stopped_follower(tmp_path: Path) -> Path:
    """A broker, and a follower that stopped before it received the marker of the last transaction."""
    shutil.copytree(golden.ROOT / "logs" / "4.4.0-made", tmp_path / "b1")
    shutil.copytree(tmp_path / "b1" / TRANSACTIONS, tmp_path / "b2" / TRANSACTIONS)
    identity = (tmp_path / "b1" / "meta.properties").read_text(encoding="utf-8").replace("node.id=1", "node.id=2")
    (tmp_path / "b2" / "meta.properties").write_text(identity, encoding="utf-8")
    log = tmp_path / "b2" / TRANSACTIONS / f"{3:020}.log"
    log.write_bytes(log.read_bytes()[:-LAST_MARKER])
    (tmp_path / "b2" / TRANSACTIONS / f"{24:020}.snapshot").unlink()
    return tmp_path


@pytest.mark.parametrize("command", ["verify", "doctor"])
def test_transaction_that_ended_in_the_copy_that_answers_is_open_in_none(command: str, stopped_follower: Path) -> None:
    given = [f"{broker}/{TRANSACTIONS}" for broker in ("b1", "b2")]
    for paths in (*permutations(("b1", "b2")), *permutations(given)):
        assert not any(row.get("state") == "open" for row in lines(stopped_follower, ["txns", "-o", "json"], paths, ()))
        assert not list(filter(is_about_open, lines(stopped_follower, [command, "-o", "json"], paths, ())))


@pytest.mark.parametrize("command", ["verify", "doctor"])
def test_transaction_that_is_open_in_the_only_copy_is_reported(command: str, stopped_follower: Path) -> None:
    for paths in (("b2",), (f"b2/{TRANSACTIONS}",)):
        assert any(map(is_about_open, lines(stopped_follower, [command, "-o", "json"], paths, ())))


def test_settings_are_those_of_the_broker_whose_partitions_are_given(tmp_path: Path) -> None:
    for topic in ("x", "y"):
        for base in (0, 1):
            write_segment(tmp_path / f"{topic}-0", [NewBatch([NewRecord(b"k", b"v", 1000)], base)], base)
    write_metadata(tmp_path, {"x": CURRENT}, [(BROKER, "1", "log.retention.ms", "1000")])
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\n", encoding="utf-8")
    listed = lines(tmp_path, ["ls", "--now", "2030-01-01", "-o", "json"], ["x-0", "y-0"], ())
    assert [row["segmentsToDelete"] for row in listed if row["type"] == "partition"] == [2, 2]
    with kseg.open_cluster([tmp_path / "x-0", tmp_path / "y-0"]) as opened:
        assert opened.brokers == (1,)
        assert opened.topics["x"].settings["retention.ms"].value == "1000"


@pytest.mark.parametrize(
    ("ids", "topic_id"),
    [((BEFORE,), BEFORE), ((BEFORE, BEFORE), BEFORE), ((BEFORE, CURRENT), CURRENT), ((BEFORE, None), CURRENT)],
    ids=["stale", "both stale", "one stale", "one without an id"],
)
def test_topic_id_of_given_directories_is_that_of_their_files(
    ids: tuple[str | None, ...], topic_id: str, tmp_path: Path
) -> None:
    """The metadata has another id for this name; only a directory without its own id gets that one."""
    for number, own in enumerate(ids):
        write_segment(tmp_path / f"x-{number}", [NewBatch([NewRecord(b"k", b"v", 1000)])])
        if own is not None:
            text = f"version: 0\ntopic_id: {own}\n"
            (tmp_path / f"x-{number}" / "partition.metadata").write_text(text, encoding="utf-8")
    write_segment(tmp_path / "y-0", [NewBatch([NewRecord(b"k", b"v", 1000)])])
    write_metadata(tmp_path, {"x": CURRENT}, count=2)
    given = [*(f"x-{number}" for number in range(len(ids))), "y-0"]
    rows = lines(tmp_path, ["ls", "-o", "json"], given, ("--topic", "x"))
    assert [row["topicId"] for row in rows if row["type"] == "partition"] == [own or CURRENT for own in ids]
    with kseg.open_cluster([tmp_path / path for path in given]) as opened:
        topic = opened.topics["x"]
        assert [each.topic_id() for each in topic.partitions] == [own or CURRENT for own in ids]
        assert topic.topic_id == topic_id
    with serving(*(tmp_path / path for path in given)) as running:
        assert running.served.topics["x"].topic_id == topic_id


@pytest.mark.parametrize("of_brokers", [None, "delete", "compact,delete"])
def test_policy_that_only_the_disks_show_is_the_same_for_all(of_brokers: str | None, tmp_path: Path) -> None:
    """A topic was compacted if the cleaner has cleaned any of its partitions, whatever a broker sets for the others."""
    for name in ("orders-0", "clean-0", "clean-1", "__consumer_offsets-0"):
        write_segment(tmp_path / name, [NewBatch([NewRecord(b"k", b"v", 1000)])])
        write_segment(tmp_path / name, [NewBatch([NewRecord(b"k", b"v", 1000)], 1)], 1)
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nclean 0 1\n", encoding="utf-8")
    given = None if of_brokers is None else tmp_path / "server.properties"
    options: tuple[str, ...] = ()
    if given is not None:
        given.write_text(f"log.cleanup.policy={of_brokers}\n", encoding="utf-8")
        options = ("--server-properties", given.name)
    clean = ("compact", OF_TOPIC) if of_brokers != "compact,delete" else (of_brokers, STATIC)
    shown = {
        "orders": ("delete", DEFAULT) if of_brokers is None else (of_brokers, STATIC),
        "clean": clean,
        "__consumer_offsets": ("compact", OF_TOPIC),
    }
    found = lines(tmp_path, ["retain", "-o", "json", "--now", "2030-01-01", *options], ["."], ())
    deleted = {row["directory"] for row in found if row["type"] == "segment" and row["retention"] == "delete-time"}
    assert deleted == ({"orders-0"} if clean[0] == "compact" else {"orders-0", "clean-0", "clean-1"})
    listed = lines(tmp_path, ["ls", "-o", "json", "--now", "2030-01-01", *options], ["."], ())
    assert {row["directory"] for row in listed if row["type"] == "partition" and row["segmentsToDelete"]} == deleted
    with serving(tmp_path, server_properties=given) as running, open_connection(running) as client:
        assert {name: setting(client, TOPIC, name, "cleanup.policy")[:2] for name in shown} == shown
    with kseg.open_cluster([tmp_path], server_properties=given) as opened:
        policies = {name: opened.topics[name].settings["cleanup.policy"] for name in shown}
        assert {name: (each.value, each.source) for name, each in policies.items()} == shown


def test_groups_are_those_of_what_was_given_and_their_lags_those_of_all_of_it(tmp_path: Path) -> None:
    """A partition given by its own path is read in its log directory, whose other topics aren't given."""
    write_segment(tmp_path / "b1" / "x-0", [NewBatch([NewRecord(b"k", b"v", 1000)] * 9)])
    for broker, topic in (("b1", "x"), ("b2", "y")):
        write_segment(tmp_path / broker / "__consumer_offsets-0", [NewBatch([commit(topic, 4, group=broker)])])

    def lags(*paths: str) -> dict[object, object]:
        rows = lines(tmp_path, ["groups", "-o", "json"], paths, ())
        return {row["group"]: row["lag"] for row in rows if row["type"] == "commit"}

    def reported(*paths: str) -> dict[object, object]:
        rows = lines(tmp_path, ["report", "-o", "json"], paths, ())
        return {row["group"]: row["lag"] for row in rows if row.get("table") == "groups" and "group" in row}

    for paths in (("b1/x-0", "b1/__consumer_offsets-0"), ("b1",), ("b2/__consumer_offsets-0", "b1/x-0")):
        group, lag = ("b1", 5) if "b2" not in paths[0] else ("b2", None)
        assert lags(*paths) == reported(*paths) == {group: lag}
    write_segment(tmp_path / "b1" / "y-0", [NewBatch([NewRecord(b"k", b"v", 1000)] * 7)])
    assert lags("b2/__consumer_offsets-0", "b1/x-0") == reported("b2/__consumer_offsets-0", "b1/x-0") == {"b2": 3}
    assert reported("b1/x-0", "b1/y-0") == {}


def test_metadata_that_are_older_than_the_directories_leave_no_partition_out(tmp_path: Path) -> None:
    for name in ("x-0", "x-5", "__consumer_offsets-0", "__consumer_offsets-7"):
        write_segment(tmp_path / name, [NewBatch([NewRecord(b"k", b"v", 1000)])])
    write_metadata(tmp_path, {"x": CURRENT, "__consumer_offsets": BEFORE})
    asked = {"x": ["--key", "k", "--topic", "x"], "__consumer_offsets": ["--group", "g"]}
    counted = {}
    for topic, what in asked.items():
        counted[topic] = json.loads(run(["where", *what, "-o", "json", "."], tmp_path).stdout)["partitions"]
    with serving(tmp_path) as running:
        served = {topic: len(running.served.topics[topic].partitions) for topic in asked}
    assert counted == served == {"x": 6, "__consumer_offsets": 8}


@pytest.mark.parametrize("noted", [None, "0\n1\n3 0\n", "0\n2\n3 0\n6 2\n", "0\n2\n3 0\n9 7\n"])
def test_leader_epoch_is_the_latest_that_a_log_or_its_checkpoint_has(noted: str | None, tmp_path: Path) -> None:
    """An epoch begins before its first batch; one that begins after the end of the log isn't the log's."""
    for broker, epoch in (("b1", 3), ("b2", 5)):
        batches = [NewBatch([NewRecord(b"k", b"v", 1000)], at, partition_leader_epoch=epoch) for at in (0, 1)]
        write_segment(tmp_path / broker / "x-0", batches)
        if noted is not None:
            (tmp_path / broker / "x-0" / "leader-epoch-checkpoint").write_text(noted, encoding="utf-8")
    expected = {"b1": 6, "b2": 6} if noted is not None and "6 2" in noted else {"b1": 3, "b2": 5}
    for broker, epoch in expected.items():
        listed = lines(tmp_path, ["ls", "-o", "json"], [broker], ())
        assert [row["leaderEpoch"] for row in listed if row["type"] == "partition"] == [epoch]
        with serving(tmp_path / broker) as running:
            assert running.served.topics["x"].partitions[0].latest_epoch() == epoch


def identity(log_dir: Path, node_id: int, cluster_id: str = "c") -> None:
    log_dir.mkdir(exist_ok=True)
    (log_dir / "meta.properties").write_text(
        f"version=1\nnode.id={node_id}\ncluster.id={cluster_id}\n", encoding="utf-8"
    )


@pytest.fixture
def two_brokers(tmp_path: Path) -> Path:
    """Two brokers: one has a partition with an open transaction, the other one its coordinator."""
    disks = {"b1": (1, "__consumer_offsets-1"), "b2": (2, "__transaction_state-0")}
    for name, (node_id, directory) in disks.items():
        identity(tmp_path / name, node_id)
        shutil.copytree(golden.ROOT / "logs" / "2.8.2" / directory, tmp_path / name / directory)
    return tmp_path


def test_transaction_of_an_opened_partition_is_judged_by_the_clusters_coordinators(two_brokers: Path) -> None:
    with kseg.open_cluster([two_brokers / "b1", two_brokers / "b2"]) as cluster:
        (of_all,) = cluster.transactions(only_open=True)
        (of_one,) = cluster.partition("__consumer_offsets", 1).transactions(only_open=True)
    assert of_all.is_hanging is False
    assert of_one == of_all


@pytest.mark.parametrize(
    "choice", [PartitionChoice(("__consumer_offsets",)), EVERY_PARTITION], ids=["one topic", "all"]
)
def test_served_transactional_ids_are_those_of_all_directories(choice: PartitionChoice, two_brokers: Path) -> None:
    served = serve_partitions(Cluster([two_brokers / "b1", two_brokers / "b2"]), ServeSettings(), print, choice)
    assert "left-open" in served.transactions.all()


def test_copy_whose_logs_are_gone_does_not_answer(tmp_path: Path) -> None:
    """It is in sync according to the metadata, but has no records."""
    for node_id in (1, 2):
        identity(tmp_path / f"b{node_id}", node_id)
        write_segment(tmp_path / f"b{node_id}" / "t-0", [NewBatch([NewRecord(b"k", b"v", 1000)] * 3)])
        write_id(tmp_path / f"b{node_id}" / "t-0", CURRENT)
    write_metadata(tmp_path / "b1", {"t": CURRENT})
    (tmp_path / "b1" / "t-0" / f"{0:020}.log").unlink()
    for paths in permutations(("b1", "b2")):
        asked = ["query", "SELECT count(*) AS n FROM records WHERE topic = 't'", "-o", "json"]
        assert [row["n"] for row in lines(tmp_path, asked, paths, ())] == [3]
        found = lines(tmp_path, ["dump", "-o", "json", "--topic", "t"], paths, ())
        assert len([row for row in found if row["type"] == "record"]) == 3
        with kseg.open_cluster([tmp_path / path for path in paths]) as opened:
            assert opened.partition("t", 0).log_end_offset() == 3


@pytest.mark.parametrize("is_registered", [True, False], ids=["registered", "not registered"])
@pytest.mark.parametrize("place", ["b1", "nameless"])
def test_settings_of_the_only_broker_count_on_all_its_disks(place: str, is_registered: bool, tmp_path: Path) -> None:
    """One disk lost its `meta.properties`, or the metadata lost the broker's registration."""
    identity(tmp_path / "b1", 1)
    (tmp_path / "nameless").mkdir()
    for base in range(3):
        write_segment(tmp_path / place / "t-0", [NewBatch([NewRecord(b"k", b"v", 1000)], base)], base)
    write_id(tmp_path / place / "t-0", CURRENT)
    setting = (BROKER, "1", "log.retention.ms", "1000000000000")
    write_metadata(tmp_path / "b1", {"t": CURRENT}, [setting], broker=1 if is_registered else 7)
    paths = ("b1",) if place == "b1" else ("b1", "nameless")
    rows = lines(tmp_path, ["metadata", "--settings", "-o", "json"], paths, ())
    (told,) = (row["value"] for row in rows if row["type"] == "setting" and row["name"] == "retention.ms")
    assert told == "1000000000000"
    rows = lines(tmp_path, ["ls", "-o", "json", "--now", "1990-01-02", "--topic", "t"], paths, ())
    assert [row["segmentsToDelete"] for row in rows if row["type"] == "partition"] == [0]


def test_directory_given_by_two_names_is_listed_once(tmp_path: Path) -> None:
    identity(tmp_path / "b1", 1)
    write_segment(tmp_path / "b1" / "t-0", [NewBatch([NewRecord(b"k", b"v", 1000)])])
    (tmp_path / "link").symlink_to(tmp_path / "b1")
    for paths in (("b1", str(tmp_path / "b1" / "t-0")), ("b1", "link/t-0")):
        rows = lines(tmp_path, ["ls", "-o", "json"], paths, ())
        assert len([row for row in rows if row["type"] == "partition"]) == 1


@pytest.fixture
def lagging(tmp_path: Path) -> list[Path]:
    """Return two brokers with a topic; the first one's copy is damaged, the second one's ends later.

    The first broker also has the commits.
    """
    for node_id, count in ((1, 7), (2, 9)):
        directory = tmp_path / f"b{node_id}" / "x-0"
        write_segment(directory, [NewBatch([NewRecord(b"k", b"v", 1000)], base) for base in range(count)])
        identity(tmp_path / f"b{node_id}", node_id)
    size = (tmp_path / "b2" / "x-0" / f"{0:020}.log").stat().st_size // 9
    write_bytes(tmp_path / "b2" / "x-0" / f"{0:020}.log", 3 * size - 1, b"\xff")
    write_segment(tmp_path / "b1" / "__consumer_offsets-0", [NewBatch([commit("x", 4, group="g")])])
    return [tmp_path / "b1", tmp_path / "b2"]


@pytest.mark.parametrize("topic", ["__consumer_offsets", "x"])
def test_groups_of_an_opened_partition_have_the_clusters_lags(topic: str, lagging: list[Path]) -> None:
    with kseg.open_cluster(lagging) as cluster:
        assert cluster.lag("g") == {("x", 0): 5}
        (group,) = cluster.partition(topic, 0).groups().groups
        assert [each.lag for each in group.commits] == [5]
    with kseg.open(*lagging) as directory:
        (alone,) = directory.partitions("__consumer_offsets")
        assert [each.lag for group in alone.groups().groups for each in group.commits] == [5]


def test_partition_of_an_opened_cluster_is_salvaged_and_compared_with_all_its_copies(lagging: list[Path]) -> None:
    with kseg.open_cluster(lagging) as cluster:
        part = cluster.partition("x", 0)
        (saved,) = part.salvage(None)
        assert (saved.plan.batch_count, saved.plan.holes) == (9, ())
        assert [each.name for each in part.diff()] == ["x-0"]
        assert {each.file.parent.parent.name for each in part.verify().findings if each.id == "bad-crc"} == {"b2"}


def test_topic_id_of_an_opened_partition_is_found_in_all_that_was_opened(tmp_path: Path) -> None:
    identity(tmp_path / "b1", 1)
    write_segment(tmp_path / "b1" / "x-0", [NewBatch([NewRecord(b"k", b"v", 1000)])])
    write_metadata(tmp_path / "ctl", {"x": CURRENT})
    with kseg.open(tmp_path / "b1", tmp_path / "ctl") as directory:
        (part,) = directory.partitions("x")
        assert part.topic_id() == directory.partition("x", 0).topic_id() == CURRENT


@pytest.fixture
def tiered_broker(tmp_path: Path) -> Path:
    """A broker with large metadata; its topic's remote tier begins at 10, and its first segment at 100."""
    write_id(replica(tmp_path / "b1", [Part(0, 100, 30)], [(0, 10)]), CURRENT)
    identity(tmp_path / "b1", 1)
    padding = [(2, "orders", f"x{number}", "y" * 30000) for number in range(CHEAP_METADATA // 30000 + 1)]
    write_metadata(tmp_path / "b1", {"orders": CURRENT}, [(2, "orders", "remote.storage.enable", "true"), *padding])
    return tmp_path / "b1"


@pytest.mark.filterwarnings("error")
def test_log_of_a_tiered_topic_starts_where_large_metadata_tell(tiered_broker: Path) -> None:
    asked = ["lookup", "--timestamp", "earliest", "--topic", "orders", "--partition", "0", "-o", "json"]
    assert lines(tiered_broker, asked, ["."], ())[0]["offset"] == 10
    with kseg.open_cluster([tiered_broker]) as cluster:
        part = cluster.partition("orders", 0)
        assert part.lookup(time="earliest").log_start_offset == part.log_start_offset() == 10


def test_metadata_that_are_not_read_for_one_partition_are_warned_of(tiered_broker: Path) -> None:
    with (
        kseg.open(tiered_broker / "orders-0") as part,
        pytest.warns(Warning, match="not read, so .* more than the .* that kseg reads here"),
    ):
        assert part.log_start_offset() == 100  # type: ignore[union-attr]


def test_controllers_are_none_of_a_clusters_brokers(tmp_path: Path) -> None:
    identity(tmp_path / "b1", 1)
    identity(tmp_path / "ctl", 3)
    write_segment(tmp_path / "b1" / "x-0", [NewBatch([NewRecord(b"k", b"v", 1000)])])
    write_metadata(tmp_path / "ctl", {"x": CURRENT})
    (row,) = lines(tmp_path, ["metadata", "--show", "brokers", "-o", "json"], ["b1", "ctl"], ())
    with kseg.open_cluster([tmp_path / "b1", tmp_path / "ctl"]) as cluster:
        assert cluster.brokers == (row["brokerId"],) == (1,)
