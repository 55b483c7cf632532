"""Transactions of partitions and of their coordinators."""

import shutil
from pathlib import Path

import pytest
from aiokafka.record.util import calc_crc32c  # type: ignore[import-untyped]

from kseg.index.entries import TransactionIndex
from kseg.log.partition import PartitionLog
from kseg.log.transaction_walk import Evidence
from kseg.log.transactions import STATES, Outcome, PartitionTransactions, Transaction, coordinator_transactions
from tests import golden
from tests.coordinators.printed import cases_of, printed_records
from tests.golden import GoldenCase
from tests.log_files import ABORT, COMMIT, NewBatch, NewRecord, marker, write_segment
from tests.loops import for_each

LOGS = golden.ROOT / "logs"
CASES = cases_of("--transaction-log-decoder", "__transaction_state-")


def transactions(path: Path) -> list[Transaction]:
    return list(PartitionTransactions(PartitionLog(path)).transactions())


def data(base_offset: int, producer_id: int, count: int = 1, timestamp: int = 1000, epoch: int = 0) -> NewBatch:
    records = [NewRecord(b"k", b"v", timestamp + number) for number in range(count)]
    return NewBatch(records, base_offset, producer_id, epoch, is_transactional=True)


def edit_attributes(log: Path, bits: int) -> None:
    """Set bits in the attributes of a log's first batch."""
    content = bytearray(log.read_bytes())
    content[22] |= bits
    size = int.from_bytes(content[8:12], "big") + 12
    content[17:21] = calc_crc32c(bytes(content[21:size])).to_bytes(4, "big")
    log.write_bytes(content)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return tmp_path / "orders-4"


def test_transactions_have_their_offsets_times_and_outcomes(partition: Path) -> None:
    first, second, third = data(0, 7, 3), data(3, 8, 2, 1500), data(5, 7, 1, 2000)
    end = marker(COMMIT, third, 4000)
    abort = marker(ABORT, second, 5000)._replace(base_offset=7)
    left = data(8, 9, 2, 6000)
    write_segment(partition, [first, second, third, end, abort, left])
    committed, aborted, opened = transactions(partition)
    assert committed == Transaction(
        "orders", 4, 7, 0, Outcome.COMMITTED, 0, 5, 6, 2, 4, 1000, 2000, 4000, 7, evidence=Evidence.MARKER
    )
    assert (aborted.outcome, aborted.first_offset, aborted.last_offset, aborted.end_offset) == (
        Outcome.ABORTED,
        3,
        4,
        7,
    )
    assert (opened.is_open, opened.first_offset, opened.end_offset) == (True, 8, None)
    assert [found.duration_ms for found in (committed, aborted, opened)] == [None, None, None]


def test_a_transaction_took_what_the_brokers_own_times_tell(partition: Path) -> None:
    first = data(0, 7)
    log = write_segment(partition, [first, marker(COMMIT, first, 4000)])
    edit_attributes(log, 0x08)
    (found,) = transactions(partition)
    assert (found.has_broker_times, found.duration_ms) == (True, 3000)


def test_the_oldest_open_one_holds_the_last_stable_offset(partition: Path) -> None:
    first, second = data(0, 7), data(1, 8)
    plain = NewBatch([NewRecord(None, b"v", 9000)], 2)
    write_segment(partition, [first, second, plain, marker(COMMIT, second)._replace(base_offset=3)])
    found = PartitionTransactions(PartitionLog(partition))
    assert len(list(found.transactions())) == 2
    assert (found.last_stable_offset, found.log_end_offset, found.last_timestamp) == (0, 4, 1_700_000_000_000)
    assert [transaction.producer_id for transaction in found.open_transactions] == [7]


def test_without_open_ones_all_is_stable(partition: Path) -> None:
    first = data(0, 7)
    write_segment(partition, [first, marker(ABORT, first)])
    found = PartitionTransactions(PartitionLog(partition))
    list(found.transactions())
    assert found.last_stable_offset == found.log_end_offset == 2


def test_a_marker_without_records_is_reported(partition: Path) -> None:
    write_segment(partition, [marker(COMMIT, data(0, 7))._replace(base_offset=5)])
    (found,) = transactions(partition)
    assert (found.outcome, found.first_offset, found.end_offset, found.duration_ms) == (
        Outcome.COMMITTED,
        None,
        5,
        None,
    )


def test_an_open_one_is_old_once_its_last_record_is(partition: Path) -> None:
    write_segment(partition, [data(0, 7, timestamp=1000)])
    (found,) = transactions(partition)
    assert not found.is_older_than(901_000)
    assert found.is_older_than(901_001)
    assert not found.is_older_than(901_001, timeout_ms=901_000)


def test_a_transaction_that_began_before_the_log_comes_from_the_producer_snapshot() -> None:
    found = PartitionTransactions(PartitionLog(LOGS / "4.3.1" / "__consumer_offsets-1"))
    (opened,) = found.transactions()
    assert (opened.producer_id, opened.first_offset, opened.first_timestamp, opened.batches) == (1009, 126, None, 0)
    assert found.last_stable_offset == found.partition.log_start_offset() == 173


@pytest.mark.parametrize("release", ["2.4.1", "2.8.2", "3.3.2", "3.6.2", "4.1.0"])
def test_the_transaction_that_was_left_open_is_found(release: str) -> None:
    opened = [found for found in transactions(LOGS / release / "__consumer_offsets-1") if found.is_open]
    assert [(found.records, found.end_offset) for found in opened] == [(1, None)]


def with_aborted_transactions() -> list[Path]:
    """Return partitions whose brokers wrote transaction indexes with entries."""
    indexes = [path for path in golden.files(".txnindex") if path.stat().st_size]
    return sorted({path.parent for path in indexes if path.stem.isdecimal() and path.with_suffix(".log").exists()})


@pytest.mark.parametrize("path", with_aborted_transactions(), ids=lambda path: "/".join(path.parts[-2:]))
def test_aborted_transactions_are_those_of_the_brokers_indexes(path: Path) -> None:
    found = {
        (transaction.producer_id, transaction.first_offset, transaction.end_offset)
        for transaction in transactions(path)
        if transaction.outcome is Outcome.ABORTED and transaction.first_offset is not None
    }
    indexed = set()
    for index in path.glob("*.txnindex"):
        with TransactionIndex(index) as opened:
            indexed |= {(entry.producer_id, entry.first_offset, entry.last_offset) for entry in opened.entries()}
    # A transaction that began before the log has only its marker left.
    start = PartitionLog(path).base_offsets[0]
    assert found == {entry for entry in indexed if entry[1] >= start}
    ended = {(transaction.producer_id, transaction.end_offset) for transaction in transactions(path)}
    assert {(entry[0], entry[2]) for entry in indexed} <= ended


def test_there_are_brokers_indexes_to_compare_with() -> None:
    assert len(with_aborted_transactions()) > 1


def coordinator_printed(case: GoldenCase) -> dict[str, tuple[int, int, str, int, int]]:
    found: dict[str, tuple[int, int, str, int, int]] = {}
    for record in printed_records(case):
        name = record.key["data"]["transactionalId"]
        found.pop(name, None)
        if record.value is not None:
            value = record.value["data"]
            status = value["transactionStatus"]
            found[name] = (
                value["producerId"],
                value["producerEpoch"],
                status if isinstance(status, str) else STATES[status],
                value["transactionLastUpdateTimestampMs"],
                sum(len(topic["partitionIds"]) for topic in value["transactionPartitions"] or ()),
            )
    return found


COORDINATOR_CASES = [case for case in CASES if case.printer in ("4.1.0", "4.3.1", "4.4.0")]


@for_each("case", COORDINATOR_CASES, ids=str)
def test_transactional_ids_are_as_the_real_tool_printed_them_last(case: GoldenCase, tmp_path: Path) -> None:
    directory = tmp_path / "__transaction_state-0"
    directory.mkdir()
    shutil.copy(golden.ROOT / case.files[0], directory)
    view = coordinator_transactions(PartitionLog(directory))
    assert view.unreadable == ()
    assert {
        found.transactional_id: (
            found.producer_id,
            found.producer_epoch,
            found.state,
            found.last_update_timestamp,
            len(found.partitions),
        )
        for found in view.transactions
    } == coordinator_printed(case)


def test_a_coordinators_open_transaction_is_overdue_after_its_own_timeout() -> None:
    view = coordinator_transactions(PartitionLog(LOGS / "3.6.2" / "__transaction_state-0"))
    (opened,) = [found for found in view.transactions if found.is_open]
    assert opened.transactional_id == "left-open"
    end = opened.start_timestamp + opened.timeout_ms
    assert (opened.is_overdue(end), opened.is_overdue(end + 1), opened.is_overdue(None)) == (False, True, None)


def test_a_coordinators_state_at_a_time() -> None:
    partition = PartitionLog(LOGS / "3.6.2" / "__transaction_state-0")
    (opened,) = [found for found in coordinator_transactions(partition).transactions if found.is_open]
    before = coordinator_transactions(partition, opened.last_update_timestamp - 1)
    assert [found for found in before.transactions if found.is_open and found == opened] == []


def test_damage_is_named_and_the_rest_is_read(partition: Path) -> None:
    first, second = data(0, 7), data(1, 8)
    path = write_segment(partition, [first, second])
    content = bytearray(path.read_bytes())
    content[8:12] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    found = PartitionTransactions(PartitionLog(partition))
    assert [transaction.producer_id for transaction in found.transactions()] == [8]
    assert "bad-length" in found.unreadable[0].line()
