"""The log files of an internal topic's partition, in order."""

from pathlib import Path

from kseg.errors import OpenError
from kseg.formats.names import FileKind, parse_file_name, parse_partition_directory


def partition_directories(path: Path, topic: str) -> list[Path]:
    """The directories of a topic's partitions in a log directory, by partition; or the path itself, if it is one.

    A path that isn't a directory of partitions of any topic is taken at its word: it may have been renamed.

    Raises:
        OpenError: there is no such directory, or a log directory without that topic.
    """
    if not path.is_dir():
        raise OpenError("is no directory" if path.exists() else "no such file or directory", path)
    if segment_files(path):
        return [path]
    found = {}
    for directory in path.iterdir():
        name = parse_partition_directory(directory)
        if name is not None and name.topic == topic and name.state is None and directory.is_dir():
            found[name.partition] = directory
    if not found:
        raise OpenError(f"holds neither segments nor a directory {topic}-0, {topic}-1, …", path)
    return [found[partition] for partition in sorted(found)]


def segment_files(directory: Path) -> list[Path]:
    """The log files of a partition directory that are in use, by base offset."""
    found = []
    for path in directory.iterdir():
        name = parse_file_name(path)
        if name.kind is FileKind.LOG and name.suffix is None and name.base_offset is not None and path.is_file():
            found.append((name.base_offset, path))
    return [path for _, path in sorted(found)]
