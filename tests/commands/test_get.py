"""`kseg get`: the unchanged bytes of one field, or a line with the reason why there are none."""

import shutil
from pathlib import Path

import pytest

from tests import golden, run
from tests.export.exports import write_indexes
from tests.log_files import NewBatch, NewRecord, write_segment

BINARY = bytes(range(256)) + b"\r\n\0"
HEADERS = [("trace", b"first"), ("empty", b""), ("null", None), ("trace", b"\xfflast")]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return a log directory: orders-0 has offsets 5 and 6 in one segment, 7 in another; orders-1 has one record."""
    directory = tmp_path / "logs"
    records = [NewRecord(b"\xffkey", BINARY, headers=HEADERS), NewRecord(None, None)]
    write_indexes(write_segment(directory / "orders-0", [NewBatch(records, 5)], 5))
    write_indexes(write_segment(directory / "orders-0", [NewBatch([NewRecord(b"", b"")], 7)], 7))
    write_indexes(write_segment(directory / "orders-1", [NewBatch([NewRecord(b"k", b"other")])]))
    return directory


def get(directory: Path, *arguments: str | Path) -> run.Run:
    return run.kseg(["get", *map(str, arguments)], directory)


@pytest.mark.parametrize(
    ("field", "wanted"),
    [
        ([], BINARY),
        (["--field", "value"], BINARY),
        (["--field", "key"], b"\xffkey"),
        (["--field", "header:trace"], b"\xfflast"),
        (["--field", "header:empty"], b""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_the_bytes_are_printed_and_nothing_else(field: list[str], wanted: bytes, logs: Path) -> None:
    assert get(logs, "orders-0", "--offset", "5", *field) == (0, wanted, b"")


def test_an_index_that_is_missing_matters_only_where_nothing_is_found(logs: Path) -> None:
    (logs / "orders-0" / f"{5:020}.index").unlink()
    assert get(logs, "orders-0", "--offset", "5") == (0, BINARY, b"")
    assert get(logs, "orders-0", "--offset", "4").stderr.count(b"\n") == 2
    assert get(logs, "orders-0", "--offset", "4", "-q").stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    "path",
    [["orders-0"], ["orders-0/00000000000000000007.log"], [".", "--topic", "ord*", "--partition", "0"]],
    ids=" ".join,
)
def test_a_partition_is_given_by_any_path_to_it(path: list[str], logs: Path) -> None:
    assert get(logs, *path, "--offset", "5").stdout == BINARY


def test_the_current_directory_is_the_partition_by_default(logs: Path) -> None:
    assert get(logs / "orders-1", "--offset", "0").stdout == b"other"


def test_an_archive_holds_the_partition_too(logs: Path) -> None:
    archive = shutil.make_archive(str(logs.parent / "bundle"), "gztar", logs)
    assert get(logs.parent, f"{archive}/orders-0", "--offset", "5") == (0, BINARY, b"")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--offset", "6"], "offset 6: value is null"),
        (["--offset", "6", "--field", "key"], "offset 6: key is null"),
        (["--offset", "6", "--field", "header:a"], "offset 6: the record has no header a; it has no headers"),
        (
            ["--offset", "5", "--field", "header:a"],
            "offset 5: the record has no header a; it has trace, empty, null",
        ),
        (["--offset", "5", "--field", "header:null"], "offset 5: header:null is null"),
        (["--offset", "8"], "offset 8 isn't there: it is the log end offset, the next to be written"),
        (["--offset", "4"], "offset 4 isn't there: it is below the log start offset 5"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_is_not_there_is_said_in_a_line_with_status_1(arguments: list[str], said: str, logs: Path) -> None:
    ran = get(logs, "orders-0", *arguments, "--to", "new")
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (1, b"", 1)
    assert ran.stderr.decode().startswith(f"kseg: orders-0: {said}")
    assert not (logs / "new").exists()


def test_nothing_is_taken_out_of_a_damaged_batch(logs: Path) -> None:
    log = logs / "orders-0" / f"{5:020}.log"
    content = bytearray(log.read_bytes())
    content[-40] ^= 1
    log.write_bytes(content)
    ran = get(logs, "orders-0", "--offset", "5")
    assert (ran.status, ran.stdout) == (1, b"")
    assert b"offset 5 isn't there: it is in a damaged part of the log (bad-crc at position " in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["orders-0"], "--offset"),
        (
            ["orders-0", "--offset", "5", "--field", "headers"],
            "--field 'headers': no such field; specify key, value or header:",
        ),
        (["orders-0", "--offset", "-1"], "-1"),
        ([".", "--offset", "5"], "choose one with --topic and --partition"),
        ([".", "--offset", "5", "--topic", "none"], "no such partition"),
        (["nowhere", "--offset", "5"], "nowhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_is_a_line_with_status_2(arguments: list[str], complaint: str, logs: Path) -> None:
    ran = get(logs, *arguments)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)
    assert complaint in ran.stderr.decode()


def test_a_new_file_takes_the_bytes_and_an_old_one_stays(logs: Path) -> None:
    target = logs.parent / "value.bin"
    assert get(logs, "orders-0", "--offset", "5", "--to", target) == (0, b"", b"")
    assert target.read_bytes() == BINARY
    ran = get(logs, "orders-0", "--offset", "7", "--to", target)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)
    assert b"already exists" in ran.stderr
    assert target.read_bytes() == BINARY
    (logs.parent / "link").symlink_to(logs.parent / "dangling")
    assert get(logs, "orders-0", "--offset", "5", "--to", "../link").status == 2
    assert not (logs.parent / "dangling").exists()


@pytest.mark.parametrize("target", ["orders-0/new", "orders-1/../orders-0/new", "nowhere/new"])
def test_a_file_is_written_outside_of_the_partition_and_where_it_can_be(target: str, logs: Path) -> None:
    before = sorted(logs.rglob("*"))
    ran = get(logs, "orders-0", "--offset", "5", "--to", target)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)
    assert sorted(logs.rglob("*")) == before


def test_a_message_of_an_old_format_has_a_key_and_no_header() -> None:
    partition = "logs/0.10.0.1/gzip-0"
    first = run.kseg(["dump", partition, "--template", "{offset} {key}", "--limit", "1"], golden.ROOT).stdout
    offset, _, key = first.rstrip(b"\n").partition(b" ")
    assert get(golden.ROOT, partition, "--offset", offset.decode(), "--field", "key").stdout == key
    assert get(golden.ROOT, partition, "--offset", offset.decode(), "--field", "header:a").status == 1
