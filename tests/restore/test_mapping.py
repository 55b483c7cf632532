"""The map from old to new offsets: ranges that cover all records, and commits of groups translated by them."""

import random
import shutil
from bisect import bisect_left
from itertools import pairwise
from pathlib import Path

import pytest

from kseg import open as open_partition
from kseg.coordinators.members import OffsetCommit
from kseg.coordinators.offset_map import read_offset_map
from kseg.restore.plan import PlannedPartition
from tests import golden, run
from tests.restore.test_sender import write_partition
from tests.restore.test_source import offsets_of, partition

__all__ = ["partition"]

LOGS = golden.ROOT / "logs" / "4.3.1"


def write_map(root: Path, *options: str) -> Path:
    path = root / "map.csv"
    words = [
        "restore",
        *options,
        "--bootstrap",
        "127.0.0.1:1",
        "--dry-run",
        "-q",
        "--skip-damage",
        "--mapping",
        str(path),
    ]
    ran = run.kseg(words, root)
    assert ran.status in (0, 1), ran.stderr
    return path


def test_ranges_lead_to_the_offsets_of_the_restored_records(partition: PlannedPartition, tmp_path: Path) -> None:
    path = write_map(tmp_path, str(partition.source.log.path))
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    offsets, found = offsets_of(partition), []
    for topic, _, first, end, target_topic, target in rows:
        assert topic == target_topic
        assert int(target) == len(found)
        found += range(int(first), int(end))
    assert found == offsets
    assert rows[-1][2:4] == [str(partition.survey.end_offset)] * 2
    assert all(earlier[3] != later[2] for earlier, later in pairwise(rows[:-1])), "runs are joined"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A disk with a group, and a partition in which it has committed offset 162."""
    write_partition(tmp_path / "disk" / "plain-0", 40, random.Random(5))
    shutil.copytree(LOGS / "__consumer_offsets-1", tmp_path / "disk" / "__consumer_offsets-1")
    return tmp_path


def test_groups_are_reset_to_new_offsets(cluster: Path) -> None:
    path = write_map(cluster, "disk", "--topic-map", "plain=new")
    words = ["groups", "disk", "--group", "g-new-live", "-o", "reset-csv"]
    ran = run.kseg([*words, "--mapping", str(path)], cluster)
    assert b"kseg: commits are omitted, since the map doesn't have their partitions: 4\n" in ran.stderr
    offsets = [each.offset for each in open_partition(cluster / "disk" / "plain-0").records()]
    assert (ran.status, ran.stdout.decode()) == (0, f"new,0,{bisect_left(offsets, 162)}\n")
    assert run.kseg(words, cluster).stdout.startswith(b"plain,0,162\n")


def test_the_map_needs_a_reset_plan_and_a_right_file(cluster: Path) -> None:
    path = cluster / "map.csv"
    path.write_text("a,b\n")
    ran = run.kseg(["groups", "disk", "--mapping", "map.csv"], cluster)
    assert (ran.status, b"--mapping needs -o reset-csv" in ran.stderr) == (2, True)
    ran = run.kseg(["groups", "disk", "--mapping", "map.csv", "-o", "reset-csv"], cluster)
    assert (ran.status, b"map.csv: doesn't begin with topic,partition,firstOffset" in ran.stderr) == (2, True)
    header = "topic,partition,firstOffset,endOffset,targetTopic,targetOffset"
    path.write_text(f"{header}\nplain,0,1\n")
    ran = run.kseg(["groups", "disk", "--mapping", "map.csv", "-o", "reset-csv"], cluster)
    assert (ran.status, b"map.csv: line 2 isn't topic,partition" in ran.stderr) == (2, True)


def test_offsets_outside_of_records_become_the_next_record_or_the_end(tmp_path: Path) -> None:
    path = tmp_path / "map.csv"
    header = "topic,partition,firstOffset,endOffset,targetTopic,targetOffset"
    path.write_text(f"{header}\nt,0,10,20,u,0\nt,0,30,40,u,10\nt,0,50,50,u,20\n")
    offset_map = read_offset_map(path)
    commit = OffsetCommit("g", "t", 0, 0, -1, "", 0, -1, None, 0)
    for offset, expected in {0: 0, 10: 0, 15: 5, 20: 10, 25: 10, 30: 10, 39: 19, 40: 20, 50: 20, 99: 20}.items():
        found = offset_map.translate(commit._replace(offset=offset))
        assert found == commit._replace(topic="u", offset=expected), offset
    assert offset_map.translate(commit._replace(partition=1)) is None


def test_a_directory_is_no_map(cluster: Path) -> None:
    ran = run.kseg(["restore", "disk", "--bootstrap", "127.0.0.1:1", "--dry-run", "--mapping", "."], cluster)
    assert (ran.status, ran.stderr) == (2, b"kseg: --mapping .: it is a directory; specify a file\n")
