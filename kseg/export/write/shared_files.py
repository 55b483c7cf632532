"""Parquet files that small orders of a topic share, so that thousands of partitions don't make thousands of files."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby

import pyarrow as pa

from kseg.export.destination import Destination
from kseg.export.plan import WorkOrder
from kseg.export.results import ExportedFile
from kseg.export.settings import MIB, FileOptions, ReadOptions
from kseg.export.write.folders import Folders
from kseg.export.write.parquet import Layout, NewFile, new_attempt, origin_of_parts, schema_of_files, stem_of

FEWEST = 100
"""The fewest small orders of a topic that share files; each of fewer orders has its own."""
SMALL = 256 << 10
"""The most bytes of log of a small order."""
BUNDLE_SIZE = 8 * MIB
"""The most bytes of log in a bundle: that much is read again if a process is killed."""
HELD_SIZE = 64 * MIB
"""Bytes of records in memory at which a bundle's files end, and others begin."""

Bundle = tuple[WorkOrder, ...]
"""Orders whose records share files; or one order, which has files of its own."""


def bundles_of(orders: Iterable[WorkOrder], files: FileOptions) -> Iterator[Bundle]:
    """Yield the orders: small ones of a topic in bundles, if there are many; the others alone and first."""
    small: dict[str, list[WorkOrder]] = defaultdict(list)
    for order in orders:
        if order.size > SMALL or order.is_disordered:
            yield (order,)
        else:
            small[order.topic].append(order)
    for own in small.values():
        if len(own) < FEWEST:
            yield from ((order,) for order in own)
        else:
            yield from _pack(sorted(own, key=_place_in_file), min(BUNDLE_SIZE, files.target_size))


def _place_in_file(order: WorkOrder) -> tuple[int, int]:
    return -1 if order.partition is None else order.partition, order.number


def _pack(orders: Iterable[WorkOrder], most: int) -> Iterator[Bundle]:
    own: list[WorkOrder] = []
    size = 0
    for order in orders:
        if own and size + order.size > most:
            yield tuple(own)
            own, size = [], 0
        own.append(order)
        size += order.size
    if own:
        yield tuple(own)


class SharedFiles:
    """Records of several orders of a topic, which become one file per folder.

    The orders are added in the order of their partitions and offsets.
    """

    def __init__(self, topic: str, job: str, read: ReadOptions, options: FileOptions, place: Destination) -> None:
        self._topic, self._job, self._options, self._place = topic, job, options, place
        self._schema = schema_of_files(read, options)
        self._folders = Folders((topic, None), read, options)
        self._orders: list[WorkOrder] = []
        self._held: dict[str, list[tuple[int, pa.RecordBatch]]] = defaultdict(list)
        self._size = 0

    @property
    def is_full(self) -> bool:
        """True if its records should be written now."""
        return self._size >= HELD_SIZE

    def add(self, order: WorkOrder, batches: Iterable[pa.RecordBatch]) -> None:
        """Add all records of an order."""
        for batch in batches:
            self._size += batch.nbytes
            for folder, records in self._folders.split(batch):
                self._held[folder].append((len(self._orders), records.select(self._schema.names)))
        self._orders.append(order)

    def write(self) -> list[list[ExportedFile]]:
        """Write the files, and return each order's parts of them."""
        parts: list[list[ExportedFile]] = [[] for _ in self._orders]
        if self._held:
            attempt = new_attempt(self._job, self._orders[0].number)
            for number, (folder, held) in enumerate(self._held.items()):
                for place, part in self._write_file(f"{attempt}-{number}", folder, held):
                    parts[place].append(part)
        self._place.sync({part.attempt for own in parts for part in own})
        return parts

    def _write_file(
        self, attempt: str, folder: str, held: list[tuple[int, pa.RecordBatch]]
    ) -> Iterator[tuple[int, ExportedFile]]:
        """Write a file, and yield the place of each of its orders with the order's part of the file."""
        orders = [self._orders[place] for place in dict.fromkeys(place for place, _ in held)]
        stem = stem_of(self._topic, *(order.partition for order in orders))
        origin = origin_of_parts((each.topic, each.partition, each.topic_id) for each in orders)
        file = NewFile(folder, attempt, stem, origin, Layout(self._schema, self._options, is_sorted=True), self._place)
        try:
            for records in self._batches(held):
                file.write(records)
                if self._options.sort_by:  # rows of a part stay together
                    file.flush()
            whole = file.close()
        except BaseException:
            file.abandon()
            raise
        yield from _parts(held, whole)

    def _batches(self, held: list[tuple[int, pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """Yield the records joined, since small batches cost as much as large ones; if they are sorted, by order."""
        groups = groupby(held, key=lambda each: each[0] if self._options.sort_by else 0)
        for _, own in groups:
            yield from pa.Table.from_batches([batch for _, batch in own]).combine_chunks().to_batches()


def _parts(held: list[tuple[int, pa.RecordBatch]], whole: ExportedFile) -> Iterator[tuple[int, ExportedFile]]:
    """Yield each order's place, and its part of a file."""
    places = pa.concat_arrays([pa.repeat(pa.scalar(place), batch.num_rows) for place, batch in held])
    rows = pa.Table.from_batches([batch.select(["offset", "timestamp"]) for _, batch in held])
    times = rows.column("timestamp").cast(pa.int64())
    table = pa.table({"place": places, "offset": rows.column("offset"), "time": times})
    sums = [("offset", "count"), ("offset", "min"), ("offset", "max"), ("time", "min"), ("time", "max")]
    groups = table.group_by("place", use_threads=False).aggregate(sums)
    names = ("place", *("_".join(each) for each in sums))  # older pyarrow puts the keys last
    first_row = 0
    for place, count, first, last, first_time, last_time in zip(
        *(groups.column(name).to_pylist() for name in names), strict=True
    ):
        yield (
            place,
            whole._replace(
                first_offset=first,
                last_offset=last,
                rows=count,
                first_row=first_row,
                first_time=first_time,
                last_time=last_time,
            ),
        )
        first_row += count
