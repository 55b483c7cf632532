"""Rows of transactions, each open one judged by its coordinator; and what is to be told with them."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from kseg.log.partition.partition_choice import PartitionChoice
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.replicas import one_of_each
from kseg.views.coordinators import Coordinators, Judge, Verdict, abort_command
from kseg.views.transactions import (
    TOPIC,
    CoordinatorTransaction,
    PartitionTransactions,
    Transaction,
    coordinator_transactions,
)

if TYPE_CHECKING:
    from kseg.views.replay import Unreadable


class TransactionRow(NamedTuple):
    """A transaction of a partition, and the verdict on it if it is open.

    now_ms: the time to judge at, None if none was given. abort_command: the line that aborts it, if it hangs.
    """

    transaction: Transaction
    verdict: Verdict | None
    now_ms: int | None
    abort_command: str | None = None

    @property
    def is_hanging(self) -> bool | None:
        """Whether nobody will end it; None if that can't be known."""
        return False if self.verdict is None else self.verdict.is_hanging

    @property
    def transactional_id(self) -> str | None:
        """The transactional id of the producer, of one that is open, if it is known."""
        coordinator = None if self.verdict is None else self.verdict.coordinator
        return None if coordinator is None else coordinator.transactional_id

    @property
    def duration_ms(self) -> int | None:
        """How long it took or has been open: as its coordinator has it; of one that hangs, since its last record."""
        if self.verdict is None:
            return self.transaction.duration_ms
        if self.verdict.coordinator is not None and self.verdict.is_hanging is False:
            return self.verdict.coordinator.duration_ms(self.now_ms)
        last = self.transaction.last_timestamp
        return None if self.now_ms is None or last is None else max(0, self.now_ms - last)


class CoordinatorRow(NamedTuple):
    """What a coordinator knew of a transactional id; now_ms: the time to judge at, None if none was given."""

    transaction: CoordinatorTransaction
    now_ms: int | None

    @property
    def is_overdue(self) -> bool | None:
        """Whether its coordinator is to abort it."""
        return self.transaction.is_overdue(self.now_ms)

    @property
    def duration_ms(self) -> int | None:
        """How long it took or has been open."""
        return self.transaction.duration_ms(self.now_ms)


class StableRow(NamedTuple):
    """How far a partition can be read by consumers that read committed records only."""

    topic: str | None
    partition: int | None
    last_stable_offset: int
    log_end_offset: int
    open_transactions: int


class TransactionRows:
    """Reads partitions one after another.

    Once all rows were taken: found_hanging: whether a transaction hangs; stable_rows: partitions' last stable offsets;
    abort_lines: comments and commands that abort what hangs; unreadable: what couldn't be read.
    """

    def __init__(
        self,
        found: list[PartitionLog],
        now_ms: int | None,
        timeout_ms: int,
        bootstrap_server: str,
        *,
        only_open: bool,
    ) -> None:
        """Reads no transaction yet, but compares replicas of the same partition: one of each is read.

        Args:
            found: the partitions at hand; the coordinators are those in the same log directories.
            now_ms: time to judge open transactions by, in milliseconds since 1970; None: the newest that brokers wrote.
            timeout_ms: none whose last record is younger hangs.
            bootstrap_server: for the commands that abort.
            only_open: leave out transactions that have ended.

        Raises:
            OpenError: if the log of one of several replicas can't be opened.
        """
        # Directories on their way in or out repeat what others tell, unless one of them is asked for.
        self._places = one_of_each(place for place in found if place.state is None or len(found) == 1)
        self._only_open = only_open
        self._now_ms = now_ms
        self._coordinators = Coordinators(place.path.absolute().parent for place in self._places)
        self._judge = Judge(self._coordinators, now_ms, timeout_ms)
        self._bootstrap_server = bootstrap_server
        self._unjudged: list[str] = []
        self.found_hanging = False
        self.stable_rows: list[StableRow] = []
        self.abort_lines: list[str] = []
        self.unreadable: list[Unreadable] = []

    def split(self, choice: PartitionChoice) -> tuple[list[PartitionLog], list[PartitionLog]]:
        """Of the partitions that are meant those of `__transaction_state`, and the others."""
        chosen = [place for place in self._places if choice.takes_directory(place.path)]
        coordinators = [place for place in chosen if place.topic == TOPIC]
        return coordinators, [place for place in chosen if place.topic != TOPIC]

    def notes(self, *, is_partial: bool) -> Iterator[str]:
        """What couldn't be read or judged; `is_partial`: coordinators were shown that may not be all."""
        yield from (unreadable.line() for unreadable in self.unreadable)
        missing = self._coordinators.missing_text() if is_partial else None
        if missing is not None:
            yield f"{missing}: transactional ids of the others aren't shown"
        if self._unjudged:
            yield self._unjudged_text()

    def _unjudged_text(self) -> str:
        counted = "1 open transaction" if len(self._unjudged) == 1 else f"{len(self._unjudged)} open transactions"
        return (
            f"{counted} can't be judged: {self._unjudged[0]}; give all log directories of the cluster"
            f"{'' if self._now_ms is not None else ' and --now'}, or ask `kafka-transactions.sh find-hanging`"
        )

    def coordinator_rows(self, partitions: Iterable[PartitionLog]) -> Iterator[CoordinatorRow]:
        """The transactional ids of partitions of `__transaction_state`."""
        for partition in partitions:
            view = coordinator_transactions(partition)
            self.unreadable += view.unreadable
            for transaction in view.transactions:
                if transaction.is_open or not self._only_open:
                    yield CoordinatorRow(transaction, self._now_ms)

    def rows(self, partitions: Iterable[PartitionLog]) -> Iterator[TransactionRow]:
        """The transactions of other partitions."""
        return chain.from_iterable(map(self._rows_of, partitions))

    def _rows_of(self, partition: PartitionLog) -> Iterator[TransactionRow]:
        found = PartitionTransactions(partition)
        has_any = False
        for transaction in found.transactions():
            has_any = True
            if not transaction.is_open and not self._only_open:
                yield TransactionRow(transaction, None, self._now_ms)
        yield from self._open_rows(found)
        self.unreadable += found.unreadable
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
            self.found_hanging |= bool(verdict.is_hanging)
            line = None
            if not verdict.is_certain:
                self._unjudged.append(verdict.reason)
            elif verdict.is_hanging:
                line = abort_command(opened, self._bootstrap_server, by_offset=self._coordinators.are_kraft)
            if line is not None:
                place = f"{opened.topic}-{opened.partition} from offset {opened.first_offset}"
                self.abort_lines += [f"# {place}: {verdict.reason}", line]
            yield TransactionRow(opened, verdict, self._now_ms, line)
