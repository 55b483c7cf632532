"""Warnings about what a caller should know."""

import warnings


class KsegWarning(UserWarning):
    """Something to know about a result, such as an index that wasn't trusted, or files that couldn't be read."""


def warn(text: str) -> None:
    """Issues a KsegWarning."""
    warnings.warn(text, KsegWarning, stacklevel=2)
