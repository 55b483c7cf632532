"""`kseg txns`: transactions of partitions, and of their coordinators."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kseg.commands.options import (
    color_option,
    csv_safe_option,
    output_option,
    quiet_option,
    raw_option,
    reads_archives,
)
from kseg.commands.parameters import long_number
from kseg.log.log_dir import partitions_at
from kseg.log.partition import PartitionLog
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
from kseg.views.rows import RowWriter
from kseg.views.transactions import MAXIMUM_TIMEOUT_MS, TOPIC, PartitionTransactions, coordinator_transactions

if TYPE_CHECKING:
    from kseg.views.replay import Unreadable


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path())
@click.option("--open", "only_open", is_flag=True, help="Only transactions that have not ended.")
@click.option("--topic", metavar="GLOB", default="*", help="Only topics that match, 'ord*' for example.")
@click.option(
    "--now",
    metavar="TIME",
    help="Time to judge open ones by: ISO 8601 or milliseconds; the partition's last by itself.",
)
@click.option(
    "--max-transaction-timeout",
    "timeout_ms",
    type=long_number(),
    metavar="MS",
    default=MAXIMUM_TIMEOUT_MS,
    show_default=True,
    help="An open one hangs if its last record is older, as transaction.max.timeout.ms.",
)
@click.option("--bootstrap-server", metavar="HOST:PORT", default="localhost:9092", help="For the lines that abort.")
@output_option("text", "json", "csv", "table")
@csv_safe_option
@raw_option
@quiet_option
@color_option
@reads_archives("path")
@click.pass_context
def txns(
    command: click.Context,
    path: Path,
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
      kseg txns kafka-logs/ --open --bootstrap-server kafka:9092
      kseg txns __transaction_state-7/ -o json | jq 'select(.isOpen)'

    Those that are open hold the last stable offset back; for each the line that aborts it is printed.

    PATH is a partition directory, or a log directory: then all of its partitions are read; none means the current
    directory. Of __transaction_state the latest state of each transactional id is shown. Ends with 1 if one hangs.
    """
    reading = _Reading(None if now is None else parse_time(now), timeout_ms, bootstrap_server, only_open=only_open)
    refuse = Refusals()
    found = [place for place in partitions_at(path, refuse) if fnmatchcase(place.topic or place.path.name, topic)]
    # Directories on their way in or out repeat what others tell, unless one of them is asked for.
    places = [place for place in found if place.state is None or len(found) == 1]
    coordinators = [place for place in places if place.topic == TOPIC]
    others = [place for place in places if place.topic != TOPIC]
    writer = RowWriter(output, color, csv_safe=csv_safe)
    if coordinators and (output != "csv" or not others):
        writer.write(COORDINATOR_TRANSACTIONS, reading.coordinator_rows(coordinators))
    if others:
        writer.write(TRANSACTIONS, reading.rows(others))
    if output != "csv":
        writer.write(STABLE_OFFSETS, reading.stable_rows)
    if writer.is_for_people:
        for line in reading.abort_commands:
            write_line(line)
    flush_stdout()
    if not quiet:
        for unreadable in reading.unreadable:
            talk(f"kseg: {unreadable.line()}")
    command.exit(max(refuse.status, int(reading.found_hanging or bool(reading.unreadable))))


class _Reading:
    """Reads partitions one after another, and remembers what is said at the end."""

    def __init__(self, now: int | None, timeout_ms: int, bootstrap_server: str, *, only_open: bool) -> None:
        self._only_open = only_open
        self._now = now
        self._timeout_ms = timeout_ms
        self._bootstrap_server = bootstrap_server
        self.found_hanging = False
        self.stable_rows: list[StableRow] = []
        self.abort_commands: list[str] = []
        self.unreadable: list[Unreadable] = []

    def coordinator_rows(self, partitions: Iterable[PartitionLog]) -> Iterator[CoordinatorRow]:
        """The transactional ids of partitions of `__transaction_state`."""
        for partition in partitions:
            view = coordinator_transactions(partition)
            self.unreadable += view.unreadable
            for transaction in view.transactions:
                row = CoordinatorRow(transaction, view.last_timestamp if self._now is None else self._now)
                self.found_hanging |= row.is_hanging
                if transaction.is_open or not self._only_open:
                    yield row

    def rows(self, partitions: Iterable[PartitionLog]) -> Iterator[TransactionRow]:
        """The transactions of other partitions."""
        return chain.from_iterable(map(self._rows_of, partitions))

    def _rows_of(self, partition: PartitionLog) -> Iterator[TransactionRow]:
        found = PartitionTransactions(partition)
        has_any = False
        for transaction in found.transactions():
            has_any = True
            at_ms = found.last_timestamp if self._now is None else self._now
            row = TransactionRow(transaction, at_ms, self._timeout_ms, self._bootstrap_server)
            self.found_hanging |= row.is_hanging
            if row.abort_command is not None:
                self.abort_commands.append(row.abort_command)
            if transaction.is_open or not self._only_open:
                yield row
        self.unreadable += found.unreadable
        if has_any:
            counts = (found.last_stable_offset, found.log_end_offset, len(found.open_transactions))
            self.stable_rows.append(StableRow(partition.topic, partition.partition, *counts))
