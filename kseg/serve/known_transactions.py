"""What transaction coordinators knew last, read from `__transaction_state` when asked for."""

from collections.abc import Callable, Mapping
from threading import Lock

from kseg.log.partition.partition_log import PartitionLog
from kseg.serve.served_partition import ServedPartition
from kseg.views.transactions import CoordinatorTransaction, coordinator_transactions


class KnownTransactions:
    """Transactional ids of all partitions that are served; may be used by several threads."""

    def __init__(self, partitions: Mapping[int, ServedPartition], say: Callable[[str], None]) -> None:
        """Takes the partitions of the coordinators' topic, and what is called with what can't be read in them."""
        self._partitions, self._say = partitions, say
        self._lock = Lock()
        self._known: dict[int, tuple[int, Mapping[str, CoordinatorTransaction]]] = {}
        self._told: set[str] = set()

    def all(self) -> dict[str, CoordinatorTransaction]:
        """The latest state of each transactional id. Raises KsegError if a log can't be read."""
        with self._lock:
            found = [self._of(partition) for partition in self._partitions.values()]
        return {name: each for known in found for name, each in known.items()}

    def _of(self, partition: ServedPartition) -> Mapping[str, CoordinatorTransaction]:
        end = partition.offsets().log_end
        known = self._known.get(partition.number)
        if known is None or known[0] != end:
            known = self._known[partition.number] = end, self._read(partition.listed)
        return known[1]

    def _read(self, listed: PartitionLog | None) -> Mapping[str, CoordinatorTransaction]:
        if listed is None:
            return {}
        view = coordinator_transactions(listed)
        for each in view.unreadable:
            self._tell(each.line())
        return {each.transactional_id: each for each in view.transactions}

    def _tell(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._say(line)
