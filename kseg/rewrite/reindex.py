"""`reindex`: rebuilds the indexes of partitions' segments like a broker."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cached_property, partial
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
    """The difference between an existing index and the rebuilt one."""

    SAME = "same"
    RIGHT = "differs (both right)"
    WRONG = "wrong"
    MISSING = "missing"
    UNREADABLE = "unreadable"


class Reindexed(NamedTuple):
    """A segment's new indexes; `compared` has the comparison with existing ones, by extension.

    faults: problems of existing indexes.
    """

    segment: SegmentFiles
    indexes: RebuiltIndexes
    compared: dict[str, Comparison]
    faults: dict[str, str]

    @property
    def damage(self) -> Damage | None:
        """The damage in the log where the indexes end; None at its end. A zero tail isn't damage."""
        damage = self.indexes.damage
        return None if damage is None or damage.kind == "zero-tail" else damage

    @property
    def files(self) -> dict[str, bytes]:
        """Contents by extension; without a transaction index if nothing was aborted and there was none."""
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
    """Yield each segment's rebuilt indexes, in order; transactions continue from one to the next.

    With a directory the indexes are written there. Raises OpenError if a log has disappeared, OSError if a file can't
    be written.
    """
    states: ProducerStates | None = None
    judge = _Judge(partition)
    for segment in partition.segments:
        if states is None:
            states = partition.read_producer_states(segment.base_offset) or ProducerStates()
        with segment.open_log(keep_cache=keep_cache) as log_file:
            indexes = rebuild(log_file, segment.base_offset, interval=interval, states=states)
        reindexed = judge.compare(segment, indexes)
        if directory is not None:
            _write(reindexed, directory)
        yield reindexed


def partition_folder(directory: Path | None, partition: PartitionLog, count: int) -> Path | None:
    """Return the directory for the indexes of a partition, or None if there is no directory for all.

    If there are several partitions, each has a directory of its own, which is created. A partition may be on two disks.
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


class _Judge:
    """Compares the existing indexes of a partition with rebuilt ones."""

    def __init__(self, partition: PartitionLog) -> None:
        self._partition = partition

    def compare(self, segment: SegmentFiles, indexes: RebuiltIndexes) -> Reindexed:
        """Compare the existing entries of a segment with the new ones.

        Brokers read the zeros after the entries of a closed segment, so these count there.
        """
        compared = dict.fromkeys((".index", ".timeindex"), Comparison.MISSING)
        faults: dict[str, str] = {}
        existing = (
            (".index", segment.offset_index, partial(_offset_index, segment), indexes.offset_index),
            (".timeindex", segment.time_index, partial(_time_index, segment), indexes.time_index),
            (".txnindex", segment.transaction_index, partial(_transaction_index, segment), indexes.transaction_index),
        )
        is_closed = segment is not self._partition.active_segment
        for extension, file, open_index, new in existing:
            if file is not None:
                is_same = _is_same(open_index, new, is_closed=is_closed)
                fault = self._faults.get(segment.path.with_suffix(extension)) if is_same is False else None
                compared[extension] = _comparison(is_same, fault)
                faults |= {} if fault is None else {extension: fault}
            elif new:
                compared[extension] = Comparison.MISSING
        return Reindexed(segment, indexes, compared, faults)

    @cached_property
    def _faults(self) -> dict[Path, str]:
        """The problems of the partition's indexes, by path. All logs are read for them, once an index differs."""
        from kseg.verify.verify import verify_partition

        findings = reversed(verify_partition(self._partition).findings)
        return {each.file: each.sentence for each in findings if each.counts or each.id == "index-rebuilt"}


def _comparison(is_same: bool | None, fault: str | None) -> Comparison:
    if is_same is None:
        return Comparison.UNREADABLE
    if fault is not None:
        return Comparison.WRONG
    return Comparison.SAME if is_same else Comparison.RIGHT


def _offset_index(segment: SegmentFiles) -> tuple[EntryFile, int]:
    """Return the segment's opened index, and the number of its written bytes."""
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


def _is_same(open_index: Callable[[], tuple[EntryFile, int]], new: bytes, *, is_closed: bool) -> bool | None:
    """Return True if an index equals the new one, up to the zeros of an active one; None if it can't be read."""
    try:
        file, size = open_index()
        with file:
            size = file.size if is_closed else size
            return size == len(new) and file.read(0, size) == new
    except OpenError:
        return None
