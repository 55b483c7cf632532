"""Checks of the files next to segments, and of objects in a remote tier."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from kseg.errors import FileError, OpenError, plural
from kseg.findings.findings import Finding, Findings
from kseg.formats.file_names import MAXIMUM_OFFSET, SUFFIXES, DirectoryState, FileKind, parse_file_name
from kseg.formats.foreign import what_has_name
from kseg.log.lineage import stored_epoch, unsorted_epochs
from kseg.log.partition import CHECKPOINT_OF_FIELD, LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, PartitionLog
from kseg.log.segments import CLEANED, SegmentFiles, read_tail
from kseg.sizes import human_size
from kseg.store.location import place_of
from kseg.system.placed_path import path_of_name
from kseg.tiered.placed_tiers import Choice, PlacedPartition, Standing, placed_at
from kseg.verify.log_checks import LogChecks, SeenEpoch

DELETED = ".deleted"
_NAMED_BY_OFFSET = frozenset({".log", ".index", ".timeindex", ".txnindex", ".snapshot"})
"""Endings of files with names that a broker reads as offsets. Source: LogLoader, LogFileUtils."""
_PARSED = frozenset({CLEANED, ".swap"})
"""Endings of such leftovers, with any other name parts. Source: LogLoader.removeTempFilesAndCollectSwapFiles."""


def check_leader_epochs(partition: PartitionLog, log: LogChecks, findings: Findings) -> None:
    """Check `leader-epoch-checkpoint` alone, and against the epochs of the batches."""
    path = partition.path / LEADER_EPOCH_CHECKPOINT
    placed = placed_at(partition.path)
    if placed is not None and not placed.lineage:
        return  # the tier has none
    try:
        entries = partition.read_leader_epochs()
    except FileError as error:
        findings.add("unreadable-text", path, error.message)
        return
    if not entries:
        if log.epochs and not (entries is None and _is_copy_of_segments(partition)):
            _add_missing(
                partition, path, log, "the file is missing" if entries is None else ("the file is empty"), findings
            )
        return
    wrong = unsorted_epochs(entries)
    if wrong is not None:
        findings.add("leader-epoch-unsorted", path, wrong[1], offsets=(wrong[0], None))
        return
    _compare_epochs(partition, path, entries, log, findings)


def _compare_epochs(
    partition: PartitionLog, path: Path, entries: Sequence[tuple[int, int]], log: LogChecks, findings: Findings
) -> None:
    """Compare the file's entries with the epochs of the batches, and with the end of the log."""
    cleared = []
    for found in log.epochs:
        stored = stored_epoch(entries, found.offset)
        if stored is None:
            cleared.append(found)
        elif stored != found.epoch:
            sentence = f"offset {found.offset} has epoch {stored}, its batch has epoch {found.epoch}"
            findings.add("leader-epoch-checkpoint", path, sentence, offsets=(found.offset, None))
    if cleared:
        _add_cleared(partition, path, cleared, findings)
    end = log.next_offset
    if end is not None and entries[-1][1] > end:
        sentence = f"epoch {entries[-1][0]} begins at offset {entries[-1][1]}, the log ends at {end}"
        findings.add("leader-epoch-beyond-end", path, sentence, offsets=(end, entries[-1][1]))


def _is_copy_of_segments(partition: PartitionLog) -> bool:
    """Return True if segments were copied without a broker's other files."""
    return not partition.snapshots and not (partition.path / PARTITION_METADATA).exists()


def _add_missing(partition: PartitionLog, path: Path, log: LogChecks, what: str, findings: Findings) -> None:
    """Report missing epochs: as cleared if the log ends without epochs, since only then a broker clears them."""
    is_lost = log.ends_with_epoch and partition.state not in (DirectoryState.DELETE, DirectoryState.STRAY)
    sentence = f"{what}, but the batches have epochs {log.epochs[0].epoch} to {log.epochs[-1].epoch}"
    finding_id = "leader-epochs-missing" if is_lost else "leader-epochs-cleared"
    findings.add(finding_id, path, sentence, offsets=(log.epochs[0].offset, None))


def _add_cleared(partition: PartitionLog, path: Path, cleared: list[SeenEpoch], findings: Findings) -> None:
    """Report epochs of the first batches that are missing in the file, with the log start offset if known."""
    epochs = f"epoch {cleared[0].epoch}" + (f" to {cleared[-1].epoch}" if len(cleared) > 1 else "")
    start = f"is {partition.log_start_offset()}" if partition.has_log_start_checkpoint else "isn't known here"
    sentence = f"{epochs}, from offset {cleared[0].offset} on, is missing; the log start offset {start}"
    findings.add("leader-epochs-cleared", path, sentence, offsets=(cleared[0].offset, None))


def check_checkpoints(partition: PartitionLog, end: int | None, findings: Findings) -> None:
    """Compare the partition's entries in the log directory's checkpoints with the end of the log."""
    checkpoints = partition.checkpoints()
    end = end or 0
    for field in ("recovery_point", "high_watermark"):
        offset = getattr(checkpoints, field)
        if offset is not None and offset > end:
            _add_checkpoint("checkpoint-beyond-end", partition, field, (offset, end), findings)
    first = partition.base_offsets[0] if partition.base_offsets else 0
    if checkpoints.log_start_offset is not None and checkpoints.log_start_offset > end:
        offsets, lost_from = (checkpoints.log_start_offset, end), first if first < end else None
        _add_checkpoint("log-start-beyond-end", partition, "log_start_offset", offsets, findings, lost_from=lost_from)
    clean = checkpoints.clean_offset
    if clean is not None and not first <= clean <= end:
        _add_checkpoint("checkpoint-stale", partition, "clean_offset", (clean, end), findings)


def _add_checkpoint(
    finding_id: str,
    partition: PartitionLog,
    field: str,
    offsets: tuple[int, int],
    findings: Findings,
    *,
    lost_from: int | None = None,
) -> None:
    """Report a checkpoint. lost_from: the first offset of the log if the log itself is lost, not only its end."""
    offset, end = offsets
    path = partition.path.absolute()
    sentence = f"{path.name}: the {field.replace('_', ' ')} is {offset}, the log ends at {end}"
    file = path.parent / CHECKPOINT_OF_FIELD[field]
    concerned = (min(end, offset), max(end, offset) - 1) if lost_from is None else (lost_from, end - 1)
    findings.add(finding_id, file, sentence, offsets=concerned)


def _check_leftover_logs(partition: PartitionLog, findings: Findings) -> None:
    """Report logs marked for deletion with records that the log lacks.

    Retention deletes logs before the log's start; cleaned or split logs are in other segments.
    """
    for file in partition.leftovers:
        name = parse_file_name(file.path)
        base = name.base_offset
        if name.kind is not FileKind.LOG or name.suffix not in (DELETED, CLEANED) or base is None or not file.size:
            continue
        slot = partition.floor_slot(base)
        is_before = slot is None
        if (is_before and name.suffix == DELETED) or (partition.segments and _has_records(partition, slot, base)):
            continue
        sentence = f"{plural(file.size, 'byte')} from offset {base} on, which the log lacks"
        findings.add("leftover-log", file.path, sentence, offsets=(base, None))


def _has_records(partition: PartitionLog, slot: int | None, base: int) -> bool:
    """Return True if the log continues after an offset; in a compacted one any later offset is enough."""
    try:
        if partition.was_compacted():
            return partition.read_log_end_offset() > base
        last = None if slot is None else read_tail(partition.segments[slot]).last
    except OpenError:
        return True
    return last is not None and last.last_offset >= base


def check_directory(partition: PartitionLog, findings: Findings) -> None:
    """Check the partition directory: its name, its id, files that shouldn't stay."""
    if partition.state is not None:
        findings.add("leftover-directory", partition.path, f"the directory's name ends in -{partition.state}")
    leftovers = [file.name for file in partition.leftovers]
    for file in partition.leftovers:
        suffix = parse_file_name(file.path).suffix or ""
        stem = file.name.partition(".")[0]
        if suffix in _PARSED and not _is_offset(stem):
            findings.add("misnamed-file", file.path, f"its name begins with {stem!r}, not with an offset")
            continue
        findings.add("leftover-file", file.path, f"{suffix}: {SUFFIXES[suffix]}; {human_size(file.size)}")
    _check_leftover_logs(partition, findings)
    deleted = {name.base_offset for name in map(parse_file_name, leftovers) if name.kind is FileKind.LOG}
    for orphan in partition.orphans:
        if orphan.base_offset not in deleted:
            _add_orphan(orphan, findings)
    if partition.state is None:
        _check_digits(partition, findings)
    _check_emptied(partition, findings)
    for file in partition.others:
        stem, dot, extension = file.name.rpartition(".")
        if f"{dot}{extension}" in _NAMED_BY_OFFSET and not _is_offset(stem):
            what = what_has_name(file.name)
            beside = f": it is {what}" if what else ""
            findings.add("misnamed-file", file.path, f"its name begins with {stem!r}, not with an offset{beside}")
    try:
        partition.read_topic_id()
    except FileError as error:
        findings.add("unreadable-text", partition.path / PARTITION_METADATA, error.message)


def _check_emptied(partition: PartitionLog, findings: Findings) -> None:
    """Report empty logs next to empty files that are never written like this."""
    logs = [each.path for each in partition.segments if not each.size]
    if not logs:
        return
    beside = [each.path for each in partition.snapshots.values() if not each.size]
    if _is_empty(partition.path / PARTITION_METADATA):
        beside.append(partition.path / PARTITION_METADATA)
    if not beside:
        return
    base = parse_file_name(logs[0]).base_offset
    end = max((partition.base_offsets[-1], *partition.snapshots))
    if base is None or end <= base:
        return  # like after a roll
    sentence = f"empty: {', '.join(path.name for path in [*logs, *beside][:_NAMED])}"
    more = len(logs) + len(beside) - _NAMED
    sentence = f"{sentence} and {more} more" if more > 0 else sentence
    findings.add("emptied-files", logs[0], sentence, offsets=(base, end - 1))


_NAMED = 4
"""The most files that a sentence names."""


def _is_empty(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except OSError:
        return False


def _is_offset(stem: str) -> bool:
    """Return True if a broker can read a name as an offset. Source: Long.parseLong."""
    return stem.isdecimal() and int(stem) <= MAXIMUM_OFFSET


def _check_digits(partition: PartitionLog, findings: Findings) -> None:
    """Report logs whose names a broker reads as offsets, but never writes. Source: LogLoader.loadSegmentFiles."""
    for path in (*(each.path for each in partition.segments), *(each.path for each in partition.others)):
        if path.suffix != ".log" or not (path.stem.isascii() and _is_offset(path.stem)):
            continue
        name = f"{int(path.stem):020}.log"
        if path.name != name and not path.with_name(name).exists():
            sentence = f"its name has {len(path.stem)} digits, a broker expects {name}"
            findings.add("unpadded-name", path, sentence, offsets=(int(path.stem), None))


def _add_orphan(orphan: SegmentFiles, findings: Findings) -> None:
    """Report a segment's indexes without a log: one finding for all remaining files."""
    first, *others = orphan.files
    suffixes = "".join(f", {file.path.suffix}" for file in others)
    beside = f" with{suffixes[1:]}" if others else ""
    size = sum(file.size for file in orphan.files)
    findings.add("orphan-index", first.path, f"{plural(size, 'byte')}{beside}, but no .log")


_OTHERS_COUNT = (Standing.SUPERSEDED, Standing.DUPLICATE)


def check_tier(partition: PartitionLog, findings: Findings) -> None:
    """Report problems of the objects with the segments of a partition; nothing for a local one."""
    placed = placed_at(partition.path)
    if placed is None:
        return
    for segment in placed.remote.segments:
        for problem in segment.problems:
            offsets = segment.base_offset, segment.end_offset
            findings.add(
                problem.finding, path_of_name(place_of(placed.store, problem.key)), problem.sentence, offsets=offsets
            )
    for choice in placed.choices:
        if choice.standing in _OTHERS_COUNT:
            _add_overlap(placed, choice, findings)
    _check_gaps(placed, findings)


def _add_overlap(placed: PlacedPartition, choice: Choice, findings: Findings) -> None:
    """Report a segment with offsets that others have."""
    why = "from an abandoned leader epoch"
    if choice.standing is Standing.DUPLICATE:
        why = "also in other segments"
    end = choice.segment.end_offset
    sentence = f"offsets {choice.segment.base_offset} to {'?' if end is None else end}, {why}: the segment isn't used"
    findings.add("remote-overlap", path_of_name(placed.place_of(choice.segment)), sentence)


def _check_gaps(placed: PlacedPartition, findings: Findings) -> None:
    """Report offsets that no segment has, by the known ends."""
    for before, after in pairwise(placed.used):
        end, base = before.segment.end_offset, after.segment.base_offset
        if end is not None and end + 1 < base:
            _add_gap(placed, after, (end + 1, base - 1), findings)
    if placed.used and placed.local_start is not None:
        last = placed.used[-1]
        end = last.segment.end_offset
        if end is not None and end + 1 < placed.local_start:
            _add_gap(placed, last, (end + 1, placed.local_start - 1), findings)


def _add_gap(placed: PlacedPartition, choice: Choice, missing: tuple[int, int], findings: Findings) -> None:
    count = missing[1] - missing[0] + 1
    sentence = f"no segment of the tier has the {count} offsets {missing[0]} to {missing[1]}"
    findings.add("remote-gap", path_of_name(placed.place_of(choice.segment)), sentence, offsets=missing)


def check_end(partition: PartitionLog, base_offset: int, next_offset: int | None, findings: Findings) -> None:
    """Report a segment whose batches exceed its manifest's end offset."""
    placed = placed_at(partition.path)
    choice = None if placed is None else placed.used_at(base_offset)
    if placed is None or choice is None or next_offset is None or choice.end is not None:
        return
    end = choice.segment.end_offset
    if end is not None and next_offset > end + 1:
        sentence = f"its batches end at offset {next_offset - 1}, the manifest says {end}"
        findings.add(
            "remote-end", path_of_name(placed.place_of(choice.segment)), sentence, offsets=(end, next_offset - 1)
        )


def without_misnamed_snapshot(partition: PartitionLog, found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings without those about a misnamed snapshot.

    The last segment's snapshot is named after its manifest's end, which may be wrong.
    """
    placed = placed_at(partition.path)
    findings = list(found)
    wrong = {each.first_offset for each in findings if each.id == "remote-end"} if placed is not None else set()
    names = {f"{end + 1:020}.snapshot" for end in wrong if end is not None}
    return (each for each in findings if each.file.name not in names)
