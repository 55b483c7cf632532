"""Checks .txnindex files and prints them. Source: DumpLogSegments, TransactionIndex, AbortedTxn."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kseg.formats.entries import TRANSACTION_INDEX_VERSION, AbortedTransaction
from kseg.formats.header_fields import TRANSACTION_INDEX_ENTRY_FIELDS
from kseg.index.entry_file import EntryFile
from kseg.layouts.indexes import TRANSACTION_INDEX_LINE as LINE

if TYPE_CHECKING:
    from kseg.dump.found import Found
    from kseg.dump.options import DumpContext


def dump_transaction_index(path: str, context: "DumpContext") -> None:
    """Prints a `.txnindex`. Raises OpenError if it can't be opened."""
    for piece in checked_transactions(path, context.found, reads_holes=context.options.like is not None):
        context.output.write("".join([_line(entry) for entry in piece]).encode())


def _line(entry: AbortedTransaction) -> str:
    shown = entry.version >> 8  # AbortedTxn reads the first of the version's two bytes alone
    return LINE.format(shown, *entry[1:])


def checked_transactions(path: str, found: "Found", *, reads_holes: bool = False) -> Iterator[list[AbortedTransaction]]:
    """The entries of a `.txnindex`; what is wrong with them is noted once all were taken.

    `reads_holes`: zeros in holes of the file are entries too. Raises OpenError if it can't be opened.
    """
    unknown, falling, previous = 0, 0, -1
    count = 0
    with EntryFile(path, TRANSACTION_INDEX_ENTRY_FIELDS) as index:
        for stored in index.pieces() if reads_holes else (piece for _, piece in index.stored_pieces()):
            count += len(stored)
            piece = list(map(AbortedTransaction._make, stored))
            for entry in piece:
                unknown += entry.version != TRANSACTION_INDEX_VERSION
                falling += entry.last_offset <= previous
                previous = entry.last_offset
            yield piece
        if count < index.capacity:
            found.add_problem(path, f"{index.capacity - count} entries are zeros in holes of the file, not printed")
        if index.trailing_problem is not None:
            found.add_problem(path, index.trailing_problem)
    if unknown:
        found.add_problem(path, f"entries whose version isn't {TRANSACTION_INDEX_VERSION}: {unknown}")
    if falling:
        found.add_problem(path, f"entries whose last offset isn't above that of the entry before: {falling}")
