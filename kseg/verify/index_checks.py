"""Checks of a segment's .index and .timeindex against its batches.

An .index entry is correct if a batch begins at its position, and its offset isn't below that batch's first offset. It
must also be below the first offset of the batch at the next entry. Releases differ in the offset of an append that an
entry has.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from kseg import kernel
from kseg.errors import OpenError, plural
from kseg.findings.findings import Findings
from kseg.formats.header_fields import OffsetIndexEntry, TimeIndexEntry
from kseg.index.entries import EntryFile, OffsetIndex, TimeIndex
from kseg.kernel.contract import MOST
from kseg.kernel.fold_contract import HeaderFold
from kseg.reading.blocks import Damage
from kseg.system.placed_path import as_path
from kseg.times import time_text
from kseg.verify.batches import CheckedBatch

LONGEST_STRETCH = 4 << 20
"""The most bytes of log without an index entry that index.interval.bytes and one append of many batches explain."""

LARGEST_HELD = 16 << 20
"""The most bytes of an index held in memory: Kafka's have 10 MiB, unless `segment.index.bytes` differs."""


Entry = TypeVar("Entry", OffsetIndexEntry, TimeIndexEntry)


class OffsetIndexCheck:
    """A comparison of an .index with the batches of its log, given in order.

    The fold passes correct entries; this class judges the others. Entries of an index that is too large for memory are
    read here one by one: the fold stops at the batches that they point at.
    """

    def __init__(self, index: OffsetIndex, fold: HeaderFold, findings: Findings) -> None:
        self._path = index.path
        self._fold = fold
        self._findings = findings
        self._entries = _IndexEntries(index, index.entry, _offset_rises, findings)
        self._state = kernel.load().OffsetEntries(
            self._entries.content, index.base_offset, self._entries.held, LONGEST_STRETCH
        )
        self._end_of_damage = 0
        fold.offset_entries = self._state

    @property
    def offset_bound(self) -> int:
        """No bound: offsets alone don't show an entry's place."""
        return MOST

    @property
    def position_bound(self) -> int:
        """The position before the next entry's, if the fold doesn't know it."""
        entry = self._entry() if self._entries.held < self._entries.count else None
        return MOST if entry is None else entry.position - 1

    def take_damage(self, damage: Damage) -> None:
        """Skip the entries that point into an unreadable part."""
        self._advance(damage.position)
        while (entry := self._entry()) is not None and entry.position < damage.position + damage.size:
            self._state.last_position, self._state.passed_offset = entry.position, -1
            self._state.next += 1
        self._end_of_damage = damage.position + damage.size

    def take(self, batch: CheckedBatch) -> None:
        """Check the log's next batch."""
        self._advance(batch.header.position)
        entry = self._entry()
        if entry is not None and entry.position == batch.header.position:
            self._take_entry(entry, batch)
            self._state.next += 1

    def finish(self) -> None:
        """Report entries after the last batch."""
        end = max(self._fold.end, self._end_of_damage)
        while (entry := self._entry()) is not None:
            self._add(entry, f"points beyond the last batch, which ends at {end}")
            self._state.next += 1
        passed = self._passed_entry
        if passed is not None and passed.offset > self._fold.last_offset:
            self._add(passed, f"has an offset after the last offset of the log, {self._fold.last_offset}")
        self._check_stretch(end)

    @property
    def _passed_entry(self) -> OffsetIndexEntry | None:
        """The last entry whose batch was passed, unless damage came after it."""
        state = self._state
        return None if state.passed_offset < 0 else OffsetIndexEntry(state.passed_offset, state.last_position)

    def _entry(self) -> OffsetIndexEntry | None:
        """Return the next entry, or None after the last comparable one: then the fold is done with them, too."""
        entry = self._entries.at(self._state.next)
        if entry is None:
            self._state.next = max(self._state.next, self._entries.held)
        return entry

    def _advance(self, position: int) -> None:
        """Report the entries before a position that don't point at a batch."""
        while (entry := self._entry()) is not None and entry.position < position:
            self._add(entry, "doesn't point at a batch")
            self._state.next += 1

    def _take_entry(self, entry: OffsetIndexEntry, batch: CheckedBatch) -> None:
        if entry.offset < batch.base_offset:
            self._add(entry, f"points at a batch that begins at offset {batch.base_offset}")
        passed = self._passed_entry
        if passed is not None and passed.offset >= batch.base_offset:
            self._add(passed, f"has an offset of the next entry's batch, which begins at {batch.base_offset}")
        self._check_stretch(entry.position)
        self._state.passed_offset, self._state.last_position = entry.offset, entry.position

    def _check_stretch(self, end: int) -> None:
        size = end - self._state.last_position
        if size > LONGEST_STRETCH + 2 * self._fold.largest_size:
            sentence = f"no entry for {plural(size, 'byte')} of log from position {self._state.last_position} on"
            self._findings.add("index-sparse", self._path, sentence, position=None)

    def _add(self, entry: OffsetIndexEntry, what: str) -> None:
        sentence = f"the entry {entry.offset} → {entry.position} {what}"
        self._findings.add("index-entry", self._path, sentence, offsets=(entry.offset, entry.offset))


class TimeIndexCheck:
    """A comparison of a .timeindex with the batches of its log, given in order; the fold passes correct entries."""

    def __init__(self, index: TimeIndex, fold: HeaderFold, findings: Findings, *, is_closed: bool) -> None:
        self._path = index.path
        self._findings = findings
        self._is_closed = is_closed
        self._entries = _IndexEntries(index, index.entry, _time_rises, findings)
        self._state = kernel.load().TimeEntries(self._entries.content, index.base_offset, self._entries.held)
        fold.time_entries = self._state

    @property
    def offset_bound(self) -> int:
        """The offset of the next entry, if the fold doesn't know it."""
        entry = self._entry() if self._entries.held < self._entries.count else None
        return MOST if entry is None else entry.offset

    @property
    def position_bound(self) -> int:
        """No bound: positions don't show an entry's place."""
        return MOST

    def take_damage(self, _: Damage) -> None:
        """Record that a part of the log can't be read, so the largest timestamp is unknown after it."""
        self._state.has_all_times = False

    def take(self, batch: CheckedBatch) -> None:
        """Check the log's next batch."""
        state = self._state
        while (entry := self._entry()) is not None and entry.offset < batch.base_offset:
            self._check(entry)
        state.largest = max(state.largest, batch.header.max_timestamp)
        if batch.header.records_count != 0:  # the cleaner of 0.11 skipped timestamps of batches that it had emptied
            state.largest_of_records = max(state.largest_of_records, batch.header.max_timestamp)
        if batch.header.magic == 0:
            state.has_all_times = False  # a broker that stored newer messages in format 0 indexed their timestamps
        while (entry := self._entry()) is not None and entry.offset <= batch.last_offset:
            self._check(entry)

    def finish(self) -> None:
        """Report entries after the last batch, and a missing last entry."""
        state = self._state
        while (entry := self._entry()) is not None:
            self._check(entry)
        if self._is_closed and state.last_timestamp < state.largest_of_records:
            last = time_text(state.last_timestamp, none="none")
            sentence = f"its last timestamp is {last}, the segment's largest is {time_text(state.largest_of_records)}"
            self._findings.add("time-index-ends-early", self._path, sentence)

    def _entry(self) -> TimeIndexEntry | None:
        """Return the next entry, or None after the last comparable one: then the fold is done with them, too."""
        entry = self._entries.at(self._state.next)
        if entry is None:
            self._state.next = max(self._state.next, self._entries.held)
        return entry

    def _check(self, entry: TimeIndexEntry) -> None:
        state = self._state
        state.last_timestamp = entry.timestamp
        if entry.timestamp < state.largest_of_records or (state.has_all_times and entry.timestamp > state.largest):
            sentence = (
                f"the entry {time_text(entry.timestamp, none='none')} → {entry.offset} is wrong: the largest"
                f" timestamp up to that offset is {time_text(state.largest, none='none')}"
            )
            self._findings.add("time-index-entry", self._path, sentence, offsets=(entry.offset, entry.offset))
        state.next += 1


class _IndexEntries(Generic[Entry]):
    """The entries of an index while they increase: in memory or, if there are too many, read one by one.

    content: the bytes of the first `held` entries, which are all or none. count: the number of comparable entries.
    """

    def __init__(
        self,
        index: "OffsetIndex | TimeIndex",
        entry: Callable[[int], Entry],
        rises: Callable[[Entry, Entry | None], bool],
        findings: Findings,
    ) -> None:
        """Take the index, the reader of an entry, and the comparison of an entry with its predecessor."""
        self._path, self._findings = index.path, findings
        self._read: Callable[[int], Entry] = entry
        self._rises: Callable[[Entry, Entry | None], bool] = rises
        self._last: tuple[int, Entry] | None = None
        size = index.file.entry_size
        self.content = index.file.read(0, index.count * size) if index.count * size <= LARGEST_HELD else b""
        self.held = len(self.content) // size
        self.count = self.held if self.content else index.count

    def at(self, number: int) -> Entry | None:
        """Return an entry, or None after the last one, or where the file was cut meanwhile.

        Reports the first that isn't above its predecessor: the comparison ends there.
        """
        if self._last is not None and self._last[0] == number:
            return self._last[1]
        if number >= self.count:
            return None
        try:
            entry, previous = self._read(number), self._read(number - 1) if number else None
        except OpenError:
            return None
        if not self._rises(entry, previous):
            before = "" if previous is None else f" after {previous[0]} → {previous[1]}"
            sentence = f"entry {number} is {entry[0]} → {entry[1]}{before}"
            self._findings.add("index-unsorted", self._path, sentence, offsets=(entry.offset, entry.offset))
            self.count = number
            return None
        self._last = number, entry
        return entry


class ActiveIndexCheck:
    """A comparison of the preallocated index of an active segment: all contradictions of the log are one note.

    A broker that recovers or truncates a log starts the index again without clearing its old entries. Only its memory
    knows the end of its own entries; later ones are removed when it closes the file, or recovers again.
    """

    def __init__(self, check: OffsetIndexCheck | TimeIndexCheck, found: Findings, findings: Findings) -> None:
        """Take a check that adds to `found`; add the result to `findings`."""
        self._check, self._found, self._findings = check, found, findings

    @property
    def offset_bound(self) -> int:
        """The check's bound."""
        return self._check.offset_bound

    @property
    def position_bound(self) -> int:
        """The check's bound."""
        return self._check.position_bound

    def take_damage(self, damage: Damage) -> None:
        """Pass a damage on."""
        self._check.take_damage(damage)

    def take(self, batch: CheckedBatch) -> None:
        """Pass the log's next batch on."""
        self._check.take(batch)

    def finish(self) -> None:
        """Report the first entry that contradicts the log."""
        self._check.finish()
        first = next(self._found.all(is_compacted=False), None)
        if first is not None:
            offsets = (first.first_offset, first.last_offset)
            self._findings.add("index-old-entries", first.file, first.sentence, offsets=offsets)


IndexCheck = OffsetIndexCheck | TimeIndexCheck | ActiveIndexCheck


def _offset_rises(entry: OffsetIndexEntry, previous: OffsetIndexEntry | None) -> bool:
    if previous is None:
        return entry.position >= 0
    return entry.offset > previous.offset and entry.position > max(previous.position, -1)


def _time_rises(entry: TimeIndexEntry, previous: TimeIndexEntry | None) -> bool:
    return previous is None or (entry.timestamp > previous.timestamp and entry.offset >= previous.offset)


@contextmanager
def unreadable_index(path: Path, findings: Findings) -> Iterator[None]:
    """Report an index that can't be opened or read in the block; ignore one that is deleted meanwhile."""
    try:
        yield
    except OpenError as error:
        if path.exists():
            findings.add("index-unreadable", path, error.message, position=error.position)


def check_index_file(file: EntryFile, count: int, findings: Findings, *, is_closed: bool) -> None:
    """Check the file itself: bytes after its last complete entry, its zero tail, entries after zeros.

    Raises UnreadableError if the disk can't read the entries, so that later readers needn't expect that.
    """
    path = as_path(file.name)
    entry_size = (file.size - file.trailing) // file.capacity if file.capacity else 0
    file.check_readable(count)
    if file.trailing:
        sentence = f"{plural(file.size, 'byte')}; the last {file.trailing} aren't a complete entry"
        findings.add("index-cut", path, sentence, position=file.size - file.trailing)
    if count == file.capacity:
        return
    written = count * entry_size
    if file.first_content(written, file.capacity * entry_size) is not None:
        findings.add("index-unsorted", path, f"there are entries after zeros at entry {count}", position=written)
    elif is_closed:
        sentence = f"{file.capacity - count} of {plural(file.capacity, 'entry is', 'entries are')} zeros"
        findings.add("index-preallocated", path, sentence, position=written)


def check_missing_indexes(path: Path, *, is_missing: bool, size: int, findings: Findings) -> None:
    """Report an index that should exist and doesn't."""
    if is_missing and size:
        findings.add("index-missing", path, f"the file is missing for a log of {plural(size, 'byte')}")
