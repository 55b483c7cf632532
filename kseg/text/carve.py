"""Text of `kseg carve`: carved partitions, and sums of what was found, written and left over."""

from collections import Counter
from collections.abc import Iterator

from kseg.carve.carving import Carving, UnplacedKind
from kseg.carve.chains import CarvedPartition
from kseg.carve.check import CheckedEvidence
from kseg.carve.completeness import Completeness
from kseg.carve.evidence import WrittenSegment, total_of
from kseg.errors import plural

_UNPLACED = {
    UnplacedKind.TORN_HEAD: ("beginning of a batch without its rest", "beginnings of batches without their rest"),
    UnplacedKind.TORN_TAIL: ("rest of a batch without its beginning", "rests of batches without their beginning"),
    UnplacedKind.UNKNOWN_OFFSET: ("batch without a certain offset", "batches without a certain offset"),
}


_MOST_NEIGHBOURS = 3
"""Most partitions that a line names."""


def partition_lines(
    partition: CarvedPartition, segments: list[WrittenSegment], completeness: Completeness
) -> Iterator[str]:
    """Yield the line of a carved partition, and a line about its completeness."""
    yield _partition_line(partition, segments)
    if completeness.gaps:
        gaps = plural(completeness.gaps, "gap")
        line = f"  {_missing(completeness.inside)} between the first and the last one, in {gaps}"
    else:
        line = "  no offset is missing between the first and the last one"
    if completeness.before:
        line += f"; by an old checkpoint, at least {completeness.before} preceded the first one"
    if completeness.after:
        line += f"; by an old checkpoint, at least {completeness.after} followed the last one"
    elif completeness.after is not None:
        line += "; no old checkpoint has a later end"
    yield line


def _missing(count: int) -> str:
    return "1 offset is missing" if count == 1 else f"{count} offsets are missing"


def _partition_line(partition: CarvedPartition, segments: list[WrittenSegment]) -> str:
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


def partition_object(
    partition: CarvedPartition, segments: list[WrittenSegment], completeness: Completeness
) -> dict[str, object]:
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
        "missingInside": completeness.inside,
        "gapCount": completeness.gaps,
        "missingBefore": completeness.before,
        "missingAfter": completeness.after,
    }


def total_lines(carving: Carving) -> Iterator[str]:
    """Yield the sums, and what has no place."""
    total = total_of(carving)
    yield (
        f"{plural(total['batches'], 'batch', 'batches')} in {plural(total['partitions'], 'partition')};"
        f" {total['joinedBatches']} of them from torn pieces"
    )
    directories = carving.directories()
    for kind in UnplacedKind:
        unplaced = [each for each in carving.unplaced if each.kind is kind]
        if unplaced:
            neighbours = Counter(directories[each.run] for each in unplaced if each.run in directories)
            yield f"  no place for {plural(len(unplaced), *_UNPLACED[kind])}{_next_to(neighbours)}"
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


def _next_to(neighbours: Counter[str]) -> str:
    """Return the partitions next to bytes without a place, those with most of them first."""
    if not neighbours:
        return ""
    shown = [f"{name} ({count})" for name, count in neighbours.most_common(_MOST_NEIGHBOURS)]
    left = len(neighbours) - len(shown)
    return f", next to {', '.join(shown)}" + (f" and {plural(left, 'other partition')}" if left else "")


def checked_line(checked: CheckedEvidence) -> str:
    """Return the result of a check of the evidence."""
    compared = f"{plural(checked.files, 'log')} and {plural(checked.batches, 'batch', 'batches')} compared"
    return f"{compared}: {plural(len(checked.disagreements), 'file differs', 'files differ')}"
