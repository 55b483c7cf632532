"""Commands that find nothing: without -q, one line on stderr has the selection and the searched places."""

import shlex
from pathlib import Path

import pytest

from kseg.cli import COMMANDS
from kseg.commands.options.row import takes
from kseg.commands.options.table import OPTIONS
from tests import golden
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each
from tests.run import kseg
from tests.sandbox import make_sandbox

LATE = "--from-offset 99999999"
CASES = {
    "dump orders-0 --grep nothing": (0, "--grep nothing"),
    "dump orders-0 --key nobody -o json --only records": (0, "--key nobody"),
    f"dump orders-0 {LATE} -o csv": (0, LATE),
    "dump kafka-logs --key-regex ^z -o table": (0, "in 5 partitions matches --key-regex '^z'"),
    "dump kafka-logs --producer-id 12345 --merge time": (0, "--producer-id 12345"),
    "dump orders-0 --from-time 2100-01-01 --template {offset}": (0, "--from-time 2100-01-01T00:00:00.000Z"),
    "dump orders-0 --header nope=1": (0, "--header nope=1"),
    f"dump orders-0 {LATE} --shallow": (0, LATE),
    "dump kafka-logs --topic nope*": (2, "--topic nope*"),
    "ls kafka-logs --key nobody": (0, "--key nobody"),
    "ls kafka-logs --topic nope*": (2, "--topic nope*"),
    "lookup orders-0 --key nobody": (1, "--key nobody"),
    "lookup orders-0 --offset 99999999": (1, "offset 99999999"),
    "get orders-0 --offset 99999999": (1, "offset 99999999"),
    "get orders-0 --offset 203500 --field header:nope": (1, "header nope"),
    "verify orders-0 --key nobody": (0, "--key nobody"),
    "verify orders-0 --topic nope": (2, "--topic nope"),
    "doctor orders-0 --topic nope": (2, "--topic nope"),
    "report orders-0 --topic nope --to report.html": (2, "--topic nope"),
    "salvage orders-0 --topic nope --dry-run": (2, "--topic nope"),
    "carve records.jsonl --to carved": (2, "has no batches"),
    "reindex orders-0 --topic nope --dry-run": (2, "--topic nope"),
    "compact kafka-logs --topic nope --dry-run": (2, "--topic nope"),
    "diff broker1 broker2 --topic nope": (2, "--topic nope"),
    f"slice orders-0 {LATE} --to late": (2, LATE),
    "slice orders-0 --drop-key nobody --to new": (1, "--drop-key nobody"),
    "retain kafka-logs --topic nope": (2, "--topic nope"),
    "retain orders-0 --retention-ms -1": (0, "deletes nothing of 1 partition"),
    "groups kafka-logs --group nope*": (2, "--group nope*"),
    "txns orders-0 --open": (0, "found no open transactions in 1 partition"),
    "txns orders-0 --explain 99@1": (2, "--explain 99@1"),
    "query 'select * from segments where bytes < 0' kafka-logs": (0, "no rows"),
    "query 'select 1 where 1 = 0; select 2 where 1 = 0' kafka-logs": (0, "no rows"),
    "query 'from orders' --key nobody kafka-logs -o csv": (0, "--key nobody"),
    "metadata kafka-logs --topic nope*": (2, "--topic nope*"),
    "metadata kafka-logs --show acls -o csv": (0, "acls"),
    "plan-move data1 data2 --topic nope": (2, "--topic nope"),
    "plan-move data1 data2": (0, "nothing to move"),
    "restore orders-0 --bootstrap 127.0.0.1:1 --dry-run --topic nope": (2, "--topic nope"),
    "where --group nobody --partitions 3 orders-0": (1, "__consumer_offsets-1 isn't in the given directories"),
    "export orders-0 out/export --key nobody": (0, "--key nobody"),
    "protocol clients.pcap --api ElectLeaders -o json": (1, "--api ElectLeaders"),
    "explain 00000000000000203000.log --batch 9999": (1, "--batch 9999"),
    "serve orders-0 --topic nope -- true": (2, "--topic nope"),
}
"""Command lines, their exit statuses, and the words on stderr."""
ELSEWHERE = {"browse", "spark-export"}
"""Commands that need a screen, or run `export` elsewhere."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sandbox(tmp_path_factory.mktemp("machine"))


@for_each("line", CASES, shards=2)
def test_nothing_found_is_said_and_names_the_filter(line: str, machine: Path) -> None:
    status, named = CASES[line]
    ran = kseg(shlex.split(line), machine)
    told = ran.stderr.decode()
    assert (ran.status, named in told) == (status, True), f"{ran.status}: {told}"
    if status == 0 and " --to " not in line and not line.startswith("export"):
        quiet = kseg([*shlex.split(line), "-q"], machine)
        assert (quiet.status, named in quiet.stderr.decode()) == (0, False), quiet.stderr.decode()


def test_each_command_that_selects_is_asked_for_what_is_not_there() -> None:
    selecting = {name for name in COMMANDS if any(takes(row, name) for row in dict(OPTIONS)["Selection"])}
    assert {line.split()[0] for line in CASES} == selecting - ELSEWHERE


def test_get_prints_what_is_below_the_log_start_offset_with_a_note(tmp_path: Path) -> None:
    """A deletion of records moves the log start offset; `get` prints what `dump` still prints."""
    records = [NewRecord(b"k", b"value %d" % number) for number in range(10)]
    write_segment(tmp_path / "disk" / "orders-0", [NewBatch(records, 0)])
    (tmp_path / "disk" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 5\n")
    ran = kseg(["get", "disk", "--topic", "orders", "--partition", "0", "--offset", "3"], tmp_path)
    assert (ran.status, ran.stdout) == (0, b"value 3")
    assert b"offset 3 is below the log start offset 5; it is still in the log" in ran.stderr


def test_diff_of_partitions_with_one_copy_does_not_call_them_identical(tmp_path: Path) -> None:
    """The cluster metadata says that only one broker has it."""
    machine = make_sandbox(tmp_path)
    ran = kseg(["diff", "data1", "kafka-logs"], machine)
    assert ran.status in (0, 1)
    assert b"identical, 1 copy" not in ran.stdout


def test_diff_puts_the_worst_loss_first(tmp_path: Path) -> None:
    for broker, counts in (("b1", (3, 90, 30)), ("b2", (3, 10, 20))):
        for number, count in enumerate(counts):
            records = [NewRecord(b"k", b"v%d" % offset) for offset in range(count)]
            write_segment(tmp_path / broker / f"orders-{number}", [NewBatch(records, 0)])
    lines = kseg(["diff", "b1", "b2"], tmp_path).stdout.decode().splitlines()
    assert [line.split(":")[0] for line in lines if line.startswith("orders-")] == ["orders-1", "orders-2", "orders-0"]


def test_rows_of_an_earlier_statement_are_rows(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(b"k", b"v", 1000)], 0)])
    assert b"no rows" not in kseg(["query", "select 1; select 2 where 1 = 0", "orders-0"], tmp_path).stderr


def test_says_which_times_there_are() -> None:
    ran = kseg(["dump", "docs/test-1-0", "--from-time", "2030"], golden.ROOT)
    assert ran.stdout == b""
    assert b"; the timestamps are from 2020-02-13T12:37:58.310Z to 2020-02-13T12:38:18.775Z;" in ran.stderr


def test_segments_without_a_hit_have_no_heading() -> None:
    ran = kseg(["dump", "logs/3.6.2/plain-1", "--from-offset", "150"], golden.ROOT)
    assert ran.stdout.count(b"Starting offset: ") == 1


@pytest.mark.parametrize("form", ["csv", "table"])
def test_rows_of_several_partitions_name_them(form: str) -> None:
    names = b"topic,partition" if form == "csv" else b"topic"
    ran = kseg(["dump", "-o", form, "--tail", "1", "logs/3.6.2"], golden.ROOT)
    assert names in ran.stdout.splitlines()[0]
    one = kseg(["dump", "-o", form, "--tail", "1", "logs/3.6.2/plain-1"], golden.ROOT)
    assert b"topic" not in one.stdout.splitlines()[0]


def test_form_that_only_exports_have() -> None:
    assert b"`kseg export` writes Parquet files" in kseg(["dump", "-o", "parquet", "docs/test-1-0"], golden.ROOT).stderr


def test_snapshot_without_producers_says_so() -> None:
    snapshot = "logs/2.3.1-killed/gzip-0/00000000000000000570.snapshot"
    assert kseg(["dump", snapshot], golden.ROOT).stderr == f"kseg: {snapshot}: it has no producers\n".encode()
