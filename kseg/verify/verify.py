"""Verification of partitions: every check in one pass over the logs, or quickly without reading them."""

import os
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kseg import kernel
from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import (
    LOST_AND_FOUND,
    FoundAt,
    LogDir,
    Refuse,
    is_of_log_dir,
    is_of_partition,
)
from kseg.errors import FileError, KsegError, OpenError, UnreadableError, plural
from kseg.findings.findings import Finding, Findings
from kseg.findings.kinds import id_of_damage
from kseg.index.entries import OffsetIndex, TimeIndex, TransactionIndex
from kseg.index.producers import KnownProducers, snapshot_problem
from kseg.kernel.contract import MOST
from kseg.kernel.fold_contract import HeaderFold
from kseg.log.lineage import unsorted_epochs
from kseg.log.partition import LEADER_EPOCH_CHECKPOINT, METADATA_TOPIC, OFFSETS_TOPIC, Checkpoints, PartitionLog
from kseg.log.segments import SegmentFiles, read_tail
from kseg.log.selection import EVERY_PARTITION, EVERYTHING, PartitionChoice, Selection
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice
from kseg.system.shared_work import SMALLEST_COST, OnRead, shared_work
from kseg.verify.batches import JUDGED, CheckedBatch, SelectedScope, eventful_batches
from kseg.verify.causes import without_consequences
from kseg.verify.directory_checks import (
    check_checkpoints,
    check_directory,
    check_end,
    check_leader_epochs,
    check_tier,
    without_misnamed_snapshot,
)
from kseg.verify.disk_checks import KRAFT_VERSION, check_against_metadata, check_disks, check_emptied, check_log_dir
from kseg.verify.foreign_files import with_likeness
from kseg.verify.index_checks import (
    ActiveIndexCheck,
    IndexCheck,
    OffsetIndexCheck,
    TimeIndexCheck,
    check_index_file,
    check_missing_indexes,
    unreadable_index,
)
from kseg.verify.log_checks import LogChecks, ProducerChecks
from kseg.verify.start_effects import StartEffect, effects_on_node, effects_on_partition
from kseg.verify.start_judgement import judged_at_start
from kseg.verify.stops import Stop, stop_of


class Order(NamedTuple):
    """A partition to verify; its log directory's checkpoints, None to read them. size: bytes of its logs.

    Its directory is listed again at its turn: a broker may have written meanwhile.
    """

    path: Path
    checkpoints: Checkpoints | None
    size: int


class PassedOver(NamedTuple):
    """The entries of a directory that aren't verified. Directory names end with a slash."""

    directory: Path
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VerificationPlan:
    """The log directories and partitions to verify.

    largest_metadata: bytes up to which the cluster's metadata are compared with the disks; None: of any size.
    """

    cluster: Cluster
    orders: tuple[Order, ...]
    passed_over: tuple[PassedOver, ...] = ()
    choice: PartitionChoice = EVERY_PARTITION
    largest_metadata: int | None = None

    @property
    def log_dirs(self) -> tuple[LogDir, ...]:
        """All log directories."""
        return self.cluster.log_dirs

    @property
    def chosen_log_dirs(self) -> list[LogDir]:
        """The log directories with any chosen partition."""
        return [each for each in self.log_dirs if any(map(self.choice.takes_directory, each.directories))]

    @property
    def size(self) -> int:
        """Bytes of all logs."""
        return sum(order.size for order in self.orders)


class NothingToVerifyError(OpenError):
    """Partitions' directories exist, but have no log, index or snapshot."""

    def __init__(self, path: Path) -> None:
        super().__init__("nothing to verify: found no log, index or snapshot", path)


def plan_verification(
    paths: Iterable[Path], refuse: Refuse | None = None, choice: PartitionChoice = EVERY_PARTITION
) -> VerificationPlan:
    """Return the plan for the given paths: partition directories or files in them, log directories, parents of these.

    `refuse`, `choice` and errors are as for `Cluster.directories`; also NothingToVerifyError if a path holds nothing.
    """
    planner = _Planner(Cluster(paths, refuse), refuse, choice)
    for found in planner.cluster.contents:
        try:
            planner.add(found)
        except OpenError as error:
            if refuse is None:
                raise
            refuse(error)
    planner.cluster.require(choice)
    return VerificationPlan(planner.cluster, tuple(planner.orders.values()), tuple(planner.passed_over), choice)


class _Planner:
    """The contents of paths to verify."""

    def __init__(self, cluster: Cluster, refuse: Refuse | None, choice: PartitionChoice) -> None:
        self.cluster = cluster
        self._refuse = refuse
        self._choice = choice
        self.orders: dict[str, Order] = {}
        self.passed_over: list[PassedOver] = []

    def add(self, found: FoundAt) -> None:
        """Add the contents of a path. Raises OpenError if it is empty or can't be listed."""
        here = found.here
        if found.is_partition and not self._choice.takes_directory(here):
            return
        if found.is_partition:
            partition = PartitionLog(here, names=found.names)
            self._pass_over(here, _foreign_files(partition) if found.path.is_dir() else [])
            if not partition.has_content:
                raise NothingToVerifyError(found.path)
            self.orders.setdefault(os.path.realpath(here), Order(here, None, partition.size))
            return
        taken = {path for each in found.log_dirs for path in (each.path, *each.directories)}
        taken |= {parent for each in found.log_dirs for parent in each.path.parents if here in parent.parents}
        own = [each for each in found.log_dirs if each in self.cluster.log_dirs]  # without those of an earlier path
        has_content = [has for log_dir in own for has in self._add_log_dir(log_dir, taken)]
        if here not in taken:
            self._pass_over(here, self._foreign_entries(found.walked[0], taken))
        is_everything = self._choice.is_everything and any(each.directories for each in own)
        if not any(has_content) and (has_content or is_everything):
            raise NothingToVerifyError(found.path)

    def _add_log_dir(self, log_dir: LogDir, taken: Container[Path]) -> list[bool]:
        """Add a log directory; return for each of its partitions whether it has files."""
        has_content, empty = [], []
        for partition in log_dir.partitions(self._refuse, self._choice):
            self.orders[os.path.realpath(partition.path)] = Order(
                partition.path, partition.checkpoints(), partition.size
            )
            has_content.append(partition.has_content)
            self._pass_over(partition.path, _foreign_files(partition))
            if not partition.has_content and partition.state is None:
                empty.append(f"{partition.path.name}/ (it contains no log files)")
        self._pass_over(log_dir.path, [*empty, *self._foreign_entries(log_dir, taken)])
        return has_content

    def _foreign_entries(self, directory: LogDir, taken: Container[Path]) -> Iterable[str]:
        """Return the other entries of a directory, or an empty list if only some partitions are chosen."""
        return _foreign_entries(directory, taken) if self._choice.is_everything else ()

    def _pass_over(self, directory: Path, names: Iterable[str]) -> None:
        if found := tuple(names):
            self.passed_over.append(PassedOver(directory, found))


def _foreign_files(partition: PartitionLog) -> list[str]:
    """Return the files of a partition directory that aren't read."""
    return sorted(file.name for file in partition.others if not is_of_partition(file.name))


def _foreign_entries(directory: LogDir, taken: Container[Path]) -> Iterator[str]:
    """Yield the entries of a directory besides partitions, log directories and a broker's own files, by name."""
    for name in sorted((*directory.names.files, *directory.names.directories)):
        path = directory.path / name
        if path in taken or is_of_log_dir(name) or (name == LOST_AND_FOUND and _is_empty(path)):
            continue
        yield f"{name}/" if name in directory.names.directories else name


def _is_empty(directory: Path) -> bool:
    """Return True if a directory shows no entries."""
    try:
        return not any(directory.iterdir())
    except OSError:
        return True


@dataclass(frozen=True, slots=True)
class Verified:
    """The findings in a partition or a log directory.

    path: its directory. problems: files that couldn't be opened; nothing is known of them. size: bytes of logs read.
    notes: untrusted indexes for a selection, and omissions, in words. effects: the findings' effects at a start.
    has_selected: with a selection, whether a record was selected.
    """

    path: Path
    findings: tuple[Finding, ...]
    problems: tuple[KsegError, ...] = ()
    size: int = 0
    notes: tuple[str, ...] = ()
    effects: tuple[StartEffect, ...] = ()
    has_selected: bool = True

    @property
    def is_well(self) -> bool:
        """True if there are only notes."""
        return not any(finding.counts for finding in self.findings)


OnSlice = Callable[[SegmentFiles, Slice], None]
"""Takes a segment, and batches of its log that were read."""


def verify_partition(
    partition: PartitionLog,
    *,
    keep_cache: bool = False,
    on_read: Callable[[int], None] | None = None,
    on_slice: OnSlice | None = None,
) -> Verified:
    """Return all findings in a partition.

    Args:
        partition: the partition.
        keep_cache: leave the read data in the page cache.
        on_read: takes the size of each log that was read.
        on_slice: takes the batches while they are read, for other uses.
    """
    findings = Findings()
    problems: list[KsegError] = []
    checks = _checks(partition, findings, findings)
    log, producers = checks.log, checks.producers
    check_directory(partition, findings)
    check_tier(partition, findings)
    for number, segment in enumerate(partition.segments):
        log.begin(number)
        producers.begin(segment)
        try:
            see = None if on_slice is None else partial(on_slice, segment)
            _check_segment(checks, segment, keep_cache=keep_cache, on_slice=see)
            check_end(partition, segment.base_offset, log.next_offset, findings)
        except OpenError as error:
            log.pass_over()
            producers.pass_over()
            if segment.path.exists():  # otherwise a broker deleted it meanwhile
                problems.append(UnreadableError(error.message, error.path, error.position))
        if on_read is not None:
            on_read(segment.size)
    checkpoint_end = _check_metadata(partition, findings)
    if partition.topic == OFFSETS_TOPIC and partition.state is None:
        from kseg.verify.group_checks import check_group_loading  # other topics don't need it

        check_group_loading(partition, findings)
    log.finish()
    producers.finish()
    check_leader_epochs(partition, log, findings)
    if partition.segments and not problems:
        check_checkpoints(partition, _end_of(partition, log), findings)
    found = without_misnamed_snapshot(partition, findings.all(is_compacted=log.is_compacted))
    found = without_consequences(partition, tuple(judged_at_start(partition, found)))
    if checkpoint_end:
        from kseg.verify.metadata_checks import without_superseded

        found = without_superseded(found, checkpoint_end)
    return _conclude(partition, found, problems, partition.size)


def _check_metadata(partition: PartitionLog, findings: Findings) -> int:
    """Check the files that a controller reads at start.

    Return the newest checkpoint's end offset, 0 if it is unusable.
    """
    if partition.topic != METADATA_TOPIC and not partition.metadata_snapshots:
        return 0
    from kseg.verify.metadata_checks import check_metadata_checkpoints, check_quorum  # other topics don't need it

    if partition.topic == METADATA_TOPIC:
        check_quorum(partition, findings)
    return check_metadata_checkpoints(partition, findings)


def _end_of(partition: PartitionLog, log: LogChecks) -> int | None:
    """Return the end of the log: an empty last segment begins there, whatever came before it."""
    last = partition.active_segment
    return last.base_offset if last is not None and last.size == 0 else log.next_offset


def verify_selected(partition: PartitionLog, selection: Selection, *, keep_cache: bool = False) -> Verified:
    """Return a partition's findings about a selection: see `SelectedScope`.

    Reads only segments that may hold it. Skips checks of the complete partition: sequences and transactions of
    producers, their snapshots, checkpoints, the directory itself. Raises OpenError if a log can't be opened.
    """
    notes: dict[str, None] = {}
    scope = SelectedScope(partition, selection, notes.setdefault)
    findings = Findings()
    checks = _checks(partition, findings, Findings())
    log, producers = checks.log, checks.producers
    producers.pass_over()
    size = 0
    for number, segment in enumerate(partition.segments):
        if not scope.takes(segment):
            log.pass_over()
            continue
        log.begin(number)
        producers.begin(segment)
        _check_segment(checks, segment, keep_cache=keep_cache)
        size += segment.size
    judged_findings = judged_at_start(partition, findings.all(is_compacted=log.is_compacted))
    found = (finding for finding in judged_findings if scope.covers(finding))
    return Verified(partition.path, tuple(found), (), size, tuple(notes), has_selected=scope.has_records)


class _PartitionChecks(NamedTuple):
    """The checks of the batches of a partition, which share a fold over them, and the findings in its segments."""

    partition: PartitionLog
    log: LogChecks
    producers: ProducerChecks
    findings: Findings


def _checks(partition: PartitionLog, findings: Findings, findings_of_producers: Findings) -> _PartitionChecks:
    known = KnownProducers(partition.base_offsets[0] if partition.base_offsets else 0, partition.log_start_offset())
    fold = kernel.load().HeaderFold(JUDGED, known.states.producers.table)
    producers = ProducerChecks(partition, fold, known, findings_of_producers)
    return _PartitionChecks(partition, LogChecks(partition, fold, findings), producers, findings)


class _SegmentChecks:
    """All checks of the batches of a segment; the fold passes batches that no check judges."""

    def __init__(self, log: LogChecks, producers: ProducerChecks, indexes: list[IndexCheck]) -> None:
        self._log, self._producers, self._indexes = log, producers, indexes

    def watch(self, fold: HeaderFold) -> None:
        """Set the fold's stops, and the offset and position from which every batch is checked."""
        fold.watched = self._producers.watched & ~self._log.unneeded
        offsets = (self._log.offset_bound, self._producers.offset_bound, *(each.offset_bound for each in self._indexes))
        fold.offset_bound = min(offsets)
        fold.position_bound = min((each.position_bound for each in self._indexes), default=MOST)

    def notice_passed(self) -> None:
        """Note the batches that the fold has passed."""
        self._log.notice_passed()
        self._producers.notice_passed()

    def take(self, batch: CheckedBatch) -> None:
        self._log.take(batch)
        self._producers.take(batch)
        for index in self._indexes:
            index.take(batch)
        self._log.pass_batch(batch)

    def take_damage(self, damage: Damage) -> None:
        """Take an unreadable stretch of the log."""
        self._log.take_damage(damage)
        self._producers.take_damage(damage)
        for index in self._indexes:
            index.take_damage(damage)
        if self._log.is_damaged:
            self._producers.forget()

    def finish(self) -> None:
        """Report problems known only at the segment's end."""
        for index in self._indexes:
            index.finish()


def _check_segment(
    of_partition: _PartitionChecks,
    segment: SegmentFiles,
    *,
    keep_cache: bool,
    on_slice: Callable[[Slice], None] | None = None,
) -> None:
    partition, log, producers, findings = of_partition
    is_closed = not partition.is_last(segment) or stop_of(partition) is Stop.CLEAN
    with ExitStack() as stack:
        # Indexes first: a live broker writes the log before them.
        indexes = _index_checks(partition, segment, log.fold, findings, stack, is_closed=is_closed)
        log_file = stack.enter_context(segment.open_log(keep_cache=keep_cache))
        checks = _SegmentChecks(log, producers, indexes)
        for item in eventful_batches(log_file, log.fold, checks, on_slice):
            if isinstance(item, Damage):
                checks.take_damage(item)
            else:
                checks.take(item)
        checks.finish()
    producers.end(segment, log_file.size)


def _index_checks(
    partition: PartitionLog,
    segment: SegmentFiles,
    fold: HeaderFold,
    findings: Findings,
    stack: ExitStack,
    *,
    is_closed: bool,
) -> list[IndexCheck]:
    """Return the comparisons for the reading of a segment, after a check of its indexes as files."""
    checks: list[IndexCheck] = []
    fold.offset_entries = fold.time_entries = None
    fold.last_offset, fold.end, fold.largest_size = -1, 0, 0
    base = segment.base_offset
    path = segment.path
    is_missing = segment.offset_index is None and partition.has_indexes
    check_missing_indexes(path.with_suffix(".index"), is_missing=is_missing, size=segment.size, findings=findings)
    is_missing = segment.time_index is None and partition.has_time_indexes
    check_missing_indexes(path.with_suffix(".timeindex"), is_missing=is_missing, size=segment.size, findings=findings)
    if segment.offset_index is not None:
        with unreadable_index(segment.offset_index.path, findings):
            index = stack.enter_context(OffsetIndex(segment.offset_index.path, base))
            check_index_file(index.file, index.count, findings, is_closed=is_closed)
            if is_closed or index.count == index.capacity:
                checks.append(OffsetIndexCheck(index, fold, findings))
            else:
                found = Findings()
                checks.append(ActiveIndexCheck(OffsetIndexCheck(index, fold, found), found, findings))
    if segment.time_index is not None:
        with unreadable_index(segment.time_index.path, findings):
            times = stack.enter_context(TimeIndex(segment.time_index.path, base))
            check_index_file(times.file, times.count, findings, is_closed=is_closed)
            if is_closed or times.count == times.capacity:
                checks.append(TimeIndexCheck(times, fold, findings, is_closed=is_closed))
            else:
                found = Findings()
                checks.append(ActiveIndexCheck(TimeIndexCheck(times, fold, found, is_closed=False), found, findings))
    if segment.transaction_index is not None:
        with (
            unreadable_index(segment.transaction_index.path, findings),
            TransactionIndex(segment.transaction_index.path, base) as transactions,
        ):
            check_index_file(transactions.file, transactions.count, findings, is_closed=is_closed)
    return checks


# --- several partitions -----------------------------------------------------------------------------------------------


def verify_paths(
    plan: VerificationPlan,
    selection: Selection = EVERYTHING,
    *,
    keep_cache: bool = False,
    processes: int | None = None,
    on_read: OnRead | None = None,
) -> Iterator[Verified]:
    """Yield the findings of all partitions and log directories in order.

    Args:
        plan: the partitions and directories to verify.
        selection: only these records' batches; with a selection, log directories themselves aren't checked.
        keep_cache: leave the read data in the page cache.
        processes: the number of worker processes; None: one per processor if there is enough to read.
        on_read: called with the bytes of logs read since the last call.
    """
    if selection.is_everything:
        yield from verify_log_dirs(plan)
    work = partial(_verify, selection, keep_cache)
    is_far = plan.cluster.is_far
    with shared_work(work, plan.orders, _cost_of, processes=processes, on_read=on_read, is_far=is_far) as results:
        for _, verified in results:
            yield verified


def verify_log_dirs(plan: VerificationPlan) -> Iterator[Verified]:
    """Yield the findings in log directories, including partitions that are in two of them."""
    is_of_kraft = any(each.identity.version == KRAFT_VERSION for each in plan.log_dirs)
    for number, log_dir in enumerate(plan.chosen_log_dirs):
        findings = Findings()
        if number == 0:
            check_disks(plan.cluster, findings, plan.choice)
            check_against_metadata(plan.cluster, findings, plan.choice, plan.largest_metadata)
        check_log_dir(log_dir, findings, is_of_kraft=is_of_kraft)
        check_emptied(log_dir, findings, plan.choice)
        found = tuple(with_likeness(findings.all(is_compacted=False)))
        yield Verified(log_dir.path, found, effects=tuple(effects_on_node(found)))


def _cost_of(order: Order) -> int:
    return order.size + SMALLEST_COST


def _verify(selection: Selection, keep_cache: bool, order: Order, on_read: OnRead) -> Iterator[Verified]:
    try:
        partition = PartitionLog(order.path, order.checkpoints)
        if selection.is_everything:
            yield verify_partition(partition, keep_cache=keep_cache, on_read=on_read)
            return
        verified = verify_selected(partition, selection, keep_cache=keep_cache)
    except OpenError as error:
        yield Verified(order.path, (), (UnreadableError(error.message, error.path),), order.size)
        return
    on_read(verified.size)
    yield verified


def verify_quickly(partition: PartitionLog, *, keep_cache: bool = False) -> Verified:
    """Return the findings that need no complete log: of the directory, its small files, and ends of segments.

    `size` is 0. `keep_cache`: leave the read data in the page cache.
    """
    findings = Findings()
    problems: list[KsegError] = []
    check_directory(partition, findings)
    if partition.topic == METADATA_TOPIC:
        from kseg.verify.metadata_checks import check_quorum

        check_quorum(partition, findings)
    end: int | None = None
    for segment in partition.segments:
        _check_missing(partition, segment, findings)
        try:
            end = _check_end(partition, segment, findings, keep_cache=keep_cache)
        except OpenError as error:
            if segment.path.exists():  # otherwise a broker deleted it meanwhile
                problems.append(UnreadableError(error.message, error.path, error.position))
    _check_epochs(partition, findings)
    for file in partition.snapshots.values():
        problem = snapshot_problem(file.path)
        if problem is not None and file.path.exists():
            findings.add("snapshot-unreadable", file.path, problem)
    if end is not None and not problems:
        check_checkpoints(partition, end, findings)
    return _conclude(partition, judged_at_start(partition, findings.all(is_compacted=False)), problems, 0)


def _conclude(partition: PartitionLog, found: Iterable[Finding], problems: Sequence[KsegError], size: int) -> Verified:
    findings = tuple(with_likeness(found))
    effects = tuple(effects_on_partition(partition, findings))
    return Verified(partition.path, findings, tuple(problems), size, effects=effects)


def _check_missing(partition: PartitionLog, segment: SegmentFiles, findings: Findings) -> None:
    for suffix, found, is_wanted in (
        (".index", segment.offset_index, partition.has_indexes),
        (".timeindex", segment.time_index, partition.has_time_indexes),
    ):
        path = segment.path.with_suffix(suffix)
        check_missing_indexes(path, is_missing=found is None and is_wanted, size=segment.size, findings=findings)


def _check_end(partition: PartitionLog, segment: SegmentFiles, findings: Findings, *, keep_cache: bool) -> int | None:
    """Report the damage at a segment's end; return the offset after its last batch, or its base offset without one."""
    tail = read_tail(segment, keep_cache=keep_cache)
    if tail.damage is not None:
        finding_id = id_of_damage(tail.damage.kind, is_last=partition.is_last(segment))
        sentence = f"{tail.damage.detail}, {plural(tail.damage.size, 'byte')}"
        findings.add(finding_id, segment.path, sentence, position=tail.damage.position)
    return segment.base_offset if tail.last is None else tail.last.last_offset + 1


def _check_epochs(partition: PartitionLog, findings: Findings) -> None:
    path = partition.path / LEADER_EPOCH_CHECKPOINT
    try:
        wrong = unsorted_epochs(partition.read_leader_epochs() or ())
    except FileError as error:
        findings.add("unreadable-text", path, error.message)
        return
    if wrong is not None:
        findings.add("leader-epoch-unsorted", path, wrong[1], offsets=(wrong[0], None))
