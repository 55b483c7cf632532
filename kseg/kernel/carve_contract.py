"""The contract of both kernels for carving: batches at any byte of an image, and pieces that fit together."""

from enum import IntEnum
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
"""The most middles that `find_middles` returns for one search."""


class OfMiddle(IntEnum):
    """Values of a search for the middle of a batch, a row of `find_middles`.

    FIRST_BREAK, BREAKS: place and number of its `wanted_crcs`. FIRST_REST, RESTS: those of its `rest_crcs`, or of a
    single 0 if the middle has the end of the batch. MOST_BLOCKS: blocks between the first break and the least rest.
    LEAST_REST, PADDING: bytes of the least rest; zeros between the end of the batch and that of its block. FIRST_BLOCK,
    LAST_BLOCK: the number of the first block to search, and of the block after the last one.
    """

    FIRST_BREAK = 0
    BREAKS = 1
    FIRST_REST = 2
    RESTS = 3
    MOST_BLOCKS = 4
    LEAST_REST = 5
    PADDING = 6
    FIRST_BLOCK = 7
    LAST_BLOCK = 8


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

    def find_copies(self, rows: "array[int]", count: int) -> list[tuple[int, int]]:
        """Return each row whose base offset, size and CRC an earlier row has, with the first such row."""

    def wanted_crcs(self, head: memoryview, size: int, crc: int, first: int, block: int) -> list[int]:
        """Return the CRC that the rest of a batch must have for each break: first, first + block, … bytes of `head`.

        These begin with 0 and aren't inverted. size, crc: of the batch, to which at least one byte after each break
        belongs. A break before CRC_START needs the bytes of `head` up to there.
        """

    def rest_crcs(self, ending: memoryview, least: int, block: int) -> list[int]:
        """Return the CRCs of the last least, least + block, … bytes of `ending`.

        They begin with 0 and aren't inverted.
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
        searches: "array[int]",
        wanted: "array[int]",
        rests: "array[int]",
        positions: memoryview,
        crcs: memoryview,
        block: int,
    ) -> list[tuple[int, int, int, int]]:
        """Return the adjacent blocks that fit between the beginning and the rest of a batch.

        Each as number of the search, of its break, of the first block, and of blocks; at most MOST_MIDDLES per search,
        those with the fewest blocks. searches: rows of the values of OfMiddle. wanted, rests: uint32. positions: int64,
        of all blocks. crcs: uint32, those by `chain_crcs` before the first block and up to each.
        """

    def find_checkpoints(self, buffer: memoryview, most: int) -> list[int]:
        """Return the positions of the first `most` offset checkpoints with entries, as OFFSET_CHECKPOINT_START says."""

    def find_signatures(self, buffer: memoryview, signatures: "Sequence[Signature]") -> list[tuple[int, int]]:
        """Return the number and the position of each signature that is at one of its places.

        The positions of one signature ascend. Slots divide the largest one, which has at most 64 places.
        """
