"""What to verify at some paths: log directories, partitions, and what is skipped."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kseg.errors import OpenError
from kseg.log.partition.log_dir import (
    LOST_AND_FOUND,
    LogDir,
    NoPartitionError,
    Refuse,
    directory_at,
    find_log_dirs,
    is_of_log_dir,
    is_of_partition,
    require_choice,
)
from kseg.log.partition.partition_choice import EVERY_PARTITION, PartitionChoice
from kseg.log.partition.partition_log import Checkpoints, PartitionLog


class Order(NamedTuple):
    """A partition to verify; its log directory's checkpoints, None to read them. size: bytes of its logs."""

    path: Path
    checkpoints: Checkpoints | None
    size: int


class PassedOver(NamedTuple):
    """What a directory holds beside what is verified: names of files, and of directories with a slash."""

    directory: Path
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VerificationPlan:
    """What to verify: log directories as such, and partitions; what is passed over; and which partitions are meant."""

    log_dirs: tuple[LogDir, ...]
    orders: tuple[Order, ...]
    passed_over: tuple[PassedOver, ...] = ()
    choice: PartitionChoice = EVERY_PARTITION

    @property
    def chosen_log_dirs(self) -> list[LogDir]:
        """The log directories with any partition that is meant."""
        return [each for each in self.log_dirs if any(map(self.choice.takes_directory, each.directories))]

    @property
    def size(self) -> int:
        """Bytes of all logs."""
        return sum(order.size for order in self.orders)


class NothingToVerifyError(OpenError):
    """Partitions' directories are there, but no log, index or snapshot in them."""

    def __init__(self, path: Path) -> None:
        super().__init__("there is nothing to verify: no log, index or snapshot", path)


def plan_verification(
    paths: Iterable[Path], refuse: Refuse | None = None, choice: PartitionChoice = EVERY_PARTITION
) -> VerificationPlan:
    """What there is to verify at some paths: partition directories or files in them, log directories, parents of these.

    `refuse`, `choice` and errors are as for `find_partitions`; NothingToVerifyError too if a path holds nothing.
    """
    paths, planner = list(paths), _Planner(refuse, choice)
    for path in paths:
        try:
            planner.add(path)
        except OpenError as error:
            if refuse is None:
                raise
            refuse(error)
    if not planner.orders:
        require_choice(paths, choice)
    return VerificationPlan(tuple(planner.log_dirs), tuple(planner.orders.values()), tuple(planner.passed_over), choice)


class _Planner:
    """Gathers what there is to verify at paths."""

    def __init__(self, refuse: Refuse | None, choice: PartitionChoice) -> None:
        self._refuse = refuse
        self._choice = choice
        self.log_dirs: list[LogDir] = []
        self.orders: dict[Path, Order] = {}
        self.passed_over: list[PassedOver] = []

    def add(self, path: Path) -> None:
        """Adds a path; raises OpenError if it can't be listed, or has nothing."""
        here, is_one = directory_at(path)
        if is_one and not self._choice.takes_directory(here):
            return
        if is_one:
            partition = PartitionLog(here)
            self._pass_over(here, _foreign_files(partition) if path.is_dir() else [])
            if not partition.has_content:
                raise NothingToVerifyError(path)
            self.orders.setdefault(here, Order(here, None, partition.size))
            return
        found = find_log_dirs(here, self._refuse)
        if not found:
            raise NoPartitionError(path)
        taken = {*(log_dir.path for log_dir in found), *(path for log_dir in found for path in log_dir.directories)}
        has_content = [has for log_dir in found for has in self._add_log_dir(log_dir, taken)]
        if here not in taken:
            self._pass_over(here, self._foreign_entries(here, taken))
        if not any(has_content) and (has_content or self._choice.is_everything):
            raise NothingToVerifyError(path)

    def _add_log_dir(self, log_dir: LogDir, taken: Container[Path]) -> list[bool]:
        """Adds a log directory; gives of each of its partitions whether anything is in it."""
        self.log_dirs.append(log_dir)
        has_content, empty = [], []
        for partition in log_dir.partitions(self._refuse, self._choice):
            self.orders[partition.path] = Order(partition.path, partition.checkpoints(), partition.size)
            has_content.append(partition.has_content)
            self._pass_over(partition.path, _foreign_files(partition))
            if not partition.has_content and partition.state is None:
                empty.append(f"{partition.path.name}/ (there is nothing of a log in it)")
        self._pass_over(log_dir.path, [*empty, *self._foreign_entries(log_dir.path, taken)])
        return has_content

    def _foreign_entries(self, directory: Path, taken: Container[Path]) -> Iterable[str]:
        """What else a directory holds; nothing of that is asked for where only some partitions are meant."""
        return _foreign_entries(directory, taken) if self._choice.is_everything else ()

    def _pass_over(self, directory: Path, names: Iterable[str]) -> None:
        if found := tuple(names):
            self.passed_over.append(PassedOver(directory, found))


def _foreign_files(partition: PartitionLog) -> list[str]:
    """Files of a partition's directory that aren't read."""
    return sorted(file.name for file in partition.others if not is_of_partition(file.name))


def _foreign_entries(directory: Path, taken: Container[Path]) -> Iterator[str]:
    """What a directory holds beside partitions, log directories and a broker's own files, by name."""
    for path in sorted(directory.iterdir()):
        if path in taken or is_of_log_dir(path.name) or (path.name == LOST_AND_FOUND and _is_empty(path)):
            continue
        yield f"{path.name}/" if path.is_dir() else path.name


def _is_empty(directory: Path) -> bool:
    """Whether nothing can be seen in a directory."""
    try:
        return not any(directory.iterdir())
    except OSError:
        return True
