"""A batch query's reader: plans work orders on the driver, and takes filters from Spark."""

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kseg.export.copies import Copies
from kseg.export.settings import LogSelection
from kseg.output.talk import talk
from kseg.spark.offset_options import batch_ranges
from kseg.spark.order_tasks import OrderExecutor, split
from kseg.spark.pushed_filters import FilterOffer
from kseg.spark.request import Request
from kseg.spark.source_options import SPLIT_SIZE, STREAM_ONLY

_HINT = (
    "kseg: Spark reads everything and filters rows itself, unless spark.sql.python.filterPushdown.enabled is true; "
    "kseg.spark.register(spark) sets it"
)

_CAN_PUSH = hasattr(DataSourceReader, "pushFilters")
"""Pyspark 4.0 has no filters for sources."""


class KsegReader(OrderExecutor, DataSourceReader):
    """A batch query. was_registered: by `kseg.spark.register`, so that Spark offers filters where it has any."""

    def __init__(self, request: Request, columns: Sequence[str], *, was_registered: bool = True) -> None:
        super().__init__(request, columns)
        self._was_registered = was_registered
        self._offer = FilterOffer(self.filters)
        self.pushFilters = self._offer  # type: ignore[method-assign]

    def partitions(self) -> Sequence[InputPartition]:
        """Byte ranges of segments, balanced by bytes, planned from names, sizes and indexes. Runs on the driver."""
        self.request.note_unused(STREAM_ONLY)
        found = self.request.find()
        if not self._was_registered and not self._offer.was_made and _size(found) > SPLIT_SIZE and _CAN_PUSH:
            talk(_HINT)
        copies = self.filters.find(found)
        return split(copies, self._selection(copies), self.request)

    def _selection(self, copies: Copies) -> LogSelection:
        """What the options and the filters leave; where times can't be looked up, rows are filtered alone."""
        ranges = {key: self.filters.narrow(offsets) for key, offsets in batch_ranges(self.request, copies).items()}
        selection = LogSelection(offsets_of=ranges)
        is_local = all(not replicas[0].is_remote for replicas in copies.values())
        return replace(selection, first_time=self.filters.first_time()) if is_local else selection


def _size(copies: Copies) -> int:
    return sum(replicas[0].size for replicas in copies.values())
