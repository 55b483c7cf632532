"""The result of cleaning a partition, as lines of text and as JSON objects."""

from collections.abc import Iterator

from kseg.log.compact.compact import Compacted
from kseg.log.compact.filter import Gone
from kseg.log.partition.partition_log import PartitionLog
from kseg.output.json_lines import write_json
from kseg.output.stdout import write_lines

_WORDS = {
    Gone.SUPERSEDED: "of keys that have a later one",
    Gone.TOMBSTONE: "tombstones past their time",
    Gone.ABORTED: "of aborted transactions",
    Gone.MARKER: "markers of transactions that are gone",
    Gone.NO_KEY: "without a key",
}


def compacted_lines(partition: PartitionLog, done: Compacted) -> Iterator[str]:
    """A partition's report."""
    plan = done.plan
    if not done.passes:
        reached = f"from offset {plan.first_dirty} on it is clean or left alone, for {plan.why_ends}"
        yield f"{partition.path}: nothing to clean: {reached}"
        return
    yield (
        f"{partition.path}: offsets below {plan.end_offset} cleaned, dirty from {plan.first_dirty} on; "
        f"{done.bytes_left_alone} bytes after that left alone, for {plan.why_ends}"
    )
    yield f"  {done.kept} of {done.record_count} records stay, {done.bytes_after} of {done.bytes_before} bytes"
    for reason, words in _WORDS.items():
        if done.gone[reason]:
            yield f"  {done.gone[reason]} go: {words}"
    if done.emptied:
        yield f"  {done.emptied} batches stay without a record, for the producer's state or the last offset"
    passes = "1 pass" if done.passes == 1 else f"{done.passes} passes"
    yield f"  {_joined(done)} segments become {len(done.segments)}, in {passes}"


def _joined(done: Compacted) -> int:
    return len({base for segment in done.segments for base in segment.sources})


def compacted_object(partition: PartitionLog, done: Compacted) -> dict[str, object]:
    """A partition's report for JSON."""
    return {
        "type": "compaction",
        "directory": str(partition.path),
        "firstDirtyOffset": done.plan.first_dirty,
        "endOffset": done.plan.end_offset,
        "endsFor": done.plan.why_ends,
        "passes": done.passes,
        "records": done.record_count,
        "kept": done.kept,
        "gone": {str(reason): done.gone[reason] for reason in Gone},
        "emptyBatches": done.emptied,
        "bytes": done.bytes_before,
        "bytesKept": done.bytes_after,
        "bytesLeftAlone": done.bytes_left_alone,
        "segments": [
            {"baseOffset": segment.base_offset, "size": segment.size, "madeOf": list(segment.sources)}
            for segment in done.segments
        ],
    }


def compaction_notes(partition: PartitionLog, done: Compacted) -> Iterator[str]:
    """What the user should know of a partition, whatever the form of the report."""
    yield from done.notes
    if done.gone[Gone.NO_KEY]:
        yield f"{partition.path}: {done.gone[Gone.NO_KEY]} records have no key, so they are dropped"


def write_compacted(partition: PartitionLog, done: Compacted, form: str, *, quiet: bool) -> None:
    """Writes a partition's report to standard output; the text is left out where the user wants quiet."""
    if form == "json":
        write_json(compacted_object(partition, done))
    elif not quiet:
        write_lines(compacted_lines(partition, done))
