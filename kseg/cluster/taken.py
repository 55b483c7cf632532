"""What was taken of some paths: whose directories, which metadata, how many copies; and what was left out."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kseg.cluster.replicas import LeftOut, PartitionReplicas, left_out_of
from kseg.errors import counted

MOST_TOLD = 20
"""Directories and lineages that are left out, each told in a line; of more, how many they are."""


class Taken(NamedTuple):
    """What commands that join copies say first.

    brokers: by their ids, those that are known. metadata_offset: of the last record of the metadata that told which
    copies are the partitions'; None without any. partitions, copies: how many answer. left_out: what doesn't.
    """

    brokers: tuple[int, ...]
    cluster_id: str | None
    metadata_offset: int | None
    partitions: int
    copies: int
    left_out: tuple[LeftOut, ...]

    @property
    def abandoned(self) -> int:
        """How many partitions have copies of a lineage that the cluster abandoned."""
        return len({(each.topic, each.partition) for each in self.left_out if each.offsets is not None})

    def sentences(self) -> Iterator[str]:
        """The same in words; nothing where there was nothing to choose."""
        if len(self.brokers) > 1 or self.copies > self.partitions or self.left_out:
            yield "; ".join(self._parts())
        yield from (f"left out: {each.text()}" for each in self.left_out[:MOST_TOLD])
        if len(self.left_out) > MOST_TOLD:
            yield f"left out: {len(self.left_out) - MOST_TOLD} more"

    def _parts(self) -> Iterator[str]:
        if self.brokers:
            cluster = "" if self.cluster_id is None else f" of cluster {self.cluster_id}"
            yield counted(len(self.brokers), "broker") + cluster
        if self.metadata_offset is not None:
            yield f"metadata up to offset {self.metadata_offset}"
        copies = f" in {counted(self.copies, 'copy', 'copies')}" if self.copies > self.partitions else ""
        yield counted(self.partitions, "partition") + copies
        if self.abandoned:
            yield f"{self.abandoned} with an abandoned lineage (`kseg diff`)"
        aside = sum(1 for each in self.left_out if each.offsets is None)
        if aside:
            yield f"{counted(aside, 'directory', 'directories')} left out"

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "brokers": list(self.brokers),
            "clusterId": self.cluster_id,
            "metadataOffset": self.metadata_offset,
            "partitions": self.partitions,
            "copies": self.copies,
            "abandoned": self.abandoned,
            "leftOut": [each.to_json() for each in self.left_out],
        }


def taken_of(replicas: Iterable[PartitionReplicas[Any]]) -> Taken:
    """What answers for some partitions, and what doesn't."""
    found = list(replicas)
    copies = [copy for each in found for copy in each.copies]
    offsets = [each.metadata_offset for each in found if each.metadata_offset is not None]
    return Taken(
        tuple(sorted({copy.broker for copy in copies if copy.broker is not None})),
        next((each.cluster_id for each in found if each.cluster_id is not None), None),
        max(offsets, default=None),
        sum(1 for each in found if each.copies),
        len(copies),
        left_out_of(found),
    )
