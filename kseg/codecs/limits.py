"""Limits of the sizes of decompressed bodies."""

DEFAULT_LIMIT = 1 << 30
"""The most bytes of one decompressed body (`--max-decompressed`)."""
LARGEST_RATIO = 1000
"""The largest ratio of a body's decompressed size, to which LARGEST_RATIO_FREE bytes are added."""
LARGEST_RATIO_FREE = 1 << 20


def limit_for(size: int, limit: int = DEFAULT_LIMIT, free: int = LARGEST_RATIO_FREE) -> int:
    """Return the most bytes that a body of `size` compressed bytes may become."""
    return min(limit, LARGEST_RATIO * size + free)
