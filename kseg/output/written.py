"""What was written of a partition, a line per segment."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from kseg.log.partition.partition_writer import WrittenSegment
from kseg.log.partition.roll import Rolled


def segment_lines(segments: Iterable[WrittenSegment], directory: Path) -> Iterator[str]:
    """Each segment's file, offsets, batches, bytes, and why it was rolled if one of Kafka's rules did it."""
    for segment in segments:
        offsets = f"offsets {segment.base_offset} to {segment.next_offset - 1}" if segment.batch_count else "empty"
        rolled = "" if segment.rolled in (Rolled.ACTIVE, Rolled.UNKNOWN) else f", rolled by {segment.rolled}"
        path = directory / f"{segment.base_offset:020}.log"
        yield f"{path}: {offsets}, {segment.batch_count} batches, {segment.size} bytes{rolled}"
