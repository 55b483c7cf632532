"""The columns of transactions, of their coordinators, and of last stable offsets, for JSON, CSV and tables."""

from kseg.output.row_writer import NOT_SHOWN, Section
from kseg.times import duration_text
from kseg.views.column_kinds import column, iso_time_column, number_column, timestamp_column, unless_negative
from kseg.views.transaction_rows import CoordinatorRow, StableRow, TransactionRow


def _transaction_style(row: TransactionRow) -> str:
    if row.is_hanging:
        return "red"
    return "yellow" if row.transaction.is_open else ""


def _coordinator_style(row: CoordinatorRow) -> str:
    return "yellow" if row.transaction.is_open else ""


def _duration(row: TransactionRow | CoordinatorRow) -> str:
    is_known = row.duration_ms is not None or not row.transaction.is_open
    return duration_text(row.duration_ms) if is_known else "unknown"


def _outcome(row: TransactionRow) -> str:
    return "hanging" if row.is_hanging else str(row.transaction.outcome)


TRANSACTIONS: Section[TransactionRow] = Section(
    "transaction",
    "Transactions",
    (
        column("topic", "TOPIC", lambda row: row.transaction.topic),
        number_column("partition", "PART", lambda row: row.transaction.partition),
        number_column("producerId", "PRODUCER", lambda row: row.transaction.producer_id),
        number_column("producerEpoch", "EPOCH", lambda row: row.transaction.producer_epoch),
        column("state", "STATE", lambda row: str(row.transaction.outcome), _outcome),
        column("isHanging", NOT_SHOWN, lambda row: row.is_hanging),
        column("blocksLastStableOffset", NOT_SHOWN, lambda row: row.transaction.is_open),
        number_column("firstOffset", "FIRST", lambda row: row.transaction.first_offset),
        number_column("lastOffset", "LAST", lambda row: row.transaction.last_offset),
        number_column("endOffset", "MARKER", lambda row: row.transaction.end_offset),
        number_column("records", "RECORDS", lambda row: row.transaction.records),
        number_column("batches", NOT_SHOWN, lambda row: row.transaction.batches),
        timestamp_column("first", "BEGAN", lambda row: row.transaction.first_timestamp),
        iso_time_column("first", lambda row: row.transaction.first_timestamp),
        timestamp_column("last", NOT_SHOWN, lambda row: row.transaction.last_timestamp),
        iso_time_column("last", lambda row: row.transaction.last_timestamp),
        timestamp_column("end", NOT_SHOWN, lambda row: row.transaction.end_timestamp),
        iso_time_column("end", lambda row: row.transaction.end_timestamp),
        column("durationMs", "TOOK", lambda row: row.duration_ms, _duration),
        number_column("coordinatorEpoch", "COORD", lambda row: row.transaction.coordinator_epoch),
        column("transactionalId", NOT_SHOWN, lambda row: row.transactional_id),
        column(
            "reason",
            "WHY",
            lambda row: None if row.verdict is None else row.verdict.reason,
            lambda row: "" if row.verdict is None else row.verdict.reason,
        ),
        column("abortCommand", NOT_SHOWN, lambda row: row.abort_command),
    ),
    _transaction_style,
)
COORDINATOR_TRANSACTIONS: Section[CoordinatorRow] = Section(
    "coordinatorTransaction",
    "Transactional ids",
    (
        column("transactionalId", "TRANSACTIONAL ID", lambda row: row.transaction.transactional_id),
        number_column("coordinatorPartition", "COORD", lambda row: row.transaction.coordinator_partition),
        number_column("producerId", "PRODUCER", lambda row: row.transaction.producer_id),
        number_column("producerEpoch", "EPOCH", lambda row: row.transaction.producer_epoch),
        column("state", "STATE", lambda row: row.transaction.state),
        column("isOpen", NOT_SHOWN, lambda row: row.transaction.is_open),
        column("isOverdue", "OVERDUE", lambda row: row.is_overdue, lambda row: "yes" if row.is_overdue else ""),
        timestamp_column("start", "BEGAN", lambda row: row.transaction.start_timestamp),
        iso_time_column("start", lambda row: row.transaction.start_timestamp),
        timestamp_column("lastUpdate", "CHANGED", lambda row: row.transaction.last_update_timestamp),
        iso_time_column("lastUpdate", lambda row: row.transaction.last_update_timestamp),
        column("durationMs", "TOOK", lambda row: row.duration_ms, _duration),
        number_column("timeoutMs", "TIMEOUT MS", lambda row: row.transaction.timeout_ms),
        number_column(
            "previousProducerId", NOT_SHOWN, lambda row: unless_negative(row.transaction.previous_producer_id)
        ),
        number_column("nextProducerId", NOT_SHOWN, lambda row: unless_negative(row.transaction.next_producer_id)),
        number_column("clientTransactionVersion", NOT_SHOWN, lambda row: row.transaction.client_transaction_version),
        number_column("recordOffset", "AT", lambda row: row.transaction.record_offset),
        column(
            "partitions",
            "PARTITIONS",
            lambda row: [f"{topic}-{partition}" for topic, partition in row.transaction.partitions],
            lambda row: ",".join(f"{topic}-{partition}" for topic, partition in row.transaction.partitions),
        ),
    ),
    _coordinator_style,
)
STABLE_OFFSETS: Section[StableRow] = Section(
    "partition",
    "Last stable offsets",
    (
        column("topic", "TOPIC", lambda row: row.topic),
        number_column("partition", "PART", lambda row: row.partition),
        number_column("lastStableOffset", "STABLE", lambda row: row.last_stable_offset),
        number_column("logEndOffset", "END", lambda row: row.log_end_offset),
        number_column("openTransactions", "OPEN", lambda row: row.open_transactions),
    ),
    lambda row: "yellow" if row.open_transactions else "",
)
