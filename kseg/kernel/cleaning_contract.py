"""What both kernels offer to compaction: the table of the last offsets of keys, and what it does to batches."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from kseg.kernel.contract import Bodies, Buffer, Rows
from kseg.kernel.fold_contract import FoldingKernel, ProducerTable

ENTRY_SIZE = 24
"""Bytes of a slot: a key's digest and its offset."""
DIGEST_SIZE = 16


class OffsetTable(Protocol):
    """Maps the digests of keys to offsets from 0 on, in memory that is given.

    latest_offset: it has all keys of the log up to here; -1 at first. is_full: there is no room for another key.
    kept, superseded, without_key: records that `keep` and `rest` have judged. producers: active ones; the batch with
    the last record of one isn't left out, nor is the batch before end_offset.
    """

    latest_offset: int
    end_offset: int
    producers: ProducerTable
    is_full: bool
    kept: int
    superseded: int
    without_key: int

    def __init__(self, memory: Buffer, most: int, digest: Callable[[bytes], bytes], function: int = 0) -> None:
        """Takes memory that is all zero.

        Args:
            memory: slots of ENTRY_SIZE bytes.
            most: keys that it may hold; fewer than there are slots.
            digest: gives the DIGEST_SIZE bytes by which keys are told apart.
            function: address of a C function that does the same: it takes a key, its size and where to put the digest,
                and returns NULL if it can't. 0 if there is none.
        """

    def put(self, key: bytes, offset: int) -> None:
        """Sets a key's offset. Raises IndexError if there is no room."""

    def get(self, key: bytes) -> int:
        """A key's offset, -1 if it isn't there."""

    def add(
        self,
        buffer: memoryview,
        rows: Rows,
        first: int,
        last: int,
        bodies: Bodies | None,
        first_body: int,
        first_offset: int,
    ) -> int:
        """Sets the offsets of the keys of all records, from an offset on.

        Args:
            buffer: where the rows lie.
            rows: the table.
            first: first row.
            last: row before which to end.
            bodies: of the rows, as for Renderer.render.
            first_body: the row of the first body.
            first_offset: records below aren't looked at.

        Returns:
            The row where it stopped: `last`, or the first with a key for which there is no room, or whose records can't
            all be read. What is before that is in the table then.
        """

    def keep(
        self,
        buffer: memoryview,
        rows: Rows,
        first: int,
        last: int,
        bodies: Bodies | None,
        first_body: int,
        target: bytearray,
        target_rows: Rows,
    ) -> tuple[int, int]:
        """Copies the batches that lose no record, and leaves out those that lose all.

        A record is superseded if the table has a larger offset for its key; those without a key go too. None of those
        above `latest_offset` goes. A batch with a null value that would stay has to be looked at.

        Args:
            buffer: where the rows lie.
            rows: the table.
            first: first row.
            last: row before which to end.
            bodies: of the rows, as for Renderer.render.
            first_body: the row of the first body.
            target: where the copies go, one after another; as large as all rows together.
            target_rows: their rows; as many as there are.

        Returns:
            The row where it stopped: `last`, or the first that has to be looked at, since it loses some records or
            has none, since its header stays, or since its records can't all be read; and the count of copies.
        """

    def rest(
        self, buffer: memoryview, rows: Rows, row: int, bodies: Bodies | None, first_body: int
    ) -> tuple[bytes, int, int, int] | None:
        """What is left of a v2 batch that loses some of its records.

        Args:
            buffer: where the row lies.
            rows: the table.
            row: the row.
            bodies: of the rows, as for Renderer.render.
            first_body: the row of the first body.

        Returns:
            The bytes of the records that stay, how many they are, the base timestamp to which theirs are relative now,
            and the largest of theirs. That base is the batch's delete horizon if it has one, else the first timestamp
            left. None, and nothing is counted, if no record stays, one of those that do has a null value, not all can
            be read, or it isn't a v2 batch.
        """


_OffsetTable: TypeAlias = OffsetTable


class CleaningKernel(FoldingKernel, Protocol):
    """A kernel, with the part that compacts."""

    OffsetTable: type[_OffsetTable]
