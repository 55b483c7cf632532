"""How copies of partitions differ, as objects of `-o json`; and how many partitions are what."""

from collections import Counter

from kseg.counted import counted
from kseg.formats.header_fields import PRODUCER_NAMES, camel_case
from kseg.log.diff.batch_cursor import FoundDamage
from kseg.log.diff.differences import BatchAt, ComparedCopy, DiffVerdict, EpochRecords, PartitionDiff, Truncation


def diff_object(diff: PartitionDiff) -> dict[str, object]:
    """A partition for JSON."""
    members: dict[str, object] = {
        "type": "partition",
        "topic": diff.topic,
        "partition": diff.partition,
        "topicId": diff.topic_id,
        "verdict": str(diff.verdict),
        "comparedFrom": diff.compared_from if diff.copies else None,
        "firstDifference": diff.first_difference,
        "epochsDifferFrom": diff.epochs_differ_from,
        "absentFrom": [str(path) for path in diff.absent_from],
        "copies": [_copy_object(copy) for copy in diff.copies],
        "divergence": None,
        "onlyIn": [{"path": str(copy.path), **_epoch_object(each)} for copy in diff.copies for each in copy.only_here],
    }
    if diff.divergence is not None:
        members["divergence"] = {
            "offset": diff.divergence.offset,
            "leaderEpoch": diff.divergence.leader_epoch,
            "batches": [_batch_object(batch) for batch in diff.divergence.batches],
        }
    if diff.leader is not None or diff.lacks_leader:
        members["leader"] = None if diff.leader is None else str(diff.leader)
        members["lostRecords"] = diff.lost_records
        members["truncations"] = [_truncation_object(each) for each in diff.truncations]
    return members


def _copy_object(copy: ComparedCopy) -> dict[str, object]:
    return {
        "path": str(copy.path),
        "logStartOffset": copy.log_start_offset,
        "logEndOffset": copy.log_end_offset,
        "highWatermark": copy.high_watermark,
        "lastEpoch": copy.last_epoch,
        "records": copy.records,
        "missing": copy.missing,
        "superseded": copy.superseded,
        "unjudged": copy.unjudged,
        "damageCount": copy.damage_count,
        "damages": [_damage_object(damage) for damage in copy.damages],
    }


def _damage_object(damage: FoundDamage) -> dict[str, object]:
    return {
        "id": damage.id,
        "file": str(damage.log),
        "position": damage.position,
        "size": damage.size,
        "detail": damage.detail,
    }


def _epoch_object(records: EpochRecords) -> dict[str, object]:
    return {
        "leaderEpoch": records.leader_epoch,
        "records": records.records,
        "controlRecords": records.control_records,
        "ranges": [{"from": first, "to": last} for first, last in records.ranges],
        "rangesLeftOut": records.ranges_left_out,
    }


def _batch_object(batch: BatchAt) -> dict[str, object]:
    header = batch.header
    return {
        "path": str(batch.path),
        "file": batch.log.name,
        "position": header.position,
        "baseOffset": header.first_offset,
        "lastOffset": header.last_offset,
        "leaderEpoch": header.partition_leader_epoch,
        **dict(zip(map(camel_case, PRODUCER_NAMES), header.producer, strict=True)),
        "firstTimestamp": header.base_timestamp,
        "maxTimestamp": header.max_timestamp,
        "crc": header.crc,
    }


def _truncation_object(truncation: Truncation) -> dict[str, object]:
    return {
        "path": str(truncation.path),
        "toOffset": truncation.to_offset,
        "rule": str(truncation.rule),
        "lostRecords": truncation.lost_records,
        "lostByEpoch": [_epoch_object(each) for each in truncation.lost],
        "keptRecords": truncation.kept_records,
        "keptByEpoch": [_epoch_object(each) for each in truncation.kept],
    }


class DiffSummary:
    """How many partitions are what; and how many records are lost under a leader."""

    def __init__(self) -> None:
        self._verdicts: Counter[DiffVerdict] = Counter()
        self._lost_records = 0

    def add(self, diff: PartitionDiff) -> None:
        """Counts a partition."""
        self._verdicts[diff.verdict] += 1
        self._lost_records += diff.lost_records

    @property
    def is_identical(self) -> bool:
        """Whether no partition differs."""
        return self._verdicts.total() == self._verdicts[DiffVerdict.IDENTICAL]

    def as_object(self) -> dict[str, object]:
        """For JSON."""
        counts = {str(verdict): self._verdicts[verdict] for verdict in _WORDS}
        return {
            "type": "summary",
            "partitions": self._verdicts.total(),
            **counts,
            "lostRecords": self._lost_records,
        }

    def line(self) -> str:
        """For people."""
        counts = [f"{self._verdicts[verdict]} {words}" for verdict, words in _WORDS.items() if self._verdicts[verdict]]
        lost = f"; {counted(self._lost_records, 'record')} lost under the leader" if self._lost_records else ""
        return f"{counted(self._verdicts.total(), 'partition')}: {', '.join(counts) or 'nothing to compare'}{lost}"


_WORDS = {
    DiffVerdict.IDENTICAL: "identical",
    DiffVerdict.AHEAD: "ahead",
    DiffVerdict.DIVERGED: "diverged",
    DiffVerdict.HOLES: "with holes",
    DiffVerdict.ONLY_HERE: "not everywhere",
    DiffVerdict.MISSING: "missing",
}
