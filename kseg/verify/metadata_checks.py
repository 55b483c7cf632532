"""Checks of the metadata's partition: the files next to the log that a controller reads at start, or can replace."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from kseg.cluster.metadata import MetadataReplay
from kseg.cluster.metadata_checkpoint import checkpoint_files, read_checkpoint
from kseg.cluster.metadata_copy import METADATA_TOPIC_ID
from kseg.cluster.model import METADATA_VERSION, QUORUM_STATE, read_quorum_state
from kseg.cluster.replicas import topic_id_of
from kseg.errors import FileError, OpenError
from kseg.findings.findings import Finding, Findings
from kseg.formats.file_names import FileKind, parse_file_name
from kseg.log.partition import PARTITION_METADATA, PartitionLog
from kseg.log.replay import Unreadable
from kseg.reading.batch import Batch, scan_log
from kseg.reading.log_file import LogFile


def check_quorum(partition: PartitionLog, findings: Findings) -> None:
    """Check the quorum's state and the topic id. Source: FileQuorumStateStore, KafkaMetadataLog."""
    try:
        read_quorum_state(partition)
    except FileError as error:
        findings.add("unreadable-text", partition.path / QUORUM_STATE, error.message)
    topic_id = topic_id_of(partition)
    if topic_id not in (None, METADATA_TOPIC_ID):
        sentence = f"its topic id is {topic_id}, expected {METADATA_TOPIC_ID} for metadata"
        findings.add("unreadable-text", partition.path / PARTITION_METADATA, sentence)


def check_metadata_checkpoints(partition: PartitionLog, findings: Findings) -> int:
    """Check the checkpoints, of which a start reads the newest; return its end offset, 0 if it is unusable.

    The newest must reach the start of the log at least, whatever is in it.

    Source: KafkaMetadataLog.recoverSnapshots, MetadataLoader.handleLoadSnapshot.
    """
    files = checkpoint_files(partition)
    start = partition.base_offsets[0] if partition.base_offsets else 0
    newest = files[0][0] if files else 0
    if newest < start:
        sentence = f"it begins at offset {start}, but no checkpoint has the metadata from before"
        findings.add("metadata-checkpoint", partition.segments[0].path, sentence)
    read = [(path, read_checkpoint(path, end)) for end, path in files]
    usable = 0
    for place, (path, found) in enumerate(read):
        problem = found.reason.removeprefix("checkpoint not used: ") if isinstance(found, Unreadable) else None
        if not isinstance(found, Unreadable):
            later = [each for _, each in read[place + 1 :] if not isinstance(each, Unreadable)]
            if any(each.last_timestamp > found.last_timestamp for each in later):
                problem = "an earlier checkpoint has later records: this one belongs to another metadata log"
            elif place == 0:
                usable = found.end_offset
        if problem is not None:
            findings.add("metadata-checkpoint-old" if place else "metadata-checkpoint", path, problem)
    return usable


def bootstrap_problem(path: Path) -> str | None:
    """Return the reason why a controller can't start with a `bootstrap.checkpoint`, or None if it can.

    It ignores the CRC. Source: BootstrapDirectory.read.
    """
    replay = MetadataReplay()
    try:
        with LogFile(path) as log_file:
            for item in scan_log(log_file):
                if not isinstance(item, Batch):
                    return item.brief
                if item.problem() is not None:
                    return f"the batch at position {item.position} can't be read"
                for record in () if item.is_control else item.records():
                    replay.add(record)
    except OpenError as error:
        return error.message
    found = replay.result(None, None)
    has_level = any(feature.name == METADATA_VERSION for feature in found.features)
    return None if has_level else f"it has no record for {METADATA_VERSION}"


def without_superseded(found: Iterable[Finding], checkpoint_end: int) -> Iterator[Finding]:
    """Yield the findings in a metadata log. Damage before the newest checkpoint is only a warning."""
    for each in found:
        kind = parse_file_name(each.file).kind
        last = each.last_offset if each.last_offset is not None else each.first_offset
        is_mended = kind in _REBUILT or (kind is FileKind.LOG and (last is None or last < checkpoint_end))
        if each.counts and is_mended and checkpoint_end and each.id not in _NEVER_MENDED:
            yield replace(each, id="metadata-log", sentence=f"{each.id}: {each.sentence}")
        else:
            yield each


_REBUILT = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.PRODUCER_SNAPSHOT)
_NEVER_MENDED = frozenset({"offset-below-base", "unreadable", "misnamed-file"})
