"""The copies of a cluster's partitions: as lines of text, and as objects of `-o json`."""

from collections import Counter
from datetime import UTC

from kseg.counted import counted
from kseg.output.json_lines import write_json
from kseg.output.stdout import write_line
from kseg.times import iso_time
from kseg.views.cluster_copies import ClusterCopies, ClusterCopy, CopiesVerdict, PartitionCopies

_WORDS = {
    CopiesVerdict.ENOUGH: "can be brought back",
    CopiesVerdict.GAPS: "with gaps",
    CopiesVerdict.BEHIND: "without a copy that was in sync",
    CopiesVerdict.MISSING: "without any copy",
}


def write_copies(copies: ClusterCopies, form: str, *, verbose: bool) -> None:
    """Writes the copies as JSON; as text only if all is wanted."""
    if form == "json":
        _write_json(copies)
    elif verbose:
        _write_text(copies)


def _write_json(copies: ClusterCopies) -> None:
    """Writes an object for each partition."""
    for partition in copies.partitions:
        write_json(_partition_object(partition))


def _write_text(copies: ClusterCopies) -> None:
    """Writes a line for each partition, and one for each of its copies, the longest one first."""
    for partition in copies.partitions:
        write_line(f"{partition.name}: {partition.verdict}")
        for copy in partition.copies:
            write_line(f"  {copy.path}: {copy.text()}")


def copies_line(copies: ClusterCopies) -> str:
    """What all of them add up to, and by which metadata."""
    counts = Counter(partition.verdict for partition in copies.partitions)
    sums = ", ".join(f"{counts[verdict]} {words}" for verdict, words in _WORDS.items() if counts[verdict])
    metadata = copies.metadata
    known = f"metadata to offset {metadata.offset} of {iso_time(metadata.timestamp, UTC)}"
    return f"{counted(len(copies.partitions), 'partition')} by the {known}: {sums or 'none'}"


def _partition_object(partition: PartitionCopies) -> dict[str, object]:
    expected = partition.expected
    return {
        "type": "partition",
        "topic": expected.topic,
        "partition": expected.partition,
        "topicId": expected.topic_id,
        "verdict": str(partition.verdict),
        "replicas": list(expected.replicas),
        "isr": list(expected.isr),
        "elr": list(expected.elr),
        "leader": expected.leader,
        "absent": list(partition.absent),
        "copies": [_copy_object(copy) for copy in partition.copies],
        "otherTopics": [_copy_object(copy) for copy in partition.strangers],
        "gaps": [{"from": first, "to": last} for first, last in partition.gaps],
    }


def _copy_object(copy: ClusterCopy) -> dict[str, object]:
    return {
        "path": str(copy.path),
        "broker": copy.broker,
        "topicId": copy.topic_id,
        "logStartOffset": copy.log_start_offset,
        "logEndOffset": copy.log_end_offset,
        "lastEpoch": copy.last_epoch,
    }
