"""Queries read only the needed partitions, offsets, times and columns, and report them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import golden, run
from tests.log_files import NewBatch, NewRecord, batch_bytes, write_segment
from tests.query.disks import PARTITIONS, PER_SEGMENT, SEGMENTS, START_MS, opened, rows, run_query, write_disk

BLOCK = 64 << 10
"""Bytes that may be read in excess: the log is read by blocks."""
COUNTED = """
import sys
from pathlib import Path
from kseg.query.database import QueryLimits
from kseg.query.session import QuerySources, open_session

def read():
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("rchar:")))

with open_session(QuerySources((Path(sys.argv[1]),)), QueryLimits(), print) as session:
    for sql in (*sys.argv[2:], *sys.argv[2:]):  # the first ones read modules
        before = read()
        for answer in session.answers(sql):
            for _ in answer.batches:
                pass
        print(read() - before)
"""
needs_counts = pytest.mark.skipif(
    not Path("/proc/self/io").exists(), reason="only Linux counts the bytes that are read"
)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_disk(tmp_path_factory.mktemp("disk"))


def bytes_read(disk: Path, *queries: str) -> list[int]:
    """Return the bytes that each query reads, in a separate process that has made the queries before."""
    ran = subprocess.run(
        [sys.executable, "-c", COUNTED, str(disk), *queries], capture_output=True, text=True, check=True
    )
    return list(map(int, ran.stdout.split()[len(queries) :]))


def size_of(disk: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in disk.glob(pattern))


@needs_counts
def test_narrow_queries_read_little(disk: Path) -> None:
    everything, one_partition, few_offsets, late, nothing = bytes_read(
        disk,
        "SELECT count(*) FROM orders",
        "SELECT count(*) FROM records WHERE topic = 'orders' AND partition = 1",
        'SELECT * FROM orders WHERE partition = 2 AND "offset" BETWEEN 700 AND 710',
        f"SELECT count(*) FROM orders WHERE timestamp >= to_timestamp({START_MS / 1000 + SEGMENTS * PER_SEGMENT - 20})",
        "SELECT count(*) FROM records WHERE topic = 'unknown'",
    )
    orders, partition = size_of(disk, "orders-*/*.log"), size_of(disk, "orders-1/*.log")
    assert orders <= everything < orders * 1.1  # the batch at the end of a buffer is read again
    assert partition <= one_partition < partition * 1.1
    assert few_offsets < 2 * BLOCK < partition // 10
    assert late < orders // 2  # the lookup of the time reads the last batches of all segments
    assert nothing < 4096


@needs_counts
def test_what_is_not_wanted_of_a_limit_is_not_read(tmp_path: Path) -> None:
    records = [NewRecord(b"k", b"v" * 1000) for _ in range(100)]
    batches = (NewBatch(records, first * 100) for first in range(400))
    write_segment(tmp_path / "big-0", batches)
    (read,) = bytes_read(tmp_path, "SELECT key FROM big LIMIT 5")
    assert read < size_of(tmp_path, "big-0/*.log") // 4


@needs_counts
def test_batches_of_other_offsets_are_not_read(disk: Path) -> None:
    (read,) = bytes_read(
        disk, "SELECT count(*) FROM batches WHERE partition = 0 AND topic = 'orders' AND \"baseOffset\" < 10"
    )
    assert read < size_of(disk, "orders-0/00000000000000000000.log") + 4 * BLOCK < size_of(disk, "orders-0/*.log") // 2


def test_explain_says_what_would_be_read_and_reads_no_log(disk: Path) -> None:
    (scan,) = run_query(
        disk, "--dry-run", 'SELECT key FROM orders WHERE partition = 2 AND "offset" BETWEEN 700 AND 710'
    )
    assert (scan["table"], scan["columns"]) == ("orders", ["key"])
    assert (scan["partitions"], scan["partitionsInAll"]) == (1, PARTITIONS)
    assert scan["offsets"] == "700 to 710"
    assert 0 < scan["bytes"] < 2 * BLOCK
    assert scan["bytesInAll"] == size_of(disk, "orders-*/*.log")
    assert scan["condition"] == "((partition == 2) and ((offset >= 700) and (offset <= 710)))"


def test_explain_tells_from_where_on_a_time_is_looked_for(disk: Path) -> None:
    late = START_MS / 1000 + SEGMENTS * PER_SEGMENT - 20
    (scan,) = run_query(disk, "--dry-run", f"SELECT count(*) FROM orders WHERE timestamp >= to_timestamp({late})")
    assert scan["offsets"] == f"{SEGMENTS * PER_SEGMENT - 20} to"
    assert scan["bytes"] < scan["bytesInAll"] // 20


def test_explain_names_each_table_of_a_query(disk: Path) -> None:
    sql = "SELECT o.key FROM orders o JOIN odd USING (key) WHERE o.topic IN (SELECT topic FROM segments)"
    scans = run_query(disk, "--dry-run", sql)
    assert sorted(scan["table"] for scan in scans) == ["odd", "orders", "segments"]
    assert all(scan["bytes"] is None for scan in scans if scan["table"] == "segments")


def test_times_are_found_though_records_are_out_of_order(tmp_path: Path) -> None:
    times = [5, 3, 9, 1, 7, 2, 8]
    batches = [NewBatch([NewRecord(b"k", b"v", START_MS + time)], offset) for offset, time in enumerate(times)]
    write_segment(tmp_path / "late-0", batches)
    with opened(tmp_path) as session:
        for bound in range(11):
            above = f'SELECT "offset" FROM late WHERE epoch_ms(timestamp) - {START_MS} >= {bound} ORDER BY 1'
            pushed = (
                f'SELECT "offset" FROM late WHERE timestamp >= make_timestamptz({(START_MS + bound) * 1000}) ORDER BY 1'
            )
            below = (
                f'SELECT "offset" FROM late WHERE timestamp < make_timestamptz({(START_MS + bound) * 1000}) ORDER BY 1'
            )
            assert rows(session, pushed) == rows(session, above)
            assert [row[0] for row in rows(session, below)] == [at for at, time in enumerate(times) if time < bound]


PEAK = """
import sys
from pathlib import Path
from kseg.cli import main

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM:")))

main(["query", "select * from big", ".", "-o", "csv"])
sys.stderr.write(str(peak() >> 10))
"""


@needs_counts
def test_answers_take_no_more_memory_for_a_larger_log(tmp_path: Path) -> None:
    """The answer has the complete log: in memory, three times the log would take 200 MiB more.

    The peaks are the programs' own: `getrusage` would start with the parent's memory.
    """
    batch = batch_bytes(NewBatch([NewRecord(b"k", b"v" * 10_000) for _ in range(100)]))
    (tmp_path / "big-0").mkdir()
    peaks = []
    for first, end in ((0, 10_000), (10_000, 30_000)):
        for segment in range(first, end, 1000):
            batches = (offset.to_bytes(8, "big") + batch[8:] for offset in range(segment, segment + 1000, 100))
            (tmp_path / f"big-0/{segment:020}.log").write_bytes(b"".join(batches))
        ran = subprocess.run([sys.executable, "-c", PEAK], cwd=tmp_path, capture_output=True, check=True)
        assert ran.stdout.count(b"\n") == end + 1
        peaks.append(int(ran.stderr))
    smaller, larger = peaks
    assert larger - smaller < 120, peaks  # threads and allocators differ by 70 MiB from run to run


@pytest.mark.parametrize(
    ("sql", "step"),
    [
        ("select length(value) from idem", b"octet_length("),
        ("select count(*) from orders.v1", b"quote a topic whose name has dots"),
    ],
)
def test_error_of_sql_names_what_to_write(sql: str, step: bytes) -> None:
    ran = run.kseg(["query", sql, "logs/2.8.2"], golden.ROOT)
    assert ran.status == 2
    assert step in ran.stderr


def test_a_record_without_a_timestamp_has_null(tmp_path: Path) -> None:
    times = [-1, 0, 9_000_000_000_000_000, 1_200_000_000_000_000, START_MS]
    write_segment(tmp_path / "t-0", [NewBatch([NewRecord(b"k", b"v", time)], at) for at, time in enumerate(times)])
    found = run_query(tmp_path, 'SELECT timestamp t, year(timestamp) y FROM t ORDER BY "offset"')
    assert found[:4] == [
        {"t": None, "y": None},
        {"t": "1970-01-01T00:00:00.000Z", "y": 1970},
        {"t": "+287168-08-24T16:00:00.000Z", "y": 287168},
        {"t": "+39996-06-26T21:20:00.000Z", "y": 39996},
    ]
    assert run_query(tmp_path, 'SELECT "offset" FROM t WHERE timestamp IS NULL') == [{"offset": 0}]
    assert run_query(tmp_path, "SELECT count(*) n FROM records WHERE timestamp < '1970-01-01'") == [{"n": 0}]


def test_a_year_beyond_those_of_python_is_in_the_zone_and_has_a_sign(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", [NewBatch([NewRecord(b"k", b"v", 253_402_300_799_000)])])
    found = run_query(tmp_path, "--tz", "Europe/Berlin", "SELECT timestamp t, timestamp + INTERVAL 1 DAY d FROM t")
    assert found == [{"t": "+10000-01-01T00:59:59.000+01:00", "d": "+10000-01-02T00:59:59.000+01:00"}]
    plain = run_query(tmp_path, "SELECT (timestamp + INTERVAL 1 DAY)::TIMESTAMP d FROM t")
    assert plain == [{"d": "+10000-01-01T23:59:59.000"}]
