"""The changes of every metadata log lead from the state that it begins with to the state at its end."""

import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kseg.cluster.change_log import ChangeChoice, MetadataChanges, read_changes
from kseg.cluster.metadata import MetadataReplay, Until
from kseg.cluster.metadata_changes import Change, Thing, changes_between, in_order, key_of
from kseg.cluster.metadata_copy import read_cluster_metadata
from kseg.cluster.model import ClusterMetadata, ClusterPartition, Feature, Topic
from tests import golden
from tests.commands.test_metadata_changes import config, log_of
from tests.loops import for_each
from tests.run import kseg

LOGS = sorted({path.parent for path in golden.files(".log") if path.parent.name == "__cluster_metadata-0"})
STARTS = sorted((golden.ROOT / "start").glob("base-*.tar.gz"))
State = dict[tuple[type, object], Any]


def state_of(found: ClusterMetadata) -> State:
    """All that can change, by kind and key; epochs that each record raises, and partitions of topics, are omitted."""
    kraft = (Feature("kraft.version", found.kraft_version),) if found.kraft_version else ()
    things = (
        *found.features, *kraft, *found.voters, *found.controllers, *found.brokers, *found.partitions, *found.configs,
        *found.acls, *found.quotas, *found.scram, *found.tokens, *found.topics,
    )  # fmt: skip
    return {(type(thing), key_of(thing)): comparable(thing) for thing in things}


def comparable(thing: Any) -> Any:
    if isinstance(thing, ClusterPartition):
        return thing._replace(partition_epoch=0)
    return thing._replace(partitions=()) if isinstance(thing, Topic) else in_order(thing)


def sort_members(change: Change) -> Change:
    """A change that is the same from a snapshot as from the log."""
    before, after = (None if each is None else in_order(each) for each in (change.before, change.after))
    return replace(change, before=before, after=after, configs=tuple(sorted(change.configs)))


def apply_change(state: State, change: Change) -> None:
    """Does what a change says; it has to begin with what is there."""
    before, after = change.before, change.after
    key = type(change.thing), key_of(change.thing)
    assert state.pop(key, None) == (None if before is None else comparable(before))
    if after is not None:
        state[key] = comparable(after)
    if isinstance(change.thing, Topic) and None in (before, after):
        parts: tuple[Thing, ...] = (*change.thing.partitions, *change.configs)
        for thing in parts:
            apply_change(state, Change(thing if before else None, thing if after else None))


def base_of(path: Path, changes: MetadataChanges) -> ClusterMetadata:
    if changes.base is not None:
        return read_cluster_metadata(path, Until(offset=changes.base.end_offset - 1))
    first = read_cluster_metadata(path, Until(offset=-1))  # what it was formatted with, if that is in a snapshot
    return first if first.checkpoint else MetadataReplay().result(None, None)


def check(path: Path) -> int:
    """Compares the states that changes lead to with those that the metadata has."""
    changes = read_changes(path)
    found = list(changes)
    assert changes.end_state.missing_before is None
    assert [change.offset for change in found] == sorted(change.offset for change in found)
    base, end = base_of(path, changes), read_cluster_metadata(path)
    wanted = state_of(end if end.kraft_version else replace(end, voters=()))  # static ones are in no record
    for steps in (found, changes_between(base, changes.end_state)):
        state = state_of(base)
        for change in steps:
            apply_change(state, change)
        assert state == wanted
    return len(found)


@for_each("path", LOGS, ids=lambda path: path.parts[-2])
def test_changes_lead_from_the_first_state_to_the_last(path: Path) -> None:
    assert check(path) > 0


@for_each("path", LOGS, ids=lambda path: path.parts[-2])
def test_changes_from_a_time_on_are_the_later_ones_of_all(path: Path) -> None:
    found = [sort_members(change) for change in read_changes(path)]
    for from_ms in sorted({change.timestamp for change in found})[::7]:
        later = read_changes(path, ChangeChoice(from_ms=from_ms, to_ms=from_ms + 5000))
        assert [*map(sort_members, later)] == [
            change for change in found if from_ms <= change.timestamp < from_ms + 5000
        ]
        assert later.base is None or later.base.last_timestamp < from_ms


def test_a_time_on_is_read_from_the_last_snapshot_before_it() -> None:
    path = golden.ROOT / "logs/3.3.2/__cluster_metadata-0"
    bases = set()
    for from_ms in (None, 0, 2**62):
        changes = read_changes(path, ChangeChoice(from_ms=from_ms))
        assert (len(list(changes)) > 0) == (from_ms != 2**62)
        assert changes.base is not None
        bases.add((from_ms, changes.base.name[:20]))
    first, *_, last = sorted(each.name[:20] for each in path.glob("*.checkpoint"))
    assert bases == {(None, first), (0, first), (2**62, last)}


@for_each("archive", STARTS, ids=lambda path: path.name)
def test_changes_of_nodes_that_were_started(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    for path in tmp_path.rglob("__cluster_metadata-0"):
        check(path)


COMMITTED, TAIL = ("10", "20"), ("30", "40")


def voter_disks(work: Path, *ends: int) -> list[Path]:
    """Log directories of voters 1 to 3, whose copies of one log have so many of its batches."""
    batches = [[config("log.cleaner.threads", value, "", 4)] for value in (*COMMITTED, *TAIL)]
    disks = []
    for number, end in enumerate(ends, 1):
        disk = work / f"disk-{number}"
        log = log_of(disk, *batches[:end])
        (disk / "meta.properties").write_text(f"version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\nnode.id={number}\n")
        state = {"leaderId": 1, "leaderEpoch": 1, "votedId": -1, "clusterId": "", "appliedOffset": 0, "data_version": 0}
        voters = [{"voterId": voter} for voter in (1, 2, 3)]
        (log / "quorum-state").write_text(json.dumps({**state, "currentVoters": voters}))
        disks.append(disk)
    return disks


@pytest.mark.parametrize(
    ("ends", "committed_end", "uncommitted"),
    [((4, 2, 2), 2, 2), ((4, 4, 2), 4, 0), ((4, 3), 3, 1), ((4,), None, 0), ((2, 4, 3), 3, 1)],
)
def test_changes_that_most_voters_do_not_have_are_counted(
    ends: tuple[int, ...], committed_end: int | None, uncommitted: int, tmp_path: Path
) -> None:
    disks = voter_disks(tmp_path, *ends)
    changes = read_changes(disks)
    assert len(list(changes)) == max(ends)
    assert (changes.committed_end, changes.uncommitted) == (committed_end, uncommitted)
    ran = kseg(["metadata", "--changes", *map(str, disks)], tmp_path)
    assert ran.status == 0
    said = f"at offset {committed_end} or later, which most voters don't have".encode()
    assert (said in ran.stderr) == (uncommitted > 0)
