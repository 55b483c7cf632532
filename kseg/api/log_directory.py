"""Log directories, opened: one, or all disks of a broker."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from kseg.api.directories import Directories
from kseg.api.kseg_warning import warn
from kseg.api.partition import Partition
from kseg.api.short_table import SHOWN_ROWS, ShortTable
from kseg.errors import OpenError
from kseg.log.partition.log_dir import partitions_at, require_choice
from kseg.log.partition.partition_choice import EVERY_PARTITION, PartitionChoice
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.replicas import one_of_each
from kseg.log.select.record_picker import SelectedLog, logs_of_partition
from kseg.selection import Selection


class LogDirectory(Directories):
    """The partitions of one or more log directories, as these were listed when they were opened.

    Records are read of each partition that is in use, once: of several replicas that are here, of the one whose log
    ends last.
    """

    def __init__(self, paths: Iterable[Path], choice: PartitionChoice = EVERY_PARTITION) -> None:
        """Lists the directories, and those partitions in them that are chosen.

        Partitions that can't be listed are passed over, with a warning. Raises OpenError if a path can't be listed;
        NoPartitionError if it has no partition; NoSuchPartitionError if none is chosen.
        """
        super().__init__(tuple(paths), choice)
        problems: list[OpenError] = []
        found = (log for path in self._paths for log in partitions_at(path, problems.append, choice))
        self._logs = sorted(found, key=_order)
        if not self._logs:
            require_choice(self._paths, choice)
        self._problems = tuple(problems)
        for problem in problems:
            warn(str(problem))

    @property
    def paths(self) -> tuple[Path, ...]:
        """The directories that were opened."""
        return self._paths

    @property
    def size(self) -> int:
        """Bytes of all logs."""
        return sum(log.size for log in self._logs)

    @property
    def topics(self) -> tuple[str, ...]:
        """The names of the topics, sorted."""
        return tuple(sorted({log.topic for log in self._logs if log.topic is not None}))

    @property
    def problems(self) -> tuple[OpenError, ...]:
        """Partitions that couldn't be listed: they are in nothing that this gives."""
        return self._problems

    def partitions(self, topic: str = "*", partition: int | None = None) -> tuple[Partition, ...]:
        """The partitions by topic and number, of topics that match a glob, and with a number.

        Directories that are being deleted or moved come last: `Partition.state` tells.
        """
        return tuple(
            Partition(log, self)
            for log in self._logs
            if fnmatchcase(log.topic or log.directory_name, topic) and partition in (None, log.partition)
        )

    def partition(self, topic: str, partition: int) -> Partition:
        """One partition in use; of several replicas the one whose log ends last. Raises OpenError if there is none."""
        logs = [log for log in self._in_use() if (log.topic, log.partition) == (topic, partition)]
        if not logs:
            raise OpenError(f"there is no partition {partition} of the topic {topic!r} here", self._paths[0])
        return Partition(one_of_each(logs)[0], self)

    def _in_use(self) -> list[PartitionLog]:
        return [log for log in self._logs if log.state is None]

    def _partition_logs(self) -> list[PartitionLog]:
        return self._logs

    def _selected(self, selection: Selection) -> Iterator[SelectedLog]:
        left = selection.limit
        for place in one_of_each(self._in_use()):
            for log in logs_of_partition(place.as_it_is(), selection, warn, left):
                yield log
                left = log.picker.left
            if left == 0:
                return

    def _table(self) -> ShortTable:
        title = f"{', '.join(map(str, self._paths))}: {len(self._logs)} partitions of {len(self.topics)} topics"
        return ShortTable(
            f"LogDirectory {title}, {self.size:,} bytes",
            ("topic", "partition", "segments", "bytes"),
            [
                (log.topic or log.directory_name, log.partition, len(log.segments), log.size)
                for log in self._logs[:SHOWN_ROWS]
            ],
            len(self._logs),
        )


def _order(log: PartitionLog) -> tuple[bool, str, int]:
    return log.state is not None, log.topic or log.directory_name, -1 if log.partition is None else log.partition
