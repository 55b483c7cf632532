"""A batch query's reader: plans work orders on the driver, and takes filters from Spark."""

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kseg.export.copies import Copies
from kseg.export.settings import LogSelection
from kseg.spark.offset_options import batch_ranges
from kseg.spark.order_tasks import OrderExecutor, split
from kseg.spark.pushed_filters import FilterOffer
from kseg.spark.request import Request
from kseg.spark.source_options import STREAM_ONLY


class KsegReader(OrderExecutor, DataSourceReader):
    """A batch query.

    It takes filters only if `pushdown` is true: Spark 4.1 to 4.3 keep what was planned with them for the next query
    of the same DataFrame, whose filters are others.
    """

    def __init__(self, request: Request, columns: Sequence[str]) -> None:
        super().__init__(request, columns)
        if request.flag("pushdown"):
            self.pushFilters = FilterOffer(self.filters)

    def partitions(self) -> Sequence[InputPartition]:
        """Byte ranges of segments, balanced by bytes, planned from names, sizes and indexes. Runs on the driver."""
        self.request.note_unused(STREAM_ONLY)
        copies = self.filters.find(self.request.find())
        return split(copies, self._selection(copies), self.request)

    def _selection(self, copies: Copies) -> LogSelection:
        """What the options and the filters leave; where times can't be looked up, rows are filtered alone."""
        ranges = {key: self.filters.narrow(offsets) for key, offsets in batch_ranges(self.request, copies).items()}
        selection = LogSelection(offsets_of=ranges)
        is_local = all(not replicas[0].is_remote for replicas in copies.values())
        return replace(selection, first_time=self.filters.first_time()) if is_local else selection
