"""Groups that no coordinator loads, since the cleaner has removed some of the tombstones that belong together."""

from pathlib import Path

import pytest

from kseg.formats.messages import build_message
from kseg.formats.schemas import OFFSETS_KEYS
from kseg.log.partition import PartitionLog
from kseg.verify.verify import verify_partition
from tests import run
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each

TYPES = {"consumer": (3, 5, 6, 7, 8), "share": (11, 10, 12, 13, 14), "streams": (17, 19, 20, 21, 22)}
"""The types of keys: of a group, a member, the target assignment, a member's target, a member's current assignment."""
GROUP, MEMBER, TARGET, MEMBER_TARGET, CURRENT = range(5)
JOIN = (MEMBER, GROUP, MEMBER_TARGET, TARGET, CURRENT)
LEAVE = (CURRENT, MEMBER_TARGET, MEMBER)
END = (*LEAVE, TARGET, GROUP)
"""Records that a coordinator writes when a member joins or leaves, and when a group is deleted."""


def record(type_: str, what: int, *, is_tombstone: bool) -> NewRecord:
    number = TYPES[type_][what]
    own = {"groupId": "g"} if what in (GROUP, TARGET) else {"groupId": "g", "memberId": "m"}
    key = number.to_bytes(2, "big") + build_message(OFFSETS_KEYS[number], 0, own)
    return NewRecord(key, None if is_tombstone else bytes(20))


def write(directory: Path, type_: str, joined: tuple[int, ...], left: tuple[int, ...]) -> Path:
    records = [record(type_, what, is_tombstone=False) for what in joined]
    records += [record(type_, what, is_tombstone=True) for what in left]
    write_segment(directory / "__consumer_offsets-1", [NewBatch(records)])
    return directory / "__consumer_offsets-1"


@for_each(
    "type_,joined,left,problem",
    [
        (type_, joined, left, problem)
        for type_ in TYPES
        for joined, left, problem in (
            (JOIN, LEAVE, None),
            (JOIN, END, None),
            ((), END, None),
            ((MEMBER, CURRENT), LEAVE, None),
            (
                JOIN,
                (MEMBER_TARGET, MEMBER),
                "the tombstone of member 'm' comes without a tombstone of its current assignment",
            ),
            ((MEMBER,), (MEMBER,), "the tombstone of member 'm' comes without a tombstone of its current assignment"),
            (JOIN, (CURRENT, MEMBER), "the tombstone of member 'm' comes without a tombstone of its target assignment"),
            (JOIN, (TARGET,), "the tombstone of its target assignment comes while that of 1 member is still there"),
            (JOIN, (GROUP,), "its tombstone comes while it still has 1 member"),
            ((MEMBER_TARGET,), (GROUP,), "its tombstone comes while the target assignment of 1 member is still there"),
            ((GROUP, TARGET), (GROUP,), "its tombstone comes without a tombstone of its target assignment"),
        )
    ],
)
def test_tombstone_without_its_companions_is_found(
    type_: str, joined: tuple[int, ...], left: tuple[int, ...], problem: str | None, tmp_path: Path
) -> None:
    partition = write(tmp_path, type_, joined, left)
    lines = run.kseg(["verify", partition.name], tmp_path).stdout.decode().splitlines()
    found = [line.partition(" error group-unloadable: ")[2] for line in lines if " group-unloadable: " in line]
    if problem is None:
        assert found == []
    else:
        (line,) = found
        assert line.endswith(f": group 'g': {problem}")


def test_doctor_and_groups_say_what_brokers_do(tmp_path: Path) -> None:
    write(tmp_path, "consumer", JOIN, (MEMBER_TARGET, MEMBER))
    page = run.kseg(["doctor"], tmp_path).stdout.decode().splitlines()
    assert page[0] == "A broker starts, but doesn't load the groups in 1 partition of __consumer_offsets."
    assert "  next: kseg groups __consumer_offsets-1 -o reset-csv" in page
    noted = run.kseg(["groups", "."], tmp_path).stderr.decode()
    assert "__consumer_offsets-1: offset 6: brokers don't load these groups: group 'g': " in noted


@pytest.mark.parametrize("topic", ["orders", "__consumer_offsets_2"])
def test_other_topics_have_no_groups(topic: str, tmp_path: Path) -> None:
    write(tmp_path, "consumer", JOIN, (MEMBER_TARGET, MEMBER)).rename(tmp_path / f"{topic}-0")
    assert b"group-unloadable" not in run.kseg(["verify", "."], tmp_path).stdout


def test_segment_that_the_cleaner_removes_meanwhile_takes_no_other_finding_along(tmp_path: Path) -> None:
    partition = write(tmp_path, "consumer", JOIN, LEAVE)
    (log,) = partition.glob("*.log")
    log.write_bytes(log.read_bytes()[:-3])
    verified = verify_partition(PartitionLog(partition), on_read=lambda _: log.unlink())
    assert ([finding.id for finding in verified.findings], verified.problems) == (["torn-tail"], ())
