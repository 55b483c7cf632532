"""`kseg dump -o kcat`: a script that sends records with kcat.

What takes it here reads options and input as kcat does; tests/live/test_kcat.py has the real one.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

import kseg
from tests import golden, run
from tests.log_files import ABORT, COMMIT, NewBatch, NewRecord, marker, write_segment

Sent = tuple[str, int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]
SHELLS = [shell for shell in ("sh", "bash") if shutil.which(shell)]


def dump(directory: Path, *options: str) -> run.Run:
    return run.kseg(["dump", "-o", "kcat", *options, str(directory)], directory.parent)


def run_script(script: bytes, directory: Path, shell: str = "sh", options: Sequence[str] = ()) -> list[Sent]:
    """Return the records that kcat sends when a shell runs a script."""
    programs = directory / "programs"
    programs.mkdir(exist_ok=True)
    kcat = programs / "kcat"
    stand_in = Path(__file__).with_name("stand_in_kcat.py")
    kcat.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{stand_in}" "$@"\n')
    kcat.chmod(0o755)
    output = directory / "sent"
    output.write_text("")
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run([shell, "-s", str(output), *options], input=script, env=environment, capture_output=True)
    assert (ran.returncode, ran.stderr) == (0, b"")
    return [read_sent(line) for line in output.read_text().splitlines()]


def read_sent(line: str) -> Sent:
    topic, partition, key, value, headers = json.loads(line)
    pairs = tuple((bytes.fromhex(name), of_hex(content)) for name, content in headers)
    return topic, partition, of_hex(key), of_hex(value), pairs


def of_hex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def expected_messages(place: tuple[str, int], records: Sequence[NewRecord]) -> list[Sent]:
    return [
        (*place, each.key, each.value, tuple((name.encode(), value) for name, value in each.headers))
        for each in records
    ]


def write(directory: Path, records: Sequence[NewRecord]) -> Path:
    write_segment(directory / "orders-3", [NewBatch(records)])
    return directory / "orders-3"


CONTENTS = [None, b"", b"x"]


def test_null_and_empty_stay_apart_in_any_order(tmp_path: Path) -> None:
    """Each pair of contents after each other one; no key and an empty value is what kcat can't send."""
    kinds = [NewRecord(key, value) for key, value in product(CONTENTS, CONTENTS) if (key, value) != (None, b"")]
    records = [each for pair in product(kinds, kinds) for each in pair]
    ran = dump(write(tmp_path, records))
    assert ran.status == 0
    assert run_script(ran.stdout, tmp_path) == expected_messages(("orders", 3), records)


@pytest.mark.parametrize("shell", SHELLS)
def test_bytes_of_all_kinds_arrive(shell: str, tmp_path: Path) -> None:
    every = bytes(range(256))
    delimiters = b"\x1ek0\x1em0\x1ek1\x1em2"
    contents = [
        every,
        every[::-1],
        delimiters,
        b"\x1e",
        b"\x1ek",
        b"END\n}\n",
        b"$(exit 3)`exit 4`'\"\\",
        "é→𝄞".encode(),
    ]
    records = [NewRecord(key, value) for key, value in product(contents, contents)]
    records += [NewRecord(None, value) for value in contents]
    ran = dump(write(tmp_path, records))
    assert run_script(ran.stdout, tmp_path, shell) == expected_messages(("orders", 3), records)


@pytest.mark.parametrize("shell", SHELLS)
def test_headers_arrive(shell: str, tmp_path: Path) -> None:
    every = bytes(range(1, 256))
    lists: list[list[tuple[str, bytes | None]]] = [
        [],
        [("a", b"1"), ("a", b"2"), ("b", None), ("c", b""), ("d", b"=x=")],
        [("all", every), ("é' \n", b"'$(exit 3)'\n"), ("-x", b"-y")],
        [("a", b"1")],
    ]
    records = [NewRecord(b"k", b"v%d" % number, headers=lists[number // 2 % 4]) for number in range(16)]
    ran = dump(write(tmp_path, records))
    assert run_script(ran.stdout, tmp_path, shell) == expected_messages(("orders", 3), records)
    assert ran.stdout.count(b"{ send ") == 8


def test_each_partition_gets_its_own_records(tmp_path: Path) -> None:
    records = {name: [NewRecord(b"k", name.encode())] * 3 for name in ("orders-3", "orders-10", "pay.x_y-0")}
    for name, own in records.items():
        write_segment(tmp_path / "logs" / name, [NewBatch(own)])
    found = run_script(dump(tmp_path / "logs").stdout, tmp_path)
    places = {("orders", 3), ("orders", 10), ("pay.x_y", 0)}
    assert sorted(found, key=str) == sorted(
        (each for place in places for each in expected_messages(place, records[f"{place[0]}-{place[1]}"])), key=str
    )


def test_a_partitions_records_keep_their_order_over_runs_of_kcat(tmp_path: Path) -> None:
    records = [NewRecord(b"k", b"%d" % number + bytes(60_000)) for number in range(60)]
    for number in range(0, 60, 15):
        write_segment(tmp_path / "orders-3", [NewBatch(records[number : number + 15], number)], number)
    ran = dump(tmp_path / "orders-3")
    assert run_script(ran.stdout, tmp_path) == expected_messages(("orders", 3), records)
    assert ran.stdout.count(b"{ send ") > 3


def test_records_without_content_fill_runs_of_kcat_too(tmp_path: Path) -> None:
    records = [NewRecord(None, None)] * 40_000
    ran = dump(write(tmp_path, records))
    assert run_script(ran.stdout, tmp_path) == expected_messages(("orders", 3), records)
    assert ran.stdout.count(b"{ send ") > 1


def test_contents_that_are_made_of_delimiters_take_no_longer(tmp_path: Path) -> None:
    """Trying one number after another in them would take hours."""
    value = b"".join(b"\x1ek%08d" % number for number in range(90_000))
    ran = dump(write(tmp_path, [NewRecord(b"k", value)]))
    assert run_script(ran.stdout, tmp_path) == expected_messages(("orders", 3), [NewRecord(b"k", value)])


def test_options_of_the_script_come_after_its_own(tmp_path: Path) -> None:
    ran = dump(write(tmp_path, [NewRecord(b"k", b"v")]))
    assert [place[:2] for place in run_script(ran.stdout, tmp_path, options=("-t", "other", "-X", "a=b c"))] == [
        ("other", 3)
    ]


def test_what_was_cut_off_of_the_script_is_not_sent(tmp_path: Path) -> None:
    """A shell that runs a script while it arrives must not send half a record."""
    script = dump(write(tmp_path, [NewRecord(b"k", b"v" * 5000)])).stdout
    for size in range(script.index(b"{ send"), len(script) - 2, 997):
        output = tmp_path / "sent"
        output.write_text("")
        subprocess.run(["sh", "-s", str(output)], input=script[:size], capture_output=True, check=False)
        assert output.read_text() == ""


REFUSED = {
    "it has no key and an empty value: kcat skips it": NewRecord(None, b""),
    "a header's name is empty or contains =": NewRecord(b"k", b"v", headers=[("a=b", b"c")]),
    "a header contains a zero byte": NewRecord(b"k", b"v", headers=[("a", b"\0")]),
    "its headers have more than 100000 bytes": NewRecord(b"k", b"v", headers=[("a", bytes([65]) * 100_000)]),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_kcat_can_not_send_is_named_and_the_rest_is_sent(reason: str, tmp_path: Path) -> None:
    whole = NewRecord(b"k", b"v")
    ran = dump(write(tmp_path, [whole, REFUSED[reason], whole]))
    assert ran.status == 1
    assert ran.stderr.decode().splitlines()[:2] == [
        f"kseg: orders-3: offset 1: not sent: {reason}",
        "kseg: the script sends 2 of 3 records",
    ]
    assert run_script(ran.stdout, tmp_path) == expected_messages(("orders", 3), [whole, whole])


def test_the_first_refused_records_are_named_and_all_are_counted(tmp_path: Path) -> None:
    ran = dump(write(tmp_path, [NewRecord(None, b"")] * 50))
    assert ran.stdout == b""
    assert len(ran.stderr.splitlines()) == 21
    assert ran.stderr.splitlines()[-1] == b"kseg: the script sends 0 of 50 records"


def test_times_are_said_to_be_lost(tmp_path: Path) -> None:
    ran = dump(write(tmp_path, [NewRecord(b"k", b"v", 1_700_000_000_000 + number) for number in (5, 0, 9)]))
    assert ran.stderr == (
        b"kseg: kcat can't send timestamps: 3 records, written from 2023-11-14T22:13:20.000Z to"
        b" 2023-11-14T22:13:20.009Z, get the time of sending\n"
    )


def test_times_beyond_the_calendar_are_said_to_be_lost(tmp_path: Path) -> None:
    ran = dump(write(tmp_path, [NewRecord(b"k", b"v", 2**63 - 1)] * 2))
    assert ran.stderr == (
        b"kseg: kcat can't send timestamps: 2 records, written from after year 9999: 9223372036854775807 to"
        b" after year 9999: 9223372036854775807, get the time of sending\n"
    )


def test_damaged_batches_are_not_sent(tmp_path: Path) -> None:
    directory = write(tmp_path, [NewRecord(b"k", b"v")])
    log = directory / f"{0:020}.log"
    raw = log.read_bytes()
    log.write_bytes(raw[:-2] + b"w" + raw[-1:])
    ran = dump(directory)
    assert (ran.status, ran.stdout) == (1, b"")
    assert b"orders-3: offset 0: not sent: its batch is damaged\n" in ran.stderr


@pytest.fixture
def transactions(tmp_path: Path) -> Path:
    """Committed, aborted, outside of any, and open."""
    committed = NewBatch([NewRecord(b"k", b"committed")], 0, 1, 0, is_transactional=True)
    aborted = NewBatch([NewRecord(b"k", b"aborted")], 2, 2, 0, is_transactional=True)
    plain = NewBatch([NewRecord(b"k", b"plain")], 4)
    opened = NewBatch([NewRecord(b"k", b"open")], 5, 3, 0, is_transactional=True)
    batches = [committed, marker(COMMIT, committed), aborted, marker(ABORT, aborted), plain, opened]
    write_segment(tmp_path / "orders-3", batches)
    return tmp_path / "orders-3"


def test_only_what_was_committed_is_sent(transactions: Path) -> None:
    ran = dump(transactions)
    assert [each[3] for each in run_script(ran.stdout, transactions.parent)] == [b"committed", b"plain"]
    assert b"1 record from offset 5 on is not yet readable: a transaction of producer 3 is open since" in ran.stderr


def test_another_isolation_level_sends_all_but_markers(transactions: Path) -> None:
    ran = dump(transactions, "--isolation", "read_uncommitted")
    values = [each[3] for each in run_script(ran.stdout, transactions.parent)]
    assert values == [b"committed", b"aborted", b"plain", b"open"]


def test_a_selection_is_sent(tmp_path: Path) -> None:
    records = [NewRecord(b"a" if number % 2 else b"b", b"%d" % number) for number in range(10)]
    ran = dump(write(tmp_path, records), "--key", "a", "--from-offset", "4", "--limit", "2")
    assert run_script(ran.stdout, tmp_path) == expected_messages(("orders", 3), [records[5], records[7]])


def test_keys_and_values_can_be_redacted(tmp_path: Path) -> None:
    ran = dump(write(tmp_path, [NewRecord(b"secret", b"hidden", headers=[("h", b"told")])]), "--redact", "keys")
    ((_, _, key, value, headers),) = run_script(ran.stdout, tmp_path)
    assert key is not None
    assert (len(key), key != b"secret", value, headers) == (6, True, b"hidden", ((b"h", b"told"),))


@pytest.mark.parametrize(
    "options", [["--fields", "key"], ["--shallow"], ["--key-decoder", "string"], ["--control"], ["--offsets-decoder"]]
)
def test_options_that_mean_nothing_to_kcat_are_refused(options: list[str], tmp_path: Path) -> None:
    ran = dump(write(tmp_path, [NewRecord(b"k", b"v")]), *options)
    assert (ran.status, ran.stdout) == (2, b"")


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    """A broker's: a topic, internal ones, and what the broker put aside."""
    log_dir = tmp_path / "kafka-logs"
    aside = [f"orders-4.{'0' * 32}-{state}" for state in ("delete", "future", "stray")]
    for name in ["orders-3", "__consumer_offsets-0", "__remote_log_metadata-1", *aside]:
        write_segment(log_dir / name, [NewBatch([NewRecord(b"k", name.encode())])])
    log = log_dir / "orders-3" / f"{0:020}.log"
    shutil.copy(log, f"{log}.deleted")
    shutil.copy(golden.ROOT / "logs/4.3.1/bootstrap.checkpoint", log_dir)
    return log_dir


def test_of_a_log_directory_neither_internal_topics_nor_what_was_put_aside_is_sent(log_directory: Path) -> None:
    ran = dump(log_directory)
    assert ran.status == 0
    zeros = "0" * 32
    future = f"orders-4.{zeros}-future"
    assert [each[3] for each in run_script(ran.stdout, log_directory.parent)] == [b"orders-3", future.encode()]
    *left_out, internal, aside = ran.stderr.decode().splitlines()[:5]
    assert left_out == [
        "kseg: 4 partitions; 2 directories omitted",
        f"kseg: omitted: {log_directory}/orders-4.{zeros}-delete: about to be deleted by its broker (-delete)",
        f"kseg: omitted: {log_directory}/orders-4.{zeros}-stray: put aside by its broker (-stray)",
    ]
    assert internal == (
        "kseg: not sent, since a cluster has its own: __consumer_offsets, __remote_log_metadata; specify"
        " --topic NAME to send one"
    )
    assert aside == (
        f"kseg: not sent, since a broker set them aside: {log_directory}/orders-3/{0:020}.log.deleted;"
        " specify its own PATH to send one"
    )


@pytest.mark.parametrize("options", [["--topic", "__consumer_offsets"], ["--partition", "0", "--key", "k"]])
def test_an_internal_topic_is_sent_if_it_alone_is_named(options: list[str], log_directory: Path) -> None:
    ran = dump(log_directory, *options)
    found = run_script(ran.stdout, log_directory.parent)
    assert [each[0] for each in found] == (["__consumer_offsets"] if "--topic" in options else [])


@pytest.mark.parametrize("name", ["__consumer_offsets-0", f"orders-4.{'0' * 32}-delete"])
def test_a_directory_that_is_given_is_sent_whatever_it_is(name: str, log_directory: Path) -> None:
    ran = dump(log_directory / name)
    assert [each[3] for each in run_script(ran.stdout, log_directory.parent)] == [name.encode()]


def test_a_log_outside_of_a_partitions_directory_is_refused(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "copies", [NewBatch([NewRecord(b"k", b"v")])])
    ran = run.kseg(["dump", "-o", "kcat", str(log)], tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    assert b"isn't in a directory with its partition's name" in ran.stderr


@pytest.mark.parametrize(
    ("name", "count"),
    [("0.8.2.2/plain-1", 0), ("0.10.2.2/mixed-0", 1), ("2.8.2/idem-0", 0), ("4.4.0-made/odd-records-0", 1)],
)
def test_golden_records_of_all_formats_are_sent(name: str, count: int, tmp_path: Path) -> None:
    directory = golden.ROOT / "logs" / name
    ran = dump(directory)
    found = run_script(ran.stdout, tmp_path)
    refused = [int(offset) for offset in re.findall(r"offset (\d+): not sent", ran.stderr.decode())]
    assert len(refused) == count
    records = []
    for log in sorted(directory.glob("*.log")):
        with kseg.open_segment(log) as segment:
            records += [each for batch in segment.batches() for each in batch.records() if each.offset not in refused]
    assert [each[2:4] for each in found] == [(each.key, each.value) for each in records]
    assert [len(each[4]) for each in found] == [len(each.headers) for each in records]
    assert len(found) > 5
