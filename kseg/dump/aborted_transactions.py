"""Prints .txnindex files. Source: DumpLogSegments, TransactionIndex, AbortedTxn."""

from typing import TYPE_CHECKING

from kseg.formats.fixed import ABORTED_TRANSACTION_FIELDS, TRANSACTION_INDEX_VERSION
from kseg.index.entry_file import EntryFile
from kseg.layouts.indexes import TRANSACTION_INDEX_LINE as LINE

if TYPE_CHECKING:
    from kseg.dump.options import DumpContext


def dump_transaction_index(path: str, context: "DumpContext") -> None:
    """Prints a `.txnindex`. Raises OpenError if it can't be opened."""
    unknown, falling, previous = 0, 0, -1
    count = 0
    with EntryFile(path, ABORTED_TRANSACTION_FIELDS) as index:
        for piece in index.pieces() if context.options.like else (piece for _, piece in index.stored_pieces()):
            count += len(piece)
            lines = []
            for version, producer_id, first_offset, last_offset, last_stable_offset in piece:
                shown = version >> 8  # AbortedTxn reads the first of the version's two bytes alone
                lines.append(LINE.format(shown, producer_id, first_offset, last_offset, last_stable_offset))
                unknown += version != TRANSACTION_INDEX_VERSION
                falling += last_offset <= previous
                previous = last_offset
            context.output.write("".join(lines).encode())
        if count < index.capacity:
            context.add_problem(path, f"{index.capacity - count} entries are zeros in holes of the file, not printed")
        if index.trailing:
            context.add_problem(path, f"the last {index.trailing} of its {index.size} bytes are no whole entry")
    if unknown:
        context.add_problem(path, f"entries whose version isn't {TRANSACTION_INDEX_VERSION}: {unknown}")
    if falling:
        context.add_problem(path, f"entries whose last offset isn't above that of the entry before: {falling}")
