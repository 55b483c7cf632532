"""`kseg report` as its user sees it."""

import json
import os
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.coordinators.coordinators import commit
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.report.made_disk import (
    DAY_MS,
    NOW,
    NOW_MS,
    build,
    json_of,
    made_disk,
    objects,
    page_of,
    record,
    row,
    rows,
)
from tests.run import KERNELS, kseg
from tests.terminal import in_terminal, plain

AT = ("--now", NOW)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_disk(tmp_path_factory.mktemp("made"))


class Markup(HTMLParser):
    """Elements and their attributes, and all text outside scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self._silent = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self._silent = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._silent = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._silent else data


def test_page_is_one_file_with_the_numbers_of_json(disk: Path, tmp_path: Path) -> None:
    ran = kseg(["report", str(disk), *AT, "--to", "report.html"], tmp_path)
    assert ran.status == 0
    assert ran.stdout == b""
    assert re.fullmatch(rb"kseg: report.html: [0-9.]+ KiB, [0-9]+ verdicts\n", ran.stderr)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    inside, printed = json_of(page), objects(tmp_path, str(disk), *AT)
    for name, table in inside["tables"].items():
        found = [dict(zip(table["columns"], cells, strict=True)) for cells in table["rows"]]
        assert found == [{key: each[key] for key in table["columns"]} for each in rows(printed, name)], name
    verdicts = [each["sentence"] for each in printed if each["type"] == "verdict"]
    assert [each["sentence"] for each in inside["verdicts"]] == verdicts
    assert "http" not in page.replace("http-equiv", "")


def test_same_input_gives_the_same_page_with_any_kernel_and_processes(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = set()
    for kernel in KERNELS:
        monkeypatch.setenv("KSEG_KERNEL", kernel)
        for processes in ("1", "2"):
            page = page_of(disk.parent, "disk", *AT, "-j", processes)
            pages.add(page.replace(f"-j {processes} ", ""))
    assert len(pages) == 1


def test_numbers_are_those_of_what_was_written(disk: Path) -> None:
    found = objects(disk.parent, "disk", *AT)
    assert row(found, "topics", topic="orders")["records"] == 2100
    assert row(found, "skew", topic="orders")["recordsRatio"] == 5
    assert row(found, "sizes", topic="orders", part="value")["most"] == 80
    batches = row(found, "batches", topic="orders")
    assert (batches["batches"], batches["recordsMost"], batches["batchesAfter100ms"]) == (2100, 1, 2100)
    hot = row(found, "hotKeys", topic="orders", key="key 1")
    assert (hot["records"], hot["share"]) == (700, round(700 / 2100, 6))
    codec = row(found, "codecs", topic="clicks", codec="zstd")
    assert (codec["records"], codec["share"]) == (2000, 1)
    assert codec["ratio"] > 2
    keys = row(found, "compactionTopics", topic="profiles")
    assert (keys["keys"], keys["superseded"], keys["tombstones"]) == (40, 760, 80)
    assert row(found, "emptyTopics", topic="unused")["empty"] == 1
    assert row(found, "rates", topic="orders")["lastTime"] < "2026-11-24"


def test_skew_and_empty_partitions_count_partitions_however_many_copies_are_there(tmp_path: Path) -> None:
    for broker in (1, 2, 3):
        for partition, count in enumerate((0, 10, 30)):
            records = [NewBatch([NewRecord(b"k", b"v" * 100, NOW_MS)], offset) for offset in range(count)]
            write_segment(tmp_path / f"b{broker}" / f"orders-{partition}", records)
        (tmp_path / f"b{broker}" / "meta.properties").write_text(f"version=1\nnode.id={broker}\n", encoding="utf-8")
    one, all_brokers = objects(tmp_path, "b1", *AT), objects(tmp_path, "b1", "b2", "b3", *AT)
    for found in (one, all_brokers):
        assert row(found, "emptyTopics", topic="orders")["partitions"] == 3
        assert row(found, "emptyTopics", topic="orders")["empty"] == 1
        assert row(found, "skew", topic="orders")["partitions"] == 3
        assert row(found, "skew", topic="orders")["empty"] == 1


def test_verdicts_are_sentences_with_commands_that_run(disk: Path) -> None:
    ran = kseg(["report", "disk", *AT, "-o", "text"], disk.parent)
    assert ran.status == 0
    text = ran.stdout.decode()
    assert "orders: half of the batches have one record" in text
    assert "orders: one key has 33 % of the records" in text
    commands = re.findall(r"^   kseg (.+)$", text, re.MULTILINE)
    assert len(commands) > 5
    for line in commands:
        assert kseg(line.split(), disk.parent).status in (0, 1), line


def test_summary_is_the_same_in_all_forms(disk: Path) -> None:
    found = [each for each in objects(disk.parent, "disk", *AT) if each["type"] == "summary"]
    assert list(dict.fromkeys(each["part"] for each in found)) == ["problems", "space", "forecast", "unread", "now"]
    text = kseg(["report", "disk", *AT, "-o", "text"], disk.parent).stdout.decode()
    page = unescape(page_of(disk.parent, "disk", *AT))
    for each in found:
        assert each["sentence"] in text
        assert each["sentence"] in page
    sentences = " ".join(each["sentence"] for each in found)
    assert "Largest topics: orders" in sentences
    assert "Disk usage: omitted, because --now is set." in sentences
    assert "given by --now." in sentences
    assert "zstd would save about" in text


def test_quick_report_reads_headers_alone(disk: Path) -> None:
    found = objects(disk.parent, "disk", *AT, "--quick")
    whole = objects(disk.parent, "disk", *AT)
    about = found[0]
    assert about["read"].startswith("file names, indexes and the header of every batch")
    for table in ("topics", "partitions", "batches", "rates", "times", "week", "producers", "segments", "forecast"):
        assert rows(found, table) == rows(whole, table), table
    assert rows(found, "sizes") == rows(found, "hotKeys") == rows(found, "codecTrial") == []
    assert row(found, "codecs", topic="clicks")["ratio"] is None


def test_time_in_the_future_pins_segments(tmp_path: Path) -> None:
    began = NOW_MS - 20 * DAY_MS
    records = [record(number, began + 3_600_000 * number, "k", "v" * 100) for number in range(300)]
    records[100]["timestamp"] = 1_924_992_000_000
    build(tmp_path / "disk" / "late-0", records, "--segment-bytes", "3000", "--batch-records", "5")
    ran = kseg(["report", "disk", *AT, "-o", "text"], tmp_path)
    assert ran.status == 1
    assert (
        b"can't be deleted before 2031-01-08 00:00: a record with timestamp 2031-01-01 00:00 keeps them." in ran.stdout
    )
    found = objects(tmp_path, "disk", *AT)
    assert row(found, "suspectTimes", directory="late-0")["id"] == "future-times"
    assert row(found, "findings", id="future-times")["severity"] == "warning"
    assert row(found, "lateness", topic="late")["strangeBatches"] == 1
    assert max(each["time"] for each in rows(found, "times")) < "2026-11-25"


def test_hostile_names_and_keys_stay_text(tmp_path: Path) -> None:
    key = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[2J"
    records = [record(number, NOW_MS - DAY_MS, key, "v") for number in range(50)]
    build(tmp_path / "disk" / "t-0", records)
    (tmp_path / "disk" / "t-0").rename(tmp_path / "disk" / "<img src=x onerror=alert(3)>&\x1b]0;-0")
    copytree(tmp_path / "disk" / "<img src=x onerror=alert(3)>&\x1b]0;-0", tmp_path / "disk" / "a'\"b-0")
    page = page_of(tmp_path, "disk", *AT, "--show-keys")
    markup = Markup(page)
    assert "img" not in markup.tags
    assert "onerror" not in markup.attributes
    assert not {"href"} - markup.attributes
    assert page.count("<script") == 2
    assert "<img src=x onerror=alert(3)>&\\x1b]0;" in markup.text
    assert "</script><script>alert(1)</script>" in markup.text
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert any(
        "onerror" in each
        for table in json_of(page)["tables"].values()
        for one in table["rows"]
        for each in map(str, one)
    )


def test_keys_are_hidden_unless_asked_for(disk: Path) -> None:
    assert "customer-1" not in page_of(disk.parent, "disk", *AT)
    assert "user-1" not in page_of(disk.parent, "disk", *AT)
    shown = objects(disk.parent, "disk", *AT, "--show-keys")
    assert row(shown, "hotKeys", topic="orders", key="hot")["records"] == 700
    hidden = objects(disk.parent, "disk", *AT, "--redact-key", "secret")
    substitute = next(each["key"] for each in rows(hidden, "hotKeys") if each["topic"] == "orders")
    dumped = kseg(
        [
            "dump",
            "disk/orders-2",
            "--limit",
            "1",
            "--redact",
            "keys",
            "--redact-key",
            "secret",
            "--fields",
            "key",
            "-q",
        ],
        disk.parent,
    )
    assert substitute in dumped.stdout.decode().split()


def test_price_adds_what_topics_cost(disk: Path) -> None:
    assert rows(objects(disk.parent, "disk", *AT), "cost") == []
    found = objects(disk.parent, "disk", *AT, "--price", "1024", "--replicas", "3")
    size = row(found, "topics", topic="orders")["bytes"]
    cost = row(found, "cost", topic="orders")
    assert cost["cost"] == round(size / 2**30 * 1024 * 3, 6)
    assert 0 < cost["zstd"] < cost["cost"]


def test_speeds_are_measured_only_if_asked_for(disk: Path) -> None:
    assert {each["speed"] for each in rows(objects(disk.parent, "disk", *AT), "codecTrial")} == {None}
    assert all(each["speed"] > 0 for each in rows(objects(disk.parent, "disk", *AT, "--speeds"), "codecTrial"))


def test_replicas_are_compared(disk: Path, tmp_path: Path) -> None:
    copytree(disk, tmp_path / "one")
    copytree(disk, tmp_path / "two")
    build(tmp_path / "short", [record(0, NOW_MS - DAY_MS, "k", "v")])
    for file in (tmp_path / "two" / "orders-1").iterdir():
        file.unlink()
    for file in (tmp_path / "short").iterdir():
        file.rename(tmp_path / "two" / "orders-1" / file.name)
    found = objects(tmp_path, "one", "two", *AT)
    behind = [each["behind"] for each in rows(found, "replicas") if each["partition"] == "orders-1"]
    assert sorted(behind) == [0, 299]


def test_page_of_a_thousand_partitions_is_under_a_megabyte(tmp_path: Path) -> None:
    began = NOW_MS - 3 * DAY_MS
    records = [record(number, began + 600_000 * number, f"key-{number % 7}", "value" * 5) for number in range(40)]
    for part in range(4):
        build(
            tmp_path / "base" / f"p-{part}",
            records,
            "--batch-records",
            "2",
            "--segment-bytes",
            "1000",
            "--producer-id",
            str(part),
        )
    for number in range(1000):
        copytree(
            tmp_path / "base" / f"p-{number % 4}",
            tmp_path / "disk" / f"some-topic-with-a-name-{number // 10}-{number % 10}",
            copy_function=os.link,
        )
    page = page_of(tmp_path, "disk", *AT)
    assert json_of(page)["partitions"] == 1000
    assert len(page.encode()) < 1_000_000


@pytest.mark.parametrize(
    "name", ["4.3.1", "2.8.2", "0.10.2.2", "0.8.2.2", "3.3.2-live", "2.3.1-killed", "4.3.1-tiered"]
)
def test_brokers_disks_are_reported(name: str, restored: Path) -> None:
    found = objects(restored / "logs", name, *AT)
    assert found[0]["partitions"] > 0
    assert len({each["block"] for each in found if each["type"] == "row"}) > 8


def test_damaged_partitions_are_reported(restored: Path) -> None:
    ran = kseg(["report", "damaged", *AT, "-o", "text"], restored)
    assert ran.status in (1, 2)
    assert ran.stdout.startswith(b"")


# --- wrong usage -----------------------------------------------------------------------------------------------------


def test_file_that_is_there_is_kept(disk: Path, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("mine", encoding="ascii")
    ran = kseg(["report", str(disk), "--to", "report.html"], tmp_path)
    assert ran.status == 2
    assert ran.stderr == b"kseg: report.html: already exists; specify the name of a new file\n"
    assert (tmp_path / "report.html").read_text(encoding="ascii") == "mine"


def test_nothing_is_written_into_the_input(disk: Path) -> None:
    ran = kseg(["report", "disk", "--to", "disk/report.html"], disk.parent)
    assert ran.status == 2
    assert b"which kseg reads; specify" in ran.stderr
    assert not (disk / "report.html").exists()


def test_owners_of_directories_are_the_ids_that_other_commands_have(disk: Path, tmp_path: Path) -> None:
    copytree(disk, tmp_path / "b2")
    (tmp_path / "b2" / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=2\n")
    (directory,) = json_of(page_of(tmp_path, "b2", "--quick", *AT))["directories"]
    assert (directory["clusterId"], directory["nodeId"]) == ("abc", 2)


def test_sizes_of_topics_are_those_of_ls_and_doctor_and_what_is_not_in_use_is_named_apart(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1", "gone-0", "gone-1"):
        build(tmp_path / "disk" / name, [record(number, NOW_MS, "k", "v") for number in range(9)])
    (tmp_path / "disk" / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABQ\n")
    (tmp_path / "disk" / "orders-1" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABg\n")
    for name, state in (("gone-0", "stray"), ("gone-1", "delete")):
        (tmp_path / "disk" / name).rename(tmp_path / "disk" / f"{name}.{'0' * 32}-{state}")
    of_ls = {each["topic"]: each["bytes"] for each in topics(tmp_path, "ls", "disk", "--by", "topic")}
    of_doctor = topics(tmp_path, "doctor", "disk")
    found = objects(tmp_path, "disk", *AT)
    of_report = rows(found, "topics")
    assert {each["topic"]: each["bytes"] for each in of_doctor} == of_ls
    assert {each["topic"]: each["logBytes"] for each in of_report} == of_ls
    by_doctor = {each["topic"]: each["bytesNotInUse"] / each["bytes"] for each in of_doctor}
    not_in_use = {each["topic"]: each["notInUseBytes"] / each["bytes"] for each in of_report}
    assert not_in_use == by_doctor == {"orders": 0.5, "gone": 1}  # of the older id; one is stale
    assert found[0]["title"].startswith("1 log directory: 4 partitions (3 not in use), 2 topics, ")
    assert any("3 directories not in use (1 deleted, 1 stale, 1 stray): " in str(each) for each in found)


def topics(directory: Path, *arguments: str) -> list[dict[str, Any]]:
    ran = kseg([*arguments, "-o", "json", "--now", NOW], directory)
    return [each for each in map(json.loads, ran.stdout.splitlines()) if each["type"] == "topic"]


def test_directories_of_two_clusters_are_refused(disk: Path, tmp_path: Path) -> None:
    for cluster_id in ("one", "two"):
        copytree(disk, tmp_path / cluster_id)
        (tmp_path / cluster_id / "meta.properties").write_text(f"version=1\ncluster.id={cluster_id}\nnode.id=1\n")
    ran = kseg(["report", "one", "two", "-o", "text"], tmp_path)
    (line,) = ran.stderr.decode().splitlines()
    assert (ran.status, ran.stdout) == (2, b"")
    assert line.endswith("belong to different clusters, one and two; specify the directories of one cluster")


def test_directory_without_partitions_gets_one_line(tmp_path: Path) -> None:
    ran = kseg(["report", ".", "--to", "report.html"], tmp_path)
    assert ran.status == 2
    assert len(ran.stderr.splitlines()) == 1
    assert not (tmp_path / "report.html").exists()


def test_page_is_not_for_a_terminal(disk: Path) -> None:
    shown = plain(in_terminal(disk.parent, "report", "disk", columns=200))
    assert "kseg: a terminal can't show an HTML page; specify --to report.html, or -o text" in shown


def test_commits_beyond_the_log_end_do_not_make_up_for_others(tmp_path: Path) -> None:
    """One partition has 9 unread records; the other partition's lag is -15."""
    commits = [commit("a", 25), commit("a", 1, partition=1), commit("a", 1, partition=2)]
    write_segment(tmp_path / "__consumer_offsets-0", [NewBatch(commits)])
    for partition in range(2):
        write_segment(tmp_path / f"a-{partition}", [NewBatch([NewRecord(b"k", b"v")] * 10)])
    printed = objects(tmp_path, str(tmp_path), *AT)
    (found,) = [each for each in printed if each.get("table") == "groups" and "group" in each]
    assert (found["lag"], found["beyondLogEnd"], found["unknownLags"]) == (9, 1, 1)
    sentences = [each["sentence"] for each in printed if each.get("id") == "commit-beyond-end" and "file" in each]
    assert sentences == ["group g: a-0: committed offset 25 is beyond the log end 10"]
