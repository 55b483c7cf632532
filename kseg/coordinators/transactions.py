"""Verdicts whether open transactions hang, by their coordinators' states, and findings that depend on them."""

import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, tzinfo
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import identity_of, pass_over
from kseg.cluster.joined_log import relist, whole_log
from kseg.cluster.metadata_copy import partition_count
from kseg.cluster.remote_tier import Owner, RecordedSegment, check_recorded, recorded_segments
from kseg.coordinators.home_partition import PartitionCount, internal_count, missing_text
from kseg.errors import OpenError, UsageError
from kseg.findings.findings import MARKER_MAY_BE_LOST, Finding, Findings, open_since, shown_findings
from kseg.formats.codes import MAXIMUM_TRANSACTION_MS, NO_TIMESTAMP
from kseg.formats.file_names import parse_partition_directory
from kseg.log.partition import METADATA_TOPIC, PartitionLog
from kseg.log.selection import PartitionChoice, Selection, own_name
from kseg.log.transactions import (
    TOPIC,
    CoordinatorTransaction,
    LogTail,
    PartitionTransactions,
    Transaction,
    coordinator_transactions,
    read_tail,
)
from kseg.system.shared_work import OnRead
from kseg.tiered.placed_tiers import placed_at
from kseg.times import duration_text, time_text
from kseg.verify.verify import VerificationPlan, Verified, verify_paths

if TYPE_CHECKING:
    from kseg.cluster.replicas import PartitionReplicas


class Verdict(NamedTuple):
    """The verdict on an open transaction: `is_hanging` is None if unknown; the reason, in words.

    coordinator: the state of its transactional id; None if none is known. is_certain: the coordinators' state decided,
    not only the age. is_coordinated: the coordinator has it in this partition, and must end it.
    """

    is_hanging: bool | None
    reason: str
    coordinator: CoordinatorTransaction | None = None
    is_certain: bool = True
    is_coordinated: bool = False

    def sentence(self, zone: tzinfo = UTC) -> str:
        """Return the reason and, if the coordinator knows the transaction, the time when it will end."""
        ends = end_text(self.coordinator, zone) if self.coordinator is not None and self.is_coordinated else None
        return self.reason if ends is None else f"{self.reason}; ends {ends}"


def end_text(coordinator: CoordinatorTransaction, zone: tzinfo = UTC) -> str | None:
    """Return how and when an abandoned transaction ends, or None if its timeout doesn't end it."""
    ends_ms = coordinator.timeout_timestamp
    if ends_ms is None:
        return None
    return f"at {time_text(ends_ms, zone)}, when its timeout of {duration_text(coordinator.timeout_ms)} expires"


def abort_command(opened: Transaction, bootstrap_server: str, *, by_offset: bool) -> str | None:
    """Return the command that aborts an open transaction, or None if its topic or first offset is unknown.

    by_offset: all brokers are of 3.0 or later. All brokers take the other form, with coordinator epoch 0 without an
    earlier marker. Source: TransactionsCommand.AbortTransactionCommand.
    """
    if opened.topic is None or opened.partition is None or opened.first_offset is None:
        return None
    line = _tool_line("abort", bootstrap_server, opened.topic, opened.partition)
    if by_offset:
        return f"{line} --start-offset {opened.first_offset}"
    return (
        f"{line} --producer-id {opened.producer_id} --producer-epoch {opened.producer_epoch}"
        f" --coordinator-epoch {max(opened.coordinator_epoch or 0, 0)}"
    )


def find_start_command(topic: str, partition: int, bootstrap_server: str) -> str:
    """Return the command that prints the first offsets of a partition's open transactions: the abort needs them."""
    return _tool_line("describe-producers", bootstrap_server, topic, partition)


def _tool_line(command: str, bootstrap_server: str, topic: str, partition: int) -> str:
    server = shlex.quote(bootstrap_server)
    return f"kafka-transactions.sh --bootstrap-server {server} {command} --topic {topic} --partition {partition}"


class Coordinators:
    """The partitions of `__transaction_state` in the given log directories; read when needed.

    partitions: one replica of each. count: the topic's number of partitions. clock_ms: the newest time in them, by the
    brokers' clocks, -1 if there is none.

    Source: TransactionsCommand.FindHangingTransactionsCommand.
    """

    def __init__(self, log_dirs: Iterable[Path]) -> None:
        """Take the log directories of a cluster's brokers; an unlistable one holds nothing."""
        self._log_dirs = sorted({path.resolve() for path in log_dirs})
        self._sizes: tuple[object, ...] | None = None
        self._by_producer: dict[int, CoordinatorTransaction] = {}
        self._unread: dict[int | None, str] = {}
        self._cut: list[str] = []
        self.clock_ms = NO_TIMESTAMP
        self.partitions: list[PartitionLog] = []
        self.count = PartitionCount(0)

    @property
    def is_whole(self) -> bool:
        """True if all partitions are completely here, as far as metadata or transactional ids show."""
        return 0 < self.count.number <= len(self.partitions) and not self._problems()

    def _problems(self) -> list[str]:
        return [*self._cut, *self._unread.values()]

    @property
    def were_read(self) -> bool:
        """True if everything found here was read once."""
        return self._sizes is not None

    @cached_property
    def are_kraft(self) -> bool:
        """True if the brokers are without ZooKeeper, hence of 3.0 or later, by their log directories."""
        return any(
            (path / f"{METADATA_TOPIC}-0").is_dir() or identity_of(path).version == "1" for path in self._log_dirs
        )

    def missing_text(self) -> str | None:
        """Return the number of partitions found, if some are missing."""
        self.read()
        return missing_text(TOPIC, len(self.partitions), self.count) if self.partitions else None

    def read(self) -> None:
        """Read the partitions, unless that was done and nothing has changed since.

        Raises OpenError if a log can't be opened; nothing was read then.
        """
        known, self._sizes = self._sizes, None
        try:
            self.partitions = list(map(whole_log, self._cluster.topic(TOPIC)))
        except UsageError as error:  # directories of several clusters: a transactional id may be in each
            self.partitions, self._unread = [], {None: error.message}
        sizes = tuple((place.path, place.size) for place in self.partitions)
        if sizes and sizes != known:
            self._read_records()
        self._sizes = sizes

    def _read_records(self) -> None:
        self._by_producer, self._unread = {}, {}
        self.clock_ms = NO_TIMESTAMP
        self._cut = [problem for place in self.partitions if (problem := _first_offset_problem(place))]
        ids: list[tuple[str, int | None]] = []
        for place in self.partitions:
            view = coordinator_transactions(place)
            if view.unreadable:
                self._unread[place.partition] = view.unreadable[0].line()
            self.clock_ms = max(self.clock_ms, view.last_timestamp)
            self._by_producer |= {known.producer_id: known for known in view.transactions}
            ids += ((known.transactional_id, known.coordinator_partition) for known in view.transactions)
        told = self._told_count()
        self.count = PartitionCount(told) if told else internal_count(self.partitions, ids)

    @cached_property
    def _cluster(self) -> Cluster:
        return Cluster(self._log_dirs, pass_over, levels=0)

    def _told_count(self) -> int | None:
        with suppress(UsageError):  # metadata of several clusters
            return partition_count(self._cluster.own_metadata, TOPIC, [place.partition for place in self.partitions])
        return None

    def verdict(self, opened: Transaction, now_ms: int | None, timeout_ms: int = MAXIMUM_TRANSACTION_MS) -> Verdict:
        """Return the verdict on a transaction that is open in a partition, by the last reading.

        With a time, a transaction hangs only if its last record is older than any transaction may last, like in
        Kafka's tool; without coordinators that age alone decides. If records of the coordinator's own partition can't
        be read, the newest state may be among them.
        """
        is_old = None if now_ms is None else opened.is_older_than(now_ms, timeout_ms)
        coordinator = self._by_producer.get(opened.producer_id)
        if coordinator is not None and coordinator.coordinator_partition in self._unread:
            unread = self._unread[coordinator.coordinator_partition]
            return _verdict_by_age(unread, is_old, timeout_ms, coordinator)
        if coordinator is not None and (opened.topic, opened.partition) in coordinator.partitions:
            reason = f"{coordinator.state} as {coordinator.transactional_id}"
            return Verdict(False, reason, coordinator, is_coordinated=True)
        if coordinator is None and not self.is_whole:
            return _verdict_by_age(self._why_unknown(), is_old, timeout_ms)
        if coordinator is None:
            reason = f"no transactional id has producer id {opened.producer_id}"
        else:
            reason = f"{coordinator.transactional_id} is {coordinator.state}, without this partition"
        if is_old is False:
            return Verdict(False, f"{reason}; {_young_text(timeout_ms)}", coordinator)
        return Verdict(True, reason, coordinator)

    def _why_unknown(self) -> str:
        if not self.partitions:
            return f"{TOPIC} isn't here"
        if problems := self._problems():
            return problems[0]
        return f"only {missing_text(TOPIC, len(self.partitions), self.count)}"


def _verdict_by_age(
    reason: str, is_old: bool | None, timeout_ms: int, coordinator: CoordinatorTransaction | None = None
) -> Verdict:
    """Return the verdict without coordinators: by the age alone, if there is a current time."""
    age = None if is_old is None else _old_text(timeout_ms) if is_old else _young_text(timeout_ms)
    return Verdict(is_old, reason if age is None else f"{reason}; {age}", coordinator, is_certain=False)


def _young_text(timeout_ms: int) -> str:
    return f"its last record is not older than {duration_text(timeout_ms)}"


def _old_text(timeout_ms: int) -> str:
    return f"its last record is older than {duration_text(timeout_ms)}, the longest that a transaction may take"


def _first_offset_problem(place: PartitionLog) -> str | None:
    """Return the problem of the first offset of a log: a log that is only compacted begins at 0 forever.

    One that doesn't has lost transactional ids.
    """
    first = place.base_offsets[0] if place.base_offsets else None
    return None if first == 0 else f"{place.directory_name} is here only from offset {first} on"


class Judge:
    """A judge of partitions' open transactions, also while brokers go on writing to them."""

    def __init__(
        self, coordinators: Coordinators, now_ms: int | None, timeout_ms: int = MAXIMUM_TRANSACTION_MS
    ) -> None:
        """Take the coordinators, the current time, and the longest time allowed.

        Without a time (None), it is the newest that brokers wrote into the coordinators' partitions or the partition
        itself. That may be earlier than their disks were read or copied, never later.
        """
        self._coordinators = coordinators
        self._now_ms = now_ms
        self._timeout_ms = timeout_ms

    def verdicts(self, partition: PartitionLog, opened: Iterable[Transaction]) -> dict[Transaction, Verdict]:
        """Return the verdict on each open transaction of a partition.

        A coordinator records a beginning before a partition has it, and an end after. So a transaction hangs under
        three conditions. The coordinators, read after the partition, don't know it, and it is still open when the
        partition is read once more; no damage is where its marker may have been; and it is old. Raises OpenError if a
        coordinator's log can't be opened.
        """
        found = list(opened)
        if not found:
            return {}
        verdicts = self._first_verdicts(found)
        doubted = [each for each, verdict in verdicts.items() if verdict.is_hanging]
        if doubted:
            again = _read_again(partition, min(each.first_offset or 0 for each in doubted))
            verdicts |= {each: self._second_verdict(each, verdicts[each], again) for each in doubted}
        return verdicts

    def _first_verdicts(self, opened: Iterable[Transaction]) -> dict[Transaction, Verdict]:
        """Return verdicts by the coordinators' earlier reading, if it clears all: they are read again only in doubt."""
        if self._coordinators.were_read:
            verdicts = {each: self._verdict(each) for each in opened}
            if all(verdict.is_hanging is False for verdict in verdicts.values()):
                return verdicts
        self._coordinators.read()
        return {each: self._verdict(each) for each in opened}

    def _second_verdict(self, opened: Transaction, first: Verdict, again: "_SecondReading | None") -> Verdict:
        if again is None:
            return Verdict(None, "the log changed while kseg was reading it", first.coordinator, is_certain=False)
        if (opened.producer_id, opened.first_offset) not in again.opened:
            return Verdict(False, "it ended while kseg was reading", first.coordinator)
        if (opened.first_offset or 0) < again.tail.damage_offset:
            return Verdict(None, MARKER_MAY_BE_LOST, first.coordinator, is_certain=False)
        newest = max(again.tail.clock_ms, self._coordinators.clock_ms)
        if self._now_ms is not None or opened.is_older_than(newest, self._timeout_ms):
            return first
        reason = f"{first.reason}; {_young_text(self._timeout_ms)} by the latest time here"
        return Verdict(None, reason, first.coordinator, is_certain=False)

    def _verdict(self, opened: Transaction) -> Verdict:
        return self._coordinators.verdict(opened, self._now_ms, self._timeout_ms)


class _SecondReading(NamedTuple):
    """The current state of a partition: active producers, open transactions and the last segments."""

    opened: set[tuple[int, int | None]]
    tail: LogTail


def _read_again(partition: PartitionLog, from_offset: int) -> _SecondReading | None:
    """Read a partition again, or None if a file was deleted meanwhile: by retention, or by a move to another disk."""
    try:
        again = PartitionTransactions(partition.relist())
        for _ in again.transactions():
            pass
        tail = read_tail(again.partition, from_offset)
    except OpenError:
        return None
    return _SecondReading({(each.producer_id, each.first_offset) for each in again.open_transactions}, tail)


OPEN, LONG, HANGING = "open-transaction", "long-transaction", "hanging-transaction"
TO_BE_JUDGED = (OPEN, LONG)


class FindingsJudge:
    """A judge of partitions' findings, which adds to open transactions whether they hang, and the reason."""

    def __init__(self, plan: VerificationPlan, now_ms: int | None = None) -> None:
        """Take the verification's plan, and the current time like Judge.

        The coordinators are those in the plan's log directories.
        """
        self._now_ms = now_ms
        self._cluster = Cluster.join((plan.cluster,))
        self._replicas: dict[str, dict[str, PartitionReplicas[PartitionLog]]] = {}
        self._log_dirs = dict.fromkeys(plan.cluster.metadata_dirs())
        self._judges: dict[tuple[Path, ...], Judge] = {}
        self._recorded: dict[tuple[Path, ...], dict[tuple[Owner, str], RecordedSegment]] = {}

    def judge(self, verified: Verified) -> Verified:
        """Return the findings with verdicts; of many similar ones, only the printed ones.

        Transactions that ended where their markers are lost, or in the copy that answers, are omitted, like in `txns`.
        Findings in parts that can't be read again stay. A remote tier's segments are compared with their records.
        """
        verified = self._with_recorded(verified)
        if not any(finding.id in TO_BE_JUDGED for finding in verified.findings):
            return verified
        try:
            verdicts = self._verdicts(verified.path)
        except OpenError:
            return verified
        judged = tuple(_add_verdicts(verified.findings, verdicts))
        return replace(verified, findings=tuple(shown_findings(judged)))

    def _recorded_of(self, path: Path) -> dict[tuple[Owner, str], RecordedSegment]:
        log_dirs = self._dirs_of(path)
        if log_dirs not in self._recorded:
            self._recorded[log_dirs] = recorded_segments(log_dirs)
        return self._recorded[log_dirs]

    def _with_recorded(self, verified: Verified) -> Verified:
        placed = placed_at(verified.path)
        if placed is None:
            return verified
        findings = Findings()
        check_recorded(placed, self._recorded_of(verified.path), findings)
        return replace(verified, findings=(*verified.findings, *findings.all(is_compacted=False)))

    def _verdicts(self, path: Path) -> dict[int, tuple[int | None, Verdict]]:
        """Return the first offset of each producer's open transaction by the walk, and the verdict."""
        found = PartitionTransactions(self._log_of(path))
        for _ in found.transactions():
            pass
        verdicts = self._judge_of(path).verdicts(found.partition, found.open_transactions)
        return {opened.producer_id: (opened.first_offset, verdict) for opened, verdict in verdicts.items()}

    def _judge_of(self, path: Path) -> Judge:
        """Return the judge with the coordinators of a directory's cluster."""
        log_dirs = self._dirs_of(path)
        if log_dirs not in self._judges:
            self._judges[log_dirs] = Judge(Coordinators(log_dirs), self._now_ms)
        return self._judges[log_dirs]

    def _dirs_of(self, path: Path) -> tuple[Path, ...]:
        """Return the log directories of a directory's cluster."""
        cluster_of = self._cluster.cluster_of
        own = cluster_of(path.absolute().parent)
        return tuple(each for each in self._log_dirs if cluster_of(each) == own)

    def _log_of(self, path: Path) -> PartitionLog:
        """Return the log that answers for a partition, if the directory is one of its copies.

        Else the directory's own.
        """
        name = parse_partition_directory(own_name(path))
        if name is None:
            return PartitionLog(path)
        topic = name.topic
        if topic not in self._replicas:
            replicas = self._cluster.partitions_of_all(PartitionChoice((topic,)))
            self._replicas[topic] = {os.path.realpath(place.path): each for each in replicas for place in each.places}
        own = self._replicas[topic].get(os.path.realpath(path))
        return PartitionLog(path) if own is None else whole_log(relist(own))


def judged_findings(
    plan: VerificationPlan,
    selection: Selection,
    *,
    keep_cache: bool = False,
    processes: int | None = None,
    on_read: OnRead | None = None,
) -> Iterator[Verified]:
    """Yield the findings of each partition and log directory, with verdicts; arguments are as for `verify_paths`."""
    read = verify_paths(plan, selection, keep_cache=keep_cache, processes=processes, on_read=on_read)
    return map(FindingsJudge(plan).judge, read)


def _add_verdicts(findings: Iterable[Finding], verdicts: dict[int, tuple[int | None, Verdict]]) -> Iterable[Finding]:
    for finding in findings:
        if finding.id not in TO_BE_JUDGED:
            yield finding
            continue
        if finding.producer_id not in verdicts:
            continue
        first_offset, verdict = verdicts[finding.producer_id]
        sentence = finding.sentence.replace(open_since(finding.first_offset), open_since(first_offset), 1)
        if not sentence.endswith(verdict.reason):
            sentence = f"{sentence}; {verdict.sentence()}"
        yield replace(finding, id=_id_of(finding, verdict), sentence=sentence, first_offset=first_offset)


def _id_of(finding: Finding, verdict: Verdict) -> str:
    """Return the finding's id; without coordinators, the age alone counts."""
    if verdict.is_hanging is None or not verdict.is_certain:
        return finding.id
    return HANGING if verdict.is_hanging else OPEN
