"""A selection prints what a filter over the whole dump takes, on every golden partition, and reads less."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests import golden, run
from tests.log_files import ABORT, COMMIT, NewBatch, NewRecord, batch_bytes, marker, write_segment
from tests.loops import examples, for_each, some
from tests.processes import start_process
from tests.selections import (
    NOTHING,
    OPTIONS,
    PARTITIONS,
    Chosen,
    Object,
    control,
    from_offset,
    from_time,
    key,
    no_control,
    records_of,
    selections,
    to_offset,
)


def run_dump(partition: str, *arguments: str) -> run.Run:
    return run.kseg(["dump", partition, "-q", *arguments], golden.ROOT)


def record_fields(members: Object) -> tuple[object, ...]:
    names = ("file", "position", "offset", "key", "keyBase64", "value", "valueBase64", "timestamp")
    return tuple(members.get(name) for name in names)


@settings(max_examples=examples(250))
@given(selections() | selections((*OPTIONS[:3], control)) | selections((*OPTIONS[:3], no_control)))
def test_selected_are_the_records_that_a_filter_over_the_whole_dump_takes(chosen: Chosen) -> None:
    lines = run_dump(chosen.partition, "-o", "json", "--only", "records", *chosen.arguments).stdout.splitlines()
    printed = [record_fields(json.loads(line)) for line in lines]
    assert printed == [record_fields(record) for record in chosen.records()], run.command(
        [chosen.partition, *chosen.arguments]
    )


@for_each("partition", some(PARTITIONS, 3))
def test_each_golden_partition_gives_what_a_filter_takes(partition: str) -> None:
    """Drawn examples may lack some options; here each of them is used with a third of the partitions, or with all."""
    records = records_of(partition) or [NOTHING]
    middle = records[len(records) // 2]
    for options in ([from_offset(middle, 0)], [from_time(middle, 0), to_offset(records[-1], 0)], [key(middle, 0)]):
        chosen = Chosen(partition, options)
        lines = run_dump(partition, "-o", "json", "--only", "records", *chosen.arguments).stdout.splitlines()
        printed = [record_fields(json.loads(line)) for line in lines]
        assert printed == [record_fields(record) for record in chosen.records()], run.command(
            [partition, *chosen.arguments]
        )


@pytest.mark.parametrize("count", [0, 1, 7, 10_000])
def test_limit_and_tail_are_the_ends_of_all(count: int) -> None:
    partition = "logs/2.8.2/roll-time-0"
    whole = [record_fields(record) for record in records_of(partition)]
    for option, wanted in (
        ("--limit", whole[:count]),
        ("--tail", whole[len(whole) - count if count < len(whole) else 0 :]),
    ):
        lines = run_dump(partition, "-o", "json", "--only", "records", option, str(count)).stdout.splitlines()
        assert [record_fields(json.loads(line)) for line in lines] == wanted


def test_tail_of_what_else_is_asked() -> None:
    partition = "docs/test-1-0"
    lines = run_dump(partition, "--template", "{offset}", "--tail", "3", "--to-offset", "203205", "--grep", "9").stdout
    assert lines == b"203197\n203198\n203199\n"


def test_sample_is_a_share_that_stays_the_same() -> None:
    offsets = [
        run_dump("docs/test-1-0", "--template", "{offset}", "--sample", share).stdout.splitlines()
        for share in ("5%", "0.05", "0.1", "1")
    ]
    assert offsets[0] == offsets[1]
    assert set(offsets[0]) < set(offsets[2])
    assert 220 < len(offsets[0]) < 410  # of 6300
    assert len(offsets[3]) == 6300


# --- isolation -------------------------------------------------------------------------------------------------------


def transactions(directory: Path) -> Path:
    """Offsets 0-1 committed, 2 its marker; 3 of no transaction; 4-5 aborted, 6 its marker; 7 open; 8 after it."""
    first = NewBatch([NewRecord(None, b"a"), NewRecord(None, b"b")], 0, 5, 0, is_transactional=True)
    second = first._replace(base_offset=4)
    batches = [
        first,
        marker(COMMIT, first),
        NewBatch([NewRecord(None, b"plain")], 3),
        second,
        marker(ABORT, second),
        NewBatch([NewRecord(None, b"open")], 7, 6, 0, is_transactional=True),
        NewBatch([NewRecord(None, b"behind")], 8),
    ]
    write_segment(directory, batches)
    return directory


def test_read_committed_leaves_out_aborted_and_control_records_and_what_follows_an_open_one(tmp_path: Path) -> None:
    transactions(tmp_path / "orders-0")
    ran = run.kseg(["dump", "orders-0", "--isolation", "read_committed", "--template", "{offset}"], tmp_path)
    assert ran.stdout.split() == [b"0", b"1", b"3"]
    assert (
        b"00000000000000000000.txnindex: missing, although the log has aborted transactions: kseg uses the log instead"
        in ran.stderr
    )
    assert b"2 records from offset 7 on are not yet readable: a transaction of producer" in ran.stderr


def test_read_committed_goes_by_the_transaction_index(tmp_path: Path) -> None:
    directory = transactions(tmp_path / "orders-0")
    entry = b"".join(number.to_bytes(size, "big") for number, size in ((0, 2), (5, 8), (4, 8), (6, 8), (7, 8)))
    (directory / f"{0:020}.txnindex").write_bytes(entry)
    ran = run.kseg(["dump", "orders-0", "--isolation", "read_committed", "--template", "{offset}"], tmp_path)
    assert ran.stdout.split() == [b"0", b"1", b"3"]
    assert b"txnindex" not in ran.stderr


def test_transaction_index_that_the_log_does_not_bear_out_is_not_trusted(tmp_path: Path) -> None:
    directory = transactions(tmp_path / "orders-0")
    entry = b"".join(number.to_bytes(size, "big") for number, size in ((0, 2), (5, 8), (0, 8), (2, 8), (7, 8)))
    (directory / f"{0:020}.txnindex").write_bytes(entry)
    ran = run.kseg(["dump", "orders-0", "--isolation", "read_committed", "--template", "{offset}"], tmp_path)
    assert ran.stdout.split() == [b"0", b"1", b"3"]
    assert b"no abort of producer 5 at offset 2: kseg uses the log instead" in ran.stderr


# --- reading little --------------------------------------------------------------------------------------------------

SEGMENT_BATCHES, SEGMENTS, BATCH_RECORDS = 400, 4, 16
STEP_MS = 60_000


@pytest.fixture(scope="module")
def big_partition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four segments of 400 batches of some 38 KiB, a minute between two batches, with indexes made by kseg."""
    root = tmp_path_factory.mktemp("big")
    for number in range(SEGMENTS):
        first = number * SEGMENT_BATCHES
        batches = (big_batch(place) for place in range(first, first + SEGMENT_BATCHES))
        write_segment(root / "plain" / "orders-0", batches, first * BATCH_RECORDS)
    run.kseg(["reindex", "plain/orders-0", "--to", "indexed"], root)
    return root


def big_batch(place: int) -> NewBatch:
    value = b"%08d" % place * 300
    records = [NewRecord(None, value, place * STEP_MS) for _ in range(BATCH_RECORDS)]
    return NewBatch(records, place * BATCH_RECORDS)


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of all reads of log and index files."""
    sizes: list[int] = []
    pread, preadv = os.pread, os.preadv

    def counted_pread(descriptor: int, size: int, position: int) -> bytes:
        content = pread(descriptor, size, position)
        sizes.append(len(content))
        return content

    def counted_preadv(descriptor: int, buffers: list[memoryview], position: int) -> int:
        size = preadv(descriptor, buffers, position)
        sizes.append(size)
        return size

    monkeypatch.setattr(os, "pread", counted_pread)
    monkeypatch.setattr(os, "preadv", counted_preadv)
    return sizes


@pytest.fixture(scope="module")
def indexed_partition(big_partition: Path) -> Path:
    """The partition with its indexes beside the logs."""
    for index in (big_partition / "indexed").rglob("*index"):
        index.rename(big_partition / "plain" / "orders-0" / index.name)
    return big_partition / "plain"


NARROW = ["--from-time", str(1000 * STEP_MS), "--to-time", str(1003 * STEP_MS)]
NARROW_OFFSETS = ["--from-offset", str(1000 * BATCH_RECORDS), "--to-offset", str(1003 * BATCH_RECORDS)]


@pytest.mark.parametrize("narrow", [NARROW, NARROW_OFFSETS], ids=["times", "offsets"])
def test_narrow_range_of_a_big_partition_reads_little_of_it(
    narrow: list[str], indexed_partition: Path, bytes_read: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    size = sum(log.stat().st_size for log in indexed_partition.rglob("*.log"))
    ran = run.kseg(["dump", "orders-0", "--template", "{offset}", *narrow], indexed_partition)
    assert ran.stdout.split() == [b"%d" % offset for offset in range(1000 * BATCH_RECORDS, 1003 * BATCH_RECORDS)]
    assert (ran.status, ran.stderr) == (0, b"")
    with capsys.disabled():
        sys.stdout.write(f"\n{narrow[0]}: {sum(bytes_read)} of {size} bytes read\n")
    assert sum(bytes_read) < size / 5


LAST = SEGMENTS * SEGMENT_BATCHES * BATCH_RECORDS - 1


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["dump", "orders-0", "--template", "{offset}", "--tail", "1"], b"%d\n" % LAST),
        (["ls", "orders-0", "--by", "segment", "-o", "csv", "--tail", "40"], b",40,3,"),
        (["ls", "orders-0", "--by", "segment", "-o", "csv", *NARROW_OFFSETS], b",48,3,"),
        (["lookup", "orders-0", "--timestamp", "latest", "--grep", "00001599"], b"\noffset: %d " % LAST),
        (["lookup", "orders-0", "--offset", "16000", "--grep", "00001003"], b"\noffset: %d " % (1003 * BATCH_RECORDS)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_other_commands_and_tails_read_little_too(
    arguments: list[str], shown: bytes, indexed_partition: Path, bytes_read: list[int]
) -> None:
    size = sum(log.stat().st_size for log in indexed_partition.rglob("*.log"))
    ran = run.kseg(arguments, indexed_partition)
    assert ran.status == 0
    assert shown in ran.stdout
    assert sum(bytes_read) < size / 20


def test_index_that_lies_is_not_trusted_and_named(indexed_partition: Path, tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    shutil.copytree(indexed_partition / "orders-0", partition)
    index = partition / f"{800 * BATCH_RECORDS:020}.index"
    entries = index.read_bytes()
    index.write_bytes(b"".join(entries[at : at + 4] + b"\0\0\0\x07" for at in range(0, len(entries), 8)))
    ran = run.kseg(["dump", "orders-0", "--template", "{offset}", *NARROW_OFFSETS], tmp_path)
    assert ran.stdout.split() == [b"%d" % offset for offset in range(1000 * BATCH_RECORDS, 1003 * BATCH_RECORDS)]
    assert f"{index.name}: the entry".encode() in ran.stderr
    assert b"doesn't point at an intact batch: kseg scans the log instead" in ran.stderr
    assert run.kseg(["dump", "orders-0", "-q", "--template", "{offset}", *NARROW_OFFSETS], tmp_path).stderr == b""


def test_only_what_may_be_wanted_is_decompressed(tmp_path: Path) -> None:
    log = golden.ROOT / "logs/4.3.1/zstd-0"
    whole = records_of("logs/4.3.1/zstd-0")
    last = whole[-1]
    code = (
        "import sys; from kseg.cli import main; main(sys.argv[1:]); print('zstandard' in sys.modules, file=sys.stderr)"
    )
    arguments = ["dump", str(log), "-q", "--template", "{offset}", "--producer-id", "123456"]
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, check=True, cwd=tmp_path)
    assert (ran.stdout, ran.stderr.split()[-1]) == (b"", b"False")
    arguments = ["dump", str(log), "-q", "--template", "{offset}", "--from-offset", str(last["offset"])]
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, check=True, cwd=tmp_path)
    assert (ran.stdout.split(), ran.stderr.split()[-1]) == ([b"%d" % last["offset"]], b"True")


# --- following -------------------------------------------------------------------------------------------------------


def test_follow_goes_on_over_a_torn_end_and_a_new_segment_and_ends_with_130(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    log = write_segment(partition, [NewBatch([NewRecord(None, b"a")], 0)])
    arguments = ["dump", str(partition), "-q", "--template", "{offset} {value}", "--follow", "--tail", "1"]
    command = [str(Path(sys.executable).parent / "kseg"), *arguments]
    with start_process(command, tmp_path) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"0 a\n"
        second = batch_bytes(NewBatch([NewRecord(None, b"b")], 1))
        with log.open("ab") as file:
            file.write(second[:40])
            file.flush()
            file.write(second[40:])
        assert follower.stdout.readline() == b"1 b\n"
        write_segment(partition, [NewBatch([NewRecord(None, b"c")], 2)], 2)
        assert follower.stdout.readline() == b"2 c\n"
        follower.send_signal(signal.SIGINT)
        _, stderr = follower.communicate()
    assert (follower.returncode, stderr.strip()) == (130, b"")


def test_follow_ends_at_its_limit(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(None, b"a"), NewRecord(None, b"b")], 0)])
    ran = run.kseg(["dump", "orders-0", "--template", "{value}", "--follow", "--limit", "1"], tmp_path)
    assert (ran.status, ran.stdout) == (0, b"a\n")


# --- usage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--key-regex", "("], "--key-regex (: "),
        (["--grep", "(" * 5_000 + ")" * 5_000], "--grep " + "(" * 60 + "…: "),
        (["--grep", "(?P<a>" + "x" * 1_000], "--grep (?P<a>"),
        (["--sample", "2"], "--sample 2: this isn't a share; specify one such as 0.01 or 1%"),
        (["--from-time", "noon"], "'noon' isn't a valid time"),
        (["--from-time", "now", "--tz", "Mars/Base"], "--tz Mars/Base: no such time zone"),
        (["--key", "hex:zz"], "'hex:zz': "),
        (["--like", "2.8", "--limit", "1"], "--like prints complete files"),
        (["--shallow", "--grep", "x"], "--shallow and --only batches don't read records"),
        (["--control", "--isolation", "read_committed"], "--control can't be used with --isolation read_committed"),
        (["--fields", "offset,nothing"], "--fields: there is no field nothing; specify some of file, topic,"),
        (["--template", "{nothing}"], "no field nothing"),
        (["--template", "{offset}", "-o", "csv"], "--template prints a line of text"),
        (["--value-decoder", "nothing"], "--value-decoder nothing: no such decoder; specify one of string,"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str], complaint: str) -> None:
    ran = run.kseg(["dump", "docs/test-1-0/00000000000000203000.log", *arguments], golden.ROOT)
    assert (ran.status, ran.stdout) == (2, b"")
    assert complaint in ran.stderr.decode()


def test_times_are_in_the_zone_that_is_named() -> None:
    texts = (["--from-time", "2020-02-13T12:38:18.775Z"], ["--from-time", "2020-02-13 13:38:18.775", "--tz", "+01:00"])
    first, second = (run_dump("docs/test-1-0", "--template", "{offset}", *text).stdout for text in texts)
    assert first == second
    assert first.startswith(b"2")
