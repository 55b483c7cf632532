"""The contract of both kernels for carving: batches at any byte of an image, and pieces that fit together."""

from typing import TYPE_CHECKING, Protocol

from kseg.formats.header_fields import BATCH_HEADER_FIELDS, HEADER_NAMES
from kseg.kernel.statistics_contract import StatisticsKernel

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from kseg.formats.extent_lists import Signature

HEADER_VALUES = len(HEADER_NAMES)
"""Values of a carved batch: a row of these int64 values, in the order of HEADER_NAMES."""
CRC_STEP = 512
"""Bytes between two CRCs of `step_crcs`."""
LARGEST_BATCH = (64 << 20) - 1 + 12
"""The largest batch that carving finds: the first byte of its length is below 4."""
SMALL_BATCH = 4096
"""The largest batch whose CRC costs hardly more than those of steps."""
MOST_READ = 8
"""How often a byte may be read for larger messages of formats 0 and 1 with wrong CRCs, on average."""
CRC_START = 21
"""The first byte of a batch that its CRC covers: another head up to here fits the same batch."""
SURE_BREAK = BATCH_HEADER_FIELDS.position("max_timestamp")
"""The least beginning of a batch that is certainly of its file: the CRC in it is that of the other bytes.

The bytes after the CRC may be the same in partitions written in lockstep.
"""
SURE_REST = 32
"""The least rest of a batch that is certainly of its file: other partitions' batches may end with the same headers."""
MOST_MIDDLES = 64
"""The most middles of a batch that `find_middles` returns."""


class CarveKernel(StatisticsKernel, Protocol):
    """A kernel with the part that carves. Only `find_batches` knows other formats than 2."""

    def step_crcs(self, buffer: memoryview, first: int, last: int, crcs: "array[int]") -> None:
        """Set `crcs[i]` to the CRC of all bytes before step i, for first < i <= last, from `crcs[first]` on.

        These CRC-32C begin with 0 and aren't inverted, so the CRC of any range follows from two of them. crcs: uint32.
        """

    def find_batches(
        self,
        buffer: memoryview,
        start: int,
        end: int,
        position: int,
        crcs: "array[int]",
        rows: "array[int]",
        count: int,
        is_last: bool,
        is_legacy: bool,
    ) -> tuple[int, int]:
        """Fill `rows` from row `count` on with the intact batches that begin at `start` or later and end by `end`.

        is_legacy: also messages of formats 0 and 1, whose key and value must fill them. Wrappers are one batch with one
        offset. After MOST_READ bytes per byte in messages with wrong CRCs, only messages up to SMALL_BATCH are found.

        Returns the count of rows and the position in the buffer where to continue: of the first batch that needs bytes
        after `end`, unless `is_last`, or of the first one for which the table has no room. The search continues behind
        an intact batch, else at the next byte. position: the buffer's in the image. crcs: of `step_crcs` up to `end`.
        """

    def split_runs(self, rows: "array[int]", count: int, block: int, phase: int) -> list[int]:
        """Return the first row of each run: of batches that certainly are in one file in this order.

        A batch belongs to the preceding one's run if it follows it inside a block, at least SURE_REST bytes after its
        start, has larger offsets, and if its first SURE_BREAK bytes are in one block. block, phase: a block begins at
        each position that is `phase` modulo `block`.
        """

    def find_copies(self, rows: "array[int]", count: int) -> list[tuple[int, int]]:
        """Return each row whose base offset, size and CRC an earlier row has, with the first such row."""

    def fit_breaks(self, head: memoryview, tail: memoryview, crc: int, first: int, step: int) -> list[int]:
        """Return each break for which the beginning of `head` and the rest of `tail` have the CRC of a batch.

        The batch is as large as `tail`. Breaks are first, first + step, … within head and tail.
        """

    def find_headless(self, tail: memoryview, block: int) -> list[tuple[int, int]]:
        """Return the batches that end with `tail`, and whose first bytes are in another block.

        Each as position and number of missing bytes (1 to 17, so that all bytes from the CRC on are there). `tail`
        begins at a block's start. Batches whose length isn't missing have the right one.
        """

    def block_crcs(self, buffer: memoryview, block: int, crcs: "array[int]") -> None:
        """Set the CRCs of a buffer's first blocks, which begin with 0 and aren't inverted; 0: only zeros."""

    def chain_crcs(self, crcs: "array[int]", block: int) -> None:
        """Replace the CRCs of blocks by those of all blocks from the first one up to each, as if they were adjacent."""

    def find_heads(self, buffer: memoryview, block: int) -> list[int]:
        """Return the positions of headers that may be those of batches that break at the end of their block.

        Their blocks have at least SURE_BREAK bytes of them; fields in these have possible values.
        """

    def find_middles(
        self,
        head: memoryview,
        tail: memoryview,
        size: int,
        crc: int,
        first: int,
        block: int,
        positions: memoryview,
        crcs: memoryview,
    ) -> list[tuple[int, int, int]]:
        """Return the adjacent blocks with which the beginning of `head` and the end of `tail` have the CRC of a batch.

        Each as bytes of the head (`first`, or some blocks more), number of the first block, and number of blocks; at
        most MOST_MIDDLES of them. size: of the batch. At least a byte of `tail` belongs to it; if `tail` is empty, the
        blocks have the end of the batch, and then zeros. positions: int64, of all blocks. crcs: uint32, those by
        `chain_crcs` before the first block and up to each.
        """

    def find_checkpoints(self, buffer: memoryview, most: int) -> list[int]:
        """Return the positions of the first `most` offset checkpoints with entries, as OFFSET_CHECKPOINT_START says."""

    def find_signatures(self, buffer: memoryview, signatures: "Sequence[Signature]") -> list[tuple[int, int]]:
        """Return the number and the position of each signature that is at one of its places.

        The positions of one signature ascend. Slots divide the largest one, which has at most 64 places.
        """
