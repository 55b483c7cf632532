"""Where the partitions of an internal topic lie."""

from pathlib import Path

from kseg.errors import OpenError
from kseg.log.log_dir import LogDir, NoPartitionError, holds_segments
from kseg.log.partition import PartitionLog


def topic_partitions(path: Path, topic: str) -> list[PartitionLog]:
    """A topic's partitions that are in use: those in a log directory, by number, or the partition that the path is.

    A directory with segments is taken at its word, whatever it is called: it may have been copied from elsewhere.

    Raises:
        OpenError: there is no such directory, or a log directory without that topic.
    """
    if not path.is_dir():
        raise OpenError("is no directory" if path.exists() else "no such file or directory", path)
    if holds_segments(path):
        return [PartitionLog(path)]
    log_dir = LogDir(path)
    if not log_dir.directories:
        raise NoPartitionError(path)
    found = [log for log in log_dir.partitions() if log.topic == topic and log.state is None]
    if not found:
        raise OpenError(f"holds neither segments nor a directory {topic}-0, {topic}-1, …", path)
    return found
