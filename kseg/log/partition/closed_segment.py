"""Whether a log may still have been written to: zeros at its end mean something else then."""

import os
from pathlib import Path

from kseg.formats.names import FileKind, parse_file_name
from kseg.tiered.placed_tiers import placed_at


def was_closed(log: Path) -> bool:
    """Whether a log's segment is in a remote tier, or a later one beside it; False if that isn't known."""
    own = parse_file_name(log).base_offset
    placed = placed_at(log.parent)
    if placed is not None and own is not None and placed.used_at(own) is not None:
        return True
    try:
        names = [parse_file_name(name) for name in os.listdir(log.absolute().parent)]  # noqa: PTH208  names will do
    except OSError:
        return False
    return own is not None and any(
        name.kind is FileKind.LOG and name.suffix is None and (name.base_offset or 0) > own for name in names
    )
