"""`reindex`: rebuilds the indexes of partitions' segments as a broker does."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kseg.errors import OpenError
from kseg.formats.codes import INDEX_INTERVAL_BYTES
from kseg.index.entries import EntryFile, OffsetIndex, TimeIndex, TransactionIndex
from kseg.index.producers import ProducerStates
from kseg.index.rebuild import RebuiltIndexes, rebuild
from kseg.log.partition import PartitionLog
from kseg.log.segments import SegmentFiles
from kseg.reading.blocks import Damage


class Comparison(StrEnum):
    """How an existing index compares with the rebuilt one."""

    SAME = "same"
    DIFFERS = "differs"
    MISSING = "missing"
    UNREADABLE = "unreadable"


class Reindexed(NamedTuple):
    """A segment's new indexes; `compared` has the comparison with existing ones, by extension."""

    segment: SegmentFiles
    indexes: RebuiltIndexes
    compared: dict[str, Comparison]

    @property
    def damage(self) -> Damage | None:
        """The damage in the log where the indexes end; None at its end. A zero tail isn't damage."""
        damage = self.indexes.damage
        return None if damage is None or damage.kind == "zero-tail" else damage

    @property
    def files(self) -> dict[str, bytes]:
        """Contents by extension; without a transaction index if nothing was aborted and there is none."""
        files = {".index": self.indexes.offset_index, ".timeindex": self.indexes.time_index}
        if self.indexes.transaction_index or self.segment.transaction_index is not None:
            files[".txnindex"] = self.indexes.transaction_index
        return files


def reindex_partition(
    partition: PartitionLog,
    directory: Path | None = None,
    *,
    interval: int = INDEX_INTERVAL_BYTES,
    keep_cache: bool = True,
) -> Iterator[Reindexed]:
    """Each segment's rebuilt indexes, in order; transactions continue from one to the next.

    With a directory they are written there. Raises OpenError if a log is gone meanwhile, OSError if a file can't be
    written.
    """
    states: ProducerStates | None = None
    for segment in partition.segments:
        if states is None:
            states = partition.read_producer_states(segment.base_offset) or ProducerStates()
        with segment.open_log(keep_cache=keep_cache) as log_file:
            indexes = rebuild(log_file, segment.base_offset, interval=interval, states=states)
        reindexed = Reindexed(segment, indexes, _compare(segment, indexes))
        if directory is not None:
            _write(reindexed, directory)
        yield reindexed


def partition_folder(directory: Path | None, partition: PartitionLog, count: int) -> Path | None:
    """Where the indexes of one of so many partitions go below a directory; None without one.

    Of several each has a directory of its own, which is made. A partition may lie on two disks.
    """
    if directory is None or count == 1:
        return directory
    path = partition.path.absolute()
    folder = directory / path.name
    if folder.exists():
        folder = directory / path.parent.name / path.name
    folder.mkdir(parents=True)
    return folder


def _write(reindexed: Reindexed, directory: Path) -> None:
    stem = directory / f"{reindexed.segment.base_offset:020}"
    for extension, content in reindexed.files.items():
        stem.with_suffix(extension).write_bytes(content)


def _compare(segment: SegmentFiles, indexes: RebuiltIndexes) -> dict[str, Comparison]:
    """Compares the existing entries, without the zero tail, with the new ones."""
    compared = dict.fromkeys((".index", ".timeindex"), Comparison.MISSING)
    if segment.offset_index is not None:
        compared[".index"] = _judge(partial(_offset_index, segment), indexes.offset_index)
    if segment.time_index is not None:
        compared[".timeindex"] = _judge(partial(_time_index, segment), indexes.time_index)
    if segment.transaction_index is not None:
        compared[".txnindex"] = _judge(partial(_transaction_index, segment), indexes.transaction_index)
    elif indexes.transaction_index:
        compared[".txnindex"] = Comparison.MISSING
    return compared


def _offset_index(segment: SegmentFiles) -> tuple[EntryFile, int]:
    """The segment's index, open, and how many of its bytes are written."""
    assert segment.offset_index is not None
    index = OffsetIndex(segment.offset_index.path, segment.base_offset)
    return index.file, 8 * index.count


def _time_index(segment: SegmentFiles) -> tuple[EntryFile, int]:
    assert segment.time_index is not None
    index = TimeIndex(segment.time_index.path, segment.base_offset)
    return index.file, 12 * index.count


def _transaction_index(segment: SegmentFiles) -> tuple[EntryFile, int]:
    assert segment.transaction_index is not None
    index = TransactionIndex(segment.transaction_index.path, segment.base_offset)
    return index.file, index.size


def _judge(open_index: Callable[[], tuple[EntryFile, int]], new: bytes) -> Comparison:
    """Whether the written bytes of an index equal the new ones; doesn't read them if they can't."""
    try:
        file, size = open_index()
        with file:
            return Comparison.SAME if size == len(new) and file.read(0, size) == new else Comparison.DIFFERS
    except OpenError:
        return Comparison.UNREADABLE
