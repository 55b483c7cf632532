"""Replicas: partitions that are in several of the directories, and how far each of them reaches."""

from collections import defaultdict

from kseg.counted import counted
from kseg.report.block import Block, CellColumn, CellKind, Sentence, Table, Weight
from kseg.report.gathered import Gathered, PartitionFacts
from kseg.report.numbers import count_text
from kseg.views.doctor.next_steps import command_line, path_word

_COLUMNS = (
    CellColumn("partition", "Partition"),
    CellColumn("logDir", "Log directory"),
    CellColumn("logStartOffset", "First offset", CellKind.COUNT),
    CellColumn("logEndOffset", "End offset", CellKind.COUNT),
    CellColumn("behind", "Behind", CellKind.COUNT),
    CellColumn("leaderEpoch", "Leader epoch", CellKind.COUNT),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("bytes", "Log", CellKind.SIZE),
)


def replicas_block(known: Gathered) -> Block:
    """Copies of partitions, those that differ most first."""
    copies: dict[str, list[PartitionFacts]] = defaultdict(list)
    for each in known.in_use:
        copies[each.name].append(each)
    several = [each for each in copies.values() if len(each) > 1]
    several.sort(key=lambda each: (-_spread(each), each[0].name))
    rows = tuple(
        (
            one.name,
            str(one.log_dir),
            one.log_start_offset,
            one.log_end_offset,
            max(other.log_end_offset for other in each) - one.log_end_offset,
            one.leader_epoch,
            one.records,
            one.size,
        )
        for each in several
        for one in each
    )
    if not rows:
        return Block("replicas", "Replicas")
    verdicts = []
    for group in several[:3]:
        behind = min(group, key=lambda one: one.log_end_offset)
        if _spread(group):
            sentence = f"{behind.name}: {behind.log_dir} lacks {count_text(_spread(group))} offsets at the end."
            line = command_line(["diff", *(path_word(one.path) for one in group)])
            verdicts.append(Sentence(sentence, line, Weight.WATCH))
    if not verdicts:
        sentence = f"All copies of {counted(len(several), 'partition')} reach equally far."
        line = command_line(["diff", *(path_word(path) for path in known.log_dirs)])
        verdicts.append(Sentence(sentence, line))
    notes = ("Offsets alone are compared here; `kseg diff` compares records.",)
    return Block(
        "replicas", "Replicas", tuple(verdicts), tables=(Table("replicas", "Copies", _COLUMNS, rows),), notes=notes
    )


def _spread(copies: list[PartitionFacts]) -> int:
    ends = [each.log_end_offset for each in copies]
    return max(ends) - min(ends)
