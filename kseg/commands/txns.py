"""`kseg txns`: transactions of partitions, and of their coordinators."""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kseg.commands.options import (
    color_option,
    csv_safe_option,
    output_option,
    paths_argument,
    quiet_option,
    raw_option,
    reads_archives,
)
from kseg.commands.parameters import long_number
from kseg.log.partition.log_dir import find_partitions
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.replicas import one_of_each
from kseg.log.verify.checks_of_producers import MAXIMUM_TRANSACTION_MS
from kseg.output.refusals import Refusals
from kseg.output.stdout import flush_stdout, write_line
from kseg.output.talk import talk
from kseg.times import parse_time
from kseg.views.columns import (
    COORDINATOR_TRANSACTIONS,
    STABLE_OFFSETS,
    TRANSACTIONS,
    CoordinatorRow,
    StableRow,
    TransactionRow,
)
from kseg.views.coordinators import Coordinators, Judge, abort_command
from kseg.views.rows import RowWriter
from kseg.views.transactions import TOPIC, PartitionTransactions, coordinator_transactions

if TYPE_CHECKING:
    from kseg.views.replay import Unreadable


@click.command()
@paths_argument
@click.option("--open", "only_open", is_flag=True, help="Only transactions that have not ended.")
@click.option("--topic", metavar="GLOB", default="*", help="Only topics that match, 'ord*' for example.")
@click.option(
    "--now",
    metavar="TIME",
    help="Time to judge open ones by: ISO 8601, milliseconds or now; without it the newest that brokers wrote there.",
)
@click.option(
    "--max-transaction-timeout",
    "timeout_ms",
    type=long_number(),
    metavar="MS",
    default=MAXIMUM_TRANSACTION_MS,
    show_default=True,
    help="None whose last record is younger hangs, as transaction.max.timeout.ms.",
)
@click.option("--bootstrap-server", metavar="HOST:PORT", default="localhost:9092", help="For the lines that abort.")
@output_option("text", "json", "csv", "table")
@csv_safe_option
@raw_option
@quiet_option
@color_option
@reads_archives("paths")
@click.pass_context
def txns(
    command: click.Context,
    paths: tuple[Path, ...],
    only_open: bool,
    topic: str,
    now: str | None,
    timeout_ms: int,
    bootstrap_server: str,
    output: str,
    csv_safe: bool,
    quiet: bool,
    color: bool | None,
) -> None:
    """Show transactions: open, committed or aborted, their offsets, how long they took, and which of them hang.

    \b
    Examples:
      kseg txns orders-0/
      kseg txns disk1/ disk2/ --open --now now --bootstrap-server kafka:9092
      kseg txns __transaction_state-7/ -o json | jq 'select(.isOpen)'

    PATHS are partition directories, log directories, or parents of these, a broker's disks for example; none means the
    current directory. Of __transaction_state the latest state of each transactional id is shown. Ends with 1 if one
    hangs.

    Open ones hold the last stable offset back. One hangs if no coordinator will end it: __transaction_state, in the
    log directories of the partitions, doesn't have it, as for `kafka-transactions.sh find-hanging`; the line that
    aborts it follows with the reason. Without that topic it isn't known, but for the age that --now gives. Of disks
    that were copied one after another give as --now the time at which the first copy began.
    """
    refuse = Refusals()
    found = list(find_partitions(paths, refuse))
    # Directories on their way in or out repeat what others tell, unless one of them is asked for.
    places = one_of_each(place for place in found if place.state is None or len(found) == 1)
    chosen = [place for place in places if fnmatchcase(place.topic or place.directory_name, topic)]
    coordinators = [place for place in chosen if place.topic == TOPIC]
    others = [place for place in chosen if place.topic != TOPIC]
    reading = _Reading(places, None if now is None else parse_time(now), timeout_ms, only_open=only_open)
    reading.bootstrap_server = bootstrap_server
    writer = RowWriter(output, color, csv_safe=csv_safe)
    if coordinators and (output != "csv" or not others):
        writer.write(COORDINATOR_TRANSACTIONS, reading.coordinator_rows(coordinators))
    if others:
        writer.write(TRANSACTIONS, reading.rows(others))
    if output != "csv":
        writer.write(STABLE_OFFSETS, reading.stable_rows)
    if writer.is_for_people:
        for line in reading.abort_lines:
            write_line(line)
    flush_stdout()
    if not quiet:
        for unreadable in reading.unreadable:
            talk(f"kseg: {unreadable.line()}")
        missing = reading.coordinators.missing_text() if others and coordinators else None
        if missing is not None:
            talk(f"kseg: {missing}: transactional ids of the others aren't shown")
        if reading.unjudged:
            talk(f"kseg: {_unjudged_text(reading.unjudged, has_time=now is not None)}")
        if found and not writer.count:
            talk(f"kseg: no {'open ' if only_open else ''}transactions to show")
    command.exit(max(refuse.status, int(reading.found_hanging or bool(reading.unreadable))))


def _unjudged_text(reasons: Sequence[str], *, has_time: bool) -> str:
    counted = "1 open transaction" if len(reasons) == 1 else f"{len(reasons)} open transactions"
    return (
        f"{counted} can't be judged: {reasons[0]}; give all log directories of the cluster"
        f"{'' if has_time else ' and --now'}, or ask `kafka-transactions.sh find-hanging`"
    )


class _Reading:
    """Reads partitions one after another, and remembers what is said at the end."""

    def __init__(self, places: Iterable[PartitionLog], now_ms: int | None, timeout_ms: int, *, only_open: bool) -> None:
        self._only_open = only_open
        self._now_ms = now_ms
        self.coordinators = Coordinators(place.path.absolute().parent for place in places)
        self._judge = Judge(self.coordinators, now_ms, timeout_ms)
        self.bootstrap_server = ""
        self.found_hanging = False
        self.stable_rows: list[StableRow] = []
        self.abort_lines: list[str] = []
        self.unjudged: list[str] = []
        self.unreadable: list[Unreadable] = []

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
            counts = (found.last_stable_offset, found.log_end_offset, len(found.open_transactions))
            self.stable_rows.append(StableRow(partition.topic, partition.partition, *counts))

    def _open_rows(self, found: PartitionTransactions) -> Iterator[TransactionRow]:
        verdicts = self._judge.verdicts(found.partition, found.open_transactions)
        for opened, verdict in verdicts.items():
            self.found_hanging |= bool(verdict.is_hanging)
            line = None
            if not verdict.is_certain:
                self.unjudged.append(verdict.reason)
            elif verdict.is_hanging:
                line = abort_command(opened, self.bootstrap_server, by_offset=self.coordinators.are_kraft)
            if line is not None:
                place = f"{opened.topic}-{opened.partition} from offset {opened.first_offset}"
                self.abort_lines += [f"# {place}: {verdict.reason}", line]
            yield TransactionRow(opened, verdict, self._now_ms, line)
