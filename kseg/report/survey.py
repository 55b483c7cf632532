"""Reads the partitions of some directories once each: what `kseg doctor` knows of them, and what they add up to."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kseg import kernel
from kseg.errors import KsegError, OpenError
from kseg.formats.names import FileKind, parse_file_name
from kseg.index.headers import header_runs
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.segment_files import FoundFile, SegmentFiles
from kseg.log.verify.verification_plan import VerificationPlan
from kseg.reading.bodies import Slice
from kseg.reading.damage import Damage
from kseg.report.key_sketch import KeySketch
from kseg.report.partition_sums import Sums, sums_of
from kseg.system.shared_work import OnRead
from kseg.views.doctor.examination import (
    ExaminationOrder,
    ExaminationSettings,
    Examined,
    examination_orders,
    examine_partition,
    reading_cost,
    share_orders,
    unreadable_partition,
)
from kseg.views.doctor.suspect_times import AHEAD_MS
from kseg.views.metadata_beside import OnUnread

if TYPE_CHECKING:
    from kseg.kernel.statistics_contract import Statistics

MOST_KEYS = 1_000_000
"""Keys of a partition that are told apart at once: some 80 MiB."""
FIRST_TIME = 1_000_000_000_000
"""September 2001: earlier times are in other units than milliseconds, or made up."""
KINDS = {
    FileKind.LOG: "logs",
    FileKind.OFFSET_INDEX: "indexes",
    FileKind.TIME_INDEX: "indexes",
    FileKind.TRANSACTION_INDEX: "indexes",
    FileKind.PRODUCER_SNAPSHOT: "snapshots",
    FileKind.METADATA_SNAPSHOT: "snapshots",
}
OTHERS, LEFTOVERS = "other files", "leftovers"


class FileSizes(NamedTuple):
    """Bytes of files of a kind, and those that their disk has set aside for them."""

    size: int = 0
    allocated: int = 0


class SupersededRecords(NamedTuple):
    """Records whose key came again before the active segment: so many, and so large, could be compacted away."""

    records: int
    size: int


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What is known of a partition.

    sums: None if no log could be read. files: by kind. superseded: None if records weren't read. own: what the topic
    sets itself, by name.
    """

    examined: Examined
    sums: Sums | None
    files: dict[str, FileSizes]
    superseded: SupersededRecords | None
    own: dict[str, str]


def survey(
    plan: VerificationPlan,
    settings: ExaminationSettings,
    *,
    processes: int | None = None,
    on_read: OnRead | None = None,
    on_unread: OnUnread | None = None,
) -> Iterator[Surveyed]:
    """Each partition of a plan, in order; arguments as for `examine`."""
    orders = examination_orders(plan, settings, on_unread=on_unread)
    return share_orders(partial(_surveyed, settings), orders, reading_cost, processes=processes, on_read=on_read)


def _surveyed(settings: ExaminationSettings, each: ExaminationOrder, on_read: OnRead) -> Iterator[Surveyed]:
    try:
        partition = PartitionLog(each.order.path, each.order.checkpoints)
        watch = PartitionWatch(partition, each.retention.now_ms)
        if settings.is_quick:
            watch.take_headers(partition, on_read, keep_cache=settings.keep_cache)
        examined = examine_partition(partition, settings, each, on_read=on_read, on_slice=watch.take)
    except OpenError as error:
        if each.order.path.exists():  # else a broker deleted it meanwhile
            yield Surveyed(unreadable_partition(each, error), None, {}, None, each.own)
        return
    superseded = None if settings.is_quick else watch.superseded()
    yield Surveyed(examined, watch.sums(), sizes_by_kind(partition), superseded, each.own)


class PartitionWatch:
    """Adds up what is read of a partition."""

    def __init__(self, partition: PartitionLog, now_ms: int) -> None:
        """Starts with nothing; times that are later than an hour from now don't count as times."""
        self.statistics: Statistics = kernel.load().Statistics(FIRST_TIME, now_ms + AHEAD_MS, MOST_KEYS)
        self._sketch = KeySketch()
        self._active = partition.segments[-1].base_offset if partition.segments else None
        self._superseded: SupersededRecords | None = None

    def take(self, segment: SegmentFiles, piece: Slice) -> None:
        """Takes batches of a segment with their records."""
        if segment.base_offset == self._active and self._superseded is None:
            self._superseded = self._superseded_so_far()
        run = piece.run
        self.statistics.take(run.buffer, run.rows, piece.first, piece.last, piece.bodies, piece.first)
        self._sketch.take_dropped(self.statistics)

    def take_headers(self, partition: PartitionLog, on_read: OnRead, *, keep_cache: bool) -> None:
        """Takes the headers of all batches; logs that can't be opened are left to who says so."""
        for segment in partition.segments:
            try:
                with segment.open_log(keep_cache=keep_cache) as log_file:
                    for run in header_runs(log_file):
                        if not isinstance(run, Damage):
                            self.statistics.take_headers(run.buffer, run.rows, 0, run.row_count)
            except KsegError:
                continue
            finally:
                on_read(segment.size)

    def superseded(self) -> SupersededRecords:
        """What compaction could take, but for the active segment."""
        return self._superseded or self._superseded_so_far()

    def _superseded_so_far(self) -> SupersededRecords:
        return SupersededRecords(self.statistics.superseded, self.statistics.superseded_size)

    def sums(self) -> Sums:
        """All sums."""
        sums = sums_of(self.statistics)
        sums.sketches = self._sketch.finish(self.statistics)
        return sums


def sizes_by_kind(partition: PartitionLog) -> dict[str, FileSizes]:
    """Bytes of a partition's files by kind; those that have gone meanwhile count as they were listed."""
    sizes: dict[str, FileSizes] = {}
    for file in _files(partition):
        name = parse_file_name(file.name)
        kind = LEFTOVERS if name.suffix is not None else KINDS.get(name.kind, OTHERS)
        known = sizes.get(kind, FileSizes())
        sizes[kind] = FileSizes(known.size + file.size, known.allocated + _allocated(file))
    return sizes


def _files(partition: PartitionLog) -> Iterator[FoundFile]:
    for segment in (*partition.segments, *partition.orphans):
        yield from segment.files
    yield from partition.snapshots.values()
    yield from (*partition.metadata_snapshots, *partition.leftovers, *partition.others)


def _allocated(file: FoundFile) -> int:
    """Bytes that the disk has set aside: indexes of active segments are mostly holes."""
    try:
        blocks: int = getattr(file.path.stat(), "st_blocks", -1)
    except OSError:
        blocks = -1
    return file.size if blocks < 0 else 512 * blocks
