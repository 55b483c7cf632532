"""`retain --free`: the advised settings free the stated amount with `retain`; longer retention wouldn't."""

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.log.freeing import FreeablePartition, FreeingPlan, plan_freeing
from kseg.log.segments import RetainedSegment, RetentionSettings
from tests import golden, run
from tests.cluster.made_metadata import BROKER, TOPIC, Setting, write_metadata
from tests.kernel.made import Message
from tests.log.aged_logs import DAY, Topics, write_disk
from tests.log.cleaner_logs import NOW


def retain(directory: Path, *arguments: str) -> list[dict[str, Any]]:
    ran = run.kseg(["retain", ".", "--now", f"{NOW}ms", "-o", "json", *arguments], directory)
    assert not [line for line in ran.stderr.splitlines() if b"retention deletes nothing" not in line]
    return [json.loads(line) for line in ran.stdout.splitlines()]


def of_type(kind: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["type"] == kind]


def freed_of(directory: Path, topic: str, *arguments: str) -> tuple[int, int]:
    """Return segments and bytes of a topic that `retain` would delete."""
    (row,) = of_type("total", retain(directory, "--topic", topic, *arguments)) or [{}]
    return row["segmentsToDelete"], row["bytesToDelete"]


UNEVEN: Topics = {
    "large": [(6, 5, 4, 3, 2, 0), (6, 4.5, 3.5, 2.5, 0)],
    "small": [(6.5, 1, 0)],
    "young": [(0.2, 0.1, 0)],
    "gone": [(9, 8, 0)],
}


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_disk(tmp_path_factory.mktemp("disk"), UNEVEN)


def test_what_is_deletable_now_counts(disk: Path) -> None:
    rows = retain(disk, "--free", "4KB")
    (plan,) = of_type("plan", rows)
    assert (plan["segmentsDeletableNow"], plan["isEnough"], plan["ageMs"]) == (2, True, None)
    assert plan["bytesDeletableNow"] == plan["freedBytes"] > 4000
    assert of_type("lowered", rows) == []


@pytest.mark.parametrize("wanted", [5000, 7000, 12_000, 17_000, 22_000, 25_000])
def test_lowering_as_advised_frees_what_is_said(wanted: int, disk: Path) -> None:
    rows = retain(disk, "--free", str(wanted))
    (plan,) = of_type("plan", rows)
    lowered = of_type("lowered", rows)
    assert plan["isEnough"]
    assert plan["freedBytes"] >= wanted
    assert plan["freedBytes"] == plan["bytesDeletableNow"] + sum(each["bytes"] for each in lowered)
    for each in lowered:
        name, value = shlex.split(each["command"])[-1].split("=")
        assert (name, int(value), each["beforeMs"]) == ("retention.ms", each["afterMs"], 7 * DAY)
        now = freed_of(disk, each["topic"])
        then = freed_of(disk, each["topic"], "--retention-ms", value)
        assert (then[0] - now[0], then[1] - now[1]) == (each["segments"], each["bytes"])


def test_topics_that_are_not_needed_are_left_alone(disk: Path) -> None:
    lowered = of_type("lowered", retain(disk, "--free", "11KB"))
    assert [each["topic"] for each in lowered] == ["large"]


@pytest.mark.parametrize(("wanted", "hours"), [(8000, 5 * 24), (9000, 5 * 24 - 1), (11_000, 4 * 24)])
def test_age_is_a_whole_number_of_days_or_hours_if_no_more_goes_thereby(wanted: int, hours: int, disk: Path) -> None:
    """Segments of 6 days go at 5 days. Segments of 5 days would go at 4 days only together with those of 4.5."""
    (plan,) = of_type("plan", retain(disk, "--free", str(wanted)))
    assert plan["ageMs"] == hours * DAY // 24


def test_a_share_is_of_all_bytes_of_the_logs(disk: Path) -> None:
    total = sum(path.stat().st_size for path in disk.glob("*/*.log"))
    (share,) = of_type("plan", retain(disk, "--free", "20%"))
    assert share["wantedBytes"] == -(-total // 5)
    assert share["wantedOf"] == "logs"
    shown = run.kseg(["retain", ".", "--now", f"{NOW}ms", "--free", "20%"], disk).stdout.decode()
    assert ", 20% of the logs (" in shown.splitlines()[0]
    assert run.kseg(["retain", ".", "--now", f"{NOW}ms", "--free", "0%"], disk).status == 2


def test_a_share_of_the_disk_is_of_its_size(disk: Path) -> None:
    (plan,) = of_type("plan", retain(disk, "--free", "disk:20%"))
    status = os.statvfs(disk)
    usable = status.f_blocks - status.f_bfree + status.f_bavail
    assert plan["wantedBytes"] == pytest.approx(usable * status.f_frsize / 5, rel=0.02)
    assert plan["wantedOf"] == "disk"
    shown = run.kseg(["retain", ".", "--now", f"{NOW}ms", "--free", "disk:20%"], disk).stdout.decode()
    assert ", 20% of the disk (" in shown.splitlines()[0]


def test_too_much_ends_with_1_and_says_how_much_can_be_freed(disk: Path) -> None:
    ran = run.kseg(["retain", ".", "--now", f"{NOW}ms", "--free", "50GB"], disk)
    assert (ran.status, b"kafka-configs" in ran.stdout) == (1, False)
    assert b"Can't free 46.6 GiB: at most " in ran.stdout
    (plan,) = of_type("plan", retain(disk, "--free", "50GB"))
    assert not plan["isEnough"]
    (most,) = of_type("plan", retain(disk, "--free", str(plan["mostBytes"])))
    assert most["isEnough"]
    assert most["freedBytes"] == plan["mostBytes"]
    assert f"; specify --free {plan['mostBytes']} instead to print the steps\n".encode() in ran.stdout


def test_too_much_refers_to_no_steps_if_everything_is_deletable_now(disk: Path) -> None:
    ran = run.kseg(["retain", ".", "--now", "2100-01-01", "--free", "50GB"], disk)
    assert b" in closed segments, which are deletable now\n" in ran.stdout
    assert b"--free" not in ran.stdout


def test_segment_of_a_time_to_come_is_named_with_what_it_keeps(tmp_path: Path) -> None:
    disk = write_disk(tmp_path, {"pinned": [(6, -300, 5, 4, 0)], "free": [(3, 2, 0)]})
    rows = retain(disk, "--free", "4KB")
    (pinned,) = of_type("pinned", rows)
    assert (pinned["directory"], pinned["baseOffset"]) == ("pinned-0", 1)
    assert pinned["largestTimestamp"] == NOW + 300 * DAY
    (plan,) = of_type("plan", rows)
    left = ("--retention-ms", str(plan["ageMs"]), "--retention-bytes", str(pinned["retentionBytes"]))
    assert freed_of(disk, "pinned", *left)[0] == 4  # 6 days, the future timestamp, 5 and 4 days
    shown = run.kseg(["retain", ".", "--now", f"{NOW}ms", "--free", "4KB"], disk).stdout.decode()
    assert "pinned-0: segment 1 has a timestamp in the future, 20" in shown
    assert not pinned["isDatedByFile"]


def test_file_time_of_a_segment_without_timestamps_is_not_called_a_record_timestamp(tmp_path: Path) -> None:
    """v0 records have none; Kafka takes the file's time. Source: LogSegment.largestTimestamp."""
    log = tmp_path / "old-0" / f"{0:020}.log"
    log.parent.mkdir()
    for number in range(2):
        entry = Message(value=b"value", offset=number, magic=0).encode()
        log.with_name(f"{number:020}.log").write_bytes(entry)
    os.utime(log, (NOW // 1000 + 86_400,) * 2)
    (pinned,) = of_type("pinned", retain(tmp_path, "--free", "4KB"))
    assert pinned["isDatedByFile"]
    shown = run.kseg(["retain", ".", "--now", f"{NOW}ms", "--free", "4KB"], tmp_path).stdout.decode()
    assert "segment 0 has no timestamps, and its file's modification time is in the future, 20" in shown


def test_compacted_and_internal_topics_are_left_alone() -> None:
    """The settings are those of 4.3.1's metadata."""
    ran = run.kseg(["retain", "logs/4.3.1", "--now", "2030-01-01", "--free", "1TB", "-o", "json"], golden.ROOT)
    (plan,) = of_type("plan", [json.loads(line) for line in ran.stdout.splitlines()])
    ran = run.kseg(["retain", "logs/4.3.1", "--now", "2030-01-01", "-o", "json"], golden.ROOT)
    (total,) = of_type("total", [json.loads(line) for line in ran.stdout.splitlines()])
    assert plan["mostBytes"] == plan["bytesDeletableNow"] == total["bytesToDelete"]


@pytest.mark.parametrize(
    ("setting", "change"),
    [
        ((BROKER, "", "log.retention.hours", "48"), "--delete-config retention.ms"),
        ((TOPIC, "large", "retention.ms", "172800000"), "--add-config retention.ms=172800000"),
    ],
    ids=["broker", "topic"],
)
def test_undo_restores_what_the_topic_itself_had(setting: Setting, change: str, tmp_path: Path) -> None:
    write_disk(tmp_path, {"large": [(1.9, 1, 0)]})
    write_metadata(tmp_path, {"large": "cJFU-m2vQ6uCEEqPGgnDXw"}, [setting])
    (lowered,) = of_type("lowered", retain(tmp_path, "--free", "2KB"))
    assert (lowered["beforeMs"], lowered["undo"].partition("--entity-name ")[2]) == (172_800_000, f"large {change}")


def test_other_forms_and_a_copy_are_refused(disk: Path) -> None:
    for arguments in (["-o", "timeline"], ["--to", "new"]):
        ran = run.kseg(["retain", "large-0", "--free", "1KB", *arguments], disk)
        assert (ran.status, ran.stdout) == (2, b"")
    assert not os.path.lexists(disk / "new")


# --- any plan ---------------------------------------------------------------------------------------------------------

AGES = st.lists(st.integers(-5, 40), min_size=1, max_size=6)
LIMITS = st.sampled_from([-1, 0, 10, 25])


@st.composite
def partitions(draw: st.DrawFn) -> list[FreeablePartition]:
    """Draw partitions of up to four topics, whose segments have any ages in days and any sizes."""
    found = []
    for topic in "abcd"[: draw(st.integers(1, 4))]:
        limit, setting = draw(LIMITS), draw(st.sampled_from(["retention.ms", None]))
        for number in range(draw(st.integers(1, 2))):
            ages = draw(AGES)
            segments = tuple(
                RetainedSegment(draw(st.integers(0, 9)), NOW - age * DAY, slot + 1) for slot, age in enumerate(ages)
            )
            settings = RetentionSettings(NOW, limit * DAY if limit >= 0 else -1)
            part = FreeablePartition(
                topic, f"{topic}-{number}", tuple(range(len(ages))), segments, settings, 0, None, 0, 0, setting
            )
            going = part.going(settings.retention_ms) if limit >= 0 else []
            found.append(part._replace(size_now=sum(each.size for each in going), segments_now=len(going)))
    return found


def freed_bytes(parts: Sequence[FreeablePartition], limits: dict[str, int]) -> int:
    """Return bytes that these limits of topics delete, with the others' present limits."""
    return sum(
        sum(each.size for each in part.going(limits[part.topic])) if part.topic in limits else part.size_now
        for part in parts
    )


@settings(max_examples=300)
@given(partitions(), st.integers(1, 60))
def test_plan_frees_what_it_says_with_the_greatest_age(parts: list[FreeablePartition], wanted: int) -> None:
    plan: FreeingPlan = plan_freeing(parts, wanted)
    limits = {each.topic: each.after for each in plan.lowered}
    open_topics = {part.topic for part in parts if part.setting is not None}
    assert limits.keys() <= open_topics
    assert freed_bytes(parts, limits) == plan.size
    assert plan.is_enough is (wanted <= plan.most_size)
    if not plan.lowered:
        return
    assert plan.age_ms is not None
    least = freed_bytes(parts, dict.fromkeys(open_topics, plan.age_ms))
    ages = {age - 1 for part in parts if part.setting is not None for age in part.ages() if age - 1 > plan.age_ms}
    for age in ages:
        frees = freed_bytes(parts, dict.fromkeys(open_topics, age))
        assert frees < wanted or frees == least
    for topic in limits:
        others = {name: age for name, age in limits.items() if name != topic}
        assert freed_bytes(parts, others) < wanted  # each one is needed
