"""Opens paths: files of batches, partitions' directories, log directories, also in archives."""

import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from kseg.api.kseg_warning import warn
from kseg.api.log_directory import LogDirectory
from kseg.api.partition import Partition
from kseg.api.segment import Segment
from kseg.archive.paths import leads_inside
from kseg.errors import OpenError
from kseg.formats.names import LOG_KINDS, parse_file_name
from kseg.log.partition.log_dir import directory_at
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.log.partition.partition_log import PartitionLog


def open(  # noqa: A001  it is kseg.open
    path: str | os.PathLike[str],
    *more: str | os.PathLike[str],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
) -> LogDirectory | Partition | Segment:
    """Opens a log directory, a parent of such, a partition's directory, or a segment; several paths as a LogDirectory.

    Paths may lead into archives (`support.tar.gz/orders-0`): what is needed of them is unpacked into TMPDIR until the
    result is closed, or collected as garbage.

    Args:
        path: what to open.
        more: further disks of the same broker, or further brokers' disks.
        topic: names or globs of the topics that are meant; with this or `partition` the result is a LogDirectory.
        partition: numbers of the partitions that are meant.

    Raises:
        OpenError: a path isn't there, or can't be opened; there is nothing of Kafka's.
        UsageError: there are partitions, but none that is meant.
    """
    topics = (topic,) if isinstance(topic, str) else tuple(topic)
    numbers = (partition,) if isinstance(partition, int) else partition
    choice = PartitionChoice(topics, tuple(range(number, number + 1) for number in numbers))
    paths = [os.fspath(each) for each in (path, *more)]
    if not any(map(leads_inside, paths)):
        return _opened(paths, choice)
    from kseg.archive.inputs import Inputs

    with ExitStack() as stack:
        inputs = stack.enter_context(Inputs(warn))
        opened = _opened([inputs.local(each) for each in paths], choice)
        opened.close_with(stack.pop_all())
        return opened


def _opened(paths: list[str], choice: PartitionChoice) -> LogDirectory | Partition | Segment:
    if len(paths) > 1 or not choice.is_everything:
        return LogDirectory(map(Path, paths), choice)
    path = Path(paths[0])
    directory, is_partition = directory_at(path)
    if path.is_file():
        if parse_file_name(path).kind not in LOG_KINDS:
            raise OpenError("is no log: give its directory; kseg.open_segment reads any file as a log", path)
        return Segment(path)
    return Partition(PartitionLog(directory)) if is_partition else LogDirectory([path])


def open_segment(path: str | os.PathLike[str]) -> Segment:
    """Opens a file of batches, whatever its name. Raises OpenError if it can't be opened."""
    return Segment(path)
