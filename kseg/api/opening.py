"""Opens paths: files of batches, partitions' directories, log directories, also in archives."""

import os
from collections.abc import Iterable, Mapping
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
from kseg.tiered.places import tier_at


def open(  # noqa: A001  it is kseg.open
    path: str | os.PathLike[str],
    *more: str | os.PathLike[str],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    remote: str | Iterable[str] = (),
    private_keys: Mapping[str, str | os.PathLike[str]] | None = None,
) -> LogDirectory | Partition | Segment:
    """Opens a log directory, a parent of such, a partition's directory, or a segment; several paths as a LogDirectory.

    Paths may lead into archives (`support.tar.gz/orders-0`): what is needed of them is unpacked into TMPDIR until the
    result is closed, or collected as garbage. They may be remote tiers, too: directories of their objects, or s3://… .

    Args:
        path: what to open.
        more: further disks of the same broker, or further brokers' disks.
        topic: names or globs of the topics that are meant; with this or `partition` the result is a LogDirectory.
        partition: numbers of the partitions that are meant.
        remote: remote tiers that have the older segments of what is opened.
        private_keys: files of private keys that decrypt segments of tiers, by the keys' ids.

    Raises:
        OpenError: a path isn't there, or can't be opened; there is nothing of Kafka's.
        UsageError: there are partitions, but none that is meant; a private key's file holds none.
        ClusterError: an object store failed.
    """
    topics = (topic,) if isinstance(topic, str) else tuple(topic)
    numbers = (partition,) if isinstance(partition, int) else partition
    choice = PartitionChoice(topics, tuple(range(number, number + 1) for number in numbers))
    paths = [os.fspath(each) for each in (path, *more)]
    remotes = (remote,) if isinstance(remote, str) else tuple(remote)
    if not remotes and not any(leads_inside(each) or tier_at(each) is not None for each in paths):
        return _opened(paths, choice)
    from kseg.archive.inputs import Inputs
    from kseg.log.partition.remote_logs import RemoteLogs

    with ExitStack() as stack:
        inputs = stack.enter_context(Inputs(warn))
        keys = {key_id: Path(file) for key_id, file in (private_keys or {}).items()}
        logs = stack.enter_context(RemoteLogs(keys, warn, choice))
        opened = _opened([logs.local(inputs.local(each), remotes) for each in paths], choice)
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
