"""Contents of carved partitions: their batches as the images have them, all or some of them."""

from collections.abc import Callable, Iterable, Iterator

from kseg.carve.chains import CarvedPartition, Part, Rows, first_header
from kseg.carve.runs import Runs
from kseg.cluster.model import control_type
from kseg.formats.codes import ControlType
from kseg.reading.batch import Batch, BatchHeader


def batches_of(
    runs: Runs, partition: CarvedPartition, is_wanted: Callable[[BatchHeader], bool] = lambda _: True
) -> Iterator[Batch]:
    """Yield the wanted batches of a partition, by offset."""
    for part in partition.parts:
        for single in _singles(part, 0, part.last - part.first if isinstance(part, Rows) else 1):
            if is_wanted(first_header(runs, single)):
                yield _read(runs, single)


def is_snapshot(runs: Runs, partition: CarvedPartition) -> bool:
    """Return True for a snapshot of the metadata, not a log: its first batch is a header for it, at offset 0."""
    header = first_header(runs, partition.parts[0])
    if header.first_offset or not header.is_control:
        return False
    record = next(next(batches_of(runs, partition)).records(on_damage="skip"), None)
    return record is not None and control_type(record) == ControlType.SNAPSHOT_HEADER


def sample_batches(runs: Runs, partition: CarvedPartition, most: int) -> Iterator[Batch]:
    """Yield at most `most` batches of a partition, in even distances; the first and the last are among them."""
    count = partition.batch_count
    wanted = range(count) if count <= most else [number * (count - 1) // (most - 1) for number in range(most)]
    for single in _at(partition.parts, wanted):
        yield _read(runs, single)


def _at(parts: Iterable[Part], numbers: Iterable[int]) -> Iterator[Part]:
    """Yield the batches with these numbers, which rise."""
    wanted = iter(numbers)
    number = next(wanted, None)
    before = 0
    for part in parts:
        count = part.last - part.first if isinstance(part, Rows) else 1
        while number is not None and number < before + count:
            yield from _singles(part, number - before, number - before + 1)
            number = next(wanted, None)
        before += count


def _singles(part: Part, first: int, last: int) -> Iterator[Part]:
    if isinstance(part, Rows):
        yield from (Rows(part.first + number, part.first + number + 1) for number in range(first, last))
    else:
        yield part


def _read(runs: Runs, single: Part) -> Batch:
    if isinstance(single, Rows):
        header = runs.batches.header(single.first)
        return Batch.parse(runs.images.read(header.position, header.end), header.position, is_valid=True)
    raw = single.rebuilt + b"".join(runs.images.read(start, end) for start, end in single.pieces)
    return Batch.parse(raw, single.header.position, is_valid=True)
