"""What is wrong: the doctor's findings, the worst first, each with the next command."""

from collections import Counter

from kseg.counted import counted
from kseg.findings.finding_kinds import Severity
from kseg.report.block import Block, CellColumn, CellKind, Sentence, Table, Weight
from kseg.report.gathered import Gathered
from kseg.views.doctor.trouble import Trouble

_WEIGHTS = {Severity.ERROR: Weight.BAD, Severity.WARNING: Weight.WATCH}
_MOST_KINDS = 6
_COLUMNS = (
    CellColumn("severity", "Severity"),
    CellColumn("id", "Finding"),
    CellColumn("file", "Where"),
    CellColumn("position", "Position", CellKind.COUNT),
    CellColumn("sentence", "What"),
    CellColumn("command", "Next", CellKind.COMMAND),
)


def findings_block(known: Gathered) -> Block:
    """Findings of all checks."""
    troubles = known.check_up.troubles
    rows = tuple(
        (str(each.severity), each.id, str(each.file), each.position, each.sentence, each.command) for each in troubles
    )
    meanings = {each.id: each.kind for each in troubles}
    explained = tuple(
        (name, str(kind.severity), kind.meaning, kind.risk, kind.next_step) for name, kind in meanings.items()
    )
    tables = (
        Table("findings", "All findings", _COLUMNS, rows),
        Table(
            "findingKinds",
            "What they mean",
            (
                CellColumn("id", "Finding"),
                CellColumn("severity", "Severity"),
                CellColumn("meaning", "Meaning"),
                CellColumn("risk", "Risk"),
                CellColumn("nextStep", "What to do"),
            ),
            explained,
        ),
    )
    return Block("findings", "Findings", tuple(_verdicts(known)), tables=tables if rows else ())


def _verdicts(known: Gathered) -> list[Sentence]:
    serious = [each for each in known.check_up.troubles if each.severity is not Severity.NOTE]
    if not serious:
        seen = "nothing wrong was seen" if known.choices.is_quick else "nothing is wrong"
        return [Sentence(f"{seen.capitalize()} in {counted(known.check_up.partitions, 'partition')}.")]
    kinds = Counter(each.id for each in serious)
    first: dict[str, Trouble] = {}
    for each in serious:
        first.setdefault(each.id, each)
    verdicts = [_verdict(each, kinds[name]) for name, each in list(first.items())[:_MOST_KINDS]]
    if len(first) > _MOST_KINDS:
        verdicts.append(Sentence(f"{len(first) - _MOST_KINDS} more kinds of findings are below.", None, Weight.WATCH))
    return verdicts


def _verdict(each: Trouble, count: int) -> Sentence:
    where = each.file.name if each.topic is None else f"{each.topic}-{each.partition}"
    more = "" if count == 1 else f" And {count - 1} more like it."
    meaning = each.kind.meaning.removesuffix(".")
    return Sentence(f"{where}: {meaning} ({each.sentence}).{more}", each.command, _WEIGHTS[each.severity])
