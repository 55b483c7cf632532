"""`kseg txns`: which transactions it lists, and how."""

import csv
import io
from pathlib import Path

from tests.commands.made_transactions import (
    IDLE,
    LOGS,
    objects,
    write_coordinator,
    write_two,
)
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import kseg


def test_a_partitions_transactions_are_listed_with_what_blocks(tmp_path: Path) -> None:
    write_two(tmp_path)
    run = kseg(["txns", "orders-4"], tmp_path)
    assert run.status == 0
    lines = run.stdout.decode().splitlines()
    assert [" ".join(line.split()) for line in lines[2:4]] == [
        "orders 4 8 1 open 2 3 2 1970-01-01T00:00:03.000Z unknown __transaction_state isn't here",
        "orders 4 7 0 committed 0 0 1 1 1970-01-01T00:00:01.000Z 7",
    ]
    assert lines[-1].split() == ["orders", "4", "2", "4", "1"]
    assert run.stderr == (
        b"kseg: 2 transactions, 3 records\n"
        b"kseg: 1 open transaction may hang: __transaction_state isn't here; specify all log directories of the"
        b" cluster and --now, or run `kafka-transactions.sh --bootstrap-server HOST:9092 find-hanging --broker-id"
        b" ID`\n"
    )


def test_json_tells_all_of_a_transaction(tmp_path: Path) -> None:
    write_two(tmp_path)
    opened, partition = objects(["orders-4", "--open"], tmp_path)
    assert opened == {
        "type": "transaction",
        "topic": "orders",
        "partition": 4,
        "producerId": 8,
        "producerEpoch": 1,
        "state": "open",
        "isHanging": None,
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
        "durationMs": None,
        "coordinatorEpoch": None,
        "transactionalId": None,
        "timeoutTimestamp": None,
        "timeoutTime": None,
        "reason": "__transaction_state isn't here",
        "abortCommand": None,
        "evidence": None,
    }
    assert partition == {
        "type": "partition",
        "topic": "orders",
        "partition": 4,
        "lastStableOffset": 2,
        "logEndOffset": 4,
        "openTransactions": 1,
    }


def test_without_coordinators_the_age_alone_decides(tmp_path: Path) -> None:
    write_two(tmp_path)
    (tmp_path / "meta.properties").write_text("version=1\n")
    run = kseg(["txns", "orders-4", "--now", "1970-01-01T00:15:03.001", "-o", "csv", "--open"], tmp_path)
    assert run.status == 1
    (row,) = csv.DictReader(io.StringIO(run.stdout.decode()))
    abort = (
        "kafka-transactions.sh --bootstrap-server localhost:9092 abort --topic orders --partition 4 --start-offset 2"
    )
    assert (row["isHanging"], row["durationMs"], row["abortCommand"]) == ("true", "900001", abort)
    said = kseg(["txns", "orders-4", "--now", "1970-01-01T00:15:03.001", "--open"], tmp_path)
    assert said.stderr == b""
    assert said.stdout.decode().splitlines()[-2:] == [
        "# orders-4 from offset 2: __transaction_state isn't here; its last record is older than 15m00s, the longest"
        " that a transaction may take: run this if `kafka-transactions.sh find-hanging` lists it too",
        abort,
    ]
    assert kseg(["txns", "orders-4", "--now", "903000"], tmp_path).status == 0
    assert kseg(["txns", "orders-4", "--now", "3002", "--transaction-max-timeout-ms", "1"], tmp_path).status == 1
    young = kseg(["txns", "orders-4", "--now", "903000", "--open"], tmp_path)
    assert b"kafka-transactions.sh" not in young.stdout + young.stderr


def test_of_two_replicas_one_is_shown(tmp_path: Path) -> None:
    write_two(tmp_path / "broker1")
    write_segment(tmp_path / "broker2" / "orders-4", [NewBatch([NewRecord(b"k", b"v", 1000)], 0, 7, 0, True)])
    rows = objects(["broker2", "broker1"], tmp_path)
    assert [(row["type"], row.get("producerId")) for row in rows] == [
        ("transaction", 8),
        ("transaction", 7),
        ("partition", None),
    ]


def test_times_of_two_clocks_are_not_subtracted(tmp_path: Path) -> None:
    """The marker's timestamp is the broker's; a record's is only with LogAppendTime."""
    write_two(tmp_path)
    assert objects(["orders-4"], tmp_path)[0]["durationMs"] is None


def test_damage_is_reported_with_the_partitions_name_also_from_inside(tmp_path: Path) -> None:
    write_two(tmp_path)
    with next((tmp_path / "orders-4").glob("*.log")).open("ab") as log:
        log.write(b"\x07" * 70)
    assert b"kseg: orders-4: 00000000000000000000.log at" in kseg(["txns", "."], tmp_path / "orders-4").stderr


def test_coordinators_tell_of_transactional_ids() -> None:
    found = objects(["3.6.2/__transaction_state-0", "--open"])
    assert [(row["transactionalId"], row["state"], row["isOpen"]) for row in found] == [("left-open", "Ongoing", True)]


def test_a_log_directory_shows_both() -> None:
    run = kseg(["txns", "2.3.1"], LOGS)
    headings = [line for line in run.stdout.decode().splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Transactional ids:", "Transactions:", "Last stable offsets:"]


def test_a_table_marks_what_hangs(tmp_path: Path) -> None:
    write_two(tmp_path)
    write_coordinator(tmp_path, IDLE)
    run = kseg(["txns", "orders-4", "-o", "table", "--color"], tmp_path)
    assert run.status == 1
    assert [b"\x1b[31m" in line for line in run.stdout.splitlines() if b"hanging" in line] == [True]


def test_topics_can_be_chosen() -> None:
    assert {row["topic"] for row in objects(["2.3.1", "--topic", "tx*"])} == {"txn"}


def test_a_partition_without_transactions_says_so(tmp_path: Path) -> None:
    write_segment(tmp_path / "plain-0", [NewBatch([NewRecord(b"k", b"v")])])
    run = kseg(["txns", "plain-0"], tmp_path)
    assert (run.status, run.stdout, run.stderr) == (0, b"", b"kseg: no transactions in 1 partition\n")
    assert kseg(["txns", "plain-0", "-q"], tmp_path).stderr == b""


def test_a_missing_path_is_refused(tmp_path: Path) -> None:
    run = kseg(["txns", "none"], tmp_path)
    assert run.status == 2
    assert b"none" in run.stderr


def test_help_has_examples() -> None:
    assert b"Examples:" in kseg(["txns", "--help"], LOGS).stdout
