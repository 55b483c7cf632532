"""Text of `kseg carve`: carved partitions, and sums of what was found, written and left over."""

from collections import Counter
from collections.abc import Iterator

from kseg.carve.carving import Carving, UnplacedKind
from kseg.carve.chains import CarvedPartition
from kseg.carve.check import CheckedEvidence
from kseg.carve.evidence import WrittenSegment, total_of
from kseg.errors import plural

_UNPLACED = {
    UnplacedKind.TORN_HEAD: ("beginning of a batch without its rest", "beginnings of batches without their rest"),
    UnplacedKind.TORN_TAIL: ("rest of a batch without its beginning", "rests of batches without their beginning"),
    UnplacedKind.UNKNOWN_OFFSET: ("batch without a certain offset", "batches without a certain offset"),
}


def partition_line(partition: CarvedPartition, segments: list[WrittenSegment]) -> str:
    """Return the line of a carved partition."""
    size = sum(each.segment.size for each in segments)
    line = (
        f"{partition.directory}: {_offsets(partition)}, {plural(partition.batch_count, 'batch', 'batches')},"
        f" {plural(size, 'byte')} in {plural(len(segments), 'segment')}"
    )
    if partition.likely_links:
        line += f"; put together by {plural(partition.likely_links, 'likely link')}"
    copies = partition.copy_count
    return f"{line}; left out {plural(copies, 'copy', 'copies')} of batches" if copies else line


def _offsets(partition: CarvedPartition) -> str:
    first = min(chain.first_offset for chain in partition.chains)
    last = max(chain.last_offset for chain in partition.chains)
    return f"offset {first}" if first == last else f"offsets {first} to {last}"


def partition_object(partition: CarvedPartition, segments: list[WrittenSegment]) -> dict[str, object]:
    """Return the same as an object of JSON."""
    return {
        "type": "partition",
        "directory": partition.directory,
        "firstOffset": min(chain.first_offset for chain in partition.chains),
        "lastOffset": max(chain.last_offset for chain in partition.chains),
        "batches": partition.batch_count,
        "bytes": sum(each.segment.size for each in segments),
        "files": [{"file": each.segment.name, "bytes": each.segment.size, "sha256": each.sha256} for each in segments],
        "copyCount": partition.copy_count,
        "likelyLinks": partition.likely_links,
    }


def total_lines(carving: Carving) -> Iterator[str]:
    """Yield the sums, and what has no place."""
    total = total_of(carving)
    yield (
        f"{plural(total['batches'], 'batch', 'batches')} in {plural(total['partitions'], 'partition')};"
        f" {total['joinedBatches']} of them from torn pieces"
    )
    kinds = Counter(each.kind for each in carving.unplaced)
    yield from (f"  no place for {plural(kinds[kind], *_UNPLACED[kind])}" for kind in UnplacedKind if kinds[kind])
    if carving.contradictions:
        yield f"  no name for {plural(len(carving.contradictions), 'partition')}: the evidence has several"
    for option, left_out in (("--min-batches", carving.few), ("--topic", carving.others)):
        if left_out:
            batches = plural(sum(each.batch_count for each in left_out), "batch", "batches")
            yield f"  left out {batches} in {plural(len(left_out), 'partition')} ({option})"
    for image, _ in carving.scan.images:
        size = sum(found.end - found.start for found in image.unreadable)
        if size:
            yield f"  {image.path}: {plural(size, 'byte')} can't be read"


def checked_line(checked: CheckedEvidence) -> str:
    """Return the result of a check of the evidence."""
    compared = f"{plural(checked.files, 'log')} and {plural(checked.batches, 'batch', 'batches')} compared"
    return f"{compared}: {plural(len(checked.disagreements), 'file differs', 'files differ')}"
