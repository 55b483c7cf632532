"""Completion at the prompt: the Tab key offers SQL's words, and the names of views, tables, columns and functions.

Python's own readline does it: another library would cost more at the start than it gives here.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

_DELIMITERS = " \t\n()[]{},;:=<>!|&+-*/%'."
_MOST = 500
"""Words that are offered at most."""


def completer(words: Sequence[str]) -> Callable[[str, int], str | None]:
    """What readline asks: for a beginning, the first word that completes it, the second, and so on, then None."""

    def complete(beginning: str, number: int) -> str | None:
        small = beginning.lower()
        found = [word for word in words if word.lower().startswith(small)][:_MOST]
        return found[number] if number < len(found) else None

    return complete


@contextmanager
def completed(words: Sequence[str]) -> Iterator[None]:
    """Lets `input` complete words at a terminal, where the system has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    before, delimiters = readline.get_completer(), readline.get_completer_delims()
    readline.set_completer(completer(words))
    readline.set_completer_delims(_DELIMITERS)
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    try:
        yield
    finally:
        readline.set_completer(before)
        readline.set_completer_delims(delimiters)
