"""Lookups against full scans: offsets and times of all golden partitions.

`make test` looks up some of them, `make test-exhaustive` all.
"""

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from kseg import Segment
from kseg.cluster.cluster import Cluster
from kseg.log.lookup import Lookup, lookup_offset, lookup_time
from kseg.log.partition import PartitionLog
from tests import golden
from tests.loops import for_each, some

ROOTS = sorted((golden.ROOT / "logs").iterdir())
EVERY = 5
"""Not a multiple of the three offsets that are tried at each record: before it, its own, after it."""

Scanned = list[tuple[int, int]]
"""Offset and timestamp of each record from the log start offset on, in file order."""


def scan(partition: PartitionLog) -> Scanned:
    records: Scanned = []
    for segment in partition.segments:
        with Segment(segment.path) as opened:
            records += [(record.offset, record.timestamp) for record in opened.records(control=None)]
    start = partition.log_start_offset()
    return [record for record in records if record[0] >= start]


def offsets_to_try(scanned: Scanned) -> list[int]:
    near = {offset + step for offset, _ in scanned for step in (-1, 0, 1)}
    return sorted(offset for offset in near if 0 <= offset < 2**63)


def times_to_try(scanned: Scanned) -> list[int]:
    near = {timestamp + step for _, timestamp in scanned for step in (-1, 0, 1)}
    return sorted(timestamp for timestamp in near if 0 <= timestamp < 2**63)


def expected_offset(offsets: list[int], start: int, offset: int) -> tuple[int | None, int | None, int | None]:
    """Return the offset if it exists, else the ones before and after it."""
    place = bisect_left(offsets, offset)
    if offset in offsets[place : place + 1]:
        return offset, None, None
    before = offsets[place - 1] if place > 0 and offset >= start else None
    return None, before, offsets[place] if place < len(offsets) else None


def found_offset(answer: Lookup) -> tuple[int | None, int | None, int | None]:
    previous, following = answer.previous, answer.next
    return (
        answer.offset,
        None if previous is None else previous.offset,
        None if following is None else following.offset,
    )


def first_of_times(scanned: Scanned) -> Iterator[tuple[int, tuple[int, int] | None]]:
    """Yield each time to try, and the first record that is not earlier."""
    largest_up_to: list[int] = []
    for _, timestamp in scanned:
        largest_up_to.append(max(timestamp, largest_up_to[-1] if largest_up_to else timestamp))
    for timestamp in some(times_to_try(scanned), EVERY):
        place = bisect_left(largest_up_to, timestamp)
        yield timestamp, scanned[place] if place < len(scanned) else None


def differences(partition: PartitionLog) -> tuple[int, list[str]]:
    """Return the number of lookups, and those whose answer differs from the scan's."""
    scanned = scan(partition)
    offsets, start = [offset for offset, _ in scanned], partition.log_start_offset()
    made, wrong = 0, []
    for offset in some(offsets_to_try(scanned), EVERY):
        made += 1
        expected, found = expected_offset(offsets, start, offset), found_offset(lookup_offset(partition, offset))
        if found != expected:
            wrong.append(f"{partition.path}: offset is {offset}: {found}, expected {expected}")
    for timestamp, first in first_of_times(scanned):
        made += 1
        record = lookup_time(partition, timestamp).record
        answer = None if record is None else (record.offset, record.timestamp)
        if answer != first:
            wrong.append(f"{partition.path}: time {timestamp}: {answer} instead of {first}")
    return made, wrong


@for_each(
    "root", [golden.ROOT / "docs", *(root for root in ROOTS if "remote" not in root.name)], ids=lambda path: path.name
)
def test_every_lookup_answers_as_a_full_scan(root: Path) -> None:
    made, wrong = 0, []
    for partition in Cluster([root]).directories():
        count, differing = differences(partition)
        made += count
        wrong += differing
    print(f"{made} lookups in {root.name}")  # noqa: T201
    assert wrong == []
