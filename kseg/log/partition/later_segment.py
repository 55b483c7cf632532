"""Whether a log is the last one of its directory: zeros at its end mean something else then."""

import os
from pathlib import Path

from kseg.formats.names import FileKind, parse_file_name


def has_later_segment(log: Path) -> bool:
    """Whether the directory of a log has a segment with a higher base offset; False if that isn't known."""
    own = parse_file_name(log).base_offset
    try:
        names = [parse_file_name(name) for name in os.listdir(log.absolute().parent)]  # noqa: PTH208  names will do
    except OSError:
        return False
    return own is not None and any(
        name.kind is FileKind.LOG and name.suffix is None and (name.base_offset or 0) > own for name in names
    )
