"""What names, sizes, small files and the ends of logs tell of a partition: the checks that read no log as a whole."""

from kseg.errors import KsegError, OpenError, UnreadableError
from kseg.findings.finding_kinds import id_of_damage
from kseg.findings.findings import Findings
from kseg.index.producer_snapshot import snapshot_problem
from kseg.log.partition.partition_log import LEADER_EPOCH_CHECKPOINT, PartitionLog
from kseg.log.partition.segment_files import SegmentFiles
from kseg.log.partition.segment_tail import read_tail
from kseg.log.partition.side_files import unsorted_epochs
from kseg.log.verify.checks_of_indexes import check_missing_indexes
from kseg.log.verify.checks_of_state import check_checkpoints, check_directory
from kseg.log.verify.verify import Verified


def verify_quickly(partition: PartitionLog, *, keep_cache: bool = False) -> Verified:
    """The findings that need no whole log: of the directory, its small files, and the ends of its segments.

    `size` is 0. `keep_cache`: leave what was read in the page cache.
    """
    findings = Findings()
    problems: list[KsegError] = []
    check_directory(partition, findings)
    end: int | None = None
    for segment in partition.segments:
        _check_missing(partition, segment, findings)
        try:
            end = _check_end(partition, segment, findings, keep_cache=keep_cache)
        except OpenError as error:
            if segment.path.exists():  # else a broker deleted it meanwhile
                problems.append(UnreadableError(error.message, error.path, error.position))
    _check_epochs(partition, findings)
    for file in partition.snapshots.values():
        problem = snapshot_problem(file.path)
        if problem is not None and file.path.exists():
            findings.add("snapshot-unreadable", file.path, problem)
    if end is not None and not problems:
        check_checkpoints(partition, end, findings)
    return Verified(partition.path, tuple(findings.all(is_compacted=False)), tuple(problems))


def _check_missing(partition: PartitionLog, segment: SegmentFiles, findings: Findings) -> None:
    for suffix, found, is_wanted in (
        (".index", segment.offset_index, partition.has_indexes),
        (".timeindex", segment.time_index, partition.has_time_indexes),
    ):
        path = segment.path.with_suffix(suffix)
        check_missing_indexes(path, is_missing=found is None and is_wanted, size=segment.size, findings=findings)


def _check_end(partition: PartitionLog, segment: SegmentFiles, findings: Findings, *, keep_cache: bool) -> int | None:
    """The damage at a segment's end; gives the offset after its last batch, its base offset if there is none."""
    tail = read_tail(segment, keep_cache=keep_cache)
    if tail.damage is not None:
        finding_id = id_of_damage(tail.damage.kind, is_last=partition.is_last(segment))
        sentence = f"{tail.damage.detail}, {tail.damage.size} bytes"
        findings.add(finding_id, segment.path, sentence, position=tail.damage.position)
    return segment.base_offset if tail.last is None else tail.last.last_offset + 1


def _check_epochs(partition: PartitionLog, findings: Findings) -> None:
    path = partition.path / LEADER_EPOCH_CHECKPOINT
    try:
        wrong = unsorted_epochs(partition.read_leader_epochs() or ())
    except KsegError as error:
        findings.add("unreadable-text", path, error.message)
        return
    if wrong is not None:
        findings.add("leader-epoch-unsorted", path, wrong[1], offsets=(wrong[0], None))
