"""How paths are told that aren't those of the user: files out of an archive, or from standard input.

Whatever prints a path of an input asks here. The names stand in one table of the process, since paths are told by every
part of it, and of the parts in between none needs to know where a file came from.
"""

_NAMES: dict[str, str] = {}


def show_as(path: str, name: str) -> None:
    """From now on a path, and what is below it, is told by a name; a name for a longer path goes first."""
    _NAMES[path] = name
    for each in sorted(_NAMES, key=len):
        _NAMES[each] = _NAMES.pop(each)


def forget(path: str) -> None:
    """The path is gone."""
    _NAMES.pop(path, None)


def shown(text: str) -> str:
    """A text with names in the place of paths that stand for something else."""
    for path, name in reversed(_NAMES.items()):
        if path in text:
            text = text.replace(path, name)
    return text
