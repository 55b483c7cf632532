"""What was written of a partition, a line per segment."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kseg.log.partition.partition_writer import WrittenSegment
from kseg.log.partition.roll import Rolled
from kseg.log.slice import Sliced


def segment_lines(segments: Iterable[WrittenSegment], directory: Path) -> Iterator[str]:
    """Each segment's file, offsets, batches, bytes, and why it was rolled if one of Kafka's rules did it."""
    for segment in segments:
        offsets = f"offsets {segment.base_offset} to {segment.next_offset - 1}" if segment.batch_count else "empty"
        rolled = "" if segment.rolled in (Rolled.ACTIVE, Rolled.UNKNOWN) else f", rolled by {segment.rolled}"
        path = directory / f"{segment.base_offset:020}.log"
        yield f"{path}: {offsets}, {segment.batch_count} batches, {segment.size} bytes{rolled}"


def sliced_lines(sliced: Sliced, directory: Path) -> Iterator[str]:
    """What `slice` wrote: its segments, and counts."""
    yield from segment_lines(sliced.segments, directory)
    yield f"{sliced.copied} batches copied, {sliced.rebuilt} rebuilt, {sliced.dropped} records left out"


def missed_options(sliced: Sliced, given_keys: Mapping[bytes, str]) -> Iterator[str]:
    """The options of `slice` for which no record was found; `given_keys`: how the user wrote the keys."""
    yield from (f"--drop-offset {offset}" for offset in sorted(sliced.missed_offsets))
    yield from (f"--drop-key {given}" for key, given in given_keys.items() if key in sliced.missed_keys)
