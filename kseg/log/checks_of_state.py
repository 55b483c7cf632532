"""Checks of what stands beside the segments: leader epochs, checkpoints, text files, leftovers, directories."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from kseg.errors import KsegError
from kseg.formats.names import SUFFIXES, parse_file_name
from kseg.log.checks_of_log import EpochStart, LogChecks
from kseg.log.findings import Findings
from kseg.log.log_dir import CHECKPOINT_OF_FIELD, META_PROPERTIES, LogDir
from kseg.log.partition import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, PartitionLog


def check_leader_epochs(partition: PartitionLog, log: LogChecks, findings: Findings) -> None:
    """`leader-epoch-checkpoint` by itself, and against the epochs of the batches."""
    path = partition.path / LEADER_EPOCH_CHECKPOINT
    try:
        entries = partition.read_leader_epochs()
    except KsegError as error:
        findings.add("unreadable-text", path, error.message)
        return
    if entries is None:
        return
    for (epoch, start), (next_epoch, next_start) in pairwise(entries):
        if next_epoch <= epoch or next_start <= start:
            sentence = f"epoch {next_epoch} from offset {next_start} behind epoch {epoch} from {start}"
            findings.add("leader-epoch-unsorted", path, sentence, offsets=(next_start, None))
            return
    starts = [start for _, start in entries]
    cleared = [found for found in log.epochs if not starts or found.offset < starts[0]]
    if cleared:
        _add_cleared(partition, path, cleared, findings)
    for found in log.epochs[len(cleared) :]:
        _check_epoch(path, entries[bisect_right(starts, found.offset) - 1][0], found, findings)
    end = log.next_offset
    if end is not None and entries and entries[-1][1] > end:
        sentence = f"epoch {entries[-1][0]} begins at offset {entries[-1][1]}, the log ends at {end}"
        findings.add("leader-epoch-beyond-end", path, sentence, offsets=(end, entries[-1][1]))


def _add_cleared(partition: PartitionLog, path: Path, cleared: list[EpochStart], findings: Findings) -> None:
    """Epochs of the first batches that aren't in the file, and what is known of the log start offset."""
    epochs = f"epoch {cleared[0].epoch}" + (f" to {cleared[-1].epoch}" if len(cleared) > 1 else "")
    start = f"is {partition.log_start_offset()}" if partition.has_log_start_checkpoint else "isn't known here"
    sentence = f"{epochs}, from offset {cleared[0].offset} on, isn't in it; the log start offset {start}"
    findings.add("leader-epochs-cleared", path, sentence, offsets=(cleared[0].offset, None))


def _check_epoch(path: Path, stored: int, found: EpochStart, findings: Findings) -> None:
    """`stored`: the epoch that the checkpoint gives the offset, the last one that begins at or below it."""
    if stored != found.epoch:
        sentence = f"offset {found.offset} is of epoch {stored}, its batch says {found.epoch}"
        findings.add("leader-epoch-checkpoint", path, sentence, offsets=(found.offset, None))


def check_checkpoints(partition: PartitionLog, end: int | None, findings: Findings) -> None:
    """What the log directory's checkpoints say of the partition, against the log's end."""
    checkpoints = partition.checkpoints()
    end = end or 0
    parent = partition.path.absolute().parent
    for field in ("recovery_point", "high_watermark"):
        offset = getattr(checkpoints, field)
        if offset is not None and offset > end:
            _add_checkpoint("checkpoint-beyond-end", parent, field, (offset, end), findings)
    if checkpoints.log_start_offset is not None and checkpoints.log_start_offset > end:
        _add_checkpoint(
            "log-start-beyond-end", parent, "log_start_offset", (checkpoints.log_start_offset, end), findings
        )
    clean = checkpoints.clean_offset
    first = partition.base_offsets[0] if partition.base_offsets else 0
    if clean is not None and not first <= clean <= end:
        _add_checkpoint("checkpoint-stale", parent, "clean_offset", (clean, end), findings)


def _add_checkpoint(finding_id: str, parent: Path, field: str, offsets: tuple[int, int], findings: Findings) -> None:
    offset, end = offsets
    words = field.replace("_", " ")
    sentence = f"the {words} is {offset}, the log ends at {end}"
    findings.add(
        finding_id, parent / CHECKPOINT_OF_FIELD[field], sentence, offsets=(min(end, offset), max(end, offset))
    )


def check_directory(partition: PartitionLog, findings: Findings) -> None:
    """The partition's directory: its name, its id, files that shouldn't stay."""
    if partition.state is not None:
        findings.add("leftover-directory", partition.path, f"the directory's name ends in -{partition.state}")
    for file in partition.leftovers:
        suffix = parse_file_name(file.path).suffix or ""
        findings.add("leftover-file", file.path, f"{suffix}: {SUFFIXES[suffix]}; {file.size} bytes")
    for orphan in partition.orphans:
        for file in orphan.files:
            findings.add("orphan-index", file.path, f"{file.size} bytes, and no .log")
    try:
        partition.read_topic_id()
    except KsegError as error:
        findings.add("unreadable-text", partition.path / PARTITION_METADATA, error.message)


def check_log_dir(log_dir: LogDir, findings: Findings) -> None:
    """A log directory's own files."""
    for problem in log_dir.problems:
        findings.add("unreadable-text", Path(problem.path or log_dir.path), problem.message)
    try:
        log_dir.read_properties()
    except KsegError as error:
        findings.add("unreadable-text", log_dir.path / META_PROPERTIES, error.message)


def check_disks(log_dirs: Iterable[LogDir], findings: Findings) -> None:
    """Partitions that lie in two log directories of one broker; of different brokers they are replicas."""
    homes: dict[tuple[str, str, str], Path] = {}
    for log_dir in log_dirs:
        broker = _broker_of(log_dir)
        if broker is None:
            continue
        for path in log_dir.directories:
            first = homes.setdefault((*broker, path.name), path)
            if first != path:
                findings.add("partition-twice", path, f"also in {first.parent}, a log directory of the same broker")


def _broker_of(log_dir: LogDir) -> tuple[str, str] | None:
    """The cluster's and the broker's ids; None if `meta.properties` doesn't tell."""
    try:
        properties = log_dir.read_properties()
    except KsegError:
        return None
    node = properties.get("node.id", properties.get("broker.id"))
    return None if node is None else (properties.get("cluster.id", ""), node)
