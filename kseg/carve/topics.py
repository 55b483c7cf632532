"""Topics that metadata records tell of, deleted ones too: their ids and numbers of partitions."""

from collections.abc import Iterable, Iterator

from kseg.carve.chains import CarvedPartition
from kseg.carve.contents import batches_of
from kseg.carve.runs import Runs
from kseg.cluster.metadata_checkpoint import checkpoint_files, read_checkpoint
from kseg.decode.internal_records import parse_framed
from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.formats.messages import MessageError
from kseg.formats.schemas import METADATA_RECORDS
from kseg.kernel.record import Record
from kseg.log.partition import PartitionLog
from kseg.log.replay import Unreadable, partition_batches

_LEAST_SIZE = BATCH_HEADER_SIZE + 29
"""Bytes of the smallest batch with a topic: most batches of the metadata log are smaller, as nothing has changed."""

_TELLING = (b"\1\2", b"\1\3")
"""Frame version and type of the records that tell of topics: TopicRecord, PartitionRecord."""


class KnownTopics:
    """Topics by name. A topic that was deleted and created again has several ids."""

    def __init__(self) -> None:
        self._ids: dict[str, dict[str, None]] = {}
        self._partitions: dict[str, set[int]] = {}

    def add(self, records: Iterable[Record]) -> None:
        """Add what records of `__cluster_metadata` tell; others are ignored."""
        for record in records:
            if not (record.value or b"").startswith(_TELLING):
                continue
            try:
                message, _, fields = parse_framed(METADATA_RECORDS, record.value)
            except MessageError:
                continue
            if message.name == "TopicRecord":
                self._ids.setdefault(fields["name"], {})[fields["topicId"]] = None
            else:
                self._partitions.setdefault(fields["topicId"], set()).add(fields["partitionId"])

    def ids_of(self, topic: str) -> list[str]:
        """Return the ids that a topic has had."""
        return list(self._ids.get(topic, ()))

    def partition_count(self, topic: str) -> int | None:
        """Return the largest number of partitions that a topic has had; None if that isn't known."""
        found = filter(None, map(self._partitions.get, self.ids_of(topic)))
        counts = [len(numbers) for numbers in found if len(numbers) == max(numbers) + 1]
        return max(counts, default=None)


def records_of_log(partition: PartitionLog) -> Iterator[Record]:
    """Yield the records of a directory of `__cluster_metadata`, from its snapshots and its log."""
    for end_offset, path in checkpoint_files(partition):
        found = read_checkpoint(path, end_offset)
        if not isinstance(found, Unreadable):
            yield from found.records
    for item in partition_batches(partition):
        if not isinstance(item, Unreadable) and not item.is_control and item.size >= _LEAST_SIZE:
            yield from item.records(on_damage="skip")


def records_of_carved(runs: Runs, partition: CarvedPartition) -> Iterator[Record]:
    """Yield the records of a carved part of `__cluster_metadata`, without those that are too small to name a topic."""
    for batch in batches_of(runs, partition, lambda header: header.size >= _LEAST_SIZE and not header.is_control):
        yield from batch.records(on_damage="skip")
