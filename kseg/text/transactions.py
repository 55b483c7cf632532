"""Columns of `kseg txns` and of `kseg plan-move`."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, tzinfo
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kseg.cluster.joined_log import whole_log
from kseg.cluster.move_plan import Fill, Move, MovePlan
from kseg.cluster.replicas import PartitionReplicas
from kseg.coordinators.explained_transaction import explain_transaction
from kseg.coordinators.transactions import (
    Coordinators,
    Judge,
    Verdict,
    abort_command,
    end_text,
    find_start_command,
)
from kseg.errors import plural
from kseg.log.partition import PartitionLog
from kseg.log.selection import PartitionChoice
from kseg.log.transaction_evidence import Clue
from kseg.log.transactions import (
    TOPIC,
    CoordinatorTransaction,
    PartitionTransactions,
    Transaction,
    coordinator_transactions,
)
from kseg.output.columns import NOT_SHOWN, Column, iso_time_column, listed_column, timestamp_column
from kseg.output.forms import RowWriter
from kseg.output.table import Section
from kseg.sizes import human_size
from kseg.text import fields
from kseg.text.groups import unless_negative
from kseg.times import duration_text

if TYPE_CHECKING:
    from kseg.log.replay import Unreadable


class TransactionRow(NamedTuple):
    """A transaction of a partition, and the verdict on it if it is open.

    now_ms: the given time, None without one; times of a producer are counted to no other. age_ms: the time that the
    coordinator's times are counted to. abort_command: the command that aborts it, if it hangs or is overdue.
    """

    transaction: Transaction
    verdict: Verdict | None
    now_ms: int | None
    age_ms: int | None = None
    abort_command: str | None = None

    @property
    def is_hanging(self) -> bool | None:
        """True if nobody will end the transaction, or None if unknown."""
        return False if self.verdict is None else self.verdict.is_hanging

    @property
    def coordinator(self) -> CoordinatorTransaction | None:
        """The coordinator's entry that ends an open transaction, or None if it doesn't exist or it is unknown."""
        return self.verdict.coordinator if self.verdict is not None and self.verdict.is_coordinated else None

    @property
    def is_overdue(self) -> bool:
        """True if the coordinator should have aborted the transaction and hasn't."""
        return bool(self.coordinator and self.coordinator.is_overdue(self.age_ms))

    @property
    def badness(self) -> int:
        """Sort key: hanging and overdue transactions, open transactions, then others."""
        return 0 if self.is_hanging or self.is_overdue else 1 if self.transaction.is_open else 2

    @property
    def transactional_id(self) -> str | None:
        """The transactional id of the producer of an open transaction, if known."""
        coordinator = None if self.verdict is None else self.verdict.coordinator
        return None if coordinator is None else coordinator.transactional_id

    @property
    def timeout_timestamp(self) -> int | None:
        """Time at which the coordinator ends the transaction if nobody else does; None if it won't, or if unknown."""
        return None if self.coordinator is None else self.coordinator.timeout_timestamp

    @property
    def duration_ms(self) -> int | None:
        """Duration of the transaction so far: from the coordinator, or since the last record if it hangs."""
        if self.verdict is None:
            return self.transaction.duration_ms
        if self.coordinator is not None:
            return self.coordinator.duration_ms(self.age_ms)
        last = self.transaction.last_timestamp
        return None if self.now_ms is None or last is None else max(0, self.now_ms - last)


class CoordinatorRow(NamedTuple):
    """A coordinator's entry for a transactional id.

    now_ms: the time that its age is counted to; None without one.
    """

    transaction: CoordinatorTransaction
    now_ms: int | None

    @property
    def is_overdue(self) -> bool | None:
        """True if the coordinator should have aborted the transaction."""
        return self.transaction.is_overdue(self.now_ms)

    @property
    def badness(self) -> int:
        """Sort key, as of a TransactionRow."""
        return 0 if self.is_overdue else 1 if self.transaction.is_open else 2

    @property
    def duration_ms(self) -> int | None:
        """Duration of the transaction so far."""
        return self.transaction.duration_ms(self.now_ms)


Judged = TypeVar("Judged", TransactionRow, CoordinatorRow)
MOST_SOONER = 5
"""Transactions that end by their timeouts of which the commands that end them sooner are shown."""
MOST_HELD = 100_000
"""Most ended transactions that are held back until the open ones are known."""


def worst_first(rows: Iterable[Judged]) -> Iterator[Judged]:
    """Yield hanging and overdue rows first, then open ones.

    If very many transactions have ended, the first of them come before.
    """
    opened, ended = list[Judged](), list[Judged]()
    for row in rows:
        (opened if row.transaction.is_open else ended).append(row)
        if len(ended) == MOST_HELD:
            yield from ended
            ended.clear()
    yield from sorted(opened, key=lambda row: row.badness)
    yield from ended


class StableRow(NamedTuple):
    """Last stable offset of a partition, up to which consumers of committed records can read."""

    topic: str | None
    partition: int | None
    last_stable_offset: int
    log_end_offset: int
    open_transactions: int


class TransactionRows:
    """Rows of transactions, read from partitions in order.

    age_ms: the time that coordinators' times are counted to; by default the given time. zone: time zone of times in
    lines. After all rows: has_ages: whether any row has an age. found_bad: whether a transaction hangs or is overdue.
    stable_rows: partitions' last stable offsets. unreadable: unreadable partitions. transactional_ids: their number.
    """

    def __init__(
        self,
        found: Iterable[PartitionReplicas[PartitionLog]],
        now_ms: int | None,
        timeout_ms: int,
        bootstrap_server: str,
        *,
        only_open: bool,
        log_dirs: Iterable[Path] = (),
    ) -> None:
        """Take the partitions, without reading a transaction.

        Args:
            found: the partitions, whose best copies are read.
            log_dirs: further log directories that may have the coordinators' partitions.
            now_ms: time to judge open transactions by, in milliseconds since 1970; None: the newest that brokers wrote.
            timeout_ms: a transaction whose last record is younger never hangs.
            bootstrap_server: address in the abort commands.
            only_open: omit transactions that have ended.

        Raises:
            OpenError: if the log of one of several replicas can't be opened.
        """
        self._places = [whole_log(each) for each in found if each.copies]
        self._only_open = only_open
        self._now_ms = now_ms
        self.age_ms = now_ms
        self.zone: tzinfo = UTC
        self._coordinators = Coordinators([*log_dirs, *(place.path.absolute().parent for place in self._places)])
        self._judge = Judge(self._coordinators, now_ms, timeout_ms)
        self._bootstrap_server = bootstrap_server
        self._unjudged: list[str] = []
        self._contradictions: list[str] = []
        self.found_bad = False
        self.has_ages = False
        self.transactional_ids = 0
        self.stable_rows: list[StableRow] = []
        self._abort_lines: list[str] = []
        self._sooner: list[tuple[bool, str, str]] = []
        self.unreadable: list[Unreadable] = []

    def split(self, choice: PartitionChoice) -> tuple[list[PartitionLog], list[PartitionLog]]:
        """Return the chosen partitions of `__transaction_state`, and the other chosen partitions."""
        chosen = [place for place in self._places if choice.takes_directory(place.path)]
        coordinators = [place for place in chosen if place.topic == TOPIC]
        return coordinators, [place for place in chosen if place.topic != TOPIC]

    def notes(self, *, is_partial: bool) -> Iterator[str]:
        """Yield unreadable and unjudged parts; `is_partial`: the shown coordinators may be incomplete."""
        yield from (unreadable.line() for unreadable in self.unreadable)
        yield from self._contradictions
        missing = self._coordinators.missing_text() if is_partial else None
        if missing is not None:
            yield f"{missing}: the output lacks their transactional ids"
        if self._unjudged:
            yield self._unjudged_text()

    def abort_lines(self) -> Iterator[str]:
        """Yield commands with comments: first for hanging and overdue transactions, then for others that end sooner."""
        yield from self._abort_lines
        for _, *lines in sorted(self._sooner, key=itemgetter(0))[:MOST_SOONER]:  # given partitions first
            yield from lines
        if len(self._sooner) > MOST_SOONER:
            yield (
                f"# {len(self._sooner) - MOST_SOONER} more will end at their timeouts: select some with --topic and"
                " --partition"
            )

    def _unjudged_text(self) -> str:
        number = plural(len(self._unjudged), "open transaction")
        return (
            f"{number} may hang: {self._unjudged[0]}; specify all log directories of the"
            f" cluster{'' if self._now_ms is not None else ' and --now'}, or run `kafka-transactions.sh"
            " --bootstrap-server HOST:9092 find-hanging --broker-id ID`"
        )

    def coordinator_rows(self, partitions: Iterable[PartitionLog]) -> Iterator[CoordinatorRow]:
        """Yield the transactional ids of partitions of `__transaction_state`."""
        for partition in partitions:
            view = coordinator_transactions(partition)
            self.unreadable += view.unreadable
            self.transactional_ids += len(view.transactions)
            for transaction in view.transactions:
                if transaction.is_open or not self._only_open:
                    row = CoordinatorRow(transaction, self.age_ms)
                    self._note_overdue(row)
                    yield row

    def _note_overdue(self, row: CoordinatorRow) -> None:
        """Note the next step for an overdue transaction of partitions that aren't in the given directories."""
        self.has_ages |= row.transaction.is_open
        self.found_bad |= bool(row.is_overdue)
        reason = _overdue_text(row.transaction) if row.is_overdue else self._sooner_text(row.transaction)
        here = {(place.topic, place.partition) for place in self._places}
        for topic, partition in row.transaction.partitions if reason else ():
            if (topic, partition) in here:
                continue
            lines = (
                f"# {topic}-{partition}: {reason}; this prints its first offset, for `kafka-transactions.sh abort"
                " --start-offset`",
                find_start_command(topic, partition, self._bootstrap_server),
            )
            if row.is_overdue:
                self._abort_lines += lines
            else:
                self._sooner.append((True, *lines))

    def _sooner_text(self, coordinator: CoordinatorTransaction) -> str | None:
        """Return when a transaction ends without the abort command, or None if that text isn't needed."""
        ends = end_text(coordinator, self.zone) if self._only_open else None
        return None if ends is None else f"{_state_text(coordinator)}; ends {ends}, or now with this command"

    def rows(self, partitions: Iterable[PartitionLog]) -> Iterator[TransactionRow]:
        """Yield the transactions of other partitions."""
        return chain.from_iterable(map(self._rows_of, partitions))

    def clues(self, partitions: Sequence[PartitionLog], wanted: str) -> Iterator[Clue]:
        """Yield clues about one transaction, by `--explain`'s ID. Raises UsageError if there is no such transaction."""
        return explain_transaction(partitions, self._coordinators, self._judge, wanted)

    def _rows_of(self, partition: PartitionLog) -> Iterator[TransactionRow]:
        found = PartitionTransactions(partition)
        has_any = False
        for transaction in found.transactions():
            has_any = True
            if not transaction.is_open and not self._only_open:
                yield TransactionRow(transaction, None, self._now_ms)
        yield from self._open_rows(found)
        self.unreadable += found.unreadable
        self._contradictions += found.notes
        if has_any:
            self.stable_rows.append(
                StableRow(
                    partition.topic,
                    partition.partition,
                    found.last_stable_offset,
                    found.log_end_offset,
                    len(found.open_transactions),
                )
            )

    def _open_rows(self, found: PartitionTransactions) -> Iterator[TransactionRow]:
        verdicts = self._judge.verdicts(found.partition, found.open_transactions)
        for opened, verdict in verdicts.items():
            row = TransactionRow(opened, verdict, self._now_ms, self.age_ms)
            self.has_ages |= row.coordinator is not None
            self.found_bad |= row.badness == 0
            if verdict.is_hanging is None:
                self._unjudged.append(verdict.reason)
            line = abort_command(opened, self._bootstrap_server, by_offset=self._coordinators.are_kraft)
            place = f"# {opened.topic}-{opened.partition} from offset {opened.first_offset}"
            if row.badness == 0 and line is not None:
                reason = _reason(verdict) if row.coordinator is None else _overdue_text(row.coordinator)
                self._abort_lines += [f"{place}: {reason}", line]
            elif row.coordinator is not None and line is not None:
                sooner = self._sooner_text(row.coordinator)
                self._sooner += [] if sooner is None else [(False, f"{place}: {sooner}", line)]
            yield row._replace(abort_command=line if row.badness == 0 else None)


def _reason(verdict: Verdict) -> str:
    """Return why a transaction hangs, and the first check if only its age says so."""
    return verdict.reason if verdict.is_certain else f"{verdict.reason}: {_ASK_FIRST}"


_ASK_FIRST = "run this if `kafka-transactions.sh find-hanging` lists it too"


def _state_text(coordinator: CoordinatorTransaction) -> str:
    return f"{coordinator.state} as {coordinator.transactional_id}"


def _overdue_text(coordinator: CoordinatorTransaction) -> str:
    allowed = duration_text(coordinator.timeout_ms)
    return f"{_state_text(coordinator)} for longer than its {allowed}; run this if its coordinator doesn't abort it"


def nothing_open_text(partitions: int, coordinators: int, transactional_ids: int) -> str:
    """Return the message that no transaction is open, with the number of searched partitions, coordinators and ids."""
    looked = [plural(partitions, "partition")] if partitions or not coordinators else []
    if coordinators:
        ids = plural(transactional_ids, "transactional id")
        looked.append(f"{ids} in {plural(coordinators, 'partition')} of {TOPIC}")
    return f"found no open transactions in {' and '.join(looked)}"


FILLS: Section[Fill] = Section(
    "logDir",
    "Log directories",
    (
        Column(fields.PATH, "LOG DIRECTORY", lambda row: str(row.path)),
        Column(fields.PARTITIONS, "PARTITIONS", lambda row: row.partitions),
        Column(fields.BEFORE, "BEFORE", lambda row: row.before),
        Column(fields.AFTER, "AFTER", lambda row: row.after),
        Column(fields.AVAILABLE, NOT_SHOWN, lambda row: row.available),
    ),
)
MOVES: Section[Move] = Section(
    "move",
    "Moves",
    (
        Column(fields.TOPIC, "TOPIC", lambda row: row.partition.topic, rank=0),
        Column(fields.PARTITION, "PART", lambda row: row.partition.partition, rank=0),
        Column(fields.SIZE, "SIZE", lambda row: row.size),
        listed_column(fields.REPLICAS, "REPLICAS", lambda row: row.partition.replicas),
        Column(fields.FROM, "FROM", lambda row: str(row.source)),
        Column(fields.TO, "TO", lambda row: str(row.target)),
    ),
)
REASSIGNMENT = "reassignment"
"""Form of output that Kafka's reassignment tool reads."""


def write_plan(plan: MovePlan, writer: RowWriter) -> None:
    """Write a plan: the directories and the moves; in CSV only the moves."""
    if not writer.form.has_one_kind:
        writer.write(FILLS, plan.fills)
    writer.write(MOVES, plan.moves)


def plan_sum(plan: MovePlan) -> str:
    """Return one line with the sums of the moves."""
    if not plan.moves:
        return "nothing to move"
    size = sum(move.size for move in plan.moves)
    count = f"{len(plan.moves)} {'partition' if len(plan.moves) == 1 else 'partitions'}"
    tool = "kafka-reassign-partitions.sh --bootstrap-server HOST:9092 --reassignment-json-file FILE --execute"
    return f"{count} to move, {human_size(size)}: {tool}"


def _transaction_style(row: TransactionRow) -> str:
    if row.badness == 0:
        return "red"
    return "yellow" if row.transaction.is_open else ""


def _coordinator_style(row: CoordinatorRow) -> str:
    return ("red", "yellow", "")[row.badness]


def _duration(row: TransactionRow | CoordinatorRow) -> str:
    is_known = row.duration_ms is not None or not row.transaction.is_open
    return duration_text(row.duration_ms) if is_known else "unknown"


def _outcome(row: TransactionRow) -> str:
    if row.is_overdue:
        return "overdue"
    return "hanging" if row.is_hanging else str(row.transaction.outcome)


def _why_column(zone: tzinfo = UTC) -> Column[TransactionRow]:
    """Return the column of facts about an open transaction, with times in a zone."""

    def sentence(row: TransactionRow) -> str:
        return "" if row.verdict is None else row.verdict.sentence(zone)

    def reason(row: TransactionRow) -> str | None:
        return None if row.verdict is None else row.verdict.reason

    return Column(fields.REASON, "WHY", reason, sentence, in_zone=_why_column, rank=0, is_sentence=True)


def _ends_column(zone: tzinfo = UTC) -> Column[CoordinatorRow]:
    """Return the column that says how an abandoned transaction ends, with times in a zone."""

    def timestamp(row: CoordinatorRow) -> int | None:
        return row.transaction.timeout_timestamp

    def sentence(row: CoordinatorRow) -> str:
        return end_text(row.transaction, zone) or ""

    return Column(fields.TIMEOUT_TIMESTAMP, "ENDS", timestamp, sentence, in_zone=_ends_column, rank=0, is_sentence=True)


TRANSACTIONS: Section[TransactionRow] = Section(
    "transaction",
    "Transactions",
    (
        Column(fields.TOPIC, "TOPIC", lambda row: row.transaction.topic, rank=0),
        Column(fields.PARTITION, "PART", lambda row: row.transaction.partition, rank=0),
        Column(fields.PRODUCER_ID, "PRODUCER", lambda row: row.transaction.producer_id, rank=0),
        Column(fields.PRODUCER_EPOCH, "EPOCH", lambda row: row.transaction.producer_epoch, rank=3),
        Column(fields.STATE, "STATE", lambda row: str(row.transaction.outcome), _outcome, rank=0),
        Column(fields.IS_HANGING, NOT_SHOWN, lambda row: row.is_hanging),
        Column(fields.BLOCKS_LAST_STABLE_OFFSET, NOT_SHOWN, lambda row: row.transaction.is_open),
        Column(fields.FIRST_OFFSET, "FIRST", lambda row: row.transaction.first_offset, rank=0),
        Column(fields.LAST_OFFSET, "LAST", lambda row: row.transaction.last_offset, rank=2),
        Column(fields.END_OFFSET, "MARKER", lambda row: row.transaction.end_offset, rank=2),
        Column(fields.RECORDS, "RECORDS", lambda row: row.transaction.records, rank=3),
        Column(fields.BATCHES, NOT_SHOWN, lambda row: row.transaction.batches),
        timestamp_column(fields.FIRST_TIMESTAMP, "PRODUCED", lambda row: row.transaction.first_timestamp),
        iso_time_column(fields.FIRST_TIME, lambda row: row.transaction.first_timestamp),
        timestamp_column(fields.LAST_TIMESTAMP, NOT_SHOWN, lambda row: row.transaction.last_timestamp),
        iso_time_column(fields.LAST_TIME, lambda row: row.transaction.last_timestamp),
        timestamp_column(fields.END_TIMESTAMP, NOT_SHOWN, lambda row: row.transaction.end_timestamp),
        iso_time_column(fields.END_TIME, lambda row: row.transaction.end_timestamp),
        Column(fields.DURATION_MS, "DURATION", lambda row: row.duration_ms, _duration, is_right=False, rank=2),
        Column(fields.COORDINATOR_EPOCH, "COORDINATOR EPOCH", lambda row: row.transaction.coordinator_epoch, rank=4),
        Column(fields.TRANSACTIONAL_ID, NOT_SHOWN, lambda row: row.transactional_id),
        timestamp_column(fields.TIMEOUT_TIMESTAMP, NOT_SHOWN, lambda row: row.timeout_timestamp),
        iso_time_column(fields.TIMEOUT_TIME, lambda row: row.timeout_timestamp),
        _why_column(),
        Column(fields.ABORT_COMMAND, NOT_SHOWN, lambda row: row.abort_command),
        Column(fields.EVIDENCE, NOT_SHOWN, lambda row: row.transaction.evidence),
    ),
    _transaction_style,
)
COORDINATOR_TRANSACTIONS: Section[CoordinatorRow] = Section(
    "coordinatorTransaction",
    "Transactional ids",
    (
        Column(fields.TRANSACTIONAL_ID, "TRANSACTIONAL ID", lambda row: row.transaction.transactional_id, rank=0),
        Column(
            fields.COORDINATOR_PARTITION,
            "COORDINATOR PARTITION",
            lambda row: row.transaction.coordinator_partition,
            rank=4,
        ),
        Column(fields.PRODUCER_ID, "PRODUCER", lambda row: row.transaction.producer_id, rank=0),
        Column(fields.PRODUCER_EPOCH, "EPOCH", lambda row: row.transaction.producer_epoch, rank=3),
        Column(fields.STATE, "STATE", lambda row: row.transaction.state, rank=0),
        Column(fields.IS_OPEN, NOT_SHOWN, lambda row: row.transaction.is_open),
        Column(
            fields.IS_OVERDUE,
            "OVERDUE",
            lambda row: row.is_overdue,
            lambda row: "yes" if row.is_overdue else "",
            rank=0,
        ),
        timestamp_column(fields.START_TIMESTAMP, "BEGAN", lambda row: row.transaction.start_timestamp, rank=0),
        iso_time_column(fields.START_TIME, lambda row: row.transaction.start_timestamp),
        timestamp_column(
            fields.LAST_UPDATE_TIMESTAMP, "CHANGED", lambda row: row.transaction.last_update_timestamp, rank=2
        ),
        iso_time_column(fields.LAST_UPDATE_TIME, lambda row: row.transaction.last_update_timestamp),
        Column(fields.DURATION_MS, "DURATION", lambda row: row.duration_ms, _duration, is_right=False, rank=2),
        Column(fields.TIMEOUT_MS, "TIMEOUT", lambda row: row.transaction.timeout_ms, rank=3),
        _ends_column(),
        iso_time_column(fields.TIMEOUT_TIME, lambda row: row.transaction.timeout_timestamp),
        Column(
            fields.PREVIOUS_PRODUCER_ID, NOT_SHOWN, lambda row: unless_negative(row.transaction.previous_producer_id)
        ),
        Column(fields.NEXT_PRODUCER_ID, NOT_SHOWN, lambda row: unless_negative(row.transaction.next_producer_id)),
        Column(fields.CLIENT_TRANSACTION_VERSION, NOT_SHOWN, lambda row: row.transaction.client_transaction_version),
        Column(fields.RECORD_OFFSET, "STATE RECORD", lambda row: row.transaction.record_offset, rank=5),
        listed_column(
            fields.TRANSACTION_PARTITIONS,
            "PARTITIONS",
            lambda row: tuple(f"{topic}-{partition}" for topic, partition in row.transaction.partitions),
        ),
    ),
    _coordinator_style,
)
STABLE_OFFSETS: Section[StableRow] = Section(
    "partition",
    "Last stable offsets",
    (
        Column(fields.TOPIC, "TOPIC", lambda row: row.topic, rank=0),
        Column(fields.PARTITION, "PART", lambda row: row.partition, rank=0),
        Column(fields.LAST_STABLE_OFFSET, "LSO", lambda row: row.last_stable_offset),
        Column(fields.LOG_END_OFFSET, "END", lambda row: row.log_end_offset),
        Column(fields.OPEN_TRANSACTIONS, "OPEN", lambda row: row.open_transactions),
    ),
    lambda row: "yellow" if row.open_transactions else "",
)
CLUES: Section[Clue] = Section(
    "clue",
    "Evidence",
    (
        Column(fields.TOPIC, "TOPIC", lambda row: row.topic, rank=0),
        Column(fields.PARTITION, "PART", lambda row: row.partition, rank=0),
        Column(fields.KIND, "KIND", lambda row: str(row.kind)),
        Column(fields.OFFSET, "OFFSET", lambda row: row.offset),
        Column(fields.FILE, "FILE", lambda row: row.file),
        Column(fields.POSITION, "POSITION", lambda row: row.position),
        Column(fields.TOLD, "SAYS", lambda row: row.told),
    ),
)
