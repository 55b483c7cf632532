"""What each release's tool prints of .index, .timeindex and .txnindex files, and what it compares.

Lines have Python's `{holes}`; each table says what changed when.
"""

from enum import Enum

from kseg.releases import Since

OFFSET_INDEX_LINE = "offset: {} position: {}\n"
TIME_INDEX_LINE = "timestamp: {} offset: {}\n"
TRANSACTION_INDEX_LINE = "version: {} producerId: {} firstOffset: {} lastOffset: {} lastStableOffset: {}\n"
SANITY_PASSED = "{path} passed sanity check."
IS_EMPTY = "{path} is empty."

SAYS_EMPTY: Since[bool] = (((0, 8), False), ((2, 8), True))
"""Whether the tool says that an .index without entries is empty, also instead of its sanity check."""


class Compared(Enum):
    """Which offset of the batch at an .index entry's position must equal the entry's offset."""

    FIRST_RECORD = "offset of its first record"
    LAST_OFFSET = "last offset"


COMPARED: Since[Compared] = (((0, 8), Compared.FIRST_RECORD), ((2, 3), Compared.LAST_OFFSET))

STOPS_BEFORE_ZERO_ENTRY: Since[bool] = (((0, 8), False), ((2, 3), True))
"""Whether a zero entry (after the first) ends the dump at once.

Earlier releases compare it first; then an .index ends, but a .timeindex only if a batch ends at the base offset.
"""

LAST_OFFSET_ABOVE_BASE: Since[bool] = (((0, 8), True), ((2, 0), False))
"""Whether an .index is sane only if its last offset lies above the base offset; later it may be the base offset."""
