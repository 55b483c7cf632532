"""`kseg txns`: transactions of partitions and of their coordinators."""

from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.now import settle_now
from kseg.cluster.taken import taken_of
from kseg.commands.options.command import RowOptions, command
from kseg.errors import plural
from kseg.log.selection import PartitionChoice
from kseg.output.forms import RowWriter
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout, write_line
from kseg.text.retention import total_object
from kseg.text.transactions import (
    CLUES,
    COORDINATOR_TRANSACTIONS,
    STABLE_OFFSETS,
    TRANSACTIONS,
    TransactionRows,
    nothing_open_text,
    worst_first,
)
from kseg.times import parse_zone, time_or_none


class TxnsOptions(NamedTuple):
    """The shown transactions, the evidence for hanging ones, and the cluster that aborts them."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    only_open: bool
    explain: str | None
    now: str | None
    zone: str
    transaction_max_timeout_ms: int
    bootstrap_server: str
    talk: Talk
    verbose: bool
    rows: RowOptions


@command(TxnsOptions)
def txns(options: TxnsOptions) -> None:
    """Show transactions, and find hanging ones.

    Use `txns` to find transactions that hold back consumers. It lists open, committed and aborted transactions with
    their offsets and durations, and prints commands that end hanging ones. It changes nothing.

    \b
    Examples:
      kseg txns orders-0/
      kseg txns disk1/ disk2/ --explain 7@204950
      kseg txns disk1/ disk2/ --open --now now --bootstrap-server kafka:9092
      kseg txns __transaction_state-7/ -o json | jq 'select(.isOpen)'

    PATHS are partition directories, log directories (such as all disks of a broker), or parents of these; by default
    the current directory. From __transaction_state, `txns` shows the latest state of each transactional id. Hanging and
    overdue transactions come first, then open ones, and ended ones last. If more than 100,000 have ended, kseg
    prints each 100,000 of them before the others, to save memory.

    An open transaction holds back the last stable offset (LSO). It is overdue if it is open for longer than its
    producer allowed. It hangs if no coordinator will end it: __transaction_state in the same log directories doesn't
    have it, as for `kafka-transactions.sh find-hanging`. Without that topic and with --now, it hangs if its last record
    is older than --transaction-max-timeout-ms. Others end when their coordinator's timeout has passed (ENDS).

    For hanging and overdue transactions, `txns` prints the reason and the command that aborts them; with --open, also
    commands for the others. The exit status is 1 if a transaction hangs or is overdue.

    BEGAN is the coordinator's time, PRODUCED the producer's time of the first batch. COORDINATOR PARTITION and STATE
    RECORD are the partition and offset in __transaction_state, COORDINATOR EPOCH is the epoch in the marker. The output
    has the LSO of partitions that a transaction holds back; with -v and in JSON, of all.

    Ages are relative to --now. If disks were copied one after another, specify the time when the first copy started.

    --explain prints the batches of a transaction, its marker, the entries of the transaction index, of producer
    snapshots and of its coordinator, and damage that may hide its marker; then its outcome, and how this is known.
    ID@OFFSET is the transaction at an offset, such as 7@204950.
    """
    paths, choice, rows, talk = options.paths, options.choice, options.rows, options.talk
    zone = parse_zone(options.zone)
    cluster = Cluster(paths, talk.refuse)
    found = cluster.partitions()
    given_ms = time_or_none(options.now, zone)
    now = settle_now(given_ms, cluster)
    reading = TransactionRows(
        found,
        given_ms,
        options.transaction_max_timeout_ms,
        options.bootstrap_server,
        only_open=options.only_open,
        log_dirs=cluster.metadata_dirs(),
    )
    reading.age_ms, reading.zone = now.ms, zone
    coordinators, others = reading.split(choice)
    cluster.require(choice)
    writer = RowWriter(rows.form(zone))
    if options.explain is not None:
        writer.write(CLUES, reading.clues(others, options.explain))
        coordinators, others = [], []
    if coordinators and (not writer.form.has_one_kind or not others):
        writer.write(COORDINATOR_TRANSACTIONS, worst_first(reading.coordinator_rows(coordinators)))
    if others:
        writer.write(TRANSACTIONS, worst_first(reading.rows(others)))
    is_empty = not writer.count
    if not writer.form.has_one_kind and options.explain is None:
        shows_all = options.verbose or not writer.form.is_for_people
        writer.write(STABLE_OFFSETS, [row for row in reading.stable_rows if row.open_transactions or shows_all])
    if writer.form.has_objects and options.explain is None and not talk.is_quiet:
        writer.form.write_object(total_object(writer.count, now, zone))
    for line in reading.abort_lines() if writer.form.is_for_people else ():
        write_line(line)
    flush_stdout()
    taken = taken_of(each for each in found if choice.takes(each.topic, each.partition))
    told = taken.sentences(verbose=options.verbose)
    ages = now.sentences() if reading.has_ages else ()
    talk.note(*told, *ages, *reading.notes(is_partial=bool(others and coordinators)))
    if options.only_open and is_empty and options.explain is None:
        talk.note(nothing_open_text(len(others), len(coordinators), reading.transactional_ids))
    elif found and is_empty:
        searched = plural(len(coordinators) + len(others), "partition")
        talk.note(f"no transactions in {searched}")
    talk.end_with(reading.found_bad or bool(reading.unreadable))
