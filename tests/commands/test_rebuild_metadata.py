"""`kseg rebuild-metadata`."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kseg import Segment
from kseg.errors import plural
from kseg.formats.checkpoints import parse_leader_epoch_checkpoint, parse_meta_properties, parse_quorum_state
from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from tests import golden
from tests.log_files import NewBatch, NewRecord, batch_bytes
from tests.run import Run, kseg

LOGS = golden.ROOT / "logs"
METADATA = "__cluster_metadata-0"
STATIC, DYNAMIC = "3.6.2", "4.3.1"
ENDPOINT = ("--endpoint", "CONTROLLER://10.0.0.1:9093")


def broker(work: Path, name: str, release: str = STATIC, *, logs_from: int = 0) -> Path:
    """Return a broker's log directory with a copy of a release's metadata, without the log before an offset."""
    path = work / name
    shutil.copytree(LOGS / release / METADATA, path / METADATA)
    shutil.copy(LOGS / release / "meta.properties", path)
    for file in (path / METADATA).iterdir():
        if file.suffix in (".log", ".index", ".timeindex") and int(file.stem) < logs_from:
            file.unlink()
    return path


def last_log(directory: Path) -> Path:
    return max((directory / METADATA).glob("*.log"))


def rebuilt(work: Path, *arguments: str) -> Run:
    return kseg(["rebuild-metadata", *arguments, "--node-id", "3001", "--to", "new"], work)


def rows(work: Path, *arguments: str) -> list[dict[str, Any]]:
    run = kseg(["rebuild-metadata", *arguments, "--node-id", "3001", "--dry-run", "-o", "json"], work)
    return [json.loads(line) for line in run.stdout.splitlines()]


def state_of(path: Path, work: Path) -> list[dict[str, Any]]:
    """Return all rows of a cluster's metadata except the quorum's."""
    found = [json.loads(line) for line in kseg(["metadata", str(path), "-o", "json"], work).stdout.splitlines()]
    places = {"directories", "path"}
    return [
        {name: value for name, value in row.items() if name not in places}
        for row in found
        if row["type"] not in ("voter", "metadata")
    ]


@pytest.mark.parametrize(("release", "options"), [(STATIC, ()), (DYNAMIC, ENDPOINT)])
def test_the_new_directory_has_all_of_the_clusters_state(
    release: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    broker(tmp_path, "broker4", release)
    assert rebuilt(tmp_path, "broker4", *options).status == 0
    assert state_of(Path("new"), tmp_path) == state_of(Path("broker4"), tmp_path)
    assert kseg(["verify", "new"], tmp_path).status == 0


def test_a_static_quorum_has_one_voter_and_a_later_epoch(tmp_path: Path) -> None:
    broker(tmp_path, "broker4")
    assert rebuilt(tmp_path, "broker4").status == 0
    state = parse_quorum_state((tmp_path / "new" / METADATA / "quorum-state").read_bytes())
    assert (state.data_version, state.leader_id, state.leader_epoch, state.voted_id) == (0, -1, 1002, -1)
    assert state.current_voters == (3001,)
    properties = parse_meta_properties((tmp_path / "new/meta.properties").read_bytes())
    assert dict(properties.properties) == {
        "version": "1",
        "cluster.id": "AbE5hHSmpchnHLE4KcYOHA",
        "node.id": "3001",
    }


def test_a_dynamic_quorum_has_the_new_voter_in_its_log(tmp_path: Path) -> None:
    broker(tmp_path, "broker4", DYNAMIC)
    run = rebuilt(tmp_path, "broker4", *ENDPOINT)
    assert run.status == 0
    voters = kseg(["metadata", "new", "--show", "voters", "-o", "json"], tmp_path)
    (voter,) = map(json.loads, voters.stdout.splitlines())
    properties = parse_meta_properties((tmp_path / "new/meta.properties").read_bytes())
    assert voter == {
        "type": "voter",
        "voterId": 3001,
        "directoryId": properties.get("directory.id"),
        "endpoints": [{"name": "CONTROLLER", "host": "10.0.0.1", "port": 9093}],
    }
    epochs = parse_leader_epoch_checkpoint((tmp_path / "new" / METADATA / "leader-epoch-checkpoint").read_bytes())
    assert [tuple(entry) for entry in epochs.entries][-1] == (1002, 676)
    state = parse_quorum_state((tmp_path / "new" / METADATA / "quorum-state").read_bytes())
    assert (state.data_version, state.leader_epoch, state.voted_directory_id) == (1, 1002, "A" * 22)


def test_directories_are_told_apart_by_new_ids(tmp_path: Path) -> None:
    broker(tmp_path, "broker4", DYNAMIC)
    ids = set()
    for name in ("one", "two"):
        run = kseg(["rebuild-metadata", "broker4", "--node-id", "3001", *ENDPOINT, "--to", name], tmp_path)
        assert run.status == 0
        ids.add(parse_meta_properties((tmp_path / name / "meta.properties").read_bytes()).get("directory.id"))
    assert len(ids) == 2


def test_a_node_that_replaces_its_own_copy_keeps_its_directorys_id(tmp_path: Path) -> None:
    broker(tmp_path, "broker1", DYNAMIC)
    kseg(["rebuild-metadata", "broker1", "--node-id", "1", *ENDPOINT, "--to", "new"], tmp_path)
    own, new = (
        parse_meta_properties((tmp_path / name / "meta.properties").read_bytes()) for name in ("broker1", "new")
    )
    assert new.get("directory.id") == own.get("directory.id") is not None


def test_the_copy_that_goes_furthest_is_used_and_the_others_are_told(tmp_path: Path) -> None:
    whole, behind = broker(tmp_path, "broker4"), broker(tmp_path, "broker5")
    log = last_log(behind)
    log.write_bytes(log.read_bytes()[:-1])  # torn, as after a power cut
    copies = [row for row in rows(tmp_path, "broker5", "broker4") if row["type"] == "copy"]
    assert [(row["path"], row["isUsed"]) for row in copies] == [
        (f"broker4/{METADATA}", True),
        (f"broker5/{METADATA}", False),
    ]
    used, other = copies
    assert (used["nodeId"], other["nodeId"]) == (1, 1)
    assert used["endOffset"] == 567
    assert other["behindRecords"] == used["endOffset"] - other["endOffset"] > 0
    assert other["behindMs"] == used["lastTimestamp"] - other["lastTimestamp"]
    assert other["problem"].endswith(": torn-tail")
    assert last_log(whole).name == log.name
    text = kseg(["rebuild-metadata", "broker5", "broker4", "--node-id", "3001", "--dry-run"], tmp_path)
    assert text.status == 0  # the used copy is complete
    assert f" {plural(other['behindRecords'], 'record')}, ".encode() in text.stdout
    alone = rebuilt(tmp_path, "broker5")
    assert (alone.status, b": torn-tail" in alone.stderr) == (0, True)


def test_a_copy_with_damage_ends_before_it_and_the_status_is_1(tmp_path: Path) -> None:
    path = broker(tmp_path, "broker4")
    log = last_log(path)
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    run = rebuilt(tmp_path, "broker4")
    assert run.status == 1
    assert b"ends before 00000000000000000350.log at position " in run.stderr
    assert b"kseg: new isn't written: it would lose something" in run.stderr
    assert not (tmp_path / "new").exists()
    assert rebuilt(tmp_path, "broker4", "--accept-loss").status == 1
    assert kseg(["verify", "new"], tmp_path).status == 0


def test_what_the_best_copy_lost_comes_from_another(tmp_path: Path) -> None:
    """The damaged copy ends later."""
    longer, shorter = broker(tmp_path, "broker4"), broker(tmp_path, "broker5")
    (shorter / "meta.properties").write_text(
        (shorter / "meta.properties").read_text().replace("node.id=1", "node.id=2")
    )
    state = state_of(longer, tmp_path)
    torn, log = last_log(shorter), last_log(longer)
    torn.write_bytes(torn.read_bytes()[:-1])
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    run = rebuilt(tmp_path, "broker4", "broker5")
    assert run.status == 0
    assert state_of(Path("new"), tmp_path) == state
    assert kseg(["verify", "new"], tmp_path).status == 0


def test_without_the_records_before_its_log_a_copy_is_refused(tmp_path: Path) -> None:
    path = broker(tmp_path, "broker4", logs_from=350)
    for checkpoint in (path / METADATA).glob("*.checkpoint"):
        checkpoint.unlink()
    run = rebuilt(tmp_path, "broker4")
    assert (run.status, run.stdout, run.stderr.count(b"\n")) == (1, b"", 1)
    assert b"lacks the records before offset 350, and no checkpoint has them" in run.stderr
    assert not (tmp_path / "new").exists()


def test_a_checkpoint_after_the_logs_end_is_enough(tmp_path: Path) -> None:
    path = broker(tmp_path, "broker4")
    for file in [*(path / METADATA).glob("*.log"), *(path / METADATA).glob("*index")]:
        file.unlink()
    (path / METADATA / f"{338:020}.log").touch()
    assert rebuilt(tmp_path, "broker4").status == 0
    assert state_of(Path("new"), tmp_path) == state_of(Path("broker4"), tmp_path)
    assert [each.name for each in (tmp_path / "new" / METADATA).glob("*.log")] == [f"{338:020}.log"]


def test_a_log_with_offsets_out_of_order_is_used_up_to_there(tmp_path: Path) -> None:
    path = broker(tmp_path, "broker4")
    log = last_log(path)
    content = log.read_bytes()
    log.write_bytes(content + (path / METADATA / f"{201:020}.log").read_bytes())
    run = rebuilt(tmp_path, "broker4", "--accept-loss")
    assert run.status == 1
    assert b", expected 567\n" in run.stderr
    assert (tmp_path / "new" / METADATA / log.name).read_bytes() == content


def test_a_gap_in_the_log_before_a_checkpoint_leaves_the_checkpoint(tmp_path: Path) -> None:
    path = broker(tmp_path, "broker4", logs_from=350)  # the checkpoint ends at 338
    run = rebuilt(tmp_path, "broker4")
    assert (run.status, run.stdout) == (1, b"")
    assert b"lacks the records before offset 350" in run.stderr
    for file in (path / METADATA).glob(f"{350:020}.*"):
        file.unlink()
    assert rebuilt(tmp_path, "broker4").status == 0


def test_disks_without_a_copy_may_be_given_too(tmp_path: Path) -> None:
    broker(tmp_path, "broker4", DYNAMIC)
    with_partition(tmp_path, "disk2/unknown-0", "AAAAAAAAAAAAAAAAAAAABQ", "0\n0\n")
    run = rebuilt(tmp_path, "broker4", "disk2", *ENDPOINT)
    assert run.status == 1
    assert b"disk2/unknown-0" in run.stdout


def test_epochs_that_a_node_knew_of_count(tmp_path: Path) -> None:
    path = broker(tmp_path, "broker4") / METADATA / "quorum-state"
    path.write_text(path.read_text().replace('"leaderEpoch":2', '"leaderEpoch":77'))
    run = rebuilt(tmp_path, "broker4")
    assert b"its node knew of leader epoch 77, but has no record of it" in run.stderr
    assert parse_quorum_state((tmp_path / "new" / METADATA / "quorum-state").read_bytes()).leader_epoch == 1077


def with_partition(path: Path, topic: str, topic_id: str, epochs: str) -> None:
    directory = path / topic
    directory.mkdir(parents=True)
    (directory / f"{0:020}.log").touch()
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    (directory / "leader-epoch-checkpoint").write_text(epochs)


def test_partitions_that_the_copy_does_not_know_are_named(tmp_path: Path) -> None:
    path = broker(tmp_path, "broker4", DYNAMIC)
    (known,) = [row for row in state_of(path, tmp_path) if row["type"] == "topic" and row["topic"] == "empty"]
    with_partition(path, "unknown-0", "AAAAAAAAAAAAAAAAAAAABQ", "0\n1\n0 0\n")
    with_partition(path, "empty-0", str(known["topicId"]), "0\n2\n0 0\n9 17\n")
    with_partition(path, "empty-1", str(known["topicId"]), "0\n1\n0 0\n")
    found = {
        Path(row["path"]).name: row for row in rows(tmp_path, "broker4", *ENDPOINT) if row["type"] == "newerPartition"
    }
    assert found.keys() == {"unknown-0", "empty-0"}
    assert found["unknown-0"]["reason"] == "isn't in the copy, so the broker will set it aside or delete it"
    assert (found["empty-0"]["leaderEpoch"], found["empty-0"]["startOffset"]) == (9, 17)
    run = rebuilt(tmp_path, "broker4", *ENDPOINT)
    assert (run.status, (tmp_path / "new").exists()) == (1, False)
    run = rebuilt(tmp_path, "broker4", *ENDPOINT, "--accept-loss")
    assert (run.status, (tmp_path / "new").exists()) == (1, True)
    assert b"start brokers that have more of the metadata twice" in run.stderr


def test_a_partition_that_lost_its_topic_id_is_named_too(tmp_path: Path) -> None:
    path = broker(tmp_path, "broker4", DYNAMIC)
    (known,) = [row for row in state_of(path, tmp_path) if row["type"] == "topic" and row["topic"] == "empty"]
    with_partition(path, "empty-0", str(known["topicId"]), "0\n2\n0 0\n9 17\n")
    (path / "empty-0" / "partition.metadata").unlink()
    (found,) = [row for row in rows(tmp_path, "broker4", *ENDPOINT) if row["type"] == "newerPartition"]
    assert (Path(found["path"]).name, found["topicId"], found["leaderEpoch"]) == ("empty-0", known["topicId"], 9)


def delete_topic(path: Path, topic_id: str) -> int:
    """Append the record that deletes a topic to a copy's log; return its offset."""
    log = last_log(path)
    value = b"\1\x09\0" + build_message(message_schema("RemoveTopicRecord"), 0, {"topicId": topic_id})
    with Segment(log) as segment:
        *_, last = segment.batches()
    batch = NewBatch([NewRecord(None, value, last.max_timestamp)], last.last_offset + 1)
    written = batch._replace(partition_leader_epoch=last.partition_leader_epoch)
    log.write_bytes(log.read_bytes() + batch_bytes(written))
    return int(last.last_offset) + 1


def test_partitions_of_topics_that_the_copy_knows_to_be_deleted_are_left_out(tmp_path: Path) -> None:
    """One was unreachable when its topic was deleted; the broker was deleting the other."""
    path = broker(tmp_path, "broker4", DYNAMIC)
    (known,) = [row for row in state_of(path, tmp_path) if row["type"] == "topic" and row["topic"] == "empty"]
    topic_id = str(known["topicId"])
    with_partition(path, "empty-0", topic_id, "0\n1\n0 0\n")
    with_partition(path, f"empty-1.{'0' * 32}-delete", topic_id, "0\n1\n0 0\n")
    offset = delete_topic(path, topic_id)
    found = {
        Path(row["path"]).name: row["reason"]
        for row in rows(tmp_path, "broker4", *ENDPOINT)
        if row["type"] in ("newerPartition", "deletedPartition")
    }
    assert found == {
        "empty-0": f"its topic was deleted at offset {offset}, so the broker will set it aside or delete it",
        f"empty-1.{'0' * 32}-delete": "the broker was deleting it, and will finish that",
    }
    run = rebuilt(tmp_path, "broker4", *ENDPOINT)
    assert (run.status, (tmp_path / "new").exists()) == (0, True)
    assert b"omitted 2 directories of deleted partitions" in run.stderr
    assert not [row for row in state_of(Path("new"), tmp_path) if row.get("topicId") == topic_id]


def test_a_topic_that_was_deleted_before_the_copys_checkpoint_is_left_out_too(tmp_path: Path) -> None:
    """Its record is in a part of the log that the checkpoint replaces."""
    path = broker(tmp_path, "broker4", DYNAMIC)
    topic_id = "AAAAAAAAAAAAAAAAAAAABQ"
    with_partition(path, "gone-0", topic_id, "0\n1\n0 0\n")
    assert rebuilt(tmp_path, "broker4", *ENDPOINT).status == 1
    first = min((path / METADATA).glob("*.log"))
    value = b"\1\x09\0" + build_message(message_schema("RemoveTopicRecord"), 0, {"topicId": topic_id})
    with Segment(first) as segment:
        replaced = next(iter(segment.batches()))
    batch = NewBatch([NewRecord(None, value, replaced.max_timestamp)], replaced.base_offset)
    written = batch._replace(partition_leader_epoch=replaced.partition_leader_epoch)
    first.write_bytes(batch_bytes(written) + first.read_bytes()[replaced.size :])
    assert rebuilt(tmp_path, "broker4", *ENDPOINT).status == 0


def no_cluster(path: Path) -> None:
    (path / "meta.properties").write_text("version=1\nnode.id=1\n")


def other_cluster(path: Path) -> None:
    other = path.parent / "broker5"
    shutil.copytree(path, other)
    properties = (other / "meta.properties").read_text().replace("AbE5hHSmpchnHLE4KcYOHA", "BbE5hHSmpchnHLE4KcYOHA")
    (other / "meta.properties").write_text(properties)


def nothing(_: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("change", "arguments", "said"),
    [
        (nothing, ["broker4", *ENDPOINT], b"the quorum is static"),
        (nothing, ["broker4", "--endpoint", "10.0.0.1:9093"], b"isn't an endpoint; specify LISTENER://HOST:PORT"),
        (nothing, ["broker4", "--endpoint", "C://h:99999"], b"isn't an endpoint; specify LISTENER://HOST:PORT"),
        (nothing, ["nosuch"], b"nosuch: "),
        (no_cluster, ["broker4"], b"no meta.properties next to it has the cluster's id"),
        (
            other_cluster,
            ["broker4", "broker5"],
            b"belong to different clusters, AbE5hHSmpchnHLE4KcYOHA and BbE5hHSmpchnHLE4KcYOHA",
        ),
        (lambda path: shutil.rmtree(path / METADATA), ["broker4"], b"broker4: "),
    ],
)
def test_what_can_not_be_rebuilt_is_one_line_and_leaves_nothing(
    change: Any, arguments: list[str], said: bytes, tmp_path: Path
) -> None:
    change(broker(tmp_path, "broker4"))
    run = rebuilt(tmp_path, *arguments)
    assert (run.status, run.stdout, run.stderr.count(b"\n")) == (2, b"", 1)
    assert said in run.stderr
    assert not (tmp_path / "new").exists()


def test_a_dynamic_quorum_needs_an_endpoint(tmp_path: Path) -> None:
    broker(tmp_path, "broker4", DYNAMIC)
    run = rebuilt(tmp_path, "broker4")
    assert (run.status, run.stdout) == (2, b"")
    assert (
        b"the quorum is dynamic; specify the new controller's address by --endpoint CONTROLLER://HOST:PORT"
        in run.stderr
    )


def test_it_is_never_written_into_what_is_read(tmp_path: Path) -> None:
    broker(tmp_path, "broker4")
    run = kseg(["rebuild-metadata", "broker4", "--node-id", "1", "--to", "broker4/new"], tmp_path)
    assert run.status == 2
    assert not (tmp_path / "broker4/new").exists()


def test_a_brokers_id_is_minded(tmp_path: Path) -> None:
    broker(tmp_path, "broker4")
    run = kseg(["rebuild-metadata", "broker4", "--node-id", "1", "--dry-run"], tmp_path)
    assert (run.status, b"1 is a broker's id: use it only for a node that is both broker and" in run.stderr) == (
        0,
        True,
    )
    assert {path.name for path in tmp_path.iterdir()} == {"broker4"}
