"""Groups and transactional ids of a coordinator's topic, which show its number of partitions."""

from collections.abc import Iterable, Iterator

from kseg.coordinators.groups import partition_groups
from kseg.log.partition import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, PartitionLog
from kseg.log.transactions import coordinator_transactions

COORDINATOR_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)


def stored_ids(topic: str, partitions: Iterable[PartitionLog]) -> Iterator[tuple[str, int | None]]:
    """Yield the groups or transactional ids of a coordinator's topic, each with its partition."""
    for each in partitions:
        if topic == OFFSETS_TOPIC:
            yield from ((group.group, each.partition) for group in partition_groups(each).groups)
        else:
            yield from (
                (known.transactional_id, each.partition) for known in coordinator_transactions(each).transactions
            )
