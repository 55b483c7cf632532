"""The words of the tool's reports on stderr, release by release, and the order of their lines."""

from kseg.releases import Since

MISMATCHES = "Mismatches in :{path}"
MISMATCH = "  Index offset: {}, log offset: {}"
TIMESTAMP_MISMATCHES = "Found timestamp mismatch in :{path}"
TIMESTAMP_MISMATCH = "  Index timestamp: {}, log timestamp: {}"
OUT_OF_ORDER_TIMESTAMPS = "Found out of order timestamp in :{path}"
OUT_OF_ORDER_TIMESTAMP = "  Index timestamp: {}, Previously indexed timestamp: {}"
OFFSETS_NOT_FOUND: Since[str] = (
    ((0, 8), "The following indexed offsets are not found in the log."),
    ((4, 3), "The following indexed offsets are not found in :{path}"),
)
OFFSET_NOT_FOUND = "Indexed offset: {}, found log offset: {}"
NON_CONSECUTIVE: Since[str] = (
    ((0, 8), "Non-secutive offsets in :{path}"),
    ((0, 11), "Non-consecutive offsets in :{path}"),
    ((2, 3), "Non-consecutive offsets in {path}"),
)
FOLLOWED_BY = "  {} is followed by {}"

LAST_FOUND_FIRST: Since[bool] = (((0, 8), True), ((4, 3), False))
"""Order of mismatches and gaps; from 4.3 on, each offset appears once, mismatches descend and gaps ascend."""
