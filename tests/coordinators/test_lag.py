"""Lags of groups: the ends of logs next to `__consumer_offsets`, and the starts of share groups."""

import errno
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kseg.coordinators.groups import GroupsView, read_groups
from kseg.coordinators.members import OffsetCommit, SharePartition
from tests import golden
from tests.coordinators.coordinators import (
    OTHER_ID,
    SNAPSHOT,
    TOPIC_ID,
    UPDATE,
    commit,
    share_group,
    share_state,
    share_tombstone,
)
from tests.failing_disk import FailingDisk
from tests.log_files import ABORT, NewBatch, NewRecord, batch_bytes, marker, write_segment

if TYPE_CHECKING:
    from kseg.errors import OpenError


LOGS = golden.ROOT / "logs"
PLAIN = [NewRecord(b"k", b"v")] * 5
OPEN = NewBatch([NewRecord(b"k", b"v")] * 2, 5, producer_id=7, producer_epoch=0, is_transactional=True)


def commits(log_dir: Path, at_ms: int | None = None) -> dict[str, OffsetCommit]:
    """Return the commits of all groups by topic."""
    found = read_groups(log_dir, at_ms).groups
    return {each.topic: each for group in found for each in (*group.commits, *group.pending_commits)}


def write_commits(log_dir: Path, *records: NewRecord) -> None:
    write_segment(log_dir / "__consumer_offsets-0", [NewBatch(records)])


def test_lag_is_what_lies_between_the_commit_and_the_logs_end(tmp_path: Path) -> None:
    write_commits(tmp_path, commit("a", 2), commit("b", 5), commit("c", 9), commit("elsewhere", 1))
    for topic in "abc":
        write_segment(tmp_path / f"{topic}-0", [NewBatch(PLAIN)])
    found = commits(tmp_path)
    assert {topic: each.lag for topic, each in found.items()} == {"a": 3, "b": 0, "c": -4, "elsewhere": None}
    assert found["elsewhere"].known_end is None


def test_an_open_transaction_holds_the_last_stable_offset_back_and_not_the_lag(tmp_path: Path) -> None:
    write_commits(tmp_path, commit("open", 5), commit("ended", 5))
    write_segment(tmp_path / "open-0", [NewBatch(PLAIN), OPEN])
    write_segment(tmp_path / "ended-0", [NewBatch(PLAIN), OPEN, marker(ABORT, OPEN)])
    found = commits(tmp_path)
    assert (found["open"].log_end, found["open"].lag) == ((7, 5, 0), 2)
    assert (found["ended"].log_end, found["ended"].lag) == ((8, 8, 0), 3)


def test_an_empty_active_segment_ends_where_it_begins(tmp_path: Path) -> None:
    write_commits(tmp_path, commit("a", 2))
    write_segment(tmp_path / "a-0", [NewBatch(PLAIN)])
    write_segment(tmp_path / "a-0", [], 12)
    assert commits(tmp_path)["a"].lag == 10


def test_a_groups_lag_is_the_sum_of_lags_that_are_known_and_not_negative(tmp_path: Path) -> None:
    write_commits(
        tmp_path,
        *(commit("a", 2), commit("b", 1)),
        *(commit("a", 4, group="h"), commit("none", 4, group="h")),
        *(commit("a", 20, group="i"), commit("b", 1, group="i")),
        *(commit("a", 20, group="j"), commit("none", 4, group="k")),
        *(commit("a", 5, group="l"), commit("b", 6, group="l"), commit("none", 4, group="l")),
    )
    for topic in "ab":
        write_segment(tmp_path / f"{topic}-0", [NewBatch(PLAIN)])
    found = {group.group: group.lags for group in read_groups(tmp_path).groups}
    assert found == {
        "g": (7, 0, 0),
        "h": (1, 0, 1),
        "i": (4, 1, 0),
        "j": (None, 1, 0),
        "k": (None, 0, 1),
        "l": (0, 1, 1),
    }
    assert {name: lags.text("commit") for name, lags in found.items()} == {
        "g": "7",
        "h": "1, 1 of unknown lag",
        "i": "4, 1 commit beyond the log end",
        "j": "-, 1 commit beyond the log end",
        "k": "-",
        "l": "0, 1 commit beyond the log end, 1 of unknown lag",
    }


def test_a_pending_commit_has_no_lag(tmp_path: Path) -> None:
    pending = NewBatch([commit("a", 2)], 0, producer_id=7, producer_epoch=0, is_transactional=True)
    write_segment(tmp_path / "__consumer_offsets-0", [pending])
    write_segment(tmp_path / "a-0", [NewBatch(PLAIN)])
    found = commits(tmp_path)["a"]
    assert (found.log_end, found.lag) == ((5, 5, 0), None)


def test_lags_of_an_earlier_time_are_not_known(tmp_path: Path) -> None:
    write_commits(tmp_path, commit("a", 2))
    write_segment(tmp_path / "a-0", [NewBatch(PLAIN)])
    assert commits(tmp_path, at_ms=1_800_000_000_000)["a"].lag is None


@pytest.mark.parametrize(("own", "lag"), [(TOPIC_ID, 3), (OTHER_ID, None), (None, 3)])
def test_a_commit_for_a_topic_that_had_the_same_name_has_no_lag(
    own: str | None, lag: int | None, tmp_path: Path
) -> None:
    write_commits(tmp_path, commit("a", 2, topic_id=own))
    write_segment(tmp_path / "a-0", [NewBatch(PLAIN)])
    (tmp_path / "a-0" / "partition.metadata").write_bytes(f"version: 0\ntopic_id: {TOPIC_ID}".encode())
    assert commits(tmp_path)["a"].lag == lag


@pytest.mark.parametrize(
    ("name", "lag"), [("whole", 8), ("torn tail", 8), ("zero tail", 8), ("bad crc", None), ("bad length", None)]
)
def test_a_log_whose_end_is_damaged_has_none(name: str, lag: int | None, tmp_path: Path) -> None:
    write_commits(tmp_path, commit("a", 2))
    log = write_segment(tmp_path / "a-0", [NewBatch(PLAIN)])
    last = batch_bytes(NewBatch(PLAIN, 5))
    flipped = last[:-1] + bytes([last[-1] ^ 1])
    ends = {
        "whole": last,
        "torn tail": last + batch_bytes(NewBatch(PLAIN, 10))[:-3],
        "zero tail": last + bytes(100),
        "bad crc": flipped,
        "bad length": last + last[:8] + bytes(4) + last[12:],
    }
    log.write_bytes(log.read_bytes() + ends[name])
    assert commits(tmp_path)["a"].lag == lag


@pytest.mark.parametrize(("broker", "lag"), [(1, 3), (2, None)])
def test_a_replica_that_is_not_in_sync_tells_nothing(broker: int, lag: int | None, tmp_path: Path) -> None:
    """Only broker 1 is in sync by the cluster metadata."""
    shutil.copytree(LOGS / "4.4.0-made" / "__cluster_metadata-0", tmp_path / "__cluster_metadata-0")
    (tmp_path / "meta.properties").write_text(f"version=1\nnode.id={broker}\ncluster.id=x\n")
    write_commits(tmp_path, commit("gzip", 2), commit("deleted", 2))
    for topic in ("gzip", "deleted"):
        write_segment(tmp_path / f"{topic}-0", [NewBatch(PLAIN)])
    found = commits(tmp_path)
    assert (found["gzip"].lag, found["deleted"].lag) == (lag, None)


def test_of_replicas_the_one_that_ends_last_tells(tmp_path: Path) -> None:
    write_commits(tmp_path / "1", commit("a", 2))
    write_segment(tmp_path / "1" / "a-0", [NewBatch(PLAIN)])
    write_segment(tmp_path / "2" / "a-0", [NewBatch(PLAIN), NewBatch(PLAIN, 5)])
    assert commits(tmp_path)["a"].lag == 8


def test_names_that_lead_elsewhere_are_not_followed(tmp_path: Path) -> None:
    write_commits(tmp_path / "disk", commit("../secret", 2), commit("a/../../secret", 2))
    write_segment(tmp_path / "secret-0", [NewBatch(PLAIN)])
    assert {each.lag for each in commits(tmp_path / "disk").values()} == {None}


# --- share groups ----------------------------------------------------------------------------------------------------


def share_partitions(view: GroupsView) -> list[SharePartition]:
    return [each for group in view.groups for each in group.share_partitions]


def states(log_dir: Path, *records: NewRecord, at_ms: int | None = None) -> list[tuple[int | None, int | None]]:
    """Return start offsets and lags of the partitions 0 and 1 of a share group, after some records of their states."""
    write_segment(log_dir / "__consumer_offsets-0", [NewBatch(share_group("g", 1, 0))])
    write_segment(log_dir / "__share_group_state-0", [NewBatch(records)])
    write_segment(log_dir / "t-0", [NewBatch(PLAIN)])
    write_segment(log_dir / "t-1", [NewBatch(PLAIN)])
    return [(each.start_offset, each.lag) for each in share_partitions(read_groups(log_dir, at_ms))]


def test_share_groups_begin_where_their_last_snapshot_and_its_updates_say(tmp_path: Path) -> None:
    snapshot, other = share_state(SNAPSHOT, 0, 1, 0), share_state(SNAPSHOT, 1, 2, 1)
    assert states(tmp_path, snapshot, other) == [(1, 4), (2, 2)]
    assert states(tmp_path, snapshot, share_state(UPDATE, 0, -1, 2), other) == [(1, 2), (2, 2)]
    assert states(tmp_path, snapshot, share_state(UPDATE, 0, 3, 0), share_state(UPDATE, 0, -1, 1)) == [
        (3, 1),
        (None, None),
    ]
    assert states(tmp_path, share_state(UPDATE, 0, 3, 0), snapshot) == [(1, 4), (None, None)]
    assert states(tmp_path, snapshot, share_state(SNAPSHOT, 0, 4, 0, group="other"), share_tombstone(0)) == [
        (None, None),
        (None, None),
    ]


AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ((), 10),
        ([(10, 14, ACKNOWLEDGED, 1)], 15),
        ([(11, 14, ACKNOWLEDGED, 1)], 10),
        ([(10, 14, AVAILABLE, 1)], 10),
        ([(10, 12, ACKNOWLEDGED, 1), (13, 13, ARCHIVED, 5), (14, 20, ACKNOWLEDGED, 2)], 21),
        ([(10, 12, ACKNOWLEDGED, 1), (14, 20, ACKNOWLEDGED, 1)], 13),
        ([(10, 20, AVAILABLE, 1), (12, 20, ACKNOWLEDGED, 2), (10, 11, ARCHIVED, 2)], 21),
        ([(10, 20, ACKNOWLEDGED, 1), (12, 13, AVAILABLE, 2)], 12),
        ([(0, 30, ACKNOWLEDGED, 1)], 31),
        ([(10, 14, 9, 1)], 10),
    ],
)
def test_share_groups_continue_with_the_first_record_that_is_not_finished(
    batches: list[tuple[int, int, int, int]], expected: int, tmp_path: Path
) -> None:
    half = len(batches) // 2
    snapshot = share_state(SNAPSHOT, 0, 10, 0, *batches[:half])
    states(tmp_path, snapshot, share_state(UPDATE, 0, -1, 0, *batches[half:]))
    found = {each.partition: each for each in share_partitions(read_groups(tmp_path))}
    assert (found[0].start_offset, found[0].first_unfinished) == (10, expected)


def test_a_share_partition_that_nobody_read_has_no_start_offset(tmp_path: Path) -> None:
    assert states(tmp_path, share_state(SNAPSHOT, 0), share_state(SNAPSHOT, 1, 3, -1)) == [(None, None), (3, None)]


def test_share_groups_of_an_earlier_time_have_start_offsets_of_then(tmp_path: Path) -> None:
    begun = PLAIN[0].timestamp
    records = [share_state(SNAPSHOT, 0, 1, 0, timestamp=begun), share_state(UPDATE, 0, 3, 0, timestamp=begun + 1000)]
    assert states(tmp_path, *records, at_ms=begun + 999)[0] == (1, None)
    assert states(tmp_path, *records, at_ms=begun + 1000)[0] == (3, None)


def test_a_state_that_may_be_newer_than_what_can_be_read_is_not_known(tmp_path: Path) -> None:
    states(tmp_path, share_state(SNAPSHOT, 0, 1, 0))
    log = tmp_path / "__share_group_state-0" / f"{0:020}.log"
    torn = log.read_bytes() + batch_bytes(NewBatch([share_state(UPDATE, 0, 3, 0)], 1))[:-3]
    log.write_bytes(torn)
    assert [each.start_offset for each in share_partitions(read_groups(tmp_path))] == [1, None]
    raw = batch_bytes(NewBatch([share_state(UPDATE, 0, 3, 0)], 1))
    log.write_bytes(batch_bytes(NewBatch([share_state(SNAPSHOT, 0, 1, 0)])) + raw[:-1] + bytes([raw[-1] ^ 1]))
    view = read_groups(tmp_path)
    assert [each.start_offset for each in share_partitions(view)] == [None, None]
    assert [each.line() for each in view.unreadable] == [
        "__share_group_state-0: offset 1: the CRC of its batch is wrong"
    ]


@pytest.mark.parametrize("name", ["a-0", "__share_group_state-0"])
def test_directories_that_can_not_be_listed_tell_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states(tmp_path, share_state(SNAPSHOT, 0, 1, 0))
    records = [*share_group("g", 1, 0), commit("a", 2)]
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch(records)])
    write_segment(tmp_path / "a-0", [NewBatch(PLAIN)])
    scandir = os.scandir

    def refuse(path: str | Path) -> Any:
        if Path(path).name == name:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    refused: list[OpenError] = []
    (group,) = read_groups(tmp_path, None, refused.append).groups
    assert [Path(str(error.path)).name for error in refused] == [name]
    assert group.commits[0].lag == (None if name == "a-0" else 3)
    assert group.share_partitions[0].start_offset == (1 if name == "a-0" else None)


def test_a_state_that_can_not_be_opened_is_reported(tmp_path: Path, failing_disk: FailingDisk) -> None:
    states(tmp_path, share_state(SNAPSHOT, 0, 1, 0))
    failing_disk.lose_file(tmp_path / "__share_group_state-0" / f"{0:020}.log")
    view = read_groups(tmp_path)
    assert [each.start_offset for each in share_partitions(view)] == [None, None]
    assert [each.directory for each in view.unreadable] == ["__share_group_state-0"]


def test_a_key_of_an_unknown_type_is_reported(tmp_path: Path) -> None:
    states(tmp_path, NewRecord(b"\0\7", b"\0\0"))
    (line,) = (each.line() for each in read_groups(tmp_path).unreadable)
    assert line == "__share_group_state-0: key of unknown type 7"
