"""`kseg txns`."""

import csv
import io
import json
from pathlib import Path

from tests import golden
from tests.log_files import COMMIT, NewBatch, NewRecord, marker, write_segment
from tests.run import kseg

LOGS = golden.ROOT / "logs"


def objects(arguments: list[str], directory: Path = LOGS) -> list[dict[str, object]]:
    return [json.loads(line) for line in kseg(["txns", "-o", "json", *arguments], directory).stdout.splitlines()]


def write_two(tmp_path: Path) -> None:
    """One transaction that was committed, one that is open."""
    ended = NewBatch([NewRecord(b"k", b"v", 1000)], 0, 7, 0, True)
    opened = NewBatch([NewRecord(b"k", b"v", 3000)] * 2, 2, 8, 1, True)
    write_segment(tmp_path / "orders-4", [ended, marker(COMMIT, ended, 2000), opened])


def test_a_partitions_transactions_are_listed_with_what_blocks(tmp_path: Path) -> None:
    write_two(tmp_path)
    run = kseg(["txns", "orders-4"], tmp_path)
    assert (run.status, run.stderr) == (0, b"")
    lines = run.stdout.decode().splitlines()
    assert [" ".join(line.split()) for line in lines[2:4]] == [
        "orders 4 7 0 committed 0 0 1 1 1970-01-01 00:00:01.000 1.000s 7",
        "orders 4 8 1 open 2 3 2 1970-01-01 00:00:03.000 0ms",
    ]
    assert lines[-2].split() == ["orders", "4", "2", "4", "1"]
    assert lines[-1] == (
        "kafka-transactions.sh --bootstrap-server localhost:9092 abort --topic orders --partition 4 --start-offset 2"
    )


def test_json_tells_all_of_a_transaction(tmp_path: Path) -> None:
    write_two(tmp_path)
    opened, partition = objects(["orders-4", "--open", "--bootstrap-server", "kafka:1"], tmp_path)
    assert opened == {
        "type": "transaction",
        "topic": "orders",
        "partition": 4,
        "producerId": 8,
        "producerEpoch": 1,
        "state": "open",
        "isHanging": False,
        "blocksLastStableOffset": True,
        "firstOffset": 2,
        "lastOffset": 3,
        "endOffset": None,
        "records": 2,
        "batches": 1,
        "firstTimestamp": 3000,
        "firstTime": "1970-01-01T00:00:03.000Z",
        "lastTimestamp": 3000,
        "lastTime": "1970-01-01T00:00:03.000Z",
        "endTimestamp": None,
        "endTime": None,
        "durationMs": 0,
        "coordinatorEpoch": None,
        "abortCommand": "kafka-transactions.sh --bootstrap-server kafka:1 abort"
        " --topic orders --partition 4 --start-offset 2",
    }
    assert partition == {
        "type": "partition",
        "topic": "orders",
        "partition": 4,
        "lastStableOffset": 2,
        "logEndOffset": 4,
        "openTransactions": 1,
    }


def test_an_open_one_hangs_at_a_later_time(tmp_path: Path) -> None:
    write_two(tmp_path)
    run = kseg(["txns", "orders-4", "--now", "1970-01-01T00:15:03.001", "-o", "csv", "--open"], tmp_path)
    assert run.status == 1
    (row,) = csv.DictReader(io.StringIO(run.stdout.decode()))
    assert (row["isHanging"], row["durationMs"]) == ("true", "900001")
    assert kseg(["txns", "orders-4", "--now", "903000"], tmp_path).status == 0
    assert kseg(["txns", "orders-4", "--now", "3002", "--max-transaction-timeout", "1"], tmp_path).status == 1


def test_coordinators_tell_of_transactional_ids() -> None:
    found = objects(["3.6.2/__transaction_state-0", "--open"])
    assert [(row["transactionalId"], row["state"], row["isOpen"]) for row in found] == [("left-open", "Ongoing", True)]


def test_a_log_directory_shows_both() -> None:
    run = kseg(["txns", "2.3.1"], LOGS)
    headings = [line for line in run.stdout.decode().splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Transactional ids:", "Transactions:", "Last stable offsets:"]


def test_a_table_marks_what_hangs() -> None:
    run = kseg(["txns", "2.3.1/txn-1", "-o", "table", "--color"], LOGS)
    assert run.status == 1
    assert [b"\x1b[31m" in line for line in run.stdout.splitlines() if b"hanging" in line] == [True, True]


def test_topics_can_be_chosen() -> None:
    assert {row["topic"] for row in objects(["2.3.1", "--topic", "tx*"])} == {"txn"}


def test_a_partition_without_transactions_prints_nothing(tmp_path: Path) -> None:
    write_segment(tmp_path / "plain-0", [NewBatch([NewRecord(b"k", b"v")])])
    run = kseg(["txns", "plain-0"], tmp_path)
    assert (run.status, run.stdout, run.stderr) == (0, b"", b"")


def test_a_missing_path_is_refused(tmp_path: Path) -> None:
    run = kseg(["txns", "none"], tmp_path)
    assert run.status == 2
    assert b"none" in run.stderr


def test_help_has_examples() -> None:
    assert b"Examples:" in kseg(["txns", "--help"], LOGS).stdout
