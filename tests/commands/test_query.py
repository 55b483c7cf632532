"""`kseg query` as its user sees it."""

import io
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import kseg as library
from tests.loops import for_each
from tests.processes import start_process
from tests.query.disks import opened, rows, run_query, write_disk
from tests.run import kseg
from tests.sandbox import make_sandbox
from tests.terminal import in_terminal, plain


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_disk(tmp_path_factory.mktemp("disk"))


def print_answer(directory: Path, *arguments: str) -> str:
    ran = kseg(["query", *arguments], directory)
    assert (ran.status, ran.stderr) == (0, b"")
    return ran.stdout.decode()


def expect_refusal(directory: Path, *arguments: str) -> str:
    """Return the single line of a run that ends with status 2."""
    ran = kseg(["query", *arguments], directory)
    assert (ran.status, ran.stdout) == (2, b"")
    (line,) = ran.stderr.decode().splitlines()
    return line


# --- forms of output --------------------------------------------------------------------------------------------------

ODD = 'SELECT "offset", key, value, timestamp, headers FROM odd ORDER BY 1 LIMIT 4'


def test_text_is_aligned(disk: Path) -> None:
    assert print_answer(disk, "SELECT key, count(*) n FROM orders GROUP BY 1 ORDER BY 1 LIMIT 2") == (
        "key           n\ncustomer-0  600\ncustomer-1  600\n"
    )


def test_json_has_bytes_as_text_or_base64_and_times_in_iso(disk: Path) -> None:
    found = run_query(disk, ODD)
    assert [row["key"] for row in found] == [None, "", "tombstone", "base64://4="]
    assert [row["value"] for row in found] == ["no key", "", None, "base64:AIA="]
    assert found[0]["timestamp"] == "2026-11-01T02:30:00.005Z"
    assert found[3]["headers"] == [{"key": "h", "value": None}, {"key": "h", "value": "2"}]


def test_csv_has_lists_as_json(disk: Path) -> None:
    lines = print_answer(disk, ODD, "-o", "csv").splitlines()
    assert lines[0] == "offset,key,value,timestamp,headers"
    assert (
        lines[4]
        == '3,base64://4=,base64:AIA=,2026-11-01T02:30:00.000Z,"[{""key"":""h"",""value"":null},{""key"":""h"",""value"":""2""}]"'
    )


def test_csv_can_be_safe_for_spreadsheets(disk: Path) -> None:
    assert print_answer(disk, "SELECT '=1+1' AS a", "-o", "csv", "--csv-safe") == "a\n'=1+1\n"
    assert expect_refusal(disk, "SELECT 1", "--csv-safe") == "kseg: --csv-safe needs CSV; add -o csv"


def test_tables_have_lines(disk: Path) -> None:
    assert "n" in print_answer(disk, "SELECT 1 AS n", "-o", "table")


def test_times_are_printed_and_meant_in_the_zone(disk: Path) -> None:
    sql = "SELECT timestamp, date_trunc('day', timestamp)::VARCHAR AS day FROM orders ORDER BY 1 LIMIT 1"
    (row,) = run_query(disk, sql, "--tz", "Europe/Berlin")
    assert row == {"timestamp": "2026-11-01T03:30:00.000+01:00", "day": "2026-11-01 00:00:00+01"}
    assert run_query(disk, sql, "--tz", "+02:00")[0]["timestamp"] == "2026-11-01T04:30:00.000+02:00"
    assert "SQL needs a zone name" in expect_refusal(disk, sql, "--tz", "+05:30")


def test_values_that_json_and_python_lack_are_shown(disk: Path) -> None:
    sql = (
        "SELECT 'nan'::DOUBLE a, 99999999999999999999::HUGEINT b, 1.50::DECIMAL(5,2) c, timestamptz 'infinity' d, "
        "map {'k': 1} e, INTERVAL 1 DAY f, sum(1) g, DATE '2026-01-01' h, 1 h FROM range(3)"
    )
    (row,) = [json.loads(line, parse_float=str) for line in print_answer(disk, sql, "-o", "json").splitlines()]
    assert row["a"] == "NaN"
    assert row["b"] == 99999999999999999999
    assert row["c"] == "1.50"
    assert row["e"] == {"k": 1}
    assert (row["g"], row["h"], row["h_1"]) == (3, "2026-01-01", 1)


def test_several_statements_are_answered_in_turn(disk: Path) -> None:
    assert print_answer(disk, "CREATE TABLE t AS SELECT 7 AS n; SELECT n FROM t", "-o", "csv") == "Count\n1\nn\n7\n"


# --- queried data -----------------------------------------------------------------------------------------------------


def test_tables_and_views_are_there(disk: Path) -> None:
    names = {row["name"] for row in run_query(disk, "SHOW TABLES")}
    assert names >= {"orders", "odd", "records", "batches", "segments", "partitions", "groups", "transactions"}
    assert names >= {"topics", "findings"}


def test_tables_have_what_commands_print(disk: Path) -> None:
    sql = "SELECT topic, partition, bytes, records, logEndOffset FROM partitions WHERE partition = 1"
    (own,) = run_query(disk, sql)
    listed = [json.loads(line) for line in kseg(["ls", "--deep", "-o", "json"], disk).stdout.splitlines()]
    (same,) = [row for row in listed if row.get("partition") == 1]
    assert own == {name: same[name] for name in own}
    assert run_query(disk, "SELECT topic, partitions, segments FROM topics ORDER BY 1") == [
        {"topic": "odd", "partitions": 1, "segments": 1},
        {"topic": "orders", "partitions": 3, "segments": 12},
    ]
    deep = run_query(disk, "SELECT sum(records) n, sum(batches) b FROM segments WHERE topic = 'orders'")
    assert deep == [{"n": 6000, "b": 240}]
    (transaction,) = run_query(disk, "SELECT state, producerId, firstOffset, endOffset FROM transactions")
    assert transaction == {"state": "committed", "producerId": 7, "firstOffset": 4, "endOffset": 5}
    (batch,) = run_query(
        disk, "SELECT count, lastOffset FROM batches WHERE topic = 'orders' AND baseOffset = 525 AND partition = 2"
    )
    assert batch == {"count": 25, "lastOffset": 549}


def test_times_in_tables_are_the_timestamps_that_commands_print(disk: Path) -> None:
    (own,) = run_query(disk, "SELECT epoch_ms(largestTimestamp) ms FROM partitions WHERE partition = 1")
    listed = [json.loads(line) for line in kseg(["ls", "-o", "json"], disk).stdout.splitlines()]
    assert [own["ms"]] == [row["largestTimestamp"] for row in listed if row.get("partition") == 1]
    (batch,) = run_query(disk, "SELECT epoch_ms(max(maxTimestamp)) ms FROM batches WHERE partition = 1")
    assert batch == own


def test_a_topic_with_a_table_s_name_comes_first(tmp_path: Path) -> None:
    disk = write_disk(tmp_path)
    (disk / "odd-0").rename(disk / "records-0")
    ran = kseg(["query", "SELECT count(*) n FROM records; SELECT count(*) n FROM kseg.records", "-o", "csv"], disk)
    assert (ran.status, ran.stdout) == (0, b"n\n5\nn\n6005\n")
    assert ran.stderr == b"kseg: records is the topic; use kseg.records for kseg's table of that name\n"


def test_a_topic_without_a_view_is_found_where_the_table_of_all_records_is_hidden(tmp_path: Path) -> None:
    disk = write_disk(tmp_path)
    (disk / "odd-0").rename(disk / "Records-0")
    (disk / "orders-2").rename(disk / "records-0")
    ran = kseg(["query", "SELECT count(*) n FROM kseg.records WHERE topic = 'records'", "-o", "csv"], disk)
    assert ran.stdout == b"n\n2000\n"
    assert (
        b"records has no view, because Records has the same name; query kseg.records where topic = 'records'"
        in ran.stderr
    )


def test_topics_that_differ_by_case_alone_are_told_apart(tmp_path: Path) -> None:
    disk = write_disk(tmp_path)
    (disk / "odd-0").rename(disk / "Orders-0")
    ran = kseg(["query", "SELECT count(*) n FROM records WHERE topic = 'orders'", "-o", "csv"], disk)
    assert ran.stdout == b"n\n6000\n"
    assert b"orders has no view, because Orders has the same name; query records where topic = 'orders'" in ran.stderr


def test_options_of_other_commands_choose_partitions_and_records(disk: Path) -> None:
    sql = "SELECT count(*) n FROM records"
    assert run_query(disk, sql, "--topic", "ord*", "--partition", "0-1") == [{"n": 4000}]
    assert run_query(disk, sql, "--from-offset", "1990", "--topic", "orders") == [{"n": 30}]
    assert run_query(disk, sql, "--key", "customer-3", "--to-offset", "100") == [{"n": 30}]
    assert run_query(disk, sql, "--control", "--topic", "odd") == [{"n": 1}]
    assert run_query(disk, sql, "--from-time", "2026-11-01T03:00", "--topic", "orders") == [{"n": 600}]
    assert "nothing" in expect_refusal(disk, sql, "--topic", "nothing")


def test_values_are_decoded_into_columns(tmp_path: Path) -> None:
    make_sandbox(tmp_path)
    options = ("--value-decoder", "avro", "--schema-registry", "_schemas-0", "orders-0")
    sql = 'SELECT "offset", valueDecoded.id FROM orders WHERE valueDecoded.id BETWEEN 10 AND 11'
    assert run_query(tmp_path, sql, *options) == [{"offset": 203010, "id": 10}, {"offset": 203011, "id": 11}]
    text = run_query(tmp_path, "SELECT valueDecoded FROM records LIMIT 1", *options)
    assert text == [{"valueDecoded": '{"id":0}'}]


def test_bytes_are_read_as_text(disk: Path) -> None:
    sql = """SELECT as_text(key) k, (as_text(value)::JSON->>'$.id')::INT id FROM orders WHERE "offset" = 7 LIMIT 1"""
    assert run_query(disk, sql) == [{"k": "customer-7", "id": 7}]
    assert run_query(disk, 'SELECT as_text(key) k FROM odd WHERE "offset" = 3') == [{"k": "??"}]


def test_internal_topics_are_decoded_into_structs(tmp_path: Path) -> None:
    make_sandbox(tmp_path)
    sql = """SELECT keyDecoded.type, keyDecoded."group", valueDecoded."offset" FROM __consumer_offsets"""
    assert run_query(tmp_path, sql, "kafka-logs") == [
        {"type": "OffsetCommit", "group": "orders-billing", "offset": 203100}
    ]
    sql = (
        "SELECT valueDecoded.type, coalesce(valueDecoded.name, valueDecoded.leader::VARCHAR) x FROM __cluster_metadata"
    )
    assert run_query(tmp_path, sql, "kafka-logs") == [
        {"type": "TopicRecord", "x": "orders"},
        {"type": "PartitionRecord", "x": "1"},
    ]


def test_internal_topics_of_all_releases_are_decoded(restored: Path) -> None:
    for release in ("0.11.0.3", "2.8.2", "3.9.1-live", "4.3.1-live"):
        with opened(restored / "logs" / release) as session:
            names = {name for (name,) in rows(session, "SHOW TABLES") if name.startswith("__")}
            for name in sorted(names & {"__consumer_offsets", "__transaction_state", "__cluster_metadata"}):
                ((count, decoded),) = rows(session, f"SELECT count(value), count(valueDecoded) FROM {name}")
                assert decoded == count, (release, name)


def test_archives_are_queried(tmp_path: Path) -> None:
    make_sandbox(tmp_path)
    assert run_query(tmp_path, "SELECT count(*) n FROM orders", "support.tar.gz") == [{"n": 2000}]


def test_sql_may_come_on_standard_input(disk: Path) -> None:
    command = [shutil.which("sh") or "sh", "-c", f'echo "select 1 as n;" | "{kseg_program()}" query -o csv']
    with start_process(command, disk, stdout=-1, stderr=-1) as process:
        assert process.communicate() == (b"n\n1\n", b"")


def kseg_program() -> Path:
    return Path(sys.executable).with_name("kseg")


# --- wrong input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        ("SELEC 1", 'kseg: Parser Error: syntax error at or near "SELEC"'),
        (
            "SELECT nosuch FROM orders",
            'kseg: Binder Error: Referenced column "nosuch" not found in FROM clause!; Candidate',
        ),
        ("SELECT 1 FROM nosuch", "kseg: Catalog Error: Table with name nosuch does not exist!"),
        ("SELECT key::INT FROM orders", "kseg: "),
        ("/* nothing */", "kseg: it contains no SQL"),
        (" ", "kseg: it contains no SQL"),
        ("nosuch-0/", "kseg: nosuch-0/: no such file or directory; SQL goes first: kseg query 'SELECT …' PATH"),
    ],
)
def test_wrong_input_gets_a_line(disk: Path, sql: str, line: str) -> None:
    assert expect_refusal(disk, sql).startswith(line)


def test_paths_without_partitions_are_refused(tmp_path: Path) -> None:
    assert "no partition here" in expect_refusal(tmp_path, "SELECT 1", ".")
    assert "no such file or directory" in expect_refusal(tmp_path, "SELECT 1", "nowhere")


# --- safety -----------------------------------------------------------------------------------------------------------


@for_each(
    "sql",
    [
        "SELECT * FROM read_csv('secret.csv')",
        "SELECT * FROM 'secret.csv'",
        "SELECT * FROM read_text('secret.csv')",
        "SELECT * FROM read_parquet('https://127.0.0.1:1/x.parquet')",
        "SELECT * FROM glob('*')",
        "COPY (SELECT 1) TO 'out.csv'",
        "COPY (SELECT 1) TO 'out.parquet'",
        "EXPORT DATABASE 'out'",
        "ATTACH 'out.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "SET temp_directory = '.'",
        "RESET lock_configuration",
        "PRAGMA profiling_output = 'out.json'",
        "CREATE PERSISTENT SECRET s (TYPE http)",
        "SELECT * FROM COMMANDS",
    ],
)
def test_sql_reaches_no_files_and_no_network(disk: Path, sql: str) -> None:
    (disk / "secret.csv").write_text("a\n1\n")
    before = sorted(disk.iterdir())
    line = expect_refusal(disk, sql)
    assert line.startswith("kseg: ")
    assert line.endswith("--allow-files DIR lets SQL read and write in one directory") == ("are disabled by" in line)
    assert sorted(disk.iterdir()) == before
    (disk / "secret.csv").unlink()


def test_one_directory_may_be_allowed(disk: Path, tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("key,name\ncustomer-3,Ada\n")
    join = f"orders JOIN read_csv('{tmp_path}/names.csv') c ON decode(orders.key) = c.key"
    sql = f"SELECT name, count(*) n FROM {join} GROUP BY 1"
    assert run_query(disk, sql, "--allow-files", str(tmp_path)) == [{"name": "Ada", "n": 600}]
    copy = f"COPY (FROM orders WHERE partition = 0) TO '{tmp_path}/out.parquet'"
    assert run_query(disk, copy, "--allow-files", str(tmp_path)) == [{"Count": 2000}]
    assert (tmp_path / "out.parquet").stat().st_size > 1000
    assert "Permission Error" in expect_refusal(
        disk, f"COPY orders TO '{tmp_path}/../out.csv'", "--allow-files", str(tmp_path)
    )


def test_the_allowed_directory_is_not_what_is_read(disk: Path) -> None:
    assert "which kseg reads; specify" in expect_refusal(disk, "SELECT 1", "--allow-files", str(disk / "odd-0"))


def test_explain_carries_nothing_out(disk: Path, tmp_path: Path) -> None:
    line = expect_refusal(disk, "--dry-run", f"COPY orders TO '{tmp_path}/x.csv'", "--allow-files", str(tmp_path))
    assert line == "kseg: --dry-run accepts only queries (SELECT …): other statements change something"
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_fit_into_memory_goes_into_temporary_files_that_are_removed(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    sql = "SELECT count(*) n FROM (SELECT DISTINCT range FROM range(8000000))"
    assert run_query(disk, sql, "--max-memory", "64MiB") == [{"n": 8_000_000}]
    assert list(tmp_path.iterdir()) == []
    line = expect_refusal(disk, sql, "--max-memory", "64MiB", "--max-temp", "1MiB")
    assert line.startswith("kseg: Out of Memory Error: failed to offload data block")
    assert line.endswith(": raise --max-temp or --max-memory")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_query_ends_at_once_and_leaves_nothing(disk: Path, tmp_path: Path) -> None:
    endless = "SELECT count(*) FROM orders a, orders b, orders c WHERE a.value <> b.key AND c.key <> a.value"
    command = [str(kseg_program()), "query", f"SELECT 1 AS n; {endless}"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with start_process(command, disk, stdout=-1, stderr=-1, environment=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() + process.stdout.readline() == b"n\n1\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate() == (b"", b"\n")
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


# --- SQL in other encodings -------------------------------------------------------------------------------------------


def given_sql(monkeypatch: pytest.MonkeyPatch, sql: bytes, errors: str) -> None:
    """Replace standard input by the SQL."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(sql), "utf-8", errors))


def test_sql_that_is_not_utf_8_is_an_error_of_one_line(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "kseg: the SQL isn't UTF-8; save the file as UTF-8"
    assert expect_refusal(disk, "SELECT '\udcff'") == said
    for errors in ("strict", "surrogateescape"):  # the locale decides
        given_sql(monkeypatch, b"SELECT '\xff'", errors)
        assert expect_refusal(disk, ".") == said


def test_endless_sql_ends_at_the_limit(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_sql(monkeypatch, b"SELECT 1;" * 2_000_000, "strict")
    assert expect_refusal(disk, ".") == "kseg: the SQL on standard input has more than 16777216 bytes; split it"


# --- the prompt -------------------------------------------------------------------------------------------------------


def type_lines(disk: Path, *lines: str) -> str:
    """Return a terminal's output after typing these lines."""
    import pty

    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "KSEG_PAGER": "cat", "NO_COLOR": "1", "INPUTRC": "/dev/null"}
    command = [str(Path(sys.executable).with_name("kseg")), "query", "."]
    with start_process(
        command, disk, stdin=follower, stdout=follower, stderr=follower, environment=environment
    ) as process:
        os.close(follower)
        shown = b""
        waiting = list(lines)
        while True:
            try:
                piece = os.read(leader, 4096)
            except OSError:
                break
            shown += piece
            if waiting and shown.rstrip(b" ").endswith((b"kseg>", b"...")):
                os.write(leader, waiting.pop(0).encode())
        process.wait()
    os.close(leader)
    return shown.decode().replace("\r\n", "\n")


def test_prompt_answers_what_is_typed(disk: Path) -> None:
    shown = type_lines(disk, "select count(*) n\n", "from orders;\n", "selec;\n", "\x04")
    assert "   n\n6000\n(1 row)\n" in shown
    assert 'Parser Error: syntax error at or near "selec"' in shown


def test_prompt_completes_names(disk: Path) -> None:
    shown = type_lines(disk, "select max(firstOff\t) from findin\t;\n", "exit\n")
    assert "select max(firstOffset) from findings;" in shown
    assert "(1 row)" in shown


def test_a_terminal_shows_an_answer(disk: Path) -> None:
    assert "6000" in plain(in_terminal(disk, "query", "select count(*) from orders"))


# --- Python -----------------------------------------------------------------------------------------------------------


def test_connection_has_the_views(disk: Path) -> None:
    connection = library.connect(disk, topic="ord*", partition=1)
    assert connection.sql("SELECT count(*), count(DISTINCT partition) FROM orders").fetchall() == [(2000, 1)]
    frame = connection.sql("SELECT key, count(*) n FROM orders GROUP BY key ORDER BY key").df()
    assert frame["n"].tolist() == [200] * 10


def test_connection_decodes_and_selects(tmp_path: Path) -> None:
    make_sandbox(tmp_path)
    connection = library.connect(
        tmp_path / "orders-0", value_decoder="avro", schema_registry=tmp_path / "_schemas-0", from_offset=204990
    )
    assert connection.sql("SELECT valueDecoded.id FROM orders ORDER BY 1 LIMIT 1").fetchall() == [(1990,)]


def test_connection_warns_of_damage(disk: Path, tmp_path: Path) -> None:
    copy: Any = shutil.copytree(disk, tmp_path / "disk")
    log = copy / "orders-0" / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[500] ^= 0xFF
    log.write_bytes(data)
    connection = library.connect(copy)
    with pytest.warns(library.KsegWarning, match="missing: offsets 0 to 24"):
        assert connection.sql("SELECT count(*) FROM orders").fetchall() == [(5975,)]


def test_connection_reaches_no_files(disk: Path) -> None:
    import duckdb

    with pytest.raises(duckdb.PermissionException):
        library.connect(disk).execute("COPY (SELECT 1) TO 'x.csv'")
