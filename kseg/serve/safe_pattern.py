"""Patterns that clients send: only those that can't keep a thread busy for long, as Python's expressions may."""

import re

LONGEST = 256
_MOST_REPEATS = 4
"""Each one may multiply the time by the text's length."""
_REPEAT = re.compile(r"[*+?{]")
_COSTLY = re.compile(r"\)[*+?{]|\\[1-9]|\(\?(?!i\)|:|P<)")
"""Repeated groups, references back, looking around: brokers' own expressions (RE2) take the first in constant space."""


class PatternError(ValueError):
    """A pattern that isn't one, or is refused."""


def compile_pattern(text: str) -> re.Pattern[str]:
    """The pattern, which is to match a whole text. Raises PatternError."""
    if len(text) > LONGEST or _COSTLY.search(text) or len(_REPEAT.findall(text)) > _MOST_REPEATS:
        raise PatternError("too long, or takes too long")
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(str(error)) from error
