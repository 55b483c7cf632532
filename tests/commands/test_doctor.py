"""`kseg doctor` as its user sees it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kseg.doctor.check_up import disk_troubles
from kseg.doctor.examination import Disk
from kseg.doctor.kinds import CARE, KINDS, OWN, Place
from tests import golden
from tests.commands.made_transactions import COMPLETE_ABORT, write_coordinator, write_two
from tests.coordinators.coordinators import commit
from tests.log import edits
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import some_of_each
from tests.run import kseg
from tests.terminal import STYLE, in_terminal

DAY = 86_400_000
NOW = 1_790_000_000_000
"""September 2026."""
AT_NOW = ("--now", f"{NOW}ms")
DAMAGED = "damaged/210-wiped-batch"
WHOLE = "docs/test-1-0"


def batch(offset: int, timestamp: int, producer_id: int = -1) -> NewBatch:
    return NewBatch([NewRecord(None, b"v", timestamp)], offset, producer_id, 0)


def objects(arguments: Sequence[str], directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in kseg(["doctor", "-o", "json", *arguments], directory).stdout.splitlines()]


def findings(arguments: Sequence[str], directory: Path) -> dict[str, dict[str, Any]]:
    """Return findings by id; of several the first."""
    found: dict[str, dict[str, Any]] = {}
    for each in objects([*AT_NOW, *arguments], directory):
        if each["type"] == "finding":
            found.setdefault(each["id"], each)
    return found


# --- the page ---------------------------------------------------------------------------------------------------------


def test_verdict_and_the_worst_stand_first(restored: Path) -> None:
    ran = kseg(["doctor", DAMAGED, *AT_NOW], restored)
    lines = ran.stdout.decode().splitlines()
    assert (ran.status, ran.stderr) == (1, b"")
    assert lines[0] == "A broker starts, but loses up to 31 records of 1 partition."
    assert lines[1].startswith("assumed: ")
    assert lines[2] == "1 error, 0 warnings in 1 partition, 1.1 KiB"
    assert lines[5] == "error bad-length"
    assert f"  {DAMAGED}/00000000000000021933.log: at position 237: length field is 0" in "\n".join(lines)
    assert f"  next: kseg salvage {DAMAGED} --dry-run" in lines


def test_some_partitions_alone_are_examined(restored: Path) -> None:
    found = objects(["logs/2.3.1", "--topic", "v1-*", "--partition", "0"], restored)
    assert {each["topic"] for each in found if each["type"] == "topic"} <= {"v1-gzip", "v1-plain"}
    refused = kseg(["doctor", "logs/2.3.1", "--topic", "none"], restored)
    assert refused.status == 2
    assert b"no such partition here" in refused.stderr


def test_commits_beyond_the_log_end_are_found(tmp_path: Path) -> None:
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch([commit("a", 20), commit("b", 1)])])
    for topic in "ab":
        write_segment(tmp_path / f"{topic}-0", [batch(0, NOW)])
    found = findings(["."], tmp_path)["commit-beyond-end"]
    assert (found["severity"], found["topic"], found["partition"]) == ("warning", "a", 0)
    assert found["sentence"] == "group g: a-0: committed offset 20 is beyond the log end 1"
    assert found["command"] == "kseg groups . --show commits"
    assert kseg(shlex.split(found["command"])[1:], tmp_path).status == 0
    assert kseg(["doctor", "."], tmp_path).status == 1
    assert "commit-beyond-end" not in findings([".", "--topic", "b"], tmp_path)
    assert "commit-beyond-end" not in findings([".", "--quick"], tmp_path)


def test_nothing_wrong_is_said(restored: Path) -> None:
    ran = kseg(["doctor", "logs/3.6.2/plain-1", "--now", "2026-11-22"], restored)
    assert (ran.status, ran.stderr) == (0, b"")
    start, _, verdict = ran.stdout.decode().splitlines()[:3]
    assert start == "A broker would start without problems."
    assert verdict.startswith("no problems in 1 partition, ")


def test_what_is_not_examined_is_named(tmp_path: Path) -> None:
    write_segment(tmp_path / "logs/orders-0", [batch(0, NOW)])
    (tmp_path / "logs/orders-7").symlink_to("/nowhere/orders-7")
    os.mkfifo(tmp_path / "logs/orders-8")
    assert kseg(["doctor", "logs", *AT_NOW], tmp_path).stderr == b"kseg: logs: skipped: orders-7, orders-8\n"
    assert kseg(["doctor", "logs", "-q", *AT_NOW], tmp_path).stderr == b""


def test_current_directory_is_the_default(restored: Path) -> None:
    assert b"bad-length" in kseg(["doctor"], restored / DAMAGED).stdout


def test_path_that_is_not_there_gets_no_verdict(tmp_path: Path) -> None:
    ran = kseg(["doctor", "none"], tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    assert b"none: no such file or directory" in ran.stderr


def test_others_are_examined_still(restored: Path) -> None:
    ran = kseg(["doctor", "none", "logs/3.6.2/plain-1"], restored)
    assert ran.status == 2
    start, _, verdict = ran.stdout.decode().splitlines()[:3]
    assert start == "A broker would start without problems, as far as kseg read."
    assert verdict.startswith("no problems found so far in 1 partition")


def test_errors_come_before_warnings_and_notes(restored: Path) -> None:
    severities = [each["severity"] for each in objects(["damaged", "logs/2.4.1-live"], restored) if "severity" in each]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert set(severities) == {"error", "warning", "note"}


def test_first_screen_has_colours_and_what_to_do(restored: Path) -> None:
    text = in_terminal(restored, "doctor", DAMAGED, *AT_NOW, columns=80)
    screen = text.splitlines()[:24]
    assert screen[0].startswith("\x1b[1;31mA broker starts, but loses")
    assert any(line.startswith("\x1b[1;31m1 error, 0 warnings\x1b[0m in ") for line in screen)
    assert "\x1b[1;31merror bad-length\x1b[0m" in screen
    assert any("kseg salvage" in line for line in screen)
    folded = STYLE.sub("", text).split()
    assert folded == kseg(["doctor", DAMAGED, *AT_NOW], restored).stdout.decode().split()


def test_terminal_gets_a_pager_that_begins_with_the_verdict(restored: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    in_terminal(restored, "doctor", DAMAGED, KSEG_PAGER=f"tee {seen}")
    assert STYLE.sub("", seen.read_text()).startswith("A broker starts, but loses up to 31 records")


def make_many(root: Path, count: int) -> None:
    """Write a log directory of many partitions, all damaged alike, and one in another way."""
    source = shutil.copytree(golden.ROOT / DAMAGED, root.parent / "one")
    for number in range(count):
        shutil.copytree(source, root / f"orders-{number}", copy_function=os.link)
    shutil.copytree(golden.ROOT / "damaged" / "003-torn-records", root / "torn-0")


def test_a_thousand_partitions_stay_one_page(tmp_path: Path) -> None:
    make_many(tmp_path / "disk", 1000)
    lines = kseg(["doctor", "disk", "-j", "1"], tmp_path).stdout.decode().splitlines()
    assert lines[0] == "A broker starts, but loses up to 31000 records of 1000 partitions."
    assert lines[2].startswith("1000 errors, 1 warning in 1001 partitions")
    assert "error bad-length: 1000 in 1000 partitions" in lines
    assert "  and 997 more; -v lists them" in lines
    assert len(lines) < 40


def next_steps(arguments: Sequence[str], directory: Path) -> list[str]:
    """Return the page's next steps for damaged partitions of the topic `orders`."""
    lines = [line.strip() for line in kseg(["doctor", *arguments], directory).stdout.decode().splitlines()]
    return [line for line in lines if re.match("next[,:]", line) and "orders" in line]


def find_salvaged(step: str, directory: Path) -> set[str]:
    """Return the partitions that a step's command reads."""
    ran = kseg([*shlex.split(step.partition(": kseg ")[2]), "-o", "json"], directory)
    assert ran.status in (0, 1)
    objects = map(json.loads, ran.stdout.splitlines())
    return {str(each["name"]) for each in objects if "name" in each}


def test_verbose_names_every_place(tmp_path: Path) -> None:
    make_many(tmp_path / "disk", 5)
    printed = kseg(["doctor", "-v", "disk"], tmp_path).stdout.decode()
    assert all(f"disk/orders-{number}/" in printed for number in range(5))


@pytest.mark.parametrize("options", [(), ("-v",), ("-q",)])
def test_steps_that_differ_in_the_partition_alone_are_one(options: tuple[str, ...], tmp_path: Path) -> None:
    make_many(tmp_path / "disk", 50)
    shutil.copytree(golden.ROOT / WHOLE, tmp_path / "disk" / "test-1-0")
    (step,) = next_steps([*options, "disk"], tmp_path)
    assert step == "next, for 50 partitions: kseg salvage disk --topic orders --partition 0-49 --dry-run"
    assert find_salvaged(step, tmp_path) == {f"orders-{number}" for number in range(50)}


def test_few_partitions_of_a_step_are_named_by_their_directories(tmp_path: Path) -> None:
    make_many(tmp_path / "disk", 2)
    (step,) = next_steps(["disk"], tmp_path)
    assert step == "next, for 2 partitions: kseg salvage disk/orders-0 disk/orders-1 --dry-run"
    assert find_salvaged(step, tmp_path) == {"orders-0", "orders-1"}


def test_a_joined_step_chooses_the_partitions_that_it_is_for(tmp_path: Path) -> None:
    make_many(tmp_path / "disk", 8)
    for number in (1, 6):
        shutil.rmtree(tmp_path / "disk" / f"orders-{number}")
        shutil.copytree(golden.ROOT / WHOLE, tmp_path / "disk" / f"orders-{number}")
    (step,) = next_steps(["disk"], tmp_path)
    assert step == "next, for 6 partitions: kseg salvage disk --topic orders --partition 0,2-5,7 --dry-run"


def test_copies_in_several_log_directories_have_a_step_each(tmp_path: Path) -> None:
    """If given together, they would be read as copies of the same partitions."""
    make_many(tmp_path / "disk1", 4)
    shutil.copytree(tmp_path / "disk1", tmp_path / "disk2")
    assert next_steps(["disk1", "disk2"], tmp_path) == [
        f"next, for 4 partitions: kseg salvage {disk} --topic orders --partition 0-3 --dry-run"
        for disk in ("disk1", "disk2")
    ]


def test_json_has_findings_disks_topics_and_a_summary(restored: Path) -> None:
    found = objects([DAMAGED], restored)
    assert list(found[0]) == [
        "type",
        "id",
        "severity",
        "file",
        "topic",
        "partition",
        "position",
        "firstOffset",
        "lastOffset",
        "producerId",
        "bytes",
        "heldBack",
        "records",
        "sentence",
        "command",
    ]
    assert [each["type"] for each in found if each["type"] != "finding"] == ["disk", "topic", "summary"]
    summary = found[-1]
    assert (summary["result"], summary["errors"], summary["bytesRead"]) == ("findings", 1, 1143)


def test_quiet_leaves_only_what_is_wrong(restored: Path) -> None:
    whole = kseg(["doctor", DAMAGED], restored).stdout
    quiet = kseg(["doctor", "-q", DAMAGED], restored).stdout
    assert quiet.startswith(b"error bad-length\n")
    assert quiet in whole
    assert b"disk" not in quiet
    assert kseg(["doctor", "-q", "logs/3.6.2/plain-1"], restored).stdout == b""
    assert {each["type"] for each in objects(["-q", DAMAGED], restored)} == {"finding"}


# --- commands ---------------------------------------------------------------------------------------------------------


def commands(arguments: Sequence[str], directory: Path) -> set[str]:
    return {each["command"] for each in objects(arguments, directory) if each.get("command")}


def options_of(line: str) -> tuple[str, ...]:
    """Return the command of a line, and its options."""
    _, name, *words = shlex.split(line)
    return (name, *(word for word in words if word.startswith("-")))


def test_every_printed_command_runs(restored: Path) -> None:
    """The test runs some of each command with the same options on all golden directories."""
    lone = [f"damaged/{path.name}" for path in sorted((restored / "damaged").glob("*-alone"))]
    lone += [f"damaged/{path.name}" for path in sorted((restored / "damaged").glob("*-snapshot-*"))]
    lone += [f"damaged/{path.name}" for path in sorted((restored / "damaged").glob("*-checkpoint-*"))]
    places = [["damaged"], *([path] for path in lone)]
    places += [[f"logs/{path.name}"] for path in (restored / "logs").iterdir() if not path.name.endswith("-remote")]
    lines = set().union(*(commands(place, restored) for place in places))
    assert len(lines) > 300
    chosen = some_of_each(sorted(lines), options_of, 4)
    refused = {line: ran for line in chosen if (ran := kseg(shlex.split(line)[1:], restored)).status not in (0, 1)}
    assert refused == {}


def test_missing_topic_ids_are_counted_by_partition_and_their_next_step_runs(restored: Path, tmp_path: Path) -> None:
    shutil.copytree(restored / "logs" / "4.3.1", tmp_path / "disk")
    for name in ("zstd-0", "append-zstd-0"):
        (tmp_path / "disk" / name / "partition.metadata").unlink()
    text = kseg(["doctor", "disk"], tmp_path).stdout.decode()
    assert "error topic-id-missing: 2 in 2 partitions\n" in text
    steps = re.findall("next: kseg (reindex .*)", text)
    assert sorted(steps) == ["reindex disk/append-zstd-0 --dry-run", "reindex disk/zstd-0 --dry-run"]
    for step in steps:
        ran = kseg(step.split(), tmp_path)
        assert (ran.status, b"partition.metadata" in ran.stdout) == (0, True)


def test_every_kind_has_a_next_step() -> None:
    assert set(CARE) == set(KINDS)


def test_names_that_would_harm_a_terminal_or_a_shell(tmp_path: Path) -> None:
    name = b"a b'\x1b[31m\n$(touch x)\xff"
    place = os.fsencode(tmp_path) + b"/" + name
    shutil.copytree(golden.ROOT / DAMAGED, os.fsdecode(place) + "/orders-0")
    ran = kseg(["doctor", os.fsdecode(name)], tmp_path)
    assert b"\x1b" not in ran.stdout
    (line,) = [line.strip() for line in ran.stdout.decode().splitlines() if "salvage" in line]
    script = f'kseg() {{ printf "%s\\0" "$@"; }}; {line.removeprefix("next: ")}'
    words = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, check=True, cwd=tmp_path).stdout
    assert words.split(b"\0")[:-1] == [b"salvage", name + b"/orders-0", b"--dry-run"]


def test_path_that_begins_like_an_option(tmp_path: Path) -> None:
    shutil.copytree(golden.ROOT / DAMAGED, tmp_path / "-disk" / "orders-0")
    assert "kseg salvage ./-disk/orders-0 --dry-run" in commands(["./-disk"], tmp_path)
    assert "kseg salvage ./-disk/orders-0 --dry-run" in commands(["--", "-disk"], tmp_path)


@pytest.mark.parametrize(("was_stopped", "command"), [(False, "doctor"), (True, "salvage")])
def test_torn_tail_needs_no_repair_unless_the_broker_was_stopped(
    was_stopped: bool, command: str, tmp_path: Path
) -> None:
    """A killed or running broker handles it; after a clean stop it would append after half a batch."""
    shutil.copytree(golden.ROOT / "damaged" / "003-torn-records", tmp_path / "disk" / "orders-0")
    if was_stopped:
        (tmp_path / "disk" / ".kafka_cleanshutdown").touch()
    name = "unclean-tail" if was_stopped else "torn-tail"
    assert findings(["disk"], tmp_path)[name]["command"].split()[1] == command


def test_transaction_that_hangs_says_how_much_it_holds_back(tmp_path: Path) -> None:
    write_two(tmp_path)
    write_coordinator(tmp_path, ("pay", 8, COMPLETE_ABORT, {}))
    found = findings(["."], tmp_path)["hanging-transaction"]
    assert (found["severity"], found["firstOffset"], found["heldBack"]) == ("warning", 2, 2)
    ran = kseg(shlex.split(found["command"])[1:], tmp_path)
    assert b"kafka-transactions.sh --bootstrap-server localhost:9092 abort --topic orders" in ran.stdout


# --- clocks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timestamp", "finding_id"),
    [
        (NOW // 1000, "second-times"),
        (NOW * 1000, "microsecond-times"),
        (NOW * 1_000_000, "nanosecond-times"),
        (NOW + 2 * DAY, "future-times"),
        (NOW * 3, "future-times"),
    ],
)
def test_time_of_another_unit_is_named_with_its_producer(timestamp: int, finding_id: str, tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [batch(0, NOW), batch(1, timestamp, 7), batch(2, NOW), batch(3, timestamp, 7)])
    found = findings(["orders-0"], tmp_path)[finding_id]
    assert (found["severity"], found["firstOffset"], found["lastOffset"]) == ("warning", 1, 3)
    assert (found["producerId"], found["position"]) == (7, 69)
    assert found["sentence"].startswith(f"producer 7: offsets 1 to 3, 2 batches: timestamps up to {timestamp}, ")
    shown = kseg(shlex.split(found["command"])[1:], tmp_path).stdout
    assert [json.loads(line)["offset"] for line in shown.splitlines()] == [1, 3]


@pytest.mark.parametrize("timestamp", [-1, 0, 1000, NOW - 300 * DAY, NOW, NOW + 3_600_000])
def test_other_times_are_no_trouble(timestamp: int, tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [batch(0, timestamp, 7)])
    assert set(findings(["orders-0"], tmp_path)) <= {"retention-due"}


def test_producer_without_id_is_said_to_be_one(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [batch(0, NOW * 1000)])
    assert findings(["orders-0"], tmp_path)["microsecond-times"]["sentence"].startswith(
        "a producer without id: offset 0,"
    )


def make_pinned(root: Path) -> None:
    """Write three segments, long expired; the second has a timestamp near the year 58000."""
    for number, timestamp in enumerate([NOW - 30 * DAY, NOW * 1000, NOW - 20 * DAY]):
        write_segment(root / "orders-0", [batch(number, timestamp, 7)], number)


@pytest.mark.parametrize("options", [[], ["--quick"]])
def test_what_a_time_pins_is_told(options: list[str], tmp_path: Path) -> None:
    make_pinned(tmp_path)
    found = findings([*options, "orders-0"], tmp_path)
    pinned = found["microsecond-times"]
    assert pinned["bytes"] == 2 * 69
    assert (
        "retention by time keeps 2 of 3 segments from 00000000000000000001 on until the year 58692,"
        " by Kafka's default retention of 7d00h" in pinned["sentence"]
    )
    assert found["retention-due"]["bytes"] == 69
    assert pinned["producerId"] == (None if options else 7)


def test_compacted_topic_pins_nothing_that_is_known(tmp_path: Path) -> None:
    make_pinned(tmp_path)
    edits.write_checkpoint(tmp_path / "orders-0", "cleaner-offset-checkpoint", 1)
    found = findings(["orders-0"], tmp_path)
    assert found["microsecond-times"]["bytes"] is None
    assert "the topic is compacted, so retention by time may not apply" in found["microsecond-times"]["sentence"]
    assert "retention-due" not in found


def test_segment_of_seconds_is_told_to_go_at_once(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [batch(0, NOW // 1000)])
    write_segment(tmp_path / "orders-0", [batch(1, NOW)], 1)
    found = findings(["orders-0"], tmp_path)["second-times"]
    assert "retention by time deletes 1 of 2 segments from 00000000000000000000 on at once" in found["sentence"]
    assert found["bytes"] == 69


def test_files_of_a_machine_whose_clock_is_ahead_are_judged_by_their_own_time(tmp_path: Path) -> None:
    """Otherwise all its recent data would be in the future."""
    ahead_ms = time.time_ns() // 1_000_000 + 30 * DAY
    log = write_segment(tmp_path / "orders-0", [batch(0, ahead_ms)])
    assert "future-times" in {each.get("id") for each in objects(["orders-0"], tmp_path)}
    os.utime(log, (ahead_ms / 1000, ahead_ms / 1000))
    assert {each["id"] for each in objects(["orders-0"], tmp_path) if each["type"] == "finding"} == {"clock-behind"}


# --- directories ------------------------------------------------------------------------------------------------------


def test_directories_at_which_a_broker_refuses_to_start(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    write_segment(disk / "orders-0", [batch(0, NOW)])
    for name in ("backup", "lost+found", "old-orders", "remote-log-index-cache", "my notes-1"):
        (disk / name).mkdir()
    assert "foreign-directory" not in findings(["disk"], tmp_path)  # another program may own the directory
    (disk / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    refused = [each["file"] for each in objects(["disk"], tmp_path) if each.get("id") == "foreign-directory"]
    assert refused == ["disk/backup", "disk/lost+found", "disk/old-orders"]


def test_leftovers_are_counted_by_kind_with_their_bytes(tmp_path: Path) -> None:
    for state in ("delete", "delete", "stray"):
        number = len(list(tmp_path.glob("disk/*")))
        write_segment(tmp_path / "disk" / f"gone-{number}.{'0' * 32}-{state}", [batch(0, NOW)])
    write_segment(tmp_path / "disk" / "orders-0", [batch(0, NOW)])
    (tmp_path / "disk" / "orders-0" / f"{0:020}.log.swap").write_bytes(bytes(100))
    printed = kseg(["doctor", "disk", *AT_NOW], tmp_path).stdout.decode()
    assert "note leftover-directory: 3 (2 -delete, 1 -stray), 207 B; the first: " in printed
    assert f"note leftover-file: disk/orders-0/{0:020}.log.swap: .swap: " in printed
    assert printed.startswith("A broker would start without problems.")
    assert "no problems in 4 partitions" in printed


@pytest.mark.parametrize(
    ("available", "finding_id"), [(0, "disk-full"), (49, "disk-nearly-full"), (50, None), (1000, None)]
)
def test_full_disk_comes_with_what_to_free(available: int, finding_id: str | None, tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [batch(0, NOW)])
    troubles = list(disk_troubles([Disk((tmp_path,), 1000, available)]))
    assert [each.id for each in troubles] == ([] if finding_id is None else [finding_id])
    for each in troubles:
        words = CARE[each.id](Place(each.id, each.file, None, size=each.size))
        assert words == ["retain", str(tmp_path), "--free", str(100 - available)]
        assert kseg(words, tmp_path).status in (0, 1)


def test_topics_are_shown_by_size(tmp_path: Path) -> None:
    write_segment(tmp_path / "disk" / "small-0", [batch(0, NOW)])
    for number in range(2):
        write_segment(tmp_path / "disk" / f"large-{number}", [batch(0, NOW), batch(1, NOW)])
    uses = [each for each in objects(["disk"], tmp_path) if each["type"] == "topic"]
    assert [(each["topic"], each["partitions"], each["bytes"]) for each in uses] == [
        ("large", 2, 4 * 69),
        ("small", 1, 69),
    ]


def test_quick_look_says_what_it_did_not_read(restored: Path) -> None:
    ran = kseg(["doctor", "--quick", "damaged/021-flip-records"], restored)
    assert ran.status == 0
    assert ran.stdout.startswith(b"A broker would start without problems, as far as kseg read.")
    assert b"no problems found in 1 partition" in ran.stdout
    assert b"not read: contents, transactions, producers" in ran.stdout


@pytest.mark.parametrize(
    ("name", "finding_id"),
    [
        ("003-torn-records", "torn-tail"),
        ("297-snapshot-crc", "snapshot-unreadable"),
        ("311-checkpoint-garbage", "unreadable-text"),
    ],
)
def test_quick_look_sees_the_ends(name: str, finding_id: str, restored: Path) -> None:
    ran = kseg(["doctor", "--quick", f"damaged/{name}"], restored)
    assert ran.status == 1
    assert finding_id.encode() in ran.stdout


@pytest.mark.parametrize("name", [*OWN, "bad-crc", "all"])
def test_findings_are_explained(name: str, tmp_path: Path) -> None:
    ran = kseg(["doctor", "--explain", name], tmp_path)
    assert ran.status == 0
    assert b"\nRisk: " in ran.stdout
    assert b"\nNext step: " in ran.stdout


def test_unknown_finding_is_refused(tmp_path: Path) -> None:
    ran = kseg(["doctor", "--explain", "nothing"], tmp_path)
    assert ran.status == 2
    assert b"unknown finding 'nothing'" in ran.stderr


def test_archives_are_examined_and_say_nothing_of_this_machines_disk(restored: Path, tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "support"), "gztar", restored / "damaged", "210-wiped-batch")
    found = objects(["support.tar.gz"], tmp_path)
    assert [each["type"] for each in found] == ["finding", "finding", "topic", "summary"]
    assert found[0]["command"] == "kseg salvage support.tar.gz/210-wiped-batch --dry-run"
    assert kseg(shlex.split(found[0]["command"])[1:], tmp_path).status == 1
