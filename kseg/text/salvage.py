"""Text of `kseg salvage` and `kseg reindex`, and the list of written files."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from kseg.errors import plural
from kseg.formats.codes import DamageKind
from kseg.log.partition import PartitionLog
from kseg.log.segments import RollReason
from kseg.log.side_files import SideFile
from kseg.log.transactions import Outcome
from kseg.log.writer import WrittenSegment
from kseg.output.forms import Form
from kseg.output.streams import write_line, write_lines
from kseg.rewrite.lost_markers import LostEnd
from kseg.rewrite.reindex import Reindexed
from kseg.rewrite.salvage import Written, WrittenFile
from kseg.rewrite.salvage_extents import Extent, InnerProblem
from kseg.rewrite.salvage_plan import AbandonedBatches, Hole, Salvage
from kseg.rewrite.salvage_reader import FoundLoss
from kseg.rewrite.slice import Sliced
from kseg.times import iso_time, now_ms

SHOWN_OPEN = 3
SHOWN = 50
"""Most losses, holes and pieces of each kind that the text lists."""


_AFTER_A_LOSS = {
    "__consumer_offsets": (
        "groups continue from the remaining commits, or use auto.offset.reset; compare them with another copy (`kseg"
        " groups`), and reset groups that lost commits before their consumers start"
    ),
    "__transaction_state": (
        "transactions with lost records stay open; run `kseg txns --open` with the log directories of all brokers for"
        " the commands that abort them"
    ),
    "__share_group_state": (
        "share groups with lost state use share.auto.offset.reset; move them with"
        " `kafka-share-groups.sh --reset-offsets`"
    ),
    "__cluster_metadata": (
        "no node replays a log with a gap; take another node's copy, or, if no controller is left, run"
        " `kseg rebuild-metadata` with all copies"
    ),
    "__remote_log_metadata": (
        "brokers don't see remote segments with lost records; run `kseg verify --tier` to list them"
    ),
}
"""Next step if records of an internal topic are lost or unreadable."""


def advice_on_loss(topic: str) -> str:
    """Return the next step after losses in an internal topic."""
    return f"{topic}: no consumer group reads this topic, so you can't move one past the loss; {_AFTER_A_LOSS[topic]}"


def reset_command(topic: str | None, partition: int | None, offset: int, group: str = "--group GROUP") -> str | None:
    """Return the command that moves a consumer group to an offset, or None for an internal topic.

    Source: ConsumerGroupCommand. group: the option that names it.
    """
    if topic in _AFTER_A_LOSS:
        return None
    return (
        f"kafka-consumer-groups.sh --bootstrap-server HOST:9092 {group}"
        f" --topic {topic or 'TOPIC'}:{partition or 0} --reset-offsets --to-offset {offset} --execute"
    )


def _hole_command(salvage: Salvage, hole: Hole) -> str | None:
    """Return the command that moves a consumer group past a hole, or None if there is no log."""
    offset = hole.first if hole.next_good is None else hole.next_good
    return None if salvage.is_foreign else reset_command(salvage.topic, salvage.partition, offset)


def salvage_lines(salvage: Salvage, written: Written) -> Iterator[str]:
    """Yield the report on a partition."""
    unplaced = sum(extent.batch_count for extent in salvage.unplaced)
    yield (
        f"{salvage.name}: {plural(salvage.batch_count, 'batch', 'batches')}, {plural(salvage.size, 'byte')} in"
        f" {plural(len(salvage.segments), 'segment')}"
    )
    yield from _replica_lines(salvage)
    yield from map(_abandoned_line, salvage.abandoned)
    yield from (f"  omitted: {each.text()}" for each in salvage.set_aside)
    yield from _limit_lines(_loss_line(found) for found in salvage.losses)
    yield from _limit_lines(_kept_line(salvage, log, problem) for log, problem in salvage.inner_problems)
    if salvage.inner_problems:
        yield "    --drop-unreadable omits such batches"
    if salvage.reordered:
        yield f"  reordered {plural(salvage.reordered, 'batch', 'batches')}"
    if salvage.duplicates:
        yield f"  omitted {plural(salvage.duplicates, 'duplicate batch', 'duplicate batches')}"
    if unplaced:
        yield f"  {unplaced} intact batches with unusable offsets, in lost+found/{salvage.name}"
    yield from _limit_lines(
        f"    {extent.log.name} position {extent.position}: offsets {extent.first_offset} to {extent.last_offset}"
        for extent in salvage.unplaced
    )
    if salvage.is_foreign:
        yield "  the log itself was never copied here: copy it, then salvage it"
    for hole in () if salvage.is_foreign else salvage.holes:
        yield from _hole_lines(salvage, hole)
    if salvage.has_losses and not salvage.holes:
        yield "  no offsets are missing: the lost bytes held none, or another copy has them"
    yield from map(_marker_line, salvage.lost_ends)
    yield from _written_lines(salvage, written)


def _replica_lines(salvage: Salvage) -> Iterator[str]:
    yield from (f"  {each.log} was copied as text: {each.what}; kseg undid it" for each in salvage.undone)
    if len(salvage.replicas) > 1:
        for replica in salvage.replicas:
            yield f"  replica {replica.partition.path}: {replica.batch_count} intact batches"
    for replica in salvage.replicas:
        for reason, size in replica.lost_bytes().items():
            word = "unwritten" if reason == DamageKind.ZERO_TAIL else "lost"
            yield f"  {word} in {replica.partition.path}: {plural(size, 'byte')}, {reason}"


def _abandoned_line(found: AbandonedBatches) -> str:
    first, end = found.copy.agreed_end, found.copy.log_end
    batches = plural(found.batches.batch_count, "batch", "batches")
    until = "on" if end is None else f"to {end - 1}"
    return (
        f"  omitted from {found.copy.path}: {batches}, offsets from {first} {until}, leader epoch"
        f" {found.copy.leader_epoch}: the cluster continued without them; --keep-diverged DIR keeps them separately"
    )


def _marker_line(lost: LostEnd) -> str:
    place = (
        f"  producer {lost.producer_id}: the marker of its transaction that begins at offset {lost.first_offset} is"
        " lost"
    )
    if lost.marker is not None:
        return (
            f"{place}; rewrote it at offset {lost.offset}, because its {lost.evidence} shows that it was {lost.outcome}"
        )
    if lost.outcome is Outcome.UNKNOWN:
        return f"{place}; wrote none, because its outcome is unknown; look for another copy first"
    return f"{place} and can't be rewritten; its {lost.evidence} shows that it was {lost.outcome}"


def _written_lines(salvage: Salvage, written: Written) -> Iterator[str]:
    is_internal = salvage.topic in _AFTER_A_LOSS
    wait = "its commits don't count" if is_internal else "consumers with read_committed wait there"
    for transaction in written.transactions:
        yield (
            f"  producer {transaction.producer_id}: its transaction that begins at offset {transaction.first_offset}"
            f" has lost its end; {wait} until you abort it (kafka-transactions.sh abort)"
        )
    for file in written.files:
        origin = f"from {', '.join(map(str, file.sources))}" if file.sources else "rebuilt"
        yield (
            f"  wrote {file.name}: {plural(file.size, 'byte')}, {iso_time(file.modified_ms)}, sha256"
            f" {file.sha256}, {origin}"
        )


def _loss_line(found: FoundLoss) -> str:
    loss = found.loss
    return f"    {found.log.name} position {loss.position}: {plural(loss.size, 'byte')}, {loss.reason}: {loss.detail}"


def _kept_line(salvage: Salvage, log: Path, problem: InnerProblem) -> str:
    kept = f"  kept unchanged: {log.name} position {problem.position}: {problem.id}: {problem.detail}"
    if salvage.topic in _AFTER_A_LOSS:
        return kept
    return f"{kept}; consumers that fail there can continue at offset {problem.last_offset + 1}"


def _limit_lines(lines: Iterator[str]) -> Iterator[str]:
    yield from islice(lines, SHOWN)
    more = sum(1 for _ in lines)
    if more:
        yield f"    … {more} more"


def _hole_lines(salvage: Salvage, hole: Hole) -> Iterator[str]:
    if hole.last is None:
        yield f"  offsets lost: from {hole.first} on ({hole.reason}); the log ends at {hole.first}"
    else:
        count = hole.last - hole.first + 1
        follows = f"the log ends at {hole.first}" if hole.next_good is None else f"next good offset {hole.next_good}"
        many = f"offset lost: {hole.first}" if count == 1 else f"offsets lost: {hole.first} to {hole.last}"
        those = "" if count == 1 else f", {count} of them"
        yield f"  {many}{those} ({hole.reason}); {follows}"
    command = _hole_command(salvage, hole)
    if command is not None:
        yield f"    {command}"


def salvage_object(salvage: Salvage, written: Written) -> dict[str, object]:
    """Return the report on a partition for JSON."""
    return {
        "type": "salvage",
        "name": salvage.name,
        "replicas": [str(replica.partition.path) for replica in salvage.replicas],
        "baseOffsets": [base for base, _ in salvage.segments],
        "batches": salvage.batch_count,
        "bytes": salvage.size,
        "lostBytes": {str(replica.partition.path): replica.lost_bytes() for replica in salvage.replicas},
        "damages": [*map(_damage_object, salvage.losses)],
        "innerProblems": [
            {"file": str(log), "position": problem.position, "id": problem.id, "detail": problem.detail}
            for log, problem in salvage.inner_problems
        ],
        "undone": [{"file": str(each.log), "change": each.what} for each in salvage.undone],
        "reordered": salvage.reordered,
        "duplicates": salvage.duplicates,
        "lostAndFound": [*map(_unplaced_object, salvage.unplaced)],
        "holes": [_hole_object(salvage, hole) for hole in salvage.holes],
        "abandoned": [*map(_abandoned_object, salvage.abandoned)],
        "leftOut": [each.to_json() for each in salvage.set_aside],
        "unfinishedTransactions": [
            {"producerId": each.producer_id, "firstOffset": each.first_offset, "state": str(each.outcome)}
            for each in written.transactions
        ],
        "lostMarkers": [
            {
                "producerId": each.producer_id,
                "firstOffset": each.first_offset,
                "offset": None if each.marker is None else each.offset,
                "state": str(each.outcome),
                "evidence": each.evidence,
            }
            for each in salvage.lost_ends
        ],
        "files": [*map(_file_object, written.files)],
    }


def _damage_object(found: FoundLoss) -> dict[str, object]:
    return {
        "file": str(found.log),
        "position": found.loss.position,
        "size": found.loss.size,
        "reason": found.loss.reason,
        "detail": found.loss.detail,
    }


def _abandoned_object(found: AbandonedBatches) -> dict[str, object]:
    end = found.copy.log_end
    return {
        "path": str(found.copy.path),
        "broker": found.copy.broker,
        "leaderEpoch": found.copy.leader_epoch,
        "firstOffset": found.copy.agreed_end,
        "lastOffset": None if end is None else end - 1,
        "batches": found.batches.batch_count,
        "bytes": found.batches.size,
    }


def _unplaced_object(extent: Extent) -> dict[str, object]:
    return {
        "file": str(extent.log),
        "position": extent.position,
        "size": extent.size,
        "batches": extent.batch_count,
        "firstOffset": extent.first_offset,
        "lastOffset": extent.last_offset,
    }


def _hole_object(salvage: Salvage, hole: Hole) -> dict[str, object]:
    return {
        "firstOffset": hole.first,
        "lastOffset": hole.last,
        "nextGoodOffset": hole.next_good,
        "reason": hole.reason,
        "resetCommand": _hole_command(salvage, hole),
    }


def _file_object(file: WrittenFile) -> dict[str, object]:
    return {
        "file": file.name,
        "bytes": file.size,
        "modified": iso_time(file.modified_ms),
        "sha256": file.sha256,
        "sources": list(map(str, file.sources)),
    }


def write_run(arguments: Sequence[str], form: Form) -> None:
    """Write a line with kseg's version, the time and the command."""
    from kseg.version import VERSION

    run = {"type": "run", "kseg": VERSION, "time": iso_time(now_ms())}
    if form.has_objects:
        form.write_object({**run, "arguments": ["kseg", *arguments]})
    else:
        write_line(f"kseg {run['kseg']}, {run['time']}: kseg {shlex.join(arguments)}")


class SalvageReport(NamedTuple):
    """The report on a partition, as an object of JSON or as lines.

    is_whole: whether the partition has no problem. advised_topic: the internal topic that needs advice; None without
    one.
    """

    is_whole: bool
    advised_topic: str | None
    content: dict[str, object] | tuple[str, ...]


def salvage_report(salvage: Salvage, written: Written, form: Form) -> SalvageReport:
    """Return the report on a partition, in a form of `-o`."""
    content = salvage_object(salvage, written) if form.has_objects else tuple(salvage_lines(salvage, written))
    needs_advice = salvage.topic in _AFTER_A_LOSS and bool(salvage.holes or salvage.inner_problems)
    return SalvageReport(salvage.is_whole, salvage.topic if needs_advice else None, content)


def write_report(report: SalvageReport, form: Form) -> None:
    """Write the report on a partition to standard output."""
    if isinstance(report.content, dict):
        form.write_object(report.content)
    else:
        write_lines(report.content)


def segment_lines(segments: Iterable[WrittenSegment], directory: Path) -> Iterator[str]:
    """Yield each segment file, offsets, batches and bytes, and Kafka's rule for the roll, if one applied."""
    for segment in segments:
        offsets = f"offsets {segment.base_offset} to {segment.next_offset - 1}" if segment.batch_count else "empty"
        rolled = "" if segment.rolled in (RollReason.ACTIVE, RollReason.UNKNOWN) else f", rolled by {segment.rolled}"
        path = directory / f"{segment.base_offset:020}.log"
        yield (
            f"{path}: {offsets}, {plural(segment.batch_count, 'batch', 'batches')},"
            f" {plural(segment.size, 'byte')}{rolled}"
        )


def sliced_lines(sliced: Sliced, directory: Path) -> Iterator[str]:
    """Yield the segments that `slice` wrote, and counts."""
    yield from segment_lines(sliced.segments, directory)
    yield (
        f"{plural(sliced.copied, 'batch', 'batches')} copied, {sliced.rebuilt} rebuilt,"
        f" {plural(sliced.dropped, 'record')} omitted"
    )


def left_open_line(sliced: Sliced) -> str | None:
    """Return a line about the transactions that a piece leaves open, or None if there are none."""
    opened = sliced.open_transactions
    if not opened:
        return None
    named = [f"producer {producer} from offset {first}" for producer, first in islice(opened.items(), SHOWN_OPEN)]
    more = f" and {len(opened) - SHOWN_OPEN} more" if len(opened) > SHOWN_OPEN else ""
    return (
        f"the slice has no marker for {plural(len(opened), 'transaction')}: {', '.join(named)}{more}; consumers with"
        " read_committed stop there"
    )


def holes_line(sliced: Sliced) -> str | None:
    """Return a line about the batches that bounds of time leave out between copied ones; None if there are none."""
    holes = sliced.holes
    if not holes:
        return None
    shown = ", ".join(
        f"{each.start} to {each.stop - 1}" if len(each) > 1 else f"{each.start}" for each in holes[:SHOWN]
    )
    more = f" and {len(holes) - SHOWN} more" if len(holes) > SHOWN else ""
    return (
        f"the slice has {plural(len(holes), 'hole')}, since records aren't in the order of their timestamps; left out:"
        f" offsets {shown}{more}"
    )


def missed_options(sliced: Sliced, given_keys: Mapping[bytes, str]) -> Iterator[str]:
    """Yield the options of `slice` that matched no record; `given_keys`: the keys as the user wrote them."""
    yield from (f"--drop-offset {offset}" for offset in sorted(sliced.missed_offsets))
    yield from (f"--drop-key {given}" for key, given in given_keys.items() if key in sliced.missed_keys)


def reindexed_lines(each: Reindexed) -> Iterator[str]:
    """Yield how a segment's indexes compare with the rebuilt ones, and where both end if the log is damaged."""
    faults = {extension: f" ({fault})" for extension, fault in each.faults.items()}
    compared = ", ".join(
        f"{extension} {found}{faults.get(extension, '')}" for extension, found in each.compared.items()
    )
    yield f"{each.segment.path}: {compared}"
    if each.damage is not None:
        yield (
            f"{each.segment.path}: at position {each.damage.position}: {each.damage.kind}: the indexes end here;"
            " `kseg salvage` continues after it"
        )


def side_file_line(partition: PartitionLog, file: SideFile, *, is_dry_run: bool) -> str:
    """Return why a file next to the segments is rebuilt, or the condition for that."""
    detail = f" ({file.detail})" if file.detail else ""
    outcome = "; will be rebuilt" if is_dry_run else "; rebuilt"
    outcome = outcome if file.content is not None else "; --cluster-metadata may have its contents"
    return f"{partition.path / file.name}: {file.reason}{detail}{outcome}"
