"""Checks a segment's .index and .timeindex against its batches.

An .index entry is right if a batch begins at its position, and its offset is neither below that batch's first one nor
at or above the first one of the batch at the next entry: which offset of an append an entry has differs by release.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kseg.errors import OpenError
from kseg.formats.codes import NO_TIMESTAMP
from kseg.formats.entries import OffsetIndexEntry, TimeIndexEntry
from kseg.index.entry_file import EntryFile
from kseg.index.offset_index import OffsetIndex
from kseg.index.time_index import TimeIndex
from kseg.log.verify.checked_batches import CheckedBatch
from kseg.log.verify.findings import Findings
from kseg.reading.damage import Damage

LONGEST_STRETCH = 4 << 20
"""Bytes of log without an index entry that index.interval.bytes and one append of many batches can explain."""


class OffsetIndexCheck:
    """Compares an .index with the batches of its log, given in order."""

    def __init__(self, index: OffsetIndex, findings: Findings) -> None:
        self._path = index.path
        self._findings = findings
        self._entries = _rising_offsets(index, findings)
        self._entry = next(self._entries, None)
        self._passed: OffsetIndexEntry | None = None
        self._last_position = 0
        self._last_offset = -1
        self._largest_batch = 0
        self._end = 0

    def take_damage(self, damage: Damage) -> None:
        """Skips the entries that point into what can't be read."""
        self._advance(damage.position)
        while self._entry is not None and self._entry.position < damage.position + damage.size:
            self._last_position, self._passed = self._entry.position, None
            self._entry = next(self._entries, None)
        self._end = max(self._end, damage.position + damage.size)

    def take(self, batch: CheckedBatch) -> None:
        """Takes the log's next batch."""
        header = batch.header
        self._advance(header.position)
        if self._entry is not None and self._entry.position == header.position:
            self._take_entry(self._entry, batch)
            self._entry = next(self._entries, None)
        self._last_offset = batch.last_offset
        self._largest_batch = max(self._largest_batch, header.size)
        self._end = header.end

    def finish(self) -> None:
        """Reports entries after the last batch."""
        while self._entry is not None:
            self._add(self._entry, f"points beyond the last batch, which ends at {self._end}")
            self._entry = next(self._entries, None)
        if self._passed is not None and self._passed.offset > self._last_offset:
            self._add(self._passed, f"has an offset after the log's last one, {self._last_offset}")
        self._check_stretch(self._end)

    def _advance(self, position: int) -> None:
        """Reports the entries before a position that don't point at a batch."""
        while self._entry is not None and self._entry.position < position:
            self._add(self._entry, "doesn't point at a batch")
            self._entry = next(self._entries, None)

    def _take_entry(self, entry: OffsetIndexEntry, batch: CheckedBatch) -> None:
        if entry.offset < batch.base_offset:
            self._add(entry, f"points at a batch that begins with offset {batch.base_offset}")
        if self._passed is not None and self._passed.offset >= batch.base_offset:
            self._add(self._passed, f"has an offset of the next entry's batch, which begins with {batch.base_offset}")
        self._check_stretch(entry.position)
        self._passed, self._last_position = entry, entry.position

    def _check_stretch(self, end: int) -> None:
        size = end - self._last_position
        if size > LONGEST_STRETCH + 2 * self._largest_batch:
            sentence = f"no entry for {size} bytes of log from position {self._last_position} on"
            self._findings.add("index-sparse", self._path, sentence, position=None)

    def _add(self, entry: OffsetIndexEntry, what: str) -> None:
        sentence = f"the entry {entry.offset} → {entry.position} {what}"
        self._findings.add("index-entry", self._path, sentence, offsets=(entry.offset, entry.offset))


class TimeIndexCheck:
    """Compares a .timeindex with the batches of its log, given in order."""

    def __init__(self, index: TimeIndex, findings: Findings, *, is_closed: bool) -> None:
        self._path = index.path
        self._findings = findings
        self._is_closed = is_closed
        self._entries = _rising_times(index, findings)
        self._entry = next(self._entries, None)
        self._last_timestamp = NO_TIMESTAMP
        self._largest = NO_TIMESTAMP
        self._largest_of_records = NO_TIMESTAMP
        self._has_all_times = True

    def take_damage(self, _: Damage) -> None:
        """Records that a part of the log can't be read: the largest time isn't known from there on."""
        self._has_all_times = False

    def take(self, batch: CheckedBatch) -> None:
        """Takes the log's next batch."""
        while self._entry is not None and self._entry.offset < batch.base_offset:
            self._check(self._entry)
        self._largest = max(self._largest, batch.header.max_timestamp)
        if batch.header.records_count != 0:  # the cleaner of 0.11 skipped times of batches that it had emptied
            self._largest_of_records = max(self._largest_of_records, batch.header.max_timestamp)
        if batch.header.magic == 0:
            self._has_all_times = False  # a broker that stored newer messages in format 0 indexed their times
        while self._entry is not None and self._entry.offset <= batch.last_offset:
            self._check(self._entry)

    def finish(self) -> None:
        """Reports entries after the last batch, and of a last entry that is missing."""
        while self._entry is not None:
            self._check(self._entry)
        if self._is_closed and self._last_timestamp < self._largest_of_records:
            sentence = f"its last time is {self._last_timestamp}, the segment's largest {self._largest_of_records}"
            self._findings.add("time-index-ends-early", self._path, sentence)

    def _check(self, entry: TimeIndexEntry) -> None:
        self._last_timestamp = entry.timestamp
        if entry.timestamp < self._largest_of_records or (self._has_all_times and entry.timestamp > self._largest):
            sentence = (
                f"the entry {entry.timestamp} → {entry.offset} is wrong:"
                f" the largest time up to that offset is {self._largest}"
            )
            self._findings.add("time-index-entry", self._path, sentence, offsets=(entry.offset, entry.offset))
        self._entry = next(self._entries, None)


class ActiveIndexCheck:
    """Compares the preallocated index of an active segment: what doesn't match the log there is one note.

    Where a broker recovers or truncates a log, it starts the index again without clearing what stood there. Only its
    memory knows where its own entries end; those after that go when it closes the file, or recovers again.
    """

    def __init__(self, check: OffsetIndexCheck | TimeIndexCheck, found: Findings, findings: Findings) -> None:
        """Takes a check that adds to `found`; adds the result to `findings`."""
        self._check, self._found, self._findings = check, found, findings

    def take_damage(self, damage: Damage) -> None:
        """Passes a damage on."""
        self._check.take_damage(damage)

    def take(self, batch: CheckedBatch) -> None:
        """Passes the log's next batch on."""
        self._check.take(batch)

    def finish(self) -> None:
        """Reports the first entry that doesn't match the log."""
        self._check.finish()
        first = next(self._found.all(is_compacted=False), None)
        if first is not None:
            offsets = (first.first_offset, first.last_offset)
            self._findings.add("index-old-entries", first.file, first.sentence, offsets=offsets)


IndexCheck = OffsetIndexCheck | TimeIndexCheck | ActiveIndexCheck


def _rising_offsets(index: OffsetIndex, findings: Findings) -> Iterator[OffsetIndexEntry]:
    """The entries as long as they increase; reports where they don't, and ends the comparison there."""
    previous: OffsetIndexEntry | None = None
    for number, entry in enumerate(index.entries()):
        if entry.position < 0 or (previous is not None and not _is_above(entry, previous)):
            before = "" if previous is None else f" after {previous.offset} → {previous.position}"
            sentence = f"entry {number} is {entry.offset} → {entry.position}{before}"
            findings.add("index-unsorted", index.path, sentence, offsets=(entry.offset, entry.offset))
            return
        yield entry
        previous = entry


def _is_above(entry: OffsetIndexEntry, previous: OffsetIndexEntry) -> bool:
    return entry.offset > previous.offset and entry.position > previous.position


def _rising_times(index: TimeIndex, findings: Findings) -> Iterator[TimeIndexEntry]:
    previous: TimeIndexEntry | None = None
    for number, entry in enumerate(index.entries()):
        if previous is not None and (entry.timestamp <= previous.timestamp or entry.offset < previous.offset):
            before = f"{previous.timestamp} → {previous.offset}"
            sentence = f"entry {number} is {entry.timestamp} → {entry.offset} after {before}"
            findings.add("index-unsorted", index.path, sentence, offsets=(entry.offset, entry.offset))
            return
        yield entry
        previous = entry


@contextmanager
def unreadable_index(path: Path, findings: Findings) -> Iterator[None]:
    """Reports an index that can't be opened or read in the block; ignores one that is gone meanwhile."""
    try:
        yield
    except OpenError as error:
        if path.exists():
            findings.add("index-unreadable", path, error.message, position=error.position)


def check_index_file(file: EntryFile, count: int, findings: Findings, *, is_closed: bool) -> None:
    """The file itself: bytes after its last whole entry, its zero tail, entries after zeros.

    Raises UnreadableError if the disk can't read the entries, so that later readers needn't expect that.
    """
    path = Path(file.name)
    entry_size = (file.size - file.trailing) // file.capacity if file.capacity else 0
    file.check_readable(count)
    if file.trailing:
        sentence = f"{file.size} bytes; the last {file.trailing} aren't a whole entry"
        findings.add("index-cut", path, sentence, position=file.size - file.trailing)
    if count == file.capacity:
        return
    written = count * entry_size
    if file.first_content(written, file.capacity * entry_size) is not None:
        findings.add("index-unsorted", path, f"there are entries after zeros at entry {count}", position=written)
    elif is_closed:
        sentence = f"{file.capacity - count} of {file.capacity} entries are zeros"
        findings.add("index-preallocated", path, sentence, position=written)


def check_missing_indexes(path: Path, *, is_missing: bool, size: int, findings: Findings) -> None:
    """An index that should be there and isn't."""
    if is_missing and size:
        findings.add("index-missing", path, f"there is none for a log of {size} bytes")
