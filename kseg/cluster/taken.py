"""A summary of the data used from some paths: clusters, metadata, number of copies; and the omissions."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kseg.cluster.replicas import LeftOut, PartitionReplicas, left_out_of
from kseg.errors import plural

MOST_TOLD = 20
"""The most omitted directories and lineages that get a line each; further ones are counted."""


class Answer(NamedTuple):
    """The copy that answers for a partition.

    leader_epoch, log_end: None if there is no other copy and no need for them. log_end: None also if unknown.
    """

    name: str
    path: str
    broker: int | None
    leader_epoch: int | None
    log_end: int | None
    copies: int

    def text(self) -> str:
        """Return the answer in a line."""
        owner = self.path if self.broker is None else f"{self.path} of broker {self.broker}"
        if self.leader_epoch is None:
            return f"{self.name}: {owner}"
        further = plural(self.copies - 1, "further copy", "further copies")
        end = "" if self.log_end is None else f", log end {self.log_end}"
        return f"{self.name}: {owner}, leader epoch {self.leader_epoch}{end}; {further}"


class Taken(NamedTuple):
    """The first output of commands that join copies.

    brokers: the known ids. metadata_offset: of the last record of the metadata that decided about the copies; None
    without any. copies: the number of answering ones. left_out: the others. answers: the best copy of each partition.
    """

    brokers: tuple[int, ...]
    cluster_id: str | None
    metadata_offset: int | None
    copies: int
    left_out: tuple[LeftOut, ...]
    answers: tuple[Answer, ...]

    @property
    def partitions(self) -> int:
        """The number of partitions with an answer."""
        return len(self.answers)

    @property
    def abandoned(self) -> int:
        """The number of partitions with copies of a lineage that the cluster abandoned."""
        return len({(each.topic, each.partition) for each in self.left_out if each.offsets is not None})

    def sentences(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield the summary in words; nothing if there was no choice. verbose: a line for each partition."""
        if len(self.brokers) < 2 and self.copies == self.partitions and not self.left_out:
            return
        yield "; ".join(self._parts())
        yield from (f"omitted: {each.text()}" for each in self.left_out[:MOST_TOLD])
        if len(self.left_out) > MOST_TOLD:
            yield f"omitted: {len(self.left_out) - MOST_TOLD} more"
        if verbose:
            yield from (each.text() for each in self.answers)

    def _parts(self) -> Iterator[str]:
        if self.brokers:
            cluster = "" if self.cluster_id is None else f" of cluster {self.cluster_id}"
            yield plural(len(self.brokers), "broker") + cluster
        if self.metadata_offset is not None and self.metadata_offset >= 0:
            yield f"metadata up to offset {self.metadata_offset}"
        copies = f" in {plural(self.copies, 'copy', 'copies')}" if self.copies > self.partitions else ""
        yield plural(self.partitions, "partition") + copies
        if self.abandoned:
            yield f"{self.abandoned} with an abandoned lineage (`kseg diff`)"
        aside = sum(1 for each in self.left_out if each.offsets is None)
        if aside:
            yield f"{plural(aside, 'directory', 'directories')} omitted"

    def to_json(self) -> dict[str, Any]:
        """Return the summary for programs."""
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
    """Return the answering copies of the given partitions, and the omissions."""
    found = list(replicas)
    copies = [copy for each in found for copy in each.copies]
    offsets = [each.metadata_offset for each in found if each.metadata_offset is not None]
    return Taken(
        tuple(sorted({copy.broker for copy in copies if copy.broker is not None})),
        next((each.cluster_id for each in found if each.cluster_id is not None), None),
        max(offsets, default=None),
        len(copies),
        left_out_of(found),
        tuple(_answer(each) for each in found if each.copies),
    )


def _answer(replicas: PartitionReplicas[Any]) -> Answer:
    best = replicas.copies[0]
    epoch = best.leader_epoch if len(replicas.copies) > 1 else None
    return Answer(replicas.name, str(best.path), best.broker, epoch, best.log_end, len(replicas.copies))
