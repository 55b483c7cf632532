"""Sizes of files, measured before an export: the bytes of log that make a file of the target size."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from kseg.cluster.copies import Copies
from kseg.errors import OpenError
from kseg.export.plan import Done, Key, Splitting, WorkOrder, plan_orders
from kseg.export.read.order_reader import OrderReader
from kseg.export.settings import MIB, FileOptions, LogSelection, Mode, ReadOptions
from kseg.export.write.parquet import size_in_file

SAMPLE_SIZE = 16 * MIB
"""The most bytes of a topic's log that are read to measure it."""
SAMPLE_SHARE = 16
"""The divisor of a topic's bytes that limits the sample of a small topic."""
SAMPLES = 4
"""The number of places of a topic that the sample comes from."""
PIECES = 64
"""The pieces of a topic to choose samples from."""


def measure_log_per_file(
    copies: Copies,
    selection: LogSelection,
    orders: Iterable[WorkOrder],
    options: tuple[ReadOptions, FileOptions],
    done: Mapping[Key, Done],
) -> dict[str, int]:
    """Return the bytes of log that make a file of the target size, by topic, for topics with partitions to cut.

    orders: the plan without these sizes. A topic without records in the sample is missing in the result.
    """
    read, files = options
    sizes: dict[str, dict[int | None, list[int]]] = {}
    for order in orders:
        sizes.setdefault(order.topic, {}).setdefault(order.partition, []).append(order.size)
    found = {}
    for topic, partitions in sizes.items():
        if any(len(own) > 1 for own in partitions.values()):
            own = {key: known for key, known in copies.items() if key[0] == topic}
            total = sum(map(sum, partitions.values()))
            records, read_size = _read(_samples(own, selection, total, done), read)
            size = size_in_file(records, read, files)
            if size:
                found[topic] = max(files.target_size * read_size // size, 1)
    return found


def _samples(copies: Copies, selection: LogSelection, total: int, done: Mapping[Key, Done]) -> list[WorkOrder]:
    """Return orders of a few batches at even distances."""
    size = min(SAMPLE_SIZE, total // SAMPLE_SHARE) // SAMPLES
    pieces = sorted(
        plan_orders(copies, selection, Splitting(max(size, total // PIECES, 1)), done),
        key=lambda order: (order.partition or 0, order.number),
    )
    pieces = [order for order in pieces if order.ranges]
    chosen = [pieces[len(pieces) * (2 * step + 1) // (2 * SAMPLES)] for step in range(SAMPLES)]
    return [_begin_of(order, size) for order in dict.fromkeys(chosen)]


def _begin_of(order: WorkOrder, size: int) -> WorkOrder:
    first = order.ranges[0]
    end = min(first.end, first.start + size)
    ranges = (first._replace(end=end),)
    return replace(order, ranges=ranges, begins=False, starts_at_index=False, ends_at_index=False)


def _read(orders: Iterable[WorkOrder], read: ReadOptions) -> tuple[list[pa.RecordBatch], int]:
    """Return the records of orders, and the bytes of log that have them: the last batch may exceed its order."""
    records: list[pa.RecordBatch] = []
    size = 0
    for order in orders:
        reader = OrderReader(order, replace(read, mode=Mode.PERMISSIVE), checksums=False)
        with suppress(OpenError):  # a log that changes; the export lists it again
            records += reader.batches()
        size += sum(source.end - source.start for source in reader.sources)
    return records, size
