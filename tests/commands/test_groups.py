"""`kseg groups`."""

import csv
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kseg.coordinators.members import Group, OffsetCommit, reset_plan
from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from tests import golden
from tests.coordinators.coordinators import classic_group, commit, new_group, new_member, share_group
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import kseg
from tests.terminal import in_terminal

LOGS = golden.ROOT / "logs"


def objects(arguments: list[str], directory: Path = LOGS) -> list[dict[str, object]]:
    """Return the rows without sums."""
    printed = kseg(["groups", "-o", "json", *arguments], directory).stdout.splitlines()
    return [row for row in map(json.loads, printed) if row["type"] != "total"]


def test_text_has_groups_members_and_commits() -> None:
    run = kseg(["groups", "4.1.0"], LOGS)
    assert run.status == 0
    assert run.stderr == (
        b"kseg: 4 groups, 2 members, 10 commits, 1 pending commit\n"
        b"kseg: 1 of 2 partitions of __consumer_offsets are here, so groups of the other partitions aren't shown\n"
    )
    lines = run.stdout.decode().splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        "Groups:",
        "Commits:",
        "Share-partitions:",
        "Members:",
    ]
    assert any(line.split()[:4] == ["g-new-live", "1", "consumer", "Stable"] for line in lines)
    assert any(line.split()[:4] == ["g-new-live", "plain", "0", "154"] for line in lines)


def test_json_has_an_object_for_each_with_its_type() -> None:
    found = objects(["4.1.0"])
    assert {row["type"] for row in found} == {"group", "member", "commit", "sharePartition"}
    pending = next(row for row in found if row["type"] == "commit" and row["group"] == "g-txn-open")
    assert pending == {
        "type": "commit",
        "group": "g-txn-open",
        "topic": "plain",
        "partition": 0,
        "offset": 77,
        "logEndOffset": None,
        "lastStableOffset": None,
        "lag": None,
        "lagReason": "not yet committed: the transaction of producer 1009 is open",
        "leaderEpoch": None,
        "commitTimestamp": 1795256068978,
        "commitTime": "2026-11-21T10:14:28.978Z",
        "expireTimestamp": None,
        "expireTime": None,
        "topicId": None,
        "recordOffset": 132,
        "pendingProducerId": 1009,
        "metadata": "pending",
    }


def test_csv_has_the_commits() -> None:
    run = kseg(["groups", "4.1.0", "-o", "csv"], LOGS)
    rows = list(csv.DictReader(io.StringIO(run.stdout.decode())))
    of_json = [row for row in objects(["4.1.0"]) if row["type"] == "commit"]
    assert [(row["group"], row["topic"], row["offset"]) for row in rows] == [
        (row["group"], row["topic"], str(row["offset"])) for row in of_json
    ]


def test_lag_and_what_it_is_counted_from_are_shown(tmp_path: Path) -> None:
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch([commit("a", 2), commit("b", 7)])])
    write_segment(tmp_path / "a-0", [NewBatch([NewRecord(b"k", b"v")] * 5)])
    shown = ("topic", "offset", "logEndOffset", "lastStableOffset", "lag")
    rows = objects([".", "--show", "commits"], tmp_path)
    assert [tuple(row[name] for name in shown) for row in rows] == [("a", 2, 5, 5, 3), ("b", 7, None, None, None)]
    text = kseg(["groups", ".", "--show", "commits"], tmp_path).stdout.decode().splitlines()
    assert [line.split()[1:7] for line in text[2:]] == [["a", "0", "2", "5", "5", "3"], ["b", "0", "7", "-", "-", "-"]]


def test_commits_beyond_the_log_end_are_not_summed_and_what_follows_is_said(tmp_path: Path) -> None:
    """Lags of -15 and 15 aren't 0."""
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch([commit("a", 20), commit("b", 5), commit("c", 1)])])
    write_segment(tmp_path / "a-0", [NewBatch([NewRecord(b"k", b"v")] * 5)])
    write_segment(tmp_path / "b-0", [NewBatch([NewRecord(b"k", b"v")] * 20)])
    (group,) = objects([".", "--show", "groups"], tmp_path)
    assert (group["lag"], group["beyondLogEnd"], group["unknownLags"]) == (15, 1, 1)
    ran = kseg(["groups", "."], tmp_path)
    assert b"  15, 1 commit beyond the log end, 1 of unknown lag  " in ran.stdout.splitlines()[2]
    said = (
        "kseg: group g: a-0: committed offset 20 is beyond the log end 5: records were lost, or the topic was"
        " re-created; the consumer gets OFFSET_OUT_OF_RANGE and uses auto.offset.reset"
    )
    assert said in ran.stderr.decode().splitlines()


def test_many_commits_beyond_the_log_end_are_counted(tmp_path: Path) -> None:
    beyond = [commit("a", 20, group=f"g{number:02}") for number in range(25)]
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch(beyond)])
    write_segment(tmp_path / "a-0", [NewBatch([NewRecord(b"k", b"v")])])
    said = kseg(["groups", "."], tmp_path).stderr.decode().splitlines()
    assert sum("beyond the log end 1" in line for line in said) == 20
    assert "kseg: 5 more commits are beyond the log end; -o json lists them with negative lags" in said


def test_commit_whose_batch_cant_be_read_names_the_command_that_moves_on(tmp_path: Path) -> None:
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch([commit("a", 6), commit("b", 1)])])
    batches = [NewBatch([NewRecord(b"k", b"v")] * 5, start) for start in (0, 5, 10)]
    for topic in "ab":
        write_segment(tmp_path / f"{topic}-0", batches)
    log = tmp_path / "a-0" / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[len(data) * 2 // 3 - 1] ^= 1
    log.write_bytes(data)
    why = {row.get("topic"): row["lagReason"] for row in objects(["."], tmp_path)}
    assert why["a"] == "the batch with offset 6 can't be read, next good offset 10"
    assert why["b"].startswith("no commit since ")
    assert why[None].startswith("a-0: the batch with offset 6 can't be read, next good offset 10; ")
    command = (
        "kafka-consumer-groups.sh --bootstrap-server HOST:9092 --group g --topic a:0 --reset-offsets --to-offset 10"
        " --execute"
    )
    said = kseg(["groups", "."], tmp_path).stderr.decode()
    assert f"kseg: group g: a-0: offset 6 can't be read; to move the group past it: {command}\n" in said
    looked_up = kseg(["lookup", "a-0", "--offset", "6"], tmp_path).stderr.decode()
    assert looked_up.endswith(f"to move a consumer group past it: {command.replace('--group g', '--group GROUP')}\n")
    dumped = kseg(["dump", "a-0"], tmp_path).stderr.decode()
    assert f"{len(data)} bytes, {len(data) // 3} of them lost; batch count is 3" in dumped


def test_rows_with_the_largest_lag_come_first_in_all_forms(tmp_path: Path) -> None:
    records = [
        *(commit("a", 4, group="small"), commit("a", 1, group="large"), commit("b", 4, group="large")),
        *(commit("a", 9, group="beyond"), commit("gone", 9, group="unknown")),
    ]
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch(records)])
    for topic in ("a", "b"):
        write_segment(tmp_path / f"{topic}-0", [NewBatch([NewRecord(b"k", b"v")] * 5)])
    groups = objects([".", "--show", "groups"], tmp_path)
    assert [row["group"] for row in groups] == ["large", "small", "beyond", "unknown"]
    rows = objects([".", "--show", "commits"], tmp_path)
    expected = [("large", "a"), ("large", "b"), ("small", "a"), ("beyond", "a"), ("unknown", "gone")]
    assert [(row["group"], row["topic"]) for row in rows] == expected
    of_csv = csv.DictReader(io.StringIO(kseg(["groups", ".", "-o", "csv"], tmp_path).stdout.decode()))
    assert [(row["group"], row["topic"]) for row in of_csv] == expected


# --- why a group lags ------------------------------------------------------------------------------------------------

PLAIN = [NewRecord(b"k", b"v")] * 5
OPEN = NewBatch(PLAIN, 5, producer_id=7, producer_epoch=0, is_transactional=True)
LEFT_AT = 1_700_000_060_000


def reasons(directory: Path, *arguments: str) -> dict[str, object]:
    """Return reasons for lags: of groups by their names, of commits by their topics."""
    rows = objects([".", "--now", "2023-11-17T22:14:20Z", *arguments], directory)
    return {str(row.get("topic", row["group"])): row["lagReason"] for row in rows if row["type"] in ("group", "commit")}


def test_what_the_disk_knows_of_a_lag_is_said(tmp_path: Path) -> None:
    records = [commit("open", 5), commit("low", 1), commit("beyond", 17), commit("elsewhere", 1), commit("done", 5)]
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch(records)])
    write_segment(tmp_path / "open-0", [NewBatch(PLAIN), OPEN])
    write_segment(tmp_path / "low-0", [NewBatch(PLAIN, 3)], 3)
    for topic in ("beyond", "done"):
        write_segment(tmp_path / f"{topic}-0", [NewBatch(PLAIN)])
    found = reasons(tmp_path)
    assert found == {
        "g": found["low"],
        "low": "commit below the log start 3: 2 records are deleted",
        "open": "an open transaction holds back 5 of 5 offsets: last stable offset 5 of 10",
        "beyond": "beyond the log end by 12: records were lost, or the topic was re-created",
        "elsewhere": "partition not here",
        "done": None,
    }


def test_open_transaction_is_named_however_small_its_share_of_the_lag_is(tmp_path: Path) -> None:
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch([commit("open", 0, commit_timestamp=LEFT_AT)])])
    write_segment(tmp_path / "open-0", [NewBatch(PLAIN), OPEN._replace(records=PLAIN[:1])])
    assert reasons(tmp_path)["open"] == (
        "no commit since 2023-11-14T22:14:20.000Z (3d00h); an open transaction holds back 1 of 6 offsets: last stable"
        " offset 5 of 6"
    )


def test_reason_is_not_cut_on_a_terminal(tmp_path: Path) -> None:
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch([commit("a", 0, commit_timestamp=LEFT_AT)])])
    write_segment(tmp_path / "a-0", [NewBatch(PLAIN)])
    shown = in_terminal(tmp_path, "groups", ".", "--now", "2023-11-17T22:14:20Z", columns=80)
    assert shown.count("    WHY: no commit since 2023-11-14T22:14:20.000Z (3d00h)\r\n") == 2


def test_partition_that_brokers_do_not_load_makes_the_exit_status_1(tmp_path: Path) -> None:
    records = [new_group("g"), new_member("g", "m", "billing-1"), new_member("g", "m", None)]
    for written, expected in ((records[:2], (0, False)), (records, (1, True))):
        write_segment(tmp_path / "__consumer_offsets-0", [NewBatch(written)])
        run = kseg(["groups", "."], tmp_path)
        assert (run.status, b"brokers don't load these groups" in run.stderr) == expected


def test_last_object_says_by_which_time(tmp_path: Path) -> None:
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch([commit("a", 0)])])
    run = kseg(["groups", ".", "-o", "json", "--now", "2023-11-17"], tmp_path)
    total = {"type": "total", "rows": 2, "now": "2023-11-17T00:00:00.000Z", "nowSource": "given"}
    assert json.loads(run.stdout.splitlines()[-1]) == total
    assert b"nowSource" not in kseg(["groups", ".", "-o", "json", "-q"], tmp_path).stdout


def test_topic_that_the_clusters_metadata_do_not_have_is_gone(tmp_path: Path) -> None:
    shutil.copytree(LOGS / "4.4.0-made" / "__cluster_metadata-0", tmp_path / "__cluster_metadata-0")
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch([commit("nosuch", 1)])])
    assert reasons(tmp_path)["nosuch"] == "topic gone: not in the cluster's metadata"


def test_the_last_member_of_a_classic_group_is_named(tmp_path: Path) -> None:
    records = [
        classic_group("g", "billing-1", "/10.0.0.7"),
        commit("a", 2),
        classic_group("g", changed_at=LEFT_AT),
        classic_group("g", changed_at=LEFT_AT),
    ]
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch(records)])
    write_segment(tmp_path / "a-0", [NewBatch(PLAIN)])
    since = "no members since 2023-11-14T22:14:20.000Z (3d00h)"
    assert reasons(tmp_path) == {"g": f"{since}; last member billing-1@10.0.0.7", "a": since}
    assert reasons(tmp_path, "--tz", "+01:00")["a"] == "no members since 2023-11-14T23:14:20.000+01:00 (3d00h)"


def test_the_last_member_of_a_newer_group_is_named_as_long_as_its_record_is_there(tmp_path: Path) -> None:
    member, left = new_member("g", "m", "billing-1", "/10.0.0.7"), new_member("g", "m", None, timestamp=LEFT_AT)
    write_segment(tmp_path / "a-0", [NewBatch(PLAIN)])
    since = "no members since 2023-11-14T22:14:20.000Z (3d00h)"
    for records, said in (
        ([member, left], {"g": f"{since}; last member billing-1@10.0.0.7", "a": since}),
        ([left], {"g": since, "a": since}),
        ([], {"g": "no members", "a": "no members"}),
    ):
        group = [new_group("g"), commit("a", 2)]
        write_segment(tmp_path / "__consumer_offsets-0", [NewBatch([*group, *records])])
        assert reasons(tmp_path) == said


def test_group_with_members_that_commits_nothing_says_since_when(tmp_path: Path) -> None:
    records = [classic_group("g", "billing-1", "/10.0.0.7"), commit("a", 2, commit_timestamp=LEFT_AT)]
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch(records)])
    write_segment(tmp_path / "a-0", [NewBatch(PLAIN)])
    assert reasons(tmp_path)["a"] == "members, but no commit since 2023-11-14T22:14:20.000Z (3d00h)"


def test_age_on_a_copied_disk_ends_at_the_newest_time_that_a_broker_wrote(tmp_path: Path) -> None:
    """The producers' timestamps, which are a day later, don't count."""
    records = [new_group("g"), new_member("g", "m", None, timestamp=LEFT_AT), commit("a", 2)]
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch(records)])
    write_segment(
        tmp_path / "__consumer_offsets-0", [NewBatch([commit("b", 2)._replace(timestamp=LEFT_AT + 9000)], 3)], 3
    )
    write_segment(tmp_path / "a-0", [NewBatch([NewRecord(b"k", b"v", LEFT_AT + 86_400_000)] * 5)])
    run = kseg(["groups", ".", "-o", "json", "--show", "commits"], tmp_path)
    assert b"no members since 2023-11-14T22:14:20.000Z (9.000s before the latest time here)" in run.stdout
    said = b'kseg: no broker is using this disk, so "now" is 2023-11-14T22:14:29.000Z, the newest timestamp'
    assert run.stderr == said + b" that a broker wrote; specify --now to set another time\n"
    assert b'"now" is' not in kseg(["groups", ".", "-q"], tmp_path).stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked for locks")
def test_age_on_a_running_brokers_disk_ends_now(tmp_path: Path) -> None:
    """The JVM's lock is a POSIX lock: this test holds it as a broker would, in another process."""
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch([new_group("g"), commit("a", 2)])])
    write_segment(tmp_path / "a-0", [NewBatch(PLAIN)])
    (tmp_path / ".lock").touch()
    hold = "import fcntl, sys; f = open('.lock', 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as broker:
        assert broker.stdout is not None
        broker.stdout.readline()
        held = kseg(["groups", "."], tmp_path)
        broker.communicate(b"\n")
    assert b'"now" is' not in held.stderr
    assert b'"now" is' in kseg(["groups", "."], tmp_path).stderr


def test_narrow_terminal_keeps_what_matters_of_groups() -> None:
    shown = in_terminal(LOGS, "groups", "3.3.2", "--show", "groups", "--no-color", columns=80)
    for title in ("GROUP", "STATE", "MEMBERS", "LAG", "WHY"):
        assert re.search(rf"\b{title}\b", shown.partition("Hidden columns")[0])
    assert "GROUP EPOCH" in shown.partition("Hidden columns")[2]


def test_share_partitions_have_their_start_offsets() -> None:
    rows = objects(["4.1.0", "--show", "share-partitions"])
    names = ("group", "topic", "partition", "startOffset", "leaderEpoch", "lag")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("sg-live", "plain", partition, None, None, None) for partition in range(3)
    ]


# --- reset plans -----------------------------------------------------------------------------------------------------

ODD = 'a,b "c" é'


@pytest.fixture
def committed_log(tmp_path: Path) -> Path:
    records = [
        commit("a", 2, metadata="state"),
        commit("a", 3, partition=1, leader_epoch=4),
        commit("b", 0, group="h"),
        commit("b", 9, group=ODD),
        commit("b", 1, group="two\nlines"),
    ]
    pending = NewBatch([commit("c", 1)], 5, producer_id=7, producer_epoch=0, is_transactional=True)
    share = NewBatch(share_group("share", 0), 6)
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch(records), pending, share])
    return tmp_path


def test_the_reset_plan_of_one_group_has_topics_partitions_and_offsets(committed_log: Path) -> None:
    run = kseg(["groups", ".", "-o", "reset-csv", "--group", "g"], committed_log)
    assert (run.status, run.stdout) == (0, b"a,0,2\na,1,3\n")
    assert run.stderr.decode().splitlines() == [
        "kseg: g: commits of transactions that haven't ended are omitted: 1",
        "kseg: the CSV holds only offsets: 1 of 2 commits have metadata, which it can't hold",
        "kseg: the CSV holds only offsets: 1 of 2 commits have leader epochs, which it can't hold",
        "kseg: try it: kafka-consumer-groups.sh --bootstrap-server localhost:9092 --group g --reset-offsets"
        " --from-file FILE --dry-run",
    ]
    assert kseg(["groups", ".", "-o", "reset-csv", "--group", "g", "-q"], committed_log).stderr == b""


def test_the_reset_plan_of_several_groups_names_them(committed_log: Path) -> None:
    run = kseg(["groups", ".", "-o", "reset-csv"], committed_log)
    rows = list(csv.reader(io.StringIO(run.stdout.decode())))
    assert rows == [[ODD, "b", "0", "9"], ["g", "a", "0", "2"], ["g", "a", "1", "3"], ["h", "b", "0", "0"]]
    said = run.stderr.decode()
    *_, hint = said.splitlines()
    named = ("--group", ODD, "--group", "g", "--group", "h")
    assert shlex.split(hint)[3:] == [
        *("kafka-consumer-groups.sh", "--bootstrap-server", "localhost:9092", *named),
        *("--reset-offsets", "--from-file", "FILE", "--dry-run"),
    ]
    assert "commits are omitted, since the CSV can't hold a name with a line feed: 1\n" in said
    assert "share is omitted, since a share group has no commits; reset it with kafka-share-groups.sh\n" in said


@pytest.mark.parametrize("name", ["a b", "-x", "it's", "esc\x1b[31m", "ü\a'\\"])
def test_a_shell_reads_the_groups_of_a_reset_plan_as_they_are(name: str) -> None:
    group = Group(name, 0, commits=(OffsetCommit(name, "t", 0, 5, -1, "", 0, -1, None, 0),))
    *_, hint = reset_plan([group], names_groups=True).notes
    words = (
        hint.partition(": ")[2].partition(" --reset-offsets")[0].replace("kafka-consumer-groups.sh", "printf '%s\\0'")
    )
    said = subprocess.run(["bash", "-c", words], check=True, capture_output=True).stdout.decode().split("\0")
    assert name in (said[-2], said[-2].removeprefix("--group="))


def test_a_glob_gives_the_form_of_several_groups_whatever_it_matches(committed_log: Path) -> None:
    run = kseg(["groups", ".", "-o", "reset-csv", "--group", "[h]"], committed_log)
    assert run.stdout == b"h,b,0,0\n"


def test_a_reset_plan_is_of_the_time_that_is_asked_for() -> None:
    arguments = ["groups", "4.1.0", "--group", "g-new-live", "-o", "reset-csv", "--at"]
    before = kseg([*arguments, "2026-11-21T10:14:31.370Z"], LOGS).stdout
    assert (
        before
        != kseg([*arguments, "2026-11-21T10:14:31.371Z"], LOGS).stdout
        == b"plain,0,154\nplain,1,152\nplain,2,174\ntxn,0,181\ntxn,1,185\n"
    )


def test_a_reset_plan_has_commits_alone(committed_log: Path) -> None:
    run = kseg(["groups", ".", "-o", "reset-csv", "--show", "groups"], committed_log)
    assert (run.status, run.stdout) == (2, b"")
    assert b"omit --show" in run.stderr


def test_a_group_and_a_kind_of_rows_can_be_chosen() -> None:
    found = objects(["4.1.0", "--group", "sg-*", "--show", "members"])
    assert [(row["type"], row["group"]) for row in found] == [("member", "sg-live")]


def test_the_time_of_a_commit_divides(tmp_path: Path) -> None:
    def commits(at: str) -> list[dict[str, object]]:
        return objects(["4.1.0", "--at", at, "--group", "g-new-live", "--show", "commits"])

    newest = [row | {"lagReason": None} for row in objects(["4.1.0", "--group", "g-new-live", "--show", "commits"])]
    assert commits("2026-11-21T10:14:31.371Z") == newest
    assert commits("2026-11-21T11:14:31.370+01:00") == commits("1795256071370") != newest


def test_keys_of_which_only_later_records_are_left_are_reported() -> None:
    run = kseg(["groups", "4.1.0", "--at", "1795255995396"], LOGS)
    assert b"keys have only later records" in run.stderr
    assert kseg(["groups", "4.1.0", "--at", "1795255995396", "-q"], LOGS).stderr == b""


def test_a_time_that_is_none_is_refused() -> None:
    run = kseg(["groups", "4.1.0", "--at", "-1h"], LOGS)
    assert b'kseg: "now" is 2026-11-21T10:14:35.158Z, the newest timestamp that a broker wrote\n' in run.stderr
    assert b"first remaining record is from 2026-11-21T10:13:14.740Z\n" in run.stderr
    run = kseg(["groups", "4.1.0", "--at", "tomorrow"], LOGS)
    assert run.status == 2
    assert b"'tomorrow' isn't a valid time" in run.stderr


def test_a_directory_without_groups_is_refused(tmp_path: Path) -> None:
    run = kseg(["groups", "."], tmp_path)
    assert run.status == 2
    assert run.stderr.startswith(b"kseg: ")


def test_help_has_examples() -> None:
    assert b"Examples:" in kseg(["groups", "--help"], LOGS).stdout


HOSTILE = "\x1b[31mred\x1b]0;title\x07\n\u202e[bold]x[/bold]"


def hostile_partition(tmp_path: Path) -> None:
    fields = {"group": HOSTILE, "topic": HOSTILE, "partition": 0}
    key = b"\0\1" + build_message(message_schema("OffsetCommitKey"), 0, fields)
    value = b"\0\3" + build_message(message_schema("OffsetCommitValue"), 3, {"offset": 5, "metadata": HOSTILE})
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch([NewRecord(key, value)])])


def test_text_of_files_does_no_harm_to_a_terminal(tmp_path: Path) -> None:
    hostile_partition(tmp_path)
    plain = kseg(["groups", "."], tmp_path).stdout.decode()
    table = kseg(["groups", ".", "-o", "table", "--no-color"], tmp_path).stdout.decode()
    for shown in (plain, table):
        assert all(char.isprintable() or char == "\n" for char in shown)
        assert "[bold]x[/bold]" in shown


def test_json_keeps_text_as_it_is(tmp_path: Path) -> None:
    hostile_partition(tmp_path)
    (commit,) = objects([".", "--show", "commits"], tmp_path)
    assert (commit["group"], commit["topic"], commit["metadata"]) == (HOSTILE, HOSTILE, HOSTILE)


def test_records_that_cant_be_read_end_with_1(tmp_path: Path) -> None:
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch([NewRecord(b"\0\x63", b"\0\0")])])
    run = kseg(["groups", "__consumer_offsets-0"], tmp_path)
    assert run.status == 1
    said = [
        b"kseg: __consumer_offsets-0: offset 0: key of unknown type 99",
        b"kseg: no groups to show: 1 partition of __consumer_offsets read, 1 record, 0 groups, 0 commits",
    ]
    assert run.stderr.splitlines() == said


def test_a_disk_without_groups_says_what_was_read(tmp_path: Path) -> None:
    for number in range(2):
        write_segment(tmp_path / f"__consumer_offsets-{number}", [])
    said = kseg(["groups", "."], tmp_path).stderr.decode().splitlines()
    assert said[-1] == "kseg: no groups to show: 2 partitions of __consumer_offsets read, all empty"
    (tmp_path / "none" / "orders-0").mkdir(parents=True)
    assert b"no __consumer_offsets here" in kseg(["groups", "none"], tmp_path).stderr


def test_nothing_to_show_is_a_line_on_stderr() -> None:
    run = kseg(["groups", "0.9.0.1", "--show", "share-partitions"], LOGS)
    assert (run.status, run.stdout) == (0, b"")
    read = "2 partitions of __consumer_offsets read, 160 records, 1 group, 3 commits"
    assert run.stderr.decode() == f"kseg: no share-partitions to show: {read}\n"
    quiet = kseg(["groups", "0.9.0.1", "--show", "share-partitions", "-q"], LOGS)
    assert quiet.stderr == b""


def test_a_disk_that_cant_be_read_is_refused_and_the_others_are_shown() -> None:
    run = kseg(["groups", "4.3.1", "nowhere", "--show", "groups"], LOGS)
    assert run.status == 2
    assert b"g-new-live" in run.stdout
    assert b"kseg: nowhere: no such file or directory\n" in run.stderr


@pytest.mark.parametrize("asked", [["--group", "nosuch"], ["--topic", "nosuch"], ["--group", "no*", "-o", "reset-csv"]])
def test_a_group_that_is_not_there_is_an_error_that_names_those_there(asked: list[str]) -> None:
    run = kseg(["groups", "4.1.0", *asked], LOGS)
    assert (run.status, run.stdout) == (2, b"")
    assert re.search(rb" no(such|\*): no such (group|partition) here; there are [a-z]", run.stderr)
