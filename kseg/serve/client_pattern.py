"""Regular expressions that clients send, in RE2's language: matched in time that grows with the text alone."""

from typing import Protocol

from kseg.errors import KsegError, missing_library

LONGEST_PATTERN = 512
"""Characters."""
_MOST_MEMORY = 1 << 20
"""Bytes that an expression and its matching may take."""


class PatternError(KsegError):
    """An expression that is none, is too large, or can't be matched here."""


class ClientPattern(Protocol):
    """An expression that matches whole texts."""

    @property
    def pattern(self) -> str:
        """As the client wrote it."""

    def fullmatch(self, text: str) -> object:
        """Something true if it matches."""


def compile_pattern(text: str) -> ClientPattern:
    """The expression, as google-re2 has it. Raises PatternError."""
    try:
        import re2
    except ImportError as error:
        raise PatternError(missing_library("google-re2", "patterns")) from error
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    if len(text) > LONGEST_PATTERN:
        raise PatternError(f"an expression of {len(text)} characters; the limit is {LONGEST_PATTERN}")
    try:
        found: ClientPattern = re2.compile(text, options)
    except (re2.error, UnicodeError) as error:
        raise PatternError(f"not an expression: {error}") from error
    return found
