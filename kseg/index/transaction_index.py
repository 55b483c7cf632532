"""The transaction index (.txnindex): the aborted transactions of a segment."""

import os
from collections.abc import Iterator
from pathlib import Path

from kseg.formats.entries import TRANSACTION_INDEX_VERSION, AbortedTransaction
from kseg.formats.header_fields import TRANSACTION_INDEX_ENTRY_FIELDS
from kseg.formats.names import parse_file_name
from kseg.index.entry_file import EntryFile


class TransactionIndex:
    """A .txnindex, open for reading; a context manager. It is never preallocated.

    base_offset, size, trailing: as in OffsetIndex; count: whole entries. Source: TransactionIndex.
    """

    def __init__(self, path: str | os.PathLike[str], base_offset: int | None = None) -> None:
        """Opens the file. Raises OpenError if it can't be opened."""
        self.file = EntryFile(path, TRANSACTION_INDEX_ENTRY_FIELDS)
        self.base_offset = base_offset if base_offset is not None else parse_file_name(path).base_offset or 0
        self.size, self.count, self.trailing = self.file.size, self.file.capacity, self.file.trailing

    @property
    def path(self) -> Path:
        """The file's path."""
        return Path(self.file.name)

    def close(self) -> None:
        """Closes the file."""
        self.file.close()

    def __enter__(self) -> "TransactionIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entries(self) -> Iterator[AbortedTransaction]:
        """All whole entries, in file order; only the first of the zeros in a hole of the file."""
        for _, entry in self._numbered():
            yield entry

    def _numbered(self) -> Iterator[tuple[int, AbortedTransaction]]:
        for slot, piece in self.file.stored_pieces():
            yield from enumerate(map(AbortedTransaction._make, piece), slot)

    def aborted(self, start: int, end: int) -> Iterator[AbortedTransaction]:
        """Aborted transactions that overlap the offsets from `start` to below `end`.

        Ends at the first entry whose last stable offset is at or above `end`: no later one can overlap the range.
        Source: TransactionIndex.collectAbortedTxns.
        """
        for entry in self.entries():
            if entry.last_offset >= start and entry.first_offset < end:
                yield entry
            if entry.last_stable_offset >= end:
                return

    def sanity_problem(self) -> str | None:
        """What a broker's check at start says; None if it passes. Source: TransactionIndex.sanityCheck."""
        for number, entry in self._numbered():
            if entry.version > TRANSACTION_INDEX_VERSION:
                return f"entry {number} has version {entry.version}, known is {TRANSACTION_INDEX_VERSION}"
            if entry.last_offset < self.base_offset:
                return f"the last offset of entry {number} is {entry.last_offset}, below the base {self.base_offset}"
        if self.trailing:
            return f"{self.size} bytes, not a multiple of 34: last {self.trailing} ignored"
        return None
