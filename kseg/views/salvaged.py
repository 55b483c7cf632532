"""Partitions to salvage, each with the id of its topic, and what was saved of them."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from kseg.archive.untouched import check_outside
from kseg.errors import UnreadableError
from kseg.log.partition.log_dir import LOST_AND_FOUND
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.salvage.salvage_plan import Salvage, find_replicas, plan_salvage
from kseg.log.salvage.salvage_writer import Written, open_transactions, write_salvage
from kseg.system.new_directory import check_absent, new_directory
from kseg.views.topic_ids import TopicIds

ATTEMPTS = 5
"""How often a partition is planned whose disk loses blocks between planning and writing."""


class SalvageOrder(NamedTuple):
    """A partition to salvage: its new directory's name, its replicas, and its topic's id if they may have lost it."""

    name: str
    partitions: list[PartitionLog]
    topic_id: str | None

    @property
    def size(self) -> int:
        """Bytes of all replicas' logs."""
        return sum(partition.size for partition in self.partitions)


class Salvaged(NamedTuple):
    """What can be saved of a partition, and what was written of it."""

    plan: Salvage
    written: Written

    @property
    def is_whole(self) -> bool:
        """Whether nothing is lost, and nothing stays that can't be read."""
        return self.plan.is_whole


def salvage_orders(
    replicas: Mapping[str, list[PartitionLog]], directory: Path | None, cluster_metadata: Path | None = None
) -> Iterator[SalvageOrder]:
    """The orders for partitions by name; ids of topics are looked up only where something is written.

    `cluster_metadata`: where ids are looked up; None for beside each partition.
    """
    topic_ids = TopicIds(cluster_metadata)
    for name, partitions in replicas.items():
        yield SalvageOrder(name, partitions, None if directory is None else topic_ids.lost_by(partitions[0]))


def salvage_order(
    order: SalvageOrder,
    directory: Path | None,
    *,
    drop_unreadable: bool,
    keep_cache: bool = True,
    on_read: Callable[[int], None] | None = None,
) -> Salvaged:
    """Plans as `plan_salvage` does, and writes below a directory; without one nothing is written.

    Where a block that could be read for the plan can't be any more, the partition is planned again: disks go on
    failing.
    Raises as `plan_salvage` and `write_salvage` do.
    """

    def planned(told: Callable[[int], None] | None) -> Salvage:
        return plan_salvage(
            order.name, order.partitions, keep_cache=keep_cache, drop_unreadable=drop_unreadable, on_read=told
        )

    if directory is None:
        plan = planned(on_read)
        return Salvaged(plan, Written((), open_transactions(plan)))
    for attempt in range(ATTEMPTS):
        plan = planned(None if attempt else on_read)
        try:
            return Salvaged(plan, write_salvage(plan, directory, keep_cache=keep_cache, topic_id=order.topic_id))
        except UnreadableError:
            for written in (directory / order.name, directory / LOST_AND_FOUND / order.name):
                shutil.rmtree(written, ignore_errors=True)
            if attempt + 1 == ATTEMPTS:
                raise
    raise AssertionError


def salvage_into(
    paths: Sequence[Path], directory: Path | None, *, choice: PartitionChoice, drop_unreadable: bool
) -> tuple[Salvaged, ...]:
    """Salvages the chosen partitions at some paths into a new directory; without one nothing is written.

    Raises:
        UsageError: the directory is there, or inside of what is read.
        OpenError: a path can't be listed, or a file not opened.
        WriteError: something can't be written; then nothing is left of the directory.
    """
    if directory is not None:
        check_absent(directory)
        check_outside(directory, paths)
    replicas = find_replicas(paths, choice=choice)
    with nullcontext() if directory is None else new_directory(directory) as unfinished:
        orders = salvage_orders(replicas, unfinished)
        return tuple(salvage_order(order, unfinished, drop_unreadable=drop_unreadable) for order in orders)
