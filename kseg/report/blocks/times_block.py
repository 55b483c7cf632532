"""Times that are out of order, in the future, or in other units than milliseconds."""

from kseg.kernel.statistics_contract import Measure
from kseg.report.block import Block, Cell, CellColumn, CellKind, Sentence, Table
from kseg.report.blocks.batches_block import histogram_figure
from kseg.report.commands import topic_line
from kseg.report.gathered import Gathered, PartitionFacts, TopicFacts
from kseg.report.numbers import age_text, count_text, share_text
from kseg.views.doctor.suspect_times import SuspectTimes

_LATE_SHARE, _LATE_MS = 0.01, 60_000
_COLUMNS = (
    CellColumn("topic", "Topic"),
    CellColumn("records", "Records", CellKind.COUNT),
    CellColumn("late", "Late records", CellKind.COUNT),
    CellColumn("lateShare", "Share", CellKind.SHARE),
    CellColumn("lateP50", "Late by, 50 %", CellKind.DURATION),
    CellColumn("lateP99", "99 %", CellKind.DURATION),
    CellColumn("lateMost", "Most", CellKind.DURATION),
    CellColumn("appendTimeBatches", "Batches with the broker's time", CellKind.COUNT),
    CellColumn("untimedBatches", "Without a time", CellKind.COUNT),
    CellColumn("strangeBatches", "With a time that can't be right", CellKind.COUNT),
)
_SUSPECT_COLUMNS = (
    CellColumn("directory", "Partition"),
    CellColumn("id", "What"),
    CellColumn("producerId", "Producer id"),
    CellColumn("batches", "Batches", CellKind.COUNT),
    CellColumn("firstOffset", "From offset", CellKind.COUNT),
    CellColumn("lastOffset", "To", CellKind.COUNT),
    CellColumn("largest", "Largest time", CellKind.COUNT),
)


def times_block(known: Gathered) -> Block:
    """Times of records and batches."""
    topics = [topic for topic in known.by_size if topic.sums["batches"]]
    suspects = [(each, suspect) for each in known.in_use for suspect in each.suspects]
    tables = [Table("lateness", "By topic", _COLUMNS, tuple(_row(known, topic) for topic in topics))]
    if suspects:
        rows = tuple(_suspect_row(partition, suspect) for partition, suspect in suspects)
        tables.append(Table("suspectTimes", "Times that can't be right", _SUSPECT_COLUMNS, rows))
    late = known.all.histograms[Measure.LATENESS]
    figures = (histogram_figure("How late records are", late, "milliseconds"),) if late.count else ()
    notes = [
        "Late: a record's time lies before the largest so far in its partition. Times of brokers aren't looked at."
    ]
    if known.choices.is_quick:
        notes.append("Lateness isn't known: --quick reads no records.")
    return Block("times", "Time disorder", tuple(_late_verdicts(topics)), figures, tuple(tables), tuple(notes))


def _row(known: Gathered, topic: TopicFacts) -> tuple[Cell, ...]:
    late, sums = topic.sums.histograms[Measure.LATENESS], topic.sums
    share = None if known.choices.is_quick else sums["late"] / max(sums["records"], 1)
    number = None if known.choices.is_quick else sums["late"]
    ends = (late.percentile(0.5), late.percentile(0.99), late.most if late.count else None)
    batches = (sums["append_time"], sums["without_time"], sums["beyond_time"])
    return (topic.name, sums["records"], number, share, *ends, *batches)


def _suspect_row(partition: PartitionFacts, suspect: SuspectTimes) -> tuple[Cell, ...]:
    author = suspect.author
    who = "a broker" if author.is_broker else "unknown" if author.producer_id is None else str(author.producer_id)
    return (
        partition.name,
        suspect.id,
        who,
        suspect.batches,
        suspect.first_offset,
        suspect.last_offset,
        suspect.largest,
    )


def _late_verdicts(topics: list[TopicFacts]) -> list[Sentence]:
    verdicts: list[Sentence] = []
    for topic in topics:
        late = topic.sums.histograms[Measure.LATENESS]
        share = late.count / max(topic.sums["records"], 1)
        if share >= _LATE_SHARE and (late.percentile(0.5) or 0) >= _LATE_MS and len(verdicts) < 2:
            sentence = (
                f"{topic.name}: {count_text(late.count)} records, {share_text(share)}, came late, half of them by "
                f"{age_text(late.percentile(0.5) or 0)} or more, one by {age_text(late.most)}."
            )
            verdicts.append(Sentence(sentence, topic_line(topic, "ls", "--by", "segment")))
    return verdicts
