"""Segments that a log cleaner or a split had finished, when the broker died before it gave them their names.

Such a segment is whole: old ones are renamed to `.deleted`, or are to be, and `N.log.swap` has what is left of them. A
broker that starts completes the swap, and so does a listing. Source: LogLoader.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kseg.formats.names import FileKind

SWAP = ".swap"
CLEANED = ".cleaned"
File = TypeVar("File")


def swapped_in(
    named: Iterable[tuple[FileKind, int, str, File]],
    found: Mapping[FileKind, dict[int, File]],
    next_offset: Callable[[int, File], int | None],
) -> None:
    """Completes swaps in the files of segments, by kind and base offset: logs and their indexes.

    A swap at or above the lowest `.cleaned` file is one of a split that wasn't finished: a broker drops it too. One
    that has no intact batch isn't taken where there is a log of its base offset, which can be read.

    Args:
        named: files with a suffix: kind, base offset, suffix.
        found: files without one.
        next_offset: gives the offset after a log's last batch; None if it has none that can be read.
    """
    named = list(named)
    logs = found[FileKind.LOG]
    taken: list[tuple[int, int]] = []
    for base in complete_swaps(each[:3] for each in named):
        log = next(each[3] for each in named if each[:3] == (FileKind.LOG, base, SWAP))
        end = next_offset(base, log)
        if end is not None or base not in logs:
            taken.append((base, base if end is None else end))
    if not taken:
        return
    first, end = taken[0][0], max(end for _, end in taken)
    for files in found.values():
        for base in [base for base in files if first <= base < end or any(base == own for own, _ in taken)]:
            del files[base]
    bases = {base for base, _ in taken}
    for kind, base, suffix, file in named:
        if suffix == SWAP and base in bases and kind in found:
            found[kind][base] = file


def complete_swaps(names: Iterable[tuple[FileKind, int, str]]) -> list[int]:
    """The base offsets of the logs that are to be swapped in, by kinds, base offsets and suffixes of files."""
    names = list(names)
    unfinished = min((base for _, base, suffix in names if suffix == CLEANED), default=None)
    swaps = sorted(base for kind, base, suffix in names if kind is FileKind.LOG and suffix == SWAP)
    return [base for base in swaps if unfinished is None or base < unfinished]
