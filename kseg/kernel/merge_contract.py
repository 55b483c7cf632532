"""The contract of both kernels for merging: records of several batches become the records of one."""

from typing import Protocol, TypeAlias

from kseg.kernel.carve_contract import CarveKernel
from kseg.kernel.contract import Buffer, RecordFilter, Rows
from kseg.kernel.entry_points import Bodies


class MergedRecords(Protocol):
    """Records of batches, one after another, encoded as the records of one v2 batch.

    Attributes, keys, values and headers keep their bytes; timestamps stay the same, LogAppendTime becomes each record's
    own. Messages of formats 0 and 1 become records without headers. Only the offset deltas are new: 0, 1, 2 …

    records: their bytes; none can be added once these were read. size: the number of the bytes. base_timestamp: the
    first record's; max_timestamp: the largest. Without any record, both are -1. to_skip: the number of records that are
    still to be left out first.
    """

    records: Buffer
    size: int
    base_timestamp: int
    max_timestamp: int
    to_skip: int

    def __init__(self, *, is_comparable: bool = False) -> None:
        """Start without records.

        is_comparable: offset deltas and the base timestamp are 0, so that equal records have equal bytes, whatever
        their batches.
        """

    def __len__(self) -> int: ...

    def add(
        self,
        buffer: memoryview,
        rows: Rows,
        first: int,
        last: int,
        bodies: Bodies | None,
        first_body: int,
        record_filter: RecordFilter | None,
        enough: int,
    ) -> int:
        """Add the readable records of rows from `first` on, up to `last` or the row after which there are enough bytes.

        The filter's conditions apply, its `skip` and `limit` don't. Returns the row where to continue. Raises
        BufferError once `records` was read.
        """


_MergedRecords: TypeAlias = MergedRecords


class MergeKernel(CarveKernel, Protocol):
    """A kernel with the part that merges."""

    MergedRecords: type[_MergedRecords]
