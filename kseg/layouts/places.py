"""What is the same in all lines of a log: its path, its topic and its partition."""

from os import PathLike, fspath
from pathlib import Path

from kseg.archive.shown_paths import shown
from kseg.formats.names import parse_partition_directory
from kseg.output.record_columns import PLACE_COLUMNS


def log_place(path: str | PathLike[str]) -> dict[str, str | int | None]:
    """The values of PLACE_COLUMNS: the path as it is shown, topic and partition by the name of its directory."""
    directory = parse_partition_directory(Path(path).absolute().parent)
    topic, partition = (None, None) if directory is None else (directory.topic, directory.partition)
    return dict(zip(PLACE_COLUMNS, (shown(fspath(path)), topic, partition), strict=True))
