"""Shows the user's paths instead of temporary ones, for files from an archive or from standard input.

Everything that prints a path of an input asks here. The names are in one table for the process: every part of it prints
paths, and no part in between needs to know where a file came from.
"""

_NAMES: dict[str, str] = {}


def show_as(path: str, name: str) -> None:
    """From now on, shows a path, and everything below it, under a name; a name for a longer path goes first."""
    _NAMES[path] = name
    for each in sorted(_NAMES, key=len):
        _NAMES[each] = _NAMES.pop(each)


def forget(path: str) -> None:
    """Forgets a path that is gone."""
    _NAMES.pop(path, None)


def shown(text: str) -> str:
    """A text with the user's names in place of temporary paths."""
    if not _NAMES:
        return text
    for path, name in reversed(_NAMES.items()):
        if path in text:
            text = text.replace(path, name)
    return text
