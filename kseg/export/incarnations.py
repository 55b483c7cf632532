"""Topics that were deleted and recreated: the same names, and offsets from 0 on again. Their ids tell them apart."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kseg.export import remote
from kseg.export.copies import Copies, PartitionCopy
from kseg.export.result import Result

TopicKey = tuple[str, int | None, str | None]
"""Topic, partition, and the topic's id."""


def with_known_ids(copies: Copies, results: Iterable[Result]) -> Copies:
    """The copies; those without an id have that of the newest results of the partition, which are the last ones.

    A directory without records says nothing: a broker writes `partition.metadata` before the first record.
    """
    newest = {(result.topic, result.partition): result.topic_id for result in results if result.topic_id is not None}
    return {key: [_with_id(copy, newest.get(key)) for copy in known] for key, known in copies.items()}


def _with_id(copy: PartitionCopy, newest: str | None) -> PartitionCopy:
    return copy._replace(topic_id=newest) if copy.topic_id is None and copy.size else copy


def told_apart(results: Iterable[Result], copies: Copies) -> tuple[list[Result], list[Result]]:
    """Results of the partitions that are there, and results of those that aren't.

    Not there are partitions that have gone, and those of a topic whose name a later one has now. Results that know no
    id count as those of the topic that is there, and get its id.
    """
    present: list[Result] = []
    absent: list[Result] = []
    for result in results:
        known = copies.get((result.topic, result.partition))
        if not known or result.topic_id not in (None, topic_id_of_copies(known)):
            absent.append(result)
        elif result.topic_id is None and topic_id_of_copies(known) is not None:
            present.append(replace(result, topic_id=topic_id_of_copies(known)))
        else:
            present.append(result)
    return present, absent


def topic_id_of_copies(copies: Iterable[PartitionCopy]) -> str | None:
    """The id that copies of one partition have; None if none of them has one."""
    return next((copy.topic_id for copy in copies if copy.topic_id is not None), None)


def gone_topics(absent: Iterable[Result], copies: Copies, sources: Iterable[str]) -> frozenset[TopicKey]:
    """The partitions that are gone, by topic, partition and topic's id: not those that other sources may have.

    Those whose topic was recreated, and those that are no longer in any directory where they were.
    """
    replicas: dict[TopicKey, set[str]] = {}
    for result in absent:
        replicas.setdefault((result.topic, result.partition, result.topic_id), set()).add(result.replica)
    roots = tuple(source.rstrip("/") + "/" for source in sources)
    return frozenset(
        key for key, paths in replicas.items() if key[:2] in copies or all(_has_gone(path, roots) for path in paths)
    )


def _has_gone(replica: str, sources: tuple[str, ...]) -> bool:
    """Whether a directory isn't there; of one in an object store, where it would have been listed."""
    return replica.startswith(sources) if remote.is_remote(replica) else not Path(replica).exists()
