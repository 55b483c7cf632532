"""`kseg ls`: columns, forms, selection, order."""

import csv
import json
import os
import shutil
from itertools import product
from pathlib import Path

import pytest

from tests import golden, run
from tests.commands.test_remote_tier import write_metadata
from tests.failing_disk import FailingDisk
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import TAKES_ALL, for_each

BROKER = "logs/2.8.2"
DISKS = (BROKER, "logs/2.3.1", "logs/3.6.2", "logs/0.8.2.2", "docs")
NOW = "1795256900000"


def kseg(*arguments: str) -> run.Run:
    return run.kseg(["ls", "--now", NOW, *arguments], golden.ROOT)


def objects(*arguments: str) -> list[dict[str, object]]:
    ran = kseg("-o", "json", *arguments)
    assert (ran.status, ran.stderr) == (0, b"")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def of_type(kind: str, *arguments: str) -> list[dict[str, object]]:
    by = () if kind == "total" else ("--by", kind)
    return [member for member in objects(*by, *arguments) if member["type"] == kind]


def test_every_partition_and_segment_is_listed_by_name() -> None:
    listed = [member["directory"] for member in of_type("partition", BROKER)]
    assert listed == sorted(str(path.relative_to(golden.ROOT)) for path in (golden.ROOT / BROKER).glob("*-[0-9]"))
    logs = sorted((golden.ROOT / BROKER).glob("*/*.log"))
    assert len(of_type("segment", BROKER)) == len(logs)


def test_segment_at_a_glance() -> None:
    (segment,) = of_type("segment", "docs/test-1-0")
    assert segment == {
        "type": "segment",
        "topic": "test-1",
        "partition": 0,
        "directory": "docs/test-1-0",
        "baseOffset": 203000,
        "lastOffset": 209299,
        "bytes": 199858,
        "firstTimestamp": 1581597478310,
        "largestTimestamp": 1581597498775,
        "codecs": ["none"],
        "magics": [2],
        "records": None,
        "batches": None,
        "compressionRatio": None,
        "producerIds": None,
        "openTransactions": None,
        "abortedTransactions": 0,
        "indexEntries": 11,
        "timeIndexEntries": 12,
        "indexHealth": "ok",
        "damagePosition": None,
        "rolled": "active",
        "retention": "delete-time",
    }


@pytest.mark.parametrize("root", [BROKER, "logs/0.9.0.1", "logs/4.3.1"])
def test_deep_listing_counts_what_dump_counts(root: str) -> None:
    listed = {
        f"{segment['directory']}/{segment['baseOffset']:020}.log": (segment["batches"], segment["records"])
        for segment in of_type("segment", "--deep", root)
    }
    for path, counts in listed.items():
        dumped = run.kseg(["dump", "-o", "json", path], golden.ROOT).stdout.splitlines()
        summary = json.loads(dumped[-1])
        assert (summary["batches"], summary["records"]) == counts, path


def test_deep_listing_tells_producers_and_transactions() -> None:
    segments = of_type("segment", "--deep", "logs/2.3.1/txn-1")
    last = segments[-1]
    assert last["producerIds"] == [4, 5, 6, 7, 8, 9, 1000, 1001]
    assert last["abortedTransactions"] == 4
    assert last["openTransactions"] == 2  # of 9 and 1001


def test_glance_and_deep_listing_agree_on_what_both_know() -> None:
    same = ("baseOffset", "lastOffset", "bytes", "firstTimestamp", "largestTimestamp", "indexEntries", "rolled")
    glance, deep = of_type("segment", BROKER), of_type("segment", "--deep", BROKER)
    assert [[row[name] for name in same] for row in glance] == [[row[name] for name in same] for row in deep]


def test_csv_has_the_columns_of_json() -> None:
    rows = list(csv.DictReader(kseg("-o", "csv", "--by", "segment", BROKER).stdout.decode().splitlines()))
    segments = of_type("segment", BROKER)
    assert list(rows[0]) == list(segments[0])[1:]
    assert [int(row["bytes"]) for row in rows] == [segment["bytes"] for segment in segments]


def test_topics_are_chosen_by_a_pattern() -> None:
    assert {member["topic"] for member in of_type("partition", BROKER, "--topic", "v*")} == {"v0-snappy", "v1-append"}


def test_sorting_by_size_puts_the_largest_first() -> None:
    sizes = [member["bytes"] for member in of_type("partition", BROKER, "--sort", "size")]
    assert sizes == sorted(sizes, reverse=True)  # type: ignore[type-var]


def test_partition_tells_its_offsets_and_checkpoints() -> None:
    (partition,) = of_type("partition", f"{BROKER}/idem-0")
    assert partition["logStartOffset"] == 62
    assert partition["logEndOffset"] == partition["highWatermark"] == partition["recoveryPoint"] == 118
    assert partition["leaderEpoch"] == 0


def test_reason_of_a_roll_follows_the_settings() -> None:
    default = of_type("segment", f"{BROKER}/idem-0")
    small = of_type("segment", f"{BROKER}/idem-0", "--segment-bytes", "6000")
    assert [row["rolled"] for row in default] == ["unknown", "active"]
    assert [row["rolled"] for row in small] == ["size", "active"]


def test_reason_of_a_roll_follows_the_topics_own_settings(tmp_path: Path) -> None:
    shutil.copytree(golden.ROOT / BROKER / "idem-0", tmp_path / "orders-0")
    write_metadata(tmp_path, segment_bytes="6000")
    for options, expected in ((), "size"), (("--segment-bytes", "1000000"), "unknown"):
        rows = of_type("segment", str(tmp_path / "orders-0"), *options)
        assert [row["rolled"] for row in rows] == [expected, "active"]


def test_retention_follows_the_settings() -> None:
    kept = of_type("segment", f"{BROKER}/idem-0", "--retention-ms", "-1")
    by_size = of_type("segment", f"{BROKER}/idem-0", "--retention-ms", "-1", "--retention-bytes", "1152")
    assert [row["retention"] for row in kept] == ["keep", "keep"]
    assert [row["retention"] for row in by_size] == ["delete-size", "keep"]


def test_totals_are_the_sums() -> None:
    (total,) = of_type("total", BROKER)
    assert total["bytes"] == sum(path.stat().st_size for path in (golden.ROOT / BROKER).glob("*/*.log"))


def test_text_and_table_show_each_segment() -> None:
    for form in ("text", "table"):
        ran = kseg("-o", form, "--by", "segment", "--bytes", f"{BROKER}/idem-0")
        shown = ran.stdout.decode()
        assert ran.status == 0
        assert all(word in shown for word in ("LARGEST TIME", "5512", "1152", "ROLLED", "Total: 1 topic, 1 partition"))
        assert "\x1b" not in shown


def test_names_that_harm_a_terminal_are_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "\x1b[2Jevil"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(b"")
    for form in ("text", "table"):
        ran = run.kseg(["ls", "-o", form, str(folder)], golden.ROOT)
        assert b"\x1b[2J" not in ran.stdout
        assert b"\\x1b[2Jevil" in ran.stdout


def test_missing_directory_ends_with_2() -> None:
    assert kseg("nowhere").status == 2


def test_directory_without_partitions_does_not_hide_the_others(tmp_path: Path) -> None:
    ran = kseg(str(tmp_path), "docs", "nowhere", "-o", "json")
    assert [json.loads(line)["type"] for line in ran.stdout.splitlines()] == ["partition", "total"]
    assert [line.split(": ")[1] for line in ran.stderr.decode().splitlines()] == [str(tmp_path), "nowhere"]
    assert ran.status == 2


@pytest.mark.parametrize(("options", "expected"), [((), "keep"), (("--retention-ms", "3600000"), "delete-time")])
def test_retention_is_the_topics_where_metadata_tell_it(options: tuple[str, ...], expected: str) -> None:
    listed = of_type("segment", "logs/4.3.1", "--now", "1893456000000", *options)
    found = {each["topic"]: each["retention"] for each in listed}
    assert found["__share_group_state"] == expected  # retention.ms=-1
    assert found["compacted-txn"] == "keep"  # cleanup.policy=compact
    assert found["zstd"] == "delete-time"


def test_metadata_that_are_too_large_are_named(tmp_path: Path) -> None:
    shutil.copytree(golden.ROOT / "docs" / "test-1-0", tmp_path / "kafka-logs" / "test-1-0")
    metadata = tmp_path / "kafka-logs" / "__cluster_metadata-0"
    metadata.mkdir()
    (metadata / f"{0:020}.log").touch()
    os.truncate(metadata / f"{0:020}.log", (4 << 20) + 1)
    ran = run.kseg(["ls", "kafka-logs/test-1-0"], tmp_path)
    assert ran.status == 0
    path = tmp_path / "kafka-logs" / "__cluster_metadata-0"
    assert ran.stderr.decode() == (
        f"kseg: {path}: not read: 4194305 bytes, more than the 4194304 that kseg reads here: retention uses options"
        " and Kafka's defaults; run `kseg retain`, which reads metadata of any size\n"
        "kseg: settings: retention.ms and retention.bytes from Kafka's default; no metadata of the cluster read\n"
    )
    assert run.kseg(["ls", "-q", "kafka-logs/test-1-0"], tmp_path).stderr == b""
    assert run.kseg(["ls", "kafka-logs"], tmp_path).stderr.count(b"not read") == 1


# --- lines: their units, order and number ---------------------------------------------------------------------------


def test_a_line_is_a_partitions_by_itself() -> None:
    titles, *lines, total = kseg(BROKER).stdout.decode().splitlines()
    assert titles.split()[:5] == ["PARTITION", "SEGMENTS", "SIZE", "FIRST", "LAST"]
    assert [line.split()[0] for line in lines] == [each["directory"] for each in of_type("partition", BROKER)]
    assert total.startswith("Total: ")
    (line,) = (line for line in lines if line.startswith(f"{BROKER}/idem-0 "))
    assert line.split()[1:] == ["2", "6.5", "KiB", "62", "117", "2026-10-02T09:46:57.042Z", "6.5", "KiB"]


def test_head_and_rows_tell_the_same_last_offset() -> None:
    head, _, *rows, _ = kseg(f"{BROKER}/idem-0", "--by", "segment").stdout.decode().splitlines()
    (partition,) = of_type("partition", f"{BROKER}/idem-0")
    assert (partition["lastOffset"], partition["logEndOffset"]) == (117, 118)
    assert "offsets 62 to 117," in head
    assert rows[-1].split()[1] == "117"


def test_empty_partition_has_no_last_offset() -> None:
    (partition,) = of_type("partition", "logs/4.3.1/meta.9-0")
    assert (partition["lastOffset"], partition["logEndOffset"]) == (None, 0)
    assert "no offsets" in kseg("logs/4.3.1/meta.9-0", "--by", "segment").stdout.decode()


@pytest.mark.parametrize("kind", ["topic", "directory"])
def test_sums_by_topic_and_by_directory_add_up(kind: str) -> None:
    rows = of_type(kind, BROKER, "logs/2.3.1")
    (total,) = of_type("total", BROKER, "logs/2.3.1")
    for name in ("partitions", "segments", "bytes", "segmentsToDelete", "bytesToDelete", "cleanableBytes"):
        assert sum(row[name] for row in rows) == total[name]  # type: ignore[misc]
    names = [row[kind] for row in rows]
    assert names == sorted(names)  # type: ignore[type-var]
    assert kind != "directory" or names == ["logs/2.3.1", BROKER]


IN_ALL_FORMS = list(product(["topic", "partition", "segment", "directory"], ["text", "table", "csv", "json"]))
IN_SOME_FORMS = [case for n, case in enumerate(IN_ALL_FORMS) if (n // 4 + n) % 2 == 0]
"""Each kind in two of the forms, each form with two of the kinds."""


@for_each("kind, form", IN_ALL_FORMS if TAKES_ALL else IN_SOME_FORMS)
def test_what_is_cut_is_named_and_the_totals_are_those_of_all(kind: str, form: str) -> None:
    arguments = (*DISKS, "--by", kind, "-o", form)
    everything = [each for each in objects(*DISKS, "-q", "--by", kind) if each["type"] == kind]
    left = sorted((int(str(each["bytes"])) for each in everything), reverse=True)[2:]
    whole, cut = kseg(*arguments, "--bytes"), kseg(*arguments, "--top", "2", "--bytes")
    said = cut.stdout.decode() + cut.stderr.decode()
    if form == "json":
        assert json.loads(cut.stdout.splitlines()[-2]) == {"type": "cut", "rows": len(left), "bytes": sum(left)}
    else:
        plural = {"directory": "directories"}.get(kind, f"{kind}s")
        assert f"Not shown: {len(left)} more {plural}, {sum(left)} bytes\n" in said
    if form != "csv":
        assert cut.stdout.splitlines()[-1] == whole.stdout.splitlines()[-1]


@pytest.mark.parametrize("kind", ["topic", "partition", "segment", "directory"])
def test_top_ones_without_an_order_are_the_largest(kind: str) -> None:
    sizes = sorted((each["bytes"] for each in of_type(kind, *DISKS, "-q")), reverse=True)  # type: ignore[type-var]
    assert [each["bytes"] for each in of_type(kind, *DISKS, "-q", "--top", "3")] == sizes[:3]


def test_order_that_rows_do_not_have_is_refused() -> None:
    ran = kseg(BROKER, "--by", "topic", "--sort", "offset")
    assert (ran.status, ran.stdout) == (2, b"")
    assert (
        b"--sort offset can't be used with --by topic; sort by name, size, disk, segments, time, deletable"
        in ran.stderr
    )


def test_sizes_of_programs_are_exact_and_of_people_if_they_want_it() -> None:
    assert b"6664" in kseg(f"{BROKER}/idem-0", "-o", "csv").stdout
    assert b" 6664 " in kseg(f"{BROKER}/idem-0", "--bytes").stdout
    assert b" 6.5 KiB " in kseg(f"{BROKER}/idem-0", "-o", "table").stdout


def test_many_partitions_come_in_aligned_pieces(tmp_path: Path) -> None:
    for number in range(1100):
        (tmp_path / f"t-{number}").mkdir()
        (tmp_path / f"t-{number}" / f"{0:020}.log").touch()
    lines = run.kseg(["ls", "."], tmp_path).stdout.decode().splitlines()
    assert [line.split()[:3] for line in lines[1:-1]] == [[f"t-{number}", "1", "0"] for number in range(1100)]


@pytest.mark.parametrize("is_active", [True, False])
def test_zeros_after_the_last_batch_are_damage_unless_they_may_still_be_written(
    is_active: bool, tmp_path: Path
) -> None:
    partition = tmp_path / "plain-1"
    partition.mkdir()
    source = min((golden.ROOT / "logs/3.6.2/plain-1").glob("*.log"))
    (partition / source.name).write_bytes(source.read_bytes() + bytes(100))
    if not is_active:
        (partition / f"{10**6:020}.log").touch()
    ran = run.kseg(["ls", "plain-1", "--by", "segment", "-o", "json"], tmp_path)
    row = json.loads(ran.stdout.splitlines()[0])
    assert row["damagePosition"] == (None if is_active else source.stat().st_size)
    assert (b"damage at" in run.kseg(["ls", "plain-1", "--by", "segment"], tmp_path).stdout) is not is_active


def test_the_server_properties_of_a_broker_say_nothing_of_another(tmp_path: Path) -> None:
    for broker in (1, 2):
        write_segment(tmp_path / f"b{broker}/t-0", [NewBatch([NewRecord(b"k", b"v", 1000)])])
        write_segment(tmp_path / f"b{broker}/t-0", [NewBatch([NewRecord(b"k", b"v", 1000)], 1)], 1)
        (tmp_path / f"b{broker}/meta.properties").write_text(f"version=1\nnode.id={broker}\n", encoding="utf-8")
    (tmp_path / "server.properties").write_text("node.id=2\nlog.retention.ms=-1\n", encoding="utf-8")
    ran = run.kseg(
        ["ls", "b1", "b2", "--by", "segment", "--server-properties", "server.properties", "-o", "json"], tmp_path
    )
    rows = [row for row in map(json.loads, ran.stdout.splitlines()) if row["type"] == "segment"]
    kept = {row["directory"].split("/")[0]: row["retention"] for row in rows if row["baseOffset"] == 0}
    assert kept == {"b1": "delete-time", "b2": "keep"}


def two_copies(tmp_path: Path) -> None:
    """Write a partition on two brokers' disks, of which the first one is deleting another partition."""
    records = [NewRecord(b"k", b"v", 1000)] * 3
    for name in ("disk1/orders-0", "disk2/orders-0", f"disk1/orders-1.{'0' * 32}-delete"):
        write_segment(tmp_path / name, [NewBatch(records)])


@for_each("by", ["topic", "directory", "partition"])
def test_sums_tell_copies_and_what_is_not_in_use(by: str, tmp_path: Path) -> None:
    two_copies(tmp_path)
    total = run.kseg(["ls", "disk1", "disk2", "--deep", "--by", by], tmp_path).stdout.decode().splitlines()[-1]
    assert total.startswith("Total: 1 topic, 3 partitions (1 further copy, 1 not in use), 3 segments, ")
    assert ", 9 records" in total
    rows = run.kseg(["ls", "disk1", "disk2", "--by", by, "-o", "json"], tmp_path).stdout.splitlines()
    found = json.loads(rows[-1])
    assert (found["partitions"], found["copyCount"], found["notInUse"], found["incomplete"]) == (3, 1, 1, 0)
    total = run.kseg(["ls", "disk2", "--by", by], tmp_path).stdout.decode().splitlines()[-1]
    assert total.startswith("Total: 1 topic, 1 partition, 1 segment, ")


def test_sums_count_no_copies_across_clusters(tmp_path: Path) -> None:
    two_copies(tmp_path)
    for disk in ("disk1", "disk2"):
        (tmp_path / disk / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id=of-{disk}\n")
    for command in (["ls", "--by", "topic"], ["doctor"]):
        rows = run.kseg([*command, "disk1", "disk2", "-o", "json"], tmp_path).stdout.splitlines()
        (topic,) = [row for row in map(json.loads, rows) if row["type"] == "topic"]
        assert (topic["partitions"], topic["copyCount"]) == (3, 0), command


def test_sums_tell_of_partitions_of_which_something_is_not_counted(tmp_path: Path, failing_disk: FailingDisk) -> None:
    two_copies(tmp_path)
    failing_disk.lose_file(next((tmp_path / "disk2/orders-0").glob("*.log")))
    ran = run.kseg(["ls", "disk1", "disk2", "-o", "json"], tmp_path)
    assert json.loads(ran.stdout.splitlines()[-1])["incomplete"] == 1
    total = run.kseg(["ls", "disk1", "disk2"], tmp_path).stdout.decode().splitlines()[-1]
    assert total.endswith("; 1 partition with problems may add more")


def test_a_report_tells_copies_and_what_is_not_in_use(tmp_path: Path) -> None:
    two_copies(tmp_path)
    first = run.kseg(["report", "disk1", "disk2", "-o", "text"], tmp_path).stdout.decode().splitlines()[0]
    assert first.startswith("2 log directories: 3 partitions (1 further copy, 1 not in use), 1 topic, ")


def test_a_plan_that_frees_bytes_tells_what_it_lacks(tmp_path: Path, failing_disk: FailingDisk) -> None:
    two_copies(tmp_path)
    failing_disk.lose_file(next((tmp_path / "disk2/orders-0").glob("*.log")))
    ran = run.kseg(["retain", "disk1", "disk2", "--free", "1MB"], tmp_path)
    (said,) = [line for line in ran.stderr.decode().splitlines() if line.endswith("; the plan may lack what is there")]
    assert said.startswith(f"kseg: disk2/orders-0/{0:020}.log: at position 0: the file can't be opened")


def test_the_doctor_tells_copies_and_what_is_not_in_use(tmp_path: Path) -> None:
    two_copies(tmp_path)
    text = run.kseg(["doctor", "disk1", "disk2"], tmp_path).stdout.decode()
    assert "orders, 3 partitions (1 further copy, 1 not in use)" in text
    rows = map(json.loads, run.kseg(["doctor", "disk1", "disk2", "-o", "json"], tmp_path).stdout.splitlines())
    (topic,) = [row for row in rows if row["type"] == "topic"]
    assert (topic["partitions"], topic["copyCount"], topic["setAside"]) == (3, 1, 1)


def preallocated_disk(tmp_path: Path) -> Path:
    """Return two small partitions; one has an index with 4 MiB of allocated disk space."""
    for name in ("gzip-0", "zstd-0"):
        shutil.copytree(golden.ROOT / "logs" / "2.4.1" / name, tmp_path / name)
    index = next((tmp_path / "gzip-0").glob("*.timeindex"))
    index.write_bytes(index.read_bytes() + b"\1" * (4 << 20))
    return tmp_path


def test_people_see_what_the_disk_has_set_aside_where_it_differs(tmp_path: Path) -> None:
    disk = str(preallocated_disk(tmp_path))
    gzip, zstd, total = kseg("--no-color", disk).stdout.decode().splitlines()[1:]
    assert "4.0 MiB on disk" in gzip
    assert "on disk" not in zstd
    assert "MiB on disk" in total
    by_topic = kseg("--by", "topic", disk).stdout.decode()
    assert "ON DISK" in by_topic
    assert "ON DISK" not in kseg("--by", "topic", str(tmp_path / "zstd-0")).stdout.decode()


@pytest.mark.parametrize("by", ["topic", "partition"])
def test_sorted_by_space_on_disk(by: str, tmp_path: Path) -> None:
    preallocated_disk(tmp_path)
    assert objects("--sort", "disk", "--by", by, str(tmp_path))[0]["topic"] == "gzip"
    assert "ON DISK" in kseg("--sort", "disk", "--by", by, str(tmp_path / "zstd-0")).stdout.decode()


def test_worst_segments_first(tmp_path: Path) -> None:
    shutil.copytree(golden.ROOT / BROKER / "idem-0", tmp_path / "idem-0")
    segments = of_type("segment", str(tmp_path), "--sort", "health")
    last = segments[-1]["baseOffset"]
    (tmp_path / "idem-0" / f"{last:020}.index").unlink()
    first = of_type("segment", str(tmp_path), "--sort", "health")[0]
    assert (first["baseOffset"], first["indexHealth"]) == (last, "no index")
